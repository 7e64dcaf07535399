"""A program as a user writes it, with a type for each result.

`mypy --strict` must pass it without an ignore, and it must run: see tests/test_types.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import dask.array as da
import numpy as np
from numpy.typing import NDArray

import thresher as th
from thresher.attack import TKNN
from thresher.federate import Coordinator, Key, Silo, Task, check_plausibility
from thresher.privacy import Table


def rows(seed: int, count: int) -> tuple[NDArray[np.float64], list[str]]:
    X = np.random.default_rng(seed).normal(size=(count, 3))
    return X, ["yes" if row[0] > 0 else "no" for row in X]


def find_wrong_labels(folder: Path) -> list[int]:
    X, y = rows(0, 90)
    X_val, y_val = rows(1, 60)
    flipped, mask = th.flip_labels(y, fraction=0.1, seed=0)
    print(f"{int(mask.sum())} labels are wrong")
    radius: float = th.suggest_radius(X_val, y_val)
    valuation = th.tknn_shapley(X, flipped, X_val, y_val, radius=radius)
    assert_type(valuation, th.Valuation)
    valuation.save(folder / "values.parquet")
    valuation.report(folder / "report.html", X, flipped, X_val, y_val)
    again = th.Valuation.load(folder / "values.parquet")
    assert_type(again, th.Valuation)
    total: float = float(again.values.sum()) - again.efficiency_gap()
    print(total, again.utility_all, again.params["radius"], len(again))
    findings = th.explain(again, X, flipped, X_val, y_val)
    print(findings, [str(word) for word in findings.suggestion][:3])
    frame = again.to_frame("pandas")
    print(frame.head())
    nearest = th.knn_shapley(X, flipped, X_val, y_val, k=3, error=0.01)
    other = th.tknn_shapley(X, flipped, X_val, y_val, semivalue=th.Beta(4, 1), mean=True)
    print(nearest.values[:3], other.values[:3])
    return [int(row) for row in again.suspects(5)]


def value_with_trees() -> th.Findings:
    X, y = rows(0, 90)
    forest: th.Forest = th.grow_forest(X, y, trees=10)
    by_forest = th.forest_shapley(X, y, forest=forest)
    assert_type(by_forest, th.Valuation)
    valuation, findings = th.forest_findings(X, y, trees=10)
    print(by_forest.values.dtype, valuation.method)
    return findings


def value_elsewhere(X: da.Array, y: list[str], X_val: NDArray[np.float64]) -> th.Valuation:
    spread: th.DaskValuation = th.tknn_shapley(X, y, X_val, ["yes"] * len(X_val))
    return spread.compute()


def pay_owners(folder: Path) -> dict[str, int]:
    X, y = rows(0, 60)
    X_val, y_val = rows(1, 30)
    owners = ["anna" if row % 2 else "ben" for row in range(len(y))]
    values: th.OwnerValuation = th.owner_shapley(X, y, X_val, y_val, owners=owners)
    paid: th.Payout = th.payout(values, pot=1000)
    paid.save(folder / "payout.csv")
    print(values.by_owner(), paid.paid, paid.status())
    lines: dict[str, float] = th.tknn_shapley(X, y, X_val, y_val, owners=owners).by_owner()
    print(lines)
    return {str(owner): cents for owner, cents in paid.cents.items()}


def release_privately(folder: Path) -> float | None:
    X, y = rows(0, 200)
    X_val, y_val = rows(1, 60)
    plans: list[th.Plan] = th.plan_release(X_val, y_val, points=200, epsilon=1, delta=1e-5)
    print(plans[0].mechanism, plans[0].relative_error)
    with th.Ledger.create(folder / "ledger.db", epsilon=2, delta=1e-5) as ledger:
        release = th.dp_tknn_shapley(
            X, y, X_val, y_val, epsilon=1, delta=1e-5, mechanism=Table(), ledger=ledger
        )
        print(ledger.remaining())
    release.save(folder / "prices.json")
    prices: th.PriceList = th.PriceList.load(folder / "prices.json")
    worth: NDArray[np.float64] = prices.newcomer_values(X[:2], y[:2])
    assert_type(release, th.Release | th.SeededRelease)
    print(worth, prices.label_values(X[:2]).shape, release.values[:2])
    return release.relative_error


def count_live(folder: Path) -> NDArray[np.float64]:
    X, y = rows(0, 40)
    X_val, y_val = rows(1, 20)
    counts = th.NeighborCounts(X_val, y_val).add(X[:20], y[:20]).add(X[20:], y[20:])
    exact: NDArray[np.float64] = counts.price_list().values(X, y)
    again: NDArray[np.float64] = th.leave_one_out(X, y, X_val, y_val, workers=1).values
    print(again[:3], th.zero_budget_score(X, y, X_val, y_val).values[:3])
    with th.LiveCounts.create(folder / "live", X_val, y_val, radius=0.5) as live:
        live.add_many([str(row) for row in range(40)], X, y)
        live.remove("3")
        print(live.values().ids, len(live))
    return exact


def classify() -> float:
    X, y = rows(0, 90)
    model = th.TKNNClassifier(radius=0.5).fit(X, y)
    labels: NDArray[np.generic] = model.predict(X)
    shares: NDArray[np.float64] = model.predict_proba(X)
    print(labels[:3], shares.shape)
    return float(model.score(X, y))


def attack_and_audit() -> bool:
    X, y = rows(0, 300)
    X_val, y_val = rows(1, 30)
    attack = th.membership_attack(
        X, y, X_val, y_val, against=TKNN(radius=0.5), members=40, nonmembers=40, shadow=80,
        shadow_sets=4,
    )  # fmt: skip
    print({name: roc.auroc for name, roc in attack.rocs.items()})
    audit: th.Audit = th.audit_runs(range(100, 200), range(100), epsilon=0.1, delta=0)
    return audit.passed


def federate() -> str:
    X_val, y_val = rows(1, 20)
    key, own, other = Key.create(), Key.create(), Key.create()
    silos = {"north": own.public, "south": other.public}
    task = Task.create(X_val, y_val, silos=silos, key=key, epsilon=1, delta=1e-6, fewest=2)
    silo = Silo(*rows(0, 20), key=own, approve=task.digest, ledger=None)
    print(silo, check_plausibility, Coordinator)
    return task.digest


def refuse() -> str:
    try:
        th.tknn_shapley([[1.0, 0.0]], ["a"], [[0.0, 1.0]], ["b"], radius=-1)
    except th.InputError as error:
        return str(error)
    except th.ThresherError:
        raise
    return ""


def main(folder: Path, points: da.Array) -> None:
    print(find_wrong_labels(folder), value_with_trees(), pay_owners(folder))
    print(value_elsewhere(points, rows(0, 40)[1], rows(1, 5)[0]))
    print(release_privately(folder), count_live(folder), classify(), refuse())
    print(attack_and_audit(), federate(), th.__version__)
