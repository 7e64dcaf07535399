"""The tables of a page: columns and their kinds, the matrix of labels, the figures on top."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thresher.report.evidence import Evidence
from thresher.report.suggested import Move
from thresher.report.words import percent, short
from thresher.report.worst import Cell, Worst

GRAVEST = ("relabel", "drop", "inspect", "outlier")
MOST_MOVES = 30
MOST_LABELS = 12  # further ones make the matrix too wide
TEXTS = ("id", "label", "suggestion", "best label", "owner")
HINTS = {
    "near": "validation points within the radius",
    "agree": "share of the near validation points with the row's label",
    "best label": "the other label under which the row would be worth most",
    "best value": "what the row would be worth under that label",
    "percentile": "share of rows with a lower value",
    "standard error": "how far the value may be off because coalitions were sampled",
}


WRITTEN: dict[str, Callable[[Any], str]] = {
    "row": str,
    "near": str,
    "agree": lambda share: "" if share is None else percent(share),
    "percentile": lambda part: f"{part:.2f}",
}


@dataclass(frozen=True)
class Column:
    """A column of the worst rows: its name, "text" or "number", and how a number is written."""

    name: str
    kind: str
    hint: str
    text: Callable[[Any], str]


@dataclass(frozen=True)
class MatrixCell:
    """So many points, None where there can be none, and how dark that is."""

    points: int | None
    heat: int


@dataclass(frozen=True)
class MatrixRow:
    """The suggestions for the points of one label."""

    label: str
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class MatrixHead:
    """A suggestion, and the label to change to where there is one."""

    text: str
    label: str = ""


@dataclass(frozen=True)
class Matrix:
    """Labels against suggestions; `moves` are listed where the matrix would be too wide."""

    heads: tuple[MatrixHead, ...]
    rows: tuple[MatrixRow, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class Tile:
    """A figure on top of the page."""

    name: str
    number: str
    more: str = ""


def worst_columns(worst: Worst) -> list[Column]:
    """The columns of the worst rows."""
    first = len(worst.columns) - worst.features
    found = []
    for place, name in enumerate(worst.columns):
        cells = [row[place] for row in worst.rows]
        data = place >= first
        text = any(isinstance(cell, str) for cell in cells) if data else name in TEXTS
        write = WRITTEN[name] if name in WRITTEN and not data else writer(cells)
        hint = "" if data else HINTS.get(name, "")
        found.append(Column(name, "text" if text else "number", hint, write))
    return found


def writer(cells: Sequence[Cell]) -> Callable[[Any], str]:
    """How the numbers of a column are written: as many decimals as the largest needs.

    Examples
    --------
    >>> write = writer([-1.83123, 0.5, None])
    >>> write(-1.83123), write(0.5), write(None), writer([1, 2000])(2000)
    ('-1.831', '0.500', '', '2,000')
    """
    numbers = [abs(cell) for cell in cells if isinstance(cell, float) and math.isfinite(cell)]
    largest = max(numbers, default=0.0)
    if not 1e-6 < largest < 1e6:
        return short
    decimals = min(max(3 - math.floor(math.log10(largest)), 0), 9)

    def write(cell: Any) -> str:
        fits = isinstance(cell, float) and math.isfinite(cell)
        return f"{cell:.{decimals}f}" if fits else short(cell)

    return write


def matrix(evidence: Evidence) -> Matrix:
    """Own label against what is suggested; the label to change to apart where there are few."""
    suggested = evidence.suggested
    assert suggested is not None  # noqa: S101 - by those who call
    wide = len(evidence.about.classes) > MOST_LABELS
    others = () if wide else evidence.about.classes
    moved = {(move.own, move.other): move.points for move in suggested.moves}
    rows = []
    for tally in suggested.classes:
        points = sum(tally.counts.values())
        counts = [None if x == tally.label else moved.get((tally.label, x), 0) for x in others]
        counts = counts or [tally.counts["relabel"]]
        counts += [tally.counts[name] for name in GRAVEST[1:]]
        cells = [MatrixCell(count, _heat((count or 0) / points)) for count in counts]
        rows.append(MatrixRow(tally.label, (MatrixCell(tally.counts["keep"], 0), *cells)))
    heads = [MatrixHead("keep")]
    heads += [MatrixHead(f"relabel to {label}", label) for label in others]
    heads += [MatrixHead(name) for name in (GRAVEST if wide else GRAVEST[1:])]
    moves = suggested.moves[:MOST_MOVES] if wide else ()
    return Matrix(tuple(heads), tuple(rows), moves)


def _heat(share: float) -> int:
    """How dark a cell is: 0 to 3."""
    return sum(share >= least for least in (0.005, 0.05, 0.2))


def tiles(evidence: Evidence) -> list[Tile]:
    """The figures on top of the page."""
    if evidence.private is not None:
        private = evidence.private
        found = [Tile("epsilon", f"{private.epsilon:g}"), Tile("delta", f"{private.delta:g}")]
        found += [Tile("adjacency", private.adjacency), Tile("protects each", private.unit)]
        return [*found, Tile("mechanism", private.mechanism, private.noise)]
    spread = evidence.spread
    assert spread is not None  # noqa: S101 - exact values have one
    points = spread.whole.points
    share = percent(spread.whole.negative / points)
    found = [
        Tile("rows", short(points)),
        Tile("negative values", short(spread.whole.negative), share),
    ]
    if evidence.suggested is not None:
        total = evidence.suggested.total
        found += [Tile(name, short(total[name]), percent(total[name] / points)) for name in GRAVEST]
    if evidence.reach is not None:
        found.append(Tile("covered", percent(evidence.reach.share), "of the validation points"))
    return found
