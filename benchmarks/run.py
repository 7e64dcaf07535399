"""Measure Thresher against the limits of the machine and against its peers; see README.md here.

    python benchmarks/run.py [--repeats 5] [--shapes 0,1,2] [--sections shapes,growth]

Every figure is a ratio of times measured in this run: contenders take turns, and each is given its best
turn. Writes results/latest.json and results/latest.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import thresher as th

sys.path.insert(0, str(Path(__file__).parent))
import cases
import peer_environments
from provenance import machine
from report import render

HERE = Path(__file__).parent


def turns(contenders, repeats):
    """Seconds of every turn of each contender; they take turns."""
    found = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            if turn:  # the first turn warms up: compiles, touches memory
                found[name].append(time.perf_counter() - start)
    return found


def interleaved(contenders, repeats):
    """Seconds of the best turn of each contender."""
    return {name: min(seconds) for name, seconds in turns(contenders, repeats).items()}


def ranges(seconds, runs=5):
    """The lowest and the highest ratio of each contender to each limit, over several runs.

    The turns are cut in runs, and a ratio is that of the best turns of one run.
    """
    parts = {name: np.array_split(all_turns, runs) for name, all_turns in seconds.items()}
    best = {
        name: np.array([part.min() for part in cut if len(part)]) for name, cut in parts.items()
    }
    return {
        name: {limit: [float(f((own / best[limit]).tolist())) for f in (min, max)]
               for limit in ("product", "argsort")}
        for name, own in best.items()
    }  # fmt: skip


def limits(case):
    """What the hardware needs for the bare parts of the work."""
    columns = np.ascontiguousarray(case.V.T)
    step = max(1, (1 << 26) // len(case.V))
    out = np.empty((min(step, len(case.X)), len(case.V)), np.float32)

    def product():
        for lo in range(0, len(case.X), step):
            part = case.X[lo : lo + step]
            np.dot(part, columns, out=out[: len(part)])

    def product_one_thread():
        with threadpool_limits(1):
            product()

    def comparison():
        passes = -(-len(case.X) // len(out))
        for _ in range(passes):
            np.greater_equal(out, 1.0)

    return {"product, BLAS threads": product, "product, one thread": product_one_thread,
            "comparison pass": comparison}  # fmt: skip


def sorting(case):
    """One np.argsort for each validation point, on one thread."""
    rows = np.random.default_rng(0).random((min(8, len(case.V)), len(case.X)))

    def argsort():
        for row in rows:
            np.argsort(row)

    return argsort, len(case.V) / len(rows)


def ours(case, *, many):
    calls = {}
    for metric in ("euclidean", "cosine"):
        radius = case.radius[metric]
        calls[f"tknn {metric}"] = lambda m=metric, r=radius: th.tknn_shapley(
            case.X, case.y, case.V, case.y_val, radius=r, metric=m
        )
        for utility in ("soft-label", "jia2019") if not many else ("soft-label",):
            calls[f"knn {utility} {metric}"] = lambda m=metric, u=utility: th.knn_shapley(
                case.X, case.y, case.V, case.y_val, k=cases.K, metric=m, utility=u
            )
    if case.X.shape[1] > 24:
        calls["knn float32 order euclidean"] = lambda: th.knn_shapley(
            case.X, case.y, case.V, case.y_val, k=cases.K, metric="euclidean", precision="float32"
        )
    return calls


def plain_numpy(case):
    radius = case.radius["euclidean"]
    arguments = case.X, case.y, case.V, case.y_val
    return {
        "numpy tknn euclidean": lambda: cases.numpy_tknn(*arguments, radius),
        "numpy knn jia2019 euclidean": lambda: cases.numpy_knn(*arguments),
    }


def measure_shape(shape, repeats):
    case = cases.make(*shape)
    pairs = shape[0] * shape[1]
    many = pairs > 2e8
    argsort, times = sorting(case)
    contenders = {**limits(case), "argsort": argsort, **ours(case, many=many)}
    if not many:
        contenders |= plain_numpy(case)
    repeats = max(5, 2 * repeats) if pairs * shape[2] > 1e8 else 8 * repeats
    found = {name: np.array(all_turns) for name, all_turns in turns(contenders, repeats).items()}
    found["argsort"] = found["argsort"] * times
    found["product"] = np.minimum(found["product, BLAS threads"], found["product, one thread"])
    best = {name: float(all_turns.min()) for name, all_turns in found.items()}
    return {**best, "ranges": ranges(found)}


def differences(shapes):
    """Largest difference from plain float64 references, ties and grids included."""
    found = {}
    for name, case in [("grid", cases.make_grid())] + [(str(s), cases.make(*s)) for s in shapes]:
        classes = int(case.y.max()) + 1
        for metric in ("euclidean", "cosine"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", th.TwinWarning)
                got = th.tknn_shapley(
                    case.X, case.y, case.V, case.y_val, radius=case.radius[metric], metric=metric
                ).values
                want = cases.reference_tknn(case, metric, classes)
                found[f"{name} tknn {metric}"] = float(abs(got - want).max())
                if name == "grid" and metric == "cosine":
                    continue  # quotients of square roots: equal distances are no longer equal floats
                for utility in ("soft-label", "jia2019"):
                    got = th.knn_shapley(
                        case.X, case.y, case.V, case.y_val, k=cases.K, metric=metric,
                        utility=utility,
                    ).values  # fmt: skip
                    want = cases.reference_knn(case, metric, utility, classes)
                    found[f"{name} knn {utility} {metric}"] = float(abs(got - want).max())
    return found


def growth(repeats):
    """Time at N, 2N, 4N, 8N over time at N."""
    found = {}
    for name, n, m, d in [("d=10", 125_000, 100, 10), ("d=1024", 6_250, 1_000, 1024)]:
        contenders = {}
        for factor in (1, 2, 4, 8):
            case = cases.make(n * factor, m, d)
            calls = ours(case, many=True)
            for method in ("tknn euclidean", "knn soft-label euclidean"):
                contenders[f"{method.split()[0]}, {name}, {factor}N"] = calls[method]
        seconds = interleaved(contenders, repeats)
        found |= {key: s / seconds[key.rsplit(",", 1)[0] + ", 1N"] for key, s in seconds.items()}
    return found


MEMORY = """
import sys, json, warnings
sys.path.insert(0, {here!r})
import numpy as np, cases, thresher as th
n, m, d, method = {n}, {m}, {d}, {method!r}
def call(case):
    if method == "tknn":
        th.tknn_shapley(case.X, case.y, case.V, case.y_val, radius=case.radius["euclidean"], metric="euclidean")
    else:
        th.knn_shapley(case.X, case.y, case.V, case.y_val, metric="euclidean")
call(cases.make(2500, 600, d))  # what is imported and compiled is not memory of the work
case = cases.make(n, m, d)
status = lambda key: next(int(x.split()[1]) * 1024 for x in open("/proc/self/status") if x.startswith(key))
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
call(case)
print(status("VmHWM") - before)
"""


def memory(shapes):
    """Peak memory above the input, each in a process of its own."""
    found = {}
    for n, m, d in shapes:
        for method in ("tknn", "knn"):
            code = MEMORY.format(here=str(HERE), n=n, m=m, d=d, method=method)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            found[f"{method} {(n, m, d)}"] = int(done.stdout) if done.returncode == 0 else None
    return found


def peers(repeats):
    """Seconds and values of the peers, each in its own environment, beside ours."""
    found = {}
    for name, environment in peer_environments.PEERS.items():
        if not environment.shapes:
            continue
        python, trouble = peer_environments.ready(name)
        if python is None:
            found[name] = {"installed": False, "why": trouble}
            continue
        found[name] = {"installed": True, "about": environment.about, "shapes": {}}
        for shape in environment.shapes:
            case = cases.make(*shape)
            found[name]["shapes"][str(shape)] = beside(name, python, case, repeats)
    return found


def beside(name, python, case, repeats):
    k = 1 if name == "datascope" else cases.K
    radius = case.radius["euclidean"]
    threshold = name == "shapiq_tknn"
    if threshold:
        call = lambda: th.tknn_shapley(  # noqa: E731
            case.X, case.y, case.V, case.y_val, radius=radius, metric="euclidean"
        )
    else:
        call = lambda: th.knn_shapley(  # noqa: E731
            case.X, case.y, case.V, case.y_val, k=k, metric="euclidean", utility="jia2019"
        )
    best = interleaved({"ours": call}, 3 * repeats)["ours"]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "data.npz", Path(folder) / "values.npy"
        np.savez(source, X=case.X, y=case.y, V=case.V, y_val=case.y_val, radius=radius, k=k)
        script = str(HERE / "peers" / "peer.py")
        command = [str(python), script, name, str(source), str(target), "2"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        except subprocess.TimeoutExpired:
            return {"failed": "took more than 900 seconds"}
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1]}
        told = json.loads(done.stdout.strip().splitlines()[-1])
        theirs = np.load(target)
    best = min(best, interleaved({"ours": call}, 3 * repeats)["ours"])
    reference = call().values
    if (
        name == "datascope"
    ):  # another utility of the empty set, hence the same values plus a constant
        theirs = theirs - (theirs - reference).mean()
    gap = None if name == "cleanlab" else float(abs(theirs - reference).max())
    return {"seconds": min(told["seconds"]), "ours": best, "ratio": min(told["seconds"]) / best,
            "difference": gap, "largest value": float(abs(reference).max()), "peak": told["peak"]}  # fmt: skip


def small():
    """The smallest shape, everything included, in milliseconds."""
    case = cases.make(*cases.SHAPES[0])
    calls = ours(case, many=False)
    return {name: 1e3 * s for name, s in interleaved(calls, 50).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--shapes", help="indices into cases.SHAPES, such as 0,3")
    parser.add_argument(
        "--sections", default=",".join(SECTIONS), help="of a run; the others are kept"
    )
    arguments = parser.parse_args()
    chosen = cases.SHAPES
    if arguments.shapes:
        chosen = [cases.SHAPES[int(i)] for i in arguments.shapes.split(",")]
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    stored = folder / ("partial.json" if arguments.shapes else "latest.json")
    result = json.loads(stored.read_text()) if stored.exists() else {}
    result["machine"] = machine()
    for section in tqdm(arguments.sections.split(","), desc="sections"):
        result[section] = SECTIONS[section](chosen, arguments.repeats)
        stored.write_text(json.dumps(result, indent=1) + "\n")
        stored.with_suffix(".md").write_text(render(result))
    print(render(result))


SECTIONS = {
    "shapes": lambda chosen, repeats: {str(s): measure_shape(s, repeats) for s in tqdm(chosen)},
    "small": lambda chosen, repeats: small(),
    "growth": lambda chosen, repeats: growth(repeats),
    "memory": lambda chosen, repeats: memory(chosen),
    "difference": lambda chosen, repeats: differences([s for s in chosen if s[0] * s[1] <= 1e8]),
    "peers": lambda chosen, repeats: peers(repeats),
}


if __name__ == "__main__":
    main()
