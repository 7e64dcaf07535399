"""Private rounds that count in the leaves of a public forest."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import thresher as th
from thresher.cli.federate import _write
from thresher.errors import InputError
from thresher.federate.round_release import Holding, outcome
from thresher.privacy.accountants import discrete_sigma, gaussian_mu
from thresher.runs.appraisal import appraise_files

pytest.importorskip("cryptography")

federate = th.federate
RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(400, 3))
Y = np.where(X[:, 0] + 0.3 * RANDOM.normal(size=400) > 0, "yes", "no")
X_VAL, Y_VAL, X, Y = X[:100], Y[:100], X[100:], Y[100:]
TREES = 4
FOREST = federate.public_forest(X_VAL, Y_VAL, trees=TREES, leaves=8)
KEYS = {name: federate.Key(bytes([i + 1]) * 32) for i, name in enumerate("abc")}
TERMS = {
    "silos": {name: key.public for name, key in KEYS.items()}, "key": federate.Key(b"c" * 32),
    "fewest": 3, "epsilon": 1, "delta": 1e-6,
}  # fmt: skip


def make_task(**more):
    return federate.Task.create(X_VAL, Y_VAL, **{**TERMS, "forest": FOREST, **more})


@pytest.fixture(scope="module")
def task():
    return federate.Task.read(json.loads(json.dumps(make_task().document())))


def footprint(task, rows, owners=None):
    named = None if owners is None else np.asarray(owners)[rows]
    return Holding.of(task, X[rows], Y[rows], named).table(task)


def released(task, rows, noise=0, holding=None):
    table = footprint(task, rows) + noise
    return outcome(task, table, [0, 1, 2], bytes(32), holding or Holding.of(task, X, Y))


def test_silos_add_up_to_the_counts_of_the_forest(task):
    parts = [footprint(task, np.arange(i, 300, 3)) for i in range(3)]
    exact = th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST).add(X, Y)
    np.testing.assert_array_equal(sum(parts), task.design.scale * exact.table)
    assert task.protocol.entries == exact.table.size


def test_values_at_home_are_those_of_the_forest_where_noise_is_small():
    large = make_task(epsilon=40, delta=1e-3)
    found = released(large, np.arange(300))
    exact = th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST).add(X, Y).price_list().values(X, Y)
    np.testing.assert_allclose(found.values, exact, atol=1e-12)
    stranger = X.copy()
    stranger[7, 1] = np.nan
    holding = Holding.of(large, stranger, Y)
    assert list(released(large, np.arange(300), holding=holding).unusable) == [7]


def test_noise_is_for_the_square_root_of_the_trees(task):
    mu = gaussian_mu(1, 1e-6)
    assert task.terms["bound"] == TREES
    assert task.design.sigma == pytest.approx(discrete_sigma(64 * math.sqrt(TREES), mu))
    noise = np.random.default_rng(0).normal(
        scale=task.share_sigma * math.sqrt(3), size=task.side.shape
    )
    found = released(task, np.arange(300), np.rint(noise).astype(np.int64))
    exact = th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST).add(X, Y).price_list().values(X, Y)
    assert np.corrcoef(found.values, exact)[0, 1] > 0.9
    assert found.record["epsilon_add_remove"] == 1
    assert found.personal_epsilon.max() == pytest.approx(1)


@pytest.mark.parametrize("unit", ["point", "owner"])
def test_no_unit_moves_the_table_further_than_the_noise_is_for(unit):
    """All removals and replacements among some owners, of whom the last has half of the points."""
    more = {} if unit == "point" else {"unit": "owner", "points_per_owner": 3}
    task = make_task(**more)
    names = np.arange(300) if unit == "point" else np.minimum(np.arange(300) // 3, 50)
    owners = None if unit == "point" else names
    design, alone = task.design, {}
    for name in np.unique(names)[:51]:
        alone[name] = footprint(task, np.flatnonzero(names == name), owners).astype(float).ravel()
    moves = np.array(list(alone.values()))
    lengths = np.sqrt((moves**2).sum(axis=1))
    assert lengths.max() <= design.length("add-remove") * (1 + 1e-12)
    assert lengths.max() > 0.9 * design.length("add-remove")
    replaced = np.sqrt(((moves[:, None] - moves[None]) ** 2).sum(axis=2))
    assert replaced.max() <= design.length("replace-one") * (1 + 1e-12)
    rest = footprint(task, np.flatnonzero(names != names[0]), owners)
    whole = footprint(task, np.arange(300), owners)
    np.testing.assert_array_equal((whole - rest).ravel(), moves[0])


def test_a_silo_as_a_whole_is_clipped_as_one(task):
    whole = make_task(unit="silo", points_per_owner=100)
    table = footprint(whole, np.arange(300)).astype(float)
    assert math.sqrt((table**2).sum()) <= whole.design.length("add-remove")
    assert TREES * 100**2 / 16 < whole.terms["bound"] < TREES * 100**2
    assert make_task(unit="silo", bound="certified").terms["bound"] == TREES


def test_owners_are_paid_by_what_leaves_pay(task):
    owned = make_task(unit="owner", points_per_owner=3, epsilon=30, bound=TREES * 9)
    holding = Holding.of(owned, X, Y, np.arange(300) // 3)
    found = outcome(owned, holding.table(owned), [0, 1, 2], bytes(32), holding)
    prices = owned.design.setting.entry_prices(found.price_list)
    counts = th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST).add(X, Y).table
    assert counts.ravel() @ prices == pytest.approx(found.values.sum())
    paid = th.private_payout(found, pot=100_000)
    gains = counts.ravel() @ np.maximum(prices, 0.0)
    assert paid.rate == pytest.approx(100_000 / gains)
    with pytest.raises(InputError, match="needs a release of classes"):
        th.private_payout(found, pot=100_000, players="owners")


def test_a_plan_is_made_by_points_like_the_validation_set(task):
    plan = task.plan(300)
    assert 0.05 < plan.relative_error < 1
    assert plan.rank_agreement > plan.zero_budget
    assert plan.record["sigma"] == pytest.approx(task.design.drawn_sigma / task.design.scale)


def test_mass_shows_gross_lies(task):
    found = released(task, np.arange(300))
    honest = federate.check_plausibility(found, 300)
    assert honest.per_point == honest.expected == TREES
    assert honest.is_plausible
    assert not federate.check_plausibility(found, 30).is_plausible
    assert federate.check_plausibility(released(task, np.arange(300), 64 * 1000), 300).impossible


def test_it_is_saved_shown_and_opened_again(task, tmp_path, capsys):
    found = released(task, np.arange(300))
    found.save(tmp_path / "release.json")
    found.report(tmp_path / "page.html")
    prices = th.PriceList.load(tmp_path / "release.json")
    np.testing.assert_array_equal(prices.values(X, Y), found.values)
    assert found.relative_error is None
    assert "without a prior" in found.error.why
    _write(found, tmp_path / "prices.json", None, force=False)
    assert (tmp_path / "prices.json").exists()
    assert json.loads(capsys.readouterr().out)["trees"] == TREES


def test_points_in_a_file_are_appraised_by_leaves(task, tmp_path):
    found = released(task, np.arange(300))
    found.price_list.save(tmp_path / "prices.json")
    lines = [",".join(map(repr, [*row, label])) for row, label in zip(X.tolist(), Y.tolist())]
    (tmp_path / "mine.csv").write_text("\n".join(["a,b,c,y", *lines]).replace("'", ""))
    appraised = appraise_files(str(tmp_path / "mine.csv"), tmp_path / "prices.json")
    np.testing.assert_array_equal(appraised.values, found.values)
    assert appraised.record["trees"] == TREES
    (tmp_path / "far.csv").write_text("a,b,c,y\n" + "9e6,9e6,9e6,yes\n" * 20)
    with pytest.raises(InputError, match="another scale"):
        appraise_files(str(tmp_path / "far.csv"), tmp_path / "prices.json")


def test_another_forest_is_another_task(task):
    document = json.loads(json.dumps(task.document()))
    other = make_task(forest=federate.public_forest(X_VAL, Y_VAL, trees=TREES, leaves=7))
    assert other.digest != task.digest
    document["validation"] = other.document()["validation"]
    with pytest.raises(InputError, match="not the one that the task names"):
        federate.Task.read(document)


def test_what_leaves_cannot_do_is_refused(task):
    with pytest.raises(InputError, match="near means in the same leaf"):
        make_task(radius=1.0)
    with pytest.raises(InputError, match="private points cannot judge each other"):
        federate.Task.create(None, None, **TERMS, forest=FOREST)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X_VAL[:, 0], "b": np.where(X_VAL[:, 1] > 0, "x", "z")})
    texts = federate.public_forest(frame, Y_VAL, trees=2, leaves=4)
    with pytest.raises(InputError, match="columns of text"):
        federate.Task.create(frame, Y_VAL, **TERMS, forest=texts)
    with pytest.raises(InputError, match="leaves must be"):
        federate.public_forest(X_VAL, Y_VAL, leaves=1)
