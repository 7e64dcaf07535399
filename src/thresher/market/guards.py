"""Guards before every route: limits on size and rate, and headers on every answer."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thresher.market.refusals import Refusal

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KNOWN = 10_000  # callers whose rate is remembered


@dataclass(frozen=True)
class Limits:
    """Limits on what a caller may send.

    Parameters
    ----------
    body
        Bytes of one request.
    seconds
        Seconds within which the body of a request has to arrive.
    rate, burst
        How many requests one caller may send: per second in the long run, and at once.
    """

    body: int = 64 << 20
    seconds: float = 60.0
    rate: float = 50.0
    burst: int = 200


def answer(refused: Refusal) -> JSONResponse:
    """The one shape of every error."""
    body = {"error": {"code": refused.code, "message": refused.message}}
    headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else None
    return JSONResponse(body, refused.status, headers=headers)


class Guards:
    """Refuse requests beyond the limits through `respond`, and put headers on every answer."""

    def __init__(
        self, app: ASGIApp, limits: Limits, respond: Callable[[Request, Refusal], Response]
    ) -> None:
        self.app, self.limits, self.respond = app, limits, respond
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.members: OrderedDict[int, str] = OrderedDict()  # by what they show to be known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        state = scope.setdefault("state", {})

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                if "member" in state:
                    self._remember(scope, state["member"].id)
                headers = MutableHeaders(scope=message)
                for name, entry in HEADERS.items():
                    headers.setdefault(name, entry)
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            await self.respond(Request(scope), refused)(scope, receive, headed)
            return
        await self.app(scope, Counted(receive, self.limits), headed)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.limits.body:
            return too_large(self.limits.body)
        if not self._allows(self.members.get(_shown(headers)) or f"at {_address(scope)}"):
            return Refusal(429, "too_often", "too many requests: wait a second and try again")
        return None

    def _remember(self, scope: Scope, member: str) -> None:
        """Count this caller's requests for the member from now on, not for the address."""
        self.members[_shown(Headers(scope=scope))] = member
        if len(self.members) > KNOWN:
            self.members.popitem(last=False)

    def _allows(self, caller: str) -> bool:
        """Whether the caller has a request left: a bucket that fills at the rate."""
        left, last = self.buckets.pop(caller, (float(self.limits.burst), time.monotonic()))
        moment = time.monotonic()
        left = min(self.limits.burst, left + (moment - last) * self.limits.rate)
        self.buckets[caller] = (left - 1 if left >= 1 else left, moment)
        if len(self.buckets) > KNOWN:
            self.buckets.popitem(last=False)
        return left >= 1


class Counted:
    """Receive a body, up to a limit of bytes and seconds."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self.receive, self.limits, self.left = receive, limits, limits.body
        self.end: float | None = time.monotonic() + limits.seconds  # None when the body is there

    async def __call__(self) -> Message:
        """The next part of the body; raise an `HTTPException` if it is too large or too late."""
        message = await self._awaited()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise HTTPException(413, too_large(self.limits.body).message)
        if not message.get("more_body", False):
            self.end = None
        return message

    async def _awaited(self) -> Message:
        if self.end is None:
            return await self.receive()
        try:
            return await asyncio.wait_for(self.receive(), max(0.0, self.end - time.monotonic()))
        except TimeoutError:
            said = f"the request took over {self.limits.seconds:g} seconds to arrive: try again"
            raise HTTPException(408, said) from None


def too_large(most: int) -> Refusal:
    """The refusal of a body that is too large."""
    return Refusal(413, "too_large", f"a request can have at most {most} bytes: send less")


def _shown(headers: Headers) -> int:
    """A hash of the caller's credentials."""
    return hash((headers.get("authorization"), headers.get("cookie")))


def _address(scope: Scope) -> str:
    client: Any = scope.get("client")
    return client[0] if client else ""
