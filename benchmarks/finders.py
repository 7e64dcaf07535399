"""Ways to find wrong labels in a messy table: Thresher's, and its peers'.

Each takes a table and its noisy labels, and gives what it found. cleanlab has an environment of its
own. It is given probabilities of five folds, as its documentation says: of a forest of 200 trees in
each (on the same numbers that Thresher's trees see), and of a logistic regression (on scaled
numbers and one-hot categories).
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import peer_environments
from messy_tables import Messy, linear_array, tree_array
from sklearn.ensemble import RandomForestClassifier

import thresher as th

TREES = 200


@dataclass
class Found:
    """What a method found: one entry a point, but for the number of errors that it expects."""

    score: np.ndarray  # the lower, the more suspicious
    relabel: np.ndarray | None = None  # points whose label it calls wrong
    new: np.ndarray | None = None  # and the labels that it would give them
    review: np.ndarray | None = None  # points that a person should look at, these included
    values: np.ndarray | None = None
    expected: float = np.nan  # number of wrong labels
    poor: bool = False  # whether it says that this number is poor
    seconds: float = field(default=np.nan)


def thresher(table: Messy, y: np.ndarray, *, checked: bool) -> Found:
    """Thresher's forest, with checked validation rows or without."""
    more = (table.frame[table.checked], table.labels[table.checked]) if checked else ()
    valuation, findings = th.forest_findings(table.frame[table.points], y, *more)
    suggestion, forecast = np.array(findings.suggestion), findings.forecast
    return Found(
        findings.score, suggestion == "relabel", findings.best_codes,
        ~np.isin(suggestion, ("keep", "outlier")), valuation.values, forecast.wrong, forecast.poor,
    )  # fmt: skip


def data_oob(table: Messy, y: np.ndarray) -> Found:
    """Data-OOB (Kwon and Zou, 2023): how often trees that did not see a row predict its label."""
    X = tree_array(table.frame[table.points])
    forest = RandomForestClassifier(TREES, random_state=0, n_jobs=2).fit(X, y)
    right, votes = np.zeros(len(y)), np.zeros(len(y))
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_):
        out = np.setdiff1d(np.arange(len(y)), drawn)
        right[out] += forest.classes_[tree.predict(X[out]).astype(int)] == y[out]
        votes[out] += 1
    return Found(right / np.maximum(votes, 1))


def neighbors(table: Messy, y: np.ndarray, *, method: str, checked: bool) -> Found:
    """Distances between scaled rows: TKNN-Shapley at the suggested radius, or KNN-Shapley."""
    X = linear_array(table.frame)
    points = X[table.points], y
    judges = (X[table.checked], table.labels[table.checked]) if checked else (None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "knn":
            return Found(th.knn_shapley(*points, *judges).values)
        radius = th.suggest_radius(*(judges if checked else points))
        valuation = th.tknn_shapley(*points, *judges, radius=radius)
        if not checked:
            return Found(valuation.values)
        findings = th.explain(valuation, *points, *judges)
    suggestion = np.array(findings.suggestion)
    marked, listed = suggestion == "relabel", ~np.isin(suggestion, ("keep", "outlier"))
    return Found(valuation.values, marked, findings.best_codes, listed)


def cleanlab(table: Messy, labels: list[np.ndarray]) -> dict[str, list[Found]]:
    """cleanlab's findings under each of some labelings, by a forest and by a linear model."""
    python, trouble = peer_environments.ready("cleanlab_issues")
    if python is None:
        raise RuntimeError(f"cleanlab could not be installed: {trouble}")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "data.npz", Path(folder) / "found.npy"
        frame = table.frame[table.points]
        np.savez(source, forest=tree_array(frame), linear=linear_array(frame), y=labels)
        script = str(Path(__file__).parent / "peers" / "peer.py")
        command = [str(python), script, "cleanlab_issues", str(source), str(target), "1"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        found = np.load(target)
    return {
        name: [_cleanlab_found(*columns) for columns in each]
        for name, each in zip(("cleanlab, forest", "cleanlab, linear"), found)
    }


def _cleanlab_found(confidence, margin, issue, best, expected, seconds) -> Found:
    """Ranked by self-confidence, which is cleanlab's default; the margin stands for values."""
    issue = issue.astype(bool)
    return Found(
        confidence, issue, best.astype(int), issue, margin, expected[0], seconds=seconds[0]
    )
