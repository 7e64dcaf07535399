"""From outcomes to records: mean and deviation over draws, the paper's figure, the difference."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome
from thresher.paper.datasets import EMBEDDED

PRINTED = 0.0005 + 1e-9  # what rounding to three digits hides
FEWEST = 3  # runs that a deviation can be told from
IN_KIND = "other embeddings than the paper's: to be compared in kind"


@dataclass(frozen=True)
class Record:
    """One figure of a table: ours, the paper's, and how far they are apart.

    Parameters
    ----------
    task, set, protocol, method, step
        As in `Cell`.
    measure
        What was measured, such as "AUROC".
    ours, deviation, runs
        Mean, standard deviation (None for one run) and number of runs; `ours` is None where the
        data set is missing, and `note` says why.
    paper, paper_deviation
        As printed, read right; None where the paper prints nothing.
    difference, standard_error
        Ours minus the paper's, and what chance explains of it; None where that cannot be told. In a
        replay of the authors' rows it is the error of both means over noise, and 0 without noise.
        Elsewhere the paper's figure is that of one draw of rows, which spreads as ours do.
    beyond
        Whether the difference is more than two standard errors, and more than rounding.
    note
        Why a figure is missing or not judged.
    """

    task: str
    set: str
    protocol: str
    method: str
    step: float | None
    measure: str
    ours: float | None
    deviation: float | None
    runs: int
    paper: float | None = None
    paper_deviation: float | None = None
    difference: float | None = None
    standard_error: float | None = None
    beyond: bool = False
    note: str = ""


def make_records(
    experiment: Experiment, done: Iterable[tuple[Cell, Outcome]],
    missing: Iterable[tuple[Cell, str]] = (),
) -> list[Record]:  # fmt: skip
    """The records of an experiment, in the order of its cells."""
    groups: dict[Cell, list[Outcome]] = {}
    for cell, outcome in done:
        groups.setdefault(_without_draw(cell), []).append(outcome)
    records = [record for cell, found in groups.items() for record in _of(experiment, cell, found)]
    gaps = dict.fromkeys((_without_draw(cell), reason) for cell, reason in missing)
    return records + [_absent(cell, reason) for cell, reason in gaps]


def _without_draw(cell: Cell) -> Cell:
    return dataclasses.replace(cell, draw=0)


def _of(experiment: Experiment, cell: Cell, outcomes: list[Outcome]) -> Iterator[Record]:
    for measure in outcomes[0]:
        if measure == HIDDEN:
            continue
        entries = np.array([outcome[measure] for outcome in outcomes])
        ours, runs = float(entries.mean()), len(entries)
        spread = float(entries.std(ddof=1)) if runs > 1 else None
        about = (cell.task, cell.set, cell.protocol, cell.method, cell.step, measure)
        figure = experiment.printed(cell, measure)
        if figure is None:
            yield Record(*about, ours, spread, runs)
            continue
        paper, theirs = figure
        difference, error = ours - paper, _error(cell, spread, runs, theirs)
        in_kind = cell.set in EMBEDDED
        judged = error is not None and not in_kind
        beyond = judged and abs(difference) > max(2 * (error or 0), PRINTED)
        note = IN_KIND if in_kind else "" if judged else "too few random runs to judge"
        yield Record(
            *about, ours, spread, runs, paper, theirs, difference, error, bool(beyond), note
        )


def _error(cell: Cell, spread: float | None, runs: int, theirs: float | None) -> float | None:
    """The standard error of the difference; None where runs are too few to tell it."""
    if cell.fixed:
        return 0.0
    if spread is None or runs < FEWEST:
        return None
    of_noise = cell.replayed and theirs is not None
    own = theirs / math.sqrt(5) if of_noise and theirs is not None else spread
    return math.sqrt(spread**2 / runs + own**2)


def _absent(cell: Cell, reason: str) -> Record:
    about = (cell.task, cell.set, cell.protocol, cell.method, cell.step)
    return Record(*about, "", None, None, 0, note=reason)
