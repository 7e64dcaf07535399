"""What all pages of a market share: how they know their reader, are rendered and look.

A cookie holds the reader's token. Every form that changes something carries a mark that follows
from the cookie, so that no other site can send the form.
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
    """The mark that this reader's forms carry."""
    return hmac.new(token.encode(), b"thresher.market form", hashlib.sha256).hexdigest()


def visitor_of(request: Request) -> Member | None:
    """The member whose cookie this is; None if there is none."""
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
    """A page for members who are logged in; others are sent to the login page."""

    OPEN: ClassVar = {"/", "/static/{name}", "/login", "/join"}

    def admit(self, request: Request) -> Response | None:
        """Find the member who reads the page or sends the form."""
        if visitor_of(request) is not None:
            return None
        if request.method == "POST":
            raise Refusal(401, "no_token", "log in first")
        return RedirectResponse("/", 303)


def writer_of(request: Request, mark: Annotated[str, Form(alias=MARK)] = "") -> Member:
    """The member who sends a form; raise unless the form came from one of our pages."""
    if not hmac.compare_digest(mark.encode(), mark_of(request.cookies[COOKIE]).encode()):
        raise Refusal(403, "other_site", "the form did not come from this page: reload the page")
    return member_of(request)


Visitor = Annotated[Member | None, Depends(visitor_of)]
Reader = Annotated[Member, Depends(member_of)]
Writer = Annotated[Member, Depends(writer_of)]


def new_router() -> APIRouter:
    """Create a router for pages."""
    return APIRouter(include_in_schema=False, route_class=Page)


def page(
    request: Request, reader: Member | None, template: str, *, status: int = 200,
    token: str | None = None, **facts: Any,
) -> HTMLResponse:  # fmt: skip
    """Render a page for its reader; `token` is for a reader whose cookie this answer sets."""
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
    """A file that the pages use."""
    return resources.files("thresher.market").joinpath("pages", name).read_text("utf-8")


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _money(cents: float) -> str:
    return f"{cents / 100:,.2f}"
