"""Distances that the caller computed: points x validation points, whole or in blocks.

In a sparse matrix a distance that is not stored is infinite, and one that is stored may be 0, as in
the graphs of scikit-learn. A graph of the nearest points says less than one of all points within a
radius. So what is absent is taken for far only if the caller says so (`complete`), or if nothing
that is asked of the matrix depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats, Integers
from thresher.errors import InputError
from thresher.inputs.checks import check_features, check_flag, check_integers, is_sparse
from thresher.threads import cut

BLOCK = 512  # columns that are looked at together
NOTHING = np.zeros(0, np.int64)
PADDED = {"bsr", "dia"}  # formats of SciPy that store zeros without meaning
IF_COMPLETE = "pass complete=True if absent distances are farther than all that matter"


class Stored:
    """A sparse matrix of distances, read like a dense one that is infinite where nothing is stored.

    Only what is asked for is filled in: some rows, one column, or a block of columns later.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> Stored.of("X", csr_array([[0.0, 2.0], [1.0, 3.0]]))[:1].tolist()
    [[inf, 2.0]]
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, columns: Any) -> None:
        self.columns = columns  # CSC, without duplicates
        self.shape = columns.shape

    @classmethod
    def of(cls, name: str, matrix: Any) -> Stored:
        """Check a matrix of SciPy, and name the first entry that cannot be a distance."""
        if matrix.format in PADDED or matrix.ndim != 2:
            raise InputError(
                f"{name} is a sparse {matrix.format} array, which cannot tell a distance of 0 from "
                "one that is not stored: pass a matrix in the format csr, csc or coo"
            )
        entries = matrix.tocoo()
        _check_kind(name, entries.data)
        check_integers(name, entries.data)
        columns = entries.tocsc()  # adds up what is stored twice
        for what, wrong in (
            ("two distances", _repeated(entries) if columns.nnz < entries.nnz else NOTHING),
            ("NaN as the distance", np.flatnonzero(np.isnan(entries.data))),
            ("a negative distance", np.flatnonzero(entries.data < 0)),
        ):
            if len(wrong):
                row, column = entries.row[wrong[0]], entries.col[wrong[0]]
                raise InputError(f"{name} has {what} in row {row}, column {column}")
        return cls(columns.astype(np.float64))

    @cached_property
    def rows(self) -> Any:
        """The same matrix by rows."""
        return self.columns.tocsr()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Some rows or some entries of a column, filled in; or a slice of columns, as it is."""
        if not isinstance(key, tuple):
            return _filled(self.rows[key])
        rows, columns = key
        if isinstance(columns, slice):
            return Stored(self.columns[:, columns])
        return _filled(self.columns[:, [columns]])[rows, 0]

    def copy(self) -> NDArray[Any]:
        """All of it, filled in."""
        return _filled(self.columns)

    def entries(self, *, others: bool) -> tuple[tuple[Integers, Integers], Floats]:
        """Columns and rows of what is stored, and the distances; `others`: without the diagonal."""
        found = self.columns.tocoo()
        which = found.row != found.col if others else slice(None)
        return (found.col[which], found.row[which]), found.data[which]


def _repeated(entries: Any) -> Integers:
    """Those of a sparse matrix that come after another one in the same place."""
    order = np.lexsort((entries.row, entries.col))
    same = [np.diff(each[order]) == 0 for each in (entries.row, entries.col)]
    return order[1:][np.logical_and(*same)]


def _filled(matrix: Any) -> Floats:
    out, entries = np.full(matrix.shape, np.inf), matrix.tocoo()
    out[entries.row, entries.col] = entries.data
    return out


@dataclass(frozen=True)
class Distances:
    """Precomputed distances, points x validation points: one array, or blocks of its columns."""

    source: NDArray[Any] | Stored | Iterable[Any]
    points: int
    validation: int
    first: int = 0  # the number of the first row, where this is a part of a larger one
    holder: str = "y_val"  # of the labels that columns stand for
    complete: bool = False  # whether what a sparse matrix does not store is far
    mutual: bool = False  # the columns are the points themselves

    def __len__(self) -> int:
        return self.points

    @property
    def in_doubt(self) -> Stored | None:
        """The sparse matrix, if somebody may ask for a distance that it does not store."""
        if not isinstance(self.source, Stored) or self.complete:
            return None
        (columns, _), _ = self.source.entries(others=self.mutual)
        return self.source if len(columns) < self.validation * self.players else None

    @property
    def players(self) -> int:
        """The number of points that a column judges."""
        return self.points - self.mutual

    def check_reach(self, radius: float) -> None:
        """Raise if this looks like a graph of nearest points that lacks some within the radius."""
        if (doubtful := self.in_doubt) is None:
            return
        sides, distances = doubtful.entries(others=self.mutual)
        for side, name, size in zip(sides, ("column", "row"), doubtful.shape[::-1], strict=True):
            counts, farthest = np.bincount(side, minlength=size), np.full(size, -np.inf)
            np.maximum.at(farthest, side, distances)
            short = np.flatnonzero(farthest <= radius)
            if 0 < counts.min() == counts.max() and len(short):
                raise InputError(
                    f"X looks like a graph of nearest points: each {name} stores {counts[0]} "
                    f"distances, and in {name} {short[0]} all of them are within radius "
                    f"{radius:g}, so that others may be absent. Store all distances up to the "
                    f"radius, or {IF_COMPLETE}"
                )

    def check_order(self, kept: int, k: int, allowed: Callable[[int], float] | None) -> None:
        """Raise if the `kept` nearest points of some column are not stored.

        `allowed` gives the error that so many neighbors allow, where one may be asked for.
        """
        if (doubtful := self.in_doubt) is None:
            return
        sides, _ = doubtful.entries(others=self.mutual)
        counts, rows = (
            np.bincount(side, minlength=size)
            for side, size in zip(sides, doubtful.shape[::-1], strict=True)
        )
        if counts.min() < counts.max() and 0 < rows.min() == rows.max():
            raise InputError(
                f"X stores {rows[0]} distances in each row, but columns are judges: if X is a "
                f"graph of nearest points, pass X.T, or {IF_COMPLETE}"
            )
        least = int(counts.min())
        if least >= kept:
            return
        way = ""
        if allowed is not None and least >= k:
            way = f"error={math.ceil(1e4 * allowed(least)) / 1e4:g} needs no more of them; or "
        raise InputError(
            f"X stores {least} of {self.players} distances in column {int(counts.argmin())}, but "
            f"the order of the {kept} nearest points is needed: {way}{IF_COMPLETE}, and equally "
            "far"
        )

    def blocks(self, step: int) -> Iterator[tuple[slice, Any]]:
        """Column ranges with their distances, of at most `BLOCK` columns each.

        Each begins at a multiple of `step`, however the source is cut, so that sums over `step`
        columns are always over the same columns. Columns left over in a block join the next one.
        """
        start, waiting, held = 0, 0, []
        for part in self._checked():
            fill = min(step - waiting, part.shape[1]) if waiting else 0
            if fill:
                held.append(part[:, :fill].copy())
                waiting += fill
            if waiting and (waiting == step or start + waiting == self.validation):
                yield slice(start, start + waiting), np.concatenate(held, axis=1)
                start, waiting, held = start + waiting, 0, []
            rest = part[:, fill:]
            width = rest.shape[1]
            ready = width if start + width == self.validation else width // step * step
            for lo, hi in cut(0, ready, BLOCK):
                yield slice(start + lo, start + hi), rest[:, lo:hi]
            start += ready
            if ready < width:
                waiting, held = width - ready, [rest[:, ready:].copy()]

    def _checked(self) -> Iterator[Any]:
        """The blocks of the source, if all together have a column for each validation point."""
        if isinstance(self.source, Stored):
            yield self.source
            return
        blocks = [self.source] if isinstance(self.source, np.ndarray) else self.source
        count = 0
        for number, block in enumerate(blocks):
            if is_sparse(block) and not self.complete:
                raise _needs_complete(f"X block {number}")
            part = _check_distances(f"X block {number}", block, self.points)
            count += part.shape[1]
            if count > self.validation:
                raise InputError(
                    f"X has at least {count} columns of distances "
                    f"but {self.holder} has {self.validation} labels"
                )
            yield part
        if count < self.validation:
            raise InputError(
                f"X has {count} columns of distances but {self.holder} has {self.validation} labels"
            )


def distances_of(
    X: object, points: int, validation: int | None, first: int = 0, *, complete: bool = False,
    whole: bool = False,
) -> Distances:  # fmt: skip
    """Checked distances of points to validation points (`validation` is None: to each other).

    `whole` says that these are all points, so that a sparse matrix shows what kind of graph it is.
    """
    holder, judges, hint, mutual = "y_val", "validation points", "", validation is None
    if validation is None:
        validation, holder, judges = points, "y", "points"
        hint = ": pass y_val if the columns are validation points"
    if points == 0:
        raise InputError("y is empty: at least one point is needed")
    in_blocks = isinstance(X, list | tuple) and len(X) > 0 and getattr(X[0], "ndim", 0) == 2
    about: Any = {"holder": holder, "complete": complete, "mutual": mutual}
    if in_blocks or (isinstance(X, Iterable) and not hasattr(X, "__len__") and not is_sparse(X)):
        return Distances(X, points, validation, **about)  # type: ignore[arg-type]
    if is_sparse(X) and not (complete or whole):
        raise _needs_complete("X")
    array: Any = Stored.of("X", X) if is_sparse(X) else check_features("X", X)
    if array.shape != (points, validation):
        raise InputError(
            f"X must hold the distances of {points} points (rows) to {validation} {judges} "
            f"(columns) with metric='precomputed', got shape {array.shape}{hint}"
        )
    return Distances(array, points, validation, first, **about)


def _needs_complete(name: str) -> InputError:
    return InputError(
        f"{name} is a sparse part of the distances, which does not show whether all that are "
        "within the radius are stored: pass complete=True if they are, or a dense array with "
        "np.inf where points are far"
    )


def check_complete(complete: object, metric: object, *, in_parts: bool = False) -> bool:
    """`complete` as a bool; True only if distances are precomputed and not read in parts."""
    found = check_flag("complete", complete)
    if found and metric != "precomputed":
        raise InputError("complete=True needs metric='precomputed'")
    if found and in_parts:
        raise InputError(
            "complete=True is for sparse distances, which memory, checkpoint, a Scan and Dask do "
            "not take: leave it out"
        )
    return found


def refuse_nan(found: NDArray[Any], row: int, column: int) -> None:
    """Raise if a part of the table, which begins at this row and column, has a NaN."""
    if np.isnan(found).any():
        place = np.argwhere(np.isnan(found))[0] + (row, column)
        raise InputError(f"X has NaN as the distance in row {place[0]}, column {place[1]}")


def _check_distances(name: str, block: object, points: int) -> Any:
    if isinstance(block, np.ma.MaskedArray) and np.ma.is_masked(block):
        raise InputError(f"{name} is a masked array with masked entries: fill them first")
    if is_sparse(block):
        part: Any = Stored.of(name, block)
    else:
        part = np.asarray(block) if isinstance(block, np.ndarray) else check_features(name, block)
        _check_kind(name, part, part.ndim)
        check_integers(name, part)
    if len(part) != points:
        raise InputError(f"{name} has {len(part)} rows of distances but y has {points} labels")
    return part


def _check_kind(name: str, numbers: NDArray[Any], ndim: int = 2) -> None:
    if ndim != 2 or numbers.dtype.kind not in "fiub" or numbers.dtype.itemsize > 8:
        raise InputError(
            f"{name} must be a two-dimensional array of distances, got {numbers.dtype}"
        )
