"""Seeded private releases, plans and pay by them, for `same.py`."""

# fmt: off
from __future__ import annotations

from pathlib import Path

import numpy as np
from same_worker import Cases

import thresher as th
from thresher.privacy import Cells, Paper, Table, public_forest

RANDOM = np.random.default_rng(1)
X, V = RANDOM.normal(size=(240, 3)), RANDOM.normal(size=(60, 3))
Y, W = np.where(X[:, 0] > 0, "up", "down"), np.where(V[:, 0] > 0, "up", "down")
T, U = np.clip(X[:, 0], -2, 2), np.clip(V[:, 0], -2, 2)
ALL = {"X": X, "y": Y, "X_val": V, "y_val": W, "seed": 0}
NUMBERS = ALL | {"y": T, "y_val": U, "task": "regression", "bounds": (-2, 2)}
OWNERS = {"points": {}, "owners": {"owners": np.arange(240) // 3, "points_per_owner": 3}, "owners of unknown size": {"owners": np.arange(240) // 3}}
BUDGET = {"0.5": {"epsilon": 0.5, "delta": 1e-4}, "6": {"epsilon": 6.0, "delta": 1e-4}}
ADJACENCY = ["add-remove", "replace-one"]
NEAR = {"box": {}, "gaussian": {"kernel": "gaussian", "radius": 0.8}, "rings": {"kernel": [(0.3, 2.0), (0.6, 1.0)], "radius": ...}, "triangular": {"kernel": "triangular", "rings": 2}, "euclidean": {"metric": "euclidean", "radius": 1.0}}
MECHANISMS = {
    "certified": Table(bound="certified"),
    "counted": Table(bound="counted"),
    "of 9": Table(bound=9),
    "without prior": Table(prior=False),
    "weights": Table(weights=0.5),
    "few cells": Cells(cells=5),
    "paper": Paper(rate=0.1),
    "paper, shared": Paper(rate=0.1, sample="shared", counts="disjoint"),
    "paper, rescaled": Paper(rate=0.2, rescale=True),
}


def release(function=th.dp_tknn_shapley, **given):
    """A release, its files, what its price list says and what it pays."""
    found = function(**given)
    found.save("release.json")
    asked = [
        lambda: th.PriceList.load("release.json"),
        lambda: found.price_list.values(X[:5], given["y"][:5]),
        lambda: found.price_list.newcomer_values(X[:5], given["y"][:5]),
        lambda: found.values_of(given["owners"][0]),
        lambda: found.report("release.html"),
        *(lambda more=more: paid(found, **more) for more in ({}, {"pay": "lower", "basis": "total"}, {"players": "owners"})),
    ]
    return [found, *map(tried, asked), Path()]


def paid(found, **more):
    """Pay by a release, and an owner's line of it."""
    pay = th.private_payout(found, pot=100_000, **more)
    return [pay, pay.line(0), pay.wrong_order(0, 1)]


def tried(function):
    """What a function returns, or how it refuses."""
    try:
        return function()
    except (th.ThresherError, AttributeError, KeyError) as error:
        return [type(error).__name__, str(error)]


def charged(times, unit="point", cap=2.0, **more):
    """Releases that a ledger is charged for, until it has no more."""
    with th.Ledger.create("ledger.db", epsilon=cap, delta=1e-4, unit=unit, **more) as ledger:
        owners = {"owners": np.arange(240) // 3} if unit == "owner" else {}
        found = [tried(lambda seed=seed: th.dp_tknn_shapley(**{**ALL, "seed": seed}, **owners, epsilon=0.8, delta=1e-5, ledger=ledger).record) for seed in range(times)]
    with th.Ledger.open("ledger.db") as ledger:
        return [found, ledger.entries(), ledger.spent(), ledger.remaining(), ledger.verify(), len(ledger)]


def cases():
    """All releases by their names."""
    found = Cases()
    found.calls("release", release, all={"": ALL}, mechanism=["table", "cells"], budget=BUDGET, adjacency=ADJACENCY, of=OWNERS)
    found.calls("release", release, all={"": ALL}, mechanism=["paper"], budget=BUDGET, adjacency=ADJACENCY)
    found.calls("release by", release, all={"": ALL}, budget=BUDGET, mechanism={label: {"mechanism": each} for label, each in MECHANISMS.items()})
    found.calls("release near", release, all={"": ALL}, budget=BUDGET, near=NEAR, of=OWNERS)
    found.calls("release of numbers", release, all={"": NUMBERS}, budget=BUDGET, of=OWNERS, empty=[None, 0.5])
    found.calls("release", release, all={"": ALL | BUDGET["6"]}, semivalue=["shapley", "banzhaf", th.Beta(2, 1)], publish=["prices", "values"], points=[None, 240], seed=[0, 1])
    found.calls("release anyway", release, all={"": ALL}, epsilon=[0.01], delta=[1e-6], points=[20, 240], anyway=[False, True], version=["", "v1"])
    forest = {"X_val": V, "y_val": W, "forest": public_forest(V, W, trees=4, leaves=6)}
    found.calls("release by leaves", release, all={"": ALL | forest}, budget=BUDGET, adjacency=ADJACENCY, of=OWNERS)
    found.calls("plan by leaves", th.plan_release, all={"": forest}, points=[50, 240], budget=BUDGET, adjacency=ADJACENCY)
    found.calls("public forest", public_forest, all={"": {"X_val": V, "y_val": W}}, trees=[1, 4], leaves=[2, 6])
    plan = {"": {"X_val": V, "y_val": W, "points": 240}}
    found.calls("plan", th.plan_release, all=plan, budget=BUDGET, near=NEAR, adjacency=ADJACENCY, points_per_owner=[None, 3])
    found.calls("nearest", lambda **given: release(th.dp_knn_shapley, **given), all={"": ALL}, budget=BUDGET, k=[1, 5], subsample=[None, 0.1], adjacency=ADJACENCY)
    found.calls("ledger", charged, times=[1, 4], unit=["point", "owner"], filter=[None, "basic"], adjacency=ADJACENCY)
    return found
