"""From outcomes to records: mean and deviation over draws, the paper's number, the difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome
from thresher.paper.datasets import EMBEDDED

PRINTED = 0.0005 + 1e-9  # what rounding to three digits hides
FEWEST = 3  # runs that a deviation can be told from
IN_KIND = "other embeddings than the paper's: to be compared in kind"


@dataclass(frozen=True)
class Record:
    """One number of a table: ours, the paper's, and their difference.

    Parameters
    ----------
    task, set, protocol, method, step
        Which number it is: the task and the data set, "paper" or "clean", the method, and the
        place on the axis if there is one.
    measure
        What is measured, such as "AUROC".
    ours, deviation, runs
        Our mean over the runs, their standard deviation, and how many runs there were.
    paper, paper_deviation
        What the paper prints.
    difference, standard_error
        Ours minus the paper's, and the standard error of that. It is None if it is unknown. In a
        replay of the authors' rows, it is the error of both means over the noise, and 0 without
        noise. Otherwise the paper's number comes from one draw of rows, which varies as much as
        ours do.
    beyond
        True if they differ by more than two standard errors, and by more than rounding explains.
    note
        Why a number is missing or cannot be judged.

    Examples
    --------
    >>> from thresher.paper import Record
    >>> record = Record(
    ...     "mislabel", "2dplanes", "clean", "tknn", None, "AUROC", ours=0.83, deviation=0.01,
    ...     runs=5, paper=0.82, difference=0.01, standard_error=0.02,
    ... )
    >>> record.beyond  # two standard errors
    False
    """

    task: str  # this and the next four as in `Cell`
    set: str
    protocol: str
    method: str
    step: float | None
    measure: str  # such as "AUROC"
    ours: float | None  # the mean over all runs; None where the data set is missing
    deviation: float | None  # None for one run
    runs: int
    paper: float | None = None  # as printed, read right; None where the paper prints nothing
    paper_deviation: float | None = None
    difference: float | None = None  # ours minus the paper's
    standard_error: float | None = None
    beyond: bool = False
    note: str = ""  # why a number is missing or not judged


def make_records(
    experiment: Experiment, done: Iterable[tuple[Cell, Outcome]],
    missing: Iterable[tuple[Cell, str]] = (),
) -> list[Record]:  # fmt: skip
    """Make the records of an experiment, in the order of its cells."""
    groups: dict[Cell, list[Outcome]] = {}
    for cell, outcome in done:
        groups.setdefault(replace(cell, draw=0), []).append(outcome)
    records = [record for cell, found in groups.items() for record in _of(experiment, cell, found)]
    gaps = dict.fromkeys((replace(cell, draw=0), reason) for cell, reason in missing)
    return records + [Record(*_about(cell), "", None, None, 0, note=why) for cell, why in gaps]


def _about(cell: Cell) -> tuple[str, str, str, str, float | None]:
    return cell.task, cell.set, cell.protocol, cell.method, cell.step


def _of(experiment: Experiment, cell: Cell, outcomes: list[Outcome]) -> Iterator[Record]:
    for measure in (name for name in outcomes[0] if name != HIDDEN):
        entries = np.array([outcome[measure] for outcome in outcomes])
        ours, runs = float(entries.mean()), len(entries)
        spread = float(entries.std(ddof=1)) if runs > 1 else None
        record = Record(*_about(cell), measure, ours, spread, runs)
        figure = experiment.printed(cell, measure)
        if figure is not None:
            difference, error = ours - figure[0], _error(cell, spread, runs, figure[1])
            in_kind = cell.set in EMBEDDED
            beyond = error is not None and abs(difference) > max(2 * error, PRINTED) and not in_kind
            note = IN_KIND if in_kind else "too few random runs to judge" if error is None else ""
            record = replace(
                record, paper=figure[0], paper_deviation=figure[1], difference=difference,
                standard_error=error, beyond=beyond, note=note,
            )  # fmt: skip
        yield record


def _error(cell: Cell, spread: float | None, runs: int, theirs: float | None) -> float | None:
    """The standard error of the difference; None if there are too few runs to estimate it."""
    if cell.fixed:
        return 0.0
    if spread is None or runs < FEWEST:
        return None
    own = theirs / math.sqrt(5) if cell.replayed and theirs is not None else spread
    return math.sqrt(spread**2 / runs + own**2)
