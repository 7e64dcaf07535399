"""Run times of TKNN-Shapley and KNN-Shapley over the number of points."""

from __future__ import annotations

import functools
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from thresher.knn import knn_shapley
from thresher.paper.cells import Cell, Experiment, Outcome, Scope
from thresher.paper.detection import quietly
from thresher.threads import thread_count
from thresher.tknn import tknn_shapley

SIZES = (1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6)
QUICK_SIZES = (1e3, 3e3, 1e4)
DIMENSIONS = (10, 100)
VALIDATION = 100


def cells(scope: Scope) -> list[Cell]:
    """Cells for both dimensions and all sizes; run times of another machine are not reused."""
    here = (("machine", machine()), ("threads", thread_count()))
    return [
        Cell("runtime", f"d={d}", "made up", "seconds", size, draw, options=here)
        for d in DIMENSIONS
        for size in (QUICK_SIZES if scope.quick else SIZES)
        for draw in range(scope.runs)
    ]


def run(cell: Cell, _data: object) -> Outcome:
    """Time both methods on the same rows: standard normal, labeled by the sign of x1 + x2."""
    d, rng = int(cell.set.removeprefix("d=")), np.random.default_rng(cell.draw)
    X, V = (rng.standard_normal((n, d)) for n in (int(cell.step), VALIDATION))
    data = X, X[:, :2].sum(axis=1) > 0, V, V[:, :2].sum(axis=1) > 0
    calls: dict[str, Callable[..., object]] = {
        "tknn": tknn_shapley,
        "tknn, half near": functools.partial(tknn_shapley, radius=1.0),
        "knn": knn_shapley,
    }
    for call in calls.values():
        _seconds(functools.partial(call, *data))  # compiled, and threads started
    took = {name: _seconds(functools.partial(call, *data)) for name, call in calls.items()}
    return {**took, "tknn / knn": took["tknn"] / took["knn"]}


@functools.cache
def machine() -> str:
    """The name of the processor and its number of cores."""
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text().splitlines() if cpus.is_file() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{named[0] if named else platform.machine()}, {os.cpu_count()} cores"


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    quietly(call)
    return time.perf_counter() - start


RUNTIME = Experiment(
    "runtime", "Seconds over the number of points", "figures 2 and 5",
    "Rows are standard normal, with 10 or 100 columns, and labels are the sign of the sum of two "
    "columns. There are 100 validation points. The radius is 0.5 (and 1, where half of all points "
    "are near), and k is 5. The paper shows curves without figures. It says that TKNN-Shapley is "
    "about 30 % faster for many points, a ratio of about 0.7, on 64 cores.",
    cells, run, "N", "step",
)  # fmt: skip
