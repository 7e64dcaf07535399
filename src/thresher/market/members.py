"""Members, their roles and their tokens: who may do what."""

from __future__ import annotations

import secrets

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from thresher.market.refusals import Refusal, forbidden, unknown, unusable
from thresher.market.tables import Member, Token
from thresher.market.times import now
from thresher.market.tokens import Secret, is_same, new_secret, read_secret

ROLES = ("operator", "buyer", "owner", "auditor")
LONGEST_NAME = 100


def authenticate(session: Session, text: str | None) -> Member:
    """The member whose token this is; any other text is refused with the same message."""
    name, secret = read_secret(text or "")
    token = session.get(Token, name)
    known = is_same(secret, token.digest if token else b"\0" * 32)
    if token is None or not known or token.revoked is not None:
        said = "the token is missing or not valid: send Authorization: Bearer TOKEN"
        raise Refusal(401, "no_token", said)
    member = session.get_one(Member, token.member)
    if member.suspended:
        raise Refusal(403, "suspended", "this member is suspended: ask the operator")
    return member


def require_role(member: Member, *roles: str) -> None:
    """Raise unless the member has one of the roles."""
    if member.role not in roles:
        raise forbidden(member.role, *roles)


def add_member(session: Session, role: str, name: str) -> tuple[Member, str]:
    """Create a member, and a token that is shown only once."""
    name = check_name(name)
    if role not in ROLES:
        raise unusable(f"role must be one of {', '.join(ROLES)}, got {role!r}")
    if session.scalar(select(Member.id).where(Member.name == name)) is not None:
        raise Refusal(409, "name_taken", "a member with that name already exists: choose another")
    member = Member(id=secrets.token_hex(8), role=role, name=name, created=now(), suspended=False)
    session.add(member)
    session.flush()
    return member, add_token(session, member).text


def check_name(name: str, what: str = "name", longest: int = LONGEST_NAME) -> str:
    """Return the name if it can be shown: some characters, none of them invisible."""
    name = " ".join(name.split())
    if not name or len(name) > longest or not name.isprintable():
        raise unusable(f"{what} must have 1 to {longest} printable characters")
    return name


def add_token(session: Session, member: Member) -> Secret:
    """Create one more token for a member."""
    made = new_secret()
    session.add(Token(id=made.id, member=member.id, digest=made.digest, created=now()))
    return made


def replace_tokens(session: Session, member_id: str) -> Secret:
    """Create a new token for a member who lost theirs, and revoke all old ones."""
    member = _to_change(session, member_id)
    theirs = update(Token).where(Token.member == member_id, Token.revoked.is_(None))
    session.execute(theirs.values(revoked=now()))
    return add_token(session, member)


def revoke(session: Session, actor: Member, token_id: str) -> None:
    """Revoke a token of the actor, or, for an operator, of anybody."""
    token = session.get(Token, token_id, with_for_update=True)
    if token is None or (actor.role != "operator" and token.member != actor.id):
        raise unknown("token")
    token.revoked = token.revoked or now()


def suspend(session: Session, member_id: str, *, suspended: bool) -> None:
    """Suspend a member, or reinstate it."""
    _to_change(session, member_id).suspended = suspended


def _to_change(session: Session, member_id: str) -> Member:
    member = session.get(Member, member_id, with_for_update=True)
    if member is None:
        raise unknown("member")
    return member
