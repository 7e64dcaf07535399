"""Releases that protect owners: what one point of an owner, or one owner, can move."""

from __future__ import annotations

import collections
import itertools
import json

import numpy as np
import pytest
from releases import release

import thresher as th
from thresher.errors import InputError
from thresher.inputs.checked_inputs import check_validation
from thresher.kernels.units import LONGEST, add_products, add_squares
from thresher.privacy import Cells, Table
from thresher.privacy.accountants import Budget
from thresher.privacy.contributions import Contributions, Units, clipped_weights
from thresher.privacy.design import OWNER_SCALE, Setting
from thresher.privacy.noise import Seeded
from thresher.privacy.private_points import read_points
from thresher.privacy.reopened import reopen
from thresher.sides.ball_side import BallSide

# Validation points on a line, in clusters that one point each is near: of 1, 3 and 12 points.
SIZES = {0.0: 1, 100.0: 3, 200.0: 12}
PLACES = [place for place, size in SIZES.items() for _ in range(size)]
POINTS = [(place, label) for place in SIZES for label in "ab"] + [(0.0, "not a class")]


def design(mechanism, places=PLACES):
    labels = ["a"] * (len(places) - 1) + ["b"]
    rows = np.array(places)[:, None]
    validation = check_validation(rows, labels, metric="euclidean", classes=["a", "b"])
    return mechanism.design(
        Setting(BallSide(validation, 1.0), Budget(1.0, 1e-4), "add-remove", "owner")
    )


def measured(found, owned):
    """The exact table of points (place, label), each with its owner."""
    rows = np.array([place for (place, _), _ in owned]).reshape(-1, 1)
    validation = found.setting.validation
    private = read_points(rows, [label for (_, label), _ in owned], validation)
    owners = np.array([owner for _, owner in owned], np.int64)[private.where]
    units = Units.of(owners, len(private))
    inside = Contributions(private.points, found.setting.side, units)
    return found.measure(inside, Seeded(0))


def adjacent_moves(found, most):
    """The moves of every adjacent pair of data sets of up to `most` points with two owners.

    Yields the adjacency, the owner of the point on either side, and the difference of the tables.
    """
    universe = list(itertools.product(POINTS, (0, 1)))
    ways = itertools.combinations_with_replacement
    tables = {
        chosen: measured(found, [universe[which] for which in chosen])
        for size in range(most + 1)
        for chosen in ways(range(len(universe)), size)
    }
    for rest in (chosen for chosen in tables if len(chosen) < most):
        for one in range(len(universe)):
            table = tables[tuple(sorted((*rest, one)))]
            yield "add-remove", None, table - tables[rest]
            for other in range(one):
                owners = universe[one][1], universe[other][1]
                replaced = tables[tuple(sorted((*rest, other)))]
                yield "replace-one", owners, table - replaced


@pytest.mark.parametrize("bound", [1, 4])
def test_a_point_of_an_owner_moves_the_table_by_no_more_than_is_charged(bound):
    """Every adjacent pair of up to three points; the replaced point may get another owner."""
    found, worst = design(Table(bound=bound, prior=False)), collections.Counter()
    for adjacency, owners, moved in adjacent_moves(found, 3):
        changed = owners is not None and owners[0] != owners[1]
        square = int((moved**2).sum())
        worst[adjacency, changed] = max(worst[adjacency, changed], square)
    unit = bound * OWNER_SCALE**2
    for (adjacency, _), square in worst.items():
        assert square <= found.length(adjacency, "point") ** 2 * (1 + 1e-12)
    assert worst["add-remove", False] <= 2 * unit
    assert worst["replace-one", False] <= 2 * unit
    assert worst["replace-one", True] > 2 * unit  # more than replacing one owner moves


def test_the_worst_replacement_nearly_moves_what_is_charged():
    """T9 is tight: owner 0 loses its large point, and owner 1 gets a copy of the one that is left."""
    sizes = {0.0: 1, 100.0: 40, 200.0: 1600}
    found = design(
        Table(bound=1, prior=False), [p for p, size in sizes.items() for _ in range(size)]
    )
    small, middle, large = ((place, "a") for place in sizes)
    before = measured(found, [(middle, 0), (large, 0), (small, 1)])
    after = measured(found, [(middle, 0), (middle, 1), (small, 1)])
    square = int(((after - before) ** 2).sum()) / OWNER_SCALE**2
    assert 5 < square <= 6


def test_no_replacement_that_was_searched_for_moves_more_than_is_charged():
    """Random owners v and u, and points a and b, on blocks of equal coordinates of many sizes."""
    random, cases, blocks = np.random.default_rng(0), 200_000, 5
    sizes = np.rint(10 ** random.uniform(0, 7, (cases, blocks))).astype(np.int64)
    sizes *= random.random((cases, blocks)) < 0.8
    v, u = random.integers(0, 3, (2, cases, blocks)) * (random.random((2, cases, blocks)) < 0.5)
    a, b = (random.random((2, cases, blocks)) < 0.5).astype(np.int64)
    worst = 0.0
    for bound in (1, 30, 1000):
        parts = [(v, 1), (u + b, 1), (v + a, -1), (u, -1)]
        moved = np.zeros((cases, blocks), np.int64)
        for part, sign in parts:
            weights = clipped_weights((sizes * part**2).sum(axis=1), bound, OWNER_SCALE)
            moved += sign * weights[:, None] * part
        squares = (sizes * moved**2).sum(axis=1)
        assert squares.max() <= 6 * bound * OWNER_SCALE**2
        worst = max(worst, squares.max() / (bound * OWNER_SCALE**2))
    assert worst > 5.5


def test_a_point_of_an_owner_moves_no_more_votes_than_the_owner_has():
    found = design(Cells(cells=3))
    worst = collections.Counter()
    for adjacency, _, moved in adjacent_moves(found, 3):
        worst[adjacency] = max(worst[adjacency], int(np.abs(moved).sum()))
    assert worst == {"add-remove": found.votes, "replace-one": 2 * found.votes}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("mechanism", ["table", "cells"])
def test_a_ledger_of_points_is_charged_for_owners_what_a_point_can_move(
    tmp_path, mechanism, adjacency
):
    pytest.importorskip("opendp")
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=5, delta=1e-3, adjacency=adjacency)
    made = release(
        epsilon=0.5, ledger=ledger, seed=None, owners=np.arange(800) // 2, points_per_owner=2,
        mechanism=mechanism,
    )  # fmt: skip
    used, known = made._design, ledger.spent().mu_squared
    assert known == pytest.approx(used.cost(adjacency, "point", "gaussian").mu_squared, rel=1e-9)
    owners = used.cost("add-remove", "owner", "gaussian").mu_squared
    times = {"table": {"add-remove": 2, "replace-one": 6}}.get(mechanism, {"add-remove": 1})
    if adjacency in times:
        assert known == pytest.approx(times[adjacency] * owners, rel=1e-6)


def test_the_record_of_owners_says_what_holds_for_a_point_too():
    record = release(owners=np.arange(800) // 2, points_per_owner=2).record
    assert record["epsilon_add_remove"] == 1.0
    assert record["epsilon_replace_one"] == pytest.approx(1.482, abs=2e-3)
    assert record["epsilon_add_remove_point"] == record["epsilon_replace_one"]
    assert 2.5 < record["epsilon_replace_one_point"] < 3.0
    assert "epsilon_add_remove_point" not in release().record


# Lengths beyond 64 bits


@pytest.mark.parametrize("kernel", [add_squares, add_squares.py_func], ids=["jit", "python"])
@pytest.mark.parametrize("start", [0, LONGEST - 9, LONGEST - 8, LONGEST - 7, LONGEST])
def test_a_squared_length_stops_where_it_would_wrap(kernel, start):
    """An owner of two points near one validation point, and one of two that it is near."""
    words = np.array([[0b01], [0b11]], np.uint32)
    masks, codes = np.full((1, 1), 0xFFFFFFFF, np.uint32), np.zeros(2, np.int32)
    for times, each in (([1, 1], 5), ([2, 1], 9), ([0, 1], 1), ([2**62, 1], 2**64 + 1)):
        squares, often = np.array([start]), np.zeros(32, np.int64)
        often[:2] = times
        for _ in range(2):  # as in two blocks; 2^2 and 1, as often as it says
            kernel(words, masks, codes, np.arange(2), np.array([0, 2]), often, squares)
        assert squares.tolist() == [min(int(start) + 2 * each, int(LONGEST))]


@pytest.mark.parametrize("kernel", [add_products, add_products.py_func], ids=["jit", "python"])
def test_products_stop_where_they_would_wrap(kernel):
    found = np.zeros(3, np.int64)
    squares, times = np.array([2**26, 2**26, 2**62, 7, 9]), np.array([2**36, 2**38, 1, 0, 1])
    kernel(np.array([0, 1, 0, 2, 2]), squares, times, found)
    assert found.tolist() == [int(LONGEST), int(LONGEST), 9]  # 2^63, 2^64, 9
    kernel(np.array([1]), np.array([1]), np.array([1]), found)
    assert found[1] == LONGEST


def test_a_length_that_is_too_long_or_has_wrapped_counts_for_nothing():
    lengths = np.array([-5, -(2**63), LONGEST])
    for bound in (1, 4, 2**40, 10**40):
        for scale in (1, 64, 4096):
            assert clipped_weights(lengths, bound, scale).tolist() == [0, 0, 0]


@pytest.mark.parametrize("bound", [1, 2**37, 2**38, 2**39, 2**51, 2**63, 10**30])
@pytest.mark.parametrize("scale", [1, 64, 4096])
def test_weights_at_the_ends_of_64_bits_keep_the_bound(bound, scale):
    squares = sorted({max(0, 2**power + off) for power in range(30, 63) for off in (-1, 0, 1)})
    squares += [int(LONGEST) - 1]
    weights = clipped_weights(np.array(squares), bound, scale).tolist()
    for weight, square in zip(weights, squares, strict=True):
        assert weight**2 * square <= bound * scale**2
        assert weight == scale or (weight + 1) ** 2 * square > bound * scale**2
    assert weights == sorted(weights, reverse=True)  # what T9 rests on


def test_noise_that_could_wrap_is_refused_before_anything_is_charged(tmp_path):
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=2, delta=1e-4)
    with pytest.raises(InputError, match="the noise would have sigma=.* a smaller bound"):
        release(mechanism=Table(bound=10**30), ledger=ledger, seed=None)
    assert len(ledger) == 0


def test_a_reopened_release_values_no_point_without_an_owner():
    rng = np.random.default_rng(3)
    X, X_val = rng.normal(size=(60, 2)), rng.normal(size=(40, 2))
    y, y_val = X[:, 0] > 0, X_val[:, 0] > 0
    owners = [None if i % 7 == 0 else i % 5 for i in range(60)]
    released = th.dp_tknn_shapley(
        X, y, X_val, y_val, epsilon=2, delta=1e-4, seed=0, owners=owners, points_per_owner=10
    )
    again = reopen(json.loads(released.to_json()), X, y, X_val, y_val, owners=owners)
    np.testing.assert_array_equal(again.values, released.values)
    assert not again.values[::7].any()
    assert again.unusable == released.unusable
