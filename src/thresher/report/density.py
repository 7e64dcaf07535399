"""Density: where many rows lie, as cells of a grid, so that none of them hides another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.report.phrases import count_of, short

ACROSS, UP = 54, 48  # cells of the grid
DARKEST = 5  # levels of darkness


@dataclass(frozen=True)
class Cell:
    """Some rows that lie close together."""

    x: float
    y: float
    rows: int
    value: float  # the mean of their values
    kind: int  # the most frequent label among them, as a color


@dataclass(frozen=True)
class Density:
    """Cells with rows in them, and how large they are."""

    cells: tuple[Cell, ...]
    width: float
    height: float
    sampled: int  # rows that were counted
    names: tuple[str, ...]  # of the colors

    @cached_property
    def most(self) -> int:
        """The rows of the fullest cell."""
        return max(cell.rows for cell in self.cells)

    def dark(self, cell: Cell) -> int:
        """How dark a cell is: the darker, the more rows."""
        return max(1, math.ceil(DARKEST * math.log1p(cell.rows) / math.log1p(self.most)))

    def story(self, cell: Cell) -> str:
        """What is in a cell."""
        mostly = f" · mostly {self.names[cell.kind]}" if self.names else ""
        return f"{count_of(cell.rows, 'row')}{mostly} · mean value {short(cell.value)}"


def measure_density(
    spots: Floats, values: Floats, kinds: Integers, names: tuple[str, ...]
) -> Density:
    """Cells of a grid over the rows at `spots`; a few that lie far out are left out.

    Examples
    --------
    >>> spots = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    >>> found = measure_density(spots, np.array([1.0, 3.0, -1.0]), np.array([0, 0, 1]), ("a", "b"))
    >>> [(cell.rows, cell.value, cell.kind) for cell in found.cells]
    [(2, 2.0, 0), (1, -1.0, 1)]
    """
    low, high = np.quantile(spots, (0.002, 0.998), axis=0)
    steps = np.where(high > low, high - low, 1.0) / (ACROSS, UP)
    places = np.floor((spots - low) / steps).astype(np.int64)
    margin = 2  # cells beyond the quantiles
    inside = ((places >= -margin) & (places < np.array([ACROSS, UP]) + margin)).all(axis=1)
    keys, group = np.unique(places[inside], axis=0, return_inverse=True)
    group = group.ravel()
    counts = np.bincount(group)
    means = np.bincount(group, values[inside]) / np.maximum(counts, 1)
    table = np.zeros((len(keys), max(len(names), 1)), np.int64)
    np.add.at(table, (group, kinds[inside]), 1)
    centers = low + (keys + 0.5) * steps
    columns = (each.tolist() for each in (centers, counts, means, table.argmax(axis=1)))
    cells = zip(*columns, strict=True)
    found = tuple(Cell(x, y, rows, value, kind) for (x, y), rows, value, kind in cells)
    return Density(found, float(steps[0]), float(steps[1]), len(spots), names)
