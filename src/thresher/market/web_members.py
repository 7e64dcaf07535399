"""Pages for the operator and for auditors: members, the ledger, the public export."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Form, Request
from starlette.responses import RedirectResponse, Response

from thresher.market import api, members
from thresher.market.callers import InMarket
from thresher.market.web import Reader, Writer, new_router, page
from thresher.privacy.ledger import Ledger

router = new_router()
HAND_OVER = (
    "Copy it now and send it over a secure channel: it will not be shown again. Anyone who has it "
    "can log in here."
)


@router.get("/members")
def list_members(request: Request, reader: Reader, market: InMarket) -> Response:
    """All members, for the operator."""
    members.require_role(reader, "operator")
    return page(request, reader, "members.html.jinja", members=api.list_members(market, reader))


@router.post("/members")
def add_member(
    request: Request, writer: Writer, market: InMarket, role: Annotated[str, Form()],
    name: Annotated[str, Form(max_length=100)],
) -> Response:  # fmt: skip
    """Add a member; the token is shown only once."""
    members.require_role(writer, "operator")
    with market.database.writing() as session:
        made, token = members.add_member(session, role, name)
    return page(
        request, writer, "secret.html.jinja", what=f"Token for {made.name}", secret=token,
        advice=HAND_OVER, back="/members",
    )  # fmt: skip


@router.post("/members/{member}")
def change_member(
    member: str, writer: Writer, market: InMarket, suspended: Annotated[str, Form()]
) -> Response:
    """Suspend a member, or reinstate it."""
    members.require_role(writer, "operator")
    with market.database.writing() as session:
        members.suspend(session, member, suspended=suspended == "yes")
    return RedirectResponse("/members", 303)


@router.post("/members/{member}/tokens")
def replace_tokens(request: Request, member: str, writer: Writer, market: InMarket) -> Response:
    """Create a new token for a member who lost theirs; it is shown only once."""
    members.require_role(writer, "operator")
    made = api.replace_tokens(member, market, writer)
    return page(
        request, writer, "secret.html.jinja", what="A new token", secret=made.token,
        advice=f"The member's old tokens do not work any more. {HAND_OVER}", back="/members",
    )  # fmt: skip


@router.get("/audit")
def audit(request: Request, reader: Reader, market: InMarket) -> Response:
    """The ledger, for auditors."""
    members.require_role(reader, "auditor", "operator")
    with Ledger.open(market.ledger_path) as ledger:
        entries = [entry | {"summary": _summary(entry)} for entry in ledger.entries()]
        return page(
            request, reader, "audit.html.jinja", ledger=ledger, remaining=ledger.remaining(),
            entries=entries,
        )  # fmt: skip


@router.get("/export")
def get_export(reader: Reader, market: InMarket) -> Any:
    """The public export, for auditors."""
    return api.get_export(market, reader)


def _summary(entry: dict[str, Any]) -> str:
    about = entry["about"]
    return str(about.get("data_version") or about.get("data_set") or entry["request"][:16])
