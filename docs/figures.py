"""Draw the figures of the README and the site into docs/_static.

    python docs/figures.py [digits speed growth privacy]

`digits` values some digits; the others only draw what `make bench` measured, from
benchmarks/results. The same input gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from ast import literal_eval
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
mpl.rcParams |= {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "svg.fonttype": "none",  # letters stay letters: small files
    "svg.hashsalt": "thresher",
}
import matplotlib.pyplot as plt

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
STATIC = ROOT / "docs" / "_static"
OURS, THEIRS, PLAIN = "black", "#1f78b4", "#666666"
ASIDE: Any = {"fontsize": 8, "color": PLAIN}  # remarks, and where figures come from
PEERS = {
    "pydvl": "pyDVL",
    "shapiq_knn": "shapiq, k nearest",
    "shapiq_tknn": "shapiq, threshold*",
    "datascope": "datascope, k = 1",
}
REMARK = "* its values are wrong from about 1,030 points on"


def results(name: str) -> dict[str, Any]:
    """What one benchmark measured."""
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def source(about: dict[str, Any], command: str) -> str:
    """Where figures come from: the command, the machine, the commit."""
    return (
        f"{command}, {about['processor']}, {about['cores']} cores, "
        f"commit {about['commit']}, {about['date']}"
    )


def draw_digits() -> Any:
    """Values of digits with right and with wrong labels, as in the README."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    import thresher as th

    X, y = load_digits(return_X_y=True)
    X, X_val, y, y_val = train_test_split(X - X.mean(axis=0), y, test_size=300, random_state=0)
    y, flipped = th.flip_labels(y, fraction=0.1, seed=0)
    valuation = th.tknn_shapley(X, y, X_val, y_val, radius=th.suggest_radius(X_val, y_val))
    found = int(flipped[valuation.suspects(int(flipped.sum()))].sum())
    figure, axis = plt.subplots(figsize=(7, 2.8))
    lowest, highest = valuation.values.min(), valuation.values.max()
    for mask, name, color in ((~flipped, "right", THEIRS), (flipped, "wrong", "#d95f02")):
        label = f"{name} label ({mask.sum():,} digits)"
        looks: Any = {"bins": 60, "range": (lowest, highest), "alpha": 0.85}
        axis.hist(valuation.values[mask], **looks, color=color, label=label)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set(xlabel="value", ylabel="digits", yscale="log")
    axis.set_title(f"{found} of the {flipped.sum()} lowest values are wrong labels", loc="left")
    axis.legend(frameon=False)
    return figure


def peer_times(measured: dict[str, Any]) -> dict[str, dict[tuple[int, int, int], Any]]:
    """For each peer that did the same work, its times and ours by shape."""
    return {
        PEERS.get(peer, peer): {
            literal_eval(shape): each for shape, each in entry["shapes"].items()
        }
        for peer, entry in measured["peers"].items()
        if entry.get("shapes") and "not comparable" not in entry["about"]
    }


def draw_speed() -> Any:
    """How many times as long peers take, at the largest size that each was measured at."""
    measured = results("latest")
    bars = []
    for peer, shapes in peer_times(measured).items():
        largest = max(shapes)
        bars.append((shapes[largest]["ratio"], f"{peer}, {largest[0]:,} points"))
    bars.sort()
    figure, axis = plt.subplots(figsize=(7, 0.5 + 0.42 * len(bars)))
    axis.barh([name for _, name in bars], [ratio for ratio, _ in bars], color=THEIRS)
    for row, (ratio, _) in enumerate(bars):
        axis.text(ratio * 1.05, row, f"{ratio:,.0f}x", va="center")
    axis.set(xscale="log", xlabel="times as long as Thresher for the same work", xlim=(1, None))
    axis.margins(x=0.2)
    axis.text(1, -0.38, REMARK, transform=axis.transAxes, ha="right", **ASIDE)
    axis.set_title(source(measured["machine"], "make bench"), loc="left", **ASIDE)
    return figure


def draw_growth() -> Any:
    """Seconds for each 100 validation points against the number of points, for us and for peers."""
    measured = results("latest")
    figure, axis = plt.subplots(figsize=(7, 3.6))
    ours: dict[str, dict[int, float]] = defaultdict(dict)
    for peer, shapes in peer_times(measured).items():
        narrow = {shape: each for shape, each in shapes.items() if shape[2] == 10}
        ours["tknn_shapley" if "threshold" in peer else "knn_shapley"] |= seconds_at(narrow, "ours")
        if len(narrow) > 1:
            draw_line(axis, peer, seconds_at(narrow, "seconds"), {"alpha": 0.8})
    for name, seconds in ours.items():
        draw_line(axis, f"Thresher, {name}", seconds, {"color": OURS, "linewidth": 2.5})
    axis.set(xlabel="points, of 10 features", ylabel="seconds for 100 validation points")
    below: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "ncols": 2}
    axis.legend(frameon=False, title=REMARK, title_fontsize=8, handlelength=3, **below)
    axis.set_title(source(measured["machine"], "make bench"), loc="left", **ASIDE)
    return figure


def seconds_at(shapes: dict[tuple[int, int, int], Any], whose: str) -> dict[int, float]:
    """Seconds for each 100 validation points, by the number of points."""
    return {shape[0]: each[whose] / shape[1] * 100 for shape, each in sorted(shapes.items())}


def draw_line(axis: Any, name: str, seconds: dict[int, float], looks: dict[str, Any]) -> None:
    """One line over the number of points; dashed for `tknn`, the threshold method."""
    points = sorted(seconds)
    dashed = "--" if "threshold" in name or "tknn" in name else "-"
    line = [seconds[each] for each in points]
    axis.loglog(points, line, dashed, marker="o", label=name, **looks)


def draw_privacy() -> Any:
    """Rank agreement with the exact values against epsilon, as means over data sets."""
    measured = results("privacy")
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in measured["rows"]:
        found[row["mechanism"]][row["epsilon"]].append(row["spearman"])
    figure, axis = plt.subplots(figsize=(7, 3.2))
    lines = {"table": ("ours (table)", OURS), "paper": ("the paper's", THEIRS)}
    for mechanism, (name, color) in lines.items():
        points = {epsilon: fmean(each) for epsilon, each in sorted(found[mechanism].items())}
        axis.semilogx(list(points), list(points.values()), marker="o", color=color, label=name)
    alone = fmean(found["zero-budget score"][0.0])
    axis.axhline(alone, color=PLAIN, linestyle="--", label="zero-budget score: no privacy spent")
    axis.set(
        xlabel="epsilon (larger is less private)",
        ylabel="Spearman with exact values",
        xticks=[0.1, 0.5, 1],
        xticklabels=["0.1", "0.5", "1"],
    )
    axis.minorticks_off()
    axis.legend(frameon=False)
    sets = len({row["set"] for row in measured["rows"]})
    title = f"benchmarks/privacy.py, {measured['machine']['date']}: mean over {sets} data sets"
    axis.set_title(title, loc="left", **ASIDE)
    return figure


FIGURES = {
    "digits": draw_digits,
    "speed": draw_speed,
    "growth": draw_growth,
    "privacy": draw_privacy,
}


def save(figure: Any, path: Path) -> None:
    """Write an SVG that is the same bytes every time."""
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main() -> None:
    """Draw the figures that are named, or all of them."""
    for name in sys.argv[1:] or FIGURES:
        path = STATIC / f"{name}.svg"
        save(FIGURES[name](), path)
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
