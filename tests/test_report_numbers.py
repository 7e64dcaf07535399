"""The report of numbers: targets against what is expected, residuals, removal, review, decisions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from browsers import downloaded, needed, start, visit
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.report import gather, render
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

WRONG = np.array([5, 33, 71])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """points.csv with three wrong targets, val.csv, and the report of a run."""
    folder = tmp_path_factory.mktemp("numbers")
    random = np.random.default_rng(1)
    for name, count in (("points", 120), ("val", 50)):
        X = random.random((count, 2))
        y = 10 * X[:, 0] + 5 * X[:, 1] + random.normal(size=count) / 4
        if name == "points":
            y[WRONG] += [40, -30, 25]
        lines = [f"r{i},{a:.4f},{b:.4f},{t:.3f}" for i, ((a, b), t) in enumerate(zip(X, y))]
        (folder / f"{name}.csv").write_text("\n".join(["name,a,b,price", *lines]) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(folder):
    about = {
        "label": "price",
        "id": "name",
        "ignore": ("name",),
        "validation": str(folder / "val.csv"),
    }
    about = {key: entry for key, entry in about.items() if key != "ignore"}
    settings = Settings(str(folder / "points.csv"), task="regression", trees=40, **about)
    found = value_files(settings)
    found.report(folder / "report.html", force=True)
    return found


@pytest.fixture(scope="module")
def evidence(run):
    return gather(run.valuation, *run.data, findings=run.findings, ids=run.points.ids)


def test_the_charts_show_targets_and_residuals(run, evidence):
    charts, findings = evidence.targets, run.findings
    assert charts.total == findings.counts()
    spots = {spot[:3] for spot in charts.spots}
    for row in WRONG.tolist():
        found = (float(findings.expected[row]), float(findings.targets[row]), "correct")
        assert found in spots
    assert sum(charts.residuals[1]) == 120
    residuals = np.abs(findings.targets - findings.expected)
    assert charts.typical == pytest.approx(np.median(residuals))
    assert sum(sum(counts.values()) for _, counts in charts.bands) == 120
    assert evidence.headline.sentence == (
        "3 of 120 targets look wrong. These 4 rows are worth a look."
    )
    assert evidence.headline.numbers[-1] == ("rows to review", "4", "3 correct, 1 inspect")


def test_the_removal_curves_are_those_of_a_ridge_regression(run, evidence):
    from sklearn.linear_model import Ridge
    from sklearn.metrics import r2_score

    X, y, V, y_val = (np.array(list(each), float) for each in run.data)
    curve = evidence.removal.curves["linear regression", "lowest"]
    data = evidence_rows(X, V)
    for place, share in enumerate(evidence.removal.fractions):
        kept = np.argsort(run.valuation.values, kind="stable")[int(share * len(X) + 1e-9) :]
        model = Ridge(alpha=1.0).fit(data[0][kept], y[kept])
        assert curve[place] == pytest.approx(r2_score(y_val, model.predict(data[1])), abs=1e-8)
    assert curve[2] > curve[0]


def evidence_rows(X, V):
    """Columns as ranks, as a forest has them, standardized by the points."""
    from thresher.findings.second_look import rank_space

    ranks = rank_space(np.concatenate([X, V])).astype(np.float32).astype(np.float64)
    ours, theirs = ranks[: len(X)], ranks[len(X) :]
    return (ours - ours.mean(axis=0)) / ours.std(axis=0), (theirs - ours.mean(axis=0)) / ours.std(
        axis=0
    )


def test_the_list_has_targets_and_what_is_expected(run, evidence):
    rows = evidence.lowest
    assert rows.columns[:5] == ("row", "id", "target", "suggestion", "expected")
    assert sorted(row[0] for row in rows.rows[:3]) == WRONG.tolist()
    page = render(evidence)
    for words in (
        "What the others expect",
        "Residuals",
        "R^2 of the linear regression",
        "Other number",
    ):
        assert words.lower() in page.lower()
    assert "classes" not in evidence.about.lede()
    document = json.loads(page.split('id="review-data">')[1].split("</script>")[0])
    first = document["rows"][0]
    assert float(document["labels"][first["label"]]) == run.findings.targets[first["row"]]
    assert float(document["labels"][first["best"]]) == run.findings.expected[first["row"]]


@pytest.mark.parametrize("method", ["tknn", "knn"])
def test_methods_by_distance_have_a_report_too(folder, method):
    about = {
        "label": "price",
        "id": "name",
        "validation": str(folder / "val.csv"),
        "method": method,
    }
    settings = Settings(str(folder / "points.csv"), task="regression", metric="euclidean", **about)
    found = value_files(settings)
    page = render(gather(found.valuation, *found.data, findings=found.findings))
    assert "targets look wrong" in page


def test_a_report_without_a_validation_set_leaves_removal_out():
    random = np.random.default_rng(0)
    X = random.random((60, 2))
    y = X @ [3.0, 1.0]
    valuation = th.forest_shapley(X, y, trees=10, task="regression", empty=0.0)
    found = gather(valuation, X, y)
    assert found.removal is None
    assert found.targets.points == 60
    bare = gather(valuation)
    assert bare.targets is None
    assert "1" in render(bare)


def test_decisions_about_numbers_are_applied(folder, run, tmp_path):
    digest = run.record["input_digest"]
    own = {row: repr(float(run.findings.targets[row])) for row in WRONG.tolist()}
    decided = [(5, "correct", "7.5"), (33, "drop", ""), (71, "keep", "")]
    with (tmp_path / "d.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["row", "id", "label", "decision", "new_label", "input_digest"])
        lines.writerows([row, f"r{row}", own[row], word, new, digest] for row, word, new in decided)
    common = [
        "clean",
        str(folder / "points.csv"),
        "--decisions",
        str(tmp_path / "d.csv"),
        "--label",
        "price",
    ]
    done = CliRunner().invoke(app, [*common, "--out", str(tmp_path / "c.csv")])
    assert not done.exit_code, done.output
    assert "decisions: 1 correct, 1 drop, 1 keep, 0 skip" in done.output
    before = (folder / "points.csv").read_text().splitlines()
    after = (tmp_path / "c.csv").read_text().splitlines()
    assert len(after) == len(before) - 1
    assert after[6].endswith(",7.5")
    (tmp_path / "d.csv").write_text((tmp_path / "d.csv").read_text().replace("7.5", "cat"))
    refused = CliRunner().invoke(app, [*common, "--out", str(tmp_path / "e.csv")])
    assert "which is not a number" in str(refused.exception)


@needed
def test_the_page_takes_decisions_about_numbers(folder, run, tmp_path):
    browser = start(tmp_path)
    try:
        visit(browser, (folder / "report.html").as_uri())
        find = lambda name: browser.find_element("id", name)  # noqa: E731
        first = int(find("card-row").text.split()[1])
        find("yes").click()
        find("other").send_keys("cat")
        find("other").submit()
        second = int(find("card-row").text.split()[1])
        assert not browser.execute_script("return document.getElementById('other').validity.valid")
        find("other").clear()
        find("other").send_keys("7.5")
        find("other-form").submit()
        find("drop").click()
        find("save").click()
        saved = list(csv.DictReader(downloaded(Path(tmp_path, "decisions.csv")).splitlines()))
    finally:
        browser.quit()
    found = {int(line["row"]): (line["decision"], line["new_label"]) for line in saved}
    assert found[first] == ("correct", repr(float(run.findings.expected[first])))
    assert found[second] == ("correct", "7.5")
    assert sorted(word for word, _ in found.values()) == ["correct", "correct", "drop"]
