"""Points that lie in the same direction, up to rounding, are equally far by the cosine.

A multiple of a row is rounded, feature by feature, so it points in a slightly different direction:
without more, rounding would decide which of the two comes first. So points are put in groups. In
the order of the input, a point that has no group yet begins one. It takes in all later points
without a group that point in its direction: each feature, divided by the largest one, agrees within
4 units of rounding of the table's numbers plus 2^-48. Rows of small whole numbers are exact, so
they must be exact multiples. All points of a group have the distances of the first one, and tie by
position.

To find candidates, rows of length 1 are projected on a few fixed lines. Two rows in one direction
differ there by at most twice the tolerance times the length of the line, which is 1, and by the
error of the projection.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import ThresherWarning
from thresher.inputs.checked_inputs import Points
from thresher.inputs.precomputed import Distances
from thresher.kernels.directions import find_leaders, mark_candidates
from thresher.metrics import CHUNK, PARALLEL_NUMBERS, Rows
from thresher.threads import cut, one_blas_thread, run

LINES = 3
SEED = 35
UNITS = 4  # of rounding, by which two rounded multiples of a row may differ
MOST = 512  # rows that a leader may look at in vain, where all directions are nearly the same


def tie_directions(points: Points, metric: str) -> Points:
    """The points, with the first of each group of directions in place of the others, if needed."""
    if metric != "cosine" or isinstance(points.rows, Distances):
        return points
    leaders = leaders_of(points.rows)
    if leaders is None:
        return points
    squares = points.rows.squares[leaders]
    return replace(points, rows=replace(points.rows, squares=squares, leaders=leaders))


def leaders_of(rows: Rows) -> Integers | None:
    """For each row the first one of its group; None if each row is alone in its group."""
    lines, about = _projected(rows), np.finfo(rows.array.dtype)
    tolerance = UNITS * float(about.eps) / 2 + 2.0**-48
    whole = 2.0 ** (2 * about.nmant // 3 + 1)  # 2^7, 2^16, 2^35: rounding leaves fractions below
    bound = 2 * tolerance + (rows.width + 8) * 2.0**-50
    which = _in_runs(lines[:, 0], bound)
    lines, marks = lines[which], np.zeros(len(which), np.bool_)
    mark_candidates(lines, bound, marks)
    if not marks.any():
        return None
    which, lines = which[marks], lines[marks]
    X, places = rows.array, which
    if X.dtype == np.float16 or not X.flags.c_contiguous:  # only the rows in question
        X, places = rows.as_float64(which), np.arange(len(which))
    found = np.full(len(which), -1, np.int64)
    find_leaders(X, places, np.argsort(which), lines, bound, tolerance, whole, MOST, found)
    leaders = np.arange(len(rows))
    leaders[which] = which[found]
    return leaders if (leaders != np.arange(len(rows))).any() else None


def _in_runs(numbers: Floats, bound: float) -> Integers:
    """The places of the numbers in ascending order, without those that have none nearby."""
    order = np.argsort(numbers, kind="stable")
    near = np.diff(numbers[order]) <= bound
    found = np.zeros(len(order), np.bool_)
    found[1:] |= near
    found[:-1] |= near
    return order[found]


def _projected(rows: Rows) -> Floats:
    """The projections of all rows, as if each had length 1."""
    directions = np.random.default_rng(SEED).normal(size=(rows.width, LINES))
    directions /= np.sqrt(np.square(directions).sum(axis=0))
    lines = np.empty((len(rows), LINES))

    def job(lo: int, hi: int) -> None:
        np.dot(rows.as_float64(slice(lo, hi)), directions, out=lines[lo:hi])
        lines[lo:hi] /= np.sqrt(rows.squares[lo:hi, None])

    with one_blas_thread():
        pieces = cut(0, len(rows), max(1, CHUNK // rows.width))
        run(job, pieces, parallel=rows.array.size >= PARALLEL_NUMBERS)
    return lines


def warn_of_one_feature(points: Points, metric: str, *, stacklevel: int) -> None:
    """Warn that rows of one feature have no more than two directions."""
    if metric == "cosine" and isinstance(points.rows, Rows) and points.rows.width == 1:
        warnings.warn(
            "X has one feature, and by metric='cosine' all points of the same sign are equally "
            "far: they are ordered by position alone. Use metric='euclidean'",
            ThresherWarning,
            stacklevel=stacklevel + 1,
        )
