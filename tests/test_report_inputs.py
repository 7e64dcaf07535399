"""The report of any valuation: its parts, what it refuses, its markup and its file."""

from __future__ import annotations

import datetime
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import DATA, EVIL, RADIUS, VALUATION, Page, blobs, value
from sklearn.ensemble import RandomForestClassifier

import thresher as th
from thresher.errors import ExtraError, InputError
from thresher.report import gather, render, report_valuation, write_report

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
        ((VALUATION, None, DATA[1][:9]), "the valuation has 300 points but y has 9 labels"),
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


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    ("method", "options"),
    [
        (th.tknn_shapley, {"radius": RADIUS, "metric": "euclidean"}),
        (th.knn_shapley, {}),
        (th.forest_shapley, {"trees": 4}),
    ],
)
def test_a_page_about_other_rows_is_not_written(method, options, task, tmp_path):
    X, y, X_val, y_val = DATA
    if task == "regression":
        y, y_val = X.sum(axis=1), X_val.sum(axis=1)
    valuation = method(X, y, X_val, y_val, task=task, **options)
    path = tmp_path / "r.html"
    for other in ((X[::-1], y[::-1]), (np.roll(X, 1, axis=0), y)):
        with pytest.raises(InputError, match="not computed from these points in this order"):
            valuation.report(path, *other, X_val, y_val)
    assert not path.exists()
    valuation.report(path, X, y, X_val, y_val)


@pytest.mark.parametrize("method", [th.tknn_shapley, th.knn_shapley])
def test_a_page_about_other_rows_that_judge_each_other_is_not_written(method, tmp_path):
    valuation = method(*DATA[:2])
    with pytest.raises(InputError, match="not computed from these points in this order"):
        valuation.report(tmp_path / "r.html", DATA[0][::-1], DATA[1][::-1])
    valuation.report(tmp_path / "r.html", *DATA[:2])


@pytest.mark.parametrize("classes", [None, ["ant", "bee", "cat", "dog"]])
def test_zero_budget_scores_of_other_rows_are_not_shown(classes, tmp_path):
    X, y, X_val, y_val = DATA
    about = {"radius": RADIUS, "metric": "euclidean"}
    numbers = X, X[:, 0], X_val, X_val[:, 0]
    for data, more in ((DATA, {"classes": classes}), (numbers, {"task": "regression"})):
        valuation = th.zero_budget_score(*data, **about, **more)
        with pytest.raises(InputError, match="not computed from these points in this order"):
            valuation.report(tmp_path / "r.html", X[::-1], *data[1:], force=True)
        valuation.report(tmp_path / "r.html", *data, force=True)
    stranger = X, [*y[:-1], "eel"], X_val, y_val
    th.zero_budget_score(*stranger, **about).report(tmp_path / "s.html", *stranger)


def test_a_forest_that_was_passed_fitted_can_be_explained_apart(tmp_path):
    X, y = DATA[:2]
    fitted = RandomForestClassifier(4, random_state=0).fit(X, y)
    valuation = th.forest_shapley(X, y, forest=fitted)
    assert "pass what explain finds with forest=" in gather(valuation, X, y).missing["suggestions"]
    findings = th.explain(valuation, X, y, forest=fitted)
    assert "suggestions" not in gather(valuation, X, y, findings=findings).missing
    valuation = th.forest_shapley(X, y, trees=4, forest=RandomForestClassifier(max_depth=2))
    with pytest.raises(InputError, match="thresher.report.gather as findings="):
        valuation.report(tmp_path / "r.html", X, y)


@pytest.mark.parametrize("name", ["force", "held_out"])
def test_switches_are_true_or_false(name, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("kept")
    with pytest.raises(InputError, match=f"{name} must be True or False, got 'no'"):
        VALUATION.report(path, **({"force": True} | {name: "no"}))
    assert path.read_text() == "kept"


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
    with pytest.raises(InputError, match="already exists: name another file, or use force=True"):
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
        ExtraError, match=re.escape("the HTML report needs jinja2: install the extra 'report' ")
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
