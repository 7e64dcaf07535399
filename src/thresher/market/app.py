"""The web application of a market: routes, guards, errors in one shape, and a worker inside."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator
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
    """The application.

    Parameters
    ----------
    market
        What it serves.
    limits
        How much a caller may send.
    working
        Settle closed tasks in a thread of this server; otherwise `thresher work` does it.
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
    app.add_middleware(Guards, limits=limits or Limits(), told=_by_reader)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(InputError, _unusable)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(IntegrityError, _raced)
    app.add_exception_handler(DataError, _unstorable)
    app.add_exception_handler(SQLAlchemyError, _away)
    app.add_exception_handler(Exception, _failed)
    return app


async def _refused(request: Request, error: Any) -> Response:
    return _by_route(request, error)


def _by_route(request: Request, error: Refusal) -> Response:
    """A refusal, as JSON for programs and as a page for people."""
    if request.url.path.startswith(FOR_PROGRAMS):
        return answer(error)
    template = "login.html.jinja" if error.status == 401 else "base.html.jinja"
    return web.page(request, None, template, problem=error.message, status=error.status)


def _by_reader(request: Request, error: Refusal) -> Response:
    """A page for browsers, and JSON for all others."""
    if "text/html" in request.headers.get("accept", ""):
        return _by_route(request, error)
    return answer(error)


async def _unusable(request: Request, error: Any) -> Response:
    return _by_reader(request, unusable(str(error)))


async def _invalid(request: Request, error: Any) -> Response:
    """What pydantic refused, without what came: it may be private."""
    told = "; ".join(
        f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" for wrong in error.errors()[:5]
    )
    return _by_reader(request, unusable(told))


async def _http(request: Request, error: Any) -> Response:
    code = CODES.get(error.status_code, "http")
    return _by_reader(request, Refusal(error.status_code, code, error.detail))


async def _raced(request: Request, __: Any) -> Response:
    """Two requests at the same moment of which the database takes one, such as for one name."""
    said = "someone did the same thing at the same time: reload, then try again"
    return _by_reader(request, too_late(said))


async def _unstorable(request: Request, __: Any) -> Response:
    """A text or a number that the database does not take, such as a null character."""
    said = "the request has a character or a number that cannot be stored: leave it out"
    return _by_reader(request, unusable(said))


async def _away(request: Request, error: Any) -> Response:
    """The database does not answer, or its disk is full."""
    log.error("the database did not answer: %s", type(error).__name__)
    said = "the database is not available: check if your request went through, then try again"
    return _by_reader(request, Refusal(503, "unavailable", said))


async def _failed(request: Request, error: Any) -> Response:
    """Anything else: the log has its kind, never its words, which may quote private rows."""
    log.error("a request failed: %s", type(error).__name__)
    said = "something went wrong: check if your request went through"
    found = _by_reader(request, Refusal(500, "internal", said))
    found.headers.update(HEADERS)  # no guard sees this answer
    return found
