"""The distribution of values, class by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.report.subject import Subject

BINS = 40
MOST_CLASSES = 10  # further ones are put together
QUANTILES = (0, 0.25, 0.5, 0.75, 1)
TAIL = 0.001  # share of values at each end that the outermost bars take in

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """The values of one class, or of several put together.

    Parameters
    ----------
    label
        The class.
    points, negative, zero
        How many points there are, how many hurt, and how many are worth nothing.
    total, mean
        Of their values.
    lowest, quarter, median, three_quarters, highest
        Quantiles.
    counts
        How many values are in each bar.
    """

    label: str
    points: int
    negative: int
    zero: int
    total: float
    mean: float
    lowest: float
    quarter: float
    median: float
    three_quarters: float
    highest: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """Values in bars of equal width; zero is an edge, and the outer bars take in what is beyond."""

    edges: tuple[float, ...]
    whole: Part
    parts: tuple[Part, ...]


def spread_values(subject: Subject) -> Spread:
    """How the values of each class are spread; of many classes the largest ones apart."""
    edges = bar_edges(subject.values)
    whole = _part("all points", subject.values, edges)
    if subject.codes is None:
        return Spread(tuple(edges.tolist()), whole, ())
    sizes = np.bincount(subject.codes, minlength=len(subject.classes))
    present = np.flatnonzero(sizes)
    apart = present
    if len(present) > MOST_CLASSES:
        largest = np.argsort(-sizes[present], kind="stable")[: MOST_CLASSES - 1]
        apart = np.sort(present[largest])
    parts = [
        _part(subject.classes[code], subject.values[subject.codes == code], edges)
        for code in apart.tolist()
    ]
    if len(apart) < len(present):
        rest = subject.values[~np.isin(subject.codes, apart)]
        parts.append(_part(f"{len(present) - len(apart)} other classes", rest, edges))
    return Spread(tuple(edges.tolist()), whole, tuple(parts))


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


def bar_counts(values: Floats, edges: Floats) -> NDArray[np.int64]:
    """How many values are in each bar; what is beyond the edges is in the outermost ones."""
    places = np.searchsorted(edges, values, side="right") - 1
    return np.bincount(np.clip(places, 0, len(edges) - 2), minlength=len(edges) - 1)


def _part(label: str, values: Floats, edges: Floats) -> Part:
    lowest, quarter, median, three_quarters, highest = np.quantile(values, QUANTILES).tolist()
    return Part(
        label=label,
        points=len(values),
        negative=int((values < 0).sum()),
        zero=int((values == 0).sum()),
        total=float(values.sum()),
        mean=float(values.mean()),
        lowest=lowest,
        quarter=quarter,
        median=median,
        three_quarters=three_quarters,
        highest=highest,
        counts=tuple(bar_counts(values, edges).tolist()),
    )
