"""Which method "auto" is: a forest for tables of named columns, distances for embeddings.

A forest asks one column at a time, so units, categories, wild rows and missing cells do no harm.
The columns of an embedding mean nothing one by one, and their distances do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from thresher.errors import InputError, in_options, option
from thresher.neighbors.kernel import BOX
from thresher.runs.settings import AUTO, Settings
from thresher.tables.cell_values import numbers
from thresher.tables.columns import Columns
from thresher.tables.reader import Table

ARRAYS = ("npy", "npz")
MANY = 64  # columns; embeddings have at least so many
LOOKED = 1000  # rows that are looked at
ALIKE = 100.0  # the most by which the deviations of an embedding's columns differ
IN_PARTS = ("memory", "engine")
SAYING = {  # options that say which method is meant
    **dict.fromkeys(IN_PARTS, ("tknn", "reads rows in parts")),
    **dict.fromkeys(("trees", "folds"), ("forest", "was given")),
    **dict.fromkeys(
        ("radius", "metric", "kernel", "rings", "standardize", "fill", "text"),
        ("tknn", "is about distances"),
    ),
}

WEIGHED = (
    f"closer points count more, which finds wrong labels better; {option('kernel', BOX)} counts "
    "all near points alike"
)

Choice = tuple[Settings, Mapping[str, Any]]


def choose_method(settings: Settings, table: Table | None, points: Columns) -> Choice:
    """The settings with a method chosen, and what the record says about it: which one, and why.

    Without a table the points are read in parts, and have classes.
    """
    about = {"method": settings.method}
    if settings.method == AUTO:
        method, why = _chosen(settings, table, points)
        about = {"method": method, "why": in_options(why)}  # beside the command, in the record
        settings = dataclasses.replace(settings, method=method)
    if settings.kernel == AUTO and settings.weighing != BOX:
        about |= {"kernel": settings.weighing, "kernel_why": in_options(WEIGHED)}
    return settings, about


def original_settings(settings: Settings, chosen: Mapping[str, Any]) -> Settings:
    """The settings before a method was chosen, which make the same run again."""
    return dataclasses.replace(settings, method=AUTO) if "why" in chosen else settings


def _chosen(settings: Settings, table: Table | None, points: Columns) -> tuple[str, str]:
    given = settings.given()
    for name, (method, why) in SAYING.items():
        if name in given and not (settings.numbers and name in IN_PARTS):
            return method, f"{option(name)} {why}"
    if settings.semivalue.startswith("calibrated"):
        return "tknn", f"{option('semivalue')} {settings.semivalue} is about distances"
    if table is not None and table.kind in ARRAYS:
        return "tknn", "an array is treated as embeddings, whose single columns mean nothing"
    if is_embedding(points):
        columns = f"{len(points.names)} columns of fractions that are all alike"
        return "tknn", f"{columns} are treated as embeddings"
    return "forest", "it suits a table of named columns, and needs no scaling and no validation set"


def is_embedding(points: Columns) -> bool:
    """Whether columns are many, all of them fractions without gaps, and of similar deviations.

    Examples
    --------
    >>> import pyarrow as pa
    >>> random = np.random.default_rng(0)
    >>> columns = {f"x{i}": random.normal(size=20) for i in range(64)}
    >>> is_embedding(Columns(("cat",) * 20, pa.table(columns)))
    True
    >>> is_embedding(Columns(("cat",) * 20, pa.table(columns | {"x7": range(20)})))
    False
    """
    if len(points.names) < MANY or points.categorical:
        return False
    some = points.take(np.arange(min(len(points), LOOKED)))
    try:
        X = np.stack([numbers(some, name) for name in some.names], axis=1)
    except InputError:
        return False
    spread = X.std(axis=0)
    varied = spread > 0
    whole = (np.rint(X) == X).all(axis=0)
    if np.isnan(X).any() or not varied.any() or (whole & varied).any():
        return False
    return bool(spread[varied].max() <= ALIKE * spread[varied].min())
