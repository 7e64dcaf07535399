"""What points in the leaves of one tree would be paid under every label."""

from __future__ import annotations

from numba import njit

from thresher.array_types import Array


@njit(cache=True, nogil=True)
def add_under_labels(
    leaf_of: Array, codes: Array, rows: Array, lo: int, hi: int, own: Array, base: Array,
    change: Array, out: Array,
) -> None:  # fmt: skip
    """Add to row rows[i] of `out` what the leaf of point i pays under each class.

    Under its own class that is own[class, leaf], under another one base[class, leaf] and the
    other's change[leaf, other]. Points lo, ..., hi - 1 are looked at; those whose leaf is negative
    are not in this tree.
    """
    for i in range(lo, hi):
        leaf, code = leaf_of[i], codes[i]
        if leaf < 0:
            continue
        row = rows[i]
        for other in range(change.shape[1]):
            if other == code:
                out[row, other] += own[code, leaf]
            else:
                out[row, other] += base[code, leaf] + change[leaf, other]
