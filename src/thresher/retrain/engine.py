"""The engine: blocks of coalitions to workers, in rounds of a few seconds.

After every round utilities are written to the journal, the plan takes them in, and the progress
bar moves on. Rounds need nothing of a joblib backend but that it runs functions, so those of Ray
and Dask serve as well. Arrays of some size go to local workers once, as memory maps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from thresher.progress import Advance
from thresher.retrain.coalitions import Block, Mask
from thresher.retrain.journal import Journal, Key
from thresher.retrain.plans import Plan
from thresher.retrain.utility import Enough, Outcome, Utility

ROUND = 3.0  # seconds that a round should take
LITTLE = 1.0  # seconds of work that are not worth starting processes for
FEW_POINTS = 20  # with so few, any coalition may come again


@dataclass
class Tally:
    """What was computed, and what the fits had to say."""

    failed: int = 0
    warned: int = 0
    complaint: str = ""

    def add(self, outcome: Outcome) -> None:
        """One more block."""
        self.failed += outcome.failed
        self.warned += outcome.warned
        self.complaint = self.complaint or outcome.complaint


@dataclass
class Memory:
    """Utilities of coalitions that are likely to come again: very small, nearly all, few points."""

    points: int
    known: dict[bytes, float] = field(default_factory=dict)

    def recall(self, block: Block) -> dict[int, float]:
        """What is known of a block, by position."""
        keys = ((position, self._key(mask)) for position, mask in enumerate(block.masks()))
        return {position: self.known[key] for position, key in keys if key in self.known}

    def keep(self, block: Block, utilities: Sequence[float]) -> None:
        """Remember what is worth it."""
        for mask, utility in zip(block.masks(), utilities, strict=False):
            key = self._key(mask)
            if key:
                self.known[key] = utility

    def _key(self, mask: Mask) -> bytes:
        size = int(mask.sum())
        again = self.points <= FEW_POINTS or size <= 2 or size >= self.points - 1
        return np.packbits(mask).tobytes() if again else b""


def work(utility: Utility, block: Block, enough: Enough | None, known: dict[int, float]) -> Outcome:
    """What a worker does: the utilities of a block, those `known` excepted."""
    masks = (mask for position, mask in enumerate(block.masks()) if position not in known)
    outcome = utility.evaluate(masks, enough)
    if known:
        computed = iter(outcome.utilities)
        merged: list[float] = []
        for position in range(len(block)):
            found = known.get(position)
            found = next(computed, None) if found is None else found
            if found is None or (merged and enough is not None and enough(merged[-1])):
                break
            merged.append(found)
        outcome.utilities = merged
    return outcome


def run(
    utility: Utility,
    plan: Plan,
    journal: Journal,
    *,
    workers: int,
    processes: bool,
    pace: float,
    advance: Advance | None = None,
) -> Tally:
    """Compute until the plan is done. `pace` is a guess at the seconds that an evaluation takes."""
    from joblib import Parallel, delayed

    tally, memory = Tally(), Memory(utility.points)
    if _little_work(plan, utility.points, pace):
        workers = 1
    hint = "processes" if processes else "threads"
    seconds = ROUND / 10  # the first round finds out how long things really take
    with Parallel(n_jobs=workers, prefer=hint, max_nbytes="100K") as parallel:
        while not plan.done:
            blocks = plan.next(_count(plan, journal.size, workers, pace, seconds))
            fresh = [block for block in blocks if block.key not in journal.known]
            # a kernel that starts where the last coalition ended must not be led around one
            recalled = [memory.recall(block) if processes else {} for block in fresh]
            start = time.perf_counter()
            found = parallel(
                delayed(work)(utility, block, plan.enough, known)
                for block, known in zip(fresh, recalled, strict=True)
            )
            computed = sum(len(outcome.utilities) for outcome in found)
            if computed:
                pace = max(1e-7, (time.perf_counter() - start) * workers / computed)
            outcomes: dict[Key, Outcome] = dict(zip((b.key for b in fresh), found, strict=True))
            journal.write(outcomes)
            for block in blocks:
                outcome = outcomes.get(block.key) or journal.known[block.key]
                if not plan.done:
                    tally.add(outcome)
                    plan.take(block, np.array(outcome.utilities))
                if processes:
                    memory.keep(block, outcome.utilities)
                if advance is not None:
                    advance(len(outcome.utilities), total=plan.total())
            few = processes and utility.points <= FEW_POINTS  # rather remember than compute again
            seconds = 0.0 if few else ROUND
    return tally


def _count(plan: Plan, size: int, workers: int, pace: float, seconds: float) -> int:
    """How many blocks make a round of so many seconds; no more than the plan seems to need."""
    left = plan.total() - plan.spent
    count = max(1, round(seconds / (pace * size))) * workers
    return count if left <= 0 else max(workers, min(count, -(-left // size)))


def _little_work(plan: Plan, points: int, pace: float) -> bool:
    """Whether it is done before other processes are ready to help."""
    total = plan.total()
    if points <= FEW_POINTS:
        total = min(total or 2**points, 2**points)
    return 0 < total * pace < LITTLE


def cores(workers: int | None) -> int:
    """How many workers: as asked, as an active `joblib.parallel_config` says, or all cores."""
    from joblib import effective_n_jobs

    from thresher.threads import thread_count

    if workers is not None:
        return workers
    configured = int(effective_n_jobs(None))
    return configured if configured > 1 else thread_count()
