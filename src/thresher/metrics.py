"""Rows with their norms, and the numbers that turn a comparison of distances into a dot product.

`measure` checks the numbers of a table in a single pass: a row with a NaN or infinite entry has
such a norm, a zero row has norm zero, and equal rows have equal norms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers, Single
from thresher.errors import InputError, option
from thresher.inputs.checks import MAX_MAGNITUDE, Features, Metric, rows_text
from thresher.kernels.pairs import squared_norms
from thresher.threads import cut, run

CHUNK = 1 << 18  # numbers converted at a time where a table is not in the layout a kernel wants
DIRECT_WIDTH = 16  # up to this many features loops are unrolled; also, a product is not worth it
PARALLEL_NUMBERS = 1 << 20  # tables with fewer numbers are measured by one thread
SMALLEST_SQUARE = 2.0**-480  # a shorter row has no direction that float64 can tell

CENTER_ROWS = 64  # by which the center is judged, and points that are worth it
SHORTER = 4.0  # times, for a center to be worth it
SPREAD = 2.0**7  # by how much validation points of one score may differ in size
UNIT = 2.0**-24  # half the distance from 1 to the next float32


@dataclass(frozen=True)
class Rows:
    """A checked table, and the squared length of each row, relative to a `center` if it has one.

    With `leaders`, another row stands for each: see `neighbors.parallel_rows`. Its numbers come
    from the functions below, not from `array`.
    """

    array: Features
    squares: Floats
    center: Floats | None = None
    leaders: Integers | None = None

    def __len__(self) -> int:
        return len(self.squares)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.array.shape[1])

    def largest_norm(self) -> float:
        """The euclidean norm of the longest row."""
        return math.sqrt(float(self.squares.max(initial=0.0)))

    def some(self, which: slice | Integers) -> Rows:
        """Some of the rows."""
        return Rows(self.part(which), self.squares[which], self.center)

    def part(self, which: slice | Integers) -> Features:
        """The numbers of some of the rows: a view if possible."""
        return self.array[which if self.leaders is None else self.leaders[which]]

    def as_float32(self, lo: int, hi: int, scale: float | Floats) -> Array:
        """Rows lo to hi, minus the center, times a number, in float32: a view if nothing changes.

        `scale` may also have one number for each row of the table.
        """
        part = self.part(slice(lo, hi))
        part = part if self.center is None else part - self.center
        factors = scale[lo:hi, None] if isinstance(scale, np.ndarray) else scale
        if factors != 1.0 if isinstance(factors, float) else (factors != 1.0).any():
            return np.ascontiguousarray(part.astype(np.float64) * factors, np.float32)
        return np.ascontiguousarray(part, np.float32)

    def as_float64(self, which: slice | Integers) -> Floats:
        """Some of the rows in float64."""
        return np.ascontiguousarray(self.part(which), np.float64)


def measure(
    name: str, array: Features, *, cosine: bool, zero_rows: bool = False, first: int = 0
) -> Rows:
    """`array` with its squared norms; raise an error that names the rows that cannot be used.

    For the cosine metric, these include rows without a direction, unless `zero_rows` are allowed.
    If the array is a part of a larger one, `first` is the number of its first row there.
    """
    squares = squared_lengths(array)
    total = float(squares.sum())
    if not math.isfinite(total) or total > MAX_MAGNITUDE**2:
        _reject_numbers(name, array, squares, first)
    if cosine and float(squares.min()) < SMALLEST_SQUARE:
        _reject_zeros(name, array, squares, first, zero_rows=zero_rows)
    return Rows(array, squares)


def centered(points: Rows, validation: Rows) -> tuple[Rows, Rows]:
    """Both relative to the center of the validation points, if that makes most rows much shorter.

    A center does not change distances, and the shorter the rows are, the more exact a product is.
    """
    some = np.asarray(validation.array[:: -(-len(validation) // CENTER_ROWS)], np.float64)
    center = np.median(some, axis=0)
    usual = [np.median(np.square(rows).sum(axis=1)) for rows in (some, some - center)]
    if len(points) < CENTER_ROWS or not usual[1] * SHORTER**2 < usual[0]:
        return points, validation
    ours, theirs = (squared_lengths(rows.array, center) for rows in (points, validation))
    return Rows(points.array, ours, center), Rows(validation.array, theirs, center)


def squared_lengths(array: Features, center: Floats | None = None) -> Floats:
    """The squared euclidean norm of each row; NaN or infinite for a row that has such a number."""
    squares = np.empty(len(array), np.float64)

    def job(lo: int, hi: int) -> None:
        part = array[lo:hi] if center is None else array[lo:hi] - center
        squared_norms(np.ascontiguousarray(part, wanted), dims, squares[lo:hi])

    whole = array.dtype == np.float64 or center is not None
    wanted = np.float64 if whole else np.float32  # without loss
    dims = (0,) * array.shape[1] if array.shape[1] <= DIRECT_WIDTH else ()
    step = max(1, CHUNK // array.shape[1])
    run(job, cut(0, len(array), step), parallel=array.size >= PARALLEL_NUMBERS)
    return squares


def _reject_numbers(name: str, array: Features, squares: Floats, first: int) -> None:
    suspicious = np.flatnonzero(~(squares <= MAX_MAGNITUDE**2))
    broken = [first + row for row in suspicious.tolist() if not np.isfinite(array[row]).all()]
    if broken:
        raise InputError(
            f"{name} has NaN or infinite values in {rows_text(broken)}: drop or fill those rows"
        )
    if len(suspicious):
        raise InputError(
            f"{name} has values beyond 1e72 in {rows_text(suspicious + first)}: rescale the "
            "features"
        )


def _reject_zeros(
    name: str, array: Features, squares: Floats, first: int, *, zero_rows: bool
) -> None:
    rows = np.flatnonzero(squares < SMALLEST_SQUARE)
    if zero_rows:
        rows = rows[[bool(np.any(array[row])) for row in rows]]
    if not len(rows):
        return
    what = "zero rows" if not np.any(array[rows[0]]) else "rows too close to zero"
    raise InputError(
        f"{name} has {what}, which have no direction, so no cosine distance: "
        f"{rows_text(rows + first)}; drop them or use {option('metric', 'euclidean')}"
    )


@dataclass(frozen=True)
class Score:
    """How to compute r = x.v - h(x) - t(v), whose sign shows what is near, in float32 for a block.

    `numbers` are a, b, slack, reach, most and tiny of `kernels.masks`: h = a |x|^2 + b |x|, and r
    is wrong by at most slack * (reach * |x| + |h| + most) + tiny.

    Proof of the bound, for d < 2^23 (beyond, every pair is settled), u = 2^-24. The factors of x.v
    are rounded to float32, 2u + u^2 relative; d products and sums in any order, contracted or not,
    and with -h - t as their first term or subtracted at their end, are wrong by at most g (|x| |v|
    + |h| + |t|), g = (d + 2) u / (1 - (d + 2) u). The norm |x| is rounded once and h is made from
    it within 5u |h|; t is rounded within u |t|. Together this is below (d + 16) u / (1 - (d + 16)
    u) * (|x| |v| + |h| + |t|). `most` is (|v|^2 + radius^2) / 2 >= |t| for the longest v. Of the
    16 units 7 are used; the other 9 u, and the factor 1.001, also cover the rounding of the pair
    rule itself, at most (d + 4) 2^-53 of the same terms. `tiny` covers what underflows float32.
    Where rows are seen from a center, all this is about the differences from it; the pair rule,
    which sees the rows themselves, is wrong relative to |x - v|^2 <= (|x| + |v|)^2, and each
    difference is rounded once, by 2^-53.

    For the euclidean metric a row longer than `farthest` = 4 (|v| + radius), for the longest v, is
    near none: its distance is beyond 3 (|v| + radius), and the pair rule computes it within 2^-20.
    It is computed as a zero row of that length, whose r is below -7 (|v| + radius)^2, so that one
    row of a table does not make all others too short for float32. 2^-480 is for what underflows.
    """

    scale: float
    farthest: float
    columns: Single  # features x lanes: validation points as columns, padded
    level: Single  # t(v), infinite in the padding
    numbers: Single
    radius: float  # or one that takes in as much

    def at_edges(self, validation: Rows, metric: Metric, edges: Floats) -> tuple[Single, Single]:
        """Levels and numbers for several smaller radii: one row per edge.

        Everything but b and t(v) is that of the full radius, which is more than enough for smaller
        ones.
        """
        levels, numbers = (np.tile(each, (len(edges), 1)) for each in (self.level, self.numbers))
        if metric == "cosine":
            numbers[:, 1] = np.maximum(1.0 - edges, -2.0)
            return levels, numbers
        known = np.flatnonzero(np.isfinite(self.level))
        reach = np.minimum(edges, self.radius)[:, None] ** 2
        levels[:, known] = (validation.squares[known] - reach) * (self.scale**2 / 2)
        return levels, numbers


def score(
    validation: Rows, lanes: int, metric: Metric, radius: float, longest: float,
    only: Integers | None = None,
) -> Score:  # fmt: skip
    """The `Score` of a block of validation points, for points of norm at most `longest`.

    If it is `only` for some of them, the others are computed as padding.
    """
    which = slice(len(validation)) if only is None or len(only) == len(validation) else only
    V, norms = np.array(validation.array[which], np.float64), np.sqrt(validation.squares[which])
    V -= 0.0 if validation.center is None else validation.center
    width = validation.width
    columns, level = aligned((width, lanes), np.float32), aligned((lanes,), np.float32)
    share = (width + 16) * UNIT
    slack = share / (1 - share) * 1.001 if share < 0.5 else 1e6  # no bound: settle every pair
    if metric == "cosine":
        scale, farthest = 1.0, math.inf
        V /= np.where(norms > 0, norms, 1.0)[:, None]
        levels = np.zeros(len(norms))
        a, b, reach, most = 0.0, 1.0 - radius, 1.0, 0.0
        # a radius of 2 and more takes in every pair; the kernel's r must not be infinite or NaN
        b = max(b, -2.0)
    else:
        radius = min(radius, 4 * (longest + float(norms.max())) + 1)  # a larger one: nothing more
        farthest = 4 * (float(norms.max()) + radius) + 2.0**-480
        scale = power_of_two(max(min(longest, farthest) + float(norms.max()), radius))
        V *= scale
        levels = (norms**2 - radius**2) * (scale**2 / 2)
        a, b = 0.5, 0.0
        reach = float(norms.max()) * scale
        most = (float(norms.max()) ** 2 + radius**2) * (scale**2 / 2)
    columns[...], level[...] = 0.0, np.inf
    columns[:, which], level[which] = V.T, levels
    tiny = (width + 16) * 2.0**-126 * (1 + reach)
    numbers = np.array([a, b, slack, reach, most, tiny], np.float64) * (1 + 2.0**-20)
    numbers[:2] = a, b
    return Score(scale, farthest, columns, level, numbers.astype(np.float32), radius)


@dataclass(frozen=True)
class Scaled:
    """Rows in the form for a score: what each is multiplied by, and its norm after that."""

    rows: Rows
    scale: float
    longest: float
    farthest: float  # the greatest length, beyond which rows are zero
    factors: float | Floats
    norms: Single

    @classmethod
    def of(cls, rows: Rows, score: Score, metric: Metric) -> Scaled:
        """Scale the rows; for cosine, any positive factor will do, because r keeps its sign."""
        longest, shortest = rows.largest_norm(), math.sqrt(float(rows.squares.min(initial=1.0)))
        farthest = min(score.farthest, longest)
        factors: float | Floats = score.scale
        if metric == "cosine" and not power_of_two(shortest) == power_of_two(longest) == 1.0:
            factors = powers_of_two(np.sqrt(rows.squares))
        elif farthest < longest:
            factors = np.where(rows.squares <= farthest**2, score.scale, 0.0)
        norms = np.empty(len(rows), np.float32)

        def job(lo: int, hi: int) -> None:
            lengths = np.sqrt(rows.squares[lo:hi])
            if farthest < longest:
                np.minimum(lengths, farthest, out=lengths)
            own = isinstance(factors, np.ndarray) and metric == "cosine"
            part = factors[lo:hi] if own else score.scale  # type: ignore[index]
            np.multiply(lengths, part, out=norms[lo:hi], casting="same_kind")

        run(job, cut(0, len(rows), CHUNK), parallel=len(rows) > CHUNK)
        return cls(rows, score.scale, longest, farthest, factors, norms)

    def suits(self, score: Score) -> bool:
        """Whether another score needs these rows in the same form."""
        return (self.scale, self.farthest) == (score.scale, min(score.farthest, self.longest))

    def tile(self, lo: int, hi: int) -> Single:
        """Rows lo to hi."""
        return self.rows.as_float32(lo, hi, self.factors)


def alike(validation: Rows, metric: Metric, radius: float) -> list[Integers]:
    """Validation points grouped by size, so that float32 can tell them apart: largest group first.

    For the euclidean metric, r is as exact as the longest of them and the radius allow.
    """
    if metric == "cosine" or not math.isfinite(radius):
        return [np.arange(len(validation))]
    sizes = np.sqrt(validation.squares) + radius
    if sizes.min() >= sizes.max() / SPREAD:
        return [np.arange(len(validation))]
    order = np.argsort(-sizes, kind="stable")
    found, begin = [], 0
    while begin < len(order):
        end = begin + int((sizes[order[begin:]] >= sizes[order[begin]] / SPREAD).sum())
        found.append(np.sort(order[begin:end]))
        begin = end
    return sorted(found, key=len, reverse=True)


def power_of_two(largest: float) -> float:
    """1 if float32 has room for squares of `largest`; otherwise a power of two that makes room."""
    if largest == 0.0 or 2.0**-30 <= largest <= 2.0**30:
        return 1.0
    return float(powers_of_two(np.array(largest)))


def powers_of_two(largest: Floats) -> Floats:
    """For each number, a power of two that brings it between 1/2 and 1; 1 for 0."""
    return np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -400, 400))


def aligned(shape: tuple[int, ...], dtype: type[Any]) -> Array:
    """An uninitialized array that starts on a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.empty(size + 64, np.uint8)
    offset = -buffer.ctypes.data % 64
    return buffer[offset : offset + size].view(dtype).reshape(shape)
