"""Find the member behind a request, before the body of the request is read.

Every route needs a valid token unless its class names it in `OPEN`. So a new route is closed until
somebody opens it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from thresher.market import members
from thresher.market.market import Market
from thresher.market.tables import Member

scheme = HTTPBearer(auto_error=False, description="A member's token.")


def market_of(request: Request) -> Market:
    """The market that this server serves."""
    market: Market = request.app.state.market
    return market


def token_of(request: Request) -> str | None:
    """The token in the header of a request; two such headers count as none."""
    given = request.headers.getlist("authorization")
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token if kind.lower() == "bearer" else None


def authenticate(request: Request) -> Member:
    """The member whose token the request carries."""
    with market_of(request).database.reading() as session:
        return members.authenticate(session, token_of(request))


class Closed(APIRoute):
    """A route that asks for a token before it reads anything else of the request."""

    OPEN: ClassVar = {"/api/join", "/api/key", "/health"}  # an invitation is what counts at `join`

    def get_route_handler(self) -> Callable[[Request], Any]:
        """The handler of a request, which first admits the caller."""
        handle = super().get_route_handler()
        if self.path in self.OPEN:
            return handle

        async def handle_member(request: Request) -> Any:
            return await run_in_threadpool(self.admit, request) or await handle(request)

        return handle_member

    def admit(self, request: Request) -> Response | None:
        """Find the member who asks; raise, or return an answer, if there is none."""
        request.state.member = authenticate(request)
        return None


def member_of(request: Request) -> Member:
    """The member who asks, as a closed route found them."""
    member: Member = request.state.member
    return member


def actor_of(request: Request, _: Annotated[Any, Depends(scheme)]) -> Member:
    """The member who asks; this adds the token to the route's documentation."""
    return member_of(request)


def maybe_actor_of(request: Request) -> Member | None:
    """The member who asks, if the request has a token."""
    return authenticate(request) if "authorization" in request.headers else None


InMarket = Annotated[Market, Depends(market_of)]
Actor = Annotated[Member, Depends(actor_of)]
MaybeActor = Annotated[Member | None, Depends(maybe_actor_of)]


def operator_of(actor: Actor) -> Member:
    """The member who asks, who must be an operator."""
    members.require_role(actor, "operator")
    return actor


Operator = Annotated[Member, Depends(operator_of)]
