"""Rows that owners submit for a signed receipt, and can withdraw, replace and delete."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from thresher.market.database import DELETED
from thresher.market.market import Market
from thresher.market.members import require_role
from thresher.market.receipts import commitment_of
from thresher.market.refusals import Refusal, too_late, unknown
from thresher.market.tables import Member, Task, Upload
from thresher.market.tasks import check_taking, question_of, seen
from thresher.market.times import now, stamp

Sign = Callable[[dict[str, Any]], dict[str, Any]]


def hand_in(
    market: Market, owner: Member, task_id: str, *, content: bytes, kind: str, salt: bytes,
    replaces: str | None = None,
) -> Upload:  # fmt: skip
    """Read and store rows; return the upload, whose receipt the owner may then have.

    Rows are read before the transaction that stores them, so that others can write meanwhile.
    """
    with market.database.reading() as session:
        question = question_of(check_taking(session, owner, task_id))
    rows = question.rows(content, kind)
    upload = Upload(
        id=secrets.token_hex(8), task=task_id, owner=owner.id, rows=len(rows.y), content=content,
        kind=kind, packed=rows.pack(), commitment=commitment_of(salt, content),
    )  # fmt: skip
    with market.database.writing() as session:
        return _keep(session, owner, upload, market.sign, replaces)


def _keep(
    session: Session, owner: Member, upload: Upload, sign: Sign, replaces: str | None
) -> Upload:
    """Store an upload, numbered and signed, if the task still accepts it."""
    task = check_taking(session, owner, upload.task)
    if replaces is not None:
        withdraw(session, owner, task.id, replaces)
        session.flush()
    theirs = (Upload.task == task.id) & (Upload.owner == owner.id)
    number, kept = session.execute(
        select(
            func.coalesce(func.max(Upload.number), 0),
            func.coalesce(func.sum(Upload.rows).filter(Upload.withdrawn.is_(None)), 0),
        ).where(theirs)
    ).one()
    _check_room(kept, upload.rows, task.terms["most_rows"])
    upload.number, upload.received = number + 1, now()
    upload.receipt = sign(
        {
            "upload": upload.id, "task": task.id, "owner": owner.id,
            "time": stamp(upload.received), "rows": upload.rows,
            "commitment": upload.commitment, "replaces": replaces,
        }
    )  # fmt: skip
    session.add(upload)
    session.flush()
    return upload


def _check_room(kept: int, more: int, most: int) -> None:
    """Raise if an owner would have too many rows in a task."""
    if kept + more > most:
        raise Refusal(
            413, "too_many_rows",
            f"with these {more} rows you would have {kept + more}: the task allows an owner {most}"
            ". Withdraw some first",
        )  # fmt: skip


def own(session: Session, owner: Member, task_id: str, upload_id: str) -> Upload:
    """One of the owner's uploads."""
    upload = session.get(Upload, upload_id, with_for_update=True)
    if upload is None or upload.owner != owner.id or upload.task != task_id:
        raise unknown("upload")
    return upload


def listed(session: Session, owner: Member, task_id: str) -> list[Upload]:
    """The owner's uploads in a task, including withdrawn ones."""
    seen(session, owner, task_id)
    found = select(Upload).where(Upload.task == task_id, Upload.owner == owner.id)
    return list(session.scalars(found.order_by(Upload.number)))


def withdraw(session: Session, owner: Member, task_id: str, upload_id: str) -> Upload:
    """Withdraw rows before the task closes: they are deleted and do not count."""
    check_taking(session, owner, task_id)
    upload = own(session, owner, task_id, upload_id)
    if upload.withdrawn is not None:
        raise too_late("the rows were already withdrawn")
    upload.withdrawn, upload.content, upload.packed = now(), None, None
    session.info[DELETED] = True
    return upload


def delete_rows(session: Session, owner: Member, task_id: str) -> int:
    """Delete the owner's rows of a task that has ended; the pay stays as it is."""
    task = seen(session, owner, task_id, change=True)
    require_role(owner, "owner")
    if task.state in {"open", "closing"}:
        raise too_late("the task has not ended: withdraw your rows, or delete them when it has")
    count = 0
    for upload in listed(session, owner, task_id):
        count += upload.content is not None
        upload.content = upload.packed = None
    session.info[DELETED] = True
    return count


def commitments(session: Session, task: Task) -> list[dict[str, Any]]:
    """What all members see of the uploads: who submitted rows, when, and the commitments."""
    shown = select(Upload.owner, Upload.received, Upload.commitment, Upload.withdrawn)  # no rows
    found = shown.where(Upload.task == task.id).order_by(Upload.received, Upload.id)
    return [
        {
            "owner": upload.owner, "time": stamp(upload.received),
            "commitment": upload.commitment, "withdrawn": upload.withdrawn is not None,
        }
        for upload in session.execute(found)
    ]  # fmt: skip
