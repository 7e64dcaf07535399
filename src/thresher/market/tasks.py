"""Tasks: drafted, published, joined and closed. Each step is taken once."""

from __future__ import annotations

import json
import secrets
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from thresher.errors import InputError
from thresher.market.members import add_member, check_name, require_role
from thresher.market.questions import Question
from thresher.market.receipts import canonical
from thresher.market.refusals import Refusal, too_late, unknown, unusable
from thresher.market.tables import Invitation, Job, Member, Place, Task
from thresher.market.terms import Terms
from thresher.market.times import check_time, now
from thresher.market.tokens import is_same, new_secret, read_secret

LONGEST_TITLE = 200
ENDED = ("paid", "unpaid", "refused")


def draft(
    session: Session, buyer: Member, title: str, terms: Terms, opens: datetime, closes: datetime
) -> Task:
    """Create a task that only its buyer and the operator see."""
    require_role(buyer, "buyer")
    try:
        opens, closes = check_time("opens", opens), check_time("closes", closes)
    except InputError as wrong:
        raise unusable(str(wrong)) from None
    if not opens < closes or closes <= now():
        raise unusable("closes must be later than opens and later than now")
    task = Task(
        id=secrets.token_hex(8), buyer=buyer.id, title=check_name(title, "title", LONGEST_TITLE),
        state="draft", terms=terms.document(), opens=opens, closes=closes, created=now(),
    )  # fmt: skip
    session.add(task)
    session.flush()
    return task


def seen(session: Session, actor: Member, task_id: str, *, change: bool = False) -> Task:
    """A task that the actor may see; with `change`, it stays locked until the transaction ends."""
    task = session.get(Task, task_id, with_for_update=change)
    if task is None or (task.state == "draft" and not _is_theirs(actor, task)):
        raise unknown("task")
    return task


def theirs(session: Session, actor: Member, task_id: str) -> Task:
    """A task to change; raise unless the actor is its buyer or an operator."""
    task = seen(session, actor, task_id, change=True)
    if not _is_theirs(actor, task):
        raise Refusal(403, "forbidden", "only the buyer of the task or an operator can do this")
    return task


def _is_theirs(actor: Member, task: Task) -> bool:
    return actor.role == "operator" or actor.id == task.buyer


def set_validation(
    session: Session, actor: Member, task_id: str, content: bytes, kind: str
) -> Task:
    """Give a draft its validation set."""
    task = theirs(session, actor, task_id)
    if task.state != "draft":
        raise too_late("the task is already published: its validation set cannot change")
    terms = Terms.of(task.terms | {"forest": None})  # grown on this validation set, if at all
    task.terms = Question.read(terms, content, kind).settled_terms.document()
    task.validation, task.kind = content, kind
    return task


def question_of(task: Task) -> Question:
    """The question of a task; raise if it has no validation set yet."""
    if task.validation is None or task.kind is None:
        raise too_late("the task has no validation set yet: upload one first")
    return _read(task.validation, task.kind, canonical(task.terms))


@lru_cache(maxsize=32)
def _read(validation: bytes, kind: str, terms: bytes) -> Question:
    return Question.read(Terms.of(json.loads(terms)), validation, kind)


def publish(session: Session, actor: Member, task_id: str) -> Task:
    """Open a draft to owners; from now on, its terms cannot change."""
    task = theirs(session, actor, task_id)
    if task.state != "draft":
        raise too_late("the task is already published")
    question_of(task)
    if task.closes <= now():
        raise too_late("the closing time has passed: make another draft with a later one")
    task.state, task.published = "open", now()
    return task


def invite(session: Session, actor: Member, task_id: str) -> str:
    """Create a code with which one owner may join; it is shown only once."""
    task = theirs(session, actor, task_id)
    if task.state != "open":
        raise too_late(f"the task is {task.state}: owners can join only while it is open")
    made = new_secret()
    session.add(Invitation(id=made.id, task=task.id, digest=made.digest, created=now()))
    return made.text


def join(session: Session, owner: Member | None, code: str, name: str) -> tuple[Task, Member, str]:
    """Join a task with a code; a new owner also gets a token."""
    ident, secret = read_secret(code)
    invitation = session.get(Invitation, ident, with_for_update=True)
    known = is_same(secret, invitation.digest if invitation else b"\0" * 32)
    if invitation is None or not known or invitation.used is not None:
        raise Refusal(
            403, "no_invitation", "the code is not valid or already used: ask for another"
        )
    task = session.get_one(Task, invitation.task, with_for_update=True)
    _check_open(task)
    token = ""
    if owner is None:
        owner, token = add_member(session, "owner", name)
    require_role(owner, "owner")
    if session.get(Place, (task.id, owner.id)) is not None:
        raise too_late("you already joined this task: someone else can use the code")
    if not token and name not in {"", owner.name}:
        raise unusable(
            f"the name {name!r} cannot be used: you are {owner.name!r} already, so leave it out"
        )
    invitation.used = now()
    session.add(Place(task=task.id, owner=owner.id, joined=now()))
    return task, owner, token


def _check_open(task: Task) -> None:
    if task.state != "open" or task.closes <= now():
        raise too_late("the task is closed")


def check_taking(session: Session, owner: Member, task_id: str) -> Task:
    """A task that accepts this owner's rows now; it cannot close until the transaction ends."""
    task = seen(session, owner, task_id, change=True)
    require_role(owner, "owner")
    if session.get(Place, (task.id, owner.id)) is None:
        raise Refusal(403, "no_place", "you have not joined this task: ask its buyer for a code")
    _check_open(task)
    if task.opens > now():
        raise too_late(f"the task opens at {task.opens.isoformat()}")
    return task


def close(session: Session, actor: Member, task_id: str) -> Task:
    """Close an open task before its time."""
    task = theirs(session, actor, task_id)
    if task.state == "draft":
        raise too_late("the task is a draft: publish it before you close it")
    if task.state == "open":
        _close(session, task)
    return task


def close_due(session: Session) -> int:
    """Close all tasks whose time has come; return how many they are."""
    due = select(Task).where(Task.state == "open", Task.closes <= now())
    tasks = session.scalars(due.with_for_update(skip_locked=True)).all()
    for task in tasks:
        _close(session, task)
    return len(tasks)


def _close(session: Session, task: Task) -> None:
    closing = update(Task).where(Task.id == task.id, Task.state == "open")
    changed: Any = session.execute(closing.values(state="closing", closed=now()))
    if changed.rowcount == 1:
        session.add(Job(task=task.id, created=now(), tries=0))


def roster(session: Session, task_id: str) -> list[Member]:
    """The owners of a task, in the order in which they joined."""
    places = select(Member).join(Place, Place.owner == Member.id).where(Place.task == task_id)
    return list(session.scalars(places.order_by(Place.joined, Member.id)))
