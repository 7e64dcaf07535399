"""The noisy sum as bytes."""

from __future__ import annotations

import numpy as np

from thresher.array_types import Integers
from thresher.federate.primitives import ProtocolError

WIDTHS = (2, 4, 8)  # bytes of a number


def write_table(table: Integers) -> bytes:
    """Whole numbers in as few bytes each as all of them fit into.

    Examples
    --------
    >>> read_table(write_table(np.array([3, -70000])), 2).tolist()
    [3, -70000]
    """
    largest = max(int(table.max(initial=0)), -int(table.min(initial=0)) - 1)
    width = next(width for width in WIDTHS if largest < 1 << (8 * width - 1))
    return bytes([width]) + table.astype(f"<i{width}").tobytes()


def read_table(body: bytes, entries: int) -> Integers:
    """The whole numbers that `write_table` wrote."""
    width = body[0] if body else 0
    if width not in WIDTHS or len(body) != 1 + width * entries:
        raise ProtocolError(f"the result does not hold {entries} numbers")
    return np.frombuffer(body[1:], f"<i{width}").astype(np.int64)
