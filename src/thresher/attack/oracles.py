"""What an attacker learns: the value of a copy of any candidate, added to what a server holds.

An oracle knows all points of an experiment. For any set of them that a server might hold, it
computes what a copy of each candidate would be worth to each validation point. There are thousands
of sets that differ by one point, so none is valued from scratch. Exact threshold values follow from
counts, which are sums, and nearest-neighbor values from the candidate's rank among sorted points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Array, Bytes, Flags, Floats, Integers
from thresher.games.semivalues import Semivalue, rest_prices
from thresher.inputs.checked_inputs import Points, Validation
from thresher.knn import Recursion
from thresher.metrics import Rows
from thresher.neighbors.tiles import pair_table
from thresher.passes.walk import near_pairs, ring_pairs
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Design
from thresher.privacy.noise import Seeded
from thresher.privacy.paper_mechanism import PaperDesign
from thresher.sides.ball_side import BallSide

DUST = 1e-12  # differences of values that are rounding
NOISE_DRAWS = 100  # from which the variance of a mechanism's noise is told


class Oracle(Protocol):
    """A target that knows the points of an experiment."""

    exact: bool  # whether a set and the same set with a twin can be asked about at no cost

    def values(self, held: Integers, candidates: Integers, *, twin: bool = False) -> Floats:
        """What a copy of each candidate is worth to each validation point, beside `held`.

        With `twin`, the server also holds each candidate once more than `held` says.
        """

    def strong_scores(self, held: Integers, candidates: Integers) -> Floats | None:
        """Scores that are high for candidates that are likely to be held; None if unknown."""


@dataclass(frozen=True)
class NearTables:
    """Which ring of each validation point a point is in, and whether it has the label."""

    place: Bytes  # one row per point, one column per validation point; `rings` where it is not near
    match: Flags
    rings: int
    classes: int

    @classmethod
    def of(cls, points: Points, side: BallSide) -> NearTables:
        """Find rings by the pair rule; without a kernel, there is one ring."""
        rings, ball = max(1, len(side.edges)), side.near("all")
        place = ring_pairs(points, ball, rings) if side.edges else ~near_pairs(points, ball)
        return cls(
            place.astype(np.uint8), points.codes[:, None] == side.codes, rings, len(side.classes)
        )

    @property
    def near(self) -> Flags:
        """Which points are near which validation points."""
        return self.place < self.rings

    def priced(self, rows: Integers, gain: Floats, loss: Floats) -> Floats:
        """What these points are worth at these prices, to each validation point."""
        place = self.place[rows]
        ring: Any = np.minimum(place, self.rings - 1) if self.rings > 1 else 0
        at = ring, np.arange(place.shape[1])
        gain, loss = (prices.reshape(self.rings, -1)[at] for prices in (gain, loss))
        return np.where(place < self.rings, np.where(self.match[rows], gain, loss), 0.0)


@dataclass(frozen=True)
class TargetTables:
    """Who is near each validation point, and the targets on the grid of prices."""

    near: Floats  # one row per point, one column per validation point
    targets: Floats

    @classmethod
    def of(cls, points: Points, side: BallSide) -> TargetTables:
        """Find near points by the pair rule."""
        near = near_pairs(points, side.near("all"))
        classes: Any = side.classes
        return cls(near.astype(np.float64), classes.grid.numbers(points.codes))

    def priced(self, rows: Integers, *quadratic: Floats) -> Floats:
        """What these points are worth at these prices, to each validation point."""
        a, b, c, center = quadratic
        r = self.targets[rows, None] - center
        return np.asarray(self.near[rows] * (a + r * (b + r * c)))


@dataclass(frozen=True)
class CountOracle:
    """Exact prices for a newcomer beside held points; a twin adds one to the copy's own count."""

    tables: NearTables
    semivalue: Semivalue
    exact = True

    def values(self, held: Integers, candidates: Integers, *, twin: bool = False) -> Floats:
        """The values at the gain for (same + twin, other) and the loss for (same, other + twin)."""
        tables = self.tables
        same, other = self._vectors[held].sum(axis=0).astype(np.int64).reshape(2, -1)
        gain, _ = rest_prices(same + twin, other, tables.classes, self.semivalue)
        _, loss = rest_prices(same, other + twin, tables.classes, self.semivalue)
        return tables.priced(candidates, gain, loss)

    @cached_property
    def _vectors(self) -> Floats:
        """What each point adds to the counts (same, other): 0 or 1."""
        near, match = self.tables.near, self.tables.match
        return np.hstack([near & match, near & ~match]).astype(np.float64)

    def strong_scores(self, held: Integers, candidates: Integers) -> Floats:
        """The scores from the exact counts, which values for each validation point reveal."""
        vectors = self._vectors
        if self.tables.classes == 1:  # all prices are 0, whatever the counts
            return np.zeros(len(candidates))
        return list_scores(vectors[candidates], vectors[held].sum(axis=0), len(held), 0.0)


@dataclass(frozen=True)
class NoisyOracle:
    """Prices of a private release of the held points: the same for everyone who asks."""

    points: Points
    design: Design
    tables: NearTables | TargetTables | None  # None for leaves: values are sums there
    source: Seeded
    exact = False

    def values(self, held: Integers, candidates: Integers, *, twin: bool = False) -> Floats:
        """The values at the prices of one new release."""
        assert not twin  # noqa: S101 - asked for only where it costs nothing
        found, setting = self.design.prices(self.release(held)), self.design.setting
        if self.tables is None:
            inside: Any = self._contributions(candidates)
            return found.pay(inside.inside, "newcomers")[:, None]
        _, prices = found.side.payment(found.table, setting.semivalue, "newcomers")
        return self.tables.priced(candidates, *prices)

    def release(self, held: Integers) -> Integers:
        """The noisy numbers, made by the design's own code."""
        return self.design.release(self._contributions(held), self.source)

    def _contributions(self, held: Integers) -> Contributions:
        rows = self.points.rows
        assert isinstance(rows, Rows)  # noqa: S101 - the metric is not "precomputed"
        some = Points(rows.some(held), self.points.codes[held])
        return self.design.setting.contributions(some, Units.of(None, len(held)))

    def strong_scores(self, held: Integers, candidates: Integers) -> Floats:
        """The scores from the published numbers, given the known variance of their noise."""
        noise = np.array([self.design.noise(self.source).ravel() for _ in range(NOISE_DRAWS)])
        variance = np.full(noise.shape[1], noise.var())
        each = [self.design.footprint(self._contributions(candidates[[i]])).ravel()
                for i in range(len(candidates))]  # fmt: skip
        vectors = np.array(each, np.float64)
        if isinstance(self.design, PaperDesign):  # a point is in a sample by the toss of a coin
            rate = self.design.options.rate
            variance += len(held) * rate * (1 - rate) * (vectors**2).mean(axis=0)
            vectors = rate * vectors
        return list_scores(vectors, self.release(held).ravel(), len(held), variance)


def list_scores(vectors: Floats, noisy: Array, held: int, variance: Floats | float) -> Floats:
    """How likely each point of a list is among the `held` ones whose vectors add up to `noisy`.

    Let noisy = sum_c w_c u_c + noise, with w_c = 1 for members and 0 for others. Members are a
    known share s of the list. The score is the mean of w given `noisy`, under the normal
    distribution with the same mean and variance: s + V U (U' V U + S)^-1 (noisy - s sum_c u_c),
    where V = s (1 - s) and S is the variance of the noise.
    """
    share = held / len(vectors)
    spread = share * (1 - share)
    inner = spread * vectors.T @ vectors
    ridge = 1e-9 * max(float(np.trace(inner)) / len(inner), 1e-12)  # columns may repeat
    inner += np.diag(np.broadcast_to(variance, len(inner)) + ridge)
    solved = np.linalg.solve(inner, noisy - share * vectors.sum(axis=0))
    return share + spread * vectors @ solved


class RankOracle:
    """Values of a newcomer by its rank among held points, sorted by distance.

    Let a_1, ..., a_N be the matches of the held points, nearest first, with p of them before the
    copy, and let e be the number of copies (1, or 2 with a twin). The recursion of `nearest` gives
    the copy

        last + step_{p+e} (match - a_{p+1}) + sum_{j=p+1}^{N-1} step_{j+e} (a_j - a_{j+1}),

    or just its own `last` if all held points are nearer.
    """

    exact = True

    def __init__(self, points: Points, validation: Validation, k: int, utility: str) -> None:
        self.points, self.validation, self.k, self.utility = points, validation, k, utility
        rows, theirs = points.rows, validation.rows
        assert isinstance(rows, Rows) and theirs is not None  # noqa: S101, PT018 - has features
        keys = pair_table(rows, theirs, cosine=validation.metric == "cosine")
        self.order = np.argsort(keys, axis=0, kind="stable")  # nearest first, one column each
        ranked = np.take_along_axis(keys, self.order, axis=0)
        self.nearer, self.upto = (  # how many of all points are nearer, or no farther
            _ranks(ranked, keys, side) for side in ("left", "right")
        )

    def values(self, held: Integers, candidates: Integers, *, twin: bool = False) -> Floats:
        """One row per candidate, one column per validation point."""
        codes = self.points.codes[candidates]
        return self._values(held, codes, self.upto[candidates], 1 + twin)

    def strong_scores(self, held: Integers, candidates: Integers) -> Floats:
        """Score by two crafted points of another label, just to either side of the candidate.

        One is nearer to some validation points, the other to the rest. Their values differ only if
        some point lies between them. For each validation point that carries one of the two labels,
        they differ by (step_q - step_{q+1}), with q the rank of that point. This is 0 up to rank k,
        and not 0 beyond.
        """
        other = (self.points.codes[candidates] + 1) % len(self.validation.classes)
        before, behind = (
            self._values(held, other, reach[candidates], 1) for reach in (self.nearer, self.upto)
        )
        sides = np.where(np.arange(len(self.validation)) % 2, 1.0, -1.0)
        gap = np.abs((before - behind) @ sides)
        return np.where(gap > DUST, gap, 0.0)

    def _values(
        self, held: Integers, codes: NDArray[np.int32], reach: Integers, copies: int
    ) -> Floats:
        """The values of points with these class codes behind the first `reach` of all points."""
        n, columns = len(held), np.arange(len(self.validation))
        here = np.zeros(len(self.points), np.bool_)
        here[held] = True
        there = here[self.order]
        before = np.vstack([np.zeros_like(columns), np.cumsum(there, axis=0)])[reach, columns]
        nearest_first = self.order.T[there.T].reshape(len(columns), n).T
        matches = (self.points.codes[nearest_first] == self.validation.codes) * 1.0
        ours = (codes[:, None] == self.validation.codes) * 1.0
        inner = np.minimum(before, n - 1)
        steps = self._recursion(held, 0, copies).steps  # steps[i - 1] is step_i, of all classes
        falls = steps[copies : n - 1 + copies, None] * -np.diff(matches, axis=0)
        sums = np.vstack([np.cumsum(falls[::-1], axis=0)[::-1], np.zeros(len(columns))])
        jump = steps[inner + copies - 1] * (ours - matches[inner, columns])
        ends = self._ends(held, codes, np.where(before == n, ours, matches[-1]), copies)
        return np.where(before == n, ends, ends + jump + sums[inner, columns])

    def _ends(self, held: Integers, codes: NDArray[np.int32], last: Floats, copies: int) -> Floats:
        """The value of the farthest point, which matches where `last` is 1."""
        out, theirs = np.empty(last.shape), self.validation.codes
        for code in np.unique(codes):
            recursion = self._recursion(held, int(code), copies)
            mine = codes == code
            matching, lacking = recursion.last_match[theirs], recursion.last_other[theirs]
            out[mine] = np.where(last[mine] == 1, matching, lacking)
        return out

    def _recursion(self, held: Integers, code: int, copies: int) -> Recursion:
        """The recursion for the held points and this many copies of a point of this class."""
        sizes = np.bincount(self.points.codes[held], minlength=len(self.validation.classes))
        sizes[code] += copies
        return Recursion.of(sizes, self.k, self.utility)


def _ranks(ranked: Floats, keys: Floats, side: Literal["left", "right"]) -> Integers:
    pairs = zip(ranked.T, keys.T, strict=True)
    return np.array([np.searchsorted(column, sought, side) for column, sought in pairs]).T


@dataclass(frozen=True)
class CallOracle:
    """Any function's value of the last point, summed over the validation set: one column."""

    function: Callable[..., Any]
    X: Array
    y: Array
    validation: tuple[Any, Any]
    exact = True

    def values(self, held: Integers, candidates: Integers, *, twin: bool = False) -> Floats:
        """The values, from one call for each candidate."""
        found = []
        for candidate in candidates:
            rows = np.concatenate([held, [candidate] * (1 + twin)])
            values = self.function(self.X[rows], self.y[rows], *self.validation).values
            found.append([float(values[-1])])
        return np.array(found)

    def strong_scores(self, held: Integers, candidates: Integers) -> None:
        """Return None: nothing is known about the function."""
