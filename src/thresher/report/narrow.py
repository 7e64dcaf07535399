"""Rows as numbers to compute with: some of them, as directions if wanted, and never too wide.

Rows of more than 512 features are turned at random into 512 that keep distances and variance about
as they are, so that components take seconds for rows of any width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.metrics import Rows
from thresher.report.subject import Indices
from thresher.threads import cut

WIDEST = 512
CHUNK = 1 << 24  # numbers read at a time

Floats = NDArray[np.float64]


def read_rows(table: Rows, which: Indices, *, cosine: bool = False, seed: int = 0) -> Floats:
    """Some rows in float64; with `cosine` scaled to length 1, as distances see them.

    The same seed turns all rows of one width in the same way.

    Examples
    --------
    >>> from thresher.metrics import measure
    >>> table = measure("X", np.array([[3.0, 4.0], [0.0, 2.0]]), cosine=True)
    >>> read_rows(table, np.array([0]), cosine=True).tolist()
    [[0.6, 0.8]]
    """
    turn = _turn(table.width, seed) if table.width > WIDEST else None
    out = np.empty((len(which), min(table.width, WIDEST)))
    for lo, hi in cut(0, len(which), max(1, CHUNK // table.width)):
        rows = table.as_float64(which[lo:hi])
        if cosine:
            rows /= np.sqrt(table.squares[which[lo:hi]])[:, None]
        out[lo:hi] = rows if turn is None else rows @ turn
    return out


def _turn(width: int, seed: int) -> Floats:
    return np.random.default_rng([seed, width]).normal(size=(width, WIDEST)) / WIDEST**0.5
