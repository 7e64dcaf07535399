"""The public export of a market, which anyone can check offline without trusting the server.

It has everything that auditors see: tasks with their validation sets, rosters and commitments,
noisy tables, prices, and the chain of the ledger. It has no owner's rows and no owner's pay.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from thresher.errors import InputError
from thresher.inputs.arrays import unpack_array
from thresher.market.market import Market
from thresher.market.questions import Question, Rows
from thresher.market.refusals import Refusal
from thresher.market.settlement import lines_of, payout_of, points_of, prices_of
from thresher.market.tables import Outcome, Task
from thresher.market.tasks import roster
from thresher.market.terms import Terms
from thresher.market.times import stamp
from thresher.market.uploads import commitments
from thresher.neighbors.kernel import BOX
from thresher.privacy.entries import Balance, Entry, check_links
from thresher.privacy.ledger import Ledger
from thresher.privacy.reopened import reopen

FORMAT = "thresher.market-export/1"
SAME = 1e-9  # prices may differ by so much of themselves between two machines


def export(market: Market) -> dict[str, Any]:
    """Everything public about the market."""
    with Ledger.open(market.ledger_path) as ledger:
        entries = [list(entry) for entry in ledger._balance().entries]
    with market.database.reading() as session:
        published = select(Task).where(Task.state != "draft").order_by(Task.created)
        tasks = [_task(session, task) for task in session.scalars(published)]
    public = market.key.public_key().public_bytes_raw().hex()
    return {"format": FORMAT, "key": public, "tasks": tasks, "ledger": entries}


def _task(session: Session, task: Task) -> dict[str, Any]:
    outcome = session.get(Outcome, task.id)
    return {
        "id": task.id, "title": task.title, "state": task.state, "reason": task.reason,
        "terms": task.terms, "kind": task.kind,
        "validation": base64.b64encode(task.validation or b"").decode(),
        "opens": stamp(task.opens), "closes": stamp(task.closes),
        "closed": None if task.closed is None else stamp(task.closed),
        "roster": [{"id": owner.id, "name": owner.name} for owner in roster(session, task.id)],
        "commitments": commitments(session, task),
        "release": None if outcome is None else json.loads(outcome.release),
        "payout": None if outcome is None else outcome.public,
    }  # fmt: skip


def verify(document: Mapping[str, Any]) -> list[str]:
    """Check an export, and return a line for each check; raise at the first fault.

    The ledger's chain must be whole and within its cap. Every release must have its charge, and its
    table must be the one in the ledger. Prices and the rate of pay must follow from the table.
    Otherwise, an `InputError` or a `BudgetError` names the first fault.
    """
    if document.get("format") != FORMAT:
        raise InputError(f"the file is not an export in the format {FORMAT}")
    try:
        entries = [Entry(*entry) for entry in document["ledger"]]
        check_links(entries, Path("the ledger in the export"))
        balance = Balance.of(entries)
        found = [f"the ledger's chain is whole: {len(entries)} entries"]
        for task in document["tasks"]:
            if task["release"] is not None:
                _check_task(task, balance)
                found.append(f"task {task['id']}: charge, table, prices and rate of pay are right")
    except (LookupError, TypeError, AttributeError, ValueError) as wrong:
        if isinstance(wrong, InputError):
            raise
        raise InputError(f"the export is damaged: {type(wrong).__name__}") from None
    return found


def _check_task(task: Mapping[str, Any], balance: Balance) -> None:
    name, release = f"task {task['id']}", task["release"]
    record = release["record"]
    entry = balance.charges.get(record["ledger"]["entry"])
    stored = None if entry is None else balance.answer(entry.request)
    if stored is None or stored["table"] != release["table"]:
        raise InputError(f"{name}: the ledger was charged for a different table")
    if record["data_version"] != name:
        raise InputError(f"{name}: its release belongs to {record['data_version']}")
    question = question_of(task)
    for part, promised in question.promised.items():
        if ({"kernel": BOX} | record).get(part) != promised:
            raise InputError(f"{name}: the {part} of its release differs from its terms")
    again = reopened(question, release, {})
    _check_prices(name, prices_of(again, question), release["prices"])
    if task["payout"]:
        paid = payout_of(question, again)
        for part, entry in paid.public().items():
            theirs = task["payout"].get(part, entry)
            slack = SAME * paid.pot  # some are small differences of large sums
            if part != "release" and not _is_same(entry, theirs, slack):
                raise InputError(f"{name}: the {part} of its pay does not follow from the release")


def _check_prices(name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raise unless the prices are the same up to rounding."""
    for part, entry in json.loads(json.dumps(ours)).items():
        if part != "digest" and not _is_same(entry, theirs[part]):
            raise InputError(f"{name}: prices do not follow from the table ({part} differs)")


def _is_same(one: Any, other: Any, slack: float = 0.0) -> bool:
    """Whether two documents are the same up to rounding; numbers may also differ by `slack`."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        if "zlib" in one and "zlib" in other:  # an array, which machines pack differently
            packed = unpack_array(one), unpack_array(other)
            same = packed[0].shape == packed[1].shape
            return same and np.allclose(*packed, rtol=SAME, atol=0)
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SAME, abs_tol=slack)
    return bool(one == other)


def question_of(task: Mapping[str, Any]) -> Question:
    """The question of a task in an export."""
    content = base64.b64decode(task["validation"])
    try:
        return Question.read(Terms.of(task["terms"]), content, task["kind"])
    except Refusal as wrong:
        raise InputError(str(wrong)) from None


def reopened(question: Question, release: Mapping[str, Any], owned: Mapping[str, Rows]) -> Any:
    """The published release, opened again with the rows of some owners."""
    X, y, owners = points_of(question, owned)
    return reopen(
        release, X, y, question.X_val, question.y_val, owners=owners,
        classes=question.terms.classes,
    )  # fmt: skip


def own_line(task: Mapping[str, Any], owner: str, files: list[tuple[bytes, str]]) -> dict[str, Any]:
    """An owner's statement, computed from the public export and the owner's own files."""
    if task["release"] is None or not task["payout"]:
        raise InputError(
            "the task in this export has not paid anyone yet: export the market again once it has"
        )
    question = question_of(task)
    rows = Rows.joined([question.rows(content, kind) for content, kind in files])
    release = reopened(question, task["release"], {owner: rows})
    return lines_of(release, payout_of(question, release))[owner]
