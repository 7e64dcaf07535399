"""`thresher value` by a forest: tables as they are, who judges, and which method is chosen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from sklearn.neighbors import NearestNeighbors
from tabular import check_refused, put, thresher
from value_cases import clouds, write_table

import thresher as th
from thresher.runs.choice import choose_method
from thresher.runs.memory_run import value_files
from thresher.runs.results import write_results
from thresher.runs.settings import Settings
from thresher.runs.table_file import value_to_file
from thresher.tables.columns import Columns
from thresher.tables.encoder import TreeEncoder

FINDINGS = ["row", "label", "value", "rank", "percentile", "near", "agree", "best_label",
            "best_share", "score", "suggestion", "review"]  # fmt: skip
P = [0.23, 0.19, 0.15, 0.13, 0.11, 0.09, 0.06, 0.04]  # of letters, in texts of one kind


def messy(rows=240, seed=0):
    """A table with all that distances do not like, its right labels, and which ones are wrong."""
    random = np.random.default_rng(seed)
    size, weight = random.normal(size=rows), random.normal(size=rows)
    color = random.choice(["red", "green", "blue"], rows)
    right = np.where(size + (color == "red") > 0.3, "dog", "cat")
    y, wrong = th.flip_labels(right, fraction=0.08, seed=seed)
    size[:3] *= 1e6  # wild rows
    columns = {
        "size": [None if i % 17 == 5 else x for i, x in enumerate(size.tolist())],
        "weight": (1e4 * weight).tolist(),
        "color": [None if i % 13 == 7 else x for i, x in enumerate(color.tolist())],
        "chip": ["yes" if x else "no" for x in random.random(rows) < 0.5],
        "y": y.tolist(),
    }
    return pa.table(columns), right, wrong


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_table_is_taken_as_it_is_and_every_row_is_judged():
    table, _, wrong = messy()
    csv.write_csv(table, "points.csv")
    done = thresher("value", "points.csv", "--out", "v.parquet")
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stderr.splitlines()
    assert first == "valued 240 points by each other: forest-shapley, 200 trees"
    assert second == (
        "method forest: it takes columns as they are, and needs no scaling and no validation set"
    )
    found = pq.read_table("v.parquet")
    assert found.column_names == FINDINGS
    assert found.column("row").to_pylist() == list(range(240))
    score = found.column("score").to_numpy()
    assert wrong[np.argsort(score)[: wrong.sum()]].mean() > 0.6
    valuation = th.Valuation.load("v.parquet")
    assert valuation.method == "forest-shapley"
    assert abs(valuation.efficiency_gap()) < 1e-9


def test_the_command_finds_what_the_function_finds():
    table, _, _ = messy()
    pq.write_table(table, "points.parquet")
    pq.write_table(messy(80, seed=1)[0], "val.parquet")
    run = value_files(Settings("points.parquet", validation="val.parquet", trees=20, seed=4))
    X, X_val = (
        t.drop_columns("y").to_pandas() for t in (table, messy(80, seed=1)[0])
    )  # categories and missing cells as they are
    data = X, run.points.labels, X_val, run.validation.labels
    valuation, findings = th.forest_findings(*data, trees=20, seed=4)
    assert run.valuation.values.tobytes() == valuation.values.tobytes()
    for name, column in findings.columns().items():
        assert list(run.findings.columns()[name]) == list(column), name
    assert run.valuation.params["judges"] == "validation"
    assert run.record["chosen"]["method"] == "forest"


def test_rows_are_held_out_only_if_that_is_asked_for():
    csv.write_csv(messy()[0], "points.csv")
    run = value_files(Settings("points.csv", trees=10, holdout=0.25))
    assert (len(run.points), len(run.validation)) == (180, 60)
    assert run.valuation.params["judges"] == "validation"
    assert run.record["validation"]["held_out"] == 0.25


def test_cleaning_takes_the_values_of_a_forest():
    table, right, wrong = messy(600)
    csv.write_csv(table, "points.csv")
    write_results(Path("v.csv"), value_files(Settings("points.csv")))
    done = thresher("clean", "points.csv", "--values", "v.csv", "--relabel", "relabel", "--out",
                    "clean.csv")  # fmt: skip
    assert done.returncode == 0, done.stderr
    cleaned = np.array(csv.read_csv("clean.csv").column("y").to_pylist())
    assert (cleaned != right).sum() < wrong.sum()


def choice(**settings):
    settled, why = choose_method(Settings("points", **settings))
    assert why["method"] == settled.method
    return settled.method


def test_a_forest_is_chosen_unless_an_option_is_about_distances():
    assert choice() == choice(text="x") == choice(trees=100) == "forest"
    assert choice(validation="v") == "forest"
    for given in (
        {"radius": 0.5}, {"metric": "euclidean"}, {"standardize": True}, {"fill": "median"},
        {"memory": "64GB", "validation": "v"}, {"engine": "dask", "validation": "v"},
    ):  # fmt: skip
        assert choice(**given) == "tknn", given
    assert choice(memory="64GB", task="regression") == "forest"
    assert choice(method="knn") == "knn"


def genes(rows, columns, wrong, seed):
    """A table of three kinds that many columns tell apart, and which labels are planted wrong."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, rows)
    X = 7 + random.normal(size=(rows, columns)) * random.uniform(0.3, 1.2, columns)
    for code in range(3):
        marked = random.choice(columns, columns // 12, replace=False)
        X[np.ix_(codes == code, marked)] += random.normal(1.2, 0.5, len(marked))
    planted = np.zeros(rows, np.bool_)
    planted[random.choice(rows, wrong, replace=False)] = True
    y = np.array(["basal", "luminal", "normal"])[(codes + planted) % 3]
    return X, y, planted


@pytest.mark.parametrize("kind", ["csv", "npy"])
@pytest.mark.parametrize(("rows", "columns", "wrong"), [(189, 500, 15), (300, 5000, 24)])
def test_wide_tables_of_fractions_are_valued_by_a_forest_which_finds_wrong_labels(
    rows, columns, wrong, kind
):
    X, y, planted = genes(rows, columns, wrong, seed=0)
    if kind == "csv":
        table = pa.table({f"gene{j}": X[:, j].round(4) for j in range(columns)} | {"y": y})
        csv.write_csv(table, "points.csv")
    else:
        np.save("points.npy", X)
        np.save("y.npy", y)
    label = {"label": "y" if kind == "csv" else "y.npy"}
    run = value_files(Settings(f"points.{kind}", **label))
    assert (run.settings.method, len(run.points), len(run.validation)) == ("forest", rows, 0)
    lowest = np.argsort(run.findings.score)[:wrong]
    assert planted[lowest].sum() >= wrong - 1
    assert "outlier" not in set(run.findings.suggestion)


@pytest.mark.parametrize(
    ("option", "method"),
    [("--trees 200", "forest"), ("--folds 2", "forest"), ("--rings 16", "tknn")],
)
@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_an_option_chooses_the_method_even_with_its_usual_number(option, method, kind):
    X, y = clouds(60, 0)
    np.savez("points.npz", X=X, y=y)
    write_table("points.csv", X, y)
    done = thresher("value", f"points.{kind}", *option.split(), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["record"]["chosen"]["method"] == method
    assert choice(method="knn") == "knn"


def test_an_array_is_valued_by_a_forest_without_held_out_rows():
    X, y = clouds(60, 0)
    X_val, y_val = clouds(20, 1)
    np.savez("points.npz", X=X, y=y)
    np.savez("both.npz", X=X, y=y, X_val=X_val, y_val=y_val)
    done = thresher("value", "points.npz", "--out", "v.csv")
    assert done.returncode == 0, done.stderr
    why = "it takes columns as they are, and needs no scaling and no validation set"
    assert done.stderr.splitlines()[:2] == [
        "valued 60 points by each other: forest-shapley, 200 trees", f"method forest: {why}",
    ]  # fmt: skip
    record = json.loads(Path("v.csv.record.json").read_text())
    assert record["chosen"] == {"method": "forest", "why": why}
    assert record["command"] == "thresher value points.npz"
    judged = value_files(Settings("both.npz", trees=4))
    assert (judged.settings.method, len(judged.validation)) == ("forest", 20)
    np.save("points.npy", X)
    np.save("targets.npy", X.sum(axis=1))
    numbers = {"label": "targets.npy", "task": "regression", "trees": 4, "memory": "64GB"}
    done = value_to_file(Settings("points.npy", **numbers), Path("v.parquet"))
    assert (done.rows, done.record["chosen"]["method"]) == (60, "forest")


def test_a_kernel_is_told_beside_the_method():
    X, y = clouds(60, 0)
    np.savez("points.npz", X=X, y=y)
    done = thresher("value", "points.npz", "--metric", "euclidean", "--out", "v.csv")
    weighed = (
        "closer points count more, which finds wrong labels better; --kernel box counts all near "
        "points alike"
    )
    assert f"kernel gaussian: {weighed}" in done.stderr.splitlines()
    assert json.loads(Path("v.csv.record.json").read_text())["chosen"] == {
        "method": "tknn", "kernel": "gaussian", "kernel_why": weighed,
    }  # fmt: skip


@pytest.fixture
def letters(monkeypatch):
    """A model that counts the letters of a text."""

    def embed_texts(texts, *, model, progress=False):
        assert model == "all-MiniLM-L6-v2"
        counts = [[text.count(x) for x in "abcdefgh"] for text in texts]
        return np.array(counts, np.float32)

    monkeypatch.setattr("thresher.tables.encoder.embed_texts", embed_texts)


@pytest.mark.parametrize("more", [{}, {"size": list(range(80))}])
def test_a_column_of_texts_is_valued_by_a_forest(letters, more):
    random = np.random.default_rng(0)
    kinds = np.arange(80) % 2
    texts = ["".join(random.choice(list("abcdefgh"), 30, p=(P, P[::-1])[kind])) for kind in kinds]
    y, planted = th.flip_labels(kinds, fraction=0.1, seed=0)
    pq.write_table(pa.table({"body": texts, **more, "y": y}), "points.parquet")
    run = value_files(Settings("points.parquet", text="body", trees=40))
    assert (run.settings.method, len(run.points)) == ("forest", 80)
    assert run.data[0].shape == (80, 8 + len(more))
    assert planted[np.argsort(run.findings.score)[: planted.sum()]].mean() > 0.7
    assert run.record["encoder"]["text"] == {"column": "body", "model": "all-MiniLM-L6-v2"}
    run.report("r.html")


def check_run(*words, file="points.csv", **settings):
    check_refused(lambda: value_files(Settings(file, **settings)), *words)


def test_options_that_a_forest_would_pass_over_are_refused():
    csv.write_csv(messy()[0], "points.csv")
    check_run("--standardize needs --method tknn, knn,", method="forest", standardize=True)
    check_run("--radius needs --method tknn or", method="forest", radius=0.5)
    check_run("--trees must be a multiple of --folds, got 5 and 2", method="forest", trees=5)
    check_run("--trees needs --method forest, but the method is knn", method="knn", trees=10)
    check_run("--radius needs", "but the method is forest", trees=10, radius=1.0)


def test_texts_that_all_differ_are_no_categories_unless_that_is_said():
    lines = [f"name {i},{i % 7},{'ab'[i % 2]}" for i in range(60)]
    put("points.csv", "\n".join(["name,x,y", *lines]))
    check_run("column 'name' has cells that are not numbers", "--categorical name")
    for way_out in ({"categorical": ("name",)}, {"id": "name"}, {"ignore": ("name",)}):
        assert len(value_files(Settings("points.csv", trees=4, **way_out)).valuation) == 60


def test_the_encoder_of_trees():
    data = {"n": ["1", "", "3.5"], "t": ["true", "False", None], "c": ["b", None, "a"],
            "k": [7, 7, 9]}  # fmt: skip
    columns = Columns(("x",) * 3, pa.table(data), categorical=("k",))
    encoder = TreeEncoder.fit(columns)
    kinds = {each["name"]: each["kind"] for each in encoder.describe()["columns"]}
    assert kinds == {"n": "number", "t": "truth", "c": "categorical", "k": "categorical"}
    wanted = [[1, 1, 1, 0], [np.nan, 0, np.nan, 0], [3.5, np.nan, 0, 1]]
    np.testing.assert_array_equal(encoder.transform(columns), wanted)
    other = Columns(("x",) * 2, pa.table(data | {"c": ["z", None, "a"]}).slice(0, 2))
    assert encoder.unseen(other) == {"c": 1}


def test_an_unseen_category_and_an_id_are_told():
    table, _, _ = messy()
    csv.write_csv(table.append_column("number", [list(range(240))]), "points.csv")
    other = messy(40, seed=2)[0].set_column(2, "color", [["pink"] * 40])
    csv.write_csv(other.append_column("number", [list(range(40))]), "val.csv")
    hints = value_files(Settings("points.csv", validation="val.csv", trees=10)).hints()
    assert "40 validation points have a 'color' that no point has: it counts as missing" in hints
    assert any("column 'number' looks like an id" in hint for hint in hints)


def test_neighbors_vote_by_the_nearest_validation_points():
    random = np.random.default_rng(3)
    X, X_val = random.normal(size=(80, 3)), random.normal(size=(40, 3))
    y, y_val = (np.array(["a", "b", "c"])[random.integers(0, 3, n)] for n in (80, 40))
    for k, voters in ((5, 10), (13, 13)):
        valuation = th.knn_shapley(X, y, X_val, y_val, k=k, metric="euclidean")
        found = th.explain(valuation, X, y, X_val, y_val)
        nearest = NearestNeighbors(n_neighbors=voters).fit(X_val).kneighbors(X)[1]
        votes = np.array([[(y_val[n] == c).sum() for c in "abc"] for n in nearest])
        own = votes[np.arange(80), [ord(c) - 97 for c in y]]
        assert found.near.tolist() == [voters] * 80
        np.testing.assert_allclose(found.agree, own / voters)
        votes[np.arange(80), [ord(c) - 97 for c in y]] = -1
        np.testing.assert_allclose(found.best_share, votes.max(axis=1) / voters)
        assert all(votes[i, ord(c) - 97] == votes[i].max() for i, c in enumerate(found.best_label))


def test_the_method_knn_suggests():
    random = np.random.default_rng(1)
    X = random.normal(size=(300, 3)) + 3
    y, wrong = th.flip_labels((X[:, 0] > X[:, 1]).astype(int), fraction=0.08, seed=0)
    csv.write_csv(pa.table({f"x{j}": X[:, j] for j in range(3)} | {"y": y}), "points.csv")
    done = thresher(
        "value", "points.csv", "--method", "knn", "--holdout", 0.3, "--out", "v.parquet"
    )
    assert done.returncode == 0, done.stderr
    found = pq.read_table("v.parquet")
    assert found.column_names == FINDINGS
    marked = np.array(found.column("suggestion").to_pylist()) == "relabel"
    truth = wrong[found.column("row").to_numpy()]
    assert truth[marked].mean() > 0.5
    assert marked[truth].mean() > 0.4


def test_few_validation_points_are_all_asked():
    X, y = [[0.0], [1.0], [5.0]], ["a", "b", "b"]
    found = th.explain(
        th.knn_shapley(X, y, [[0.1], [4.0]], ["a", "b"], k=1, metric="euclidean"),
        X, y, [[0.1], [4.0]], ["a", "b"],
    )  # fmt: skip
    assert found.near.tolist() == [2, 2, 2]
    assert found.agree.tolist() == [0.5, 0.5, 0.5]
