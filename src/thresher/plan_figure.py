"""A figure of what budgets buy: error and rank agreement by epsilon, for each mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thresher.attack.plots import check_kind
from thresher.errors import require
from thresher.files import write_whole
from thresher.plots import BAD, GOOD, THIRD

STYLES = {"table": (GOOD, "s", "-"), "cells": (BAD, "v", "--"), "paper": (THIRD, "o", ":")}
TITLES = {"relative_error": "expected relative error", "rank_agreement": "rank agreement"}


def plot_plans(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Curves over epsilon from rows with the keys of `thresher plan`; returns the figure."""
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
    kind = check_kind(path)
    figure = plot_plans(rows)
    write_whole(path, lambda temporary: figure.savefig(temporary, format=kind))
