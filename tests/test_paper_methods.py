"""What the experiments compute: each method is what its name says."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.attack import DPTKNN, KNN, TKNN
from thresher.paper import (
    EXPERIMENTS,
    detection,
    leaks,
    runtime,
    tradeoff,
)
from thresher.paper.cells import Cell, Scope
from thresher.paper.consistency import target
from thresher.paper.datasets import SETS, DataSet, generate_2dplanes
from thresher.paper.draws import draw_problem, seed_of


def test_the_target_is_as_steep_as_the_bound_says(rng):
    x, direction = rng.random((20_000, 2)), rng.normal(size=(20_000, 2))
    direction *= 1e-6 / np.linalg.norm(direction, axis=1, keepdims=True)
    slopes = np.abs(target(x + direction) - target(x)) / 1e-6
    assert 3.1 < slopes.max() < np.pi + 1e-3


@pytest.fixture(scope="module")
def planes():
    return generate_2dplanes(4000, seed=3)


def test_every_method_of_detection_is_what_its_name_says(planes):
    problem = draw_problem(planes, "mislabel", "clean", 0)
    data, low = problem.data, {"evaluations": 4000, "accelerate": True}
    wanted = {
        "tknn": th.tknn_shapley(*data, radius=0.5), "knn": th.knn_shapley(*data, k=5),
        "knn k=11": th.knn_shapley(*data, k=11), "leave-one-out": th.leave_one_out(*data, accelerate=True),
        "data-shapley": th.data_shapley(*data, **low, seed=0),
        "data-banzhaf": th.data_banzhaf(*data, **low, seed=0),
    }  # fmt: skip
    for method, valuation in wanted.items():
        cell = Cell("mislabel", "2dplanes", "clean", method, options=(("subsets", 4000),))
        found = detection.run(cell, planes)
        assert found["AUROC"] == roc_auc_score(problem.bad, -valuation.values)


@pytest.mark.parametrize("method", tradeoff.PRIVATE)
def test_every_private_method_is_what_its_name_says(method, planes):
    cell = Cell("noisy", "2dplanes", "clean", method, 0.5, 1)
    problem = draw_problem(planes, "noisy", "clean", 1)
    seed = seed_of(method, "2dplanes", "noisy", "clean", 0.5, 1)
    budget = {"epsilon": 0.5, "delta": 1e-4, "seed": seed}
    release = {
        "dp-tknn": lambda: th.dp_tknn_shapley(*problem.data, **budget, mechanism="paper"),
        "dp-knn": lambda: th.dp_knn_shapley(*problem.data, **budget),
        "dp-knn-sampled": lambda: th.dp_knn_shapley(*problem.data, **budget, subsample=0.01),
        "table": lambda: th.dp_tknn_shapley(*problem.data, **budget, mechanism="table"),
    }[method]()
    found = tradeoff.run(cell, planes)
    assert found["AUROC"] == roc_auc_score(problem.bad, -release.values)
    again = tradeoff.run(dataclasses.replace(cell, draw=2), planes)
    assert again["AUROC"] != found["AUROC"]


def test_agreement_by_hand():
    found = tradeoff.agreement(np.array([3.0, 1.0, 2.0, 0.0]), np.array([1.0, 2.0, 0.0, 0.0]))
    assert found["relative error"] == pytest.approx(np.sqrt((4 + 1 + 4) / 5))
    assert found["relative error, rescaled"] == pytest.approx(np.sqrt(1 - 25 / (14 * 5)))
    assert tradeoff.agreement(np.zeros(3), np.arange(3.0))["rank correlation"] == 0


def test_every_target_of_an_attack_is_what_its_name_says():
    told = {
        "knn": KNN(7), "tknn": TKNN(0.3), "dp-tknn-0.5": DPTKNN(0.5, 1e-4, "paper", 0.3),
        "dp-tknn-1": DPTKNN(1.0, 1e-4, "paper", 0.3), "table-0.5": DPTKNN(0.5, 1e-4, "table", 0.3),
        "table-1": DPTKNN(1.0, 1e-4, "table", 0.3),
    }  # fmt: skip
    for method, wanted in told.items():
        cell = Cell(method, "fraud", "paper", method, 7.0 if method == "knn" else 0.3)
        assert leaks._target(cell) == wanted


def test_the_strong_attack_is_not_the_papers_and_few_rows_leave_fewer_shadow_points():
    few = generate_2dplanes(4000, seed=3)
    keep = np.flatnonzero(few.y == 0)[:450].tolist() + np.flatnonzero(few.y == 1)[:450].tolist()
    few = DataSet("fraud", few.X[keep], few.y[keep], "made up")
    found = leaks.attack(Cell("knn", "fraud", "clean", "knn", 5.0), few)
    assert found["strong AUROC"] > 0.95 > 0.75 > found["AUROC"]
    assert found["points"] < 700


def test_the_effect_of_a_neighbor_is_that_of_taking_it_out(planes):
    found = leaks.compare(Cell("soft-label", "2dplanes", "clean", "soft-label", 5.0), planes)
    problem = draw_problem(planes, "intact", "clean", 0)
    point = int(np.random.default_rng(seed_of("point", "2dplanes", "clean")).integers(2000))
    assert found["with neighbor"] == th.knn_shapley(*problem.data, k=5).values[point]
    assert found["without"] != found["with neighbor"]


def test_seconds_belong_to_their_method(monkeypatch):
    ticks = {"tknn_shapley": 1.0, "knn_shapley": 4.0}

    def tick(call):
        method = call.func.func if isinstance(call.func, functools.partial) else call.func
        return ticks[method.__name__]

    monkeypatch.setattr(runtime, "_seconds", tick)
    found = runtime.run(Cell("runtime", "d=10", "made up", "seconds", 100.0), None)
    assert found == {"tknn": 1.0, "tknn, half near": 1.0, "knn": 4.0, "tknn / knn": 0.25}


def test_the_scope_covers_what_the_paper_covers():
    cells = {name: experiment.cells(Scope()) for name, experiment in EXPERIMENTS.items()}
    for name in ("mislabel", "noisy"):
        found = {(cell.set, cell.method) for cell in cells[name]}
        assert {set_ for set_, _ in found} == set(SETS)
        retrained = {set_ for set_, method in found if method == "data-banzhaf"}
        assert len(retrained) == 9
        assert {dict(cell.options).get("subsets") for cell in cells[name]} == {None, 10_000}
    steps = {(cell.task, cell.step) for cell in cells["radius-ablation"]}
    assert len(steps) == 2 * 9
    assert len({(cell.task, cell.step) for cell in cells["k-ablation"]}) == 2 * 15
    assert {cell.step for cell in cells["privacy"]} == {None, 0.1, 0.5, 1.0}
    assert {cell.task for cell in cells["membership"]} >= {
        "knn",
        "tknn",
        "dp-tknn-0.5",
        "dp-tknn-1",
    }
    assert {cell.set for cell in cells["runtime"]} == {"d=10", "d=100"}
    assert {cell.method for cell in cells["neighbor-effect"]} == {"soft-label", "jia2019"}
    assert {cell.protocol for cell in cells["membership"]} == {"paper", "clean"}
