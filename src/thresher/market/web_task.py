"""The page of a task: what its reader can see and do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Form, Request, UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from thresher.market import api, planning, schemas, tasks, uploads
from thresher.market.callers import InMarket
from thresher.market.market import Market
from thresher.market.questions import KINDS
from thresher.market.receipts import new_salt
from thresher.market.refusals import Refusal
from thresher.market.tables import Line, Member, Outcome
from thresher.market.times import now
from thresher.market.web import Reader, Writer, new_router, page
from thresher.market.web_new import kind_of
from thresher.privacy.ledger import Ledger

router = new_router()
REPORT_POLICY = (  # the page of a release has a policy of its own, by digests
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


@router.get("/tasks/{task}")
def show(request: Request, task: str, reader: Reader, market: InMarket) -> Response:
    """Show a task, with what its reader can do."""
    return _task_page(request, market, reader, task)


@router.post("/tasks/{task}/uploads")
def upload(
    request: Request, task: str, writer: Writer, market: InMarket, rows: UploadFile,
    replaces: Annotated[str, Form()] = "",
) -> Response:  # fmt: skip
    """Submit rows; the receipt and its salt are shown only once."""
    salt = new_salt()
    try:
        made = uploads.hand_in(
            market, writer, task, content=rows.file.read(), kind=kind_of(rows), salt=salt,
            replaces=replaces or None,
        )  # fmt: skip
    except Refusal as refused:
        return _task_page(request, market, writer, task, refused)
    receipt = json.dumps(made.receipt | {"salt": salt.hex()}, indent=1)
    return page(
        request, writer, "secret.html.jinja", secret=receipt,
        what=f"{made.rows} rows were accepted",
        advice="This is your receipt. Save it now and keep it secret. With its salt you can prove "
        "later what you submitted. Anyone else who has the salt can check guesses of your rows.",
        file=f"receipt-{made.id}.json", back=f"/tasks/{task}",
    )  # fmt: skip


@router.post("/tasks/{task}/{action}")
def act(request: Request, task: str, action: str, writer: Writer, market: InMarket) -> Response:
    """Publish or close the task, invite an owner, or delete your own rows."""
    known: dict[str, Callable[..., Any]] = {
        "publish": tasks.publish, "close": tasks.close, "invitations": tasks.invite,
        "delete": uploads.delete_rows,
    }  # fmt: skip
    if action not in known:
        raise Refusal(404, "not_found", "this page does not exist")
    try:
        with market.database.writing() as session:
            code = known[action](session, writer, task)
    except Refusal as refused:
        return _task_page(request, market, writer, task, refused)
    if action != "invitations":
        return RedirectResponse(f"/tasks/{task}", 303)
    return page(
        request, writer, "secret.html.jinja", what="An invitation for one owner", secret=code,
        advice="Copy this code now and send it to one owner. It works once, and it will not be "
        "shown again. The owner enters it on the first page of this market.",
        back=f"/tasks/{task}",
    )  # fmt: skip


@router.post("/tasks/{task}/uploads/{upload}/withdraw")
def withdraw(
    request: Request, task: str, upload: str, writer: Writer, market: InMarket
) -> Response:
    """Withdraw rows."""
    try:
        with market.database.writing() as session:
            uploads.withdraw(session, writer, task, upload)
    except Refusal as refused:
        return _task_page(request, market, writer, task, refused)
    return RedirectResponse(f"/tasks/{task}", 303)


@router.get("/tasks/{task}/uploads/{upload}")
def download(task: str, upload: str, reader: Reader, market: InMarket) -> Response:
    """Rows as they were submitted."""
    found = api.get_upload(task, upload, market, reader)
    kind = KINDS[str(found.media_type)]
    found.headers["Content-Disposition"] = f'attachment; filename="rows-{upload}.{kind}"'
    return found


@router.get("/tasks/{task}/{what}")
def public_part(task: str, what: str, reader: Reader, market: InMarket) -> Response:
    """The report, the release or the validation set of a task."""
    if what == "report":
        found: Response = api.get_report(task, market, reader)
        found.headers["Content-Security-Policy"] = REPORT_POLICY
        return found
    if what == "release":
        return api.get_release(task, market, reader)
    if what == "validation":
        return api.get_validation(task, market, reader)
    raise Refusal(404, "not_found", "this page does not exist")


def _task_page(
    request: Request, market: Market, reader: Member, task_id: str, refused: Refusal | None = None
) -> HTMLResponse:
    with market.database.reading() as session:
        task = tasks.seen(session, reader, task_id)
        outcome = session.get(Outcome, task_id)
        line = session.get(Line, (task_id, reader.id))
        shown = api.task_out(session, task)
        mine = [api.upload_out(each) for each in uploads.listed(session, reader, task_id)]
    is_buyers = reader.id == task.buyer
    is_operators = reader.role == "operator" and task.state == "paid"
    planned = is_buyers and task.state == "draft" and task.validation is not None
    joined = reader.id in {owner.id for owner in shown.roster}
    return page(
        request, reader, "task.html.jinja", task=shown, mine=is_buyers,
        line=None if line is None else line.line, uploads=mine,
        plan=schemas.PlanOut(**planning.plan(tasks.question_of(task))) if planned else None,
        remaining=_remaining(market) if planned else None,
        can_upload=joined and task.state == "open" and task.opens <= now() < task.closes,
        can_delete=task.state in tasks.ENDED and any(upload.kept for upload in mine),
        paid=outcome.public if outcome is not None else None,
        error=None if outcome is None else json.loads(outcome.release)["relative_error"],
        payments=api.get_payments(task_id, market, reader) if is_operators else None,
        has_release=outcome is not None, has_validation=task.validation is not None,
        problem=None if refused is None else refused.message,
        status=200 if refused is None else refused.status,
    )  # fmt: skip


def _remaining(market: Market) -> float:
    """The largest epsilon for which the market's ledger still has room."""
    with Ledger.open(market.ledger_path) as ledger:
        return ledger.remaining()
