"""The figures that the paper prints, and how to read them.

`printed.csv` holds every figure of its result tables as printed, except for one obvious misprint
(MNIST, epsilon 0.5, DP-KNN: "0495" is 0.495). Thresholds are given as our radius, 1 + tau.
"""

from __future__ import annotations

import csv
import functools
from importlib import resources

from thresher.paper.datasets import EMBEDDED

Figure = tuple[float, float | None]


@functools.cache
def figures() -> dict[tuple[str, str, str, float | None], Figure]:
    """The printed figures and deviations (None if not printed) by table, set, method and step."""
    text = resources.files("thresher.paper").joinpath("printed.csv").read_text("utf-8")
    _, *rows = csv.reader(text.splitlines())
    return {
        (table, name, method, float(step) if step else None): (
            float(figure), float(deviation) if deviation else None,
        )
        for table, name, method, step, figure, deviation in rows
    }  # fmt: skip


def lookup(table: str, name: str, method: str, step: float | None = None) -> Figure | None:
    """The figure as printed, or None.

    Examples
    --------
    >>> lookup("radius-noisy", "fraud", "tknn", 0.5)
    (0.818, None)
    """
    return figures().get((table, name, method, step))


def read_k(task: str, name: str, k: float) -> Figure | None:
    """The printed figure of KNN-Shapley for k.

    The columns of both ablation tables over K are printed in reverse: the header 16 - k means k.
    """
    return lookup(f"k-{task}", name, "knn", 16 - k)


def read_noisy_knn(name: str, k: int) -> Figure | None:
    """The printed figure of KNN-Shapley for this k, for points with noisy features.

    On the tabular sets, its table shows k = 11, not 5, with Phoneme and CPU swapped; k = 5 is in
    the ablation table. For the image and text sets, nothing shows which k was used.
    """
    if name in EMBEDDED:
        return lookup("noisy", name, "knn") if k == 5 else None
    if k == 5:
        return read_k("noisy", name, 5)
    swapped = {"phoneme": "cpu", "cpu": "phoneme"}.get(name, name)
    return lookup("noisy", swapped, "knn")
