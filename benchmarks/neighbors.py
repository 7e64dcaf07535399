"""A tree against all pairs, over features, validation points and the share of near pairs.

    python benchmarks/neighbors.py            the page results/neighbors.md
    python benchmarks/neighbors.py --fit      the constants of src/thresher/neighbors/costs.py, to be written there

Figures are ratios of processor time of one run (all threads together), the best of turns that the contenders take:
both ways keep all threads busy, and processor time does not count what else the machine does meanwhile.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import nnls
from tqdm import tqdm

import thresher as th
from thresher.metrics import DIRECT_WIDTH, measure
from thresher.neighbors import costs
from thresher.neighbors.ball import Ball
from thresher.neighbors.coordinates import Space
from thresher.neighbors.groups import Groups
from thresher.neighbors.tree import LEAF, BoxTree

sys.path.insert(0, str(Path(__file__).parent))
import peer_environments
from provenance import machine, measured

FOLDER = Path(__file__).parent / "results"
SHAPES = [(50_000, 1_000), (50_000, 10_000), (10_000, 100_000)]
WIDTHS = [2, 3, 5, 10, 20]
SHARES = [1e-4, 1e-3, 1e-2, 1e-1]
LONGEST = 8e9  # nanoseconds a call may be expected to take
WIDE = [
    ("64 independent features", 64),
    ("64 features, 6 of them free", 64),
    ("384 features, 12 of them free", 384),
]


class Case:
    """Normal features, or some that are mixtures of a few; two classes; a radius for a share of near pairs."""

    def __init__(self, n, m, width, share, free=None, seed=0):
        rng = np.random.default_rng(seed)
        self.X, self.V = (rng.standard_normal((k, width), dtype=np.float32) for k in (n, m))
        if free is not None:
            mixed = rng.standard_normal((free, width), dtype=np.float32)
            self.X, self.V = (A[:, :free] @ mixed + A / 10 for A in (self.X, self.V))
        self.y, self.y_val = (rng.integers(0, 2, k) for k in (n, m))
        some = self.X[:1000].astype(np.float64), self.V[:1000].astype(np.float64)
        squares = [(A**2).sum(axis=1) for A in some]
        apart = squares[0][:, None] + squares[1] - 2 * some[0] @ some[1].T
        self.radius = float(np.sqrt(max(0.0, np.quantile(apart, share))))
        self.rows = [measure("X", A, cosine=False) for A in (self.X, self.V)]

    def value(self, neighbors):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", th.ThresherWarning)
            return th.tknn_shapley(
                self.X, self.y, self.V, self.y_val, radius=self.radius, metric="euclidean",
                neighbors=neighbors,
            )  # fmt: skip


def interleaved(contenders, repeats, *, warm=True):
    """Processor seconds of the best turn of each contender; they take turns, and the first warms up."""
    best = dict.fromkeys(contenders, float("inf"))
    for turn in range(repeats + warm):
        for name, call in contenders.items():
            start = time.process_time()
            call()
            if turn or not warm:
                best[name] = min(best[name], time.process_time() - start)
    return best


def grid(repeats):
    found = []
    cases = [(n, m, d, s) for n, m in SHAPES for d in WIDTHS for s in SHARES]
    for n, m, d, share in tqdm(cases, desc="grid"):
        case = Case(n, m, d, share)
        expected = costs.expect(*case.rows, "euclidean", case.radius)
        predicted = costs.tree_cost(n, m, d, expected)
        row = {"points": n, "validation": m, "width": d, "share": share, "predicted": predicted}
        if predicted < LONGEST:
            values = {way: set() for way in ("all", "tree")}

            def value(way, case=case, values=values):
                values[way].add(case.value(way).values.tobytes())

            ways = {
                "all": lambda value=value: value("all"),
                "tree": lambda value=value: value("tree"),
                "asking": lambda case=case: costs.tree_pays(*case.rows, "euclidean", case.radius),
            }
            row |= interleaved(ways, repeats, warm=share == SHARES[0])
            row["same"] = len(values["all"] | values["tree"]) == 1
            pays = costs.tree_pays(*case.rows, "euclidean", case.radius)
            row["choice"] = "tree" if pays else "all"
        found.append(row)
    return found


def trees(repeats):
    """scikit-learn's tree asked for the same pairs, without sums; ours and all pairs with sums."""
    from sklearn.neighbors import KDTree

    found = []
    for d in (3, 10):
        case = Case(100_000, 10_000, d, 1e-3)
        V = case.V.astype(np.float64)

        def theirs(case=case, V=V):
            tree = KDTree(case.X.astype(np.float64))
            for lo in range(0, len(V), 1000):
                tree.query_radius(V[lo : lo + 1000], case.radius)

        ways = {"all": lambda case=case: case.value("all"), "tree": lambda case=case: case.value("tree"),
                "scikit-learn": theirs}  # fmt: skip
        found.append({"width": d, **interleaved(ways, repeats)})
    return found


def faiss_if_installed():
    """The package from the peer's environment; everything that it needs is ours."""
    python, _ = peer_environments.ready("faiss")
    if python is None:
        return None
    sys.path.extend(map(str, python.parent.parent.glob("lib/python*/site-packages")))
    return importlib.import_module("faiss")


def wide(repeats):
    """Many features: ours, and faiss, asked for the same pairs without sums."""
    faiss = faiss_if_installed()
    found = []
    for name, d in WIDE:
        free = int(name.split()[2]) if "free" in name else None
        case = Case(10_000, 10_000, d, 1e-3, free)
        ways = {way: lambda way=way, case=case: case.value(way) for way in ("all", "tree")}
        if faiss is not None:
            index = faiss.IndexFlatL2(d)
            index.add(case.X)
            cells = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, 128)
            cells.cp.min_points_per_centroid = 1
            cells.train(case.X)
            cells.add(case.X)
            cells.nprobe = 16
            ways["faiss flat"] = lambda case=case, index=index: index.range_search(
                case.V, case.radius**2
            )
            ways["faiss cells"] = lambda case=case, cells=cells: cells.range_search(
                case.V, case.radius**2
            )
        pays = costs.tree_pays(*case.rows, "euclidean", case.radius)
        row = {"name": name, **interleaved(ways, repeats),
               "choice": "tree" if pays else "all"}  # fmt: skip
        if faiss is not None:
            pairs = [len(ways[key]()[2]) for key in ("faiss flat", "faiss cells")]
            row["faiss recall"] = pairs[1] / max(1, pairs[0])
        found.append(row)
    return found


def fit(repeats, widths):
    """The constants of the cost model, nanoseconds of one core."""
    os.environ["THRESHER_THREADS"] = "1"
    every, builds, walks = [], [], []
    for d in tqdm(widths, desc="fit"):
        cases = {m: Case(40_000, m, d, 1e-3) for m in (1024, 4096)}
        ways = {m: lambda case=case: case.value("all") for m, case in cases.items()}
        seconds = interleaved(ways, 2 * repeats)  # their difference: checks and labels are left out
        every.append((d, (seconds[4096] - seconds[1024]) * 1e9 / (40_000 * 3072)))
        for share in (1e-5, 1e-3, 2e-2):
            case = Case(40_000, 4_000, d, share, None if d <= DIRECT_WIDTH else 5)
            space = Space.of(*case.rows, "euclidean", case.radius)
            ways = {
                "build": lambda case=case, space=space: BoxTree.of(case.rows[0], space),
                "value": lambda case=case: case.value("tree"),
            }
            seconds = interleaved(ways, repeats)
            groups = Groups.of(case.y.astype(np.int32), 2)
            ball = Ball(case.rows[1], 4_000, "euclidean", case.radius, "tree")
            visits = near = 0
            for block in ball.blocks(case.rows[0], groups):
                visits += len(block.visits)
                near += int(block.count([(0, 40_000, 0)]).sum())
            builds.append((d, seconds["build"] * 1e9))
            walks.append((d, visits, near, (seconds["value"] - seconds["build"]) * 1e9))
    show(every, builds, walks)


def show(every, builds, walks):
    near_pair = costs.NARROW.near
    for name, kept in [
        ("narrow", lambda d: d <= DIRECT_WIDTH),
        ("wide", lambda d: d > DIRECT_WIDTH),
    ]:
        pairs = np.array([row for row in every if kept(row[0])])
        if not len(pairs):
            continue
        a = relative(np.column_stack([np.ones(len(pairs)), pairs[:, 0]]), pairs[:, 1])
        built = np.array([row for row in builds if kept(row[0])])
        levels = np.log2(40_000 / LEAF)
        b = relative(
            40_000 * np.column_stack([np.full(len(built), levels), built[:, 0]]), built[:, 1]
        )
        d, visits, near, spent = np.array([row for row in walks if kept(row[0])]).T
        A = np.column_stack([44_000 * d, visits, visits * LEAF * d, near])
        w = relative(A, spent)
        if (
            name == "wide"
        ):  # where leaves cost little beside their products: take those from all pairs
            rest = relative(A[:, :2], spent, A[:, 2] * a[1] + A[:, 3] * near_pair)
            w = np.array([*rest, a[1], near_pair])
        near_pair = w[3]
        print(f"{name}: the walk within {np.abs(A @ w / spent - 1).mean():.0%} in the mean")
        numbers = [*a, *b, *w]
        names = [
            "all_pair",
            "all_feature",
            "build_level",
            "build_feature",
            "row_feature",
            "visit",
            "pair_feature",
            "near",
        ]
        print(
            f"{name.upper()} = Costs("
            + ", ".join(f"{k}={x:.3g}" for k, x in zip(names, numbers))
            + ")"
        )


def relative(A, b, known=0.0):
    """Non-negative least squares of relative errors, where `known` of b is explained already."""
    return nnls(A / b[:, None], np.maximum(0.0, 1 - known / b))[0]


def render(result):
    about = result["machine"]
    rows = [row for row in result["grid"] if "all" in row]
    lines = [
        "# A tree against all pairs",
        "",
        f"{measured('neighbors.py', about)} `tknn_shapley` with euclidean distances, normal features and two classes. Times are CPU times of all threads. The two ways took turns, and the best turn counts.",
        "",
        "## Time of a tree / time of all pairs",
        "",
        "Below 1, the tree is faster. Bold marks where `neighbors=\"auto\"` chooses the tree. A cell is empty if a run would take too long.",
        "",
    ]  # fmt: skip
    for n, m in SHAPES:
        lines += [f"{n:,} points, {m:,} validation points:", "",
                  "| features | " + " | ".join(f"{100 * s:g} % near" for s in SHARES) + " |", "|---" * (len(SHARES) + 1) + "|"]  # fmt: skip
        for d in WIDTHS:
            cells = [cell(rows, n, m, d, s) for s in SHARES]
            lines.append(f"| {d} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += auto_lines(rows)
    lines += tree_lines(result["trees"]) + wide_lines(result["wide"])
    return "\n".join(lines) + "\n"


def cell(rows, n, m, d, share):
    at = (n, m, d, share)
    for row in rows:
        if (row["points"], row["validation"], row["width"], row["share"]) == at:
            text = (
                f"{row['tree'] / row['all']:.3f}"
                if row["tree"] < row["all"]
                else f"{row['tree'] / row['all']:.1f}"
            )
            return f"**{text}**" if row["choice"] == "tree" else text
    return ""


def auto_lines(rows):
    asked = [row["asking"] / row["all"] for row in rows if row["choice"] == "all"]
    right = [row["choice"] == min(("all", "tree"), key=row.get) for row in rows]
    lost = [row[row["choice"]] / min(row["all"], row["tree"]) for row in rows]
    worst = rows[int(np.argmax(lost))]
    ratio = [row["predicted"] / (row["tree"] * 1e9) for row in rows]
    return [
        "## What \"auto\" chooses",
        "",
        f"\"auto\" chose the faster way in {sum(right)} of {len(rows)} cases. At worst, it took {max(lost):.2f} times as long as "
        f"the faster way ({worst['width']} features, {100 * worst['share']:g} % near, {worst['validation']:,} validation points), "
        f"and on average over all cases {np.mean(lost):.3f} times. Where it chose all pairs, choosing took "
        f"{100 * np.median(asked):.1f} % of their time in the median and {100 * max(asked):.1f} % at most. The model of costs "
        f"predicts {np.median(ratio):.2f} times the tree's time in the median ({min(ratio):.2f} to {max(ratio):.2f}).",
        "",
        f"The bits were the same in {sum(row['same'] for row in rows)} of {len(rows)} cases.",
        "",
    ]  # fmt: skip


def tree_lines(rows):
    lines = [
        "## scikit-learn's tree",
        "",
        "100,000 points and 10,000 validation points, 0.1 % of the pairs near. Figures are times divided by that of all pairs. For "
        "scikit-learn, that is the time to build a `KDTree` and to call `query_radius`, before anything is summed.",
        "",
        "| features | ours | scikit-learn |",
        "|---|---|---|",
    ]
    lines += [
        f"| {r['width']} | {r['tree'] / r['all']:.2f} | {r['scikit-learn'] / r['all']:.2f} |"
        for r in rows
    ]
    return [*lines, ""]


def wide_lines(rows):
    names = ["tree", "faiss flat", "faiss cells"]
    lines = [
        "## Many features",
        "",
        "10,000 points and 10,000 validation points, 0.1 % of the pairs near. Figures are times divided by that of all pairs. A tree "
        "has its boxes in 16 directions. faiss finds pairs in float32, without the pair rule, before anything is summed: "
        "`IndexFlatL2` all of them, and `IndexIVFFlat` those in 16 of 128 cells. The time to build its index is left out.",
        "",
        "| data | auto chooses | tree | faiss `IndexFlatL2` | faiss `IndexIVFFlat` (recall) |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        tree, flat, cells = (
            f"{row[k] / row['all']:.2f}" if k in row else "not installed" for k in names
        )
        recall = f" ({row['faiss recall']:.2f})" if "faiss recall" in row else ""
        lines.append(f"| {row['name']} | {row['choice']} | {tree} | {flat} | {cells}{recall} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--fit", action="store_true", help="print the constants of the cost model")
    parser.add_argument("--widths", default="2,3,5,8,10,14,20,32,64,128", help="of --fit")
    parser.add_argument(
        "--sections", default="grid,trees,wide", help="of a run; the others are kept"
    )
    arguments = parser.parse_args()
    if arguments.fit:
        fit(arguments.repeats, [int(d) for d in arguments.widths.split(",")])
        return
    stored = FOLDER / "neighbors.json"
    result = json.loads(stored.read_text()) if stored.exists() else {}
    result["machine"] = machine()
    for section in arguments.sections.split(","):
        result[section] = {"grid": grid, "trees": trees, "wide": wide}[section](arguments.repeats)
        stored.write_text(json.dumps(result, indent=1) + "\n")
    page = render(result)
    (FOLDER / "neighbors.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
