"""The pages of a market: forms that call what the HTTP interface calls, for people.

A page knows its reader by a cookie that holds the token. Every form that changes something carries
a mark that follows from the cookie, so that no other site can send it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, UploadFile
from fastapi.routing import APIRoute
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from thresher.market import api, members, planning, schemas, tasks, uploads
from thresher.market.callers import InMarket, market_of
from thresher.market.market import Market
from thresher.market.questions import KINDS
from thresher.market.receipts import new_salt
from thresher.market.refusals import Refusal, unusable
from thresher.market.tables import Line, Member, Outcome
from thresher.market.terms import Terms
from thresher.market.times import now
from thresher.privacy.ledger import Ledger

OPEN = frozenset({"/login", "/join"})  # forms for those who have no token yet
COOKIE, MARK = "thresher_token", "csrf"
STATES = {
    "draft": "A draft, which only its buyer sees", "open": "Open", "closing": "Being settled",
    "paid": "Paid", "unpaid": "Nobody was paid", "refused": "Refused",
}  # fmt: skip
REPORT_POLICY = (  # the page of a release has a policy of its own, by digests
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
KEEP = "Keep it where others cannot read it: it is shown this once, and lets anyone act as you."


def mark_of(token: str) -> str:
    """The mark that forms of this reader carry."""
    return hmac.new(token.encode(), b"thresher.market form", hashlib.sha256).hexdigest()


def reader_of(request: Request, market: InMarket) -> Member | None:
    """The member whose cookie this is, if it is one."""
    token = request.cookies.get(COOKIE)
    if token is None:
        return None
    try:
        with market.database.reading() as session:
            request.state.member = members.authenticate(session, token)
    except Refusal:
        return None
    member: Member = request.state.member
    return member


Reader = Annotated[Member | None, Depends(reader_of)]


class Page(APIRoute):
    """A route that reads a form only of those who are logged in, unless it is in `OPEN`."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """What answers a request."""
        handle = super().get_route_handler()
        if "POST" not in (self.methods or ()) or self.path in OPEN:
            return handle

        async def handle_member(request: Request) -> Any:
            if await run_in_threadpool(reader_of, request, market_of(request)) is None:
                raise Refusal(401, "no_token", "log in first")
            return await handle(request)

        return handle_member


router = APIRouter(include_in_schema=False, route_class=Page)


def writer_of(
    request: Request, reader: Reader, mark: Annotated[str, Form(alias=MARK)] = ""
) -> Member:
    """The member who sends a form, which came from a page of ours."""
    if reader is None:
        raise Refusal(401, "no_token", "log in first")
    if not hmac.compare_digest(mark, mark_of(request.cookies[COOKIE])):
        raise Refusal(403, "other_site", "the form did not come from this page: load it again")
    return reader


Writer = Annotated[Member, Depends(writer_of)]


@router.get("/static/{name}")
def static(name: str) -> Response:
    """The style of the pages."""
    if name != "market.css":
        raise Refusal(404, "not_found", "there is no such file")
    headers = {"Cache-Control": "max-age=3600"}
    return Response(_asset(name), media_type="text/css", headers=headers)


@router.get("/")
def home(request: Request, reader: Reader, market: InMarket) -> HTMLResponse:
    """The tasks, or how to log in."""
    if reader is None:
        return page(request, None, "login.html.jinja")
    found = api.list_tasks(market, reader)
    return page(request, reader, "tasks.html.jinja", tasks=found)


@router.post("/login")
def log_in(
    request: Request, market: InMarket, token: Annotated[str, Form(max_length=200)]
) -> Response:
    """Remember the token in a cookie that no script can read."""
    token = token.strip()
    try:
        with market.database.reading() as session:
            members.authenticate(session, token)
    except Refusal as refused:
        problem = "this token is not valid" if refused.status == 401 else refused.message
        return page(request, None, "login.html.jinja", problem=problem, status=refused.status)
    return _with_cookie(request, RedirectResponse("/", 303), token)


@router.post("/logout")
def log_out(_: Writer) -> Response:
    """Forget the cookie."""
    away = RedirectResponse("/", 303)
    away.delete_cookie(COOKIE)
    return away


@router.post("/join")
def join(
    request: Request, market: InMarket, reader: Reader,
    code: Annotated[str, Form(max_length=200)], name: Annotated[str, Form(max_length=100)] = "",
    mark: Annotated[str, Form(alias=MARK)] = "",
) -> Response:  # fmt: skip
    """Take a place by an invitation."""
    actor = None if reader is None else writer_of(request, reader, mark)
    try:
        with market.database.writing() as session:
            task, owner, token = tasks.join(session, actor, code.strip(), name)
    except Refusal as refused:
        template = "login.html.jinja" if actor is None else "tasks.html.jinja"
        listed = [] if actor is None else api.list_tasks(market, actor)
        return page(
            request, actor, template, problem=refused.message, status=refused.status, tasks=listed
        )
    if not token:
        return RedirectResponse(f"/tasks/{task.id}", 303)
    shown = page(
        request, owner, "secret.html.jinja", token=token, what="Your token", advice=KEEP,
        secret=token, back=f"/tasks/{task.id}",
    )  # fmt: skip
    return _with_cookie(request, shown, token)


@router.get("/new")
def new(request: Request, reader: Reader) -> Response:
    """The form of a new task."""
    if reader is None:
        return RedirectResponse("/", 303)
    members.require_role(reader, "buyer")
    return page(request, reader, "new.html.jinja", fields=_fields())


@router.post("/new")
def make(
    request: Request, market: InMarket, writer: Writer, validation: UploadFile,
    title: Annotated[str, Form()], label: Annotated[str, Form()], pot: Annotated[float, Form()],
    epsilon: Annotated[float, Form()], delta: Annotated[float, Form()],
    rows_per_owner: Annotated[int, Form()], owners: Annotated[int, Form()],
    closes: Annotated[datetime, Form()],
) -> Response:  # fmt: skip
    """Make a draft of what the form says."""
    members.require_role(writer, "buyer")
    try:
        terms = Terms(label, round(100 * pot), epsilon, delta, rows_per_owner, owners)
        utc = closes.replace(tzinfo=UTC) if closes.tzinfo is None else closes
        with market.database.writing() as session:
            task = tasks.draft(session, writer, title, terms, now(), utc)
            content = validation.file.read()
            tasks.set_validation(session, writer, task.id, content, kind_of(validation))
    except (Refusal, ValueError) as wrong:
        return page(request, writer, "new.html.jinja", fields=_fields(), problem=str(wrong),
                    status=422)  # fmt: skip
    return RedirectResponse(f"/tasks/{task.id}", 303)


@router.get("/tasks/{task}")
def show(request: Request, task: str, reader: Reader, market: InMarket) -> Response:
    """One task, with what its reader can do there."""
    if reader is None:
        return RedirectResponse("/", 303)
    return _task_page(request, market, reader, task)


@router.post("/tasks/{task}/uploads")
def upload(
    request: Request, task: str, writer: Writer, market: InMarket, rows: UploadFile
) -> Response:
    """Hand in rows; the receipt and its salt are shown once."""
    import json

    salt = new_salt()
    try:
        made = uploads.hand_in(
            market, writer, task, content=rows.file.read(), kind=kind_of(rows), salt=salt
        )
    except Refusal as refused:
        return _task_page(request, market, writer, task, refused)
    receipt = json.dumps(made.receipt | {"salt": salt.hex()}, indent=1)
    return page(
        request, writer, "secret.html.jinja", what=f"{made.rows} rows were taken", secret=receipt,
        advice="This is your receipt. Keep it to yourself: with its salt you can show later what "
        "you handed in, and others could check a guess.", back=f"/tasks/{task}",
    )  # fmt: skip


@router.post("/tasks/{task}/{action}")
def act(request: Request, task: str, action: str, writer: Writer, market: InMarket) -> Response:
    """Publish, close, invite an owner, or delete the own rows."""
    known: dict[str, Callable[..., Any]] = {
        "publish": tasks.publish, "close": tasks.close, "invitations": tasks.invite,
        "delete": uploads.delete_rows,
    }  # fmt: skip
    if action not in known:
        raise Refusal(404, "not_found", "there is no such page")
    try:
        with market.database.writing() as session:
            code = known[action](session, writer, task)
    except Refusal as refused:
        return _task_page(request, market, writer, task, refused)
    if action != "invitations":
        return RedirectResponse(f"/tasks/{task}", 303)
    return page(
        request, writer, "secret.html.jinja", what="An invitation for one owner", secret=code,
        advice="Send this code to one owner. It is shown this once and works once.",
        back=f"/tasks/{task}",
    )  # fmt: skip


@router.post("/tasks/{task}/uploads/{upload}/withdraw")
def withdraw(
    request: Request, task: str, upload: str, writer: Writer, market: InMarket
) -> Response:
    """Take rows back."""
    try:
        with market.database.writing() as session:
            uploads.withdraw(session, writer, task, upload)
    except Refusal as refused:
        return _task_page(request, market, writer, task, refused)
    return RedirectResponse(f"/tasks/{task}", 303)


@router.get("/tasks/{task}/uploads/{upload}")
def download(task: str, upload: str, reader: Reader, market: InMarket) -> Response:
    """Rows as they were handed in."""
    if reader is None:
        return RedirectResponse("/", 303)
    found = api.get_upload(task, upload, market, reader)
    kind = KINDS[str(found.media_type)]
    found.headers["Content-Disposition"] = f'attachment; filename="rows-{upload}.{kind}"'
    return found


@router.get("/tasks/{task}/{what}")
def public_part(task: str, what: str, reader: Reader, market: InMarket) -> Response:
    """The report, the release or the validation set of a task."""
    if reader is None:
        return RedirectResponse("/", 303)
    if what == "report":
        found: Response = api.get_report(task, market, reader)
        found.headers["Content-Security-Policy"] = REPORT_POLICY
        return found
    if what == "release":
        return api.get_release(task, market, reader)
    if what == "validation":
        return api.get_validation(task, market, reader)
    raise Refusal(404, "not_found", "there is no such page")


@router.get("/members")
def list_members(request: Request, reader: Reader, market: InMarket) -> Response:
    """All members, for the operator."""
    if reader is None:
        return RedirectResponse("/", 303)
    members.require_role(reader, "operator")
    return page(request, reader, "members.html.jinja", members=api.list_members(market, reader))


@router.post("/members")
def add_member(
    request: Request, writer: Writer, market: InMarket, role: Annotated[str, Form()],
    name: Annotated[str, Form(max_length=100)],
) -> Response:  # fmt: skip
    """Add a member; the token is shown once."""
    members.require_role(writer, "operator")
    with market.database.writing() as session:
        made, token = members.add_member(session, role, name)
    return page(
        request, writer, "secret.html.jinja", what=f"The token of {made.name}", secret=token,
        advice="Hand it over by a safe way. It is shown this once.", back="/members",
    )  # fmt: skip


@router.post("/members/{member}")
def change_member(
    member: str, writer: Writer, market: InMarket, suspended: Annotated[str, Form()]
) -> Response:
    """Suspend a member, or let it in again."""
    members.require_role(writer, "operator")
    with market.database.writing() as session:
        members.suspend(session, member, suspended=suspended == "yes")
    return RedirectResponse("/members", 303)


@router.get("/audit")
def audit(request: Request, reader: Reader, market: InMarket) -> Response:
    """The ledger, for auditors."""
    if reader is None:
        return RedirectResponse("/", 303)
    members.require_role(reader, "auditor", "operator")
    with Ledger.open(market.ledger_path) as ledger:
        entries = [entry | {"told": _told(entry)} for entry in ledger.entries()]
        return page(
            request, reader, "audit.html.jinja", ledger=ledger, remaining=ledger.remaining(),
            entries=entries,
        )  # fmt: skip


@router.get("/export")
def get_export(reader: Reader, market: InMarket) -> Any:
    """The public export, for auditors."""
    if reader is None:
        return RedirectResponse("/", 303)
    return api.get_export(market, reader)


def kind_of(file: UploadFile) -> str:
    """The kind of a file by its name."""
    kind = PurePath(file.filename or "").suffix.lstrip(".").lower()
    if kind not in KINDS.values():
        raise unusable(f"a file must end in .{', .'.join(KINDS.values())}")
    return kind


def page(
    request: Request, reader: Member | None, template: str, *, status: int = 200,
    token: str | None = None, **facts: Any,
) -> HTMLResponse:  # fmt: skip
    """A page for its reader; with `token`, for one whose cookie is set by this very answer."""
    mark = mark_of(token or request.cookies.get(COOKIE, ""))
    field = Markup('<input type="hidden" name="{}" value="{}">').format(MARK, mark)
    text = _environment().get_template(template).render(
        {"problem": None, "actor": reader, "states": STATES, "csrf": lambda: field} | facts
    )  # fmt: skip
    return HTMLResponse(text, status)


@cache
def _environment() -> Environment:
    found = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, loader=FunctionLoader(_asset)
    )
    shown: dict[str, Callable[[Any], str]] = {"time": _time, "money": _money}
    found.filters |= shown
    return found


def _asset(name: str) -> str:
    return resources.files("thresher.market").joinpath("pages", name).read_text("utf-8")


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _money(cents: float) -> str:
    return f"{cents / 100:,.2f}"


def _told(entry: dict[str, Any]) -> str:
    about = entry["about"]
    return str(about.get("data_version") or about.get("data_set") or entry["request"][:16])


def _with_cookie(request: Request, answer: Response, token: str) -> Response:
    answer.set_cookie(
        COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https",
        max_age=12 * 3600,
    )  # fmt: skip
    return answer


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
    planned = is_buyers and task.state == "draft" and task.validation is not None
    joined = reader.id in {owner.id for owner in shown.roster}
    return page(
        request, reader, "task.html.jinja", task=shown, mine=is_buyers,
        line=None if line is None else line.line, uploads=mine,
        plan=schemas.PlanOut(**planning.plan(tasks.question_of(task))) if planned else None,
        can_upload=joined and task.state == "open" and task.opens <= now() < task.closes,
        can_delete=task.state in tasks.ENDED and any(upload.kept for upload in mine),
        has_release=outcome is not None, has_validation=task.validation is not None,
        problem=None if refused is None else refused.message,
        status=200 if refused is None else refused.status,
    )  # fmt: skip


def _fields() -> list[dict[str, Any]]:
    """The fields of a new task, with what they usually are."""
    later = f"{now() + timedelta(days=14):%Y-%m-%dT%H:%M}"
    rows = [
        ("title", "Title", "text", "", "", "What owners read first."),
        ("label", "Label", "text", "", "", "The column of the validation set that has the labels."),
        ("pot", "Pot", "number", "0.01", "1000", "What there is to pay, in whole money."),
        ("owners", "Owners", "number", "1", "100", "About how many owners you expect."),
        ("rows_per_owner", "Rows of an owner", "number", "1", "50", "About how many."),
        ("epsilon", "Epsilon", "number", "any", "2", "What the release may cost an owner."),
        ("delta", "Delta", "number", "any", "0.000001", "Less than one over all rows."),
        ("closes", "Closes", "datetime-local", "", later, "In UTC."),
    ]
    return [
        dict(zip(("name", "label", "type", "step", "value", "hint"), row, strict=True))
        for row in rows
    ]
