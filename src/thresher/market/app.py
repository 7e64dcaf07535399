"""The web application of a market: routes, guards, errors in one shape, and a worker."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from thresher.errors import InputError
from thresher.market import api, health, web, web_entry, web_members, web_new, web_task
from thresher.market.guards import HEADERS, Guards, Limits, answer
from thresher.market.market import Market
from thresher.market.refusals import Refusal, too_late, unusable
from thresher.market.workers import work
from thresher.version import __version__

log = logging.getLogger("thresher.market")
FOR_PROGRAMS = ("/api", "/health", "/metrics")
CODES = {404: "not_found", 405: "no_such_method", 408: "too_slow", 413: "too_large"}


def create_app(market: Market, *, limits: Limits | None = None, working: bool = True) -> FastAPI:
    """Create the application of a market.

    Parameters
    ----------
    market
        The market to serve.
    limits
        Limits on what a caller may send.
    working
        Whether a thread of this server settles closed tasks; if not, run `thresher work`.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()
        worker = threading.Thread(target=work, args=(market, stop), daemon=True)
        if working:
            worker.start()
        yield
        stop.set()
        if working:
            worker.join(timeout=5)

    app = FastAPI(
        title="Thresher market", version=__version__, lifespan=lifespan, docs_url=None,
        redoc_url=None, openapi_url="/api/openapi.json",
        description="A market that pays for data without revealing it.",
    )  # fmt: skip
    app.state.market = market
    for part in (api, health, web_entry, web_members, web_new, web_task):
        app.include_router(part.router)
    app.add_middleware(Guards, limits=limits or Limits(), respond=_by_reader)
    app.add_exception_handler(Refusal, _refused)
    for kind, in_words in IN_WORDS.items():
        app.add_exception_handler(kind, _handler(in_words))
    return app


def served() -> FastAPI:
    """The application for one server process, of the market that the environment names."""
    folder = os.environ["THRESHER_MARKET_DATA"]
    return create_app(Market.open(folder, os.environ.get("THRESHER_MARKET_DATABASE")))


async def _refused(request: Request, error: Any) -> Response:
    return _by_route(request, error)


def _by_route(request: Request, error: Refusal) -> Response:
    """Answer a refusal with JSON for programs or a page for people."""
    if request.url.path.startswith(FOR_PROGRAMS):
        return answer(error)
    template = "login.html.jinja" if error.status == 401 else "base.html.jinja"
    return web.page(request, None, template, problem=error.message, status=error.status)


def _by_reader(request: Request, error: Refusal) -> Response:
    """Answer browsers with a page, and others with JSON."""
    if "text/html" in request.headers.get("accept", ""):
        return _by_route(request, error)
    return answer(error)


def _handler(in_words: Callable[[Any], Refusal]) -> Callable[[Request, Any], Awaitable[Response]]:
    async def handle(request: Request, error: Any) -> Response:
        found = _by_reader(request, in_words(error))
        found.headers.update(HEADERS)  # no guard sees the answer to what nobody expected
        return found

    return handle


def _invalid(error: RequestValidationError) -> Refusal:
    """Answer what pydantic refused, without quoting the request: it may be private."""
    reasons = (
        f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" for wrong in error.errors()[:5]
    )
    return unusable("; ".join(reasons))


def _away(error: Exception) -> Refusal:
    """Answer if the database does not respond or its disk is full."""
    log.error("the database did not answer: %s", type(error).__name__)
    said = "the database is not available: check if your request went through, then try again"
    return Refusal(503, "unavailable", said)


def _failed(error: Exception) -> Refusal:
    """Answer any other failure; log its type but not its text, which may quote private rows."""
    log.error("a request failed: %s", type(error).__name__)
    return Refusal(500, "internal", "something went wrong: check if your request went through")


RACED = too_late("someone did the same thing at the same time: reload, then try again")
UNSTORABLE = unusable("the request has a character or a number that cannot be stored: leave it out")
IN_WORDS: dict[type[Exception], Callable[[Any], Refusal]] = {
    InputError: lambda error: unusable(str(error)),
    RequestValidationError: _invalid,
    HTTPException: lambda error: Refusal(
        error.status_code, CODES.get(error.status_code, "http"), error.detail
    ),
    IntegrityError: lambda _: RACED,  # the database takes one of two requests, such as for a name
    DataError: lambda _: UNSTORABLE,  # such as a null character
    SQLAlchemyError: _away,
    Exception: _failed,
}
