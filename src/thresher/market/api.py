"""The routes of the HTTP interface: one function and one answer each."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from thresher.market import client, members, planning, schemas, tasks, uploads
from thresher.market.callers import Actor, Closed, InMarket, MaybeActor, Operator
from thresher.market.examples import EXPORT, FILE_IN, FILES, PAYOUT, RELEASE, given
from thresher.market.export import export
from thresher.market.market import Market
from thresher.market.questions import KINDS
from thresher.market.receipts import SALT_BYTES
from thresher.market.refusals import too_late, unknown, unusable
from thresher.market.tables import Line, Member, Outcome, Task, Upload
from thresher.market.terms import Terms

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorOut}
    for status in (400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 500, 503)
}
router = APIRouter(prefix="/api", responses=ERRORS, route_class=Closed)


async def content_of(request: Request) -> bytes:
    """The file in the body of a request."""
    return await request.body()


def kind_of(request: Request) -> str:
    """The kind of file in the body of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in KINDS:
        raise unusable(f"Content-Type must be one of {', '.join(KINDS)}, got {kind or 'none'}")
    return KINDS[kind]


Content = Annotated[bytes, Depends(content_of)]
Kind = Annotated[str, Depends(kind_of)]


@router.get("/me")
def me(actor: Actor) -> schemas.MemberOut:
    """The member whose token this is."""
    return _member(actor)


@router.get("/key")
def key(market: InMarket) -> schemas.KeyOut:
    """The public key that checks receipts."""
    return schemas.KeyOut(key=market.key.public_key().public_bytes_raw().hex())


@router.post("/members", status_code=201)
def add_member(new: schemas.NewMember, market: InMarket, _: Operator) -> schemas.TokenOut:
    """Add a member (operator)."""
    with market.database.writing() as session:
        member, token = members.add_member(session, new.role, new.name)
    return schemas.TokenOut(member=member.id, token=token)


@router.get("/members")
def list_members(market: InMarket, _: Operator) -> list[schemas.MemberOut]:
    """All members (operator)."""
    with market.database.reading() as session:
        return [_member(each) for each in session.scalars(select(Member).order_by(Member.created))]


@router.patch("/members/{member}", status_code=204)
def suspend(member: str, change: schemas.Renewal, market: InMarket, _: Operator) -> Response:
    """Suspend a member (operator)."""
    with market.database.writing() as session:
        members.suspend(session, member, suspended=change.suspended)
    return Response(status_code=204)


@router.post("/tokens", status_code=201)
def add_token(market: InMarket, actor: Actor) -> schemas.TokenOut:
    """Create another token for me."""
    with market.database.writing() as session:
        made = members.add_token(session, actor)
    return schemas.TokenOut(member=actor.id, token=made.text)


@router.post("/members/{member}/tokens", status_code=201)
def replace_tokens(member: str, market: InMarket, _: Operator) -> schemas.TokenOut:
    """Create a new token for a member who lost theirs, and revoke the old ones (operator)."""
    with market.database.writing() as session:
        made = members.replace_tokens(session, member)
    return schemas.TokenOut(member=member, token=made.text)


@router.delete("/tokens/{token}", status_code=204)
def revoke(token: str, market: InMarket, actor: Actor) -> Response:
    """Revoke a token."""
    with market.database.writing() as session:
        members.revoke(session, actor, token)
    return Response(status_code=204)


@router.get("/tasks")
def list_tasks(market: InMarket, actor: Actor) -> list[schemas.TaskOut]:
    """All tasks."""
    with market.database.reading() as session:
        found = session.scalars(select(Task).order_by(Task.created)).all()
        return [
            task_out(session, task)
            for task in found
            if task.state != "draft" or actor.id == task.buyer or actor.role == "operator"
        ]


@router.post("/tasks", status_code=201)
def draft_task(new: schemas.NewTask, market: InMarket, actor: Actor) -> schemas.TaskOut:
    """Draft a task (buyer)."""
    document = new.model_dump(exclude={"title", "opens", "closes"})
    with market.database.writing() as session:
        task = tasks.draft(session, actor, new.title, Terms.of(document), new.opens, new.closes)
        return task_out(session, task)


@router.get("/tasks/{task}")
def get_task(task: str, market: InMarket, actor: Actor) -> schemas.TaskOut:
    """A task."""
    with market.database.reading() as session:
        return task_out(session, tasks.seen(session, actor, task))


@router.put("/tasks/{task}/validation", openapi_extra=FILE_IN)
def put_validation(
    task: str, content: Content, kind: Kind, market: InMarket, actor: Actor
) -> schemas.TaskOut:
    """Set the validation set of a draft (buyer)."""
    with market.database.writing() as session:
        return task_out(session, tasks.set_validation(session, actor, task, content, kind))


@router.get(
    "/tasks/{task}/validation", responses={200: {"content": FILES}}, response_class=Response
)
def get_validation(task: str, market: InMarket, actor: Actor) -> Response:
    """The validation set, which is public."""
    with market.database.reading() as session:
        found = tasks.seen(session, actor, task)
    if found.validation is None or found.kind is None:
        raise too_late("the task has no validation set yet")
    return Response(found.validation, media_type=media_type(found.kind))


@router.get("/tasks/{task}/plan")
def get_plan(task: str, market: InMarket, actor: Actor) -> schemas.PlanOut:
    """The error and the reserve to expect (buyer)."""
    with market.database.reading() as session:
        found = tasks.theirs(session, actor, task)
    return schemas.PlanOut(**planning.plan(tasks.question_of(found)))


@router.post("/tasks/{task}/publish")
def publish(task: str, market: InMarket, actor: Actor) -> schemas.TaskOut:
    """Open a draft to owners (buyer)."""
    with market.database.writing() as session:
        return task_out(session, tasks.publish(session, actor, task))


@router.post("/tasks/{task}/close")
def close(task: str, market: InMarket, actor: Actor) -> schemas.TaskOut:
    """Close a task before its time (buyer)."""
    with market.database.writing() as session:
        return task_out(session, tasks.close(session, actor, task))


@router.post("/tasks/{task}/invitations", status_code=201)
def invite(task: str, market: InMarket, actor: Actor) -> schemas.InvitationOut:
    """Invite an owner (buyer)."""
    with market.database.writing() as session:
        return schemas.InvitationOut(code=tasks.invite(session, actor, task))


@router.post("/join", status_code=201)
def join(asked: schemas.Joining, market: InMarket, actor: MaybeActor) -> schemas.JoinedOut:
    """Join a task by an invitation (owner)."""
    with market.database.writing() as session:
        task, owner, token = tasks.join(session, actor, asked.code, asked.name)
    return schemas.JoinedOut(task=task.id, owner=owner.id, token=token or None)


@router.get("/tasks/{task}/uploads")
def list_uploads(task: str, market: InMarket, actor: Actor) -> list[schemas.UploadOut]:
    """My uploads (owner)."""
    with market.database.reading() as session:
        return [upload_out(each) for each in uploads.listed(session, actor, task)]


@router.post("/tasks/{task}/uploads", status_code=201, openapi_extra=FILE_IN)
def add_upload(
    task: str, content: Content, kind: Kind, market: InMarket, actor: Actor,
    salt: Annotated[str, Header(alias="X-Salt")], replaces: str | None = None,
) -> schemas.UploadOut:  # fmt: skip
    """Submit rows (owner)."""
    made = uploads.hand_in(
        market, actor, task, content=content, kind=kind, salt=read_salt(salt), replaces=replaces
    )
    return upload_out(made)


@router.get(
    "/tasks/{task}/uploads/{upload}", responses={200: {"content": FILES}}, response_class=Response
)
def get_upload(task: str, upload: str, market: InMarket, actor: Actor) -> Response:
    """Rows as I submitted them (owner)."""
    with market.database.reading() as session:
        found = uploads.own(session, actor, task, upload)
    if found.content is None:
        raise unknown("upload")
    return Response(found.content, media_type=media_type(found.kind))


@router.delete("/tasks/{task}/uploads/{upload}", status_code=204)
def withdraw(task: str, upload: str, market: InMarket, actor: Actor) -> Response:
    """Withdraw rows before the task closes (owner)."""
    with market.database.writing() as session:
        uploads.withdraw(session, actor, task, upload)
    return Response(status_code=204)


@router.delete("/tasks/{task}/rows")
def delete_rows(task: str, market: InMarket, actor: Actor) -> schemas.DeletedOut:
    """Delete my rows of a task that has ended (owner)."""
    with market.database.writing() as session:
        return schemas.DeletedOut(deleted=uploads.delete_rows(session, actor, task))


@router.get("/tasks/{task}/release", responses=given(RELEASE), response_class=Response)
def get_release(task: str, market: InMarket, actor: Actor) -> Response:
    """The release: noisy table, prices, record."""
    return Response(_outcome(market, actor, task).release, media_type="application/json")


@router.get("/tasks/{task}/payout", responses=given(PAYOUT))
def get_payout(task: str, market: InMarket, actor: Actor) -> dict[str, Any]:
    """The public part of the pay."""
    return _outcome(market, actor, task).public


@router.get(
    "/tasks/{task}/report", response_class=Response,
    responses=given("<!doctype html>...", "text/html"),
)  # fmt: skip
def get_report(task: str, market: InMarket, actor: Actor) -> HTMLResponse:
    """A page that shows the release."""
    return HTMLResponse(_outcome(market, actor, task).page)


@router.get("/tasks/{task}/statement")
def get_statement(task: str, market: InMarket, actor: Actor) -> schemas.StatementOut:
    """What I am paid (owner)."""
    members.require_role(actor, "owner")
    return _statement(market, actor, task, actor.id)


@router.get("/tasks/{task}/statements/{owner}")
def get_statement_of(
    task: str, owner: str, market: InMarket, actor: Operator
) -> schemas.StatementOut:
    """What an owner is paid (operator)."""
    return _statement(market, actor, task, owner)


@router.get("/tasks/{task}/payments")
def get_payments(task: str, market: InMarket, actor: Operator) -> schemas.PaymentsOut:
    """What everybody is paid, and the reserve (operator)."""
    with market.database.reading() as session:
        found = tasks.seen(session, actor, task)
        lines = [
            (owner, line)
            for owner in tasks.roster(session, task)
            if (line := session.get(Line, (task, owner.id))) is not None
        ]
    payments = [
        schemas.PaymentOut(
            owner=owner.id, name=owner.name, cents=line.line["cents"], later=line.line["later"]
        )
        for owner, line in lines
    ]
    pot, paid = found.terms["pot_cents"], sum(each.cents for each in payments)
    return schemas.PaymentsOut(
        task=task, state=found.state, pot_cents=pot, paid_cents=paid, reserve_cents=pot - paid,
        payments=payments,
    )  # fmt: skip


@router.get("/export", responses=given(EXPORT))
def get_export(market: InMarket, actor: Actor) -> dict[str, Any]:
    """Everything public about the market (auditor)."""
    members.require_role(actor, "auditor", "operator")
    return export(market)


def media_type(kind: str) -> str:
    """The media type of this kind of file."""
    return client.KINDS[f".{kind}"]


def read_salt(text: str) -> bytes:
    """The salt in the header of a request; raise if it is not one."""
    try:
        salt = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        salt = b""
    if len(salt) != SALT_BYTES:
        raise unusable(f"X-Salt must be {SALT_BYTES} random bytes in base64")
    return salt


def _outcome(market: Market, actor: Member, task: str) -> Outcome:
    with market.database.reading() as session:
        tasks.seen(session, actor, task)
        found = session.get(Outcome, task)
    if found is None:
        raise too_late("the task has no release yet")
    return found


def _statement(market: Market, actor: Member, task: str, owner: str) -> schemas.StatementOut:
    with market.database.reading() as session:
        state = tasks.seen(session, actor, task).state
        line = session.get(Line, (task, owner))
    if line is None and state == "paid":
        raise unknown("statement")
    return schemas.StatementOut(
        task=task, owner=owner, state=state,
        line=None if line is None else schemas.LineOut(**line.line),
    )  # fmt: skip


def _member(member: Member) -> schemas.MemberOut:
    return schemas.MemberOut(
        id=member.id, role=member.role, name=member.name, suspended=member.suspended
    )


def task_out(session: Session, task: Task) -> schemas.TaskOut:
    """The public facts of a task."""
    return schemas.TaskOut(
        id=task.id, title=task.title, state=task.state, reason=task.reason,  # type: ignore[arg-type]
        terms=task.terms, opens=task.opens, closes=task.closes,
        published=task.published, closed=task.closed,
        roster=[schemas.OwnerOut(id=o.id, name=o.name) for o in tasks.roster(session, task.id)],
        commitments=uploads.commitments(session, task),
    )  # fmt: skip


def upload_out(upload: Upload) -> schemas.UploadOut:
    """What the owner sees of an upload."""
    return schemas.UploadOut(
        id=upload.id, time=upload.received, rows=upload.rows,
        withdrawn=upload.withdrawn is not None, kept=upload.content is not None,
        receipt=upload.receipt,
    )  # fmt: skip
