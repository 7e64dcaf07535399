"""owner_shapley: the game among owners, from arrays, files in parts and Dask."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from oracles import is_near, owner_utility, semivalues

import thresher as th
from thresher.passes import in_parts, owner_passes, owner_sums
from thresher.passes.problem import Problem
from thresher.passes.walk import count

EUCLIDEAN = {"radius": 1.0, "metric": "euclidean"}


def table(rows=300, judges=70, owners=7, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(rows, 2)), rng.normal(size=(judges, 2))
    y, y_val = (
        np.clip(np.floor(each[:, 0] + 1.5), 0, classes - 1).astype(int) for each in (X, X_val)
    )
    return (X, np.roll(y, 3), X_val, y_val), rng.integers(0, owners, rows)


def enumerated(data, owners, radius, metric, semivalue):
    """The definition, over all coalitions of owners."""
    X, y, X_val, y_val = data
    names = list(dict.fromkeys(owners.tolist()))
    empty = Fraction(1, len({*y.tolist(), *y_val.tolist()}))
    found = np.zeros(len(names))
    for v, label in zip(X_val, y_val):
        near, same = [0] * len(names), [0] * len(names)
        for x, its, owner in zip(X, y, owners.tolist()):
            if is_near(x, v, metric, radius):
                near[names.index(owner)] += 1
                same[names.index(owner)] += int(its == label)
        players = [o for o in range(len(names)) if near[o]]
        pick = lambda s: {players[i] for i in s}  # noqa: B023, E731
        worth = semivalues(
            lambda s: owner_utility(pick(s), near, same, empty),  # noqa: B023
            len(players), semivalue,
        )  # fmt: skip
        found[players] += worth
    return names, found


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", ("beta", 4.0, 1.0)])
@pytest.mark.parametrize(("metric", "radius"), [("euclidean", 1.0), ("cosine", 0.2)])
def test_values_equal_enumeration_of_all_coalitions_of_owners(semivalue, metric, radius):
    data, owners = table(rows=40, judges=6, owners=5)
    names, wanted = enumerated(data, owners, radius, metric, semivalue)
    asked = semivalue if isinstance(semivalue, str) else th.Beta(*semivalue[1:])
    found = th.owner_shapley(*data, owners=owners, radius=radius, metric=metric, semivalue=asked)
    assert list(found.owners) == names
    np.testing.assert_allclose(found.values, wanted, rtol=0, atol=1e-12 * abs(wanted).max())


def test_owners_of_one_point_are_valued_as_points():
    data, _ = table(rows=60)
    found = th.owner_shapley(*data, owners=range(60), **EUCLIDEAN)
    np.testing.assert_allclose(found.values, th.tknn_shapley(*data, **EUCLIDEAN).values, atol=1e-13)


def test_one_owner_gets_all_of_the_gain():
    data, _ = table()
    found = th.owner_shapley(*data, owners=["acme"] * 300, **EUCLIDEAN)
    assert found.by_owner() == {"acme": pytest.approx(found.utility_all - found.utility_none)}
    assert found.utility_all == pytest.approx(th.tknn_shapley(*data, **EUCLIDEAN).utility_all)


@pytest.mark.filterwarnings("ignore::thresher.ReachWarning")
def test_points_that_judge_each_other_are_left_out_of_their_own_game():
    (X, y, *_), owners = table(rows=25, owners=4)
    found = th.owner_shapley(X, y, owners=owners, **EUCLIDEAN)
    wanted = dict.fromkeys(found.owners, 0.0)
    for row in range(len(X)):
        rest = np.arange(len(X)) != row
        one = X[rest], y[rest], X[row : row + 1], y[row : row + 1]
        parts = th.owner_shapley(*one, owners=owners[rest], classes=[0, 1, 2], **EUCLIDEAN)
        for owner, value in parts.by_owner().items():
            wanted[owner] += value
    np.testing.assert_allclose(found.values, list(wanted.values()), atol=1e-13)
    assert abs(found.efficiency_gap()) < 1e-12


@pytest.mark.parametrize("judged", ["validation", "points"])
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf"])
def test_leaves_equal_enumeration(judged, semivalue):
    (X, y, X_val, y_val), owners = table(rows=50, judges=12, owners=4)
    forest = th.grow_forest(X, y, trees=4)
    data = (X, y, X_val, y_val) if judged == "validation" else (X, y)
    found = th.owner_shapley(*data, owners=owners, forest=forest, semivalue=semivalue)
    names = list(found.owners)

    def utility(coalition):
        """Of the points of some owners, by leaf_shapley's own definition."""
        rows = forest.rows(forest.encode("X", X))
        judges = forest.rows(forest.encode("X", X_val), everywhere=True) if len(data) > 2 else rows
        labels, total = (y_val if len(data) > 2 else y), 0.0
        inside = np.isin(owners, [names[o] for o in coalition])
        for tree in range(4):
            ours, theirs = rows.leaves(tree), judges.leaves(tree)
            for judge, (leaf, label) in enumerate(zip(theirs.tolist(), labels.tolist())):
                if leaf < 0:
                    continue
                near = inside & (ours == leaf)
                if len(data) == 2:
                    near[judge] = False
                share = (y[near] == label).mean() if near.any() else 1 / 3
                total += share / (4 if len(data) > 2 else 2)
        return Fraction(total)

    wanted = semivalues(utility, len(names), semivalue)
    np.testing.assert_allclose(found.values, wanted, rtol=0, atol=1e-12 * abs(wanted).max())


def test_ways_to_find_neighbors_and_cuts_of_memory_give_the_same_bits(monkeypatch):
    data, owners = table(judges=200)
    whole = th.owner_shapley(*data, owners=owners, neighbors="all", **EUCLIDEAN)
    assert th.owner_shapley(*data, owners=owners, neighbors="tree", **EUCLIDEAN) == whole
    monkeypatch.setattr(owner_sums, "TABLE", 1)
    monkeypatch.setattr(owner_sums.cell_ranges, "__defaults__", (1, 0))
    assert th.owner_shapley(*data, owners=owners, **EUCLIDEAN) == whole


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of 64 rows, whatever the memory."""
    monkeypatch.setattr(in_parts.Run, "_plan", lambda *_: (64, "auto"))


@pytest.mark.parametrize("stops", [1, 3, 6])
def test_a_run_that_was_broken_off_goes_on(small_parts, tmp_path, monkeypatch, stops):
    """It is broken off after some parts of the second pass, over two ranges of cells."""
    data, owners = table(judges=130)
    names = [f"clinic {owner}" for owner in owners]
    whole = th.owner_shapley(*data, owners=names, **EUCLIDEAN)
    monkeypatch.setattr(owner_passes.OwnerRun, "_room", lambda _: 64 * 7 * 8 * 12)
    counted = []

    def count_or_stop(*about):
        counted.append(1)
        if len(counted) == stops + 1:
            raise KeyboardInterrupt
        return count(*about)

    monkeypatch.setattr(owner_passes, "count", count_or_stop)
    about = {"owners": names, "checkpoint": tmp_path / "run", **EUCLIDEAN}
    with pytest.raises(KeyboardInterrupt):
        th.owner_shapley(*data, **about)
    with pytest.raises(th.InputError, match="belongs to another run: its owners is"):
        th.owner_shapley(*data, **about | {"owners": names[::-1]})
    assert th.owner_shapley(*data, **about) == whole
    assert len(counted) == 1 + 5 * 3  # three ranges of five parts, and the one that was broken off
    assert not (tmp_path / "run").exists()


def test_points_in_parts_give_the_same_bits(small_parts):
    data, owners = table(judges=130)
    whole = th.owner_shapley(*data, owners=owners, **EUCLIDEAN)
    assert th.owner_shapley(*data, owners=owners, memory="64GB", **EUCLIDEAN) == whole


def test_points_of_a_file_give_the_same_bits(tmp_path, small_parts):
    import pandas as pd

    data, owners = table()
    frame = pd.DataFrame(data[0], columns=["a", "b"]).assign(y=data[1])
    for number in range(3):
        frame[number * 100 : number * 100 + 100].to_parquet(tmp_path / f"{number}.parquet")
    scan = th.Scan(tmp_path / "*.parquet", label="y")
    found = th.owner_shapley(scan, None, *data[2:], owners=owners, **EUCLIDEAN)
    assert found == th.owner_shapley(*data, owners=owners, **EUCLIDEAN)
    with pytest.raises(th.InputError, match="owners has 299 entries but there are 300 points"):
        th.owner_shapley(scan, None, *data[2:], owners=owners[1:], **EUCLIDEAN)


def test_points_that_change_between_the_passes_are_refused(small_parts, monkeypatch):
    data, owners = table()
    passes = []

    def settle(self, *about, original=Problem.settle):
        passes.append(1)
        data[0][5] += 1.0
        return original(self, *about)

    monkeypatch.setattr(Problem, "settle", settle)
    with pytest.raises(th.InputError, match="the points changed while they were valued"):
        th.owner_shapley(*data, owners=owners, memory="64GB", **EUCLIDEAN)
    assert passes


def test_leaves_in_parts_give_the_same_bits(small_parts):
    data, owners = table()
    forest = th.grow_forest(*data[:2], trees=4)
    for some in (data, data[:2]):
        whole = th.owner_shapley(*some, owners=owners, forest=forest)
        assert th.owner_shapley(*some, owners=owners, forest=forest, memory="64GB") == whole


def test_dask_gives_the_same_bits():
    da = pytest.importorskip("dask.array")
    data, owners = table()
    whole = th.owner_shapley(*data, owners=owners, **EUCLIDEAN)
    X, y = (da.from_array(each, chunks=(90, *each.shape[1:])) for each in data[:2])
    assert th.owner_shapley(X, y, *data[2:], owners=owners, **EUCLIDEAN) == whole
    cut = da.from_array(owners, chunks=90)
    assert th.owner_shapley(X, y, *data[2:], owners=cut, **EUCLIDEAN) == whole
    forest = th.grow_forest(*data[:2], trees=4)
    there = th.owner_shapley(X, y, *data[2:], owners=owners, forest=forest)
    assert there == th.owner_shapley(*data, owners=owners, forest=forest)


def test_a_live_store_values_the_owners_of_its_present_points(tmp_path):
    (X, y, X_val, y_val), owners = table()
    whose = {row: f"clinic {owner}" for row, owner in enumerate(owners.tolist())}
    with th.LiveCounts.create(tmp_path / "shop", X_val, y_val, **EUCLIDEAN) as live:
        with pytest.raises(th.InputError, match="the store has no points"):
            live.owner_values(whose)
        live.add_many(range(300), X, y)
        live.remove(7)
        rows = np.arange(300) != 7
        names = [whose[row] for row in np.flatnonzero(rows)]
        wanted = th.owner_shapley(X[rows], y[rows], X_val, y_val, owners=names, **EUCLIDEAN)
        assert live.owner_values(whose) == wanted
        with pytest.raises(th.InputError, match="owners lacks 299 of 299 ids, such as 0"):
            live.owner_values({})


def live_setting(kind, X, y, X_val, y_val):
    """What a store judges by, and what `owner_shapley` is called with."""
    if kind == "forest":
        forest = th.grow_forest(X, y, trees=4)
        return (X_val, y_val), {"forest": forest}
    more = {"kernel": [(0.4, 1.0), (0.9, 0.5)], "metric": "euclidean"}
    return (X_val, y_val), more if kind == "rings" else EUCLIDEAN


@pytest.mark.parametrize("kind", ["ball", "rings", "forest"])
def test_a_live_store_keeps_the_sums_of_owners(tmp_path, kind):
    """Points come, go and change hands and labels; only those are counted, to the same bits."""
    (X, y, X_val, y_val), owners = table(rows=60, judges=8)
    public, about = live_setting(kind, X, y, X_val, y_val)
    whose = dict(enumerate(owners.tolist()))
    with th.LiveCounts.create(tmp_path / "shop", *public, **about) as live:
        live.add_many(range(50), X[:50], y[:50])
        live.owner_values(whose)
        live.remove(0)
        live.relabel(3, y[4])
        for row in range(50, 60):
            live.add(row, X[row], y[row])
        whose |= {5: "somebody new", 6: whose[7]}
        found = live.owner_values(whose)
        moved = 1 + 2 + 10 + 2 * (1 + (owners[6] != owners[7]))
        assert live._owners.counted == 50 + moved
        assert live.owner_values(whose) == found
        assert live._owners.counted == 50 + moved
    now = y.copy()
    now[3] = y[4]
    rows = np.arange(1, 60)
    names = [whose[row] for row in rows]
    assert found == th.owner_shapley(X[rows], now[rows], *public, owners=names, **about)


def test_sums_of_too_many_owners_are_counted_each_time(tmp_path):
    (X, y, X_val, y_val), owners = table(rows=30, judges=20)
    whose = dict(enumerate(owners.tolist()))
    with th.LiveCounts.create(tmp_path / "shop", X_val, y_val, **EUCLIDEAN) as live:
        live.add_many(range(30), X, y)
        kept = live.owner_values(whose)
        live._owners._most = 1
        assert live.owner_values(whose) == kept


def test_the_result_is_stored_and_loads_equal(tmp_path):
    data, owners = table()
    found = th.owner_shapley(*data, owners=[f"clinic {o}" for o in owners], **EUCLIDEAN)
    found.save(tmp_path / "owners.parquet")
    loaded = th.OwnerValuation.load(tmp_path / "owners.parquet")
    assert loaded == found == pickle.loads(pickle.dumps(found))
    assert repr(found).startswith("OwnerValuation(owner-shapley, 7 owners, sum=")
    frame = found.to_frame()
    assert frame["owner"].tolist() == list(found.owners)
    assert frame["value"].tolist() == found.values.tolist()
    with pytest.raises(th.InputError):
        th.Valuation.load(tmp_path / "owners.parquet")


def test_the_page_shows_every_owner(tmp_path):
    pytest.importorskip("jinja2")
    data, owners = table()
    found = th.owner_shapley(*data, owners=[f"<clinic {o}>" for o in owners], **EUCLIDEAN)
    found.report(tmp_path / "owners.html")
    page = (tmp_path / "owners.html").read_text()
    assert all(f"&lt;clinic {o}&gt;" in page for o in range(7))
    assert "http" not in page.replace("http-equiv", "")
    with pytest.raises(th.InputError, match="already exists"):
        found.report(tmp_path / "owners.html")
    for given, options in ((data, {}), ((), {"ids": range(7)}), ((), {"held_out": True})):
        with pytest.raises(th.InputError, match="shows owners, not points: pass only path and"):
            found.report(tmp_path / "other.html", *given, **options)
    with pytest.raises(TypeError, match="froce"):
        found.report(tmp_path / "other.html", froce=True)


def test_mean_divides_by_the_validation_set():
    data, owners = table()
    sums = th.owner_shapley(*data, owners=owners, **EUCLIDEAN)
    means = th.owner_shapley(*data, owners=owners, mean=True, **EUCLIDEAN)
    np.testing.assert_allclose(means.values * 70, sums.values)
    assert means.utility_none == pytest.approx(1 / 3)


def test_names_that_look_alike_are_told():
    data, owners = table(owners=2)
    names = np.array(["Acme", "acme "])[owners].tolist()
    with pytest.warns(th.LabelWarning, match="differ only by case, spaces or type") as met:
        found = th.owner_shapley(*data, owners=names, **EUCLIDEAN)
    assert len(found.owners) == 2
    assert met[0].filename == __file__


def test_very_many_owners_are_told_what_they_cost(monkeypatch):
    data, _ = table()
    monkeypatch.setattr(owner_sums, "MANY", 100)
    with pytest.warns(th.ThresherWarning, match=r"300 owners: their sums need about .* GB"):
        th.owner_shapley(*data, owners=range(300), **EUCLIDEAN)


def test_nobody_near_is_a_warning():
    data, owners = table()
    with pytest.warns(th.ReachWarning, match="no point is within radius"):
        found = th.owner_shapley(*data, owners=owners, radius=1e-9, metric="euclidean")
    assert not found.values.any()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"owners": None}, "owners is None: pass the owner of each point"),
        ({"owners": ["a"] * 299}, "owners has 299 entries but there are 300 points"),
        ({"owners": [None, *["a"] * 299]}, "owners has missing"),
        ({"kernel": "cubic"}, "kernel must be"),
        ({"semivalue": "nucleolus"}, "semivalue must be"),
        ({"semivalue": th.Beta(1e-9, 1)}, "a of Beta"),
    ],
)
def test_bad_arguments(wrong, message):
    data, owners = table()
    with pytest.raises(th.InputError, match=message):
        th.owner_shapley(*data, **{"owners": owners, **EUCLIDEAN, **wrong})


def test_a_forest_goes_without_a_radius():
    data, owners = table()
    forest = th.grow_forest(*data[:2], trees=2)
    with pytest.raises(th.InputError, match="radius, metric and kernel cannot be used with forest"):
        th.owner_shapley(*data, owners=owners, forest=forest, radius=2.0)
