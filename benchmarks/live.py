"""Updates of single points, and the values of a million of them, against bare limits of the machine.

    python benchmarks/live.py [--repeats 5] [--points 1000000]

Contenders take turns and each is given its best turn. The limit of an update is the bare float64 product of one row
with the validation set, on one thread; that of a valuation is `tknn_shapley` on the same points. Writes
results/live.json and results/live.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import thresher as th

sys.path.insert(0, str(Path(__file__).parent))
import cases
from provenance import machine, measured
from report import table
from run import interleaved

HERE = Path(__file__).parent
UPDATES = [(100, 10), (1_000, 10), (10_000, 10), (100, 100), (1_000, 100), (10_000, 100)]
VALUED = [(100, 10), (1_000, 10)]
COMMITS = (1, 100, 1_000)
SLICE = 20  # updates that are timed together


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def updates(m, d, repeats, folder):
    """Microseconds an update, of counts and of a store, and of the bare product."""
    n = max(200, min(2_000, 2_000_000 // m))
    case = cases.make(n, m, d)
    rows, V, labels = case.X.astype(np.float64), case.V.astype(np.float64), case.y.tolist()
    public = {"radius": case.radius["cosine"], "classes": [0, 1]}
    counts = th.NeighborCounts(case.V, case.y_val, **public)
    live = th.LiveCounts.create(folder, case.V, case.y_val, **public)
    best = {}

    def each(name, call):
        """Best of slices that are shorter than what another process takes at a time."""
        for lo in range(0, n, SLICE):
            start = time.perf_counter()
            for i in range(lo, lo + SLICE):
                call(i)
            best[name] = min(best.get(name, float("inf")), (time.perf_counter() - start) / SLICE)

    with threadpool_limits(1):
        for _ in range(repeats + 1):
            each("product", lambda i: V @ rows[i])
            each("counts add", lambda i: counts.add(rows[i : i + 1], [labels[i]]))
            each("counts remove", lambda i: counts.remove(rows[i : i + 1], [labels[i]]))
            each("add", lambda i: live.add(i, rows[i], labels[i]))
            each("relabel", lambda i: live.relabel(i, 1 - labels[i]))
            each("remove", live.remove)
            live.snapshot()
        live.verify()
    live.close()
    return {name: seconds * 1e6 for name, seconds in best.items()}


def commits(repeats, folder):
    """Updates a second that are on the disk, at (1000, 10), and the bare fsync of as many bytes."""
    case = cases.make(2_000, 1_000, 10)
    rows, labels = case.X.astype(np.float64), case.y.tolist()
    live = th.LiveCounts.create(folder, case.V, case.y_val, radius=0.5)
    best, bare = dict.fromkeys(COMMITS, 0.0), dict.fromkeys(COMMITS, float("inf"))
    for _ in range(repeats):
        for every in COMMITS:
            n = min(2_000, 100 * every)
            start = time.perf_counter()
            for i in range(n):
                live.add(i, rows[i], labels[i])
                if (i + 1) % every == 0:
                    live.commit()
            best[every] = max(best[every], n / (time.perf_counter() - start))
            for i in range(n):
                live.remove(i)
            live.snapshot()
            bare[every] = min(
                bare[every], bare_fsync(folder.with_suffix(".bare"), bytes(102 * every))
            )
    live.close()
    return {str(n): {"per second": best[n], "fsync": bare[n]} for n in COMMITS}


def bare_fsync(path, content):
    with path.open("ab", buffering=0) as file:
        file.write(content)
        start = time.perf_counter()
        for _ in range(20):
            file.write(content)
            os.fsync(file.fileno())
        return (time.perf_counter() - start) / 20


def valued(points, m, d, repeats, folder):
    """Seconds to value all points of a store, to write and to open it; of `tknn_shapley` beside."""
    case = cases.make(points, m, d)
    public = {"radius": case.radius["cosine"], "classes": [0, 1]}
    with th.LiveCounts.create(folder, case.V, case.y_val, dtype="float32", **public) as live:
        told = {"fill": seconds_of(lambda: live.add_many(range(points), case.X, case.y))}
        told["commit"] = seconds_of(live.commit)
    with th.LiveCounts.open(folder) as live:
        plain = lambda: th.tknn_shapley(case.X, case.y, case.V, case.y_val, **public)  # noqa: E731
        told |= interleaved(
            {"values": live.values, "tknn_shapley": plain, "prices": live.price_list}, 2 * repeats
        )
        ours, theirs = live.values(), plain()
        told["same bits"] = ours.values.tobytes() == theirs.values.tobytes()
        told["snapshot"] = seconds_of(live.snapshot)
    told["open"] = seconds_of(lambda: th.LiveCounts.open(folder).close())
    told["bytes"] = sum(path.stat().st_size for path in folder.iterdir())
    return told


def render(result):
    about = result["machine"]
    rows = []
    for shape, us in result["updates"].items():
        rows.append((shape, f"{us['product']:.1f}",
                     *(f"{us[name]:.1f} ({us[name] / us['product']:.1f})"
                       for name in ("counts add", "counts remove", "add", "relabel", "remove")),
                     f"{1e6 / us['add']:,.0f}"))  # fmt: skip
    durable = [
        (every, f"{told['per second']:,.0f}", f"{told['fsync'] * 1e3:.2f}",
         f"{float(every) / told['per second'] / told['fsync']:.1f}")
        for every, told in result["commits"].items()
    ]  # fmt: skip
    million = [
        (shape, f"{t['values']:.2f}", f"{t['tknn_shapley']:.2f}", f"{t['values'] / t['tknn_shapley']:.2f}",
         "yes" if t["same bits"] else "NO", f"{t['prices'] * 1e3:.2f}", f"{t['fill']:.1f}", f"{t['commit']:.1f}",
         f"{t['snapshot']:.1f}", f"{t['open']:.1f}", f"{t['bytes'] / 1e6:.0f}")
        for shape, t in result["valued"].items()
    ]  # fmt: skip
    lines = [
        "# What an update of one point costs", "",
        f"{measured('live.py', about)} Contenders took turns, and the best turn counts. M is the number of validation points, and "
        "d that of features. Distances are cosine, with 5 % of the points within the radius.", "",
        "## Microseconds an update", "",
        "*product* is the bare float64 product of one row with the validation set, on one thread. In brackets is how many times "
        "as long as that an update takes. *counts* are updates of `NeighborCounts`. The others are updates of `LiveCounts`, "
        "without a commit.", "",
        *table(("(M, d)", "product", "counts add", "counts remove", "add", "relabel", "remove", "adds a second"), rows),
        "## Updates a second that survive a power cut, (1000, 10)", "",
        "*fsync* is the time to write and sync as many bytes as one commit makes durable. The ratio is how many times as long "
        "a commit takes, with its updates.", "",
        *table(("commit every", "adds a second", "fsync, ms", "ratio"), durable),
        f"## {result['points']:,} points valued again, seconds", "",
        "*ratio* is `values` over `tknn_shapley` on the same points. *prices* is the price list alone.", "",
        *table(("(M, d)", "values", "tknn_shapley", "ratio", "same bits", "prices, ms"), [row[:6] for row in million]),
        "*fill* is `add_many` of all points. *MB* is the size of the file.", "",
        *table(("(M, d)", "fill", "commit", "snapshot", "open", "MB"), [(row[0], *row[6:]) for row in million]),
    ]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--points", type=int, default=1_000_000)
    arguments = parser.parse_args()
    result = {"machine": machine(), "points": arguments.points, "updates": {}, "valued": {}}
    folder = Path(tempfile.mkdtemp(dir=HERE))  # on a disk: /tmp may be memory
    try:
        for shape in tqdm(UPDATES):
            place = folder / "updates {} {}".format(*shape)
            result["updates"][str(shape)] = updates(*shape, arguments.repeats, place)
        result["commits"] = commits(arguments.repeats, folder / "commits")
        for shape in tqdm(VALUED):
            place = folder / "valued {} {}".format(*shape)
            result["valued"][str(shape)] = valued(
                arguments.points, *shape, arguments.repeats, place
            )
    finally:
        shutil.rmtree(folder)
    (HERE / "results" / "live.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "results" / "live.md").write_text(render(result))
    print(render(result))


if __name__ == "__main__":
    main()
