"""Points of three classes, in arrays and in files."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv, feather


def problem(count, width=6, seed=0, classes=3, points=200):
    """Points of three classes, validation points of two of them; rows on a grid, so with ties."""
    random = np.random.default_rng(seed)
    X = random.integers(-3, 4, (count, width)) / 2 + 0.25
    X_val = random.integers(-3, 4, (points, width)) / 2 + 0.25
    return X, random.integers(0, classes, count), X_val, random.integers(0, 2, points)


def table_of(X, y):
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": list(y)})


def write_parts(folder, kind, X, y, files=3):
    """The rows in several files of a folder, of unequal size."""
    folder.mkdir()
    ends = np.linspace(0, 1, files + 1) ** 1.5 * len(X)
    for number, (lo, hi) in enumerate(zip(ends[:-1].astype(int), ends[1:].astype(int))):
        table, path = table_of(X[lo:hi], y[lo:hi]), folder / f"part-{number}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=300)
        elif kind == "feather":
            feather.write_feather(table, path, chunksize=170)
        elif kind == "arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as file:
                file.write_table(table, max_chunksize=170)
        else:
            options = csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
            csv.write_csv(table, path, options)
            if kind == "csv.gz":
                path.write_bytes(gzip.compress(path.read_bytes()))
    return folder
