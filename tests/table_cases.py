"""Tables for the tests of reading, columns and features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder
from thresher.tables.reader import Table

X, Y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0], np.int8)


# Columns


def table_of(columns, kind="parquet", name="a"):
    return Table(pa.table(columns), (Path(f"{name}.{kind}"),), kind, "," if kind == "csv" else None)


# Encoding


def columns(categorical=(), text=None, source="a.csv", **entries):
    data = pa.table(entries)
    labels = tuple(i % 2 for i in range(len(data)))
    return Columns(labels, data, categorical=categorical, text=text, source=source)


def encoded(found, **arguments):
    return Encoder.fit(found, **arguments).transform(found)


entries = st.one_of(
    st.floats(-1e6, 1e6).map(repr),
    st.integers(-99, 99).map(str),
    st.sampled_from(["", "NA", " 3 "]),
)
