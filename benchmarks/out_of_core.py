"""Points read in parts against points in memory: time, read-ahead, and peak memory.

    python benchmarks/out_of_core.py [--rows 1000000] [--repeats 3]

The same float32 rows as an array, a memmap, Parquet and CSV; each run in a process of its own, after one run that
compiles. Contenders take turns, and each is given its best turn. Times are of the call alone; the memory is the
largest RssAnon of the process, sampled every 2 ms. Files are in the page cache, so reading costs decoding and copying.
Writes results/out-of-core.json and results/out-of-core.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

sys.path.insert(0, str(Path(__file__).parent))
from provenance import machine, measured
from report import table

HERE = Path(__file__).parent
WIDTH = 100
VALIDATION = (100, 1000)
FILES = 8
CHILD = """
import json, re, sys, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import thresher as th
from thresher.passes.in_parts import value_in_parts

folder, kind, points, memory, ahead = sys.argv[1:6]
width = int(sys.argv[6])
most = 0
def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
def watch():
    global most
    while True:
        most = max(most, anonymous())
        time.sleep(0.002)

random = np.random.default_rng(1)
X_val = random.normal(size=(int(points), width)).astype(np.float32)
y_val = random.integers(0, 2, int(points))
y = np.load(f"{folder}/y.npy")
if kind in ("parquet", "csv"):
    X, y = th.Scan(f"{folder}/{kind}"), None
else:
    X = np.load(f"{folder}/x.npy", mmap_mode=None if kind == "memory" else "r")
small = np.asarray(X[:2000]) if y is not None else random.normal(size=(2000, width)).astype(np.float32)
th.tknn_shapley(small, np.arange(2000) % 2, X_val, y_val, radius=0.9)
threading.Thread(target=watch, daemon=True).start()
before, start = anonymous(), time.perf_counter()
if kind == "memory":
    found = th.tknn_shapley(X, y, X_val, y_val, radius=0.9)
else:
    found = value_in_parts(
        X, y, X_val, y_val, radius=0.9, metric="cosine", semivalue="shapley", classes=None, owners=None,
        mean=False, neighbors="all", progress=False, memory=None if memory == "none" else memory, checkpoint=None,
        threaded=ahead == "ahead",
    )
seconds = time.perf_counter() - start
import hashlib
print(json.dumps({"seconds": seconds, "peak": most, "before": before,
                  "digest": hashlib.sha256(found.values.tobytes()).hexdigest()}))
"""


def write(folder, rows):
    """The rows as x.npy, parquet/ and csv/; CSV has a tenth of them."""
    random = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (rows, WIDTH))
    y = random.integers(0, 2, rows)
    np.save(folder / "y.npy", y)
    for kind in ("parquet", "csv"):
        (folder / kind).mkdir()
    step = -(-rows // FILES)
    for number, lo in enumerate(range(0, rows, step)):
        X[lo : lo + step] = random.normal(size=(min(step, rows - lo), WIDTH))
        part = {f"x{j:02}": X[lo : lo + step, j] for j in range(WIDTH)} | {"y": y[lo : lo + step]}
        pq.write_table(
            pa.table(part), folder / "parquet" / f"{number}.parquet", row_group_size=50_000
        )
        if number == 0:
            csv.write_csv(pa.table(part).slice(0, rows // 10), folder / "csv" / "0.csv")
    X.flush()


def run(folder, kind, points, memory="none", ahead="ahead"):
    command = [sys.executable, "-c", CHILD, folder, kind, points, memory, ahead, WIDTH]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def measure(folder, repeats):
    contenders = [("memory", "none", "ahead")]
    contenders += [
        (kind, "none", ahead) for kind in ("memmap", "parquet") for ahead in ("ahead", "not ahead")
    ]
    contenders += [
        (kind, budget, "ahead") for kind in ("memmap", "parquet") for budget in ("350MB", "1GB")
    ]
    contenders += [
        ("csv", "none", "ahead"),
        ("csv", "none", "not ahead"),
        ("csv", "300MB", "ahead"),
    ]
    found = {}
    for turn in range(repeats):
        for points in VALIDATION:
            for contender in contenders:
                told = run(folder, contender[0], points, *contender[1:])
                best = found.setdefault((points, *contender), told)
                best["seconds"] = min(best["seconds"], told["seconds"])
                best["peak"] = max(best["peak"], told["peak"])
        print(f"turn {turn + 1} of {repeats}", file=sys.stderr)
    for points in VALIDATION:  # all but CSV, which has other rows, give the same bits
        digests = {
            told["digest"] for key, told in found.items() if key[0] == points and key[1] != "csv"
        }
        assert len(digests) == 1, digests
    return [
        dict(zip(("points", "kind", "memory", "ahead"), key), **told) for key, told in found.items()
    ]


def render(result):
    about = result["machine"]
    lines = [
        "# Points read in parts, against points in memory", "",
        f"{measured('out_of_core.py', about)} "
        f"{result['rows']:,} points of {WIDTH} float32 features ({result['rows'] * WIDTH * 4 / 1e6:.0f} MB), M validation "
        f"points, best of {result['repeats']} turns. CSV has a tenth of the rows, so its ratio compares the times for one row. All "
        "runs on the same rows gave the same bits. The mean load of the machine was "
        f"{result['load']:.1f}. Other programs share the machine, so small differences mean little.", "",
        "Two passes compute every distance twice. So even if reading took no time, a ratio of up to 2 would be expected. The peak "
        "is that of the whole process, including the interpreter and all packages (about 120 MB), but without pages of files. For "
        "`memory`, it includes the array.", "",
    ]  # fmt: skip
    base = {each["points"]: each for each in result["runs"] if each["kind"] == "memory"}
    rows = []
    for each in result["runs"]:
        share = 10 if each["kind"] == "csv" else 1
        ratio = share * each["seconds"] / base[each["points"]]["seconds"]
        ahead = "" if each["kind"] == "memory" else ("yes" if each["ahead"] == "ahead" else "no")
        budget = "" if each["memory"] == "none" else each["memory"]
        rows.append(
            [
                each["points"],
                each["kind"],
                budget,
                ahead,
                f"{each['seconds']:.2f}",
                f"{ratio:.2f}",
                f"{each['peak'] / 1e6:.0f}",
            ]
        )
    head = ["M", "rows in", "memory=", "read ahead", "s", "times in memory", "peak MB"]
    lines += table(head, rows)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, arguments.rows)
        start, load = time.time(), []
        load.append(float(Path("/proc/loadavg").read_text().split()[0]))
        runs = measure(folder, arguments.repeats)
        load.append(float(Path("/proc/loadavg").read_text().split()[0]))
    result = {"machine": machine(), "rows": arguments.rows, "repeats": arguments.repeats, "runs": runs,
              "load": sum(load) / 2, "seconds": time.time() - start}  # fmt: skip
    (HERE / "results" / "out-of-core.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "results" / "out-of-core.md").write_text(render(result))


if __name__ == "__main__":
    main()
