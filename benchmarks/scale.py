"""What tknn_shapley costs as points, validation points and features grow; and a projection.

Usage: python benchmarks/scale.py [--quick]. Writes results/scale.md, scale.json and scale.svg, and
the fitted costs into docs/scale.md. The costs are two lines, since up to `DIRECT_WIDTH` features
distances are summed directly and from there on come from a matrix product.
"""

import argparse
import json
import math
import re
import sys
import time
from pathlib import Path

import numpy as np

import thresher as th
from thresher.metrics import DIRECT_WIDTH

sys.path.insert(0, str(Path(__file__).parent))
import cases
from provenance import machine, measured

RESULTS = Path(__file__).parent / "results"
BASE = {"N": 200_000, "M": 1000, "d": 10}
GRID = {
    "N": [50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000],
    "M": [250, 500, 1000, 2000, 4000, 8000],
    "d": [2, 5, 10, 16, 20, 50, 100, 200],
}
TICKS = {"N": [100_000, 1_000_000], "M": [300, 1000, 3000, 8000], "d": [2, 10, 50, 200]}
OTHERS = [  # shapes that the fit does not see
    (300_000, 1000, 3), (100_000, 3000, 8), (150_000, 1500, 14), (200_000, 1000, 17),
    (100_000, 1000, 35), (100_000, 2000, 75), (100_000, 1000, 150), (50_000, 2000, 300),
]  # fmt: skip
DOCS = Path(__file__).parent.parent / "docs" / "scale.md"


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
    """Nanoseconds a pair, and a pair and feature, for few features and for many: N M (a + b d)."""
    return [
        _line([row for row in found if row[0] * row[1] >= 5e7 and (row[2] > DIRECT_WIDTH) == wide])
        for wide in (False, True)
    ]


def _line(rows):
    """By least squares on relative errors."""
    t = np.array([t / (N * M) * 1e9 for N, M, _, t in rows])
    A = np.array([[1.0, d] for _, _, d, _ in rows])
    return np.linalg.lstsq(A / t[:, None], np.ones(len(t)), rcond=None)[0].tolist()


def expected(N, M, d, lines):
    """Seconds by the fitted costs."""
    constant, each = lines[d > DIRECT_WIDTH]
    return N * M * (constant + each * d) * 1e-9


def formulas(lines):
    """The fitted costs, as docs/scale.md prints them."""
    limits = (f"up to {DIRECT_WIDTH} features", "more features")
    return [
        f"    seconds = N M ({a:.3f} + {b:.4f} d) 1e-9          {limit}"
        for (a, b), limit in zip(lines, limits)
    ]


def accuracy(checked):
    """How far the fitted costs are from shapes that they were not fitted to."""
    low, high = (100 * (edge - 1) for edge in (min(checked), max(checked)))
    return f"off by {low:+.0f} % to {high:+.0f} % at {len(checked)} shapes that were not fitted"


def into_docs(lines, checked):
    """Replace the formulas and their accuracy in docs/scale.md."""
    text = DOCS.read_text()
    text = re.sub(r"    seconds = N M .*\n    seconds = N M .*", "\n".join(formulas(lines)), text)
    text = re.sub(
        r"off by \S+ % to \S+ % at \d+ shapes that were not fitted", accuracy(checked), text
    )
    DOCS.write_text(text)


def series(found):
    """The sizes and the times along each of N, M and d, in the order in which they were measured."""
    rows, along = iter(found), {}
    for name, sizes in GRID.items():
        some = [next(rows) for _ in sizes]
        along[name] = [row["NMd".index(name)] for row in some], [row[3] for row in some]
    return along


def draw(found, path):
    """Seconds over N, M and d, from the rows of results/scale.json."""
    from matplotlib import style
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    names = {"N": "points N", "M": "validation points M", "d": "features d"}
    with style.context(["default", {"svg.hashsalt": "thresher"}]):
        figure = Figure(figsize=(10, 3.2), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True)
        for axis, (name, (sizes, times)) in zip(axes, series(found).items()):
            axis.loglog(sizes, times, "o-", color="#0072b2", label="measured")
            line = np.array(sizes) / sizes[-1] * times[-1]
            axis.loglog(sizes, line, "--", color="#6b7480", label="linear")
            axis.set_xticks(TICKS[name], [f"{tick:,}" for tick in TICKS[name]])
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.set_xlabel(names[name])
        axes[0].set_ylabel("seconds")
        axes[0].legend()
        figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a trial")
    quick = parser.parse_args().quick
    found = []
    for name, sizes in GRID.items():
        for size in sizes:
            shape = BASE | {name: size}
            shape["N"] //= 10 if quick else 1
            found.append((*shape.values(), seconds(**shape, turns=3 if quick else 5)))
    costs = fit(found)
    others = [(N // 10 if quick else N, M, d) for N, M, d in OTHERS]
    checked = [expected(*shape, costs) / seconds(*shape, turns=5) for shape in others]
    about = {
        "machine": machine(), "found": found, "nanoseconds": costs,
        "others": others, "expected over measured": checked,
    }  # fmt: skip
    RESULTS.joinpath("scale.md").write_text(render(about))
    RESULTS.joinpath("scale.json").write_text(json.dumps(about, indent=1, default=float) + "\n")
    draw(found, RESULTS / "scale.svg")
    if not quick:
        into_docs(costs, checked)
    print(render(about))


def render(result):
    """A Markdown page."""
    costs = result["nanoseconds"]
    lines = [
        "# How time grows with the size of the data",
        "",
        f"{measured('scale.py', result['machine'])} `tknn_shapley` with N points, M validation points and d features in float32. Distances are "
        "cosine, and 5 % of the points are near. Times are the best of five turns.",
        "",
    ]
    for name, (sizes, times) in series(result["found"]).items():
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
        "These formulas were fitted to the times:",
        "",
        *formulas(costs),
        "",
        f"Predictions are {accuracy(result['expected over measured'])}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
