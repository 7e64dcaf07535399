"""Reports of forests: rows to review, the forecast, stability, copies, and a second look."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pages import Page, blobs, overlapping
from pyarrow import csv

import thresher as th
from thresher.findings.forecast import Forecast
from thresher.findings.review_list import MOST, review_list
from thresher.findings.second_look import SecondLook, contradicted, look_again, rank_space
from thresher.findings.stability import Stability
from thresher.report import gather, render
from thresher.report.page import render_page
from thresher.report.suggestions import Suggestions
from thresher.report.verdict import judge, nothing_stands_out
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings
from thresher.tables.columns import Columns
from thresher.tables.copies import Copies


@pytest.fixture(scope="module")
def found():
    X, y, _, _, wrong = blobs(300, flipped=0.1)
    return X, y, wrong, *th.forest_findings(X, y, trees=40)


def test_the_page_of_a_forest_has_what_can_be_told_without_a_validation_set(found):
    X, y, wrong, valuation, findings = found
    evidence = gather(valuation, X, y, findings=findings)
    page = Page(render(evidence))
    sections = [section.name for section in evidence.sections()]
    assert sections == ["rows", "map", "suggestions", "values", "how"]
    assert "judged by each other" in page.text
    assert "the rows judged each other" in evidence.missing["removal"]
    assert evidence.verdict.sentence.startswith(
        f"{findings.counts()['relabel']} of 300 rows are probably mislabeled"
    )
    assert page.said("verdict").endswith(evidence.verdict.sentence)
    assert "validation point" not in page.said("map") + page.said("rows") + page.said("suggestions")
    listed = [int(row[0]) for row in page.table("worst")]
    assert listed == review_list(findings).tolist()
    assert wrong[listed[: wrong.sum() // 2]].mean() > 0.9


def test_findings_need_not_be_handed_in(found):
    X, y, _, valuation, findings = found
    evidence = gather(valuation, X, y)
    assert evidence.suggestions.total == findings.counts()
    assert evidence.suggestions.stability == findings.stability


def test_a_validation_set_brings_removal_and_its_points_on_the_map():
    X, y, X_val, y_val, _ = blobs(200, 80)
    valuation, findings = th.forest_findings(X, y, X_val, y_val, trees=20)
    evidence = gather(valuation, X, y, X_val, y_val, findings=findings)
    assert evidence.removal.models == ("logistic regression",)
    assert len(evidence.map.x_val) == 80
    assert "judged by 80 validation points" in evidence.about.lede()
    assert evidence.coverage is None
    assert "coverage" not in evidence.missing


def test_a_frame_with_categories_and_gaps_is_shown_as_it_is(found):
    X, y, _, _, _ = found
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["c"] = np.where(X[:, 2] > 0, "up", None)
    frame.loc[3, "a"] = np.nan
    valuation = th.forest_shapley(frame, y, trees=10)
    evidence = gather(valuation, frame, y)
    assert evidence.lowest.columns[-3:] == ("a", "b", "c")
    assert {row[-1] for row in evidence.lowest.rows} <= {"up", None}
    assert evidence.map.ranks


def test_the_review_list_is_of_a_length_that_a_person_reads():
    X, y = np.random.default_rng(0).normal(size=(1500, 2)), np.arange(1500) % 2  # pure noise
    valuation, findings = th.forest_findings(X, y, trees=10)
    everything = np.zeros(1500, np.int32)
    marked = dataclasses.replace(
        findings, suggestion=dataclasses.replace(findings.suggestion, codes=everything, distinct=("relabel",))
    )  # fmt: skip
    evidence = gather(valuation, X, y, findings=marked)
    assert len(evidence.lowest.rows) == MOST
    assert "1,000 more are marked" in render(evidence)
    kept = dataclasses.replace(
        findings, suggestion=dataclasses.replace(findings.suggestion, codes=everything, distinct=("keep",))
    )  # fmt: skip
    evidence = gather(valuation, X, y, findings=kept)
    assert "No row is marked. These 20 of 1,500" in render(evidence)
    scores = [row[evidence.lowest.columns.index("score")] for row in evidence.lowest.rows]
    assert scores == np.sort(findings.score)[:20].tolist()


def test_copies_with_different_labels_come_first_and_are_told(found):
    X, y, _, _, _ = found
    X, y = X.copy(), np.array(y)
    X[11], X[12] = X[10], X[10]
    y[10], y[11], y[12] = "ant", "ant", "bee"
    columns = Columns(tuple(y), pa.table({f"x{j}": X[:, j] for j in range(4)}))
    valuation, findings = th.forest_findings(X, y, trees=20)
    evidence = gather(valuation, X, y, findings=findings, copies=Copies.of(columns))
    page = Page(render(evidence))
    assert {int(row[0]) for row in page.table("worst")[:3]} == {10, 11, 12}
    assert page.table("conflicts") == [
        ["exact", "3", "row 10 is ant; row 11 is ant; row 12 is bee"]
    ]
    assert "3 rows have exact copies, and 0 rows have near ones only." in page.said("copies")
    assert evidence.cautions[0].startswith("1 group of exact copies has different labels")


def suggestions(stability=None, forecast=None, **total):
    counts = dict.fromkeys(("keep", "relabel", "inspect", "drop", "outlier"), 0) | total
    return Suggestions(counts, by_shares=True, stability=stability, forecast=forecast)


def test_the_forecast_says_when_it_is_poor():
    good, poor = (Forecast(np.array([3.0, 4.2]), share) for share in (0.1, 0.4))
    told = suggestions(forecast=good, keep=93, relabel=7)
    assert told.tiles()[0] == ("wrong labels", "about 7", "as forecast")
    assert "poor" not in told.forecast_text()
    assert not told.cautions()
    told = suggestions(forecast=poor, keep=93, relabel=7)
    assert told.tiles()[0] == ("wrong labels", "about 7", "a poor forecast")
    assert any("That forecast is poor: 40% of the labels" in each for each in told.cautions())
    sentence = judge(None, told, None, None).sentence
    assert "classes overlap so much that right labels look wrong as well" in sentence


def test_a_real_table_whose_classes_overlap_has_a_poor_forecast():
    X, y, _, _ = overlapping(800, 0)
    X = X + 2 * np.random.default_rng(5).normal(size=X.shape)
    _, findings = th.forest_findings(X, y, trees=40)
    assert findings.forecast.poor


def test_stability_is_told_and_a_shaky_one_is_a_caution():
    steady = suggestions(Stability(0.97, 0.9, 0.8), keep=90, relabel=10)
    text = render_page("suggestions.html.jinja", section=steady)
    assert "Of the rows that one half would relabel, the other half relabels 90%, too." in text
    assert "Of the rows that one half would mark in any way, the other half marks 80%, too." in text
    assert "a correlation of 0.970" in text
    assert not steady.cautions()
    shaky = suggestions(Stability(0.5, 0.4, 0.5), keep=90, relabel=10)
    assert "the other half relabels 40%, too" in shaky.cautions()[0]
    nothing = suggestions(Stability(0.5, float("nan"), float("nan")), keep=100)
    assert "Of the rows" not in render_page("suggestions.html.jinja", section=nothing)
    assert not nothing.cautions()


def test_nothing_stands_out_only_after_a_second_look(monkeypatch):
    X, y, _, _, _ = blobs(200, flipped=0.0, width=8)
    valuation, findings = th.forest_findings(X, y, trees=40)
    assert nothing_stands_out(suggestions(**findings.counts()))
    evidence = gather(valuation, X, y, findings=findings)
    assert evidence.verdict.sentence == (
        "Nothing stands out: none of 200 rows is suggested for a closer look. A second look, by "
        "the 10 nearest rows, finds nothing either."
    )
    seen = []
    monkeypatch.setattr("thresher.report.evidence.look_again", lambda *a, **k: seen.append(k))
    gather(th.tknn_shapley(*blobs(200, 80, flipped=0.0)[:4], radius=2, metric="euclidean"),
           *blobs(200, 80, flipped=0.0)[:4])  # fmt: skip
    assert [each["forest"] for each in seen] == [True]
    gather(*reversed([X, valuation]), y, findings=dataclasses.replace(findings))
    assert [each["forest"] for each in seen] == [True, False]


def test_a_second_look_that_finds_something_says_so():
    told = judge(
        None, suggestions(keep=100), None, None, second=SecondLook("a random forest", 7, 100)
    )
    assert "by a random forest, calls 7 of 100 rows wrong" in told.sentence


@pytest.mark.parametrize("forest", [True, False])
def test_a_second_look_finds_wrong_labels_by_another_method(forest):
    X, y, _, _, wrong = blobs(300, flipped=0.1)
    codes = np.unique(y, return_inverse=True)[1].astype(np.int32)
    X[0] *= 1e9  # a wild row does no harm
    look = look_again(X, codes, forest=forest)
    assert look.rows == 300
    assert 0.6 * wrong.sum() < look.called_wrong < 1.6 * wrong.sum()


def test_a_second_look_takes_some_of_many_rows(monkeypatch):
    monkeypatch.setattr("thresher.findings.second_look.MOST_ROWS", 50)
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.zeros(200, np.int32)
    assert look_again(X, y, forest=False).rows == 50
    assert not contradicted(rank_space(X[:1]), y[:1]).any()


def test_the_command_writes_the_whole_page(tmp_path):
    X, y, _, _, _ = blobs(120, flipped=0.1)
    X[5] = X[4]
    table = pa.table({f"x{j}": X[:, j] for j in range(4)} | {"y": list(y)})
    csv.write_csv(table, tmp_path / "points.csv")
    run = value_files(Settings(str(tmp_path / "points.csv"), trees=10))
    run.report(tmp_path / "r.html")
    page = Page((tmp_path / "r.html").read_text())
    assert {"rows", "copies", "map", "suggestions", "values", "how"} <= set(page.ids)
    places = run.columns()["review"].to_pylist()
    assert [places.index(i + 1) for i in range(len(run.review))] == run.review.tolist()
    assert [int(row[0]) for row in page.table("worst")] == run.review[:MOST].tolist()
