"""The walk knows no ball, no class and no formula: two other games run on it as it is."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from oracles import semivalues

from thresher.games.classes import ClassGame
from thresher.games.semivalues import rest_prices
from thresher.inputs.checked_inputs import Points, check_pair
from thresher.metrics import measure
from thresher.neighbors.ball import Ball
from thresher.neighbors.groups import Groups
from thresher.passes.walk import count, count_and_value, value

# --- near = in the same cell of a grid, as in the leaf of a tree; several judges share a cell


@dataclass(frozen=True)
class CellBlock:
    """All cells at once, one integer a point."""

    columns: slice
    cell_of: np.ndarray  # of the points as they are laid out

    def count(self, segments):
        size = self.columns.stop
        return np.array(
            [np.bincount(self.cell_of[lo:hi], minlength=size) for lo, hi, _ in segments]
        )

    def add(self, segments, weights, out):
        for (lo, hi, _), row in zip(segments, weights):
            out[lo:hi] += row[self.cell_of[lo:hi]]


@dataclass(frozen=True)
class Grid:
    """Cells of a fixed width along one axis."""

    cells: int

    def blocks(self, rows, groups, advance=None):
        cell_of = np.empty(len(rows), np.int64)
        cell_of[groups.positions] = np.clip(np.floor(rows[:, 0]), 0, self.cells - 1).astype(int)
        yield CellBlock(slice(0, self.cells), cell_of)


@dataclass(frozen=True)
class LeafGame:
    """A cell keeps a count for each class, and pays for all the judges that lie in it."""

    judges: np.ndarray  # classes x cells: how many judges of each label
    entries: int

    def groups(self, codes):
        return Groups.of(codes, self.entries)

    def sums(self, block, groups):
        segments = groups.segments(np.arange(self.entries))
        found = np.zeros((self.entries, block.columns.stop), np.int64)
        found[[code for _, _, code in segments]] = block.count(segments)
        return found

    def prices(self, sums, columns):
        """For a member of each class: the sum over the judges of what each would pay."""
        paid = np.zeros(sums.shape)
        for own, asked in product(range(self.entries), repeat=2):
            rest = sums.copy()
            rest[own] = np.maximum(rest[own] - 1, 0)
            same = rest[asked]
            prices = rest_prices(same, rest.sum(axis=0) - same, self.entries, "shapley")
            paid[own] += self.judges[asked] * prices[0 if own == asked else 1]
        return paid

    def pay(self, block, groups, prices, out):
        segments = groups.segments(np.arange(self.entries))
        block.add(segments, prices[[code for _, _, code in segments]], out)


@pytest.mark.parametrize("seed", range(6))
def test_cells_of_a_grid_are_leaves(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(0, 3, (7, 1)), rng.integers(0, 3, 7).astype(np.int32)
    asked, labels = rng.uniform(0, 3, 9).astype(int), rng.integers(0, 3, 9)
    judges = np.zeros((3, 3), np.int64)
    np.add.at(judges, (labels, asked), 1)
    near, game, points = Grid(3), LeafGame(judges, 3), Points(X, y)
    where = X[:, 0].astype(int)

    def utility(coalition):
        total = Fraction(0)
        for cell, label in zip(asked, labels):
            inside = [i for i in coalition if where[i] == cell]
            agree = sum(int(y[i] == label) for i in inside)
            total += Fraction(agree, len(inside)) if inside else Fraction(1, 3)
        return total

    table, values = count_and_value(points, near, game)
    np.testing.assert_allclose(values, semivalues(utility, 7), atol=1e-13)
    check_in_parts(points, near, game, table, values)


# --- near = in one of two rings, an inner one that weighs 1 and an outer one that weighs less


@dataclass(frozen=True)
class RingBlock:
    columns: slice
    rings: tuple

    def count(self, segments):
        inner, outer = (ring.count(segments) for ring in self.rings)
        return np.array([inner, outer - inner])

    def add(self, segments, weights, out):
        """A point of the inner ring is in both balls: the outer one pays what the inner does not."""
        inner, outer = self.rings
        inner.add(segments, weights[0] - weights[1], out)
        outer.add(segments, weights[1], out)


@dataclass(frozen=True)
class Rings:
    inner: Ball
    outer: Ball

    @property
    def cells(self):
        return self.outer.cells

    def blocks(self, rows, groups, advance=None):
        pairs = zip(self.inner.blocks(rows, groups), self.outer.blocks(rows, groups), strict=True)
        for pair in pairs:
            yield RingBlock(pair[0].columns, pair)


@dataclass(frozen=True)
class RingGame:
    """Weighted shares of two classes: entries are ring x (same, other)."""

    judges: np.ndarray
    weights: tuple[Fraction, Fraction]
    entries: int = 4

    def groups(self, codes):
        return Groups.of(codes, 2)

    def _segments(self, block, groups):
        return groups.segments(np.arange(2)), self.judges[block.columns]

    def sums(self, block, groups):
        segments, judges = self._segments(block, groups)
        counts = np.zeros((2, 2, len(judges)), np.int64)  # class x ring x cell
        for (_, _, code), row in zip(segments, block.count(segments).swapaxes(0, 1)):
            counts[code] = row
        each = np.arange(len(judges))
        same, other = counts[judges, :, each].T, counts[1 - judges, :, each].T
        return np.array([same[0], other[0], same[1], other[1]])

    def prices(self, sums, columns):
        return np.array(
            [[float(self._price(column, kind)) for column in sums.T] for kind in range(4)]
        )

    def _price(self, counts, kind):
        """Shapley value of one member of a kind, over how many of each kind came before it."""
        if not counts[kind]:
            return Fraction(0)
        rest = [int(n) - (kind == k) for k, n in enumerate(counts)]
        players, total = sum(rest) + 1, Fraction(0)
        for came in product(*(range(n + 1) for n in rest)):
            ways = np.prod([comb(n, c) for n, c in zip(rest, came)], dtype=object)
            size, after = sum(came), [c + (kind == k) for k, c in enumerate(came)]
            total += (
                ways
                * (self._share(after) - self._share(came))
                / (players * comb(players - 1, size))
            )
        return total

    def _share(self, came):
        mass = [c * self.weights[k // 2] for k, c in enumerate(came)]
        return Fraction(mass[0] + mass[2], sum(mass)) if any(came) else Fraction(1, 2)

    def pay(self, block, groups, prices, out):
        segments, judges = self._segments(block, groups)
        rings = [
            [
                np.where(judges == code, prices[2 * ring], prices[2 * ring + 1])
                for _, _, code in segments
            ]
            for ring in range(2)
        ]
        block.add(segments, np.array(rings), out)


@pytest.mark.parametrize("seed", range(6))
def test_two_rings_are_a_kernel(seed):
    rng = np.random.default_rng(seed)
    X, V = rng.uniform(0, 2, (7, 1)), rng.uniform(0, 2, (5, 1))
    y, asked = rng.integers(0, 2, 7).astype(np.int32), rng.integers(0, 2, 5)
    rows, weights = measure("V", V, cosine=False), (Fraction(1), Fraction(1, 3))
    near = Rings(*(Ball(rows, 5, "euclidean", radius) for radius in (0.4, 0.9)))
    points, game = Points(measure("X", X, cosine=False), y), RingGame(asked, weights)
    distance = np.abs(X - V.T)

    def utility(coalition):
        total = Fraction(0)
        for v in range(5):
            inside = [
                (i, weights[int(distance[i, v] > 0.4)]) for i in coalition if distance[i, v] <= 0.9
            ]
            mass = sum(w for _, w in inside)
            agree = sum(w for i, w in inside if y[i] == asked[v])
            total += Fraction(agree, mass) if inside else Fraction(1, 2)
        return total

    table, values = count_and_value(points, near, game)
    np.testing.assert_allclose(values, semivalues(utility, 7), atol=1e-13)
    check_in_parts(points, near, game, table, values, exact=False)


def check_in_parts(points, near, game, table, values, *, exact=True):
    """Parts add up to the same table, and each gets its own values from the prices of all."""
    rows, codes = points.rows, points.codes
    pieces = [slice(0, 3), slice(3, 4), slice(4, 7)]
    parts = [Points(_cut(rows, piece), codes[piece]) for piece in pieces]
    assert (sum(count(part, near, game) for part in parts) == table).all()
    prices = game.prices(table, slice(None))
    found = np.concatenate([value(part, near, game, prices) for part in parts])
    np.testing.assert_array_equal(found, values) if exact else np.testing.assert_allclose(
        found, values, atol=1e-14
    )


def _cut(rows, piece):
    return (
        rows[piece]
        if isinstance(rows, np.ndarray)
        else type(rows)(rows.array[piece], rows.squares[piece])
    )


# --- the usual game


def test_counting_and_paying_apart_gives_the_bits_of_both_at_once(rng):
    X, V = rng.standard_normal((500, 4)), rng.standard_normal((700, 4))
    y, y_val = rng.integers(0, 3, 500), rng.integers(0, 3, 700)
    points, validation = check_pair(X, y, V, y_val, metric="euclidean", classes=None)
    near, game = Ball.around(validation, 1.5), ClassGame.of(validation)
    table, values = count_and_value(points, near, game)
    assert (count(points, near, game) == table).all()
    assert value(points, near, game, game.prices(table, slice(None))).tobytes() == values.tobytes()


def test_sums_go_on_where_earlier_cells_ended(rng):
    X, V = rng.standard_normal((300, 4)), rng.standard_normal((192, 4))
    y, y_val = rng.integers(0, 3, 300), rng.integers(0, 3, 192)
    points, validation = check_pair(X, y, V, y_val, metric="euclidean", classes=None)
    near, game = Ball.around(validation, 1.5), ClassGame.of(validation)
    table, values = count_and_value(points, near, game, divisor=192)
    before = None
    for lo in (0, 64, 128):
        some = slice(lo, lo + 64)
        rows = measure("V", V[some], cosine=False)
        before = value(
            points, Ball(rows, 64, "euclidean", 1.5), ClassGame(validation.codes[some], 3),
            game.prices(table, slice(None))[:, some], before=before, divisor=192 if lo == 128 else 1,
        )  # fmt: skip
    assert before.tobytes() == values.tobytes()
