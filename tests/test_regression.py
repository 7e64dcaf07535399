"""Numbers as targets: values by their definition, outside agreement, bad input."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import coalition_weight, semivalues
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor

import thresher as th
from thresher.games.moments import moments
from thresher.games.targets import TargetGame, sums_of
from thresher.inputs.grids import Grid
from thresher.passes import checkpoint as resume
from thresher.passes.memory import Account

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")

EVERY = ["shapley", "banzhaf", "leave-one-out", ("beta", 4, 1), ("beta", 0.3, 2.5)]
EMPTY = 0.5


def named(semivalue):
    return th.Beta(*semivalue[1:]) if isinstance(semivalue, tuple) else semivalue


def problem(seed=0, points=7, validation=5, width=2):
    """Targets are multiples of 1/8, which every grid holds."""
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(points, width)), rng.normal(size=(validation, width))
    return X, rng.integers(-64, 65, points) / 8, V, rng.integers(-64, 65, validation) / 8


def near_utility(near, y, t):
    def utility(coalition):
        targets = [y[i] for i in coalition if near[i]]
        return -(((np.mean(targets) if targets else EMPTY) - t) ** 2)

    return utility


def assert_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * max(1.0, abs(wanted).max()))


# Within a radius


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(seed=st.integers(0, 2**16), points=st.integers(1, 6), radius=st.floats(0.3, 4))
@settings(max_examples=10, deadline=None)
def test_radius_values_equal_enumeration_of_all_coalitions(semivalue, seed, points, radius):
    X, y, V, y_val = problem(seed, points, 4)
    wanted = np.zeros(len(X))
    for v, t in zip(V, y_val):
        near = np.sqrt(((X - v) ** 2).sum(axis=1)) <= radius
        wanted += semivalues(near_utility(near, y, t), len(X), semivalue)
    about = {"metric": "euclidean", "radius": radius, "task": "regression", "empty": EMPTY}
    found = th.tknn_shapley(X, y, V, y_val, semivalue=named(semivalue), **about)
    assert_close(found.values, wanted)
    tree = th.tknn_shapley(X, y, V, y_val, semivalue=named(semivalue), neighbors="tree", **about)
    assert tree.values.tolist() == found.values.tolist()


def test_points_that_judge_each_other_are_left_out_of_their_own_game():
    X, y, _, _ = problem(points=6)
    wanted = np.zeros(len(X))
    for j in range(len(X)):
        near = np.sqrt(((X - X[j]) ** 2).sum(axis=1)) <= 1.5
        near[j] = False
        wanted += semivalues(near_utility(near, y, y[j]), len(X))
    about = {"metric": "euclidean", "radius": 1.5, "task": "regression", "empty": EMPTY}
    assert_close(th.tknn_shapley(X, y, **about).values, wanted)


def test_values_add_up_and_utilities_are_those_of_scikit_learn():
    X, y, V, y_val = problem(points=300, validation=70, width=3)
    about = {"metric": "euclidean", "task": "regression"}
    found = th.tknn_shapley(X, y, V, y_val, radius=1.2, mean=True, **about)
    model = RadiusNeighborsRegressor(radius=1.2).fit(X, y)
    reached = [len(each) > 0 for each in model.radius_neighbors(V, return_distance=False)]
    guesses = np.full(len(V), y_val.mean())
    guesses[reached] = model.predict(V[reached])
    assert found.utility_all == pytest.approx(-np.mean((guesses - y_val) ** 2), rel=1e-7)
    assert found.utility_none == pytest.approx(-np.var(y_val), rel=1e-7)
    assert abs(found.efficiency_gap()) < 1e-12 * abs(found.utility_none)
    assert found.params["empty"] == y_val.mean()
    near = th.knn_shapley(X, y, V, y_val, k=7, mean=True, **about)
    guesses = KNeighborsRegressor(7).fit(X, y).predict(V)
    assert near.utility_all == pytest.approx(-np.mean((guesses - y_val) ** 2), rel=1e-12)
    assert abs(near.efficiency_gap()) < 1e-11 * abs(near.utility_none)


def test_sums_are_whole_numbers_so_that_order_and_parts_leave_no_bit():
    X, y, V, y_val = problem(points=400, validation=30, width=3)
    about = {"metric": "euclidean", "radius": 2.0, "task": "regression", "empty": 0.0}
    wanted = th.tknn_shapley(X, y, V, y_val, **about).values
    order = np.random.default_rng(1).permutation(len(X))
    found = th.tknn_shapley(X[order], y[order], V, y_val, **about).values
    assert found.tolist() == wanted[order].tolist()


def test_sums_of_squares_do_not_overflow():
    n = 200_000
    y = np.where(np.arange(n) % 2, 1e6, -1e6)
    about = {"metric": "euclidean", "radius": 1.0, "task": "regression", "empty": 0.0}
    found = th.tknn_shapley(np.zeros((n, 1)), y, [[0.5]], [1e6], **about)
    assert found.utility_all == pytest.approx(-1e12)
    assert abs(found.efficiency_gap()) < 1.0
    assert found.values[1] > 0 > found.values[0]


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
def test_moments_equal_sums_over_sizes(semivalue):
    from oracles import coalition_weight

    for c in (1, 2, 3, 10, 80):
        from math import comb

        chances = [float(coalition_weight(semivalue, c, j)) * comb(c - 1, j) for j in range(c)]
        found = moments(named(semivalue), np.array([c]))
        some = range(1, c)
        assert found.alone[0] == pytest.approx(chances[0], rel=1e-12, abs=1e-300)
        for got, power in [
            (found.inverse, lambda j: 1 / j),
            (found.next_inverse, lambda j: 1 / (j + 1)),
            (found.next_square, lambda j: 1 / (j + 1) ** 2),
        ]:
            wanted = sum(chances[j] * power(j) for j in some)
            assert got[0] == pytest.approx(wanted, rel=1e-11, abs=1e-14)


def test_newcomers_are_priced_as_if_they_were_there():
    rng = np.random.default_rng(2)
    u, new = rng.integers(-50, 50, 6).astype(float), 17.0
    game = TargetGame(np.array([4.0]), 3.0, Grid(1.0))
    member = game.all_prices(sums_of(np.append(u, new)), slice(None))[[0, 1, 2, 9], 0]
    newcomer = game.all_prices(sums_of(u), slice(None))[[3, 4, 5, 9], 0]
    worth = [a + (new - c) * (b + (new - c) * g) for a, b, g, c in (member, newcomer)]
    assert worth[0] == pytest.approx(worth[1], rel=1e-13)


# Counts and price lists


def test_counts_merge_and_are_removed_to_the_bit_and_price_lists_pay_members(tmp_path):
    X, y, V, y_val = problem(points=60, validation=70, width=3)
    about = {"metric": "euclidean", "radius": 1.5, "task": "regression", "empty": EMPTY}
    start = th.NeighborCounts(V, y_val, **about)
    whole = th.NeighborCounts(V, y_val, **about).add(X, y)
    first = th.NeighborCounts(V, y_val, **about).add(X[:30], y[:30])
    rest = th.NeighborCounts(V, y_val, **about).add(X[25:], y[25:]).remove(X[25:30], y[25:30])
    assert first.merge(rest).table.tolist() == whole.table.tolist()
    assert first.__copy__().remove(X, y).table.tolist() == start.table.tolist()
    assert first.relabel(X[:2], y[:2], [1.0, 2.0]).relabel(X[:2], [1.0, 2.0], y[:2]) is first
    first.save(tmp_path / "counts.npz")
    again = th.NeighborCounts.load(tmp_path / "counts.npz")
    assert again.table.tolist() == whole.table.tolist()
    prices = again.price_list("banzhaf")
    prices.save(tmp_path / "prices.json")
    found = th.PriceList.load(tmp_path / "prices.json").values(X, y)
    assert found.tolist() == prices.values(X, y).tolist()
    wanted = th.tknn_shapley(X, y, V, y_val, semivalue="banzhaf", **about)
    assert_close(found, wanted.values)
    assert whole.utility() == pytest.approx(wanted.utility_all, rel=1e-12)


def test_a_price_list_knows_newcomers_and_the_best_target():
    X, y, V, y_val = problem(points=40, validation=30, width=3)
    about = {"metric": "euclidean", "radius": 2.0, "task": "regression", "empty": EMPTY}
    prices = th.NeighborCounts(V, y_val, **about).add(X, y).price_list()
    new = X[:3] + 0.1
    for i, worth in enumerate(prices.newcomer_values(new, y[:3])):
        rows, targets = np.vstack([X, new[i]]), np.append(y, y[i])
        wanted = th.tknn_shapley(rows, targets, V, y_val, **about)
        assert worth == pytest.approx(wanted.values[-1], abs=1e-11)
    best, worth = prices.best_targets(new)
    np.testing.assert_allclose(prices.newcomer_values(new, best), worth, rtol=1e-6)
    for step in (-0.25, 0.25):
        assert (prices.newcomer_values(new, best + step) < worth).all()
    far, _ = prices.best_targets([[1e6, 0.0, 0.0]])
    assert np.isnan(far).all()
    with pytest.raises(th.InputError, match="best_targets needs a price list"):
        th.NeighborCounts([[1.0]], ["a"]).price_list().best_targets([[1.0]])
    with pytest.raises(th.InputError, match="label_values is for classes"):
        prices.label_values(X, y)


def test_counts_of_other_grids_do_not_merge_and_bounds_are_kept():
    X, y, V, y_val = problem()
    about = {"metric": "euclidean", "task": "regression"}
    wide = th.NeighborCounts(V, y_val, bounds=(-100, 100), **about)
    with pytest.raises(th.InputError, match="other cannot be merged: it differs in"):
        wide.merge(th.NeighborCounts(V, y_val, bounds=(-50, 50), **about))
    with pytest.raises(th.InputError, match="outside the bounds -100 to 100"):
        wide.add(X, y + 1000)
    for bounds in [(1, 1), (2, 1), (0, np.inf), 3]:
        with pytest.raises(th.InputError, match="bounds must be two numbers"):
            th.NeighborCounts(V, y_val, bounds=bounds, **about)
    with pytest.raises(th.InputError, match="empty and bounds need task='regression'"):
        th.NeighborCounts(V, [0, 1, 0, 1, 0], empty=1.0)


def test_parts_and_dask_give_the_same_bits(monkeypatch):
    X, _, V, y_val = problem(points=160, validation=170, width=3)
    y = np.random.default_rng(3).normal(size=160)
    about = {"metric": "euclidean", "radius": 1.5, "task": "regression", "bounds": (-9, 9)}
    wanted = th.tknn_shapley(X, y, V, y_val, **about)
    monkeypatch.setattr(Account, "rows", lambda *_: 33)
    assert th.tknn_shapley(X, y, V, y_val, memory="1TB", **about) == wanted
    da = pytest.importorskip("dask.array")
    lazy = th.tknn_shapley(da.from_array(X, 50), da.from_array(y, 50), V, y_val, **about)
    assert np.asarray(lazy.values).tolist() == wanted.values.tolist()
    assert (lazy.utility_all, lazy.utility_none) == (wanted.utility_all, wanted.utility_none)
    counts = th.NeighborCounts(V, y_val, **about).add(X, y)
    assert counts.price_list().values(X, y).tolist() == wanted.values.tolist()


def test_a_broken_run_of_numbers_goes_on(tmp_path, monkeypatch, small_parts):
    rng = np.random.default_rng(6)
    X, V = rng.normal(size=(2000, 3)), rng.normal(size=(20, 3))
    y, y_val = rng.normal(size=2000), rng.normal(size=20)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r"), y, V, y_val
    about = {"metric": "euclidean", "radius": 1.0, "task": "regression", "bounds": (-9, 9)}
    run, save, saved = tmp_path / "run", resume._save, []

    def break_off(file, piece, entry, chunks):
        save(file, piece, entry, chunks)
        saved.append(piece)
        if len(saved) == 11:  # of 8 parts counted, and 3 valued
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(resume, "_save", break_off)
        with pytest.raises(KeyboardInterrupt):
            th.tknn_shapley(*mapped, checkpoint=run, **about)
    assert run.is_file()
    with pytest.raises(th.InputError, match="run"):
        th.tknn_shapley(*mapped, checkpoint=run, empty=2.0, **about)
    assert th.tknn_shapley(*mapped, checkpoint=run, **about) == th.tknn_shapley(
        X, y, V, y_val, **about
    )
    assert not run.exists()


# Nearest neighbors


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@pytest.mark.parametrize("utility", ["mean", "jia2019"])
@given(seed=st.integers(0, 2**16), points=st.integers(1, 6), k=st.integers(1, 8))
@settings(max_examples=6, deadline=None)
def test_nearest_values_equal_enumeration_of_all_coalitions(utility, semivalue, seed, points, k):
    X, y, V, y_val = problem(seed, points, 3)
    wanted = np.zeros(len(X))
    for v, t in zip(V, y_val):
        order = np.argsort(((X - v) ** 2).sum(axis=1), kind="stable")

        def worth(coalition, order=order, t=t):
            few = [y[i] for i in order if i in coalition][:k]
            if not few:
                return -((EMPTY - t) ** 2) if utility == "mean" else 0.0
            return -((sum(few) / (len(few) if utility == "mean" else k) - t) ** 2)

        wanted += semivalues(worth, len(X), semivalue)
    about = {"metric": "euclidean", "task": "regression", "utility": utility, "k": k}
    about["semivalue"] = named(semivalue)
    about |= {"empty": EMPTY} if utility == "mean" else {}
    found = th.knn_shapley(X, y, V, y_val, **about)
    assert_close(found.values, wanted)
    assert semivalue != "shapley" or abs(found.efficiency_gap()) < 1e-11


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
def test_all_neighbors_are_a_radius_that_takes_in_everybody(semivalue):
    X, y, V, y_val = problem(points=40, validation=9)
    about = {"metric": "euclidean", "task": "regression", "semivalue": named(semivalue)}
    near = th.knn_shapley(X, y, V, y_val, k=100, **about)
    assert_close(near.values, th.tknn_shapley(X, y, V, y_val, radius=np.inf, **about).values)


def nearest_by_sizes(y, t, k, empty, semivalue):
    """The values of 60 points by all sizes of coalitions, from the chance of each K-th nearest."""
    n, z = len(y), y - t
    weights = [float(coalition_weight(semivalue, n, size)) for size in range(n)]
    found = np.zeros(n)
    for i in range(n):
        others = [z[j] for j in range(n) if j != i]
        one, two = sum(others), sum(x * x for x in others)
        for s in range(min(k, n)):
            count = comb(n - 1, s) * weights[s]
            if not s:
                found[i] += count * ((empty - t) ** 2 - z[i] ** 2)
                continue
            m, q = one / (n - 1), two / (n - 1)
            p = (one**2 - two) / ((n - 1) * (n - 2))
            after = (s * q + s * (s - 1) * p + 2 * s * z[i] * m + z[i] ** 2) / (s + 1) ** 2
            found[i] += count * ((q + (s - 1) * p) / s - after)
        for last in range(max(i + 1, k), n):  # the place of the K-th nearest, from 0
            before = sum(z[:last]) - z[i]
            ways = sum(comb(last - 1, k - 1) * comb(n - 1 - last, r) * weights[k + r]
                       for r in range(n - last))  # fmt: skip
            mean = before * (k - 1) / max(last - 1, 1)
            found[i] -= ways * (z[i] - z[last]) * (2 * mean + z[i] + z[last]) / k**2
    return found


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
def test_sixty_points_have_the_values_of_all_sizes(semivalue):
    rng = np.random.default_rng(4)
    X, y = np.arange(1.0, 61)[:, None], rng.normal(size=60)
    about = {"metric": "euclidean", "task": "regression", "k": 7, "empty": EMPTY}
    found = th.knn_shapley(X, y, [[0.0]], [0.25], semivalue=named(semivalue), **about)
    np.testing.assert_allclose(
        found.values, nearest_by_sizes(y, 0.25, 7, EMPTY, semivalue), rtol=1e-9, atol=1e-13
    )


def test_classes_have_the_shapley_values_of_the_nearest_only():
    with pytest.raises(th.InputError, match="use tknn_shapley for the others"):
        th.knn_shapley([[0.0]], ["a"], [[0.0]], ["a"], semivalue="banzhaf")


# Leaves


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@pytest.mark.parametrize("judges", ["validation", "points"])
def test_leaf_values_equal_enumeration_of_all_coalitions(judges, semivalue):
    rng = np.random.default_rng(5)
    leaves, leaves_val = rng.integers(0, 3, (7, 4)), rng.integers(0, 3, (5, 4))
    y, y_val = rng.integers(-64, 65, 7) / 8, rng.integers(-64, 65, 5) / 8
    asked = (leaves_val, y_val) if judges == "validation" else (leaves, y)
    wanted = np.zeros(7)
    for j, (places, t) in enumerate(zip(*asked)):
        for tree in range(4):
            near = leaves[:, tree] == places[tree]
            if judges == "points":
                near[j] = False
            wanted += semivalues(near_utility(near, y, t), 7, semivalue) / 4
    given_ = (leaves_val, y_val) if judges == "validation" else ()
    found = th.leaf_shapley(
        leaves, y, *given_, semivalue=named(semivalue), task="regression", empty=EMPTY
    )
    assert_close(found.values, wanted)
    if semivalue == "shapley":
        assert abs(found.efficiency_gap()) < 1e-11


def test_a_forest_finds_wrong_targets():
    X, y = make_friedman1(300, n_features=5, noise=0.3, random_state=0)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y)) < 0.1
    y = np.where(wrong, np.roll(y, 7), y)
    found = th.forest_shapley(X[:220], y[:220], X[220:], y[220:], trees=20, task="regression")
    assert abs(found.efficiency_gap()) < 1e-9 * abs(found.utility_none)
    assert found.params["forest"] == "RandomForestRegressor"
    alone = th.forest_shapley(X, y, trees=20, task="regression", empty=14)
    assert abs(alone.efficiency_gap()) < 1e-9 * abs(alone.utility_none)
    ranks = np.argsort(np.argsort(alone.values))
    assert ranks[wrong].mean() < 0.35 * len(y)


@pytest.mark.parametrize("judged", [True, False])
def test_a_fitted_regressor_is_taken_as_it_is(judged):
    X, y, V, y_val = problem(points=60, validation=20)
    fitted = RandomForestRegressor(5, random_state=0, max_depth=2).fit(X, y)
    judges, leaves_val = ((V, y_val), (fitted.apply(V), y_val)) if judged else ((), ())
    about = {"task": "regression", "empty": EMPTY}
    wanted = th.leaf_shapley(fitted.apply(X), y, *leaves_val, **about)
    found = th.forest_shapley(X, y, *judges, forest=fitted, **about)
    assert (found.params["trees"], found.params["folds"]) == (5, None)
    assert_close(found.values, wanted.values)
    assert th.forest_findings(X, y, *judges, forest=fitted, **about)[0] == found
    assert th.explain(found, X, y, *judges, forest=fitted).values.tolist() == found.values.tolist()
    assert th.forest_shapley(X, y, *judges, forest=fitted, memory="64GB", **about) == found
    da = pytest.importorskip("dask.array")
    parts = da.from_array(X, (25, 2)), da.from_array(y, 25)
    assert th.forest_shapley(*parts, *judges, forest=fitted, **about).compute() == found
    grown = th.grow_forest(X, y, forest=fitted, task="regression")
    assert th.forest_shapley(X, y, *judges, forest=grown, **about) == found


def test_a_fitted_regressor_can_vote_on_classes_and_no_classifier_on_numbers():
    X, y, V, y_val = problem(points=60, validation=20)
    data = (y > 0), V, (y_val > 0)
    fitted = RandomForestRegressor(5, random_state=0).fit(X, y)
    wanted = th.leaf_shapley(fitted.apply(X), data[0], fitted.apply(V), data[2])
    for how in ({}, {"memory": "64GB"}):
        found = th.forest_shapley(X, *data, forest=fitted, **how)
        assert_close(found.values, wanted.values)
    fitted = RandomForestClassifier(5).fit(X, y > 0)
    for how in ({}, {"memory": "64GB"}):
        with pytest.raises(th.InputError, match="forest must be a regressor"):
            th.forest_shapley(X, y, V, y_val, forest=fitted, task="regression", **how)


# Bad input


@pytest.mark.parametrize("function", ["leaf_shapley", "forest_findings", "owner_shapley"])
def test_half_a_validation_set_is_refused(function):
    X, y, V, y_val = problem(points=20, validation=20)
    about = {"task": "regression", "empty": EMPTY}
    forest = th.grow_forest(X, y, trees=4, task="regression")
    name, rows, rows_val = "X_val", X, V
    if function == "leaf_shapley":
        name, rows, rows_val = "leaves_val", forest.apply(X), forest.apply(V)
    elif function == "forest_findings":
        about["trees"] = 4
    else:
        about |= {"forest": forest, "owners": np.arange(20) % 3}
    valued = th.leaf_shapley(forest.apply(X), y, task="regression", empty=EMPTY)
    for half in ((None, y_val), (rows_val, None)):
        with pytest.raises(th.InputError, match=f"{name} and y_val go together: pass both"):
            getattr(th, function)(rows, y, *half, **about)
        with pytest.raises(th.InputError, match="leaves_val and y_val go together: pass both"):
            th.explain(valued, forest.apply(X), y, *half)


@pytest.mark.parametrize(
    ("y", "more", "message"),
    [
        ([1.0, np.nan, 2.0], {}, "y has NaN or infinite targets, first in row 1"),
        ([1.0, np.inf, 2.0], {}, "y has NaN or infinite targets, first in row 1"),
        ([2**53 + 2, 0, 1], {}, "y has integers beyond 2"),
        (["a", "b", "c"], {}, "y must have one number per row with task='regression'"),
        ([1.0, 1.0, 1.0], {}, "y and y_val have one distinct target, 1"),
        ([1.0, None, 2.0], {}, "y must have one number per row .* got None in row 1"),
        ([1.0, True, "b"], {}, "y must have one number per row"),
        ([10**40, 0, 1], {}, "y has integers beyond 2"),
        (np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), {}, "masked targets"),
        ([1.0, 2.0, 1e200], {}, "y has targets beyond 1e.150"),
        ([1.0, 2.0, 3.0], {"empty": 1e200}, "empty must be a finite number, at most 1e.150"),
        ([1.0, 2.0, 3.0], {"bounds": (-1e200, 1e200)}, "bounds must be at most 1e.150"),
        ([1.0, 2.0, 3.0], {"empty": "none"}, "empty must be a finite number"),
        ([1.0, 2.0, 3.0], {"empty": np.nan}, "empty must be a finite number"),
        ([1.0, 2.0, 3.0], {"empty": True}, "empty must be a finite number"),
        ([1.0, 2.0, 3.0], {"classes": [1, 2]}, "classes cannot be used with task='regression'"),
        ([1.0, 2.0, 3.0], {"bounds": (0, 2)}, "outside the bounds 0 to 2"),
        ([1.0, 2.0, 3.0], {"bounds": (0, 2), "memory": "64GB"}, "outside the bounds 0 to 2"),
        ([1.0, 2.0, 3.0], {"semivalue": th.Calibrated(2)}, "it cannot be used with regression"),
    ],
)  # fmt: skip
def test_targets_that_are_none(y, more, message):
    X = [[0.0], [1.0], [2.0]]
    with pytest.raises(th.InputError, match=message):
        th.tknn_shapley(X, y, [[0.5]], [1.0], metric="euclidean", task="regression", **more)


def test_targets_may_be_objects_and_need_a_range_that_can_be_squared():
    X, y = [[0.0], [1.0], [2.0]], [1.0, 2.0, 3.5]
    about = {"metric": "euclidean", "radius": 1.0, "task": "regression"}
    wanted = th.tknn_shapley(X, y, [[0.5]], [1.0], **about)
    found = th.tknn_shapley(X, np.array(y, object), [[0.5]], [1.0], empty=10**0, **about)
    assert found == wanted
    for how in ({}, {"memory": "64GB"}):
        with pytest.raises(th.InputError, match="differ by less than 1e-140: rescale"):
            th.tknn_shapley(X, [0.0, 1e-300, 0.0], [[0.5]], [0.0], **about, **how)
        with pytest.raises(th.InputError, match="y has one distinct target, 1: there is nothing"):
            th.forest_shapley(X, [1.0] * 3, task="regression", trees=2, empty=3.0, **how)
    with pytest.raises(th.InputError, match="forest must be a regressor with task='regression'"):
        th.forest_shapley(X, y, X, y, task="regression", forest=RandomForestClassifier(), trees=2)
    with pytest.raises(th.InputError, match="y_val has NaN or infinite targets"):
        th.NeighborCounts(X, [0.0, np.nan, 1.0], **about)


def test_empty_is_needed_without_a_validation_set_and_is_for_regression():
    X, y = [[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0]
    with pytest.raises(th.InputError, match="empty is needed if there is no validation set"):
        th.tknn_shapley(X, y, metric="euclidean", task="regression")
    for function in (th.tknn_shapley, th.knn_shapley, th.forest_shapley):
        with pytest.raises(th.InputError, match="empty (needs|and bounds need) task='regression'"):
            function(X, [0, 1, 1], X, [0, 1, 1], empty=1.0)
    with pytest.raises(th.InputError, match="task must be one of"):
        th.tknn_shapley(X, y, task="ranking")
    with pytest.raises(th.InputError, match="jia2019 has utility 0"):
        th.knn_shapley(X, y, X, y, task="regression", utility="jia2019", empty=1.0)


def test_the_grid_keeps_all_digits_of_targets_that_are_not_tiny():
    grid = Grid.over(-3.0, 1e4)
    targets = np.concatenate([np.linspace(-3, 1e4, 1000), [1e-7 / 3, 0.0, -0.0]])
    assert grid.rounded(targets).tolist() == targets.tolist()
    assert abs(grid.rounded(targets) / grid.step).max() <= 2**92
    codes = grid.codes(targets)
    assert grid.numbers(codes).tolist() == targets.tolist()
    assert np.argsort(codes, kind="stable").tolist() == np.argsort(targets, kind="stable").tolist()
    coarse = Grid.coarse(-3.0, 1e4)  # of private tables and of old files
    assert coarse.step * 2**32 <= 2 * (1e4 + 3)
    assert abs(coarse.center + coarse.step * coarse.codes(targets) - targets).max() <= (
        coarse.step / 2
    )
    assert abs(coarse.codes(targets)).max() <= 2**31


def test_a_task_is_never_guessed():
    X, y, V, y_val = problem(points=200, validation=100)
    targets = y + np.random.default_rng(0).random(200)
    for function in (th.tknn_shapley, th.knn_shapley, th.forest_shapley):
        with pytest.raises(th.InputError, match="Pass task='regression'"):
            function(X, targets, V, y_val)
    few = slice(21)  # a small table is no excuse
    with pytest.raises(th.InputError, match="labels are .* distinct real numbers"):
        th.tknn_shapley(X[few], targets[few], V[:1], [1.0])
    found = th.tknn_shapley(X, targets, V, y_val, classes=np.unique([*targets, *y_val]))
    assert len(found) == 200
