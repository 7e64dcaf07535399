"""Who asks: the member behind a request, known before the body of the request is read.

Every route needs a valid token unless it is named in `OPEN`, so a new route is closed until
somebody decides otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from thresher.market import members
from thresher.market.market import Market
from thresher.market.tables import Member

OPEN = frozenset({"/api/join", "/api/key", "/health"})  # an invitation is what counts at `join`
scheme = HTTPBearer(auto_error=False, description="A member's token.")


def market_of(request: Request) -> Market:
    """The market that this server serves."""
    market: Market = request.app.state.market
    return market


def token_of(request: Request) -> str | None:
    """The token in the header of a request; two headers say nothing, whoever sent them."""
    given = request.headers.getlist("authorization")
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token if kind.lower() == "bearer" else None


def authenticate(request: Request) -> Member:
    """The member whose token the request carries."""
    with market_of(request).database.reading() as session:
        return members.authenticate(session, token_of(request))


class Closed(APIRoute):
    """A route that asks for a token before it reads anything else of the request."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """What answers a request."""
        handle = super().get_route_handler()
        if self.path in OPEN:
            return handle

        async def handle_member(request: Request) -> Any:
            request.state.member = await run_in_threadpool(authenticate, request)
            return await handle(request)

        return handle_member


def actor_of(request: Request, _: Annotated[Any, Depends(scheme)]) -> Member:
    """The member who asks."""
    member: Member = request.state.member
    return member


def maybe_actor_of(request: Request) -> Member | None:
    """The member who asks, if it says so."""
    return authenticate(request) if "authorization" in request.headers else None


InMarket = Annotated[Market, Depends(market_of)]
Actor = Annotated[Member, Depends(actor_of)]
MaybeActor = Annotated[Member | None, Depends(maybe_actor_of)]


def operator_of(actor: Actor) -> Member:
    """The member who asks, an operator."""
    members.require_role(actor, "operator")
    return actor


Operator = Annotated[Member, Depends(operator_of)]
