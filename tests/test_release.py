"""Private releases from end to end."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from releases import FAST, X_VAL, Y_VAL, X, Y, exact, relative, release
from scipy.stats import spearmanr

import thresher as th
from thresher.errors import BudgetError, InputError
from thresher.privacy import Cells, Paper, Table
from thresher.privacy import table_design as table_module
from thresher.privacy.paper_mechanism import PaperDesign


@pytest.mark.parametrize(
    "mechanism", ["table", "cells", Table(prior=False), Table(bound="certified")]
)
def test_much_budget_buys_the_exact_values(mechanism):
    found = release(epsilon=80.0, delta=1e-2, mechanism=mechanism).values
    agreement = spearmanr(found, exact())[0]
    assert agreement > (0.98 if mechanism == "cells" else 0.995)


def test_a_table_without_clipping_and_noise_is_the_exact_one(monkeypatch):
    monkeypatch.setattr(table_module, "discrete_sigma", lambda *_: 1e-3)
    monkeypatch.setattr(table_module, "discrete_mu", lambda *_: 1.0)
    found = release(mechanism=Table(bound=100, prior=False))
    np.testing.assert_allclose(found.values, exact(), atol=1e-3)


@pytest.mark.parametrize("mechanism", ["table", "cells", FAST], ids=["table", "cells", "paper"])
@pytest.mark.filterwarnings("ignore::thresher.errors.ScaleWarning")  # of the paper's
def test_values_are_those_of_the_public_prices(mechanism):
    found = release(mechanism=mechanism)
    np.testing.assert_array_equal(found.values, found.price_list.values(X, Y))


def test_the_private_table_beats_the_score_that_costs_nothing():
    truth = exact()
    free = th.zero_budget_score(X, Y, X_VAL, Y_VAL).values
    assert spearmanr(release().values, truth)[0] > spearmanr(free, truth)[0] + 0.01


def test_the_record_says_all():
    record = release().record
    assert record["mechanism"] == "table"
    assert record["noise"] == "discrete Gaussian"
    assert (record["adjacency"], record["unit"]) == ("add-remove", "point")
    assert record["epsilon_add_remove"] == pytest.approx(1.0, rel=1e-4)
    assert record["epsilon_replace_one"] == pytest.approx(1.482, abs=2e-3)
    assert record["sigma"] == pytest.approx(3.1857 * math.sqrt(record["bound"]), rel=1e-3)
    assert record["ledger"] is None
    assert record["version"] == th.__version__
    assert record["validation_digest"] == release(points=slice(5)).record["validation_digest"]
    with pytest.raises(TypeError):
        record["epsilon"] = 0.0


@pytest.mark.parametrize("mechanism", ["table", "cells"])
def test_under_replacement_the_same_noise_is_for_twice_the_move(mechanism):
    plain = release(mechanism=mechanism)
    replaced = release(mechanism=mechanism, adjacency="replace-one")
    assert replaced.record["epsilon_replace_one"] == pytest.approx(1.0, rel=1e-4)
    assert replaced.record["epsilon_add_remove"] < 1.0 < plain.record["epsilon_replace_one"]
    assert replaced.record["sigma"] > plain.record["sigma"]


def test_json_holds_what_is_public_and_no_value_unless_asked():
    document = json.loads(release().to_json())
    assert "values" not in document
    assert {"record", "table", "prices", "relative_error"} <= document.keys()
    published = json.loads(release(publish="values").to_json())
    assert len(published["values"]) == len(X)
    assert published["record"]["published"] == "values"


def test_saved_prices_value_points_elsewhere(tmp_path):
    found = release()
    found.price_list.save(tmp_path / "prices.json")
    loaded = th.PriceList.load(tmp_path / "prices.json")
    np.testing.assert_array_equal(loaded.values(X[:5], Y[:5]), found.values[:5])


def test_a_seeded_release_repeats_itself_and_is_another_type(tmp_path):
    first, second = release(seed=4), release(seed=4)
    np.testing.assert_array_equal(first.table, second.table)
    assert type(first) is th.SeededRelease
    assert not isinstance(first, th.Release)
    th.Ledger.create(tmp_path / "l.db", epsilon=5, delta=1e-3)
    with pytest.raises(InputError, match="seed cannot be used with ledger"):
        release(seed=4, ledger=tmp_path / "l.db")


def test_an_unseeded_release_is_never_the_same():
    pytest.importorskip("opendp")
    first, second = release(seed=None), release(seed=None)
    assert isinstance(first, th.Release)
    assert not np.array_equal(first.table, second.table)


def test_noise_is_drawn_before_anything_is_counted(monkeypatch):
    happened = []
    for name in ("noise", "measure"):
        original = getattr(table_module.TableDesign, name)

        def noted(self, *arguments, name=name, original=original):
            happened.append(name)
            return original(self, *arguments)

        monkeypatch.setattr(table_module.TableDesign, name, noted)
    release()
    assert happened == ["noise", "measure"]


def test_the_ledger_is_charged_and_the_same_request_is_free(tmp_path):
    pytest.importorskip("opendp")
    path = tmp_path / "ledger.db"
    ledger = th.Ledger.create(path, epsilon=1.0, delta=1e-4, data_set="ours")
    first = release(epsilon=0.6, ledger=path, seed=None)
    left = ledger.remaining()
    assert 0 < left < 0.9
    again = release(epsilon=0.6, ledger=ledger, seed=None, publish="values")
    assert (first.stored, again.stored) == (False, True)
    plain = release(epsilon=0.6, ledger=ledger, seed=None)
    assert "values" not in json.loads(plain.to_json())
    np.testing.assert_array_equal(first.table, again.table)
    np.testing.assert_array_equal(first.values, again.values)
    assert ledger.remaining() == left
    assert first.record["ledger"]["entry"] == 1
    assert ledger.verify(head=first.record["ledger"]["head"]).entries == 3
    with pytest.raises(BudgetError, match="epsilon=0.9 does not fit"):
        release(epsilon=0.9, ledger=ledger, seed=None)
    other = release(epsilon=left, ledger=ledger, seed=None)
    assert other.record["ledger"]["entry"] == 3
    assert ledger.remaining() < 1e-3


def test_a_ledger_under_replacement_is_charged_more(tmp_path):
    pytest.importorskip("opendp")
    spent = []
    for adjacency in ("add-remove", "replace-one"):
        ledger = th.Ledger.create(
            tmp_path / f"{adjacency}.db", epsilon=2, delta=1e-4, adjacency=adjacency
        )
        release(epsilon=0.5, ledger=ledger, seed=None)
        spent.append(ledger.spent().mu_squared)
    assert spent[1] == pytest.approx(2 * spent[0], rel=1e-6)


def test_a_ledger_never_looks_whether_the_points_changed(tmp_path):
    """What is charged, stored and hashed is the same for any points: only their noisy table differs."""
    pytest.importorskip("opendp")
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=1.0, delta=1e-4)
    first = release(epsilon=0.5, ledger=ledger, seed=None)
    changed = release(epsilon=0.5, ledger=ledger, seed=None, points=slice(1, None))
    np.testing.assert_array_equal(first.table, changed.table)
    assert changed.stored
    renewed = release(epsilon=0.5, ledger=ledger, seed=None, points=slice(1, None), version="2")
    assert not renewed.stored
    others = th.Ledger.create(tmp_path / "m.db", epsilon=1.0, delta=1e-4)
    release(epsilon=0.5, ledger=others, seed=None, points=slice(300))
    requests = [book.entries()[1]["request"] for book in (ledger, others)]
    assert requests[0] == requests[1]


def test_a_ledger_of_points_is_charged_for_owners_as_for_their_replacement(tmp_path):
    """One point more may turn the whole of its owner's clipped vector."""
    pytest.importorskip("opendp")
    owners, spent = np.arange(800) // 2, []
    for unit in ("owner", "point"):
        ledger = th.Ledger.create(tmp_path / f"{unit}.db", epsilon=3, delta=1e-4, unit=unit)
        release(epsilon=0.5, ledger=ledger, seed=None, owners=owners, points_per_owner=2)
        spent.append(ledger.spent().mu_squared)
    assert spent[1] == pytest.approx(2 * spent[0], rel=1e-6)


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("mechanism", ["table", "cells"])
def test_values_of_owners_have_the_right_size_if_theirs_is_public(size, mechanism):
    owners, truth = np.arange(800) // size, exact()
    options = {"epsilon": 20.0, "delta": 1e-2, "owners": owners, "mechanism": mechanism}
    known = release(points_per_owner=size, **options)
    assert relative(known.values, truth) < 0.5
    assert known.error.relative < 1
    with pytest.warns(th.ScaleWarning, match="pass roughly how many points each owner has"):
        unknown = release(**options)
    taken_for_one = relative(unknown.values, truth)
    assert taken_for_one > 2 * relative(known.values, truth)
    assert unknown.error.relative is None
    assert np.isnan(unknown.error.low).all()


def test_the_size_of_owners_goes_with_owners():
    with pytest.raises(InputError, match="points_per_owner needs owners="):
        release(points_per_owner=3)
    plan = th.plan_release(
        X_VAL, Y_VAL, points=800, epsilon=1, delta=1e-4, points_per_owner=4, mechanisms="table"
    )
    assert plan[0].relative_error > 0


def test_a_seeded_release_says_so_wherever_it_goes(tmp_path):
    document = json.loads(release().to_json())
    assert document["record"]["seeded"] is True
    assert "protects nobody" in document["format"]
    release().save(tmp_path / "r.json")
    prices = th.PriceList.load(tmp_path / "r.json")  # an owner can value own points with it
    np.testing.assert_array_equal(prices.values(X[:3], Y[:3]), release().values[:3])


def test_mechanisms_that_cannot_tell_their_error_do_not(tmp_path):
    pytest.importorskip("dp_accounting")
    assert release(mechanism=FAST).error.relative is None
    assert release(mechanism=Table(prior=False)).error.relative is None
    sampled = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, epsilon=0.3, delta=1e-4, subsample=0.01, seed=1)
    assert sampled.error.relative is None


def test_labels_that_no_file_can_hold_are_refused_before_anything_is_charged(tmp_path):
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=2, delta=1e-4)
    with pytest.raises(InputError):
        th.dp_tknn_shapley(
            X, [("t", y) for y in Y], X_VAL, [("t", y) for y in Y_VAL],
            epsilon=1, delta=1e-4, ledger=ledger,
        )  # fmt: skip
    assert len(ledger) == 0


def test_numbers_of_numpy_are_numbers_in_the_record():
    found = release(mechanism=Table(bound=np.int64(5), prior=np.True_))
    assert json.loads(found.to_json())["record"]["bound"] == 5


def test_a_plan_where_nothing_is_near_tells_nothing():
    plans = th.plan_release(X_VAL, Y_VAL, points=100, epsilon=1, delta=1e-4, radius=1e-9)
    assert all(math.isnan(plan.relative_error) for plan in plans)


def test_points_without_an_owner_count_for_nothing():
    owners = [None if i % 2 else "one" for i in range(800)]
    found = release(owners=owners, points_per_owner=400)
    assert np.all(found.values[1::2] == 0)
    assert np.any(found.values[::2] != 0)


def test_a_ledger_of_owners_takes_no_release_of_points(tmp_path):
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=2, delta=1e-4, unit="owner")
    with pytest.raises(InputError, match="the ledger protects owners: pass owners="):
        release(ledger=ledger, seed=None)
    assert ledger.remaining() == 2.0


def test_a_sampled_release_needs_a_basic_ledger(tmp_path):
    pytest.importorskip("opendp")
    pytest.importorskip("dp_accounting")
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=2, delta=1e-3)
    with pytest.raises(BudgetError, match="filter='basic'"):
        release(ledger=ledger, seed=None, mechanism=FAST)
    basic = th.Ledger.create(tmp_path / "b.db", epsilon=2, delta=1e-3, filter="basic")
    release(ledger=basic, seed=None, mechanism=FAST)
    assert basic.remaining() == 1.0


def test_a_crash_between_charge_and_release_wastes_budget_and_stores_nothing(tmp_path, monkeypatch):
    pytest.importorskip("opendp")
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=2, delta=1e-4)

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(table_module.TableDesign, "measure", fail)
    with pytest.raises(KeyboardInterrupt):
        release(epsilon=0.5, ledger=ledger, seed=None)
    assert len(ledger) == 1
    assert [entry["kind"] for entry in ledger.entries()] == ["cap", "charge"]


def test_owners_are_protected_as_a_whole_and_told_their_own():
    owners = np.repeat([f"owner {i}" for i in range(200)], 4)
    found = release(owners=owners, points_per_owner=4)
    assert found.record["unit"] == "owner"
    np.testing.assert_array_equal(found.values_of("owner 3"), found.values[12:16])
    assert len(set(found.personal_epsilon[12:16])) == 1
    with pytest.raises(InputError, match="owner 'nobody' has no points"):
        found.values_of("nobody")
    with pytest.raises(InputError, match="pass owners="):
        release().values_of("owner 3")
    with pytest.raises(InputError, match="can protect all points of an owner together"):
        release(owners=owners, mechanism=FAST)


def test_personal_epsilons_are_at_most_that_of_the_release():
    found = release()
    assert found.personal_epsilon.max() <= found.record["epsilon"] * (1 + 1e-6)
    assert found.personal_epsilon.min() < found.personal_epsilon.max()
    alone = release(points=slice(1))
    assert alone.personal_epsilon[0] == found.personal_epsilon[0]  # of its own data alone


def test_personal_epsilons_under_replacement_are_of_replacement():
    found = release(adjacency="replace-one")
    assert found.personal_epsilon.max() <= 1 + 1e-6
    assert found.personal_epsilon.min() >= found.record["epsilon_add_remove"] - 1e-6


def test_errors_are_about_right():
    """Ten seeded releases of 800 points: the told error is within a factor of two on average, and
    the intervals hold at least four fifths of the exact values (about nine tenths are usual)."""
    truth, told, real, held = exact(), [], [], []
    for seed in range(10):
        found = release(seed=seed)
        told.append(found.error.relative)
        real.append(relative(found.values, truth))
        held.append(((found.error.low <= truth) & (truth <= found.error.high)).mean())
    assert 0.5 < np.mean(told) / np.mean(real) < 2
    assert np.mean(held) > 0.8


def test_a_plan_foretells_the_error_and_ranks_mechanisms():
    plans = th.plan_release(X_VAL, Y_VAL, points=len(X), epsilon=0.5, delta=1e-4)
    assert {plan.mechanism for plan in plans} == {"table", "cells"}
    assert plans[0].relative_error <= plans[1].relative_error
    (table,) = (plan for plan in plans if plan.mechanism == "table")
    real = np.mean([relative(release(epsilon=0.5, seed=s).values, exact()) for s in range(5)])
    assert 0.4 < table.relative_error / real < 2.5
    assert "relative error" in repr(table)


@pytest.mark.parametrize("mechanism", ["table", "cells", FAST], ids=["table", "cells", "paper"])
def test_no_points_one_point_and_points_out_of_reach(mechanism):
    nobody = th.dp_tknn_shapley(
        np.empty((0, 3)), [], X_VAL, Y_VAL, epsilon=1, delta=1e-4, mechanism=mechanism, seed=0
    )
    assert nobody.values.shape == (0,)
    assert np.isfinite(nobody.price_list.table).all()
    assert release(points=slice(1), mechanism=mechanism).values.shape == (1,)
    broken = np.full((3, 3), np.nan)
    found = th.dp_tknn_shapley(
        broken, ["up"] * 3, X_VAL, Y_VAL, epsilon=1, delta=1e-4, mechanism=mechanism, seed=0
    )
    assert found.values.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(found.table, nobody.table)


def test_precomputed_distances_need_a_bound_and_give_the_same_table():
    unit, unit_val = (A / np.linalg.norm(A, axis=1)[:, None] for A in (X, X_VAL))
    D = np.round(1 - unit @ unit_val.T, 9)
    options = {"metric": "precomputed", "epsilon": 1, "delta": 1e-4, "radius": 0.5, "seed": 0}
    with pytest.raises(InputError, match=r"Table\(bound=...\)"):
        th.dp_tknn_shapley(D, Y, None, Y_VAL, **options)
    given_ = th.dp_tknn_shapley(D, Y, None, Y_VAL, mechanism=Table(bound=20), **options)
    ours = release(mechanism=Table(bound=20))
    np.testing.assert_array_equal(given_.table, ours.table)
    assert given_.error.relative is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"delta": 2}, "delta must be"),
        ({"delta": 0.0}, "cells"),
        ({"mechanism": "magic"}, "mechanism must be one of 'table', 'paper', 'cells'"),
        ({"adjacency": "swap"}, "adjacency must be one of"),
        ({"publish": "all"}, "publish must be one of"),
        ({"owners": [1]}, "owners has 1 entries but there are 800 points"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options, message):
    with pytest.raises(InputError, match=message):
        release(**options)


@pytest.mark.parametrize("epsilon", [0.41, 0.47, 0.73, 0.11])
def test_cells_take_the_whole_cap_and_not_more(epsilon, tmp_path):
    pytest.importorskip("opendp")
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=epsilon, delta=0)
    release(epsilon=epsilon, delta=0.0, mechanism="cells", seed=None, ledger=ledger)
    assert ledger.remaining() == 0.0


def test_cells_have_no_delta():
    found = release(delta=0.0, mechanism=Cells(cells=8))
    assert found.record["delta"] == 0.0
    assert found.table.shape == (8, 2)


@pytest.mark.parametrize("counts", ["three", "disjoint"])
@pytest.mark.parametrize("sample", ["fresh", "shared"])
@pytest.mark.parametrize("rescale", [False, True])
def test_the_variants_of_the_paper_give_their_counts(counts, sample, rescale, monkeypatch):
    """With next to no noise and nearly all points sampled, they are the counts of all points."""
    monkeypatch.setattr(PaperDesign, "multiplier", 1e-6)
    monkeypatch.setattr(PaperDesign, "epsilon", lambda self, adjacency, unit: 1.0)
    monkeypatch.setattr("thresher.privacy.paper_mechanism.discrete_sigma", lambda length, mu: 1e-3)
    options = Paper(rate=0.999, counts=counts, sample=sample, rescale=rescale)
    found = release(mechanism=options)
    book = th.NeighborCounts(X_VAL, Y_VAL).add(X, Y)
    both = book.same + book.other
    wanted = (
        [np.full(100, len(X)), both, book.same] if counts == "three" else [book.same, book.other]
    )
    assert (
        np.abs(found.table / 16 - np.array(wanted)).max() <= 8
    )  # of 800 points about 1 is missing
    assert spearmanr(found.values, exact())[0] > 0.99
