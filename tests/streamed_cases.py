"""Tables and files for the tests of runs in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from thresher.passes import memory
from thresher.tables import text


def table_of(count, seed):
    """Two clouds with one label in ten wrong, a category, a gap, ids and owners."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, count)
    X = random.normal(size=(count, 3)) + 1.5 * y[:, None]
    labels = np.where(random.random(count) < 0.1, 1 - y, y)
    gaps = pa.array(random.normal(size=count), mask=random.random(count) < 0.05)
    return pa.table(
        {f"x{j}": X[:, j] for j in range(3)}
        | {"gap": gaps, "kind": random.choice(["u", "v", "w"], count)}
        | {"y": np.where(labels, "dog", "cat"), "name": [f"p{i}" for i in range(count)]}
        | {"from": random.integers(0, 5, count)}
    )


ALL = {"id": "name", "owner": "from", "fill": "zero", "categorical": ("kind",)}


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """points.csv, points/ in three Parquet files, val.csv; parts of 256 rows."""
    monkeypatch.chdir(tmp_path)
    points, validation = table_of(1500, 0), table_of(120, 1)
    csv.write_csv(points, "points.csv")
    csv.write_csv(validation, "val.csv")
    pq.write_table(validation, "val.parquet")
    Path("points").mkdir()
    for number, (lo, hi) in enumerate([(0, 100), (100, 900), (900, 1500)]):
        pq.write_table(points.slice(lo, hi - lo), f"points/{number}.parquet")
    monkeypatch.setattr(memory, "LARGEST", 1)
    monkeypatch.setattr(text, "BATCH", 9000)
