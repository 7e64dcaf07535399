"""The figures of a report: each part of the evidence as a chart."""

from __future__ import annotations

import math

from thresher.report.charts import (
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Line,
    across,
    bars,
    frame,
    lines,
    mark,
    svg,
    swatch,
    upward,
)
from thresher.report.plane import Plane
from thresher.report.private import PriceSpread
from thresher.report.reach import RadiusCurve
from thresher.report.removal import ORDERS, Removal
from thresher.report.spread import Part, Spread
from thresher.report.words import escape, short

MAP_HEIGHT = 330.0
DEEP = 0.15  # how far below the accuracy with all rows a chart goes
WIDE = 3.0  # how many times the radius a chart goes
STRONG = 0.3  # of the largest usual size of a value
ROUND = 0.98  # quantile that counts as the largest usual size
REMOVED = {
    "lowest": ("lowest values first", "down"),
    "highest": ("highest values first", "square"),
    "random": ("at random", "dot"),
}
LEVELS = {
    "n2": ("hurts much", "down"),
    "n1": ("hurts a little", "down"),
    "z": ("worth nothing", "ring"),
    "p1": ("helps a little", "dot"),
    "p2": ("helps much", "dot"),
}


def value_chart(spread: Spread, part: Part) -> str:
    """The values of one class in bars."""
    label = (
        f"Distribution of values, {part.label}: {part.points:,} rows, {part.negative:,} of them "
        f"negative, median {short(part.median)}"
    )
    return bars(spread.edges, part.counts, label, title="value")


def price_chart(prices: PriceSpread, *, gains: bool) -> str:
    """The released prices in bars."""
    counts = prices.gains if gains else prices.losses
    whom = "a row with their label" if gains else "a row with another label"
    label = f"Distribution of what validation points pay {whom}"
    return bars(prices.edges, counts, label, title="price", unit="validation points")


def removal_chart(removal: Removal, model: str) -> str:
    """Accuracy of one model as points are removed."""
    drawn = []
    for order in ORDERS:
        curve = removal.curve(model, order)
        if curve is not None:
            name, shape = REMOVED[order]
            drawn.append(Line(name, removal.fractions, curve.accuracy, order, shape))
    ends = "; ".join(f"{line.name}: {line.y[0]:.3f} to {line.y[-1]:.3f}" for line in drawn)
    label = f"Accuracy of the {model} as up to half of the rows are removed. {ends}"
    every = [number for line in drawn for number in line.y]
    low = max(min(every), drawn[0].y[0] - DEEP)  # else small gains are not to be seen
    x = across(0.0, removal.fractions[-1], "rows removed", percent=True)
    return lines(drawn, label, x, upward(low, max(every), "accuracy"))


def removal_legend() -> list[tuple[str, str]]:
    """A sample and a name for each line of a removal chart."""
    return [(swatch(order, shape), name) for order, (name, shape) in REMOVED.items()]


def radius_chart(curve: RadiusCurve) -> str:
    """Accuracy and coverage of the validation set over the radius."""
    drawn = [
        Line("accuracy", curve.radii, curve.accuracy, "highest"),
        Line("coverage", curve.radii, curve.coverage, "random"),
    ]
    label = (
        f"Accuracy and coverage of the validation set over the radius. At {curve.used:.4g}, the "
        f"radius used, accuracy {curve.accuracy_used:.3f} and coverage {curve.coverage_used:.3f}"
    )
    uprights = [(curve.used, "used", f"used {curve.used:.3g}")]
    far = WIDE * max(curve.suggested, curve.used if math.isfinite(curve.used) else 0.0)
    x = across(0.0, min(curve.radii[-1], far) or 1.0, "radius")
    return lines(drawn, label, x, upward(0.0, 1.0, "share", percent=True), uprights=uprights)


def radius_legend() -> list[tuple[str, str]]:
    """A sample and a name for each line of the radius chart."""
    return [
        (swatch("highest", "none"), "accuracy"),
        (swatch("random", "none"), "coverage"),
        (swatch("used", "none"), "the radius used"),
    ]


def map_chart(plane: Plane) -> str:
    """The points and validation points as marks, each with its story."""
    x = _axis([*plane.x, *plane.x_val], LEFT - 22, WIDTH - RIGHT, plane.axes[0])
    y = _axis([*plane.y, *plane.y_val], MAP_HEIGHT - 20, TOP, plane.axes[1])
    scale = _usual(plane.values)
    crosses = [
        f'<path class="spot val" d="{mark("cross", x(a), y(b), 1.9)}">'
        f"<title>validation point, label {escape(label)}</title></path>"
        for a, b, label in zip(plane.x_val, plane.y_val, plane.labels_val, strict=True)
    ]
    marks = [_mark(plane, i, x, y, scale) for i in range(len(plane.rows))]
    label = (
        f"Map of {len(plane.rows):,} of {plane.points:,} rows and {len(plane.x_val):,} validation "
        "points, marked by value; the worst rows are listed in the table"
    )
    titles = frame(x, y, height=MAP_HEIGHT, bare=True)
    return svg(titles + "".join(crosses + marks), label, height=MAP_HEIGHT, style="map")


def map_legend() -> list[tuple[str, str]]:
    """A sample and a name for each kind of mark on the map."""
    found = [(swatch(f"{name}", shape, line=False), text) for name, (text, shape) in LEVELS.items()]
    return [*found, (swatch("val", "cross", line=False), "validation point")]


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


def _mark(plane: Plane, i: int, x: Axis, y: Axis, scale: float) -> str:
    style = level(plane.values[i], scale)
    at = x(plane.x[i]), y(plane.y[i])
    parts = [f"row {plane.rows[i]}", plane.ids[i] and f"id {plane.ids[i]}"]
    parts += [f"label {plane.labels[i]}", f"value {short(plane.values[i])}", plane.suggestions[i]]
    story = escape(" · ".join(part for part in parts if part))
    drawn = mark(LEVELS[style][1], *at, 1.9)
    return (
        f'<path class="spot {style}" data-x="{at[0]:.1f}" data-y="{at[1]:.1f}" d="{drawn}">'
        f"<title>{story}</title></path>"
    )


def _usual(values: tuple[float, ...]) -> float:
    sizes = sorted(abs(value) for value in values)
    return sizes[math.floor(ROUND * (len(sizes) - 1))] if sizes else 1.0


def _axis(numbers: list[float], start: float, stop: float, title: str) -> Axis:
    """An axis on which a few far out do not press all others together."""
    ordered = sorted(numbers)
    tail = len(ordered) // 500
    low, high = ordered[tail], ordered[-1 - tail]
    room = 0.03 * (high - low) or 0.5
    return Axis(low - room, high + room, start, stop, title)
