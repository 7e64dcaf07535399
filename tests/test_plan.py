"""Releases that would be noise are told from public numbers, and refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from releases import X_VAL, Y_VAL, X, Y, release

import thresher as th
from thresher.errors import InputError
from thresher.privacy import Table

FEW = {"epsilon": 0.05, "delta": 1e-6, "radius": 0.1}


@pytest.mark.parametrize("mechanism", ["table", "cells", Table(prior=False)])
def test_a_release_that_would_be_noise_is_refused_before_it_is_charged(tmp_path, mechanism):
    pytest.importorskip("opendp")
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=60, delta=1e-4)
    arguments = (X, Y, X_VAL, Y_VAL)
    with pytest.raises(InputError, match="would be noise: 12 points .* Nothing was charged"):
        th.dp_tknn_shapley(*arguments, **FEW, mechanism=mechanism, ledger=ledger, points=12)
    assert len(ledger) == 0
    options = {**FEW, "mechanism": mechanism, "ledger": ledger}
    made = th.dp_tknn_shapley(*arguments, **options, points=12, anyway=True)
    assert not made.stored
    assert th.dp_tknn_shapley(*arguments, **options).stored  # the same request
    assert len(ledger) == 1
    enough = th.dp_tknn_shapley(*arguments, **options | {"epsilon": 3.0}, points=800)
    assert not enough.is_noise


def test_noise_is_foretold_by_public_numbers_alone():
    """The same words, whatever the points: none, many, or none that can be read."""
    said = set()
    for rows in (X, X[:0], np.full_like(X, np.nan), 1000 * X):
        with pytest.raises(InputError) as caught:
            th.dp_tknn_shapley(rows, Y[: len(rows)], X_VAL, Y_VAL, **FEW, points=12, seed=0)
        said.add(str(caught.value))
    assert len(said) == 1


@pytest.mark.parametrize("epsilon", [0.03, 0.3, 3.0])
@pytest.mark.parametrize("mechanism", ["table", "cells"])
def test_what_a_plan_calls_noise_is_noise(mechanism, epsilon):
    """Of ten releases at least eight are as foretold where the case is clear."""
    for points in (20, 800):
        given = {"epsilon": epsilon, "delta": 1e-6, "radius": 0.1}
        (plan,) = th.plan_release(X_VAL, Y_VAL, points=points, mechanisms=mechanism, **given)
        made = [
            release(points=slice(points), mechanism=mechanism, seed=s, **given) for s in range(10)
        ]
        noise = sum(each.is_noise for each in made)
        if noise not in range(3, 8):
            assert plan.is_noise == (noise >= 8)
        assert ("its table is noise" in repr(plan)) == plan.is_noise


def test_many_points_are_foretold_from_few():
    """A billion points are never drawn; noise grows smaller beside more points."""
    options = {"epsilon": 0.01, "delta": 1e-6, "radius": 0.05, "mechanism": Table(bound=90)}
    with pytest.raises(InputError, match="would be noise: 50 points"):
        th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, **options, points=50, seed=0)
    th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, **options, points=10**9, seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"anyway": True}, "anyway needs points: "),
        ({"points": 0}, "points must be"),
        ({"points": 5, "anyway": "yes"}, "anyway must be True or False"),
    ],
)
def test_what_foretells_noise_is_checked(options, message):
    with pytest.raises(InputError, match=message):
        th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, **FEW, **options)
    distances = np.ones((3, 9))
    with pytest.raises(InputError, match="points needs features"):
        th.dp_tknn_shapley(
            distances, ["a"] * 3, None, ["a", "b", "a"] * 3, metric="precomputed",
            mechanism=Table(bound=3), epsilon=1, delta=1e-4, points=3,
        )  # fmt: skip


def test_the_command_compares_budgets_before_anything_is_spent(tmp_path, run_command):
    lines = ["a,b,label", *(f"{a},{b},{c}" for (a, b), c in zip(X_VAL[:60, :2], Y_VAL))]
    (tmp_path / "val.csv").write_text("\n".join(lines))
    figure = tmp_path / "plan.svg"
    done = run_command(
        "plan", "--validation", str(tmp_path / "val.csv"), "--points", "500", "--label", "label",
        "--epsilon", "1,0.2", "--plot", str(figure),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["plans"]
    assert [row["epsilon"] for row in rows] == [0.2, 0.2, 1.0, 1.0]
    assert {row["mechanism"] for row in rows} == {"table", "cells"}
    assert all(row["replace_one"] > row["add_remove"] and row["mu_squared"] > 0 for row in rows)
    assert "ranks, no budget" in done.stderr
    assert figure.read_text().startswith("<?xml")
    refused = run_command("plan", "--validation", "v.csv", "--points", "5", "--epsilon", "much")
    assert refused.returncode == 1
    assert "--epsilon must be numbers such as 0.1,0.5,1" in refused.stderr


def test_the_command_plans_with_a_noisy_count(tmp_path, run_command):
    lines = ["a,b,label", *(f"{a},{b},{c}" for (a, b), c in zip(X_VAL[:60, :2], Y_VAL))]
    (tmp_path / "val.csv").write_text("\n".join(lines))
    command = (
        "plan", "--validation", str(tmp_path / "val.csv"), "--points", "500", "--label", "label",
        "--epsilon", "1", "--delta", "1e-5", "--mechanisms", "table",
    )  # fmt: skip
    plain, counted = (run_command(*command, *more) for more in ((), ("--counted",)))
    assert counted.returncode == 0, counted.stderr
    (before,), (after,) = (json.loads(done.stdout)["plans"] for done in (plain, counted))
    assert after["mechanism"] == "table"
    assert after["mu_squared"] == pytest.approx(before["mu_squared"], rel=1e-6)  # of one budget
    assert after["sigma"] > before["sigma"] or after["bound"] != before["bound"]


def test_the_bound_fits_the_number_of_points():
    """Few points need little noise, many can do without clipping; the release takes the same."""
    options = {"delta": 1e-5, "epsilon": 1}
    bounds = [
        th.plan_release(X_VAL, Y_VAL, points=points, mechanisms="table", **options)[0].record[
            "bound"
        ]
        for points in (100, 10**6)
    ]
    assert bounds[0] < bounds[1]
    found = th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, points=10**6, seed=0, **options)
    assert found.record["bound"] == bounds[1]
