"""A second look: what another method finds where the first one found nothing.

After a forest, the ten nearest other rows vote, by columns that are turned into ranks. After a
method of distances, a small forest is grown. Either looks at 10,000 rows at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Flags, Floats
from thresher.findings.advice import CLEAR, FEW
from thresher.findings.leaf_findings import forest_findings
from thresher.inputs.labels import Codes
from thresher.ranking import average_ranks

MOST_ROWS = 10_000
NEAREST, TREES = 10, 60


@dataclass(frozen=True)
class SecondLook:
    """How many rows another method called wrong, and how many it looked at."""

    method: str
    called_wrong: int
    rows: int


def look_again(features: Any, codes: Codes, *, forest: bool, seed: int = 0) -> SecondLook:
    """Look once more: by a forest, or by the nearest rows."""
    rows = np.arange(len(codes))
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MOST_ROWS, replace=False))
    X, y = np.asarray(features)[rows], codes[rows]
    if forest:
        _, found = forest_findings(X, y, trees=TREES, seed=seed)
        times = found.counts()
        return SecondLook("a random forest", times["relabel"] + times["drop"], len(rows))
    wrong = contradicted(rank_space(X), y)
    return SecondLook(f"the {NEAREST} nearest rows", int(wrong.sum()), len(rows))


def contradicted(X: Floats, y: Codes) -> Flags:
    """Rows whose nearest others clearly speak for another label."""
    from sklearn.neighbors import NearestNeighbors

    count = min(NEAREST, len(y) - 1)
    if count < 1:
        return np.zeros(len(y), np.bool_)
    nearest = NearestNeighbors(n_neighbors=count).fit(X).kneighbors(return_distance=False)
    each, classes = np.arange(len(y)), int(y.max()) + 1
    votes = np.zeros((len(y), classes), np.int64)
    np.add.at(votes, (each[:, None], y[nearest]), 1)
    own = votes[each, y].copy()
    votes[each, y] = -1
    other = np.maximum(votes.max(axis=1), 0)
    both = own + other
    return np.asarray((other - own > CLEAR * np.sqrt(both)) & (own <= FEW * both))


def rank_space(features: Any) -> Floats:
    """Columns as ranks from -1 to 1; missing numbers lie in the middle, and so do constant columns.

    Ranks do not depend on units, and wild rows do no harm.

    Examples
    --------
    >>> rank_space(np.array([[1.0, 5.0], [9e9, np.nan], [2.0, 7.0]])).tolist()
    [[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]
    """
    found = np.zeros(np.shape(features))
    for column, out in zip(np.asarray(features, np.float64).T, found.T, strict=True):
        known = ~np.isnan(column)
        if known.sum() > 1:
            out[known] = 2 * (average_ranks(column[known]) - 1) / (known.sum() - 1) - 1
    return found
