"""Figures for Python users, each drawn on a given or a new matplotlib axis.

Color-blind readers can tell the colors apart, and shapes or lines show the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import InputError, require
from thresher.files import check_writable, write_whole
from thresher.inputs.checks import check_features
from thresher.inputs.labels import check_labels, class_list
from thresher.metrics import Rows, measure
from thresher.radius import RadiusSuggestion
from thresher.report.distribution import bar_edges
from thresher.report.evidence import Evidence
from thresher.report.map import place_points
from thresher.report.removal import ORDERS
from thresher.report.subject import shortlist
from thresher.valuation import Valuation

GOOD, BAD, THIRD = "#0072b2", "#d55e00", "#6b7480"
STYLES = {"table": (GOOD, "s", "-"), "cells": (BAD, "v", "--"), "paper": (THIRD, "o", ":")}
TITLES = {"relative_error": "expected relative error", "rank_agreement": "rank agreement"}
LINES = {"lowest": (BAD, "v", "-"), "highest": (GOOD, "s", "-"), "random": (THIRD, "o", "--")}
MOST_CLASSES = 6
MOST_OWNERS = 40


def plot_values(valuation: Valuation, y: Any = None, *, ax: Any = None) -> Any:
    """Plot the distribution of values; with labels `y`, one line for each class.

    If there are more than six classes, only the largest have lines. Returns the axis.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> from thresher.plots import plot_values
    >>> valuation = th.Valuation(np.array([0.5, -0.25, 0.0]), "example", {}, 0.75, 0.5)
    >>> plot_values(valuation, ["a", "b", "a"]).get_xlabel()
    'value'
    """
    ax = new_axis() if ax is None else ax
    edges = bar_edges(valuation.values)
    inside = np.clip(valuation.values, edges[0], edges[-1])
    if y is None:
        ax.hist(inside, edges, color=GOOD)
    else:
        for label, rows in _by_label(y, len(valuation)):
            ax.hist(inside[rows], edges, histtype="step", label=f"{label} ({rows.sum():,})")
        ax.legend(fontsize="small")
    ax.axvline(0, color="black", linewidth=1)
    ax.set(xlabel="value", ylabel="points", title=f"{(valuation.values < 0).mean():.0%} negative")
    return ax


def plot_map(source: Evidence | Valuation, X: Any = None, *, ax: Any = None, seed: int = 0) -> Any:
    """Plot the points on their two leading components, colored by value. Returns the axis.

    Parameters
    ----------
    source
        What `thresher.report.gather` found, or a valuation together with its rows `X`.
    X
        The rows of a valuation.
    ax
        The axis to draw on. The default is a new figure.
    seed
        The seed for the choice of points if there are more than 4,000: the 1,000 with the lowest
        values, and others at random.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> from thresher.plots import plot_map
    >>> valuation = th.Valuation(np.array([0.5, -0.25, 0.0]), "example", {}, 0.75, 0.5)
    >>> plot_map(valuation, [[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]]).get_xlabel()
    'first component'
    """
    if isinstance(source, Evidence):
        found = source.map
        if found is None or X is not None:
            raise InputError("plot_map takes evidence that has a map, or a valuation and its X")
        spots, axes = np.column_stack([found.x, found.y]), found.axes
        values, validation = np.array(found.values), (found.x_val, found.y_val)
    else:
        rows = _rows(source, X)
        cosine = source.params.get("metric") == "cosine"
        places = place_points(rows, source.values, cosine=cosine, seed=seed)
        spots, axes = places.spots, places.axes
        values, validation = source.values[places.chosen], ((), ())
    ax = new_axis() if ax is None else ax
    _draw_map(ax, spots, values)
    if validation[0]:
        ax.scatter(*validation, s=14, marker="+", color=THIRD, linewidths=0.7, label="validation")
    ax.legend(fontsize="small")
    ax.set(xlabel=axes[0], ylabel=axes[1])
    return ax


def plot_removal(evidence: Evidence, *, model: str | None = None, ax: Any = None) -> Any:
    """Plot accuracy as the lowest, the highest and random points are removed. Returns the axis.

    Parameters
    ----------
    evidence
        What `thresher.report.gather` found.
    model
        "threshold classifier" or "logistic regression", which is the default.
    ax
        The axis to draw on. The default is a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> from thresher.plots import plot_removal
    >>> from thresher.report import gather
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> y = X[:, 0] > 0
    >>> valuation = th.tknn_shapley(X[:90], y[:90], X[90:], y[90:])
    >>> plot_removal(gather(valuation, X[:90], y[:90], X[90:], y[90:])).get_ylabel()
    'accuracy'
    """
    removal = evidence.removal
    if removal is None:
        raise InputError(f"there are no removal curves: {evidence.missing.get('removal', '')}")
    wanted = removal.models[-1] if model is None else model
    if wanted not in removal.models:
        raise InputError(f"model must be one of {', '.join(removal.models)}, got {wanted!r}")
    ax = new_axis() if ax is None else ax
    for order, (color, marker, line) in LINES.items():
        ax.plot(
            removal.fractions, removal.curves[wanted, order], label=ORDERS[order][0],
            color=color, marker=marker, linestyle=line,
        )  # fmt: skip
    ax.set(xlabel="share of points removed", ylabel="accuracy", title=wanted)
    ax.legend(fontsize="small")
    return ax


def plot_radius(
    suggestion: RadiusSuggestion, radius: float | None = None, *, ax: Any = None
) -> Any:
    """Plot accuracy, coverage and detection by radius, with the suggested radius and the one used.

    Returns the axis. Detection is the AUROC of wrong labels, on which the suggestion is based.

    Examples
    --------
    >>> import thresher as th
    >>> from thresher.plots import plot_radius
    >>> rows = [[0.0], [1.0], [10.0], [11.0]]
    >>> suggestion = th.suggest_radius(rows, ["a", "a", "b", "b"], metric="euclidean")
    >>> plot_radius(suggestion, 2.0).get_xlabel()
    'radius'
    """
    if not isinstance(suggestion, RadiusSuggestion):
        raise InputError(f"suggestion must come from suggest_radius, got {suggestion!r}")
    ax = new_axis() if ax is None else ax
    ax.plot(suggestion.radii, suggestion.accuracy, color=GOOD, label="accuracy")
    ax.plot(suggestion.radii, suggestion.coverage, color=THIRD, linestyle="--", label="coverage")
    if suggestion.detection is not None:
        ax.plot(suggestion.radii, suggestion.detection, color=BAD, linestyle=":", label="detection")
    marked = {"suggested": (float(suggestion), "-.")}
    if radius is not None:
        marked["used"] = (float(radius), ":")
    for name, (where, line) in marked.items():
        ax.axvline(where, color="black", linewidth=1, linestyle=line, label=f"{name} {where:.3g}")
    ax.set(xlabel="radius", ylabel="share of validation points, AUROC", ylim=(0, 1.02))
    ax.legend(fontsize="small")
    return ax


def plot_owners(valuation: Valuation, *, ax: Any = None) -> Any:
    """Plot the value of each owner, the highest first, at most forty. Returns the axis.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> from thresher.plots import plot_owners
    >>> owners = ("anna", "ben", "anna")
    >>> valuation = th.Valuation(np.array([0.5, -0.25, 0.0]), "example", {}, 0.75, 0.5, owners)
    >>> [text.get_text() for text in plot_owners(valuation).get_yticklabels()]
    ['anna', 'ben']
    """
    worth = sorted(valuation.by_owner().items(), key=lambda entry: -entry[1])
    shown = worth if len(worth) <= MOST_OWNERS else worth[: MOST_OWNERS // 2] + worth[-20:]
    ax = new_axis() if ax is None else ax
    names, values = [str(owner) for owner, _ in shown], [value for _, value in shown]
    colors = [BAD if value < 0 else GOOD for value in values]
    ax.barh(range(len(shown)), values, color=colors, tick_label=names)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=1)
    title = "" if len(shown) == len(worth) else f"{len(shown)} of {len(worth):,} owners"
    ax.set(xlabel="value", title=title)
    return ax


def new_axis() -> Any:
    """The axis of a new figure."""
    require("matplotlib", purpose="a plot", extra="plot")
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 4.5), layout="constrained").subplots()


def _rows(valuation: Valuation, X: Any) -> Rows:
    if X is None or valuation.params.get("metric") == "precomputed":
        raise InputError("plot_map takes evidence that has a map, or a valuation and its X")
    array = check_features("X", X)
    if len(array) != len(valuation):
        raise InputError(f"X has {len(array)} rows but the valuation has {len(valuation)} points")
    return measure("X", array, cosine=valuation.params.get("metric") == "cosine")


def _draw_map(ax: Any, spots: Any, values: Any) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("value", [BAD, "#dddddd", GOOD])
    scale = float(np.quantile(np.abs(values), 0.98)) or 1.0
    for name, rows, marker in (("helps", values >= 0, "o"), ("hurts", values < 0, "v")):
        if rows.any():
            drawn = ax.scatter(
                *spots[rows].T, c=values[rows], s=12, marker=marker, label=name,
                cmap=colors, vmin=-scale, vmax=scale, linewidths=0,
            )  # fmt: skip
    ax.figure.colorbar(drawn, ax=ax, label="value")


def _by_label(y: Any, count: int) -> list[tuple[Hashable, Any]]:
    """The points of each label, the largest classes first."""
    labels = check_labels("y", y, count)
    classes = class_list(None, labels)
    codes = classes.encode("y", labels)
    sizes = np.bincount(codes, minlength=len(classes))
    largest = shortlist(np.arange(len(classes)), sizes, MOST_CLASSES)
    return [(classes.labels[code], codes == code) for code in largest]


def plot_plans(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Plot curves over epsilon from rows with the keys of `thresher plan`; returns the figure."""
    figures = require("matplotlib.figure", purpose="figures", extra="plot")
    figure = figures.Figure(figsize=(9, 3.6), layout="constrained")
    for ax, (column, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        for name in dict.fromkeys(row["mechanism"] for row in rows):
            own = [row for row in rows if row["mechanism"] == name and row[column] is not None]
            color, marker, line = STYLES.get(name, STYLES["paper"])
            xs, ys = ([row[key] for row in own] for key in ("epsilon", column))
            ax.plot(xs, ys, color=color, marker=marker, linestyle=line, label=name)
        ax.set(xscale="log", xlabel="epsilon", title=title)
        if column == "rank_agreement" and rows and rows[0]["zero_budget"] is not None:
            free = rows[0]["zero_budget"]
            ax.axhline(free, color="gray", linewidth=1, linestyle="-.", label="no budget")
        ax.legend(fontsize="small")
    return figure


def save_plans(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Write the curves to a file: .svg, .png or .pdf."""
    save_figure(path, lambda: plot_plans(rows))


def save_figure(path: str | Path, draw: Callable[[], Any]) -> None:
    """Draw a figure and write it; raise first if its file cannot be written."""
    kind, figure = check_kind(path), draw()
    write_whole(path, lambda temporary: figure.savefig(temporary, format=kind))


def check_kind(path: str | Path) -> str:
    """The kind of figure in a file's name; raise if it is unknown or the folder does not exist."""
    kind = Path(path).suffix[1:].lower()
    if kind not in {"svg", "png", "pdf"}:
        raise InputError(f"the file of a figure must end in .svg, .png or .pdf, got {path}")
    check_writable(path)
    return kind
