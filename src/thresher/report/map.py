"""The map: points and validation points on the two leading components."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.embed import project_on_components
from thresher.errors import InputError
from thresher.findings.label_findings import Findings
from thresher.inputs.labels import Codes
from thresher.metrics import Rows
from thresher.report.charts import TALL, Chart, Mark, tall_axes
from thresher.report.density import Density, measure_density
from thresher.report.phrases import short
from thresher.report.subject import Subject, sample
from thresher.threads import cut

MOST_POINTS = 4000
MOST_LOWEST = 1000
MOST_VALIDATION = 1000
MOST_MARKS = 300  # on top of a density, where validation points would be too many
MOST_FITTED = 20_000  # points that decide where the components point
WIDEST = 512  # wider rows are turned at random into so many features
CHUNK = 1 << 24  # numbers read at a time
COLORS = 8  # of labels
PURPOSE = 1
AXES, NARROW_AXES = ("first component", "second component"), ("the only feature", "value")
STRONG = 0.3  # of the largest usual size of a value
ROUND = 0.98  # quantile that counts as the largest usual size
LEVELS = {
    "n2": ("hurts much", "down"),
    "n1": ("hurts a little", "down"),
    "z": ("worth nothing", "ring"),
    "p1": ("helps a little", "dot"),
    "p2": ("helps much", "dot"),
}


@dataclass(frozen=True)
class Places:
    """Where points and validation points lie."""

    chosen: Integers  # the points that are drawn
    chosen_val: Integers
    spots: Floats  # their places, one row each
    spots_val: Floats
    variance: float | None  # the share that the places show; None for a single feature
    axes: tuple[str, str]  # what they are
    sampled: Integers  # rows that decided where the components point, and where these lie
    seen: Floats


@dataclass(frozen=True)
class Map:
    """Where points and validation points lie, and what they are."""

    x: tuple[float, ...]  # of the points that are drawn, as those that follow
    y: tuple[float, ...]
    rows: tuple[int, ...]
    values: tuple[float, ...]
    stories: tuple[str, ...]  # what is known of each
    x_val: tuple[float, ...]
    y_val: tuple[float, ...]
    labels_val: tuple[str, ...]
    points: int  # in all
    validation_points: int
    variance: float | None  # share of that of the points; None where the map does not show it
    axes: tuple[str, str]
    directions: bool  # whether rows were scaled to length 1 before
    ranks: bool = False  # whether columns were turned into ranks before
    kinds: tuple[int, ...] = ()  # the color of each point's label
    names: tuple[str, ...] = ()  # of the colors
    density: Density | None = None  # of all rows, where these are too many to be drawn
    name: ClassVar[str] = "map"
    title: ClassVar[str] = "Map"

    @property
    def marks(self) -> list[Mark]:
        """Each kind of mark, and what it means."""
        found = [(style, shape, text) for style, (text, shape) in LEVELS.items()]
        return found + ([("val", "cross", "validation point")] if self.validation_points else [])

    @property
    def colors(self) -> list[Mark]:
        """The color of each label."""
        return [(f"k{kind}", "dot", name) for kind, name in enumerate(self.names)]

    def chart(self) -> Chart:
        """The points and validation points as marks, each with its story."""
        cells = () if self.density is None else self.density.cells
        across = [*self.x, *self.x_val, *(cell.x for cell in cells)]
        up = [*self.y, *self.y_val, *(cell.y for cell in cells)]
        axes = tall_axes(across, up, self.axes, left=24.0, below=20.0, cut=500)
        sizes = sorted(abs(value) for value in self.values)
        scale = sizes[math.floor(ROUND * (len(sizes) - 1))] if sizes else 1.0
        styles = [level(value, scale) for value in self.values]
        shapes = [LEVELS[style][1] for style in styles]
        kinds = self.kinds or (0,) * len(self.x)
        points = zip(styles, shapes, kinds, self.x, self.y, self.stories, strict=True)
        label = (
            f"Map of {self.points:,} rows"
            + (f" and {len(self.x_val):,} validation points" if self.x_val else "")
            + ", marked by value; the worst rows are listed in the table"
        )
        return Chart(label, *axes, tuple(points), TALL)

    def crosses(self) -> Iterator[tuple[float, float, str]]:
        """Validation points, and their labels."""
        return zip(self.x_val, self.y_val, self.labels_val, strict=True)


def draw_map(subject: Subject, findings: Findings | None) -> Map:
    """The map: the worst points, others at random, and validation points."""
    data, cosine = subject.data, subject.metric == "cosine"
    needed = 1 + min(2, data.rows.width)
    if len(data.rows) < needed:
        raise InputError(f"a map needs at least {needed} points")
    found = place_points(data.rows, subject.values, data.rows_val, cosine=cosine, seed=subject.seed)
    kinds, names = _colors(data.codes, subject.classes)
    density = None
    chosen, spots = found.chosen, found.spots
    if len(chosen) < len(subject):
        chosen, spots = chosen[-MOST_MARKS:], spots[-MOST_MARKS:]
        density = measure_density(
            found.seen, subject.values[found.sampled], kinds[found.sampled], names
        )
    crosses = found.chosen_val[: None if density is None else 0]
    rows, labels = chosen.tolist(), data.codes_val[crosses]
    judges = len(data.rows_val) if len(crosses) else 0
    both = spots, found.spots_val[: len(crosses)]
    (x, y), (x_val, y_val) = (map(tuple, each.T.tolist()) for each in both)
    values, said = subject.values[chosen].tolist(), [""] * len(rows)
    if findings is not None:
        said = findings.suggestion.take(chosen).tolist()
    stories = (
        subject.story(row, f"value {short(value)}", word)
        for row, value, word in zip(rows, values, said, strict=True)
    )
    return Map(
        x, y, tuple(map(subject.number, rows)), tuple(values), tuple(stories), x_val, y_val,
        tuple(subject.classes[code] for code in labels), len(subject), judges,
        found.variance, found.axes, cosine, data.splits[0] is not None,
        tuple(kinds[chosen].tolist()), names, density,
    )  # fmt: skip


def _colors(codes: Codes, classes: tuple[str, ...]) -> tuple[Integers, tuple[str, ...]]:
    """The color of each point: the most frequent labels have one each, the rest share the last."""
    often = np.argsort(-np.bincount(codes, minlength=len(classes)), kind="stable")
    apart = often if len(often) <= COLORS else often[: COLORS - 1]
    names = tuple(classes[code] for code in apart.tolist())
    if len(apart) < len(often):
        names = (*names, f"{len(often) - len(apart)} other labels")
    kinds = np.full(len(classes), len(names) - 1)
    kinds[apart] = np.arange(len(apart))
    return kinds[codes], names


def place_points(
    rows: Rows, values: Floats, rows_val: Rows | None = None, *, cosine: bool, seed: int = 0
) -> Places:
    """Where points lie, and validation points if there are any.

    The components are fitted on a sample of rows. A single feature is drawn against the value.
    """
    random = np.random.default_rng([seed, PURPOSE])
    order = np.argsort(values, kind="stable")
    worst, rest = order[:MOST_LOWEST], order[MOST_LOWEST:]
    if len(order) > MOST_POINTS:
        rest = np.sort(random.choice(rest, MOST_POINTS - MOST_LOWEST, replace=False))
    chosen = np.concatenate([rest, worst[::-1]])  # the worst last: they are drawn on top
    chosen_val = sample(0 if rows_val is None else len(rows_val), MOST_VALIDATION, random)
    sampled = sample(len(rows), MOST_FITTED, random)
    fitted = read_rows(rows, sampled, cosine=cosine, seed=seed)
    drawn = read_rows(rows, chosen, cosine=cosine, seed=seed)
    if rows_val is not None:
        theirs = read_rows(rows_val, chosen_val, cosine=cosine, seed=seed)
        drawn = np.concatenate([drawn, theirs])
    spots, count = np.zeros((len(drawn), 2)), min(2, fitted.shape[1])
    seen, spots[:, :count] = project_on_components(fitted, drawn, count)
    lying = np.zeros((len(seen), 2))
    lying[:, :count] = seen
    total = float(fitted.var(axis=0).sum())
    share = float(seen.var(axis=0, dtype=np.float64).sum()) / total if total > 0 else 0.0
    both = spots[: len(chosen)], spots[len(chosen) :]
    if count > 1:
        return Places(chosen, chosen_val, *both, min(share, 1.0), AXES, sampled, lying)
    both[0][:, 1], lying[:, 1] = values[chosen], values[sampled]
    return Places(chosen, chosen_val, *both, None, NARROW_AXES, sampled, lying)


def read_rows(table: Rows, which: Integers, *, cosine: bool = False, seed: int = 0) -> Floats:
    """Some rows in float64; with `cosine` scaled to length 1, as distances see them.

    Rows of more than 512 features are turned at random into 512 that keep distances and variance
    about as they are, so that components take seconds for rows of any width. The same seed turns
    all rows of one width in the same way.

    Examples
    --------
    >>> from thresher.metrics import measure
    >>> table = measure("X", np.array([[3.0, 4.0], [0.0, 2.0]]), cosine=True)
    >>> read_rows(table, np.array([0]), cosine=True).tolist()
    [[0.6, 0.8]]
    """
    turn = None
    if table.width > WIDEST:
        random = np.random.default_rng([seed, table.width])
        turn = random.normal(size=(table.width, WIDEST)) / WIDEST**0.5
    out = np.empty((len(which), min(table.width, WIDEST)))
    for lo, hi in cut(0, len(which), max(1, CHUNK // table.width)):
        rows = table.as_float64(which[lo:hi])
        if cosine:
            rows /= np.sqrt(table.squares[which[lo:hi]])[:, None]
        out[lo:hi] = rows if turn is None else rows @ turn
    return out


def level(value: float, scale: float) -> str:
    """How a value is marked: "n2" to "p2".

    Examples
    --------
    >>> [level(value, 1.0) for value in (-1.0, -0.1, 0.0, 0.1, 1.0)]
    ['n2', 'n1', 'z', 'p1', 'p2']
    """
    if value == 0:
        return "z"
    strong = 2 if abs(value) >= STRONG * scale else 1
    return f"{'n' if value < 0 else 'p'}{strong}"
