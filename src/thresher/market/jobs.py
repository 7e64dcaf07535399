"""Jobs: a worker takes one with a lease, extends the lease while it lives, and loses it if it dies.

A worker that lost its lease cannot finish, because it can write results only while it has the
lease.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from thresher.market.database import Database
from thresher.market.tables import Job
from thresher.market.times import now

LEASE = timedelta(seconds=30)
MOST_DOUBLED = 10


class LeaseLost(Exception):  # noqa: N818 - it is no error of the caller's
    """Another worker has the job."""


def take(session: Session, worker: str, lease: timedelta = LEASE) -> str | None:
    """Take the oldest job that nobody works on; return its task, or None if there is none."""
    free = Job.leased_until.is_(None) | (Job.leased_until < now())
    waiting = select(Job).where(Job.done.is_(None), free).order_by(Job.created).limit(1)
    job = session.scalar(waiting.with_for_update(skip_locked=True))
    if job is None:
        return None
    job.worker, job.leased_until, job.tries = worker, now() + lease, job.tries + 1
    return job.task


def hold(session: Session, worker: str, task: str) -> Job:
    """Extend the lease, and lock the job until the transaction ends; raise if it was lost."""
    job = session.get(Job, task, with_for_update=True)
    if job is None or job.worker != worker or job.done is not None:
        raise LeaseLost
    job.leased_until = now() + LEASE
    return job


def put_off(session: Session, worker: str, task: str) -> None:
    """Put off a failed job, each time twice as long, because a try may cost a charge."""
    job = hold(session, worker, task)
    job.leased_until = now() + LEASE * 2 ** min(job.tries, MOST_DOUBLED)


@contextmanager
def kept_alive(database: Database, worker: str, task: str) -> Iterator[None]:
    """Keep extending the lease while the block runs."""
    ended = threading.Event()

    def extend() -> None:
        while not ended.wait(LEASE.total_seconds() / 3):
            try:
                with database.writing() as session:
                    hold(session, worker, task)
            except LeaseLost:
                return
            except SQLAlchemyError:  # the database may come back before the lease ends
                continue

    thread = threading.Thread(target=extend, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
