"""Figures of attacks; each function draws on a matplotlib axis, or on a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher.attack.curves import NeighborEffect
from thresher.attack.membership import Attack
from thresher.plots import new_axis, save_figure


def plot_roc(attack: Attack, ax: Any = None, *, title: str = "Who is a member?") -> Any:
    """Draw the ROC curves of all attacks on logarithmic axes: the lower left matters most."""
    ax = ax if ax is not None else new_axis()
    least = 0.5 / min(int((~attack.is_member).sum()), int(attack.is_member.sum()))
    for name, roc in attack.rocs.items():
        label = f"{name}: AUROC {roc.auroc:.3f}, {roc.tpr_at(0.01):.1%} at 1 % false"
        fpr, tpr = (np.maximum(rate, least) for rate in (roc.fpr, roc.tpr))
        ax.step(fpr, tpr, where="post", label=label)
    ends = [least, 1.0]
    ax.plot(ends, ends, color="gray", linestyle="--", linewidth=1, label="guessing")
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=title)
    ax.set(xlabel="false-positive rate", ylabel="true-positive rate")
    ax.legend(loc="lower right", fontsize="small")
    return ax


def save_roc(attack: Attack, path: str | Path) -> None:
    """Write the ROC curves to a file: .svg, .png or .pdf."""
    save_figure(path, lambda: plot_roc(attack).figure)


def plot_effect(effect: NeighborEffect, ax: Any = None, *, title: str = "") -> Any:
    """Draw the value of a point with and without its nearest neighbor."""
    ax = ax if ax is not None else new_axis()
    ax.plot(effect.grid, effect.beside, marker="o", label="neighbor in the data")
    ax.plot(effect.grid, effect.alone, marker="s", linestyle="--", label="neighbor taken out")
    ax.set(xlabel=effect.over, ylabel=f"value of point {effect.point}", title=title)
    ax.legend(fontsize="small")
    return ax
