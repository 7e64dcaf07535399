"""Made-up clouds of points in files, for the tests of the command."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import csv

WRONG = 17  # the row whose label is planted wrong


def clouds(count, seed):
    """Two clouds, far apart, and their names."""
    random = np.random.default_rng(seed)
    y = np.arange(count) % 2
    X = random.normal(size=(count, 3)) + 4 * y[:, None] * [1, -1, 0] + [-2, 2, 0]
    return X, np.where(y, "dog", "cat")


def table_of(X, y, **more):
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": list(y)} | more)


def write_table(path, X, y, **more):
    csv.write_csv(table_of(X, y, **more), path)


VALUE = ("value", "points.csv", "--validation", "val.csv")


def write_clouds():
    """Write points.csv with one wrong label and val.csv; all that is in them."""
    X, y = clouds(120, 0)
    y[WRONG] = "cat"
    X_val, y_val = clouds(60, 1)
    for name, rows, labels in (("points", X, y), ("val", X_val, y_val)):
        write_table(f"{name}.csv", rows, labels)
    return X, y, X_val, y_val
