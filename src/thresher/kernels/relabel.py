"""Bits to values under every label: what a row's near validation points pay if its label changes.

If a label changes, only the validation points with the old or the new label pay a different price.
So for 64 validation points at a time, there is one sum for all labels that none of them carries,
and one for each label that some carry. A byte of 8 validation points has at most 8 labels, and thus
few tables of sums: one for each pair of a label that the point may have and one that it may get.
Sums have the order of `bits.add_by_tables`, so a value under a label is the same to the last bit,
however it is computed.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Bytes, Floats, Integers, LongWords, Words

U32 = np.uint32
U64 = np.uint64
TILE = 256  # rows that meet 64 validation points at a time, at most
NUMBERS = 1 << 15  # and sums of theirs, so that these and the tables stay in the cache


@njit(cache=True, nogil=True)
def label_slots(
    codes: Integers, labels: Integers, masks: LongWords, sizes: Integers, slots: Bytes
) -> None:
    """Find the labels of each 64 validation points, who carries them, and the labels of each byte.

    Group g has labels[g], padded by -1, and masks[g] has a bit for each point that carries one.
    Byte j has sizes[j] - 1 labels. slots[label, j] numbers them from 1 and is 0 for all other
    labels. Codes below 0 are padding.
    """
    labels[:] = -1
    masks[:] = U64(0)
    sizes[:] = 1
    for v in range(codes.shape[0]):
        code = codes[v]
        if code >= 0:
            g, s = v // 64, 0
            while labels[g, s] >= 0 and labels[g, s] != code:
                s += 1
            labels[g, s] = code
            masks[g, s] = U64(masks[g, s] | (U64(1) << U64(v % 64)))
            if slots[code, v // 8] == 0:
                slots[code, v // 8] = sizes[v // 8]
                sizes[v // 8] += 1


@njit(cache=True, nogil=True)
def label_weights(
    codes: Integers, prices: Floats, sizes: Integers, slots: Bytes, weights: Floats
) -> None:
    """Write each table's eight prices, for a point with one label that is priced under another.

    The tables of byte j follow those of the bytes before it. They come first for a point that
    carries none of the byte's labels, and then for these labels by their slots. For each of them,
    the first table is under a label that nobody in the byte carries, and the others follow by slots
    again. prices[own, under, v] is what v pays: `own` is 0 if the point carries v's label, and
    otherwise 1, and `under` is the same for the label that it is priced under.
    """
    at = 0
    for j in range(sizes.shape[0]):
        for carried in range(sizes[j]):
            for priced in range(sizes[j]):
                for k in range(8):
                    v = 8 * j + k
                    weights[at, k] = 0.0
                    if codes[v] >= 0:
                        slot = np.int64(slots[codes[v], j])
                        own = 0 if slot == carried else 1
                        under = 0 if slot == priced else 1
                        weights[at, k] = prices[own, under, v]
                at += 1


@njit(cache=True, nogil=True)
def add_label_values(
    words: LongWords, first: int, lo: int, hi: int, own: NDArray[np.int32], rows: Words,
    labels: Integers, sizes: Integers, slots: Bytes, tables: Floats, out: Floats,
) -> None:  # fmt: skip
    """Add to out[rows[i], c] what the set bits of row i pay it under label c, for lo <= i < hi.

    The bits begin at word `first`. own[i] is the label that row i carries, and rows are sorted by
    it.
    """
    starts = np.cumsum(sizes * sizes) - sizes * sizes  # of the tables of each byte
    at = np.empty(8, np.int64)
    x, which = np.empty(TILE, U64), np.empty(TILE, U32)
    absent = np.empty(out.shape[1])
    tile = max(16, min(TILE, NUMBERS // out.shape[1]))
    for first_row in range(lo, hi, tile):
        last = min(hi, first_row + tile)
        for g in range(labels.shape[0]):
            count = _mark_absent(labels[g], absent)
            begin = first_row
            while begin < last:
                end = _end_of_run(own, begin, last, absent)
                for k in range(8):
                    j = 8 * g + k
                    at[k] = starts[j] + np.int64(slots[own[begin], j]) * sizes[j]
                n = _rows_with_bits(words, first + g, begin, end, rows, x, which)
                _add_group(
                    x[:n], at, tables, labels[g, :count], slots[:, 8 * g : 8 * g + 8], absent,
                    which, out,
                )  # fmt: skip
                begin = end


@njit(cache=True, nogil=True)
def _mark_absent(labels: Integers, absent: Floats) -> int:
    """Set 1.0 for all labels except those of a group; return how many the group has."""
    absent[:] = 1.0
    count = 0
    while count < labels.shape[0] and labels[count] >= 0:
        absent[labels[count]] = 0.0
        count += 1
    return count


@njit(cache=True, nogil=True)
def _end_of_run(own: NDArray[np.int32], begin: int, last: int, absent: Floats) -> int:
    """The end of the rows from `begin` on that carry one label, or only absent labels."""
    end = begin + 1
    while end < last and (own[end] == own[begin] or absent[own[begin]] + absent[own[end]] == 2.0):
        end += 1
    return end


@njit(cache=True, nogil=True)
def _add_group(
    x: LongWords, at: Integers, tables: Floats, labels: Integers, slots: Bytes, absent: Floats,
    rows: Words, out: Floats,
) -> None:  # fmt: skip
    """Add what 64 validation points pay the rows under each of their labels, and under others."""
    to = np.empty(8, np.int64)
    for label in labels:
        for k in range(8):
            to[k] = at[k] + np.int64(slots[label, k])
        _add_sums(x, to, tables, rows, out[:, label])
    if labels.shape[0] < out.shape[1]:
        others = np.zeros(x.shape[0])
        _add_sums(x, at, tables, np.arange(x.shape[0]).astype(U32), others)
        for i in range(x.shape[0]):
            row = out[rows[i]]
            for c in range(row.shape[0]):
                row[c] += others[i] * absent[c]  # 0.0 changes no sum: none of them is -0.0


@njit(cache=True, nogil=True)
def _rows_with_bits(
    words: LongWords, w: int, lo: int, hi: int, rows: Words, x: LongWords, which: Words
) -> int:
    """Collect the rows lo <= i < hi whose word w is not zero: their words, rows and number."""
    n = 0
    for i in range(lo, hi):
        x[n] = words[i, w]
        which[n] = rows[i]
        n += 1 if words[i, w] else 0
    return n


@njit(cache=True, nogil=True)
def _add_sums(words: LongWords, at: Integers, tables: Floats, rows: Words, out: Floats) -> None:
    """Add to out[rows[i]] what the set bits of word i are worth, byte k by table at[k]."""
    t0, t1, t2, t3 = tables[at[0]], tables[at[1]], tables[at[2]], tables[at[3]]
    t4, t5, t6, t7 = tables[at[4]], tables[at[5]], tables[at[6]], tables[at[7]]
    for i in range(words.shape[0]):
        x = words[i]
        out[rows[i]] += (
            (t0[x & U64(255)] + t1[(x >> U64(8)) & U64(255)])
            + (t2[(x >> U64(16)) & U64(255)] + t3[(x >> U64(24)) & U64(255)])
        ) + (
            (t4[(x >> U64(32)) & U64(255)] + t5[(x >> U64(40)) & U64(255)])
            + (t6[(x >> U64(48)) & U64(255)] + t7[x >> U64(56)])
        )


@njit(cache=True, nogil=True)
def count_labels(
    words: LongWords, first: int, lo: int, hi: int, rows: Words, labels: Integers,
    masks: LongWords, out: NDArray[np.int32],
) -> None:  # fmt: skip
    """Add to out[rows[i], c] the number of set bits of row i that stand for label c."""
    for i in range(lo, hi):
        row = out[rows[i]]
        for g in range(labels.shape[0]):
            x = words[i, first + g]
            s = 0
            while x and s < 64 and labels[g, s] >= 0:
                row[labels[g, s]] += _ones(U64(x & masks[g, s]))
                s += 1


@njit(cache=True, nogil=True)
def best_other_labels(
    values: Floats, near: NDArray[np.int32], codes: NDArray[np.int32], numbers: Integers,
    worths: Floats,
) -> None:  # fmt: skip
    """Summarize, for each row, who is near it and its worth under its own label and the best other.

    values[i, c] is what row i is worth under label c, near[i, c] how many near ones carry c, and
    codes[i] its label. numbers[:, i] gets five numbers: how many are near, how many of them carry
    its label, the best other label (the first of equals; its own if it is the only one), how many
    carry that label, and the most that carry any other label. worths[:, i] gets the values under
    its label and under the best other label.
    """
    for i in range(codes.shape[0]):
        own, best = np.int64(codes[i]), np.int64(-1)
        total, most = np.int64(0), np.int64(0)
        for c in range(values.shape[1]):
            total += near[i, c]
            if c != own:
                most = max(most, np.int64(near[i, c]))
                if best < 0 or values[i, c] > values[i, best]:
                    best = np.int64(c)
        best = own if best < 0 else best
        numbers[0, i], numbers[1, i], numbers[2, i] = total, near[i, own], best
        numbers[3, i], numbers[4, i] = near[i, best], most
        worths[0, i], worths[1, i] = values[i, own], values[i, best]


@njit(cache=True, nogil=True)
def _ones(x: np.uint64) -> int:
    """The number of set bits: in pairs of bits, fours and bytes, and then the sum of the bytes."""
    x = U64(x - ((x >> U64(1)) & U64(0x5555555555555555)))
    x = U64((x & U64(0x3333333333333333)) + ((x >> U64(2)) & U64(0x3333333333333333)))
    x = U64((x + (x >> U64(4))) & U64(0x0F0F0F0F0F0F0F0F))
    return np.int64(U64(x * U64(0x0101010101010101)) >> U64(56))  # type: ignore[return-value]
