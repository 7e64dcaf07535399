from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher as th

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", th.Beta(2, 3)]
pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


def make(seed, n=40, m=12, classes=3):
    rng = np.random.default_rng(seed)
    X, V = rng.integers(-2, 3, (n, 2)) + 0.5, rng.integers(-2, 3, (m, 2)) + 0.5
    return X, rng.integers(0, classes, n), V, rng.integers(0, classes, m)


def fresh(X, y, V, y_val, semivalue):
    return th.tknn_shapley(X, y, V, y_val, semivalue=semivalue, classes=[0, 1, 2]).values


@given(seed=st.integers(0, 100), semivalue=st.sampled_from(SEMIVALUES))
def test_members_get_the_values_of_the_whole(seed, semivalue):
    X, y, V, y_val = make(seed)
    prices = th.NeighborCounts(V, y_val, classes=[0, 1, 2]).add(X, y).price_list(semivalue)
    assert prices.values(X, y).tobytes() == fresh(X, y, V, y_val, semivalue).tobytes()
    assert prices.values(X[7:9], y[7:9]).tobytes() == prices.values(X, y)[7:9].tobytes()


@given(seed=st.integers(0, 60), label=st.integers(0, 2), semivalue=st.sampled_from(SEMIVALUES))
def test_a_member_under_another_label_is_worth_what_relabeling_it_makes_it_worth(
    seed, label, semivalue
):
    X, y, V, y_val = make(seed, n=15)
    prices = th.NeighborCounts(V, y_val, classes=[0, 1, 2]).add(X, y).price_list(semivalue)
    got = prices.values(X, y, label=label)
    table = prices.label_values(X, y)
    np.testing.assert_array_equal(table[:, label], got)
    for i in range(0, 15, 4):
        relabeled = y.copy()
        relabeled[i] = label
        want = fresh(X, relabeled, V, y_val, semivalue)[i]
        np.testing.assert_allclose(got[i], want, atol=1e-13)


@given(seed=st.integers(0, 60), label=st.integers(0, 2), semivalue=st.sampled_from(SEMIVALUES))
def test_a_newcomer_is_worth_what_adding_it_makes_it_worth(seed, label, semivalue):
    X, y, V, y_val = make(seed, n=15)
    new = make(seed + 1000, n=4)[0]
    prices = th.NeighborCounts(V, y_val, classes=[0, 1, 2]).add(X, y).price_list(semivalue)
    got = prices.newcomer_values(new, label)
    np.testing.assert_array_equal(got, prices.newcomer_values(new, [label] * 4))
    np.testing.assert_array_equal(got, prices.label_values(new)[:, label])
    for i in range(4):
        X2, y2 = np.concatenate([X, new[i : i + 1]]), np.append(y, label)
        np.testing.assert_allclose(got[i], fresh(X2, y2, V, y_val, semivalue)[-1], atol=1e-13)


class Animal(Enum):
    CAT = "cat"
    DOG = "dog"


@pytest.mark.parametrize(
    "pair",
    [
        (("a", 1), ("b", 2)),
        (date(2020, 1, 1), date(2020, 1, 2)),
        (Decimal("1.5"), Decimal(2)),
        tuple(Animal),
        (b"a", b"b"),
        (None.__class__, 3),
    ],
    ids=lambda pair: type(pair[0]).__name__,
)
def test_labels_of_any_kind_are_priced_with_and_without_y(pair):
    X, y, V, y_val = make(4, classes=2)
    prices, want = (
        th.NeighborCounts(V, [names[i] for i in y_val], classes=list(names))
        .add(X, [names[i] for i in y])
        .price_list()
        for names in (pair, (0, 1))
    )
    np.testing.assert_array_equal(prices.label_values(X), want.label_values(X))
    labels = [pair[i] for i in y]
    np.testing.assert_array_equal(prices.label_values(X, labels), want.label_values(X, y))
    np.testing.assert_array_equal(
        prices.values(X, labels, label=pair[1]), want.values(X, y, label=1)
    )
    np.testing.assert_array_equal(
        prices.newcomer_values(X, [pair[1]] * len(X)), want.newcomer_values(X, 1)
    )
    if not isinstance(pair[1], tuple):  # which might as well be the labels of two rows
        np.testing.assert_array_equal(
            prices.newcomer_values(X, pair[1]), want.newcomer_values(X, 1)
        )


def test_newcomers_may_be_distances_in_blocks(rng):
    D, y, y_val = rng.random((30, 100)), rng.integers(0, 2, 30), rng.integers(0, 2, 100)
    counts = th.NeighborCounts(None, y_val, metric="precomputed", classes=[0, 1])
    prices = counts.add(D, y).price_list()
    blocks = [D[:, :7], D[:, 7:]]
    np.testing.assert_array_equal(prices.label_values(blocks), prices.label_values(D))
    np.testing.assert_array_equal(prices.newcomer_values(blocks, 1), prices.newcomer_values(D, 1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_saved_list_prices_to_the_same_bits(dtype, tmp_path):
    X, y, V, y_val = make(3)
    names = np.array(["cat", "dog", "émeu"])
    counts = th.NeighborCounts(V.astype(dtype), names[y_val], classes=list(names)).add(X, names[y])
    prices = counts.price_list(th.Beta(3, 0.5))
    prices.save(tmp_path / "prices.json")
    again = th.PriceList.load(tmp_path / "prices.json")
    assert repr(again) == repr(prices)
    assert again.values(X, names[y]).tobytes() == prices.values(X, names[y]).tobytes()
    assert again.newcomer_values(X, "dog").tobytes() == prices.newcomer_values(X, "dog").tobytes()


def test_a_saved_list_of_precomputed_distances_comes_back(tmp_path, rng):
    D, y, y_val = rng.random((30, 8)), rng.integers(0, 2, 30), rng.integers(0, 2, 8)
    counts = th.NeighborCounts(None, y_val, radius=0.5, metric="precomputed", classes=[0, 1])
    prices = counts.add(D, y).price_list()
    prices.save(tmp_path / "prices.json")
    again = th.PriceList.load(tmp_path / "prices.json")
    assert again.values(D, y).tobytes() == prices.values(D, y).tobytes()


def test_every_validation_point_publishes_a_gain_and_a_loss():
    X, y, V, y_val = make(5)
    prices = th.NeighborCounts(V, y_val, classes=[0, 1, 2]).add(X, y).price_list()
    assert (prices.gain > 0).all()
    assert (prices.loss < 0).all()
    with pytest.raises(ValueError, match="read-only"):
        prices.gain[0] = 1


def test_wrong_points_are_refused():
    X, y, V, y_val = make(5)
    prices = th.NeighborCounts(V, y_val, classes=[0, 1, 2]).add(X, y).price_list()
    with pytest.raises(th.InputError, match="X has 1 feature but X_val has 2"):
        prices.values(X[:, :1], y)
    with pytest.raises(
        th.InputError, match=r"y has labels that the price list does not know in rows 0, 1, .* as 9"
    ):
        prices.newcomer_values(X, 9)
    with pytest.raises(th.InputError, match="label has labels that the price list does not know"):
        prices.values(X, y, label="x")


def test_labels_that_a_list_does_not_know_are_refused_with_what_is_possible():
    counts = th.NeighborCounts([[0.0, 1.0], [1.0, 0.0]], ["car", "train"])
    prices = counts.add([[0.1, 1.0]], ["car"]).price_list()
    X = [[0.0, 1.0], [1.0, 0.0]]
    said = (
        "^y has labels that the price list does not know in row 1, such as 'bus': it knows 'car', "
        "'train'; leave those rows out, or ask for a release whose validation set or classes= has "
        "these labels$"
    )
    for refused in (prices.values, prices.newcomer_values, prices.label_values):
        with pytest.raises(th.InputError, match=said):
            refused(X, ["car", "bus"])
    with pytest.raises(th.InputError, match="^label has labels that the price list does not know"):
        prices.values(X, ["car", "train"], label="bus")
    of_numbers = th.NeighborCounts(X, [0, 1], classes=[0, 1, 2]).add(X, [0, 1]).price_list()
    with pytest.raises(th.InputError, match="such as 7: it knows 0, 1, 2;"):
        of_numbers.newcomer_values(X, np.array([7, 7]))
