"""What one point can move: enumerated, replayed, and by every kernel."""

from __future__ import annotations

import collections
import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import thresher as th
from thresher.errors import InputError
from thresher.inputs.checked_inputs import check_validation
from thresher.kernels.units import add_counts, add_squares
from thresher.privacy import Cells, Paper, Table
from thresher.privacy import contributions as contributions_module
from thresher.privacy.accountants import Budget
from thresher.privacy.certified import certified_bound
from thresher.privacy.contributions import Contributions, Units, clipped_weights
from thresher.privacy.design import Setting
from thresher.privacy.entry_weights import EntryWeights
from thresher.privacy.fitting import usual_bound
from thresher.privacy.names import read_owners
from thresher.privacy.noise import Seeded
from thresher.privacy.private_points import read_points
from thresher.privacy.public_rows import Public
from thresher.sides.ball_side import BallSide

NOISE = Seeded(0)
V = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
W = ["a", "b", "a", "b"]


def setting(metric="cosine", radius=0.5, unit="point", adjacency="add-remove", X_val=V, y_val=W):
    validation = check_validation(X_val, y_val, metric=metric, classes=["a", "b"])
    return Setting(BallSide(validation, radius), Budget(1.0, 1e-4), adjacency, unit)


def measured(design, X, y, owners=None):
    private = read_points(X, y, design.setting.validation)
    numbers = None if owners is None else np.array(owners)[private.where]
    units = Units.of(numbers, len(private))
    inside = Contributions(private.points, design.setting.side, units)
    return design.measure(inside, NOISE)


UNIVERSE = [((0.0, 1.0), "a"), ((1.0, 1.0), "b"), ((2.0, 1.0), "a"), ((1.0, -1.0), "b"),
            ((math.nan, 1.0), "a"), ((0.0, 0.0), "b"), ((1.0, 0.0), "c")]  # fmt: skip


def tables(design, rows, owners=None):
    X = [list(features) for features, _ in rows] or np.empty((0, 2))
    return measured(design, X, [label for _, label in rows], owners)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("bound", [1, 2, 4])
def test_no_point_moves_the_table_by_more_than_the_bound(metric, bound):
    """Every data set of up to three points of a universe, and every point of it removed."""
    radius = {"cosine": 0.9, "euclidean": 2.5}[metric]
    design = Table(bound=bound).design(setting(metric, radius=radius))
    limit, worst = bound * design.scale**2, 0
    for size in (1, 2, 3):
        for rows in itertools.combinations_with_replacement(UNIVERSE, size):
            whole = tables(design, rows)
            for gone in range(size):
                moved = whole - tables(design, rows[:gone] + rows[gone + 1 :])
                worst = max(worst, int((moved**2).sum()))
    assert worst <= limit
    assert worst > 0.9 * limit  # the bound is not a loose one


@pytest.mark.parametrize("bound", [1, 3])
def test_no_replaced_point_moves_the_table_by_more_than_the_bound(bound):
    design = Table(bound=bound).design(setting(radius=0.7))
    limit = design.length("replace-one") ** 2
    moves = [
        tables(design, [one]) - tables(design, [other])
        for one, other in itertools.product(UNIVERSE, repeat=2)
    ]
    assert max(int((moved**2).sum()) for moved in moves) <= limit


def test_no_owner_moves_the_table_by_more_than_the_bound():
    design = Table(bound=2).design(setting(radius=0.7, unit="owner"))
    limit = design.length("add-remove") ** 2
    for size in (1, 2, 3):
        for rows in itertools.combinations_with_replacement(UNIVERSE, size):
            others = [((1.0, 1.0), "a"), ((0.0, 1.0), "b")]
            whole = tables(design, [*rows, *others], [0] * size + [1, 2])
            moved = whole - tables(design, others, [1, 2])
            assert (moved**2).sum() <= limit


@pytest.mark.parametrize("unit", ["point", "owner"])
def test_a_unit_has_one_vote_among_the_cells(unit):
    design = Cells(cells=3).design(setting(unit=unit))
    for rows in itertools.combinations_with_replacement(UNIVERSE, 2):
        owners = [0, 0] if unit == "owner" else None
        moved = tables(design, rows, owners) - tables(design, [])
        votes = design.votes if unit == "owner" else 2
        assert np.abs(moved).sum() <= votes


@pytest.mark.parametrize(("counts", "square"), [("three", 3), ("disjoint", 1)])
def test_a_sampled_point_moves_the_counts_of_a_validation_point_by_the_sensitivity(counts, square):
    design = Paper(rate=0.999, counts=counts).design(setting(radius=0.7))
    everyone = Seeded(0)
    everyone.sample = lambda rate, size: np.ones(size, np.bool_)
    private = read_points([[1.0, 1.0]], ["a"], design.setting.validation)
    inside = Contributions(
        private.points, BallSide(design.setting.validation, 0.7), Units.of(None, len(private))
    )
    moved = design.measure(inside, everyone) / 16
    assert (moved**2).sum(axis=0).max() == square
    assert design.sensitivity == math.sqrt(square)


numbers = st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, math.nan, math.inf, 1e100, 1e-200])
points = st.lists(
    st.tuples(st.tuples(numbers, numbers), st.sampled_from(["a", "b", "c", None])), max_size=8
)


@pytest.mark.parametrize("mechanism", [Table(bound=2), Cells(cells=2)], ids=["table", "cells"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@given(rows=points, which=st.integers(0, 7))
@example(rows=[((1.0, 1.0), "a")] * 3, which=1)  # duplicates
@example(rows=[((0.0, 1.0), "b"), ((1.0, 1.0), "a")], which=0)  # distance 1, on the radius
@example(rows=[], which=0)
def test_replaying_an_adjacent_data_set_changes_the_noised_sum_and_nothing_else(
    mechanism, metric, rows, which
):
    """The same random tape on D and on D without a point."""
    less = rows[:which] + rows[which + 1 :]
    releases = [
        th.dp_tknn_shapley(
            [list(features) for features, _ in some] or np.empty((0, 2)),
            [label for _, label in some],
            V, W, epsilon=1, delta=1e-4, radius=1.0, metric=metric, mechanism=mechanism, seed=3,
        )
        for some in (rows, less)
    ]  # fmt: skip
    first, second = releases
    private = {"table_digest"}
    for name in first.record.keys() | second.record.keys():
        assert name in private or first.record[name] == second.record[name]
    moved = first.table - second.table
    gone = rows[which : which + 1]
    design = first._design
    np.testing.assert_array_equal(moved, tables(design, gone) - tables(design, []))
    if isinstance(mechanism, Table):
        assert (moved**2).sum() <= design.length("add-remove") ** 2
    else:
        assert np.abs(moved).sum() <= 1


@given(
    squares=st.lists(st.integers(0, 10**9), min_size=1, max_size=20),
    bound=st.integers(1, 5000) | st.integers(10**17, 10**40),
    scale=st.sampled_from([1, 64, 4096]),
)
def test_weights_are_the_largest_that_keep_the_bound(squares, bound, scale):
    weights = clipped_weights(np.array(squares), bound, scale)
    for weight, square in zip(weights.tolist(), squares, strict=True):
        assert 0 <= weight <= scale
        assert weight**2 * square <= bound * scale**2
        assert weight == scale or (weight + 1) ** 2 * square > bound * scale**2


@pytest.mark.parametrize("kernels", ["jit", "python"])
@pytest.mark.parametrize("owned", [False, True])
def test_kernels_add_up_what_units_move(kernels, owned, monkeypatch):
    if kernels == "python":
        monkeypatch.setattr(contributions_module, "add_squares", add_squares.py_func)
        monkeypatch.setattr(contributions_module, "add_counts", add_counts.py_func)
    random = np.random.default_rng(1)
    X, X_val = random.normal(size=(60, 3)), random.normal(size=(70, 3))
    y, y_val = random.integers(0, 3, 60), random.integers(0, 3, 70)
    validation = check_validation(X_val, y_val, metric="cosine", classes=[0, 1, 2])
    owners = random.integers(0, 9, 60) if owned else np.arange(60)
    inside = Contributions(
        read_points(X, y, validation).points, BallSide(validation, 0.5), Units.of(owners, 60)
    )
    near = (
        1 - (X @ X_val.T) / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(X_val, axis=1))
        <= 0.5
    )
    same = y[:, None] == y_val
    vectors = np.concatenate([near & same, near & ~same], axis=1).astype(int)
    sums = np.array([vectors[owners == owner].sum(0) for owner in np.unique(owners)])
    np.testing.assert_array_equal(inside.squares(), (sums**2).sum(1))
    often = random.integers(1, 9, 70)
    np.testing.assert_array_equal(inside.squares(often), sums**2 @ np.tile(often, 2))
    weights = np.arange(1, len(sums) + 1)
    np.testing.assert_array_equal(inside.counts(weights).ravel(), weights @ sums)


def test_bits_that_are_not_kept_give_the_same(monkeypatch):
    random = np.random.default_rng(1)
    X, X_val = random.normal(size=(50, 3)), random.normal(size=(1500, 3))
    validation = check_validation(X_val, X_val[:, 0] > 0, metric="cosine", classes=None)
    private = read_points(X, X[:, 0] > 0, validation)
    found = []
    for kept in (contributions_module.KEPT_BYTES, 0):
        monkeypatch.setattr(contributions_module, "KEPT_BYTES", kept)
        inside = Contributions(private.points, BallSide(validation, 0.5), Units.of(None, 50))
        found.append((inside.squares(), inside.counts(np.arange(50)), inside.near.kept != []))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert (found[0][2], found[1][2]) == (True, False)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("radius", [0.05, 0.3, 0.6])
def test_no_point_is_near_more_validation_points_than_certified(metric, radius):
    random = np.random.default_rng(5)
    X_val = random.normal(size=(80, 3))
    validation = check_validation(X_val, [0] * 80, metric=metric, classes=None)
    bound = certified_bound(validation, radius)
    tries = np.concatenate([random.normal(size=(20_000, 3)), X_val, X_val.mean(0)[None]])
    private = read_points(tries, [0] * len(tries), validation)
    inside = Contributions(
        private.points, BallSide(validation, radius), Units.of(None, len(private))
    )
    assert inside.squares().max() <= bound <= 80
    if radius == 0.05:
        assert bound < 40


def test_the_usual_bound_is_from_the_validation_set():
    X_val = np.random.default_rng(5).normal(size=(80, 3))
    validation = check_validation(X_val, [0] * 80, metric="cosine", classes=None)
    public = Public.of(validation, 0.5)
    unit = X_val / np.linalg.norm(X_val, axis=1)[:, None]
    near = unit @ unit.T >= 0.5
    alike = EntryWeights.alike(80)
    assert usual_bound(public, alike) == int(np.quantile(near.sum(1), 0.25))
    weighted = EntryWeights.by_density(public.near)
    assert usual_bound(public, weighted) == int(np.quantile(near @ weighted.squares, 0.25))


def test_rows_that_cannot_be_used_count_for_nothing():
    validation = check_validation(V, W, metric="cosine", classes=None)
    X = [[math.nan, 1], [0, 0], [1e100, 1], [1, 1], [1, 1], [1, 1]]
    private = read_points(X, ["a", "a", "a", "b", None, ["list"]], validation)
    assert private.where.tolist() == [3]
    assert private.total == 6
    np.testing.assert_array_equal(private.in_input_order(np.ones(1)), [0, 0, 0, 1, 0, 0])


BAD = [[math.nan, 1], [None, 1], ["1", 2], [1j, 1], [2**2000, 1], [1], [1, 2, 3], "ab", None, 7]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_row_of_a_list_changes_no_other(bad):
    validation = check_validation(V, W, metric="cosine", classes=None)
    good = [[1, 2], [2**60, 1], [0.5, 0.25]]
    alone = read_points(good, ["a", "b", "a"], validation)
    found = read_points([*good[:1], bad, *good[1:]], ["a", "a", "b", "a"], validation)
    assert found.where.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(found.points.rows.array, alone.points.rows.array)


@pytest.mark.parametrize("odd", [None, 0.5, "x", ("a",), ["l"], {}, math.nan, 2**70])
@pytest.mark.parametrize("kind", [list, tuple, collections.deque])
def test_a_bad_label_changes_no_other(odd, kind):
    validation = check_validation(V, [1, 0, 1, 0], metric="cosine", classes=None)
    found = read_points([[1, 2]] * 4, kind([0, 1, odd, 1]), validation)
    assert found.where.tolist() == [0, 1, 3]
    assert found.points.codes.tolist() == [0, 1, 1]


def test_masked_and_null_entries_cannot_be_used():
    validation = check_validation(V, W, metric="cosine", classes=None)
    masked = np.ma.MaskedArray([[1.0, 2.0]] * 3, mask=[[0, 0], [1, 0], [0, 0]])
    labels = np.ma.MaskedArray(["a", "b", "a"], mask=[0, 0, 1])
    assert read_points(masked, labels, validation).where.tolist() == [0]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"p": [1, 2, None], "q": [1, 2**60, 3]}).astype("Int64")
    assert read_points(frame, ["a", "b", "a"], validation).where.tolist() == [0, 1]


def test_owners_that_are_missing_or_no_names_are_none():
    found = read_owners(["a", None, math.nan, ["list"], 3])
    assert found == ("a", None, None, None, 3)


@pytest.mark.parametrize(("labels", "kind"), [(np.array(["0", "1"]), int), (np.array([0, 1]), str)])
def test_an_array_of_another_kind_of_labels_is_refused(labels, kind):
    validation = check_validation(V, [kind(i % 2) for i in range(4)], metric="cosine", classes=None)
    with pytest.raises(
        InputError, match="y holds (text|numbers), judging by its type.* use one kind for both"
    ):
        read_points([[1, 2]] * 2, labels, validation)


@pytest.mark.parametrize(
    "X", [np.array([["1", "2"]]), np.array([[1j, 2]])], ids=["text", "complex"]
)
def test_an_array_of_no_numbers_is_refused(X):
    validation = check_validation(V, W, metric="cosine", classes=None)
    with pytest.raises(InputError, match="X must hold real numbers, got dtype"):
        read_points(X, ["a"], validation)


def test_shapes_are_refused():
    validation = check_validation(V, W, metric="cosine", classes=None)
    with pytest.raises(InputError, match="X has 3 features but X_val has 2"):
        read_points(np.ones((1, 3)), ["a"], validation)
    with pytest.raises(InputError, match="y has 2 labels but X has 1 rows"):
        read_points([[1, 2]], ["a", "b"], validation)
