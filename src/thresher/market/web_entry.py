"""The first pages: the list of tasks, logging in and out, and joining."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from thresher.market import api, members, tasks
from thresher.market.callers import InMarket
from thresher.market.refusals import Refusal
from thresher.market.web import COOKIE, MARK, Visitor, Writer, asset, new_router, page, writer_of

router = new_router()
KEEP = "You log in with it. Copy it now and keep it secret: it will not be shown again."


@router.get("/static/{name}")
def static(name: str) -> Response:
    """The style of the pages."""
    if name != "market.css":
        raise Refusal(404, "not_found", "this file does not exist")
    headers = {"Cache-Control": "max-age=3600"}
    return Response(asset(name), media_type="text/css", headers=headers)


@router.get("/")
def home(request: Request, reader: Visitor, market: InMarket) -> HTMLResponse:
    """The list of tasks, or the login page."""
    if reader is None:
        return page(request, None, "login.html.jinja")
    found = api.list_tasks(market, reader)
    return page(request, reader, "tasks.html.jinja", tasks=found)


@router.post("/login")
def log_in(
    request: Request, market: InMarket, token: Annotated[str, Form(max_length=200)]
) -> Response:
    """Store the token in a cookie that no script can read."""
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
    """Delete the cookie."""
    away = RedirectResponse("/", 303)
    away.delete_cookie(COOKIE)
    return away


@router.post("/join")
def join(
    request: Request, market: InMarket, reader: Visitor,
    code: Annotated[str, Form(max_length=200)], name: Annotated[str, Form(max_length=100)] = "",
    mark: Annotated[str, Form(alias=MARK)] = "",
) -> Response:  # fmt: skip
    """Join a task with an invitation."""
    actor = None if reader is None else writer_of(request, mark)
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


def _with_cookie(request: Request, answer: Response, token: str) -> Response:
    answer.set_cookie(
        COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https",
        max_age=12 * 3600,
    )  # fmt: skip
    return answer
