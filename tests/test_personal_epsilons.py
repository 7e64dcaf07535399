"""What each row is told it is exposed to, against what it can move: every pair of a tiny universe.

Rows that cannot be used are in it, too: a number that is missing, no direction, no class. They
count for nothing, but under replacement another row may stand in their place.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import thresher as th
from thresher.privacy import Cells, Paper, Table
from thresher.privacy.noise import Seeded

DELTA = 1e-4
V = np.random.default_rng(0).normal(size=(40, 2))
W = ["a" if first > 0 else "b" for first, _ in V]
UNUSABLE = [((math.nan, 1.0), "a"), ((0.0, 0.0), "b"), ((1.0, 0.0), "c")]
ROWS = [((1.0, 0.2), "a"), ((-1.0, 0.1), "a"), ((0.1, 1.0), "b"), *UNUSABLE]
OTHER = ((0.4, -1.0), "b")
MECHANISMS = {
    "table": Table(bound=4, prior=False),
    "weighted": Table(bound=4, weights=0.5),
    "certified": Table(bound="certified"),
    "counted": Table(bound="counted"),
    "cells": Cells(cells=3),
}


def released(mechanism, adjacency, rows, owners=None):
    """A release of these rows and of one more that stays, and its exact numbers, noise aside."""
    X, y = [list(features) for features, _ in (*rows, OTHER)], [*(y for _, y in rows), OTHER[1]]
    options = {} if owners is None else {"owners": owners, "points_per_owner": 2}
    found = th.dp_tknn_shapley(
        X, y, V, W, epsilon=1, delta=DELTA, mechanism=mechanism, adjacency=adjacency, seed=0,
        **options,
    )  # fmt: skip
    return found, found._design.measure(found._contributions, Seeded(0))


def gaussian_loss(mu):
    """The epsilon at `DELTA` of two Gaussians this far apart."""
    over = lambda e: norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - DELTA  # noqa: E731
    return 0.0 if mu == 0 or over(0.0) <= 0 else float(brentq(over, 0.0, 50.0))


def loss(design, one, other):
    """The epsilon by which the released numbers tell two data sets apart: (table, units) each."""
    moved = (one[0] - other[0]).astype(float)
    if hasattr(design, "laplace_scale"):
        return np.abs(moved).sum() / design.laplace_scale
    counted = (one[1] - other[1]) / design.count_sigma if hasattr(design, "count_sigma") else 0.0
    return gaussian_loss(math.hypot(np.linalg.norm(moved / design.deviations), counted))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_row_loses_no_more_than_it_is_told_if_another_takes_its_place(name):
    found = [released(MECHANISMS[name], "replace-one", [row]) for row in ROWS]
    sizes = [len(release._contributions.units) for release, _ in found]
    told, worst = [release.personal_epsilon[0] for release, _ in found], [0.0] * len(ROWS)
    for one, other in itertools.permutations(range(len(ROWS)), 2):
        design = found[0][0]._design
        if name == "counted":  # the bound depends on the noisy count: compare at the same one
            design = found[one][0]._design
            tables = [design.measure(found[i][0]._contributions, None) for i in (one, other)]
        else:
            tables = [found[one][1], found[other][1]]
        lost = loss(design, (tables[0], sizes[one]), (tables[1], sizes[other]))
        assert lost <= told[one] * (1 + 1e-9), (ROWS[one], ROWS[other])
        worst[one] = max(worst[one], lost)
    assert min(worst) > 0.3, "an unusable row, too, is told apart from the one in its place"
    assert min(told) < max(told) <= 1 + 1e-6, "a row that counts for nothing loses less"
    assert (
        told[-1] == told[-2] == told[-3] == pytest.approx(found[0][0].record["epsilon_add_remove"])
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_unusable_row_loses_nothing_if_rows_are_added_or_removed(name):
    without = released(MECHANISMS[name], "add-remove", [])
    for row in ROWS:
        found, table = released(MECHANISMS[name], "add-remove", [row])
        if row in UNUSABLE:
            np.testing.assert_array_equal(table, without[1])
        assert (found.personal_epsilon[0] == 0) == (row in UNUSABLE)
        assert found.personal_epsilon[1] > 0


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", ["table", "weighted", "cells"])
def test_an_owner_loses_no_more_than_each_row_is_told(name, adjacency):
    """Every owner of up to two rows, replaced by every other one, or removed."""
    ways = itertools.combinations_with_replacement
    owned = [rows for size in range(3) for rows in ways(ROWS, size)]
    found = {
        rows: released(MECHANISMS[name], adjacency, rows, ["o"] * len(rows) + ["p"])
        for rows in owned
    }
    for rows, (release, table) in found.items():
        told = release.personal_epsilon
        assert len(set(told[:-1])) <= 1, "all rows of an owner are told the same"
        others = found if adjacency == "replace-one" else [()]
        for other in others:
            lost = loss(release._design, (table, 0), (found[other][1], 0))
            assert lost <= min(told[:-1], default=math.inf) * (1 + 1e-9) + 1e-12, (rows, other)


def test_rows_without_an_owner_lose_what_an_owner_who_may_come_moves():
    about = {"owners": ["o", None, "o"], "points_per_owner": 2}
    for adjacency in ("add-remove", "replace-one"):
        found = th.dp_tknn_shapley(
            [[1.0, 0.2]] * 3, ["a"] * 3, V, W, epsilon=1, delta=DELTA, seed=0,
            adjacency=adjacency, **about,
        )  # fmt: skip
        want = found.record["epsilon_add_remove"] if adjacency == "replace-one" else 0.0
        assert found.personal_epsilon[1] == want < found.personal_epsilon[0]


@pytest.mark.parametrize("counts", ["three", "disjoint"])
@pytest.mark.parametrize("row", UNUSABLE)
def test_the_papers_samples_tell_an_unusable_row_from_another(row, counts):
    """One validation point: without the row the noise alone, and with it a shift at the rate."""
    about = {"radius": 0.5, "epsilon": 1, "delta": DELTA, "adjacency": "replace-one", "seed": 0}
    paper = Paper(rate=0.3, counts=counts)
    found = th.dp_tknn_shapley(
        [list(row[0])], [row[1]], [[1.0, 0.1]], ["a"], classes=["a", "b"], mechanism=paper, **about
    )  # fmt: skip
    design, told = found._design, found.personal_epsilon[0]
    shift = math.sqrt(3 if counts == "three" else 1) * 16 / design.sigma
    x = np.linspace(-30, 30, 600_001)
    without, shifted = norm.pdf(x), norm.pdf(x - shift)
    having = 0.7 * without + 0.3 * shifted

    def delta(epsilon):
        pairs = ((without, having), (having, without))
        step = x[1] - x[0]
        return max(np.maximum(p - math.exp(epsilon) * q, 0).sum() * step for p, q in pairs)

    lost = brentq(lambda e: delta(e) - DELTA, 0.0, 5.0)
    assert 0.1 < lost <= told <= found.record["epsilon"]
