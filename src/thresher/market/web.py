"""What all pages of a market share: who reads them, how they are rendered, and their style.

A page knows its reader by a cookie that holds the token. Every form that changes something carries
a mark that follows from the cookie, so that no other site can send it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, Form, Request
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from thresher.market import members
from thresher.market.callers import Closed, market_of, member_of
from thresher.market.refusals import Refusal
from thresher.market.tables import Member

COOKIE, MARK = "thresher_token", "csrf"
STATES = {
    "draft": "Draft", "open": "Open", "closing": "Being settled",
    "paid": "Paid", "unpaid": "Nobody was paid", "refused": "Refused",
}  # fmt: skip


def mark_of(token: str) -> str:
    """The mark that forms of this reader carry."""
    return hmac.new(token.encode(), b"thresher.market form", hashlib.sha256).hexdigest()


def visitor_of(request: Request) -> Member | None:
    """The member whose cookie this is, if it is one."""
    token = request.cookies.get(COOKIE)
    if token is None:
        return None
    try:
        with market_of(request).database.reading() as session:
            request.state.member = members.authenticate(session, token)
    except Refusal:
        return None
    return member_of(request)


class Page(Closed):
    """A page for those who are logged in; others are led to where they log in."""

    OPEN: ClassVar = {"/", "/static/{name}", "/login", "/join"}

    def admit(self, request: Request) -> Response | None:
        """Find out who reads the page or sends the form."""
        if visitor_of(request) is not None:
            return None
        if request.method == "POST":
            raise Refusal(401, "no_token", "log in first")
        return RedirectResponse("/", 303)


def writer_of(request: Request, mark: Annotated[str, Form(alias=MARK)] = "") -> Member:
    """The member who sends a form, which came from a page of ours."""
    if not hmac.compare_digest(mark.encode(), mark_of(request.cookies[COOKIE]).encode()):
        raise Refusal(403, "other_site", "the form did not come from this page: reload the page")
    return member_of(request)


Visitor = Annotated[Member | None, Depends(visitor_of)]
Reader = Annotated[Member, Depends(member_of)]
Writer = Annotated[Member, Depends(writer_of)]


def new_router() -> APIRouter:
    """A router of pages."""
    return APIRouter(include_in_schema=False, route_class=Page)


def page(
    request: Request, reader: Member | None, template: str, *, status: int = 200,
    token: str | None = None, **facts: Any,
) -> HTMLResponse:  # fmt: skip
    """A page for its reader; with `token`, for one whose cookie is set by this very answer."""
    mark = mark_of(token or request.cookies.get(COOKIE, ""))
    field = Markup('<input type="hidden" name="{}" value="{}">').format(MARK, mark)
    text = _environment().get_template(template).render(
        {"problem": None, "file": None, "actor": reader, "states": STATES, "csrf": lambda: field}
        | facts
    )  # fmt: skip
    return HTMLResponse(text, status)


@cache
def _environment() -> Environment:
    found = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, loader=FunctionLoader(asset)
    )
    shown: dict[str, Callable[[Any], str]] = {"time": _time, "money": _money}
    found.filters |= shown
    return found


def asset(name: str) -> str:
    """A file of the pages."""
    return resources.files("thresher.market").joinpath("pages", name).read_text("utf-8")


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _money(cents: float) -> str:
    return f"{cents / 100:,.2f}"
