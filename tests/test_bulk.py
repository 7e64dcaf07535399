"""A command that changes all marked rows at once is offered only if most of them should be wrong."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from pages import Page
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from tabular import thresher

import thresher as th
from thresher.findings.false_alarms import FalseAlarms
from thresher.findings.forecast import Forecast
from thresher.tables.reader import read_table

ROWS, TESTED = 105, 400


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, X, y):
    header = ",".join([*(f"x{place}" for place in range(X.shape[1])), "y"])
    lines = [",".join([*(repr(float(x)) for x in row), str(label)]) for row, label in zip(X, y, strict=True)]  # fmt: skip
    Path(name).write_text("\n".join([header, *lines]) + "\n")


def hardly_known(seed=10):
    """A small table whose labels hardly follow from its columns, and 8 % of them are wrong."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS + TESTED, 6))
    y = (X[:, 0] + 2.2 * random.normal(size=len(X)) > 0).astype(int)
    wrong = random.random(ROWS) < 0.08
    return X, y, wrong


def accuracy(X, labels, X_test, y_test):
    model = RandomForestClassifier(100, random_state=0).fit(X, labels)
    return float((model.predict(X_test) == y_test).mean())


def test_no_line_relabels_46_rows_when_4_of_them_are_wrong():
    X, y, wrong = hardly_known()
    write("a.csv", X[:ROWS], y[:ROWS] ^ wrong)
    kept = thresher("value", "a.csv", "--out", "v.csv", "--report", "r.html")
    said = kept.stderr
    assert "46 relabel" in said
    assert "to act on it" not in said
    assert "\nchange no row without a look: the forecast is poor" in said
    assert "\nto decide row by row: open r.html" in said
    page = Page(Path("r.html").read_text())
    assert "change none without looking" in page.said("todo")
    assert "--relabel" not in Path("r.html").read_text()
    table = read_table("v.csv").data
    marked = np.array(table.column("suggestion").to_pylist()) == "relabel"
    assert wrong[marked].mean() < 0.1  # so the line would have harmed
    alone = thresher("value", "a.csv", "--out", "v.csv", "--force").stderr
    line = re.search("\nto review the rows: (.*)\n", alone)[1]
    assert "to act on it" not in alone
    assert thresher(*shlex.split(line)[1:]).returncode == 0
    assert Path("report.html").exists()
    told = json.loads(thresher("value", "a.csv", "--json").stdout)
    assert told["forecast"]["poor"]
    assert told["why_look"].startswith("the forecast is poor")


def test_a_good_forecast_still_has_a_line_that_does_it_all():
    X, y = make_classification(400, 8, n_informative=5, class_sep=2, random_state=0)
    wrong = np.random.default_rng(0).random(400) < 0.1
    write("a.csv", X, y ^ wrong)
    said = thresher("value", "a.csv", "--out", "v.csv").stderr
    line = re.search("\nto act on it: (.*)\n", said)[1]
    assert "without a look" not in said
    assert thresher(*shlex.split(line)[1:]).returncode == 0
    cleaned = np.array(read_table("clean.csv").data.column("y").to_pylist()).astype(int)
    assert (cleaned != y).mean() < 0.5 * wrong.mean()


def test_a_forecast_says_why_to_look():
    some = np.array([4.0, 6.0])
    assert not Forecast(some, 0.2, 10, 0.5).why_look()
    assert Forecast(some, 0.26, 10, 0.9).why_look().startswith("the forecast is poor")
    assert "only about 49 %" in Forecast(some, 0.2, 10, 0.49).why_look()
    assert "so few" in Forecast(some, 0.2, 4, 0.9).why_look()
    assert not FalseAlarms(5, 100).why_look(20, 100)
    assert "only about 12 %" in FalseAlarms(18, 100).why_look(20, 100)
    assert "nobody checked" in FalseAlarms(0, 100, trusted=False).why_look(20, 100)


def test_by_a_radius_validation_points_say_how_many_marks_are_right():
    """Where 15 % of rows have a label that nothing explains, all of them would be marked."""
    random = np.random.default_rng(1)
    X, y = random.normal(size=(700, 2)), (random.random(700) < 0.15).astype(int)
    write("a.csv", X[:400], y[:400])
    write("v.csv", X[400:], y[400:])
    how = "--method", "tknn", "--metric", "euclidean", "--radius", "2", "--out", "o.csv"
    checked = thresher("value", "a.csv", "--validation", "v.csv", *how).stderr
    assert int(re.search(r"(\d+) relabel", checked)[1]) > 20
    assert "to act on it" not in checked
    assert "look: by the validation points, only about" in checked
    parts = thresher("value", "a.csv", "--validation", "v.csv", *how, "--memory", "2GB", "--force")
    assert "look: by the validation points, only about" in parts.stderr
    assert "to act on it" not in parts.stderr


@pytest.mark.parametrize("method", ["tknn", "knn"])
def test_rows_that_were_held_out_of_the_table_cannot_vouch_for_all_marks(method):
    X, y = make_classification(400, 8, n_informative=5, class_sep=2, random_state=0)
    write("a.csv", X, y ^ (np.random.default_rng(0).random(400) < 0.1))
    how = "--method", method, "--metric", "euclidean", "--holdout", "0.4", "--standardize"
    said = thresher("value", "a.csv", *how, "--out", "v.csv").stderr
    assert int(re.search(r"(\d+) relabel", said)[1]) > 5
    assert "to act on it" not in said
    assert "\nchange no row without a look: nobody checked the rows that judge them" in said
    assert "\nto review the rows: thresher value a.csv " in said


def small_tables():
    """Small tables with wrong labels, of all kinds: clear, overlapping, and of nothing but noise."""
    known = [load_breast_cancer(return_X_y=True), load_wine(return_X_y=True),
             load_digits(return_X_y=True), make_classification(800, 8, random_state=1),
             make_classification(800, 8, n_informative=5, class_sep=2, random_state=2)]  # fmt: skip
    for seed, (X, y) in enumerate(known * 4):
        random = np.random.default_rng(seed)
        order, classes = random.permutation(len(y)), int(y.max()) + 1
        wrong = random.random(ROWS) < (0, 0.08, 0.2)[seed % 3]
        labels = np.where(wrong, y[order[:ROWS]] + random.integers(1, classes, ROWS), y[order[:ROWS]])  # fmt: skip
        yield X[order], labels % classes, y[order]
    for seed in range(12):
        X, y, wrong = hardly_known(seed)
        yield X, y[:ROWS] ^ wrong, y


def test_following_the_line_does_not_make_a_model_worse():
    """By a forest on other rows: over 32 small tables, the mean change is at least -0.01."""
    changes, lines = [], 0
    for X, labels, y in small_tables():
        _, found = th.forest_findings(X[:ROWS], labels, trees=100)
        words = np.array(found.suggestion)
        if found.forecast.why_look() or not np.isin(words, ("relabel", "drop")).any():
            continue
        lines += 1
        keep, new = (
            words != "drop",
            np.where(words == "relabel", np.array(found.best_label), labels),
        )
        test = X[ROWS:], y[ROWS:]
        before, after = (
            accuracy(X[:ROWS], labels, *test),
            accuracy(X[:ROWS][keep], new[keep], *test),
        )
        changes.append(after - before)
    assert 5 <= lines <= 20
    assert np.mean(changes) > -0.01
