"""The map: points and validation points on the two leading components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.embed import leading_components
from thresher.findings import Findings
from thresher.metrics import Rows
from thresher.report.narrow import read_rows
from thresher.report.subject import Data, Indices, Subject

MOST_POINTS = 4000
MOST_WORST = 1000
MOST_VALIDATION = 1000
MOST_FITTED = 20_000  # points that decide where the components point
PURPOSE = 1
AXES, NARROW_AXES = ("first component", "second component"), ("the only feature", "value")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plane:
    """Where points and validation points lie, and what they are.

    Parameters
    ----------
    x, y, rows, values, labels, ids, suggestions
        Of the points that are drawn.
    x_val, y_val, labels_val
        Of the validation points that are drawn.
    points, validation_points
        How many there are in all.
    variance
        The share of the variance of the points that the map shows; None where that is not what it
        shows.
    axes
        What the axes are.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    rows: tuple[int, ...]
    values: tuple[float, ...]
    labels: tuple[str, ...]
    ids: tuple[str, ...]
    suggestions: tuple[str, ...]
    x_val: tuple[float, ...]
    y_val: tuple[float, ...]
    labels_val: tuple[str, ...]
    points: int
    validation_points: int
    variance: float | None
    axes: tuple[str, str]


def draw_plane(subject: Subject, data: Data, findings: Findings | None) -> Plane:
    """The map: the worst points, others at random, and validation points."""
    random, cosine = subject.random(PURPOSE), subject.metric == "cosine"
    chosen = choose_points(subject.order, random)
    chosen_val = _some(len(data.rows_val), MOST_VALIDATION, random)
    fitted = _some(len(subject), MOST_FITTED, random)
    spots, spots_val, variance = _project(
        read_rows(data.rows, fitted, cosine=cosine, seed=subject.seed),
        read_rows(data.rows, chosen, cosine=cosine, seed=subject.seed),
        read_rows(data.rows_val, chosen_val, cosine=cosine, seed=subject.seed),
    )
    if variance is None:
        spots[:, 1] = subject.values[chosen]
    rows = chosen.tolist()
    return Plane(
        x=tuple(spots[:, 0].tolist()),
        y=tuple(spots[:, 1].tolist()),
        rows=tuple(subject.number(row) for row in rows),
        values=tuple(subject.values[chosen].tolist()),
        labels=tuple(subject.label(row) for row in rows),
        ids=tuple(subject.name(row) for row in rows),
        suggestions=tuple("" if findings is None else findings.suggestion[row] for row in rows),
        x_val=tuple(spots_val[:, 0].tolist()),
        y_val=tuple(spots_val[:, 1].tolist()),
        labels_val=tuple(subject.classes[code] for code in data.codes_val[chosen_val]),
        points=len(subject),
        validation_points=len(data.rows_val),
        variance=variance,
        axes=AXES if variance is not None else NARROW_AXES,
    )


def place_points(
    rows: Rows, values: Floats, *, cosine: bool, seed: int = 0
) -> tuple[Indices, Floats, tuple[str, str]]:
    """Which points are drawn, where they lie, and what the axes are; without a validation set."""
    random = np.random.default_rng([seed, PURPOSE])
    chosen = choose_points(np.argsort(values, kind="stable"), random)
    which = _some(len(rows), MOST_FITTED, random)
    fitted, drawn = (read_rows(rows, some, cosine=cosine, seed=seed) for some in (which, chosen))
    spots, _, variance = _project(fitted, drawn, drawn[:0])
    if variance is None:
        spots[:, 1] = values[chosen]
    return chosen, spots, AXES if variance is not None else NARROW_AXES


def choose_points(order: Indices, random: np.random.Generator) -> Indices:
    """The worst points and a random rest, the worst last so that they are drawn on top."""
    worst, rest = order[:MOST_WORST], order[MOST_WORST:]
    if len(order) > MOST_POINTS:
        rest = np.sort(random.choice(rest, MOST_POINTS - MOST_WORST, replace=False))
    return np.concatenate([rest, worst[::-1]])


def _some(count: int, most: int, random: np.random.Generator) -> Indices:
    if count <= most:
        return np.arange(count)
    return np.sort(random.choice(count, most, replace=False))


def _project(
    fitted: Floats, chosen: Floats, chosen_val: Floats
) -> tuple[Floats, Floats, float | None]:
    """Where both sides lie, and the share of the variance: None where there is but one feature."""
    together = np.concatenate([chosen, chosen_val])
    spots = np.zeros((len(together), 2))
    count = min(2, fitted.shape[1])
    seen, spots[:, :count] = leading_components(fitted, together, count)
    total = float(fitted.var(axis=0).sum())
    share = float(seen.var(axis=0, dtype=np.float64).sum()) / total if total > 0 else 0.0
    return spots[: len(chosen)], spots[len(chosen) :], None if count == 1 else min(share, 1.0)
