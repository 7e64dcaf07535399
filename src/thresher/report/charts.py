"""Charts as the templates draw them: axes, and the places of what is drawn on them.

A chart is drawn in units of about one pixel of a phone, 360 wide, and scaled by the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT, TALL, BAR_HEIGHT = 360.0, 230.0, 330.0, 130.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 10.0, 36.0
FAR = 20.0

Mark = tuple[str, str, str]  # a class of the page's CSS, a shape, and what it stands for


@dataclass(frozen=True)
class Axis:
    """An axis: a range of numbers, and the part of the chart that it fills."""

    low: float
    high: float
    start: float
    stop: float
    title: str = ""
    percent: bool = False
    about: int = 5  # ticks

    def __call__(self, number: float) -> float:
        """The place of a number; numbers far beyond the axis are moved closer to its end."""
        share = (number - self.low) / (self.high - self.low or 1.0)
        return self.start + min(max(share, -FAR), 1 + FAR) * (self.stop - self.start)

    def holds(self, number: float) -> bool:
        """Whether a number is on the axis."""
        return self.low <= number <= self.high

    def ticks(self) -> list[float]:
        """Round numbers on the axis.

        Examples
        --------
        >>> Axis(-0.13, 1.02, 0, 1).ticks()
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        """
        span = self.high - self.low
        if not span > 0 or not math.isfinite(span):
            return [self.low] if self.holds(self.low) else []
        raw = span / self.about
        unit = 10.0 ** math.floor(math.log10(raw))
        step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= raw * 0.8)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        found = [round((first + i) * step, 12) + 0.0 for i in range(count)]
        return [tick for tick in found if self.holds(tick)]

    def text(self, number: float) -> str:
        """A tick in words."""
        if self.percent:
            return f"{100 * number:.4g}%"
        if 1e4 <= abs(number) < 1e9:  # there is room for five characters
            size, unit = (1e6, "M") if abs(number) >= 1e6 else (1e3, "k")
            return f"{number / size:.4g}{unit}"
        return f"{number:.4g}"


@dataclass(frozen=True)
class Line:
    """A line of a chart: `style` is a class of the page's CSS, `mark` the shape of its marks."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: str
    mark: str = ""

    @property
    def spots(self) -> list[tuple[float, float]]:
        """The points that it joins."""
        return list(zip(self.x, self.y, strict=True))


@dataclass(frozen=True)
class Chart:
    """What the templates draw: lines, bars (their ends and a count) or spots over two axes."""

    label: str  # what it shows, in words
    x: Axis
    y: Axis
    drawn: Sequence[Any] = ()
    height: float = HEIGHT
    used: float | None = None  # what a vertical line marks


def bars(
    edges: Sequence[float], counts: Sequence[int], label: str, title: str, unit: str = "rows"
) -> Chart:
    """A histogram; bars left of zero have another pattern than those to the right."""
    x = across(edges[0], edges[-1], title)
    y = Axis(0.0, max(*counts, 1), BAR_HEIGHT - BOTTOM, TOP, unit, about=2)
    drawn = tuple(zip(edges, edges[1:], counts, strict=False))
    return Chart(label, x, y, drawn, BAR_HEIGHT)


def across(low: float, high: float, title: str, *, percent: bool = False) -> Axis:
    """The horizontal axis of a chart."""
    return Axis(low, high, LEFT, WIDTH - RIGHT, title, percent)


def upward(low: float, high: float, title: str, *, percent: bool = False) -> Axis:
    """The vertical axis of a chart, with a little room at both ends."""
    room = 0.05 * (high - low) or 0.05
    return Axis(low - room, high + room, HEIGHT - BOTTOM, TOP, title, percent)


def tall_axes(
    across: Iterable[float], up: Iterable[float], titles: tuple[str, str], *, left: float = LEFT,
    below: float = 40.0, cut: int = 0,
) -> tuple[Axis, Axis]:  # fmt: skip
    """Both axes of a tall chart, with room at both ends for these numbers.

    If `cut` is given, one in `cut` numbers is left out at each end, so that a few that are far out
    do not press all others together.
    """
    found, stretches = [], ((left, WIDTH - RIGHT), (TALL - below, TOP))
    for numbers, stretch, title in zip((across, up), stretches, titles, strict=True):
        ordered = sorted(numbers) or [0.0, 1.0]
        tail = len(ordered) // cut if cut else 0
        low, high = ordered[tail], ordered[-1 - tail]
        room = 0.03 * (high - low) or 0.5
        found.append(Axis(low - room, high + room, *stretch, title))
    return found[0], found[1]


def mark(shape: str, x: float, y: float, size: float) -> str:
    """The path of a mark: dot, square, down, cross or ring.

    Examples
    --------
    >>> mark("square", 10, 10, 2)
    'M8.0 8.0h4.0v4.0h-4.0z'
    """
    if shape == "square":
        return f"M{x - size:.1f} {y - size:.1f}h{2 * size:.1f}v{2 * size:.1f}h{-2 * size:.1f}z"
    if shape == "down":
        return f"M{x - size:.1f} {y - size:.1f}h{2 * size:.1f}L{x:.1f} {y + size:.1f}z"
    if shape == "none":
        return "M0 0"
    if shape == "cross":
        return f"M{x - size:.1f} {y:.1f}h{2 * size:.1f}M{x:.1f} {y - size:.1f}v{2 * size:.1f}"
    turn = f"a{size:.1f} {size:.1f} 0 1 1"
    return f"M{x - size:.1f} {y:.1f}{turn} {2 * size:.1f} 0{turn} {-2 * size:.1f} 0"
