"""What happens when a task has closed: one release, charged to the ledger, and pay based on it.

The library computes everything. The ledger keeps the release with its charge under the task's name.
So a worker that takes over the job of a dead one gets the same release at no further cost. Outcome,
pay and the end of the job are written in one transaction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from thresher.errors import BudgetError, InputError
from thresher.market.jobs import hold, kept_alive
from thresher.market.market import Market
from thresher.market.questions import Floats, Question, Rows
from thresher.market.tables import Line, Outcome, Task, Upload
from thresher.market.tasks import question_of, roster
from thresher.market.times import now
from thresher.payouts.private import OwnerLine, PrivatePayout, line_of, private_payout
from thresher.privacy.dp_tknn import dp_tknn_shapley
from thresher.privacy.release import STEPS


@dataclass(frozen=True, eq=False)
class Settled:
    """The end of a task: its state, the reason, the release and the pay."""

    state: str
    reason: str | None = None
    release: Any = None
    payout: PrivatePayout | None = None


def settle(market: Market, worker: str, task_id: str) -> str:
    """Settle a closed task that `worker` has taken; return the state in which the task ends."""
    with kept_alive(market.database, worker, task_id):
        with market.database.reading() as session:
            task = session.get_one(Task, task_id)
            owned = rows_by_owner(session, task)
            names = [owner.id for owner in roster(session, task_id)]
        question = question_of(task)
        settled = compute(market.ledger_path, question, task_id, owned)
        shown = None if settled.release is None else _shown(settled.release, question)
        with market.database.writing() as session:
            job = hold(session, worker, task_id)
            _write(session, session.get_one(Task, task_id), settled, shown, names)
            job.done = now()
    return settled.state


def rows_by_owner(session: Session, task: Task) -> dict[str, Rows]:
    """All rows that count, by owner, in the order in which they were submitted."""
    kept = select(Upload.owner, Upload.packed).where(
        Upload.task == task.id, Upload.packed.is_not(None)
    )
    parts: dict[str, list[Rows]] = {}
    packed: Any
    for owner, packed in session.execute(kept.order_by(Upload.owner, Upload.number)):
        parts.setdefault(owner, []).append(Rows.unpack(packed))
    return {owner: Rows.joined(some) for owner, some in parts.items()}


def compute(
    ledger: Path | None, question: Question, task_id: str, owned: Mapping[str, Rows],
    seed: int | None = None,
) -> Settled:  # fmt: skip
    """The release, which protects each owner with all rows, and the pay based on it.

    Whether the task is refused depends on public facts alone.
    """
    X, y, owners = points_of(question, owned)
    try:
        release = dp_tknn_shapley(
            X, y, question.X_val, question.y_val, owners=owners, ledger=ledger,
            version=f"task {task_id}", seed=seed, **question.game,
        )  # fmt: skip
    except BudgetError as refused:
        return Settled("refused", f"the market's privacy budget does not allow it: {refused}")
    try:
        paid = payout_of(question, release)
    except InputError as refused:
        return Settled("unpaid", str(refused), release)
    return Settled("paid", None, release, paid)


def points_of(question: Question, owned: Mapping[str, Rows]) -> tuple[Floats, list[Any], list[str]]:
    """Features, labels and owners of all rows, which may be none."""
    rows = Rows.joined([Rows(question.X_val[:0], ()), *owned.values()])
    return rows.X, list(rows.y), [owner for owner, mine in owned.items() for _ in mine.y]


def payout_of(question: Question, release: Any) -> PrivatePayout:
    """The pay based on a release, according to the terms."""
    terms = question.terms
    return private_payout(release, pot=terms.pot_cents, pay=terms.pay, basis=terms.basis)


def prices_of(release: Any, question: Question) -> dict[str, Any]:
    """The price list, with how raw rows become numbers, so that they can be appraised."""
    return replace(release.price_list, encoding=question.encoded_by).document()


def _shown(release: Any, question: Question) -> dict[str, str]:
    """What may be published about a release: its document and its page."""
    document = json.loads(release.to_json()) | {"prices": prices_of(release, question)}
    with TemporaryDirectory() as folder:
        path = Path(folder, "release.html")
        release.report(path)
        return {"release": json.dumps(document), "page": path.read_text(encoding="utf-8")}


def _write(
    session: Session, task: Task, settled: Settled, shown: Mapping[str, str] | None,
    names: Sequence[str],
) -> None:  # fmt: skip
    """Store everything that the task ends with."""
    task.state, task.reason = settled.state, settled.reason
    if shown is None:
        return
    paid = settled.payout
    session.add(
        Outcome(
            task=task.id, **shown, created=now(),
            public={} if paid is None else paid.public(),
            paid=None if paid is None else sum(line.cents for line in paid.lines),
        )
    )  # fmt: skip
    if paid is not None:
        lines = lines_of(settled.release, paid)
        session.add_all(
            Line(task=task.id, owner=name, line=lines.get(name, NOTHING)) for name in names
        )


NOTHING = {  # what an owner without rows is told
    "cents": 0, "later": 0, "low": 0.0, "high": 0.0, "clipped": 0.0, "value": 0.0,
    "value_low": 0.0, "value_high": 0.0, "rows": 0, "personal_epsilon": 0.0,
}  # fmt: skip


def _value_ends(
    value: float, line: OwnerLine, draws: list[float]
) -> tuple[float, float] | tuple[None, None]:
    """The ends of the interval for an owner's value, from draws of its part after clipping."""
    kept = 1.0 - line.clipped
    if math.isnan(line.low) or kept <= 0:
        return None, None
    squares = math.fsum((draw - kept * value) ** 2 for draw in draws)
    off = STEPS * math.sqrt(squares / len(draws)) / kept
    return value - off, value + off


def lines_of(release: Any, paid: PrivatePayout) -> dict[str, dict[str, Any]]:
    """What each owner learns: pay and value, their intervals, what was clipped, personal epsilon.

    Everything about an owner is computed from that owner's rows and the release alone.
    """
    rows: dict[Any, list[int]] = {}
    for row, owner in enumerate(release._owners):
        rows.setdefault(owner, []).append(row)
    found = {}
    for line, draws in zip(paid.lines, paid._draws.T.tolist(), strict=True):
        mine = rows[line.owner]
        value = math.fsum(release.values[mine].tolist())
        low, high = _value_ends(value, line, draws)
        statement = line_of(line) | {
            "value": value, "value_low": low, "value_high": high,
            "rows": len(mine), "personal_epsilon": float(release.personal_epsilon[mine[0]]),
        }  # fmt: skip
        found[str(statement.pop("owner"))] = statement
    return found
