"""Rows held out of a table, to value the others by: a share of each class, and no copies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from thresher.array_types import Flags
from thresher.errors import InputError, option
from thresher.inputs.checks import check_count, check_number
from thresher.inputs.coded import Coded
from thresher.inputs.labels import class_list
from thresher.tables.columns import Columns
from thresher.tables.copies import row_marks


def hold_out(
    labels: Sequence[Hashable], share: float, seed: int, *, twins: Flags | None = None,
    name: str = "holdout",
) -> Flags:  # fmt: skip
    """Which rows to hold out: a share of each class, drawn at random, one at least, never all.

    Parameters
    ----------
    labels
        The label of each row.
    share, seed
        The share of each class, rounded; the same seed draws the same rows. A class of a single row
        is not held out.
    twins
        Rows that must not be held out, because other rows are copies of them.
    name
        The argument that is the share, for messages.

    Examples
    --------
    >>> hold_out(["a"] * 8 + ["b"] * 4, 0.25, seed=0).nonzero()[0].tolist()
    [2, 4, 9]
    """
    share = check_number(option(name), share, least=0, most=1)
    rng = np.random.default_rng(check_count(option("seed"), seed, least=0))
    known = Coded.of(labels)
    classes = class_list(None, known)
    codes, out = classes.encode("labels", known), np.zeros(len(known), np.bool_)
    for code in range(len(classes)):
        rows = np.flatnonzero(codes == code)
        drawn = rng.permutation(rows)
        free = drawn if twins is None else drawn[~twins[drawn]]
        wanted = max(1, round(share * len(rows))) if share > 0 else 0
        out[free[: min(wanted, len(rows) - 1)]] = True
    if not out.any():
        way_out = f"raise it, or use {option('validation')}; a class of one row is not held out"
        if twins is not None and twins.all():
            way_out = f"every row has copies; drop these, or use {option('validation')}"
        raise InputError(f"{option(name)} {share:g} leaves no validation rows: {way_out}")
    return out


def find_twins(columns: Columns) -> Flags:
    """Rows whose features other rows have as well: held out, they would be valued by themselves.

    Numbers are compared as numbers, so 1 and 1.0 are the same; missing ones are all alike.

    Examples
    --------
    >>> import pyarrow as pa
    >>> find_twins(Columns(("a", "b", "b"), pa.table({"x": ["1", "2", "1.0"]}))).tolist()
    [True, False, True]
    """
    _, place, count = np.unique(row_marks(columns), return_inverse=True, return_counts=True)
    return np.asarray(count[place] > 1)
