"""Values of owners where points carry numbers, or weigh by their distance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles import owner_values as rational_values
from oracles import semivalues

import thresher as th
from thresher import Beta
from thresher.games.owner_values import OwnerGames

RULES = [
    "shapley", "banzhaf", "leave-one-out", ("beta", 4.0, 1.0), ("beta", 1.0, 16.0),
    ("beta", 0.5, 0.5),
]  # fmt: skip
RINGS = [(0.4, 1.0), (0.8, 0.5), (1.2, 0.125)]


def named(semivalue):
    return semivalue if isinstance(semivalue, str) else Beta(*semivalue[1:])


def values(near, gains, empty, semivalue="shapley", *, square=True):
    out = np.zeros(len(near))
    games = np.array([near], float), np.array([gains], float)
    OwnerGames(*games, np.ones(1), float(empty), square).add_values(named(semivalue), out)
    return out


def check_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def drawn(rng, owners, most):
    """Points of owners, and sums of whole errors around some large number."""
    near = rng.integers(0, most + 1, owners)
    near[0] = max(near[0], 1)
    return near.tolist(), (near * rng.integers(-50, 300) + rng.integers(-99, 99, owners)).tolist()


@pytest.mark.parametrize("semivalue", RULES, ids=str)
def test_numbers_equal_enumeration(semivalue):
    for seed, owners in enumerate((1, 2, 5, 8)):
        near, gains = drawn(np.random.default_rng(seed), owners, 9)
        players = [o for o, count in enumerate(near) if count]

        def utility(coalition, near=near, gains=gains, players=players):
            some = [players[i] for i in coalition]
            points = sum(near[o] for o in some)
            return -(Fraction(sum(gains[o] for o in some), points) ** 2) if some else Fraction(-400)

        wanted = np.zeros(owners)
        wanted[players] = semivalues(utility, len(players), semivalue)
        check_close(values(near, gains, 20, semivalue), wanted)
        check_close(rational_values(near, gains, 20, semivalue, square=True), wanted)


def test_forty_owners_of_numbers_equal_rational_arithmetic():
    near, gains = drawn(np.random.default_rng(5), 40, 6)
    near[0], gains[0] = 120, 2500  # one of them as large as all others
    check_close(values(near, gains, 7), rational_values(near, gains, 7, square=True))


@pytest.mark.parametrize("semivalue", RULES, ids=str)
def test_owners_of_one_number_are_points(semivalue):
    from thresher.games.targets import TargetGame, sums_of
    from thresher.inputs.grids import Grid

    z = np.random.default_rng(0).integers(-400, 600, 300)
    game = TargetGame(np.zeros(1), 70.0, Grid(1.0), named(semivalue))
    a, b, c, center = game.prices(sums_of(z), slice(None))[:, 0]
    r = z - center
    check_close(values(np.ones(300), z, 70, semivalue), a + b * r + c * r**2)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf"])
def test_many_owners_of_numbers_agree_with_sampled_coalitions(semivalue):
    """4,000 draws for one of 300 owners; five standard errors, so one false alarm in 1.7 million."""
    rng = np.random.default_rng(8)
    near, gains = (np.array(each) for each in drawn(rng, 300, 40))
    near[0], gains[0] = 500, 500 * 30
    rest = np.flatnonzero(near[1:]) + 1
    found = []
    for _ in range(4000):
        some = rng.permutation(rest)[: rng.integers(0, len(rest) + 1)]
        others = some if semivalue == "shapley" else rest[rng.random(len(rest)) < 0.5]
        points, total = near[others].sum(), gains[others].sum()
        before = (total / points) ** 2 if points else 20.0**2
        found.append(before - ((total + gains[0]) / (points + near[0])) ** 2)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(values(near, gains, 20, semivalue)[0] - np.mean(found)) < 5 * error


@pytest.mark.parametrize("square", [False, True])
def test_one_owner_may_be_a_million_times_as_large(square):
    """Against the same numbers in rational arithmetic, where the small owners have one point."""
    near, gains = [1_000_000, 1, 1, 2], [300_000, 1, 0, 2]
    utility = lambda s: (  # noqa: E731
        Fraction(sum(gains[o] for o in s), sum(near[o] for o in s)) if s else Fraction(1, 2)
    )
    game = (lambda s: -(utility(s) ** 2)) if square else utility
    check_close(values(near, gains, 0.5, square=square), semivalues(game, 4, "shapley"))


def test_what_points_weigh_in_all_does_not_matter():
    near, gains = drawn(np.random.default_rng(2), 12, 9)
    whole = values(near, gains, 5)
    check_close(values(np.array(near) * 0.37, np.array(gains) * 0.37, 5), whole)


def table(seed=0, rows=40, judges=6, owners=5):
    """Targets are eighths from -4 to 4, which the grid has exactly."""
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(rows, 2)), rng.normal(size=(judges, 2))
    y, y_val = (np.rint(np.clip(8 * A[:, 0] + rng.normal(size=len(A)), -32, 32)) / 8
                for A in (X, X_val))  # fmt: skip
    y[:2] = -4, 4
    return (X, y, X_val, y_val), rng.integers(0, owners, rows)


NUMBERS = {"task": "regression", "empty": 0.5, "bounds": (-4.0, 4.0)}
EUCLIDEAN = {"radius": 1.0, "metric": "euclidean"}


def game(owners, judged):
    """The sum over judges of what `judged` finds in the points of some owners."""
    names = list(dict.fromkeys(owners.tolist()))
    whose = np.array([names.index(owner) for owner in owners.tolist()])
    return lambda coalition: judged(np.isin(whose, list(coalition)))


def squared_error(y, some, target):
    return -(((y[some].mean() if some.any() else 0.5) - target) ** 2)


@pytest.mark.parametrize("semivalue", RULES[:4], ids=str)
def test_numbers_within_a_radius_equal_enumeration(semivalue):
    (X, y, X_val, y_val), owners = table()
    near = np.linalg.norm(X[:, None] - X_val, axis=2) <= 1.0
    utility = game(
        owners,
        lambda inside: sum(squared_error(y, inside & n, t) for n, t in zip(near.T, y_val)),
    )
    wanted = semivalues(lambda s: float(utility(s)), 5, semivalue)
    about = {"semivalue": named(semivalue), **NUMBERS, **EUCLIDEAN}
    found = th.owner_shapley(X, y, X_val, y_val, owners=owners, **about)
    check_close(found.values, wanted)
    assert found.utility_all == pytest.approx(utility(range(5)), rel=1e-12)
    assert found.utility_none == pytest.approx(utility([]), rel=1e-12)


@pytest.mark.parametrize("neighbors", ["all", "tree"])
@pytest.mark.parametrize("semivalue", RULES[:4], ids=str)
def test_rings_equal_enumeration(semivalue, neighbors):
    (X, y, X_val, y_val), owners = table()
    labels, judges = y > 0, y_val > 0
    distances = np.linalg.norm(X[:, None] - X_val, axis=2)
    weights = np.select([distances <= radius for radius, _ in RINGS], [w for _, w in RINGS], 0.0)

    def judged(inside):
        found = 0.0
        for w, label in zip(weights.T * inside, judges):
            found += w[labels == label].sum() / w.sum() if w.any() else 0.5
        return found

    utility = game(owners, judged)
    found = th.owner_shapley(
        X, labels, X_val, judges, owners=owners, kernel=RINGS, metric="euclidean",
        semivalue=named(semivalue), neighbors=neighbors,
    )  # fmt: skip
    check_close(found.values, semivalues(lambda s: float(utility(s)), 5, semivalue))
    assert found.params["kernel"] == [list(pair) for pair in RINGS]


@pytest.mark.parametrize("judges", ["validation", "points"])
@pytest.mark.parametrize("semivalue", ["shapley", "leave-one-out"])
def test_numbers_in_leaves_equal_enumeration(judges, semivalue):
    (X, y, X_val, y_val), owners = table()
    forest = th.grow_forest(X, y, trees=4, task="regression")
    data = (X_val, y_val) if judges == "validation" else (None, None)
    rows = forest.rows(forest.encode("X", X))
    theirs = forest.rows(forest.encode("X", X_val), everywhere=True)

    def judged(inside):
        found = 0.0
        for tree in range(4):
            leaf = rows.leaves(tree)
            if judges == "validation":
                pairs = zip(theirs.leaves(tree), y_val)
                found += sum(squared_error(y, (leaf == n) & inside, t) for n, t in pairs) / 4
            for i in np.flatnonzero(leaf >= 0) if judges == "points" else ():
                others = (leaf == leaf[i]) & inside & (np.arange(len(y)) != i)
                found += squared_error(y, others, y[i]) / forest.trees_each
        return found

    utility = game(owners, judged)
    found = th.owner_shapley(
        X, y, *data, owners=owners, forest=forest, task="regression", empty=0.5,
        semivalue=semivalue,
    )  # fmt: skip
    check_close(found.values, semivalues(lambda s: float(utility(s)), 5, semivalue))
    assert found.utility_all == pytest.approx(utility(range(5)), rel=1e-12)
    assert found.utility_none == pytest.approx(utility([]), rel=1e-12)


def test_points_that_judge_each_other_are_each_out_of_their_own_game():
    (X, y, *_), owners = table(rows=25, owners=4)
    about = NUMBERS | {"radius": 3.0, "metric": "euclidean"}
    found = th.owner_shapley(X, y, owners=owners, **about)
    wanted = dict.fromkeys(found.owners, 0.0)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        one = th.owner_shapley(X[rest], y[rest], X[[i]], y[[i]], owners=owners[rest], **about)
        for owner, value in one.by_owner().items():
            wanted[owner] += value
    check_close(found.values, [wanted[owner] for owner in found.owners])


@pytest.mark.parametrize("kind", ["numbers", "rings"])
def test_the_same_bits_in_parts_and_on_dask(kind):
    import dask.array as da

    (X, y, X_val, y_val), owners = table(rows=150, judges=70, owners=6)
    about = NUMBERS | EUCLIDEAN
    if kind == "rings":
        y, y_val, about = y > 0, y_val > 0, {"kernel": RINGS, "metric": "euclidean"}
    whole = th.owner_shapley(X, y, X_val, y_val, owners=owners, **about)
    assert th.owner_shapley(X, y, X_val, y_val, owners=owners, memory="64GB", **about) == whole
    cut = [da.from_array(each, chunks=(60, *each.shape[1:])) for each in (X, y)]
    assert th.owner_shapley(*cut, X_val, y_val, owners=owners, **about) == whole


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"semivalue": th.Calibrated(3)}, "Calibrated values points"),
        ({"empty": 0.5}, "empty and bounds need task='regression'"),
        ({"classes": [0, 1], **NUMBERS}, "classes cannot be used with task='regression'"),
        ({"semivalue": th.Beta(100, 1)}, "a of Beta for kernels and owners must be"),
        ({"task": "ranking"}, "task must be"),
    ],
    ids=str,
)
def test_what_cannot_be_valued_is_refused_with_the_reason(more, message):
    data, owners = table()
    with pytest.raises(th.InputError, match=message):
        th.owner_shapley(*data, owners=owners, **more)
