"""The health and workload of a market: numbers that are public anyway."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from sqlalchemy import func, select, text

from thresher.market import schemas
from thresher.market.api import ERRORS
from thresher.market.callers import Closed, InMarket, Operator
from thresher.market.examples import given
from thresher.market.refusals import Refusal
from thresher.market.tables import Job, Task
from thresher.privacy.ledger import Ledger

router = APIRouter(route_class=Closed, responses=ERRORS)


@router.get("/health")
def health(market: InMarket) -> schemas.HealthOut:
    """Whether the database answers and the ledger is there."""
    with market.database.reading() as session:
        session.execute(text("select 1"))
    if not market.ledger_path.exists():
        raise Refusal(503, "no_ledger", "the ledger is missing")
    return schemas.HealthOut(status="ok")


@router.get(
    "/metrics", response_class=Response,
    responses=given("thresher_market_jobs_waiting 0\n", "text/plain"),
)  # fmt: skip
def metrics(market: InMarket, _: Operator) -> PlainTextResponse:
    """Tasks by state, waiting jobs, and what is left of the budget."""
    with market.database.reading() as session:
        states = session.execute(select(Task.state, func.count()).group_by(Task.state)).all()
        waiting = select(func.count()).select_from(Job).where(Job.done.is_(None))
        jobs = session.scalar(waiting)
    with Ledger.open(market.ledger_path) as ledger:
        left = ledger.remaining()
    lines = [f'thresher_market_tasks{{state="{state}"}} {count}' for state, count in states]
    lines += [f"thresher_market_jobs_waiting {jobs}", f"thresher_market_epsilon_left {left}"]
    return PlainTextResponse("\n".join(lines) + "\n")
