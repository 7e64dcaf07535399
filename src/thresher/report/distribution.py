"""How values are spread, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.report.charts import Chart, bars
from thresher.report.phrases import percent, short
from thresher.report.subject import Subject, shortlist

BINS = 40
MOST_CLASSES = 10  # further ones are put together
QUANTILES = {"lowest": 0, "quarter": 0.25, "median": 0.5, "three quarters": 0.75, "highest": 1}
TAIL = 0.001  # share of values at each end that the outermost bars take in


@dataclass(frozen=True)
class Part:
    """The values of one class, or of several put together."""

    label: str
    points: int
    negative: int
    zero: int
    numbers: dict[str, float]  # sum, mean and quantiles
    counts: tuple[int, ...]  # values in each bar

    @classmethod
    def of(cls, label: str, values: Floats, edges: Floats) -> Part:
        """The numbers of some values."""
        quantiles = np.quantile(values, list(QUANTILES.values())).tolist()
        numbers = {"sum": float(values.sum()), "mean": float(values.mean())}
        numbers |= dict(zip(QUANTILES, quantiles, strict=True))
        negative, zero = int((values < 0).sum()), int((values == 0).sum())
        counts = tuple(bar_counts(values, edges).tolist())
        return cls(label, len(values), negative, zero, numbers, counts)


@dataclass(frozen=True)
class Distribution:
    """Values in bars of equal width; zero is an edge, and the outer bars include what is beyond."""

    edges: tuple[float, ...]
    whole: Part
    parts: tuple[Part, ...]
    name: ClassVar[str] = "values"
    title: ClassVar[str] = "Spread of values"

    def charts(self) -> list[tuple[Part, Chart]]:
        """The values of each class in bars; of all rows together if there are no classes."""
        found = []
        for part in self.parts or (self.whole,):
            label = (
                f"Distribution of values, {part.label}: {part.points:,} rows, {part.negative:,} of "
                f"them negative, median {short(part.numbers['median'])}"
            )
            found.append((part, bars(self.edges, part.counts, label, "value")))
        return found

    def tiles(self) -> list[tuple[str, str, str]]:
        """The numbers at the top of the page."""
        points, negative = self.whole.points, self.whole.negative
        share = percent(negative / points)
        return [("rows", short(points), ""), ("negative values", short(negative), share)]


def measure_distribution(subject: Subject) -> Distribution:
    """How the values of each class are spread; of many classes, only the largest by themselves."""
    values, codes, edges = subject.values, subject.codes, bar_edges(subject.values)
    whole, parts = Part.of("all points", values, edges), []
    if codes is not None:
        sizes = np.bincount(codes, minlength=len(subject.classes))
        present = np.flatnonzero(sizes)
        most = MOST_CLASSES - (len(present) > MOST_CLASSES)
        apart = shortlist(present, sizes[present], most)
        parts = [Part.of(subject.classes[c], values[codes == c], edges) for c in apart.tolist()]
        if len(apart) < len(present):
            rest = values[~np.isin(codes, apart)]
            parts.append(Part.of(f"{len(present) - len(apart)} other classes", rest, edges))
    return Distribution(tuple(edges.tolist()), whole, tuple(parts))


def bar_edges(values: Floats, bins: int = BINS) -> Floats:
    """The edges of bars of equal width, one of them zero.

    Examples
    --------
    >>> bar_edges(np.array([-1.0, 0.0, 3.0]), bins=4).round(2).tolist()
    [-1.0, 0.0, 1.0, 2.0, 3.0]
    """
    low = min(float(np.quantile(values, TAIL, method="lower")), 0.0)
    high = max(float(np.quantile(values, 1 - TAIL, method="higher")), 0.0)
    step = (high - low) / bins or 1.0
    if not np.isfinite(step) or step < 1e-300:
        return np.array([-1.0, 0.0, 1.0])
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return np.arange(min(first, -1.0), max(last, 1.0) + 1) * step


def bar_counts(values: Floats, edges: Floats) -> Integers:
    """How many values are in each bar; values beyond the edges are in the outermost bars."""
    return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
