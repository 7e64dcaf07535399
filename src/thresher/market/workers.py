"""Workers: they close tasks whose time has come, and settle closed tasks."""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import suppress

from sqlalchemy.exc import SQLAlchemyError

from thresher.market import jobs
from thresher.market.jobs import LeaseLost
from thresher.market.market import Market
from thresher.market.settlement import settle
from thresher.market.tasks import close_due

PAUSE = 1.0  # seconds between two looks for work
log = logging.getLogger("thresher.market")


def work_once(market: Market, worker: str) -> bool:
    """Close tasks that are due, and do one job; return whether there was one."""
    with market.database.writing() as session:
        close_due(session)
    with market.database.writing() as session:
        task = jobs.take(session, worker)
    if task is None:
        return False
    try:
        state = settle(market, worker, task)
    except LeaseLost:
        log.warning("task %s: another worker took over", task)
    except SQLAlchemyError:  # the database may be back soon: the lease ends
        raise
    except Exception:
        with suppress(LeaseLost), market.database.writing() as session:
            jobs.put_off(session, worker, task)
        raise
    else:
        log.info("task %s ended: %s", task, state)
    return True


def work(market: Market, stop: threading.Event, *, pause: float = PAUSE) -> None:
    """Work until `stop` is set; a failed job is tried again when its lease ends."""
    worker = secrets.token_hex(8)
    while not stop.is_set():
        try:
            if work_once(market, worker):
                continue
        except SQLAlchemyError as away:  # its text may quote private rows: only its kind is told
            log.warning("the database did not answer (%s): trying again", type(away).__name__)
        except Exception as failed:
            log.exception("a job failed (%s): trying again", type(failed).__name__, exc_info=False)
        stop.wait(pause)
