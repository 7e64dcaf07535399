"""Price lists of numbers: members, members with other targets, newcomers, and best targets.

Every price is compared with enumeration of all coalitions of a small game, for targets within a
radius, in leaves with a validation set, and in leaves whose points judge each other.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import semivalues

import thresher as th
from thresher.passes import in_parts

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")

EVERY = ["shapley", "banzhaf", "leave-one-out", ("beta", 4, 1), ("beta", 0.3, 2.5)]
EMPTY, BOUNDS = 0.5, (-16.0, 16.0)  # a grid that has all eighths
NUMBERS = {"task": "regression", "empty": EMPTY, "bounds": BOUNDS}
TREES = 6
SIDES = ["ball", "leaves", "points"]


def named(semivalue):
    return th.Beta(*semivalue[1:]) if isinstance(semivalue, tuple) else semivalue


def eighths(rng, size):
    return rng.integers(-64, 65, size) / 8


class Case:
    """A small game: rows, targets, who judges, and what is near."""

    def __init__(self, kind, seed, points):
        rng = np.random.default_rng(seed)
        self.kind, self.n = kind, points
        self.X, self.y = rng.integers(0, 4, (points + 1, 2)) * 1.0, eighths(rng, points + 1)
        self.V, self.y_val = rng.integers(0, 4, (3, 2)) * 1.0, eighths(rng, 3)
        self.radius = float(rng.uniform(0.5, 4))
        self.about = {"radius": self.radius, "metric": "euclidean"}
        if kind != "ball":
            grown = rng.normal(size=(30, 2)) + 1.5
            targets = grown[:, 0] + rng.normal(size=30) / 4
            self.forest = th.grow_forest(grown, targets, trees=TREES, seed=seed, task="regression")
            self.about = {"forest": self.forest}
        self.judges = (None, None) if kind == "points" else (self.V, self.y_val)

    def counts(self):
        return th.NeighborCounts(*self.judges, **self.about, **NUMBERS)

    def terms(self, rows):
        """For each term of the utility: its weight, who is near, and whose target is asked."""
        X = self.X[rows]
        if self.kind == "ball":
            near = np.sqrt(((X[:, None] - self.V) ** 2).sum(axis=2)) <= self.radius
            return [(1.0, near[:, v], None, t) for v, t in enumerate(self.y_val)]
        leaves, play = self.forest.apply(X), self.forest.unseen(X)
        found = []
        for tree in range(TREES):
            inside = play[:, tree]
            if self.kind == "leaves":
                asked = zip(self.forest.apply(self.V)[:, tree], self.y_val)
                found += [(1 / TREES, inside & (leaves[:, tree] == v), None, t) for v, t in asked]
                continue
            for j in np.flatnonzero(inside):
                near = inside & (leaves[:, tree] == leaves[j, tree])
                near[j] = False
                found.append((1 / self.forest.trees_each, near, j, None))
        return found

    def enumerated(self, rows, y, semivalue):
        terms = self.terms(rows)

        def utility(coalition):
            total = 0.0
            for weight, near, judge, t in terms:
                targets = [y[i] for i in coalition if near[i]]
                guess = np.mean(targets) if targets else EMPTY
                total -= weight * (guess - (y[judge] if t is None else t)) ** 2
            return total

        return semivalues(utility, len(y), semivalue)


def assert_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@pytest.mark.parametrize("kind", SIDES)
@given(seed=st.integers(0, 2**16), points=st.integers(1, 5), other=st.integers(-128, 128))
@settings(max_examples=12, deadline=None)
def test_every_price_equals_enumeration_of_all_coalitions(kind, semivalue, seed, points, other):
    case = Case(kind, seed, points)
    X, y, target = case.X, case.y, other / 8
    members, rest = slice(points), y[:points]
    prices = case.counts().add(X[members], rest).price_list(named(semivalue))
    assert_close(prices.values(X[members], rest), case.enumerated(members, rest, semivalue))
    moved = prices.values(X[members], rest, label=target)
    for i in range(points):
        changed = rest.copy()
        changed[i] = target
        assert_close(moved[i], case.enumerated(members, changed, semivalue)[i])
    new = prices.newcomer_values(X[points:], y[points:])[0]
    assert_close(new, case.enumerated(slice(points + 1), y, semivalue)[-1])


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@pytest.mark.parametrize("kind", SIDES)
def test_no_target_is_better_than_the_best(kind, semivalue):
    case = Case(kind, 3, 12)
    X, y, n = case.X, case.y, case.n
    prices = case.counts().add(X[:n], y[:n]).price_list(named(semivalue))
    for theirs in (y[:n], None):
        best, worth = prices.best_targets(X[:n], theirs)
        known = ~np.isnan(best)
        assert known.any()
        assert (known == ~np.isnan(worth)).all()
        assert (best[known] >= BOUNDS[0]).all()
        assert (best[known] <= BOUNDS[1]).all()

        def at(target, i, members=theirs is not None):
            row = slice(i, i + 1)
            if members:
                return prices.values(X[row], y[row], label=target)[0]
            return prices.newcomer_values(X[row], [target])[0]

        for i in np.flatnonzero(known):
            assert at(best[i], i) == pytest.approx(worth[i], rel=1e-9, abs=1e-9)
            for step in (-0.5, 0.5):
                if BOUNDS[0] <= best[i] + step <= BOUNDS[1]:
                    assert at(best[i] + step, i) < worth[i]
        for i in np.flatnonzero(~known):
            assert at(1.0, i) == 0.0


def table(rows=150, judges=60):
    rng = np.random.default_rng(4)
    X, V = rng.normal(size=(rows, 3)), rng.normal(size=(judges, 3))
    y, y_val = (np.clip(A[:, 0] + rng.normal(size=len(A)) / 3, -15, 15) for A in (X, V))
    y[:2] = BOUNDS  # so that the range of all targets is that of the bounds
    return X, y, V, y_val


X, Y, V, Y_VAL = table()
FOREST = th.grow_forest(X, Y, trees=TREES, task="regression")
JUDGES = {"points": (None, None), "validation": (V, Y_VAL)}


@pytest.fixture(params=list(JUDGES))
def judges(request):
    return JUDGES[request.param]


def shapley_of(judges, **more):
    return th.forest_shapley(X, Y, *judges, forest=FOREST, task="regression", empty=EMPTY, **more)


def counted(judges, **more):
    return th.NeighborCounts(*judges, forest=FOREST, **NUMBERS, **more)


def test_counts_of_leaves_merge_and_are_removed_to_the_bit(judges, tmp_path):
    wanted = shapley_of(judges, semivalue="banzhaf")
    one, other = counted(judges).add(X[70:], Y[70:]), counted(judges).add(X[:90], Y[:90])
    other.remove(X[70:90], Y[70:90]).relabel(X[:5], Y[:5], np.zeros(5))
    other.relabel(X[:5], np.zeros(5), Y[:5])
    one.merge(other)
    np.testing.assert_array_equal(one.table, counted(judges).add(X, Y).table)
    assert one.utility() == wanted.utility_all
    one.save(tmp_path / "counts.npz")
    prices = th.NeighborCounts.load(tmp_path / "counts.npz").price_list("banzhaf")
    assert prices.values(X, Y).tobytes() == wanted.values.tobytes()
    assert prices.holds_points == (judges[0] is None)
    prices.save(tmp_path / "prices.json")
    again = th.PriceList.load(tmp_path / "prices.json")
    assert repr(again) == repr(prices)
    for found in (
        lambda each: each.values(X, Y),
        lambda each: each.values(X, Y, label=2.0),
        lambda each: each.newcomer_values(X + 0.1, Y),
        lambda each: np.array(each.best_targets(X + 0.1)),
        lambda each: np.array(each.best_targets(X, Y)),
    ):
        assert found(again).tobytes() == found(prices).tobytes()


def test_live_stores_of_leaves_have_the_same_bits(judges, tmp_path):
    about = {"forest": FOREST, **NUMBERS}
    with th.LiveCounts.create(tmp_path / "store", *judges, **about) as live:
        live.add_many([f"p{i}" for i in range(140)], X[:140].astype(np.float32), Y[:140])
        for i in range(140, 150):
            live.add(f"p{i}", X[i].astype(np.float32), float(Y[i]))
        live.add("more", X[0], 3.0)
        live.relabel("more", -2.0)
        live.remove("more")
        live.commit()
    owners = [i % 4 for i in range(150)]
    game = th.owner_shapley(
        X.astype(np.float32), Y, *judges, owners=owners, forest=FOREST, **NUMBERS
    )
    with th.LiveCounts.open(tmp_path / "store") as live:
        for semivalue in ("shapley", "leave-one-out"):
            found, wanted = live.values(semivalue), shapley_of(judges, semivalue=semivalue)
            assert found.values.tobytes() == wanted.values.tobytes()
            assert found.params == wanted.params
            assert found.utility_all == pytest.approx(wanted.utility_all, rel=1e-12)
            assert found.utility_none == pytest.approx(wanted.utility_none, rel=1e-12)
        theirs = live.owner_values({name: int(name[1:]) % 4 for name in live.ids})
        np.testing.assert_array_equal(theirs.values, game.values)
        assert theirs.utility_none == game.utility_none
        live.relabel("p7", -1.0)
        live.verify()
        with pytest.raises(th.InputError, match="outside the bounds"):
            live.relabel("p8", 17.0)


def test_owners_in_leaves_have_the_same_bits_in_parts_and_on_dask(judges, monkeypatch):
    owners = [i % 4 for i in range(150)]
    about = {"owners": owners, "forest": FOREST, **NUMBERS}
    whole = th.owner_shapley(X, Y, *judges, **about)
    none = (Y if judges[0] is None else Y_VAL) - EMPTY
    assert whole.utility_none == pytest.approx(-(none**2).sum(), rel=1e-9)
    assert abs(whole.efficiency_gap()) < 1e-10 * abs(whole.utility_none)
    monkeypatch.setattr(in_parts.Run, "_plan", lambda *_: (37, "auto"))
    assert th.owner_shapley(X, Y, *judges, memory="64GB", **about) == whole
    cut = [da.from_array(each, chunks=(60, *each.shape[1:])) for each in (X, Y)]
    assert th.owner_shapley(*cut, *judges, **about) == whole


def test_what_counts_of_numbers_refuse():
    about = {"forest": FOREST, "task": "regression"}
    for more, why in (
        ({}, "empty is needed if there is no validation set"),
        ({"empty": 0.0}, "bounds is needed if there is no validation set"),
        ({"empty": 9.0, "bounds": (0, 1)}, "empty is 9, outside the bounds"),
        ({"empty": 0.0, "bounds": (0, 1), "radius": 1.0}, "near means in the same leaf"),
        ({"empty": 0.0, "bounds": (0, 1), "classes": [0]}, "classes cannot be used"),
        ({"empty": 0.0, "bounds": (0, 1), "kernel": "gaussian"}, "kernel"),
        ({"X_val": V}, "X_val and y_val go together"),
        ({"X_val": V, "y_val": Y_VAL[:-1]}, "X_val has 60 rows but there are 59 targets"),
        ({"X_val": V, "y_val": ["a"] * 60}, "y_val must have one number per row"),
    ):
        with pytest.raises(th.InputError, match=why):
            th.NeighborCounts(**about | more)
    with pytest.raises(th.InputError, match="forest must be a Forest"):
        th.NeighborCounts(**about | {"forest": 3, "empty": 0.0, "bounds": (0, 1)})
    counts = counted(JUDGES["points"]).add(X, Y)
    with pytest.raises(th.InputError, match="it differs in bounds"):
        counts.merge(th.NeighborCounts(**about, empty=EMPTY, bounds=(-99, 99)))
    ball = th.NeighborCounts(V, Y_VAL, radius=1, metric="euclidean", **NUMBERS).add(X, Y)
    for name in ("same", "other"):
        with pytest.raises(th.InputError, match="are for classes"):
            getattr(ball, name)
    for name in ("gain", "loss"):
        with pytest.raises(th.InputError, match="are for classes"):
            getattr(ball.price_list(), name)
    for prices in (counts.price_list(), ball.price_list()):
        with pytest.raises(th.InputError, match="label_values is for classes"):
            prices.label_values(X, Y)
        with pytest.raises(th.InputError, match="label has 99 in row 0, outside the bounds"):
            prices.values(X, Y, label=99)
        with pytest.raises(th.InputError, match="one number"):
            prices.values(X, Y, label="cat")
