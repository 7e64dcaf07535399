"""Features and labels from .npz, .csv and .parquet, each row read for itself.

For private points: what a row holds must not show in how another one is read, nor in an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import InputError
from thresher.files import reading


def read_labeled(
    path: Path, label: str, owner: str | None = None
) -> tuple[Any, Any, list[Any] | None]:
    """Features, labels and owners: arrays of an .npz, or columns of a table.

    Of a table all other columns are features. What one row of a .csv holds changes no other row:
    labels are text, and a feature that is no number is missing.
    """
    with reading(path, "table") as found:
        if found.suffix == ".npz":
            with np.load(found) as stored:
                missing = {"X", "y"} - set(stored.files)
                if missing:
                    raise InputError(f"{path} has no array {sorted(missing)[0]!r}")
                return stored["X"], stored["y"], stored[owner].tolist() if owner else None
        table = _read_table(found)
    for option, name in (("--label", label), ("--owner", owner)):
        if name is not None and name not in table.column_names:
            names = ", ".join(table.column_names)
            raise InputError(f"{path} has no column {name!r} ({option}): it has {names}")
    labels = table.column(label).to_pylist()
    owners = None if owner is None else table.column(owner).to_pylist()
    features = table.drop_columns([name for name in (label, owner) if name is not None])
    return (_numbers(features) if found.suffix == ".csv" else features), labels, owners


def same_columns(X: Any, X_val: Any, ignore: list[str]) -> tuple[Any, Any]:
    """Points and validation set with the same columns in the same order, without those ignored.

    Names of columns are public, and so is the validation set; cells of points are not looked at.
    """
    if not hasattr(X, "column_names") or not hasattr(X_val, "column_names"):
        return X, X_val
    X, X_val = (
        each.drop_columns([name for name in ignore if name in each.column_names])
        for each in (X, X_val)
    )
    more, less = (
        [name for name in ours.column_names if name not in theirs.column_names]
        for ours, theirs in ((X, X_val), (X_val, X))
    )
    if more or less:
        where, names = ("points", more) if more else ("validation set", less)
        raise InputError(
            f"only the {where} has columns {', '.join(map(repr, names[:5]))}: leave them out by "
            "--ignore"
        )
    for name in X_val.column_names:
        if X_val.column(name).null_count:
            raise InputError(
                f"the validation set has cells in column {name!r} that are missing or no numbers: "
                "leave it out by --ignore, or clean it"
            )
    return X.select(X_val.column_names), X_val


def split_rows(X: Any, y: Any, held_out: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Points and validation rows, drawn at random from one table: X, y, X_val, y_val."""
    from thresher.checks import check_count, check_features
    from thresher.labels import check_labels
    from thresher.metrics import measure

    rows = measure("the table", check_features("the table", X), cosine=False).array
    labels = np.asarray(check_labels("y", y, len(rows)))
    held_out, seed = check_count("--held-out", held_out), check_count("--seed", seed, least=0)
    if held_out >= len(rows):
        raise InputError(
            f"--held-out must be less than the {len(rows)} rows of the table, got {held_out}"
        )
    order = np.random.default_rng([seed, held_out]).permutation(len(rows))
    out, kept = order[:held_out], order[held_out:]
    return rows[kept], labels[kept], rows[out], labels[out]


def _read_table(path: Path) -> Any:
    if path.suffix == ".csv":
        import pyarrow as pa
        from pyarrow import csv

        names = csv.open_csv(path).schema.names
        text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        return csv.read_csv(path, convert_options=text)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    raise InputError(f"{path} must be a .csv, .parquet or .npz file")


def _numbers(table: Any) -> Any:
    """A table of text as a table of numbers, cell by cell."""
    import pyarrow as pa

    columns = {name: _column(table.column(name)) for name in table.column_names}
    return pa.table(columns)


def _column(text: Any) -> Any:
    import pyarrow as pa

    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_number(cell) for cell in text.to_pylist()], pa.float64())


def _number(cell: str | None) -> float | None:
    try:
        return float(cell) if cell is not None else None
    except ValueError:
        return None
