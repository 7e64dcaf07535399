"""KNN-Shapley from the nearest points alone: time against the exact method, error against the bound.

    python benchmarks/knn_scale.py [--repeats 3]

Contenders take turns, and each is given its best turn, by the clock and in seconds of the processor: the latter say
more on a machine that is busy with other things. Writes results/knn-scale.json and results/knn-scale.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from tqdm import tqdm

warnings.simplefilter("ignore")

import thresher as th  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import cases  # noqa: E402
from provenance import machine, measured  # noqa: E402
from report import table  # noqa: E402

HERE = Path(__file__).parent
SHAPES = [
    (100_000, 20, 10),
    (100_000, 100, 10),
    (100_000, 100, 100),
    (1_000_000, 20, 10),
    (1_000_000, 100, 10),
    (1_000_000, 20, 100),
]
ERRORS = (0.01, 0.001)
SINGLE = 3  # validation points whose own values are compared


def values(case, rows, error, **options):
    return th.knn_shapley(
        case.X, case.y, case.V[rows], case.y_val[rows], metric="euclidean", mean=True, error=error, **options
    )  # fmt: skip


def interleaved(contenders, repeats):
    """Seconds of the best turn of each contender, by the clock and of the processor."""
    best = {name: [float("inf")] * 2 for name in contenders}
    for turn in range(repeats + 1):
        for name, call in contenders.items():
            start = time.perf_counter(), time.process_time()
            call()
            spent = time.perf_counter() - start[0], time.process_time() - start[1]
            if turn:  # the first turn warms up: compiles, touches memory
                best[name] = [min(pair) for pair in zip(best[name], spent, strict=True)]
    return best


def measure(case, repeats):
    everything = slice(None)
    contenders = {
        str(error): lambda e=error: values(case, everything, e) for error in (0.0, *ERRORS)
    }
    told = {"seconds": interleaved(contenders, repeats), "errors": {}}
    parts = [everything, *(slice(v, v + 1) for v in range(SINGLE))]
    exact = [values(case, part, 0.0).values for part in parts]
    for error in ERRORS:
        found = [values(case, part, error) for part in parts]
        gaps = [
            float(abs(some.values - want).max()) for some, want in zip(found, exact, strict=True)
        ]
        told["errors"][str(error)] = {
            "kept": found[0].params["neighbors_kept"],
            "bound": found[0].params["bound"],
            "mean": gaps[0],
            "single": max(gaps[1:]),
            "correlation": float(np.corrcoef(found[0].values, exact[0])[0, 1]),
            "largest value": float(abs(exact[0]).max()),
        }
    return told


def render(result):
    times, errors = [], []
    for shape, told in result["work"].items():
        clock, exact = told["seconds"]["0.0"]
        times.append((shape, "exact", "", f"{clock:.3f}", f"{exact:.3f}", "1"))
        for error, about in told["errors"].items():
            clock, seconds = told["seconds"][error]
            times.append((shape, error, about["kept"], f"{clock:.3f}", f"{seconds:.3f}",
                          f"{exact / seconds:.1f}"))  # fmt: skip
            errors.append((shape, error, f"{about['bound']:.2e}", f"{about['single']:.2e}",
                           f"{about['mean']:.2e}", f"{about['largest value']:.2e}",
                           f"{about['correlation']:.4f}"))  # fmt: skip
    about = result["machine"]
    return "\n".join([
        "# What `error=` saves in `knn_shapley`", "",
        f"{measured('knn_scale.py', about)} `knn_shapley` with k = 5, the soft-label utility, euclidean distances and float64 "
        "order. Contenders took turns, and the best turn counts. N is the number of points, M that of validation points, and d "
        "that of features.", "",
        *table(("(N, M, d)", "error", "neighbors kept", "s", "processor s", "times faster than exact (processor)"), times),
        "## Largest real error", "",
        "The largest error of any point's value, for a single validation point (the worst of "
        f"{SINGLE}) and for the mean over all M. The proven bound holds for both.", "",
        *table(("(N, M, d)", "error", "proven bound", "single", "mean", "largest mean value",
                "correlation of means"), errors),
    ])  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    result = {"machine": machine(), "work": {}}
    for shape in tqdm(SHAPES):
        result["work"][str(shape)] = measure(cases.make(*shape), repeats)
        (HERE / "results" / "knn-scale.json").write_text(json.dumps(result, indent=1) + "\n")
        (HERE / "results" / "knn-scale.md").write_text(render(result))
    print(render(result))


if __name__ == "__main__":
    main()
