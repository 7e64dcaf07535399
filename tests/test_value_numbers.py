"""`thresher value --task regression`: from files of numbers to suggestions, and to a clean table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.errors import InputError, in_options, message_of
from thresher.runs.inspection import inspect_files
from thresher.runs.memory_run import value_files
from thresher.runs.results import write_results
from thresher.runs.settings import Settings
from thresher.tables.reader import read_table

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

WRONG = np.array([3, 40, 77])
COLUMNS = ["row", "label", "value", "rank", "percentile", "near", "usual", "best_target",
           "best_value", "score", "suggestion", "review"]  # fmt: skip


def line(count, seed):
    """Targets that follow from two columns, but for a little noise."""
    random = np.random.default_rng(seed)
    X = random.random((count, 2))
    return X, 10 * X[:, 0] + 5 * X[:, 1] + random.normal(size=count) / 4


def write(name, X, y, **more):
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y, **more}), name)


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """points.parquet with three wrong targets and val.parquet, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (X, right), (V, y_val) = line(120, 0), line(60, 1)
    y = right.copy()
    y[WRONG] += [40, -30, 25]
    write("points.parquet", X, y)
    write("val.parquet", V, y_val)
    return X, y, V, y_val, right


def settings(**more):
    return Settings("points.parquet", task="regression", **more)


def thresher(*words):
    return CliRunner().invoke(app, list(words))


def check_refused(why, *words):
    done = thresher(*words)
    said = done.output if not isinstance(done.exception, InputError) else message_of(done.exception)
    assert why in in_options(said), said


METHODS = {
    "forest": {"trees": 40},
    "forest by validation": {"trees": 40, "validation": "val.parquet"},
    "radius": {"method": "tknn", "metric": "euclidean", "validation": "val.parquet"},
    "nearest": {"method": "knn", "metric": "euclidean", "validation": "val.parquet"},
    "held out": {"method": "tknn", "metric": "euclidean", "holdout": 0.3, "radius": 0.4},
}


@pytest.mark.parametrize("name", METHODS)
def test_wrong_targets_are_to_be_corrected_to_about_what_they_were(data, name):
    run = value_files(settings(**METHODS[name]))
    rows = run.points.rows
    there = np.isin(rows, WRONG)
    said = np.array(run.findings.suggestion.tolist())
    assert there.any()
    assert (said[there] == "correct").all()
    assert (said[~there] == "correct").sum() <= 2
    assert np.abs(run.findings.expected[there] - data[4][rows[there]]).max() < 3
    assert set(run.review[: there.sum()].tolist()) == set(np.flatnonzero(there).tolist())
    columns = list(run.columns())
    lacking = {"best_value"} if name == "nearest" else set()
    assert columns == [column for column in COLUMNS if column not in lacking]
    assert run.record["settings"]["task"] == "regression"
    assert run.valuation.efficiency_gap() < 1e-8 * abs(run.valuation.utility_none)


def test_the_forest_is_the_default_and_the_record_has_what_is_predicted_for_none(data):
    alone, judged = (
        value_files(settings(trees=4, **x)) for x in ({}, {"validation": "val.parquet"})
    )
    assert alone.settings.method == judged.settings.method == "forest"
    assert alone.valuation.params["empty"] == pytest.approx(data[1].mean())
    assert judged.valuation.params["empty"] == pytest.approx(data[3].mean())
    given = value_files(settings(trees=4, empty=2.0))
    assert given.valuation.params["empty"] == 2.0
    assert "--empty 2.0 --trees 4" in given.record["command"]


def test_a_table_with_right_targets_is_kept(data):
    X, _, _, _, right = data
    write("right.parquet", X, right)
    found = value_files(Settings("right.parquet", task="regression", trees=40)).findings.counts()
    assert found["correct"] + found["drop"] == 0
    assert found["keep"] >= 115


def test_the_command_values_says_and_cleans(data):
    _, y, _, _, right = data
    done = thresher(
        "value", "points.parquet", "--task", "regression", "--trees", "40", "-o", "v.csv"
    )
    assert not done.exit_code, done.stderr
    assert "3 correct" in done.stderr
    assert "row 3: score" in done.stderr
    assert "0 drop" in done.stderr
    assert "--values v.csv --correct correct --out" in done.stderr
    cleaned = thresher("clean", "points.parquet", "--values", "v.csv", "--drop", "drop", "--correct",
                       "correct", "--out", "clean.parquet", "--log", "log.json")  # fmt: skip
    assert (
        cleaned.stderr == "dropped 0 rows, corrected 3 of 120: wrote clean.parquet and log.json\n"
    )
    now = pq.read_table("clean.parquet")["y"].to_numpy()
    np.testing.assert_array_equal(np.flatnonzero(now != y), WRONG)
    assert np.abs(now - right)[WRONG].max() < 3
    changes = json.loads(Path("log.json").read_text())["changes"]
    assert {change["action"] for change in changes} == {"correct"}


@pytest.mark.parametrize("method", ["forest", "tknn", "knn"])
@pytest.mark.parametrize("far", [1e9, 999999999])
def test_a_sentinel_is_a_finding_and_changes_no_other(method, far):
    X, y = line(400, 0)
    wrong = np.arange(5, 400, 20)
    y[wrong] += np.where(wrong % 3, 12.0, -12.0)
    held = [] if method == "forest" else ["--validation", "val.parquet"]
    found = []
    for name, row in (("a", y[200]), ("b", far)):
        y[200] = row
        write(f"{name}.parquet", X, y)
        done = thresher("value", f"{name}.parquet", "--task", "regression", "--method", method,
                        *held, "-o", f"{name}-values.parquet")  # fmt: skip
        assert not done.exit_code, done.stderr
        rows = pq.read_table(f"{name}-values.parquet").sort_by("row")
        found.append(np.array(rows["suggestion"].to_pylist()))
    rest = np.arange(400) != 200
    # what others are worth also depends on what the row was before: a value near 0 may change sign
    assert (found[0][rest] != found[1][rest]).sum() <= (method == "knn")
    assert np.isin(found[1][wrong], ["correct", "inspect"]).mean() > 0.7
    assert found[1][200] in {"correct", "drop", "inspect"}


def test_clean_corrects_outright_and_keeps_the_type_of_the_column():
    write("whole.parquet", np.ones((3, 2)), pa.array([1, 2, 3], pa.int32()))
    thresher("clean", "whole.parquet", "--correct", "rows:1=7", "--out", "b.parquet")
    assert pq.read_table("b.parquet")["y"].to_pylist() == [1, 7, 3]
    for text, why in (("rows:1=cat", "needs a new number"), ("rows:1=2.5", "does not fit column")):
        check_refused(why, "clean", "whole.parquet", "--correct", text, "--out", "c.parquet")


def test_a_decimal_comma_is_read_in_targets_too(data):
    X, y, *_ = data
    rows = [f"{a:.6f};{b:.6f};{t:.6f}".replace(".", ",") for (a, b), t in zip(X, y)]
    Path("a.csv").write_text("\n".join(["a;b;y", *rows]) + "\n")
    run = value_files(Settings("a.csv", task="regression", decimal=",", delimiter=";", trees=4))
    np.testing.assert_allclose(run.points.labels.tolist(), y, atol=1e-6)


def test_inspect_and_refusals_name_the_task():
    found = inspect_files(Settings("points.parquet"))
    assert found.command.endswith("--task regression")
    assert found.solved
    check_refused("say which with --task regression or --task", "value", "points.parquet")


BAD = {
    "missing targets in row 1": [1.0, None, 2.0, 5.0, 3.0],
    "infinite targets in row 2": [1.0, 2.0, float("inf"), 3.0, 4.0],
    "integers beyond 2**53": [1, 2, 3, 4, 2**53 + 2],
    "not numbers, such as 'cat' in row 1": ["1", "cat", "2", "3", "4"],
    "one distinct target": [2.0, 2.0, 2.0, 2.0, 2.0],
}


@pytest.mark.parametrize("why", BAD)
def test_bad_targets_are_refused_in_the_command(why):
    write("bad.parquet", np.random.default_rng(0).random((5, 2)), BAD[why])
    check_refused(why, "value", "bad.parquet", "--task", "regression")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--empty", "cat"], "unable to parse"),
        (["--empty", "nan"], "--empty must be a number"),
        (["--method", "zero-budget"], "--task regression needs --method forest"),
        (["--kernel", "gaussian"], "--kernel is for classes"),
        (["--unlabeled", "skip"], "--unlabeled is for classes"),
    ],
)
def test_options_that_do_not_fit_numbers_are_refused(options, why):
    check_refused(why, "value", "points.parquet", "--task", "regression", *options)


def test_empty_goes_with_regression():
    with pytest.raises(InputError, match="needs task='regression'"):
        Settings("points.parquet", empty=1.0)


def test_retraining_values_numbers_too(data):
    run = value_files(settings(method="leave-one-out", validation="val.parquet"))
    assert run.findings is None
    wanted = th.leave_one_out(*data[:4], task="regression")
    np.testing.assert_allclose(run.valuation.values, wanted.values, atol=1e-12)


# In Python


def test_explain_finds_what_the_run_found(data):
    X, y, V, y_val, _ = data
    about = {"metric": "euclidean", "task": "regression"}
    leaves = (X[:, :1] * 6).astype(int), (V[:, :1] * 6).astype(int)
    ways = [
        (th.tknn_shapley(X, y, V, y_val, radius=0.3, mean=True, **about), (X, y, V, y_val)),
        (th.tknn_shapley(X, y, V, y_val, radius=0.3, semivalue="banzhaf", **about), (X, y, V, y_val)),
        (th.knn_shapley(X, y, V, y_val, k=5, **about), (X, y, V, y_val)),
        (th.leaf_shapley(leaves[0], y, leaves[1], y_val, task="regression"), (leaves[0], y, leaves[1], y_val)),
        (th.forest_shapley(X, y, trees=20, task="regression", empty=0.0), (X, y)),
    ]  # fmt: skip
    for valuation, given in ways:
        found = th.explain(valuation, *given)
        assert isinstance(found, th.TargetFindings)
        np.testing.assert_array_equal(found.values, valuation.values)
        assert {found.suggestion[row] for row in WRONG} <= {"correct", "inspect"}


def test_expected_targets_are_means_of_those_near(data):
    X, y, V, y_val, _ = data
    about = {"metric": "euclidean", "task": "regression"}
    found = th.explain(th.tknn_shapley(X, y, V, y_val, radius=0.3, **about), X, y, V, y_val)
    near = np.sqrt(((X[:, None] - V) ** 2).sum(axis=2)) <= 0.3
    np.testing.assert_array_equal(found.near, near.sum(axis=1))
    np.testing.assert_allclose(found.expected, near @ y_val / near.sum(axis=1), atol=1e-7)
    nearest = np.argsort(((X[:, None] - V) ** 2).sum(axis=2), axis=1, kind="stable")[:, :10]
    found = th.explain(th.knn_shapley(X, y, V, y_val, k=3, **about), X, y, V, y_val)
    np.testing.assert_allclose(found.expected, y_val[nearest].mean(axis=1), rtol=1e-9)


def test_the_best_value_is_what_the_expected_target_would_be_worth(data):
    X, y, V, y_val, _ = data
    leaves, leaves_val = (X[:, :1] * 6).astype(int), (V[:, :1] * 6).astype(int)
    ball = {"metric": "euclidean", "radius": 0.3, "task": "regression", "empty": 1.0}
    ways = {
        "radius": lambda y, **more: th.tknn_shapley(X, y, V, y_val, **ball, **more),
        "judged": lambda y, **more: th.leaf_shapley(
            leaves, y, leaves_val, y_val, task="regression", empty=1.0, **more
        ),
        "mutual": lambda y, **more: th.leaf_shapley(
            leaves, y, task="regression", empty=1.0, **more
        ),
    }
    given = {"radius": (X, y, V, y_val), "judged": (leaves, y, leaves_val, y_val)}
    for name, way in ways.items():
        for semivalue in ("shapley", "banzhaf"):
            valuation = way(y, semivalue=semivalue)
            found = th.explain(valuation, *given.get(name, (leaves, y)))
            moved = y.copy()
            moved[3] = found.expected[3]
            again = way(moved, semivalue=semivalue)
            assert again.values[3] == pytest.approx(found.best_value[3], rel=1e-6, abs=1e-6), name


def test_expected_targets_of_leaves_leave_the_point_itself_out():
    leaves, y = np.array([[0], [0], [0], [1], [1], [2]]), np.array([1.0, 2.0, 4.0, 5.0, 7.0, 9.0])
    found = th.explain(th.leaf_shapley(leaves, y, task="regression", empty=0.0), leaves, y)
    np.testing.assert_allclose(found.near, [2, 2, 2, 1, 1, 0])
    np.testing.assert_allclose(found.expected[3:5], [7.0, 5.0], atol=1e-6)
    assert np.isnan(found.expected[5])
    assert found.suggestion[5] == "outlier"


def test_a_radius_for_numbers_is_between_too_narrow_and_too_wide(data):
    *_, V, y_val, _ = data
    found = th.suggest_radius(V, y_val, metric="euclidean", task="regression")
    assert 0.05 < found < 0.6
    at = np.flatnonzero(found.radii == float(found))[0]
    assert found.accuracy[at] > 0.8  # R^2
    near = np.sqrt(((V[:, None] - V) ** 2).sum(axis=2)) <= float(found)
    np.fill_diagonal(near, val=False)
    assert found.coverage[at] == pytest.approx(near.any(axis=1).mean())
    with pytest.raises(InputError, match="cannot be used with task='regression'"):
        th.suggest_radius(V, y_val, task="regression", classes=[0, 1])


def test_values_files_of_numbers_are_read_back():
    run = value_files(settings(trees=4))
    write_results(Path("v.parquet"), run)
    assert (
        read_table("v.parquet").data.column("best_target").to_pylist()[3]
        == run.findings.expected[3]
    )
    assert th.Valuation.load("v.parquet").params["task"] == "regression"
