"""What tknn_shapley costs as points, validation points and features grow; and a projection.

Usage: python benchmarks/scale.py [--quick]. Writes results/scale.md, scale.json and scale.svg.
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

import thresher as th

sys.path.insert(0, str(Path(__file__).parent))
import cases
from run import machine

RESULTS = Path(__file__).parent / "results"
BASE = {"N": 200_000, "M": 1000, "d": 10}
GRID = {
    "N": [50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000],
    "M": [250, 500, 1000, 2000, 4000, 8000],
    "d": [2, 5, 10, 20, 50, 100, 200],
}


def seconds(N, M, d, turns):
    """The best of some turns; a radius that has about 5 % of the points near."""
    case = cases.make(N, M, d)
    data = case.X, case.y, case.V, case.y_val
    best = math.inf
    for _ in range(turns):
        start = time.perf_counter()
        th.tknn_shapley(*data, radius=case.radius["cosine"])
        best = min(best, time.perf_counter() - start)
    return best


def slope(sizes, times):
    """The power of the size by which time grows, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def fit(found):
    """Nanoseconds a pair, and a pair and feature: time = N M (a + b d), by least squares."""
    rows = [(N, M, d, t) for N, M, d, t in found if N * M >= 5e7]
    A = np.array([[1.0, d] for _, _, d, _ in rows])
    t = np.array([t / (N * M) * 1e9 for N, M, _, t in rows])
    weights = 1 / t
    return np.linalg.lstsq(A * weights[:, None], t * weights, rcond=None)[0]


def draw(series, path):
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "thresher"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
    names = {"N": "points N", "M": "validation points M", "d": "features d"}
    for axis, (name, (sizes, times)) in zip(axes, series.items()):
        axis.loglog(sizes, times, "o-", color="#0072b2", label="measured")
        line = np.array(sizes) / sizes[-1] * times[-1]
        axis.loglog(sizes, line, "--", color="#6b7480", label="linear")
        axis.set_xlabel(names[name])
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a trial")
    quick = parser.parse_args().quick
    found, series = [], {}
    for name, sizes in GRID.items():
        some = [size // 10 if quick and name == "N" else size for size in sizes]
        times = []
        for size in some:
            shape = (BASE | ({"N": 20_000} if quick else {})) | {name: size}
            times.append(seconds(**shape, turns=3 if quick else 5))
            found.append((shape["N"], shape["M"], shape["d"], times[-1]))
        series[name] = (some, times)
    constant, each = fit(found)
    about = machine()
    told = (
        f"{about['processor']}, {about['cores']} cores, commit {about['commit']}, {about['date']}."
    )
    lines = [
        "# Results of `benchmarks/scale.py`",
        "",
        f"{told} Best of five turns; cosine, 5 % of the points near, float32.",
        "",
    ]
    for name, (sizes, times) in series.items():
        fixed = ", ".join(f"{key} = {entry:,}" for key, entry in BASE.items() if key != name)
        lines += [
            f"## {name}, at {fixed}",
            "",
            f"| {name} | " + " | ".join(f"{s:,}" for s in sizes) + " |",
        ]
        lines += [
            "|---|" + "---|" * len(sizes),
            "| seconds | " + " | ".join(f"{t:.3g}" for t in times) + " |",
            "",
        ]
        lines += [f"Time grows as {name} to the power {slope(sizes, times):.2f}.", ""]
    lines += [
        "![Seconds over N, M and d](scale.svg)",
        "",
        f"Fitted: N M ({constant:.3f} + {each:.4f} d) nanoseconds on these cores.",
        "",
    ]
    RESULTS.joinpath("scale.md").write_text("\n".join(lines))
    about = {"machine": about, "found": found, "nanoseconds": [constant, each]}
    RESULTS.joinpath("scale.json").write_text(json.dumps(about, indent=1, default=float) + "\n")
    draw(series, RESULTS / "scale.svg")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
