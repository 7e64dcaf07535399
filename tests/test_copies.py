"""Rows that are copies of others, exactly or nearly, and where their labels differ."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from tabular import thresher

from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings
from thresher.tables.columns import Columns
from thresher.tables.copies import Copies


def columns(X, labels=None, **more):
    table = {f"x{j}": X[:, j] for j in range(X.shape[1])} | more
    return Columns(tuple(labels or ["a"] * len(X)), pa.table(table))


def test_exact_copies_have_equal_features_however_they_are_written():
    table = pa.table({"n": ["1", "1.0", "2", None, ""], "c": ["u", "u", "u", "v", "v"]})
    found = Copies.of(Columns(("a", "b", "a", "a", "a"), table))
    assert found.counts.tolist() == [1, 1, 0, 1, 1]
    assert found.copy_of.tolist() == [-1, 0, -1, -1, 3]
    assert found.conflicts() == [[0, 1]]
    assert (found.exact_rows, found.near_rows) == (4, 0)


@pytest.mark.parametrize("width", [3, 20])
def test_near_copies_are_found_among_rows_that_are_not(width):
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, width)) * 10.0 ** np.arange(width).clip(max=6)
    X[:30] = X[100:130] * (1 + 1e-7 * random.normal(size=(30, width)))
    X[30:35] = X[200:205]
    labels = ["a"] * 1000
    labels[0], labels[31] = "b", "b"
    found = Copies.of(columns(X, labels))
    assert found.exact_rows == 10
    planted = found.copy_of[100:130] == np.arange(30)
    assert planted.mean() > 0.9
    assert found.near_rows <= 2 * 30 + 10
    assert found.conflicts() == [[31, 201]]
    assert [0, 100] in found.near_conflicts()
    assert [31, 201] not in found.near_conflicts()


def test_what_chance_brings_is_not_called_a_near_copy():
    random = np.random.default_rng(1)
    found = Copies.of(columns(random.normal(size=(3000, 1))))  # hundreds of rows in each cell
    assert (found.exact_rows, found.near_rows) == (0, 0)
    whole = Copies.of(columns(random.integers(0, 4, (3000, 8)).astype(float)))
    assert whole.near_rows == 0


def test_every_group_is_named_by_its_first_row():
    """Against all pairs, on small tables with many copies."""
    random = np.random.default_rng(2)
    for _ in range(20):
        X = random.integers(0, 3, (30, 3)).astype(float)
        X[X == 2] = np.nan
        labels = random.choice(["a", "b"], 30).tolist()
        found = Copies.of(columns(X, labels))
        same = ((X[:, None] == X[None]) | np.isnan(X[:, None]) & np.isnan(X[None])).all(axis=2)
        assert found.exact.tolist() == same.argmax(axis=1).tolist()
        assert found.counts.tolist() == (same.sum(axis=1) - 1).tolist()
        groups = {tuple(np.flatnonzero(row)) for row in same}
        apart = sorted(list(g) for g in groups if len({labels[i] for i in g}) > 1)
        assert sorted(found.conflicts()) == apart


def test_constant_and_empty_columns_do_no_harm():
    X = np.array([[1.0, np.nan], [1.0, np.nan], [1.0, np.nan]])
    assert Copies.of(columns(X)).counts.tolist() == [2, 2, 2]


def test_the_command_tells_of_copies_and_the_table_names_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 4))
    X[7], X[8] = X[3], X[5]
    y = np.where(X[:, 0] > 0, "pos", "neg")
    y[7] = "neg" if y[3] == "pos" else "pos"
    table = pa.table({f"x{j}": X[:, j] for j in range(4)} | {"y": y})
    csv.write_csv(table, "points.csv")
    done = thresher("value", "points.csv", "--trees", 4, "-o", "v.csv")
    lines = [line for line in done.stderr.splitlines() if line.startswith("copies: ")]
    assert lines == [
        f"copies: 1 group of exact copies has different labels: row 3 is {y[3]}, row 7 is {y[7]}",
        "copies: 4 rows have exact copies",
    ]
    found = csv.read_csv("v.csv")
    assert found.column("copies").to_pylist()[:9] == [0, 0, 0, 1, 0, 1, 0, 1, 1]
    assert found.column("copy_of").to_pylist()[:9] == [None] * 7 + [3, 5]
    csv.write_csv(table.slice(10), "others.csv")
    assert "copies" not in value_files(Settings("others.csv", trees=4)).columns()
