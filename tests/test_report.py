"""The report: its numbers against plain recomputation."""

from __future__ import annotations

import re
import sys
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from pages import DATA, RADIUS, VALUATION, Page, blobs, overlapping, value
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import thresher as th
from thresher.embed import leading_components
from thresher.findings.advice import SUGGESTIONS
from thresher.findings.explanation import explain
from thresher.findings.review_list import review_list
from thresher.report import gather, render
from thresher.report.distribution import bar_counts, bar_edges
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings


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
    spy("thresher.inputs.checks", "check_features", lambda name, *_: name)
    spy("thresher.inputs.checked_inputs", "check_points")
    spy("thresher.inputs.checked_inputs", "check_validation")
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
    text = render(evidence)
    assert "based on 6,000 rows drawn at random" in text
    assert text.count('<rect class="cell') == len(cells)
    assert (plane.points, plane.x_val) == (6000, ())


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
