"""The engine, which sends blocks of coalitions to workers in rounds of a few seconds.

After every round, utilities are written to the journal, the plan accepts them, and the progress bar
moves on. A joblib backend only has to run functions, so those of Ray and Dask work as well. Large
arrays are sent to local workers only once, as memory maps.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from thresher.array_types import Flags
from thresher.passes.checkpoint import Checkpoint
from thresher.progress import Advance
from thresher.retrain.coalitions import Block
from thresher.retrain.plans import Plan
from thresher.retrain.utility import Enough, Known, Outcome, Refit

Key = tuple[int, int]

ROUND = 5.0  # seconds that a round should take at most
LITTLE = 1.0  # seconds of work that are not worth starting processes for
FEW_POINTS = 20  # with so few, any coalition may come again


class Journal:
    """The utilities known so far, by block, and the checkpoint that new ones are written to.

    The number of evaluations is not one of the settings, so a finished run can be extended.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.size = int(checkpoint.about["size"])  # coalitions a block
        self._checkpoint = checkpoint
        self.known: dict[Key, Outcome] = {}
        for name, entry in checkpoint.load_entries(stacklevel=5).items():
            stream, start = map(int, name.split())
            self.known[stream, start] = Outcome(**entry)

    def write(self, outcomes: Mapping[Key, Outcome]) -> None:
        """Add these blocks, and wait until they are on the disk."""
        self._checkpoint.save_entries(
            {f"{stream} {start}": vars(found) for (stream, start), found in outcomes.items()}
        )


@dataclass
class Memory:
    """The results of coalitions that may well repeat: very small, very large, of few points."""

    points: int
    known: dict[bytes, tuple[float, bool]] = field(default_factory=dict)

    def recall(self, block: Block) -> Known:
        """What is known about a block, by position: the utility, and whether its fit failed."""
        keys = ((position, self._key(mask)) for position, mask in enumerate(block.masks()))
        return {position: self.known[key] for position, key in keys if key in self.known}

    def keep(self, block: Block, outcome: Outcome) -> None:
        """Keep results of coalitions that are likely to repeat."""
        found = zip(outcome.utilities, outcome.failed, strict=True)
        for mask, entry in zip(block.masks(), found, strict=False):
            key = self._key(mask)
            if key:
                self.known[key] = entry

    def _key(self, mask: Flags) -> bytes:
        size = int(mask.sum())
        again = self.points <= FEW_POINTS or size <= 2 or size >= self.points - 1
        return np.packbits(mask).tobytes() if again else b""


def work(utility: Refit, block: Block, enough: Enough | None, known: Known) -> Outcome:
    """Compute the utilities of a block in a worker, except for those `known`."""
    return utility.evaluate(block.masks(), enough, known)


def run(
    utility: Refit, plan: Plan, journal: Journal, *, workers: int, processes: bool, pace: float,
    advance: Advance | None = None,
) -> Outcome:  # fmt: skip
    """Compute until the plan is done, and return failures and warnings of the fits.

    `pace` is the number of seconds that the slowest evaluation takes.
    """
    from joblib import Parallel, delayed

    overall, memory, total = Outcome(), Memory(utility.points), plan.total()
    few = 2**utility.points if utility.points <= FEW_POINTS else 0  # coalitions in all, if few
    if 0 < min(total or few, few or total) * pace < LITTLE:  # done before other processes are ready
        workers = 1
    hint, measured = "processes" if processes else "threads", pace
    # of few points all coalitions are soon known: small rounds first, to compute none twice
    most = workers if processes and few else sys.maxsize
    with Parallel(n_jobs=workers, prefer=hint, max_nbytes="100K") as parallel:
        while not plan.done:
            count = min(most, _count(plan, journal.size, workers, max(pace, measured)))
            blocks, most = plan.next(count), 2 * most
            fresh = [block for block in blocks if not _is_known(block, plan, journal)]
            # a kernel that starts where the last coalition ended must not be led around one
            recalled = [memory.recall(block) if processes else {} for block in fresh]
            start = time.perf_counter()
            found = parallel(
                delayed(work)(utility, block, plan.enough, known)
                for block, known in zip(fresh, recalled, strict=True)
            )
            computed = sum(len(outcome.utilities) for outcome in found)
            if computed:
                measured = (time.perf_counter() - start) * workers / computed
            outcomes: dict[Key, Outcome] = dict(zip((b.key for b in fresh), found, strict=True))
            journal.write(outcomes)
            for block in blocks:
                outcome = outcomes.get(block.key) or journal.known[block.key]
                utilities = np.array(outcome.utilities)[: len(block)]
                if not plan.done:
                    overall.warned += outcome.warned
                    overall.complaint = overall.complaint or outcome.complaint
                    plan.take(block, utilities, np.array(outcome.failed, np.bool_)[: len(block)])
                if processes:
                    memory.keep(block, outcome)
                if advance is not None:
                    advance(len(utilities), total=plan.total())
    return overall


def _is_known(block: Block, plan: Plan, journal: Journal) -> bool:
    """Whether the whole block was computed before, unlike the last block of a shorter run."""
    found = journal.known.get(block.key)
    if found is None:
        return False
    ended = plan.enough is not None and bool(found.utilities) and plan.enough(found.utilities[-1])
    return ended or len(found.utilities) >= len(block)


def _count(plan: Plan, size: int, workers: int, pace: float) -> int:
    """How many blocks to compute in a round; no more than the plan seems to need."""
    left = plan.total() - plan.spent
    count = max(1, int(ROUND / (pace * size))) * workers
    return count if left <= 0 else max(workers, min(count, -(-left // size)))
