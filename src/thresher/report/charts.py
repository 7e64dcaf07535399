"""Charts as inline SVG: bars, lines, dots. Colors, lines and fonts are left to the page's CSS.

A chart is drawn in units of about one pixel of a phone, 360 wide, and scaled by the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thresher.report.phrases import escape

WIDTH, HEIGHT, TALL, BAR_HEIGHT = 360.0, 230.0, 330.0, 130.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 10.0, 36.0
FAR = 20.0

Numbers = Sequence[float]
Mark = tuple[str, str, str]  # a class of the page's CSS, a shape, and what it stands for


@dataclass(frozen=True)
class Axis:
    """A range of numbers on a stretch of the chart."""

    low: float
    high: float
    start: float
    stop: float
    title: str = ""
    percent: bool = False

    def __call__(self, number: float) -> float:
        """Where a number lies; what is far beyond the axis, not far beyond its end."""
        share = (number - self.low) / (self.high - self.low or 1.0)
        return self.start + min(max(share, -FAR), 1 + FAR) * (self.stop - self.start)

    def holds(self, number: float) -> bool:
        """Whether a number is on the axis."""
        return self.low <= number <= self.high

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers on the axis.

        Examples
        --------
        >>> Axis(-0.13, 1.02, 0, 1).ticks()
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        """
        span = self.high - self.low
        if not span > 0 or not math.isfinite(span):
            return [self.low] if self.holds(self.low) else []
        raw = span / about
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
    x: Numbers
    y: Numbers
    style: str
    mark: str = ""


def frame(x: Axis, y: Axis, *, height: float = HEIGHT, ticks_y: int = 5, bare: bool = False) -> str:
    """Axes with ticks, a light grid and titles; a bare frame has titles only."""
    bottom, top = y.start, y.stop
    parts = []
    for tick in () if bare else x.ticks():
        at = x(tick)
        parts.append(f'<path class="grid" d="M{at:.1f} {top:.1f}V{bottom:.1f}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 13:.1f}" class="mid">{x.text(tick)}</text>')
    for tick in () if bare else y.ticks(ticks_y):
        at = y(tick)
        parts.append(f'<path class="grid" d="M{x.start:.1f} {at:.1f}H{x.stop:.1f}"/>')
        parts.append(
            f'<text x="{x.start - 5:.1f}" y="{at + 3.5:.1f}" class="end">{y.text(tick)}</text>'
        )
    parts.append(
        f'<text x="{(x.start + x.stop) / 2:.1f}" y="{height - 5:.1f}" class="mid title">'
        f"{escape(x.title)}</text>"
    )
    middle = (top + bottom) / 2
    parts.append(
        f'<text x="11" y="{middle:.1f}" class="mid title" '
        f'transform="rotate(-90 11 {middle:.1f})">{escape(y.title)}</text>'
    )
    return "".join(parts)


def svg(content: str, label: str, *, height: float = HEIGHT, style: str = "") -> str:
    """A drawing that says in words what it shows."""
    return (
        f'<svg class="chart {style}" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(label)}">{content}</svg>'
    )


def bars(edges: Numbers, counts: Sequence[int], label: str, title: str, unit: str = "rows") -> str:
    """A histogram; bars left of zero have another pattern than those to the right."""
    x = across(edges[0], edges[-1], title)
    y = Axis(0.0, max(*counts, 1), BAR_HEIGHT - BOTTOM, TOP, unit)
    drawn = []
    for left, right, count in zip(edges, edges[1:], counts, strict=False):
        if count:
            style = "bad" if right <= 0 else "good"
            top = min(y(count), y.start - 0.8)
            drawn.append(
                f'<rect class="{style}" x="{x(left) + 0.4:.1f}" y="{top:.1f}" '
                f'width="{max(x(right) - x(left) - 0.8, 0.6):.1f}" height="{y.start - top:.1f}">'
                f"<title>{left:.4g} to {right:.4g}: {count:,}</title></rect>"
            )
    zero = f'<path class="zero" d="M{x(0):.1f} {TOP - 4:.1f}V{y.start:.1f}"/>'
    framed = frame(x, y, height=BAR_HEIGHT, ticks_y=2)
    return svg(framed + zero + "".join(drawn), label, height=BAR_HEIGHT)


def lines(drawn: Sequence[Line], label: str, x: Axis, y: Axis, used: float | None = None) -> str:
    """Lines with marks; what leaves the axes is cut off. A vertical line marks what is `used`."""
    left, top, width, height = x.start, y.stop, x.stop - x.start, y.start - y.stop
    inside = "".join(_line(line, x, y) for line in drawn)
    cut = (
        f'<svg class="inside" x="{left - 4:.1f}" y="{top - 4:.1f}" width="{width + 8:.1f}" '
        f'height="{height + 4:.1f}" viewBox="{left - 4:.1f} {top - 4:.1f} {width + 8:.1f} '
        f'{height + 4:.1f}">{inside}</svg>'
    )
    beside = "" if used is None or not x.holds(used) else _upright(x, y, used)
    return svg(frame(x, y) + beside + cut, label)


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

    One in `cut` numbers is left out at each end, if that is given: a few that are far out do not
    press all others together.
    """
    found, stretches = [], ((left, WIDTH - RIGHT), (TALL - below, TOP))
    for numbers, stretch, title in zip((across, up), stretches, titles, strict=True):
        ordered = sorted(numbers) or [0.0, 1.0]
        tail = len(ordered) // cut if cut else 0
        low, high = ordered[tail], ordered[-1 - tail]
        room = 0.03 * (high - low) or 0.5
        found.append(Axis(low - room, high + room, *stretch, title))
    return found[0], found[1]


def spot(
    style: str, shape: str, x: float, y: float, size: float, story: str, more: str = ""
) -> str:
    """A mark that says what it is; `more` are attributes of it."""
    return (
        f'<path class="{style}"{more} d="{mark(shape, x, y, size)}">'
        f"<title>{escape(story)}</title></path>"
    )


def _upright(x: Axis, y: Axis, used: float) -> str:
    place = x(used)
    side, shift = ("end", -4) if place > (x.start + x.stop) / 2 else ("start", 4)
    return (
        f'<path class="upright used" d="M{place:.1f} {y.stop:.1f}V{y.start:.1f}"/>'
        f'<text class="{side}" x="{place + shift:.1f}" y="{y.start - 6:.1f}">used {used:.3g}</text>'
    )


def _line(line: Line, x: Axis, y: Axis) -> str:
    spots = [(x(a), y(b)) for a, b in zip(line.x, line.y, strict=True)]
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in spots)
    marks = [
        spot(f"mark {line.style}", line.mark, a, b, 3.2, f"{line.name}, {x.text(u)}: {v:.4g}")
        for (a, b), u, v in zip(spots, line.x, line.y, strict=True)
        if line.mark and y.holds(v)
    ]
    return f'<path class="line {line.style}" d="{path}"/>{"".join(marks)}'


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


def swatch(style: str, shape: str, *, line: bool = True) -> str:
    """A small sample of a line or a mark, for legends."""
    width = 32 if line else 14
    stroke = f'<path class="line {style}" d="M2 7H30"/>' if line else ""
    return (
        f'<svg class="swatch{"" if line else " dot"}" viewBox="0 0 {width} 14" aria-hidden="true">'
        f'{stroke}<path class="{"mark" if line else "spot"} {style}" '
        f'd="{mark(shape, width / 2, 7, 3.6)}"/></svg>'
    )
