"""A noisy count of units, and the table that fits it: what it costs, and what depends on it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from releases import X_VAL, Y_VAL, X, Y, release
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.cli.release import table_or_counted
from thresher.errors import InputError
from thresher.privacy import Table
from thresher.privacy import table_mechanism as counted_module
from thresher.privacy.accountants import discrete_mu, gaussian_mu
from thresher.privacy.noise import Seeded

COUNTED = Table(bound="counted")


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("owned", [False, True])
def test_count_and_table_together_cost_what_was_asked_for(adjacency, owned):
    owners = {"owners": np.arange(len(X)) // 4, "points_per_owner": 4} if owned else {}
    found = release(mechanism=COUNTED, adjacency=adjacency, **owners)
    design, mu = found._design, gaussian_mu(1.0, 1e-4)
    count = discrete_mu(1, found.record["count_sigma"])
    table = design.mu(design.length(adjacency))
    assert np.hypot(count, table) == pytest.approx(mu, rel=1e-9)
    assert np.hypot(count, table) <= mu * (1 + 1e-12)
    assert (count / mu) ** 2 == pytest.approx(0.03)
    unit = design.setting.unit
    assert design.cost(adjacency, unit, "gaussian").mu_squared == pytest.approx(mu**2)
    assert found.record["epsilon"] == 1.0
    assert (
        abs(found.record["count"] - len(X) / (4 if owned else 1)) < 5 * found.record["count_sigma"]
    )


def test_a_unit_moves_the_count_by_one_and_the_rest_depends_on_the_count_alone(monkeypatch):
    """The same tape with a point, without it, and without it at the count with it."""
    whole, less = release(mechanism=COUNTED), release(mechanism=COUNTED, points=slice(1, None))
    assert whole.record["count"] - less.record["count"] == 1
    honest = counted_module.CountedDesign._at
    monkeypatch.setattr(
        counted_module.CountedDesign, "_at", lambda self, _: honest(self, whole.record["count"])
    )
    same = release(mechanism=COUNTED, points=slice(1, None))
    ours, theirs = ({**r.record, "table_digest": 0} for r in (whole, same))
    assert ours == theirs
    moved = (whole.table - same.table) * whole._design.entries.roots
    assert (moved**2).sum() <= whole._design.length("add-remove") ** 2


def test_noise_is_drawn_before_anything_is_counted(monkeypatch):
    order, draw, units = [], Seeded.gaussian, counted_module.CountedDesign._at
    measure = counted_module.CountedDesign.measure
    monkeypatch.setattr(Seeded, "gaussian", lambda *a: order.append("noise") or draw(*a))
    monkeypatch.setattr(
        counted_module.CountedDesign, "_at", lambda *a: order.append("count") or units(*a)
    )
    monkeypatch.setattr(
        counted_module.CountedDesign, "measure", lambda *a: order.append("table") or measure(*a)
    )
    release(mechanism=COUNTED)
    assert order[:3] == ["noise", "count", "noise"]
    assert order.index("table") == len(order) - 2  # the record is read again at the end


def test_the_bound_is_the_one_that_fits_the_count():
    many = np.tile(X, (20, 1)) + 0.01 * np.random.default_rng(1).normal(size=(20 * len(X), 3))
    data = many, np.tile(Y, 20), X_VAL, Y_VAL
    about = {"epsilon": 4, "delta": 1e-4, "seed": 0}
    found = th.dp_tknn_shapley(*data, mechanism=COUNTED, **about)
    usual = th.dp_tknn_shapley(*data, **about)
    assert found.record["bound"] > usual.record["bound"]
    exact = th.tknn_shapley(*data).values
    error, plain = (((each.values - exact) ** 2).mean() for each in (found, usual))
    assert error < plain / 4


def test_a_ledger_stores_the_count_and_answers_by_it(tmp_path):
    pytest.importorskip("opendp")
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=1.001, delta=1e-4)
    options = {"mechanism": COUNTED, "ledger": ledger, "seed": None}
    first, again = release(**options), release(**options, points=slice(9))
    assert again.stored
    assert again.record["count"] == first.record["count"]
    np.testing.assert_array_equal(again.price_list.table, first.price_list.table)
    with pytest.raises(th.BudgetError):
        release(**options, version="2")


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(InputError, match="bound='counted' cannot be used with points"):
        th.dp_tknn_shapley(
            X, Y, X_VAL, Y_VAL, epsilon=1, delta=1e-4, mechanism=COUNTED, points=800, seed=0
        )
    with pytest.raises(InputError, match="bound='counted' needs the prior"):
        release(mechanism=Table(bound="counted", prior=False))


def test_a_plan_expects_the_count_that_it_is_asked_for():
    about = {"points": 5000, "epsilon": 1, "delta": 1e-5}
    plain, counted = (
        th.plan_release(X_VAL, Y_VAL, mechanisms=each, **about)[0] for each in ("table", COUNTED)
    )
    assert counted.record["count"] == 5000
    assert counted.record["bound"] == plain.record["bound"]
    assert counted.record["sigma"] > plain.record["sigma"]  # the count takes a part
    np.testing.assert_allclose(counted.mu_squared, plain.mu_squared)


def test_the_command_releases_with_a_count(tmp_path):
    pytest.importorskip("opendp")
    for name, rows, labels in (("val", X_VAL, Y_VAL), ("points", X, Y)):
        lines = ["a,b,c,y", *(f"{a},{b},{c},{y}" for (a, b, c), y in zip(rows, labels))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    th.Ledger.create(tmp_path / "l.db", epsilon=2, delta=1e-4).close()
    command = [
        "release", tmp_path / "points.csv", "--validation", tmp_path / "val.csv", "--epsilon", 1,
        "--delta", 1e-5, "--ledger", tmp_path / "l.db", "--out-prices", tmp_path / "prices.json",
        "--counted",
    ]  # fmt: skip
    done = CliRunner().invoke(app, [str(word) for word in command])
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    assert abs(record["count"] - len(X)) < 10 * record["count_sigma"]


@pytest.mark.parametrize(
    ("mechanism", "points", "message"),
    [("cells", None, "--counted needs --mechanism table, got cells"),
     ("table", 800, "--counted cannot be used with --points")],
)  # fmt: skip
def test_the_command_refuses_a_count_that_is_not_needed(mechanism, points, message):
    assert table_or_counted(mechanism, points, counted=False) == mechanism
    with pytest.raises(InputError, match=message):
        table_or_counted(mechanism, points, counted=True)
