"""Figures: curves over an axis with a panel for each data set, or dots, ours beside the paper's."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import require
from thresher.files import write_whole
from thresher.paper.cells import Experiment
from thresher.paper.records import Record

COLORS = ("#1f6f8b", "#d1495b", "#edae49", "#66a182", "#6c5b7b", "#8d99ae")
LOGARITHMIC = {"N", "epsilon"}


def draw_figures(experiment: Experiment, records: Sequence[Record]) -> dict[str, Any]:
    """Draw a figure for each task, with its name; it shows the first measure of each cell."""
    require("matplotlib", purpose="a figure", extra="plot")
    drawn = [record for record in records if record.ours is not None]
    tasks, found = _kinds(drawn, "task"), {}
    for task in tasks:
        own = [each for each in drawn if each.task == task]
        stepped = any(each.step is not None for each in own)
        name = experiment.name if len(tasks) == 1 else f"{experiment.name}-{task}"
        found[name] = _panels(experiment, task, own) if stepped else _dots(task, own)
    return found


def save_figure(figure: Any, folder: Path, name: str) -> None:
    """Write the figure as NAME.svg and NAME.png."""
    import matplotlib as mpl

    kinds: dict[str, Any] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 120}}
    with mpl.rc_context({"svg.hashsalt": name}):
        for kind, more in kinds.items():
            save = functools.partial(figure.savefig, format=kind, **more)
            write_whole(folder / f"{name}.{kind}", save)


def _kinds(records: Sequence[Record], field: str) -> list[str]:
    """The distinct entries of a field of the records, in order."""
    return list(dict.fromkeys(getattr(record, field) for record in records))


def _panels(experiment: Experiment, task: str, records: list[Record]) -> Any:
    """Draw a panel for each set; curves are dashed for the paper's, and pale for `clean`.

    A figure without a step, such as values that spend nothing, is a dotted line across.
    """
    from matplotlib.figure import Figure

    sets = _kinds(records, "set")
    across = min(3, len(sets))
    down = math.ceil(len(sets) / across)
    figure = Figure(figsize=(4.2 * across, 2.9 * down + 0.7), layout="constrained")
    many = experiment.axis == "N"
    axes = figure.subplots(down, across, squeeze=False, sharey=many).ravel()
    curves = _curves([record for record in records if record.step is not None])
    measures = {measure for _, measure in curves}
    measured = measures.pop() if len(measures) == 1 else ""
    for ax, name in zip(axes, sets, strict=False):
        own = [record for record in records if record.set == name]
        _panel(ax, [record for record in own if record.step is not None], curves)
        _across(ax, [record for record in own if record.step is None])
        ax.set(title=name, xlabel=experiment.axis, ylabel=measured)
        if experiment.axis in LOGARITHMIC:
            ax.set_xscale("log")
        if many:
            ax.set_yscale("log")
    for ax in axes[len(sets) :]:
        ax.set_visible(False)
    _legend(figure, axes, across + 1)
    figure.suptitle(f"{experiment.title}: {task}" if task != experiment.name else experiment.title)
    return figure


def _legend(figure: Any, axes: Any, columns: int) -> None:
    """Draw one legend below all panels."""
    named: dict[str, Any] = {}
    for ax in axes:
        named |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    below = {"loc": "outside lower center", "ncols": columns, "frameon": False}
    figure.legend(list(named.values()), list(named), **below)


def _curves(records: list[Record]) -> list[tuple[str, str]]:
    """Pairs of method and measure to draw: only AUROC if there is one."""
    pairs = list(dict.fromkeys((record.method, record.measure) for record in records))
    measured = [pair for pair in pairs if pair[1] == "AUROC"]
    return measured or [pair for pair in pairs if pair[1] not in {"tknn / knn", "nobody near"}]


def _panel(ax: Any, records: list[Record], curves: list[tuple[str, str]]) -> None:
    several = len({method for method, _ in curves}) > 1
    for curve, color in zip(curves, cycle(COLORS), strict=False):
        own = [each for each in records if (each.method, each.measure) == curve]
        own.sort(key=lambda each: each.step or 0.0)
        label = curve[0] if several else curve[1]
        for protocol in _kinds(records, "protocol"):
            line = [each for each in own if each.protocol == protocol]
            pale = protocol == "clean"
            x, y = [each.step for each in line], [each.ours for each in line]
            ax.errorbar(
                x, y, [each.deviation or 0.0 for each in line], marker=".", color=color,
                alpha=0.45 if pale else 1, elinewidth=0.7,
                label=label if protocol == "made up" else f"{label}, protocol {protocol}",
            )  # fmt: skip
            printed = [
                (each.step, each.paper) for each in line if each.paper is not None and not pale
            ]
            if printed:
                style = {"linestyle": "--", "marker": "x", "linewidth": 1, "color": color}
                ax.plot(*zip(*printed, strict=True), **style, label=f"{label}, as printed")
    ax.grid(alpha=0.25)


def _across(ax: Any, records: list[Record]) -> None:
    for record in (each for each in records if each.measure == "AUROC"):
        shade = "0.2" if record.method == "exact" else "0.55"
        style = ":" if record.protocol == "paper" else "-."
        legend = f"{record.method}, protocol {record.protocol}"
        ax.axhline(record.ours, color=shade, linestyle=style, linewidth=1, label=legend)


def _dots(task: str, records: list[Record]) -> Any:
    """Draw the AUROC of every method on every set: ours as dots, the paper's as crosses."""
    from matplotlib.figure import Figure

    records = [record for record in records if record.measure == "AUROC"]
    protocols, sets, methods = (_kinds(records, field) for field in ("protocol", "set", "method"))
    figure = Figure(figsize=(5.2 * len(protocols), 0.42 * len(sets) + 1.8), layout="constrained")
    axes = figure.subplots(1, len(protocols), squeeze=False, sharey=True)[0]
    for ax, protocol in zip(axes, protocols, strict=True):
        for (place, method), color in zip(enumerate(methods), cycle(COLORS), strict=False):
            own = [each for each in records if (each.protocol, each.method) == (protocol, method)]
            shift = (place - (len(methods) - 1) / 2) * 0.11
            y = np.array([sets.index(each.set) for each in own]) + shift
            ours, errors = [each.ours for each in own], [each.deviation or 0.0 for each in own]
            ax.errorbar(ours, y, xerr=errors, fmt="o", ms=4, color=color, lw=1, label=method)
            printed = [(each.paper, at) for each, at in zip(own, y, strict=True) if each.paper]
            if printed:
                ax.plot(*zip(*printed, strict=True), "x", ms=5, color=color)
        ax.axvline(0.5, color="gray", linestyle=":", linewidth=1)
        ax.set(title=f"protocol {protocol}", xlabel="AUROC", yticks=range(len(sets)))
        ax.set_yticklabels(sets)
        ax.grid(axis="x", alpha=0.25)
    axes[0].invert_yaxis()
    _legend(figure, axes[:1], 3)
    figure.suptitle(f"{task}: ours (dots, bars are deviations) and as printed (crosses)")
    return figure
