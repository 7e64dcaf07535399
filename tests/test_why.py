"""Why a row is on the list: who speaks for and against its label, and what it is unlike."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pages import Page, blobs

import thresher as th
from thresher.findings.forecast import Forecast
from thresher.findings.label_findings import Worth
from thresher.inputs.checked_inputs import check_pair
from thresher.report import Details, gather, render
from thresher.report.headline import describe_headline
from thresher.report.leaf_witnesses import shared_leaves
from thresher.report.lowest_rows import LowestRows
from thresher.report.suggestions import Suggestions
from thresher.report.unlike import unlike_columns
from thresher.tables.columns import Columns
from thresher.tables.copies import Copies

NAMES = ("ant", "bee", "cat")


def document(evidence):
    """What the page's script reads."""
    return json.loads("".join(Page(render(evidence)).words["review-data"]))


# by a forest


@pytest.fixture(scope="module")
def grown():
    X, y, _, _, wrong = blobs(120, flipped=0.1)
    return X, y, wrong, *th.forest_findings(X, y, trees=20)


def test_witnesses_are_the_rows_that_share_the_most_leaves(grown):
    X, y, _, _, findings = grown
    codes = np.unique(y, return_inverse=True)[1]
    asked = np.array([3, 50, 119])
    ranked, shares = shared_leaves(findings.forest, X.astype(np.float32), None, asked, codes, 3)
    leaves, unseen = findings.forest.apply(X), findings.forest.unseen(X)
    for place, row in enumerate(asked):
        weights, wanted = np.zeros(120), np.zeros(3)
        for tree in np.flatnonzero(unseen[row]):
            same = leaves[:, tree] == leaves[row, tree]
            same[row] = False
            weights += same / max(same.sum(), 1)
            wanted += np.bincount(codes[same], minlength=3) / max(same.sum(), 1)
        assert set(ranked[place]) == set(np.flatnonzero(weights))
        assert (np.diff(weights[ranked[place]]) <= 1e-12).all()
        np.testing.assert_allclose(shares[place], wanted / unseen[row].sum())
        assert shares[place, codes[row]] == pytest.approx(findings.agree[row], abs=1e-5)


def test_large_leaves_are_stood_for_by_a_few_rows(grown, monkeypatch):
    monkeypatch.setattr("thresher.report.leaf_witnesses.MOST_OF_LABEL", 2)
    monkeypatch.setattr("thresher.report.leaf_witnesses.ENTRIES", 50)  # added up again and again
    X, y, _, _, findings = grown
    codes = np.unique(y, return_inverse=True)[1]
    asked = np.arange(10)
    ranked, shares = shared_leaves(findings.forest, X.astype(np.float32), None, asked, codes, 3)
    assert all(0 < len(order) < 119 for order in ranked)
    np.testing.assert_allclose(shares[:, 0], np.where(codes[asked] == 0, findings.agree[asked], shares[:, 0]), atol=1e-5)  # fmt: skip


def test_every_listed_row_says_why(grown):
    X, y, _, valuation, findings = grown
    X, y = X.copy(), np.array(y)
    columns = {"height": X[:, 0], "width": X[:, 1], "sort": ["a"] * 120}
    ids = [f"id-{i}" for i in range(120)]
    evidence = gather(
        valuation, X, y, findings=findings, ids=ids, details=Details(columns, text=[f"text {i}" for i in range(120)])
    )  # fmt: skip
    found = document(evidence)
    assert len(found["rows"]) == len(evidence.lowest.rows) > 3
    for row in found["rows"]:
        label = NAMES[row["label"]]
        assert label == y[row["row"]]
        assert 0 < len(row["against"]) <= 4
        assert all(NAMES[code] != label for _, code in row["against"])
        assert all(NAMES[code] == label for _, code in row["for"])
        named = [int(name.split()[1]) for name, _ in row["against"] + row["for"]]
        assert row["row"] not in named
        assert all(f"(id-{other})" in name for other, (name, _) in zip(named, row["against"] + row["for"]))  # fmt: skip
        shares = {NAMES[code]: share for code, share in row["bars"]}
        assert shares[label] == pytest.approx(findings.agree[row["row"]], abs=0.01)
        assert sum(shares.values()) == pytest.approx(1, abs=0.02)
        assert row["text"] == f"text {row['row']}"


def test_copies_of_a_row_are_named(grown):
    X, y, _, _, _ = grown
    X, y = X.copy(), np.array(y)
    X[11], X[12] = X[10], X[10]
    y[10], y[11], y[12] = "ant", "ant", "bee"
    copies = Copies.of(Columns(tuple(y), pa.table({f"x{j}": X[:, j] for j in range(4)})))
    valuation, findings = th.forest_findings(X, y, trees=10)
    rows = document(gather(valuation, X, y, findings=findings, copies=copies))["rows"]
    row = next(each for each in rows if each["row"] == 12)
    assert row["copies"] == [["row 10", 0], ["row 11", 0]]
    assert row["copied"] == 2


# by a radius and by nearest neighbors


def test_by_a_radius_the_nearest_validation_points_speak_and_bars_are_values():
    X, y, X_val, y_val, _ = blobs(200, 80, flipped=0.1)
    options = {"radius": 2.0, "metric": "euclidean"}
    valuation = th.tknn_shapley(X, y, X_val, y_val, **options)
    details = Details(rows_val=np.arange(80) + 1000, ids_val=[f"v{i}" for i in range(80)])
    found = document(gather(valuation, X, y, X_val, y_val, details=details))
    points, validation = check_pair(X, y, X_val, y_val, metric="euclidean", classes=None)
    counts = th.NeighborCounts(X_val, y_val, **options).add(X, y)
    worth = Worth.of(counts.price_list(), points).values
    assert validation.classes.labels == NAMES
    for row in found["rows"]:
        distances = np.linalg.norm(X_val - X[row["row"]], axis=1)
        near = [v for v in np.argsort(distances) if distances[v] <= 2.0][:64]
        other = [v for v in near if y_val[v] != y[row["row"]]][:4]
        assert [name for name, _ in row["against"]] == [f"validation row {v + 1000} (v{v})" for v in other]  # fmt: skip
        assert row["kind"] == "value"
        for code, number in row["bars"]:
            assert number == pytest.approx(worth[row["row"], code], rel=0.01, abs=1e-9)


def test_by_nearest_neighbors_bars_are_votes():
    X, y, X_val, y_val, _ = blobs(200, 80, flipped=0.1)
    valuation = th.knn_shapley(X, y, X_val, y_val, k=5, metric="euclidean")
    for row in document(gather(valuation, X, y, X_val, y_val))["rows"]:
        assert row["kind"] == "share"
        assert sum(share for _, share in row["bars"]) == pytest.approx(1, abs=0.02)


def test_without_features_there_is_a_list_but_no_why():
    y, y_val = ["ant", "bee"] * 10, ["ant", "bee"]
    valuation = th.tknn_shapley(np.ones((20, 2)), y, None, y_val, radius=2, metric="precomputed")
    assert gather(valuation, None, y, None, y_val).review is None


# unlike


def test_the_columns_are_told_in_which_a_row_is_unlike_its_label():
    size = np.r_[np.arange(100.0), 500 + np.arange(100.0), 540.0]
    color = ["red"] * 95 + ["blue"] * 5 + ["blue"] * 100 + ["blue"]
    same = np.random.default_rng(0).normal(size=201)
    codes = np.r_[np.zeros(100, int), np.ones(100, int), 0]
    columns = {"size": size, "color": color, "same": same, "name": [str(i) for i in range(201)]}
    asked, best = np.array([200, 0]), np.array([1, 1])
    unlike, alike = unlike_columns(columns, codes, ("small", "large"), asked, best)
    assert unlike[0] == ("size: 540", "higher than 99% of small rows, usual for large")
    assert unlike[1] == ("color: blue", "in 6% of small rows, in 100% of large rows")
    assert alike == []


def test_a_number_that_is_usual_under_its_own_label_is_no_reason():
    x = np.r_[np.arange(100.0), np.repeat(20.0, 100), 20.0]
    codes = np.r_[np.zeros(100, int), np.ones(100, int), 0]
    assert unlike_columns({"x": x}, codes, ("a", "b"), np.array([200]), np.array([1])) == [[]]


def test_missing_cells_are_no_reason_and_no_error():
    column = np.r_[np.arange(50.0), np.full(3, np.nan)]
    codes = np.arange(53) % 2
    assert unlike_columns({"x": column}, codes, ("a", "b"), np.array([51]), np.array([0])) == [[]]


# the headline


def listed(marked, shown=None):
    rows = tuple((i,) for i in range(marked if shown is None else shown))
    return LowestRows(("row",), 0, rows, 3000, marked=marked)


def headline(wrong=54.0, contradicted=0.05, marked=76, points=3000, **total):
    counts = {"keep": points - 76, "relabel": 50, "inspect": 22, "drop": 4, "outlier": 0} | total
    forecast = Forecast(np.array([wrong]), contradicted)
    found = Suggestions(counts, by_shares=True, forecast=forecast)
    spread = gather(th.Valuation(np.linspace(-1, 1, points), "example", {}, 1.0, 0.0)).distribution
    return describe_headline(spread, found, None, listed(marked, min(marked, 500)))


def test_a_manager_can_read_the_headline():
    found = headline()
    wrong, look = "About 54 of 3,000 labels are probably wrong.", "These 76 rows are worth a look."
    assert found.sentence == f"{wrong} {look}"
    assert (found.state, found.words) == ("look", "Some labels are probably wrong")
    assert [name for name, _, _ in found.numbers] == ["labels", "probably wrong", "rows to review"]
    assert [number for _, number, _ in found.numbers] == ["3,000", "about 54", "76"]


def test_the_state_follows_what_was_found():
    assert headline(wrong=321.4).state == "bad"
    assert headline(wrong=321.4).sentence.startswith("About 320 of 3,000")
    poor = headline(contradicted=0.4)
    assert poor.state == "unsure"
    assert "but the classes overlap, so many of them are right" in poor.sentence
    clean = headline(wrong=0.0, marked=0, keep=3000, relabel=0, inspect=0, drop=0)
    assert (clean.state, clean.words) == ("good", "Looks good")
    assert clean.sentence == "Nothing stands out among 3,000 labels."
    many = headline(marked=1204)
    assert many.sentence.endswith("1,204 rows are worth a look, these 500 first.")


def test_what_is_doubtful_never_looks_good():
    nothing = {"keep": 696, "relabel": 0, "drop": 0, "inspect": 2304}
    doubtful = headline(wrong=0.0, marked=2304, **nothing)
    assert (doubtful.state, doubtful.words) == ("doubtful", "Nothing is clearly wrong")
    assert doubtful.color == "unsure"
    assert doubtful.sentence == (
        "No label is clearly wrong. 2,304 rows are doubtful: if there is time, look at these 500 "
        "first."
    )
    assert doubtful.numbers[-1] == ("rows to review", "2,304", "2,304 inspect")
    one = headline(wrong=0.0, marked=1, **nothing | {"inspect": 1})
    assert one.sentence.endswith("But this row is doubtful.")


def test_the_number_of_rows_to_review_says_what_it_adds_up_from():
    assert headline(marked=79).numbers[-1] == (
        "rows to review", "79", "50 relabel, 4 drop, 22 inspect, 3 copies",
    )  # fmt: skip
    assert headline(wrong=14.0).numbers[1] == ("probably wrong", "about 14", "under 1% of all")


def test_the_page_opens_with_the_headline(grown):
    X, y, _, valuation, findings = grown
    evidence = gather(valuation, X, y, findings=findings)
    page = render(evidence)
    assert f"<h1>{evidence.headline.sentence}</h1>" in page
    assert page.index("<h1>") < page.index('id="verdict"')
    assert evidence.headline.words in page
