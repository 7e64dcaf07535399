"""Tables in files: features and labels from .npz, .csv and .parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import InputError
from thresher.files import reading


def read_labeled(path: Path, label: str) -> tuple[Any, list[Any]]:
    """Features and labels of a file: arrays X and y of an .npz, or a column `label` of a table.

    All other columns of a table are features.
    """
    with reading(path, "table") as found:
        if found.suffix == ".npz":
            with np.load(found) as stored:
                missing = {"X", "y"} - set(stored.files)
                if missing:
                    raise InputError(f"{path} has no array {sorted(missing)[0]!r}")
                return stored["X"], stored["y"].tolist()
        table = _read_table(found)
    if label not in table.column_names:
        names = ", ".join(table.column_names)
        raise InputError(f"{path} has no column {label!r} (--label): it has {names}")
    return table.drop_columns([label]), table.column(label).to_pylist()


def _read_table(path: Path) -> Any:
    if path.suffix == ".csv":
        from pyarrow import csv

        return csv.read_csv(path)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    raise InputError(f"{path} must be a .csv, .parquet or .npz file")
