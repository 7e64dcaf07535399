"""Distances that the caller computed: points x validation points, whole or in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.checks import check_features, check_integers
from thresher.threads import cut

BLOCK = 512  # columns that are looked at together


@dataclass(frozen=True)
class Distances:
    """Precomputed distances, points x validation points: one array, or blocks of its columns."""

    source: NDArray[Any] | Iterable[Any]
    points: int
    validation: int
    first: int = 0  # the number of the first row, where this is a part of a larger one
    holder: str = "y_val"  # of the labels that columns stand for

    def __len__(self) -> int:
        return self.points

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray[Any]]]:
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

    def table(self) -> NDArray[np.float64]:
        """All distances; NaN is refused."""
        found = np.concatenate(list(self._checked()), axis=1).astype(np.float64)
        if np.isnan(found).any():
            row, column = np.argwhere(np.isnan(found))[0]
            raise InputError(f"X has NaN as the distance in row {row}, column {column}")
        return found

    def _checked(self) -> Iterator[NDArray[Any]]:
        """The blocks of the source, if all together have a column for each validation point."""
        blocks = [self.source] if isinstance(self.source, np.ndarray) else self.source
        count = 0
        for number, block in enumerate(blocks):
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


def distances_of(X: object, points: int, validation: int | None, first: int = 0) -> Distances:
    """Checked distances of points to validation points (`validation` is None: to each other)."""
    holder, judges, hint = "y_val", "validation points", ""
    if validation is None:
        validation, holder, judges = points, "y", "points"
        hint = ": pass y_val if the columns are validation points"
    if points == 0:
        raise InputError("y is empty: at least one point is needed")
    in_blocks = isinstance(X, list | tuple) and len(X) > 0 and getattr(X[0], "ndim", 0) == 2
    if in_blocks or (isinstance(X, Iterable) and not hasattr(X, "__len__")):
        return Distances(X, points, validation, holder=holder)  # type: ignore[arg-type]
    array = check_features("X", X)
    if array.shape != (points, validation):
        raise InputError(
            f"X must hold the distances of {points} points (rows) to {validation} {judges} "
            f"(columns) with metric='precomputed', got shape {array.shape}{hint}"
        )
    return Distances(array, points, validation, first, holder)


def _check_distances(name: str, block: object, points: int) -> NDArray[Any]:
    if isinstance(block, np.ma.MaskedArray) and np.ma.is_masked(block):
        raise InputError(f"{name} is a masked array with masked entries: fill them first")
    part = np.asarray(block) if isinstance(block, np.ndarray) else check_features(name, block)
    if part.ndim != 2 or part.dtype.kind not in "fiub" or part.dtype.itemsize > 8:
        raise InputError(f"{name} must be a two-dimensional array of distances, got {part.dtype}")
    if len(part) != points:
        raise InputError(f"{name} has {len(part)} rows of distances but y has {points} labels")
    check_integers(name, part)
    return part
