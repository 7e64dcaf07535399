"""What a forest's values and findings cost: growing, valuing, memory, and cleanlab beside it.

    python benchmarks/forest_speed.py [--sizes 100000,1000000]

Data: normal features, four classes by make_classification, 8 % of the labels wrong. Every figure is
of one run on one machine. cleanlab wants probabilities from five folds, of a forest of 200 trees or
of LightGBM as it comes: one fold is measured, its time is taken five times, and finding the issues
is added. Writes results/forest-speed.json and .md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import peer_environments
from provenance import store
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.findings.leaf_findings import explain_votes
from thresher.forest import forest_votes
from thresher.neighbors import growing

HERE = Path(__file__).parent
FEATURES, TREES = 20, 200
MODELS = "200 trees", "LightGBM"  # whose five folds cleanlab gets
MEMORY = """
import sys; sys.path.insert(0, {here!r})
import forest_speed, thresher as th
from peers.peer import peak
X, y, _ = forest_speed.case({rows})
th.forest_findings(X[:2000], y[:2000], trees=4)
before = peak()
th.forest_findings(X, y, trees={trees})
print(peak() - before)
"""


def case(rows: int):
    """Features, labels, and which of these are wrong."""
    X, y = make_classification(
        rows, FEATURES, n_informative=10, n_redundant=2, n_classes=4, class_sep=1.5, flip_y=0,
        random_state=0,
    )  # fmt: skip
    noisy, wrong = th.flip_labels(y, fraction=0.08, seed=1)
    return X.astype(np.float32), noisy, wrong


class Clock:
    """Seconds, and seconds of all cores together, since the last look."""

    def __init__(self):
        self.last = np.array([time.perf_counter(), time.process_time()])

    def look(self) -> dict[str, float]:
        now = np.array([time.perf_counter(), time.process_time()])
        (seconds, cores), self.last = (now - self.last).tolist(), now
        return {"seconds": seconds, "CPU": cores}


def ours(X, y, grown_from=growing.GROWN_FROM):
    """Times to grow and to value, and the findings."""
    kept, growing.GROWN_FROM = growing.GROWN_FROM, grown_from
    settings = {"forest": None, "trees": TREES, "folds": 2, "seed": 0, "classes": None}
    clock = Clock()
    votes, about = forest_votes(X, y, None, None, progress=False, **settings)
    grown = clock.look()
    valuation, findings = explain_votes(votes, "forest-shapley", about, "shapley")
    growing.GROWN_FROM = kept
    return grown, clock.look(), valuation, findings


def scikit_learn(X, y):
    """The time that scikit-learn takes to grow as many trees on all rows."""
    clock = Clock()
    RandomForestClassifier(TREES, random_state=0, n_jobs=2).fit(X, y)
    return clock.look()


def cleanlab(X, y):
    """For each model, five times the time of one fold of five, and finding the issues."""
    python, trouble = peer_environments.ready("cleanlab_fold")
    if python is None:
        print(trouble)
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "data.npz", Path(folder) / "found.npy"
        np.savez(source, X=X, y=y)
        script = str(HERE / "peers" / "peer.py")
        command = [str(python), script, "cleanlab_fold", str(source), str(target), "1"]
        subprocess.run(command, capture_output=True, text=True, check=True)
        found = np.load(target)
    times = (5 * fold + issues for fold, issues in found)
    return {
        f"cleanlab, five folds of {model} (one is measured, times five)": dict(
            zip(("seconds", "CPU"), each.tolist())
        )
        for model, each in zip(MODELS, times)
    }


def memory(rows: int, trees: int) -> int:
    """Peak memory above the input, in a process of its own."""
    code = MEMORY.format(here=str(HERE), rows=rows, trees=trees)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def quality(valuation, findings, wrong) -> dict[str, float]:
    marked = np.array(findings.suggestion) == "relabel"
    return {
        "AUROC of scores": roc_auc_score(wrong, -findings.score),
        "AUROC of values": roc_auc_score(wrong, -valuation.values),
        "F1 of relabel": 2 * float((marked & wrong).sum() / (marked.sum() + wrong.sum())),
    }


def measure(rows: int) -> dict:
    """Times and quality at one size, beside the peers."""
    X, y, wrong = case(rows)
    ours(X[:2000], y[:2000])  # compiles
    grow, value, *sampled = ours(X, y)
    forest, peers = scikit_learn(X, y), cleanlab(X, y)
    grow_all, _, *whole = ours(X, y, grown_from=rows)
    everything = {key: grow[key] + value[key] for key in grow}
    times = {
        "scikit-learn grows 200 trees from all rows": forest,
        "Thresher grows 200 trees, each from 20,000 rows": grow,
        "Thresher finds values and suggestions": value,
        "Thresher, everything": everything,
        "Thresher grows 200 trees, each from half of the rows": grow_all,
        **peers,
    }
    return {
        "rows": rows,
        "times": times,
        "quality": {
            "20,000 rows": quality(*sampled, wrong),
            "half of the rows": quality(*whole, wrong),
        },
    }


def render(result: dict) -> str:
    at = result["one size"]
    first = next(iter(at["times"].values()))
    lines = [
        "# Forests: what values and findings cost", "",
        f"{at['rows']:,} rows, {FEATURES} features, four classes, 8 % of the labels wrong, two "
        "cores. All times are from one run. CPU seconds add up both cores, and hardly change if other "
        "programs run on the machine.", "",
        "| work | seconds | CPU seconds | CPU, of scikit-learn's forest |", "|---|---:|---:|---:|",
    ]  # fmt: skip
    for work, told in at["times"].items():
        share = told["CPU"] / first["CPU"]
        lines.append(f"| {work} | {told['seconds']:.1f} | {told['CPU']:.1f} | {share:.3f} |")
    names = list(next(iter(at["quality"].values())))
    lines += [
        "",
        "How well wrong labels are found if each tree is grown from a sample of the rows:",
        "",
    ]
    lines += [f"| a tree is grown from | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for structure, told in at["quality"].items():
        lines.append(f"| {structure} | {' | '.join(f'{told[name]:.4f}' for name in names)} |")
    lines += [
        "",
        "Time and memory for more rows, with each tree grown from 20,000 of them. Memory is the peak "
        "above the input:",
        "",
    ]
    lines += ["| rows | grow, s | value and find, s | CPU, all | memory |"]
    lines += ["|---:|---:|---:|---:|---:|"]
    for rows, told in result["growth"].items():
        lines.append(
            f"| {int(rows):,} | {told['grow']['seconds']:.1f} | {told['value']['seconds']:.1f} | "
            f"{told['grow']['CPU'] + told['value']['CPU']:.1f} | {told['memory'] / 1e6:,.0f} MB |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100000,300000,1000000")
    sizes = parser.parse_args().sizes
    result = {"one size": measure(100_000), "growth": {}}
    for rows in map(int, sizes.split(",")):
        X, y, _ = case(rows)
        grow, value, *_ = ours(X, y)
        told = {"grow": grow, "value": value, "memory": memory(rows, TREES)}
        result["growth"][str(rows)] = told
        print(rows, told, flush=True)
    store("forest-speed", result, render(result))
    print(render(result))


if __name__ == "__main__":
    main()
