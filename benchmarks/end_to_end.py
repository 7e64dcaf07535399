"""`thresher value` from file to file, against reading the file and `tknn_shapley` on its arrays.

    python benchmarks/end_to_end.py [--repeats 3] [--rows 1000000] [--part files|report]

Both run in processes of their own, in turns, and each is given its best turn. The command is timed from its start to
its end; *start* is the same command on 100 rows, which is imports and the loading of compiled code. What it is compared
with is timed inside its process, after one run that loads the compiled code: pyarrow reads the points, and
`tknn_shapley` values the arrays. *script* is a bare program that does just that once, from its start to its end: like
the command, it pays for imports. The page is opened in Chromium, if selenium and a driver are there. Writes
results/end_to_end.json and results/end_to_end.md; with --part, the other part stays as it was.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from tqdm import tqdm

import thresher as th

sys.path.insert(0, str(Path(__file__).parent))
import cases
from provenance import machine, measured
from report import table

HERE = Path(__file__).parent
VALIDATION, WIDTH = 1_000, 10
REPORTED = 100_000  # rows of the run with a report
TARGETS = {"Parquet": 3.0, "CSV": 4.0, "report": 2.0, "open": 2.0, "megabytes": 3.0}
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run")
LOADED = "const at = performance.getEntriesByType('navigation')[0]; return at.loadEventEnd / 1000"
INSTALLED = {
    k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
}  # keeps compiled modules
SCRIPT = """
import sys
import numpy as np
from pyarrow import csv, parquet
import thresher as th

def read(path):
    found = (csv.read_csv if path.endswith(".csv") else parquet.read_table)(path)
    return np.column_stack([found.column(j).to_numpy() for j in range(10)]), found.column("y").to_numpy()

points, validation, radius = sys.argv[1:]
th.tknn_shapley(*read(points), *read(validation), radius=float(radius))
"""
WORDS = 10  # classes of the case with words as labels


def columns(X, labels):
    found = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return pa.table(found | {"y": labels})


def write_files(folder, rows):
    """Points and validation set, as Parquet, as CSV, and with ten words as labels."""
    case = cases.make(rows, VALIDATION, WIDTH)
    radius = case.radius["cosine"]
    X, V = (np.round(each.astype(np.float64), 6) for each in (case.X, case.V))
    sides = {"points": (X, case.y), "val": (V, case.y_val)}
    for name, (features, labels) in sides.items():
        found = columns(features, labels)
        parquet.write_table(found, folder / f"{name}.parquet")
        csv.write_csv(found, folder / f"{name}.csv")
        words = [f"class {k}" for k in range(WORDS)]
        tenth = np.floor((features[:, 0] + features[:, 1]) * 2).astype(np.int64) % WORDS
        named = pa.array(words).take(pa.array(tenth))
        parquet.write_table(columns(features, named), folder / f"{name}-words.parquet")
    for name, count in (("few", REPORTED), ("start", 100)):
        parquet.write_table(columns(X[:count], case.y[:count]), folder / f"{name}.parquet")
    return radius


def read_arrays(path):
    read = csv.read_csv if path.suffix == ".csv" else parquet.read_table
    found = read(path)
    X = np.column_stack([found.column(j).to_numpy() for j in range(WIDTH)])
    return X, found.column("y")


def time_arrays(points, validation, radius):
    """Print the seconds that reading the points takes, and valuing them."""
    X_val, y_val = read_arrays(validation)
    told = []
    for _ in range(2):  # the first run loads the compiled code
        start = time.perf_counter()
        X, y = read_arrays(points)
        read = time.perf_counter()
        labels = y.to_numpy() if pa.types.is_integer(y.type) else y
        th.tknn_shapley(X, labels, X_val, y_val, radius=radius)
        told.append({"read": read - start, "tknn_shapley": time.perf_counter() - read})
    print(json.dumps(told[-1]))


def seconds_of(words):
    start = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, env=INSTALLED)
    return time.perf_counter() - start


def command(points, validation, radius, *more):
    out = points.parent / "values.parquet"
    words = ["value", str(points), "--validation", str(validation), "--radius", repr(radius)]
    return [sys.executable, "-m", "thresher", *words, "--out", str(out), "--force", *more]


def measure_files(points, validation, radius, repeats):
    """Seconds of the command, of its start, and of reading and valuing alone; the best of turns."""
    own = [sys.executable, str(Path(__file__)), "--arrays", str(points), str(validation)]
    script = [sys.executable, "-c", SCRIPT, str(points), str(validation), repr(radius)]
    best = dict.fromkeys(("command", "start", "script", "arrays"), float("inf"))
    few = points.with_name("start.parquet"), points.with_name("val.parquet")
    for turn in range(repeats + 1):
        spent, start = (seconds_of(command(*pair, radius)) for pair in ((points, validation), few))
        bare = seconds_of(script)
        said = subprocess.run([*own, repr(radius)], check=True, capture_output=True, text=True)
        told = json.loads(said.stdout)
        if turn:  # the first turn compiles, and fills the cache of files
            best["command"] = min(best["command"], spent)
            best["start"] = min(best["start"], start)
            best["script"] = min(best["script"], bare)
            if sum(told.values()) < best["arrays"]:
                best |= told | {"arrays": sum(told.values())}
    work = best["command"] - best["start"]
    return best | {"ratio": best["command"] / best["arrays"], "work": work / best["arrays"]}


def measure_report(words, page, repeats):
    """Seconds of a command without and with a report, and what the page is like; the best of turns."""
    best = {"without": float("inf"), "with": float("inf")}
    for turn in range(repeats + 1):
        plain = seconds_of(words)
        shown = seconds_of([*words, "--report", str(page)])
        if turn:
            best = {"without": min(best["without"], plain), "with": min(best["with"], shown)}
    about = {"megabytes": page.stat().st_size / 1e6, "open": seconds_to_open(page, repeats)}
    return best | {"ratio": best["with"] / best["without"]} | about


def seconds_to_open(page, repeats):
    """From asking for the page until it is loaded and its scripts have run; None without a browser."""
    driver = shutil.which("chromedriver")
    if driver is None or importlib.util.find_spec("selenium") is None:
        return None
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        found = []
        for _ in range(repeats + 1):
            browser.get(page.as_uri())
            found.append(browser.execute_script(LOADED))
        return min(found[1:])
    finally:
        browser.quit()


def measure_reports(folder, radius, repeats):
    """By a radius with a validation set, and by a forest without one."""
    few, validation, page = (folder / name for name in ("few.parquet", "val.parquet", "r.html"))
    out = ["--out", str(folder / "values.parquet"), "--force"]
    forest = [sys.executable, "-m", "thresher", "value", str(few), "--method", "forest", *out]
    return {
        "tknn": measure_report(command(few, validation, radius), page, repeats),
        "forest": measure_report(forest, page, repeats),
    }


def render(result):
    about = result["machine"]
    rows = [
        (name, f"{t['command']:.2f}", f"{t['start']:.2f}", f"{t['script']:.2f}",
         f"{t['read']:.2f} + {t['tknn_shapley']:.2f}", f"{t['command'] / t['script']:.2f}",
         f"{t['ratio']:.2f} ({t['work']:.2f})", f"{TARGETS[name]:g}" if name in TARGETS else "")
        for name, t in result["files"].items()
    ]  # fmt: skip
    pages = [
        (name, f"{t['without']:.2f}", f"{t['with']:.2f}", f"{t['ratio']:.2f}", f"{t['megabytes']:.2f}",
         "" if t["open"] is None else f"{t['open']:.2f}")
        for name, t in result["report"].items()
    ]  # fmt: skip
    lines = [
        "# How long `thresher value` takes from file to file", "",
        f"{measured('end_to_end.py', about)} Times are in seconds, the best of several turns. Every ratio is between two times of "
        "the same run.", "",
        f"## {result['rows']:,} rows, {VALIDATION:,} validation points, {WIDTH} features", "",
        "*command* is `thresher value POINTS --validation VAL --radius R --out values.parquet`, from the start of its "
        "process to its end. *start* is the same command on 100 rows: it imports packages and loads compiled code. *script* "
        "is a bare program that reads and values the points, from the start of its process to its end. *arrays* is only "
        "reading the points with pyarrow, plus `tknn_shapley`, after everything is loaded. *to script* and *to arrays* are "
        "how many times as long as these the command takes. The figure in brackets leaves out *start*. *at most* is the "
        "target for *to arrays*.", "",
        *table(("points", "command", "start", "script", "arrays", "to script", "to arrays", "at most"), rows),
        f"## {REPORTED:,} rows, with and without `--report`", "",
        f"With a report, the command should take at most {TARGETS['report']:g} times as long as without one. The page should "
        f"be smaller than {TARGETS['megabytes']:g} MB, and open in Chromium within {TARGETS['open']:g} seconds, including its "
        "scripts.", "",
        *table(("method", "without", "with", "ratio", "MB", "opens in"), pages),
    ]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--part", choices=["files", "report"])
    parser.add_argument("--arrays", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.arrays:
        points, validation, radius = arguments.arrays
        time_arrays(Path(points), Path(validation), float(radius))
        return
    kept = HERE / "results" / "end_to_end.json"
    result = json.loads(kept.read_text()) if arguments.part else {}
    result |= {"machine": machine(), "rows": arguments.rows}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        radius = write_files(folder, arguments.rows)
        pairs = {
            "Parquet": ("points.parquet", "val.parquet"),
            "CSV": ("points.csv", "val.csv"),
            f"Parquet, {WORDS} words as labels": ("points-words.parquet", "val-words.parquet"),
        }
        if arguments.part != "report":
            result["files"] = {
                title: measure_files(folder / points, folder / val, radius, arguments.repeats)
                for title, (points, val) in tqdm(pairs.items())
            }
        if arguments.part != "files":
            result["report"] = measure_reports(folder, radius, arguments.repeats)
    kept.write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "results" / "end_to_end.md").write_text(render(result))
    print(render(result))


if __name__ == "__main__":
    main()
