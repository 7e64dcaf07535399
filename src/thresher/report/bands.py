"""Numbers in bands of about equally many rows, which a page shows as it shows classes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.inputs.labels import Classes, Codes

BANDS = 5


def cut_in_bands(
    targets: NDArray[np.float64], targets_val: NDArray[np.float64] | None
) -> tuple[Codes, Codes | None, Classes]:
    """The band of each target, and what the bands are called.

    Examples
    --------
    >>> codes, _, bands = cut_in_bands(np.arange(10.0), None)
    >>> codes.tolist(), bands.labels[:2]
    ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], ('under 1.8', '1.8 to 3.6'))
    """
    edges = np.unique(np.quantile(targets, np.arange(1, BANDS) / BANDS))
    edges = edges[(edges > targets.min()) & (edges <= targets.max())]
    written = [f"{edge:.4g}" for edge in edges]
    names = [f"{low} to {high}" for low, high in pairwise(written)]
    whole = [f"under {written[0]}", *names, f"{written[-1]} and more"] if written else ["all"]
    known = list(dict.fromkeys(whole))
    places = np.array([known.index(name) for name in whole], np.int32)

    def codes(numbers: Any) -> Codes:
        return places[np.searchsorted(edges, numbers, side="right")]

    return (
        codes(targets),
        None if targets_val is None else codes(targets_val),
        Classes(tuple(known)),
    )
