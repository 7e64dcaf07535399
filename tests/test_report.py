"""The report: its numbers against plain recomputation, its words, and what it must not show."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from pages import EVIL, Page, blobs, overlapping
from releases import X_VAL, Y_VAL, X, Y, exact, release
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import thresher as th
from thresher.advice import SUGGESTIONS
from thresher.embed import leading_components
from thresher.errors import ExtraError, InputError
from thresher.explained import explain
from thresher.report import gather, render, report_valuation, write_report
from thresher.report.coverage import ClassCoverage, Coverage
from thresher.report.distribution import bar_counts, bar_edges
from thresher.report.private import Bought, rank_agreement
from thresher.report.removal import CrossCheck
from thresher.report.suggestions import FalseAlarms, Suggestions
from thresher.report.verdict import judge
from thresher.review import review_list
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings

RADIUS = 1.8
FLIPPED = blobs()
DATA = FLIPPED[:4]


def value(data=DATA, **options):
    return th.tknn_shapley(*data, **({"radius": RADIUS, "metric": "euclidean"} | options))


VALUATION = value()


@pytest.fixture(scope="module")
def evidence():
    return gather(VALUATION, *DATA)


@pytest.fixture(scope="module")
def page(evidence):
    return Page(render(evidence))


def near_table(data=DATA, radius=RADIUS):
    return np.linalg.norm(data[0][:, None] - data[2][None], axis=2) <= radius


# numbers


def test_the_worst_rows_are_those_of_the_valuation_and_its_findings(evidence):
    found = explain(VALUATION, *DATA)
    rows = [dict(zip(evidence.lowest.columns, row, strict=True)) for row in evidence.lowest.rows]
    assert [row["row"] for row in rows] == review_list(found).tolist()
    marked = {"relabel", "drop", "inspect"}
    assert {row["row"] for row in rows} == {i for i in range(300) if found.suggestion[i] in marked}
    for row in rows:
        i = row["row"]
        assert row["label"] == DATA[1][i]
        assert row["value"] == VALUATION.values[i]
        assert row["near"] == found.near[i]
        assert row["suggestion"] == found.suggestion[i]
        assert row["best label"] == (found.best_label[i] if found.near[i] else None)
        assert row["best value"] == found.best_value[i]
        assert row["agree"] == (None if np.isnan(found.agree[i]) else found.agree[i])
        assert row["percentile"] == pytest.approx(100 * (VALUATION.values < row["value"]).mean())


def test_the_page_shows_the_numbers_of_the_evidence(evidence, page):
    assert page.tables["worst"][0] == list(evidence.lowest.columns)
    cells = [["" if cell is None else str(cell) for cell in row] for row in evidence.lowest.rows]
    assert page.table("worst") == cells
    curves = np.array(list(evidence.removal.curves.values())).T
    np.testing.assert_array_equal(page.numbers("removed"), curves)
    radius = evidence.coverage.radius.found
    np.testing.assert_array_equal(
        page.numbers("radii", 0), np.array([radius.radii, radius.accuracy, radius.coverage]).T
    )
    parts = [*evidence.distribution.parts, evidence.distribution.whole]
    assert page.numbers("spread")[:, 0].tolist() == [part.points for part in parts]
    assert page.numbers("spread")[:, 6].tolist() == [part.numbers["quarter"] for part in parts]
    reach = [
        (
            line.none + line.few + line.enough,
            line.none,
            line.few,
            line.enough,
            line.points,
            line.missing,
        )
        for line in [*evidence.coverage.classes, evidence.coverage.total]
    ]
    assert page.numbers("reach").tolist() == [list(line) for line in reach]
    assert evidence.verdict.sentence in page.said("verdict")
    for step in evidence.verdict.steps:
        assert step in page.said("todo")


def test_removal_curves_equal_a_plain_recomputation(evidence):
    X, y, X_val, y_val = DATA
    order = VALUATION.suspects(len(y))
    classes = np.unique(y)
    for gone in range(11):
        count = int(gone * 0.05 * len(y) + 1e-9)
        for name, kept in (
            ("lowest", np.sort(order[count:])),
            ("highest", np.sort(order[: len(y) - count])),
        ):
            model = th.TKNNClassifier(radius=RADIUS, metric="euclidean").fit(X[kept], y[kept])
            shares = model.predict_proba(X_val)
            assert model.classes_.tolist() == classes.tolist()
            leads = shares == shares.max(axis=1, keepdims=True)
            right = leads[np.arange(len(y_val)), np.searchsorted(classes, y_val)] / leads.sum(
                axis=1
            )
            curve = evidence.removal.curves["threshold classifier", name]
            assert curve[gone] == pytest.approx(right.mean(), abs=1e-12)
            scaler = StandardScaler().fit(X)
            logistic = LogisticRegression(max_iter=1000).fit(scaler.transform(X[kept]), y[kept])
            curve = evidence.removal.curves["logistic regression", name]
            assert curve[gone] == logistic.score(scaler.transform(X_val), y_val)


def test_logistic_regressions_are_trained_to_the_optimum():
    """scikit-learn stops short of it, which costs or gives single validation points."""
    data = overlapping(600, 300, flipped=0.1)
    valuation = value(data, radius=0.8)
    found = gather(valuation, *data).removal
    order, scaler = valuation.suspects(600), StandardScaler().fit(data[0])
    for gone in range(11):
        kept = order[gone * 30 :]
        model = LogisticRegression(max_iter=10_000, tol=1e-10)
        model.fit(scaler.transform(data[0][kept]), data[1][kept])
        accuracy = model.score(scaler.transform(data[2]), data[3])
        assert found.curves["logistic regression", "lowest"][gone] == accuracy


def test_many_weights_are_trained_by_scikit_learn():
    X, y, X_val, y_val = (part[:200] for part in blobs(200, 60, width=150, flipped=0.2)[:4])
    found = gather(th.knn_shapley(X, y, X_val, y_val, k=3), X, y, X_val, y_val).removal
    scaler = StandardScaler()
    parts = leading_components(X, X_val, 64)
    rows, rows_val = scaler.fit_transform(parts[0]), scaler.transform(parts[1])
    model = LogisticRegression(max_iter=1000).fit(rows, y)
    assert found.curves["logistic regression", "lowest"][0] == pytest.approx(
        model.score(rows_val, y_val), abs=1 / 60
    )


@pytest.mark.parametrize("neighbors", ["all", "tree"])
def test_removal_by_the_threshold_classifier_is_the_same_by_a_tree(neighbors, monkeypatch):
    wanted = gather(VALUATION, *DATA)
    monkeypatch.setattr("thresher.neighbors.ball.tree_pays", lambda *_: neighbors == "tree")
    found = gather(VALUATION, *DATA)
    assert found.removal == wanted.removal
    assert found.coverage == wanted.coverage


def test_many_classes_are_counted_at_some_validation_points_at_a_time(evidence, monkeypatch):
    monkeypatch.setattr("thresher.report.near_pairs.COUNTS", 1)
    found = gather(VALUATION, *DATA)
    assert found.removal == evidence.removal
    assert found.coverage == evidence.coverage


@pytest.mark.parametrize("options", [{}, {"radius": "1.8"}], ids=["auto", "radius"])
def test_from_file_to_page_are_few_walks_and_inputs_are_checked_once(
    options, tmp_path, monkeypatch
):
    X, y, X_val, y_val = DATA
    for name, rows, labels in (("points", X, y), ("val", X_val, y_val)):
        frame = pd.DataFrame(rows, columns=list("abcd"))
        frame.assign(y=labels).to_csv(tmp_path / f"{name}.csv", index=False)
    calls = Counter()

    def spy(module, name, key=lambda *_: ""):
        real = getattr(sys.modules[module], name)

        def counted(*arguments, **named):
            calls[name, key(*arguments)] += 1
            return real(*arguments, **named)

        for found in list(sys.modules.values()):
            if (
                getattr(found, "__name__", "").startswith("thresher")
                and vars(found).get(name) is real
            ):
                monkeypatch.setattr(found, name, counted)

    spy("thresher.neighbors.blocks", "near_blocks")
    spy("thresher.neighbors.visits", "tree_blocks")
    spy("thresher.checks", "check_features", lambda name, *_: name)
    spy("thresher.inputs", "check_points")
    spy("thresher.inputs", "check_validation")
    settings = Settings(
        str(tmp_path / "points.csv"), validation=str(tmp_path / "val.csv"), metric="euclidean",
        **options,
    )  # fmt: skip
    value_files(settings).report(tmp_path / "report.html")
    assert 1 <= calls["near_blocks", ""] + calls["tree_blocks", ""] <= 4
    assert calls["check_features", "X"] == calls["check_features", "X_val"] == 1
    assert calls["check_points", ""] == calls["check_validation", ""] == 1
    assert {key for key in calls if key[0] == "check_features"} == {
        ("check_features", "X"), ("check_features", "X_val")}  # fmt: skip
    page = Page((tmp_path / "report.html").read_text())
    assert {"rows", "map", "suggestions", "values", "removal", "coverage", "how"} <= set(page.ids)


def test_a_bar_moves_with_every_model_that_is_trained(capsys):
    """Removal trains some 70 models, and takes most of the time."""
    X, y, X_val, y_val, _ = blobs(60, 30)
    data = X, y, X_val, y_val
    valuation = th.tknn_shapley(*data, radius=1.8, metric="euclidean")
    for found, given, steps in (
        (valuation, data, "78.0"), (th.knn_shapley(*data, k=3), data, "78.0"), (valuation, (), "7.00")
    ):  # fmt: skip
        gather(found, *given, progress=True)
        assert f" {steps}/{steps} " in capsys.readouterr().err


def test_random_removal_is_neither_the_best_nor_the_worst(evidence):
    removal = evidence.removal
    for model in removal.models:
        lowest, highest, random = (
            removal.curves[model, order] for order in ("lowest", "highest", "random")
        )
        assert lowest[0] == highest[0] == pytest.approx(random[0])
        assert lowest[-1] > random[-1] > highest[-1]


def test_the_cross_check_lets_nobody_judge_its_own_choice(evidence):
    checked = evidence.removal.cross_check
    own = evidence.removal.curves["logistic regression", "lowest"]
    assert checked.before == pytest.approx(own[0])
    assert checked.after == pytest.approx(checked.before + (checked.gained - checked.lost) / 120)


def test_the_cross_check_finds_no_gain_where_labels_mean_nothing():
    optimistic, fair = [], []
    for seed in range(6):
        noise = np.random.default_rng(seed)
        rows, labels = noise.normal(size=(460, 5)), noise.integers(0, 2, 460)
        data = rows[:400], labels[:400], rows[400:], labels[400:]
        found = gather(value(data), *data)
        accuracy = found.removal.curves["logistic regression", "lowest"]
        optimistic.append(accuracy[2] - accuracy[0])
        fair.append(found.removal.cross_check.after - found.removal.cross_check.before)
        assert not found.removal.cross_check.clear
    assert np.mean(optimistic) > 0.05
    assert abs(np.mean(fair)) < 0.03


def test_bars_hold_every_value(evidence):
    spread = evidence.distribution
    edges = np.array(spread.edges)
    assert 0.0 in spread.edges
    for part in spread.parts:
        values = VALUATION.values[DATA[1] == part.label]
        inside = np.clip(values, edges[0], np.nextafter(edges[-1], -np.inf))
        assert list(part.counts) == np.histogram(inside, edges)[0].tolist()
        assert sum(part.counts) == part.points == len(values)
        assert part.negative == (values < 0).sum()
    np.testing.assert_array_equal(
        np.sum([part.counts for part in spread.parts], axis=0), spread.whole.counts
    )


@pytest.mark.parametrize(
    "values", [[0.0], [0.0, 0.0], [1e-320], [-5.0], [3.0, 3.0], [-1e300, 1e300]]
)
def test_bars_of_odd_values_have_zero_as_an_edge(values):
    edges = bar_edges(np.array(values))
    assert (np.diff(edges) > 0).all()
    assert 0.0 in edges
    assert bar_counts(np.array(values), edges).sum() == len(values)


def test_coverage_is_what_distances_say(evidence):
    near = near_table()
    assert evidence.coverage.total.missing == (near.sum(axis=1) == 0).sum()
    assert evidence.coverage.share == (near.sum(axis=0) > 0).mean()
    assert evidence.coverage.median_near == np.median(near.sum(axis=0))
    for line in evidence.coverage.classes:
        counts = near.sum(axis=0)[DATA[3] == line.label]
        found = [(counts == 0).sum(), ((counts > 0) & (counts < 5)).sum(), (counts >= 5).sum()]
        assert [line.none, line.few, line.enough] == found
        assert line.missing == (near.sum(axis=1)[DATA[1] == line.label] == 0).sum()


def test_suggestions_and_moves_are_counted(evidence):
    found = explain(VALUATION, *DATA)
    assert evidence.suggestions.total == found.counts()
    for tally in evidence.suggestions.classes:
        own = [s for s, label in zip(found.suggestion, found.labels) if label == tally.label]
        assert tally.counts == {name: own.count(name) for name in SUGGESTIONS}
    for move in evidence.suggestions.moves:
        rows = zip(found.labels, found.best_label, found.suggestion)
        assert move.points == list(rows).count((move.own, move.other, "relabel"))
    assert sum(move.points for move in evidence.suggestions.moves) == found.counts()["relabel"]


def test_the_matrix_on_the_page_holds_the_moves(evidence, page):
    head, *rows = page.tables["matrix"]
    assert head == ["labeled", "keep", *(f"relabel to {x}" for x in ("ant", "bee", "cat")), "drop", "inspect", "outlier"]  # fmt: skip
    moves = {(move.own, move.other): move.points for move in evidence.suggestions.moves}
    for row in rows:
        for place, other in enumerate(("ant", "bee", "cat")):
            wanted = "" if other == row[0] else str(moves.get((row[0], other), 0))
            assert row[2 + place] == wanted


def test_the_radius_curve_is_that_of_suggest_radius(evidence):
    found = th.suggest_radius(*DATA[2:], metric="euclidean")
    assert evidence.coverage.radius.suggested == float(found)
    np.testing.assert_array_equal(evidence.coverage.radius.found.radii, found.radii)
    np.testing.assert_array_equal(evidence.coverage.radius.found.accuracy, found.accuracy)
    at = np.flatnonzero(found.radii <= RADIUS)[-1]
    assert evidence.coverage.radius.accuracy_used == found.accuracy[at]


def test_the_map_shows_the_worst_rows_and_says_who_they_are(evidence, page):
    plane = evidence.map
    assert sorted(plane.rows) == list(range(300))
    assert plane.rows[-1] == VALUATION.suspects(1)[0]
    centered = DATA[0] - DATA[0].mean(axis=0)
    _, sizes, axes = np.linalg.svd(centered, full_matrices=False)
    for spots, axis in ((plane.x, axes[0]), (plane.y, axes[1])):
        wanted = centered[list(plane.rows)] @ axis
        assert abs(np.corrcoef(spots, wanted)[0, 1]) == pytest.approx(1.0, abs=1e-5)
    assert plane.variance == pytest.approx((sizes[:2] ** 2).sum() / (sizes**2).sum(), abs=1e-4)
    marks = [
        tag for tag, found in page.tags if "spot" in found.get("class", "") and "data-x" in found
    ]
    assert len(marks) == len(plane.rows)
    worst = plane.rows[-1]
    assert re.search(rf"<title>row {worst} · label {DATA[1][worst]} · value -", page.text)


def test_of_many_points_the_map_draws_the_worst_and_how_dense_the_rest_lies():
    data = blobs(6000, 1500, flipped=0.02)[:4]
    evidence = gather(value(data), *data)
    plane = evidence.map
    assert set(value(data).suspects(300)) == set(plane.rows)
    assert len(plane.rows) == 300
    assert plane.density.sampled == 6000
    cells = plane.density.cells
    assert 5900 <= sum(cell.rows for cell in cells) <= 6000
    mean = sum(cell.rows * cell.value for cell in cells) / sum(cell.rows for cell in cells)
    assert mean == pytest.approx(value(data).values.mean(), abs=0.01)
    assert plane.names == tuple(sorted({*data[1]}, key=lambda label: -(data[1] == label).sum()))
    assert "by 6,000 of them drawn at random" in plane.text()
    assert render(evidence).count('<rect class="cell') == len(cells)
    assert (plane.points, plane.x_val) == (6000, ())


# the verdict


def spread_of(n):
    return gather(th.Valuation(np.linspace(-1, 1, n), "example", {}, 1.0, 0.0)).distribution


def suggested(alarms=None, **counts):
    total = {name: counts.get(name, 0) for name in SUGGESTIONS}
    return Suggestions(total, false_alarms=alarms)


def coverage_of(none=0, enough=100, missing=0):
    return Coverage((), 0, ClassCoverage("all", none, 0, enough, missing, 2000), 20.0)


def sentence(counts, *, checked=None, coverage=None, care=()):
    found = judge(spread_of(2000), counts, coverage or coverage_of(), checked, care)
    assert found.sentence.endswith(".")
    assert found.sentence.count(". ") == 0
    return found.sentence


GAIN = CrossCheck(0.81, 0.86, 60, 10)


def test_the_verdict_names_mislabeled_rows_and_what_dropping_brings():
    found = sentence(suggested(keep=1645, relabel=143, inspect=212), checked=GAIN)
    assert found == (
        "143 of 2,000 rows are probably mislabeled (suggestion: relabel), and 212 more are worth a "
        "look (suggestion: inspect); dropping the lowest tenth raises the accuracy of a logistic "
        "regression from 0.810 to 0.860 on validation points other than those that chose them."
    )


def test_the_verdict_does_not_call_chance_a_gain():
    counts = suggested(keep=1999, relabel=1)
    hardly = sentence(counts, checked=CrossCheck(0.81, 0.815, 8, 7))
    assert "which may be chance" in hardly
    assert "lowers" in sentence(counts, checked=CrossCheck(0.81, 0.7, 1, 20))
    assert sentence(counts).startswith("1 of 2,000 rows is probably mislabeled")


def test_the_verdict_says_when_nothing_stands_out():
    assert "Nothing stands out: none of 2,000 rows" in sentence(suggested(keep=2000))
    assert sentence(suggested(keep=1990, inspect=10)).startswith(
        "Nothing is clearly mislabeled, but 10 of 2,000 rows are worth a look"
    )
    doubted = sentence(suggested(FalseAlarms(20, 500), keep=1920, relabel=80))
    assert doubted.startswith("Nothing stands out: 80 of 2,000 rows contradict")
    assert "(4%), not clearly more than right labels do (4% of the validation set)" in doubted


def test_the_verdict_takes_off_what_right_labels_would_give():
    found = sentence(suggested(FalseAlarms(20, 500), keep=1695, relabel=300, drop=5))
    assert (
        "300 of 2,000 rows look mislabeled (suggestion: relabel), of which about 231 probably are"
        in found
    )
    assert "and 5 fit no label (suggestion: drop)" in found


def test_the_verdict_says_that_nothing_can_be_said():
    found = sentence(
        suggested(outlier=2000), coverage=coverage_of(none=100, enough=0, missing=2000)
    )
    assert found.startswith("Nothing can be said: no row is within the radius")


def test_the_verdict_is_careful_where_it_has_to_be():
    assert sentence(suggested(keep=2000), care=("only 30 validation points",)).startswith(
        "To be taken with care (only 30 validation points): Nothing stands out"
    )
    few = blobs(200, 30)[:4]
    found = gather(value(few), *few)
    assert "To be taken with care (only 30 validation points" in found.verdict.sentence
    assert any("only 30 validation points" in caution for caution in found.cautions)


def test_little_coverage_is_said():
    data = DATA[0], DATA[1], np.concatenate([DATA[2], DATA[2] + 100]), np.tile(DATA[3], 2)
    found = gather(value(data), *data)
    assert found.coverage.share <= 0.5
    assert "validation points have no row near" in found.verdict.sentence
    assert any(caution.startswith(("Only 50%", "Only 4")) for caution in found.cautions)


def test_classes_that_one_side_lacks_are_said():
    X, y, X_val, y_val = DATA
    data = X, y, X_val[y_val != "cat"], y_val[y_val != "cat"]
    found = gather(value(data), *data)
    assert 'no validation point has the label "cat"' in found.verdict.sentence
    assert any('No validation point has the label "cat"' in caution for caution in found.cautions)
    data = X[y != "cat"], y[y != "cat"], X_val, y_val
    assert any('No row has the label "cat"' in x for x in gather(value(data), *data).cautions)


def test_twins_and_a_radius_that_does_not_fit_are_said():
    X, y, X_val, y_val = DATA
    data = X, y, np.concatenate([X[:7], X_val]), np.concatenate([y[:7], y_val])
    with pytest.warns(th.TwinWarning):
        valuation = value(data)
    assert any("7 validation rows are exact copies" in x for x in gather(valuation, *data).cautions)
    found = gather(value(radius=100.0), *DATA).cautions
    assert any("The radius 100 does not fit well" in caution for caution in found)
    assert any("more than half of all rows near" in caution for caution in found)
    assert any("hardly more than always guessing" in caution for caution in found)


def test_false_alarms_are_the_rule_for_points_tried_on_the_validation_set():
    data = overlapping(500, 300)
    found = gather(value(data, radius=0.7), *data).suggestions.false_alarms
    near = np.linalg.norm(data[2][:, None] - data[2][None], axis=2) <= 0.7
    np.fill_diagonal(near, val=False)
    flagged = 0
    for i, label in enumerate(data[3]):
        own, other = (near[i] & (data[3] == label)).sum(), (near[i] & (data[3] != label)).sum()
        clear = other - own > 2 * np.sqrt(own + other) and own <= 0.2 * (own + other)
        flagged += bool(clear and own < other)
    assert (found.flagged, found.validation_points) == (flagged, 300)


def test_right_labels_where_classes_overlap_are_not_called_mislabeled():
    told, real = 0, 0
    for seed in range(4):
        data = overlapping(seed=seed)
        clean = gather(value(data, radius=0.8), *data)
        assert clean.suggestions.total["relabel"] > 40
        assert clean.verdict.sentence.startswith("Nothing stands out")
        noisy = overlapping(flipped=0.2, seed=seed)
        valuation = value(noisy, radius=0.8)
        found = gather(valuation, *noisy).verdict.sentence
        told += int(re.search(r"of which about (\d+) probably are", found)[1])
        marked = np.array(explain(valuation, *noisy).suggestion) == "relabel"
        real += int((noisy[1] != data[1])[marked].sum())
    assert told == pytest.approx(real, rel=0.2)


# what came with the values


def test_a_bare_valuation_says_what_is_missing():
    found = gather(VALUATION)
    assert found.lowest.columns == ("row", "value", "percentile")
    assert {"suggestions", "map", "removal", "coverage", "radius"} <= found.missing.keys()
    page = Page(render(found))
    assert "the report was made without X, y, X_val and y_val" in page.said("how")
    assert "rows have a negative value" in page.said("verdict")
    assert not {"map", "removal", "suggestions"} & set(page.ids)


def test_labels_alone_give_the_spread_by_class():
    found = gather(VALUATION, y=DATA[1])
    assert [part.label for part in found.distribution.parts] == ["ant", "bee", "cat"]
    assert found.suggestions is None
    assert gather(VALUATION, y=DATA[1], y_val=DATA[3]).distribution == found.distribution


def test_knn_values_have_no_radius_and_suggest_all_the_same():
    valuation = th.knn_shapley(*DATA, k=3)
    found = gather(valuation, *DATA)
    assert found.removal.models == ("logistic regression",)
    assert found.removal.cross_check is not None
    assert found.map is not None
    assert found.missing["radius"] == "knn-shapley has no radius"
    assert sum(found.suggestions.total.values()) == len(valuation)
    assert found.lowest.title == "Rows to review"
    assert "k = 3" in Page(render(found)).text


@pytest.mark.parametrize("semivalue", ["banzhaf", "leave-one-out", th.Beta(4, 1)], ids=str)
def test_other_semivalues_have_all_parts(semivalue):
    found = gather(value(semivalue=semivalue), *DATA)
    assert set(found.missing) == {"owners"}
    assert found.removal.cross_check is not None


def test_the_zero_budget_score_takes_labels_that_are_no_class():
    X, y, X_val, y_val = DATA
    data = X, np.where(np.arange(300) == 7, "yak", y), X_val, y_val
    score = th.zero_budget_score(*data, radius=RADIUS, metric="euclidean")
    found = gather(score, *data)
    assert "yak" in found.about.classes
    assert set(found.missing) == {"owners", "suggestions"}
    assert "all values add up" not in Page(render(found)).said("how")


def test_retrained_values_show_their_errors():
    about = {
        "model": "LogisticRegression()",
        "classes": ["ant", "bee", "cat"],
        "validation_points": 120,
    }
    errors = np.full(300, 0.5)
    valuation = th.Valuation(VALUATION.values, "data-shapley", about, 1.0, 0.5, None, errors)
    found = gather(valuation, *DATA)
    assert found.removal.models == ("logistic regression",)
    assert found.removal.cross_check is None
    assert "standard error" in found.lowest.columns
    assert any("within two standard errors of zero" in caution for caution in found.cautions)
    assert Page(render(found)).tables["worst"][0][3] == "standard error"


def test_precomputed_distances_have_no_features():
    distances = np.linalg.norm(DATA[0][:, None] - DATA[2][None], axis=2)
    valuation = th.tknn_shapley(
        distances, DATA[1], None, DATA[3], metric="precomputed", radius=RADIUS
    )
    found = gather(valuation, distances, DATA[1], None, DATA[3])
    assert "precomputed" in found.missing["map"]
    assert [part.label for part in found.distribution.parts] == ["ant", "bee", "cat"]
    assert Page(render(found)).tables["worst"]


def test_means_are_shown_as_means():
    found = gather(value(mean=True), *DATA)
    plain = gather(VALUATION, *DATA)
    assert found.suggestions == plain.suggestions
    assert found.lowest.rows[0][found.lowest.columns.index("value")] == pytest.approx(
        VALUATION.values.min() / 120
    )
    assert "A value is the mean over the validation points" in Page(render(found)).said("how")


def test_no_point_near_any_validation_point():
    with pytest.warns(th.ReachWarning):
        valuation = value(radius=1e-6)
    found = gather(valuation, *DATA)
    assert found.verdict.sentence.startswith("Nothing can be said")
    assert found.suggestions.total["outlier"] == 300
    assert f"{found.coverage.radius.suggested:.4g}" in found.verdict.steps[0]
    Page(render(found))


def test_one_class_and_one_row():
    one = DATA[0], np.full(300, "ant"), DATA[2], np.full(120, "ant")
    found = gather(value(one), *one)
    assert any("only one class" in caution for caution in found.cautions)
    assert found.removal.curves["logistic regression", "lowest"] == (1.0,) * 11
    Page(render(found))
    row = [[0.0, 1.0]], ["a"], [[0.1, 1.0]], ["a"]
    found = gather(th.tknn_shapley(*row), *row)
    assert set(found.missing) == {"removal", "map", "owners", "radius"}
    page = Page(render(found))
    assert "the only row is not suggested for a closer look" in page.said("verdict")
    assert len(page.table("worst")) == 1


@pytest.mark.parametrize("width", [1, 2, 90, 1100])
def test_rows_of_any_width_have_a_map(width):
    data = blobs(150, 60, width=width)[:4]
    found = gather(th.knn_shapley(*data, metric="euclidean"), *data)
    assert len(found.map.rows) == 150
    assert (found.map.variance is None) == (width == 1)
    assert np.isfinite(found.map.x + found.map.y).all()


def test_owners_share_the_positive_part():
    owners = ["good"] * 150 + [EVIL] * 150
    values = np.concatenate([np.full(150, 0.02), np.full(150, -0.01)])
    found = gather(th.Valuation(values, "example", {}, 1.5, 0.0, tuple(owners)))
    assert [(line.owner, line.points, line.share) for line in found.owners.lines] == [
        ("good", 150, 1.0), (EVIL, 150, 0.0)]  # fmt: skip
    page = Page(render(found))
    assert "1 of 2 owners have a negative value and get 0" in page.said("owners")
    assert page.table("payout")[1][0] == EVIL
    assert EVIL not in page.text
    many = gather(th.Valuation(np.arange(500.0), "example", {}, 1, 0, tuple(range(500)))).owners
    assert (len(many.lines), many.count) == (200, 500)
    assert sum(line.share for line in many.lines) < 1


def test_rows_show_ids_and_columns():
    X, y, X_val, y_val = DATA
    frame, frame_val = (pd.DataFrame(part, columns=["a", "b", "c", "value"]) for part in (X, X_val))
    found = gather(VALUATION, frame, y, frame_val, y_val, ids=[f"id-{i}" for i in range(300)])
    assert found.lowest.columns[1] == "id"
    assert found.lowest.columns[-4:] == ("a", "b", "c", "value (column)")
    row = found.lowest.rows[0]
    assert row[1] == f"id-{row[0]}"
    assert row[-4] == X[row[0], 0]
    found = gather(VALUATION, *DATA, show={"price": ["<b>"] * 300, "size": np.arange(300)})
    assert found.lowest.columns[-2:] == ("price", "size")
    assert found.lowest.rows[0][-1] == found.lowest.rows[0][0]


@pytest.mark.parametrize(
    "names",
    [
        (1, 2, 3), (True, False), (1.5, 2.5), ("1", 1), (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)),
        ((1, 2), (3, 4)), (b"x", b"y"),
    ],
    ids=str,
)  # fmt: skip
def test_labels_may_be_anything(names):
    random = np.random.default_rng(0)
    codes, codes_val = random.integers(0, len(names), 60), random.integers(0, len(names), 60)
    rows, rows_val = (2.0 * c[:, None] + random.normal(size=(60, 2)) for c in (codes, codes_val))
    data = rows, [names[c] for c in codes], rows_val, [names[c] for c in codes_val]
    found = gather(value(data), *data)
    assert found.suggestions is not None
    assert len({part.label for part in found.distribution.parts}) == len(names)
    assert found.lowest.rows[0][1] in {str(name) for name in names} | {repr(name) for name in names}
    Page(render(found))


def test_many_classes_are_shortened():
    random = np.random.default_rng(0)
    centers = 9 * random.normal(size=(40, 8))
    codes, codes_val = np.arange(1200) % 40, np.arange(400) % 40
    X, X_val = (centers[c] + random.normal(size=(len(c), 8)) for c in (codes, codes_val))
    y, _ = th.flip_labels(codes, fraction=0.1, seed=0)
    data = X, y, X_val, codes_val
    found = gather(value(data, radius=4.0), *data)
    assert len(found.distribution.parts) == 10
    assert found.distribution.parts[-1].label == "31 other classes"
    assert sum(part.points for part in found.distribution.parts) == 1200
    assert len(found.suggestions.classes) == len(found.coverage.classes) == 30
    page = Page(render(found))
    assert len(page.table("moves")) <= 30
    assert page.tables["matrix"][0] == ["labeled", "keep", "relabel", "drop", "inspect", "outlier"]


def test_the_same_call_gives_the_same_page():
    first, again = (render(gather(VALUATION, *DATA, seed=7)) for _ in range(2))
    assert first == again
    other = gather(VALUATION, *DATA, seed=8).removal
    assert (
        other.curves["logistic regression", "random"]
        != gather(VALUATION, *DATA).removal.curves["logistic regression", "random"]
    )


# refusals


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((None,), "valuation must be a Valuation, got NoneType"),
        ((VALUATION, DATA[0]), "together, or y and y_val, or y, or none of them, got X"),
        ((VALUATION, DATA[0], DATA[1]), "got X and y"),
        ((VALUATION, None, DATA[1][:9]), "the valuation has 300 points but y 9 labels"),
        (
            (VALUATION, *DATA[:2], DATA[2][:9], DATA[3][:9]),
            "made with 120 validation points but y_val has 9",
        ),
        ((VALUATION, DATA[0][:9], *DATA[1:]), "X has 9 rows but there are 300 labels"),
        ((VALUATION, *DATA[:2], DATA[2][:9], DATA[3]), "X_val has 9 rows but there are 120 labels"),
        ((VALUATION, DATA[0][:, :2], *DATA[1:]), "X has 2 features but X_val has 4"),
        ((VALUATION, DATA[0], np.full(300, "yak"), *DATA[2:]), "labels not in classes"),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises(InputError, match=re.escape(message)):
        gather(*given)


def test_ids_columns_and_records_are_checked():
    with pytest.raises(InputError, match="ids has 2 entries but the valuation has 300 points"):
        gather(VALUATION, ids=["a", "b"])
    with pytest.raises(InputError, match=re.escape("show['a'] has 1 entries")):
        gather(VALUATION, show={"a": [1]})
    with pytest.raises(InputError, match="record must be a dictionary, got str"):
        gather(VALUATION, record="command")
    with pytest.raises(InputError, match="nothing to report"):
        gather(th.Valuation(np.array([]), "example", {}, 0.0, 0.0))


def test_a_report_is_written_whole_and_never_over_another(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    report_valuation(VALUATION, path)
    before = path.read_text()
    with pytest.raises(InputError, match="is there already: name another file, or use force"):
        report_valuation(VALUATION, path)
    with pytest.raises(InputError, match="does not exist"):
        report_valuation(VALUATION, tmp_path / "no" / "report.html")
    with pytest.raises(InputError, match="path must be the name of a file, got None"):
        write_report(None, gather(VALUATION))
    report_valuation(value(mean=True), path, force=True)
    assert path.read_text() != before
    before = path.read_text()
    monkeypatch.setattr(sys.modules["thresher.report.page"], "asset", lambda name: "{{ broken")
    with pytest.raises(Exception, match="unexpected end of template"):
        report_valuation(VALUATION, path, force=True)
    assert path.read_text() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_without_jinja_the_error_names_the_extra(monkeypatch):
    found = gather(VALUATION)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ExtraError, match=re.escape("the HTML report needs jinja2: pip install 'thresher[report]'")
    ):
        render(found)


# the page


def test_nothing_that_is_handed_in_becomes_markup():
    X, y, X_val, y_val = DATA
    names = {"ant": EVIL, "bee": '"><img src=x onerror=alert(1)>', "cat": "</title></svg><!--"}
    y, y_val = ([names[label] for label in labels] for labels in (y, y_val))
    frame, frame_val = (
        pd.DataFrame(part, columns=[EVIL, "</th>", "'", '"']) for part in (X, X_val)
    )
    valuation = th.tknn_shapley(
        frame, y, frame_val, y_val, radius=RADIUS, metric="euclidean", owners=[EVIL] * 300
    )
    record = {
        EVIL: "</script><script>alert(2)</script>",
        "number": float("inf"),
        "path": Path("points.csv"),
    }
    text = render(gather(valuation, frame, y, frame_val, y_val, ids=[EVIL] * 300, record=record))
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    assert not any(tag in {"img", "th/"} or "onerror" in found for tag, found in page.tags)
    assert page.table("worst")[0][1] == EVIL
    document = json.loads("".join(page.words["evidence"]))
    assert document["record"][EVIL] == "</script><script>alert(2)</script>"
    assert document["record"]["number"] == "inf"
    assert document["params"]["classes"] == sorted(names.values())
    assert text.lower().count("</script>") == 3


def test_the_page_is_one_file_with_sound_markup(page, evidence):
    assert len(page.ids) == len(set(page.ids))
    assert not re.search(r"(src|href)=[\"'](?!#)", page.text)
    assert "http" not in page.text.replace("http-equiv", "")
    assert " style=" not in page.text  # the policy of the page would refuse it
    for drawing in re.findall(r"<svg.*?</svg>", page.text, re.DOTALL):
        if "<svg" not in drawing[4:]:
            ElementTree.fromstring(drawing)  # noqa: S314
    charts = [
        found for tag, found in page.tags if tag == "svg" and "chart" in found.get("class", "")
    ]
    assert charts
    assert all(found["role"] == "img" and found["aria-label"] for found in charts)
    linked = [found["href"][1:] for tag, found in page.tags if tag == "a"]
    assert linked
    assert set(linked) <= set(page.ids)
    assert len(page.text) < 600_000


def test_the_document_inside_repeats_the_run():
    record = {"command": "thresher value", "seed": 3, "digests": {"train.csv": "ab"}}
    page = Page(render(gather(VALUATION, *DATA, record=record)))
    document = json.loads("".join(page.words["evidence"]))
    assert document["record"] == record
    params = document["params"]
    again = th.tknn_shapley(
        *DATA, **{key: params[key] for key in ("radius", "metric", "semivalue", "mean")}
    )
    np.testing.assert_array_equal(again.values, VALUATION.values)
    assert document["total"] == pytest.approx(VALUATION.values.sum())
    assert '"digests"' in page.said("how")


def test_a_hundred_thousand_points_take_a_moment_and_little_room():
    data = blobs(100_000, 500, classes=4, width=6, flipped=0.03)[:4]
    valuation = value(data, owners=np.arange(100_000) % 3000)
    start = time.process_time()  # of all threads, whatever else the machine does
    text = render(gather(valuation, *data, ids=np.arange(100_000)))
    assert time.process_time() - start < 60
    assert len(text) < 2_500_000
    assert "trained on 20,000 of 100,000 rows, chosen at random" in Page(text).said("removal")


# private releases


class Sealed:
    """A release of which nothing private can be asked for."""

    def __init__(self, found):
        self.record, self.price_list, self._drawn = found.record, found.price_list, found._drawn
        self.relative_error, self.table = found.relative_error, found.table


def test_the_page_of_a_release_follows_from_what_is_public():
    found = release()
    assert render(gather(None, release=found)) == render(gather(None, release=Sealed(found)))


def test_a_table_that_is_noise_tells_nothing_of_its_error():
    options = {"radius": 0.7, "metric": "euclidean", "delta": 1e-5, "seed": 3}
    small, large = (
        th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, epsilon=epsilon, **options) for epsilon in (0.001, 5)
    )
    assert (small.is_noise, large.is_noise) == (True, False)
    page = render(gather(None, release=small))
    assert "its table cannot be told from noise" in page
    assert "how good its values are cannot be told" in page
    assert "cannot be told" not in render(gather(None, release=large))


def test_points_with_the_same_release_have_the_same_page():
    far = np.full((5, 3), [50.0, 0.0, 0.0])
    options = {"radius": 0.7, "metric": "euclidean", "epsilon": 1, "delta": 1e-5, "seed": 3}
    order = np.random.default_rng(0).permutation(len(X))
    one = th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, **options)
    more = np.concatenate([X[order], far]), np.concatenate([Y[order], ["up"] * 5])
    two = th.dp_tknn_shapley(*more, X_VAL, Y_VAL, **options)
    np.testing.assert_array_equal(one.table, two.table)
    assert len(one.values) != len(two.values)
    assert render(gather(None, release=one)) == render(gather(None, release=two))
    other = th.dp_tknn_shapley(X[:700], Y[:700], X_VAL, Y_VAL, **options)
    assert render(gather(None, release=one)) != render(gather(None, release=other))


def test_the_page_of_a_release_has_no_value_and_no_number_of_points():
    found = release()
    text = render(gather(None, release=found, record={"command": "thresher release"}))
    page = Page(text)
    assert not {"rows", "map", "values", "removal", "suggestions", "coverage", "owners"} & set(
        page.ids
    )
    assert not {"worst", "spread", "matrix"} & page.tables.keys()
    assert not [
        number for number in (*found.values, *exact()) if number and repr(float(number)) in text
    ]
    assert str(len(X)) not in re.findall(r"\d+", re.sub(r"[0-9a-f]{64}", "", page.said("how")))


@pytest.mark.parametrize("extra", ["valuation", "X", "ids"])
def test_a_report_of_a_release_takes_nothing_exact(extra):
    given = {"valuation": None, "X": None, "ids": None} | {extra: VALUATION}
    with pytest.raises(InputError, match="nothing exact may be on its page"):
        gather(given["valuation"], given["X"], ids=given["ids"], release=release())


def test_the_budget_and_what_it_bought_are_shown():
    found = gather(None, release=release())
    private = found.private
    page = Page(render(found))
    assert [private.record[name] for name in ("epsilon", "delta", "adjacency")] == [
        1.0,
        1e-4,
        "add-remove",
    ]
    assert page.table("quality")[0][1:] == [str(private.bought.rank_agreement), str(private.bought.relative_error)]  # fmt: skip
    assert page.table("quality")[1][1] == str(private.bought.zero_budget)
    assert private.bought.relative_error == release().relative_error
    assert any("protects nobody" in caution for caution in found.cautions)
    assert "A trial release" in found.verdict.sentence
    assert "protects each point" in gather(None, release=release(seed=None)).verdict.sentence


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_rank_agreement_told_is_about_the_real_one(epsilon):
    truth, free = exact(), th.zero_budget_score(X, Y, X_VAL, Y_VAL).values
    found = [release(epsilon=epsilon, seed=seed) for seed in range(3)]
    told = [gather(None, release=each).private.bought for each in found]
    real = np.mean([rank_agreement(each.values, truth) for each in found])
    assert np.mean([bought.rank_agreement for bought in told]) == pytest.approx(real, abs=0.02)
    free_told = np.mean([bought.zero_budget for bought in told])
    assert free_told == pytest.approx(rank_agreement(free, truth), abs=0.04)


def test_releases_that_cannot_tell_their_error_say_so():
    knn = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, epsilon=1, delta=1e-5, seed=0)
    found = gather(None, release=knn)
    assert found.private.bought is None
    assert any("no protection against collusion" in caution for caution in found.cautions)
    assert "cannot be told" in Page(render(found)).said("bought")
    few = th.dp_tknn_shapley(X, Y, X_VAL[:5], Y_VAL[:5], epsilon=1, delta=1e-5, seed=0)
    assert gather(None, release=few).private.bought is None
    Page(render(gather(None, release=few)))


def test_a_budget_that_buys_nothing_is_called_so():
    private = gather(None, release=release(seed=None)).private
    poor = dataclasses.replace(private, bought=Bought(2.0, 0.5, 0.9))
    assert "no better than the 0.900 that costs no budget" in poor.verdict().sentence
