"""What a forest's values and findings cost: growing, valuing, memory, and cleanlab beside it.

    python benchmarks/forest_speed.py [--million]

Data: normal features, four classes by make_classification, 8 % of the labels wrong. Every figure is
of one run on one machine. cleanlab wants five folds of 200 trees: one fold is measured, its time is
taken five times, and finding the issues is added. Writes results/forest-speed.json and .md.
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
import peer_environments
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.forest import forest_votes
from thresher.leaf_findings import explain_votes
from thresher.neighbors import trees as growing

HERE = Path(__file__).parent
FEATURES, TREES = 20, 200
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


def ours(X, y, grown_from=growing.GROWN_FROM):
    """Seconds to grow and to value, and the findings."""
    kept, growing.GROWN_FROM = growing.GROWN_FROM, grown_from
    start = time.perf_counter()
    settings = {"forest": None, "trees": TREES, "folds": 2, "seed": 0, "classes": None}
    votes, about = forest_votes(X, y, None, None, progress=False, **settings)
    grown = time.perf_counter()
    valuation, findings = explain_votes(votes, "forest-shapley", about, "shapley")
    growing.GROWN_FROM = kept
    return grown - start, time.perf_counter() - grown, valuation, findings


def scikit_learn(X, y):
    """Seconds that scikit-learn takes to grow as many trees on all rows."""
    start = time.perf_counter()
    RandomForestClassifier(TREES, random_state=0, n_jobs=2).fit(X, y)
    return time.perf_counter() - start


def cleanlab(X, y):
    """Seconds of one fold of five, and of finding the issues."""
    python, trouble = peer_environments.ready("cleanlab_fold")
    if python is None:
        return {"failed": trouble}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "data.npz", Path(folder) / "found.npy"
        np.savez(source, X=X, y=y)
        script = str(HERE / "peers" / "peer.py")
        command = [str(python), script, "cleanlab_fold", str(source), str(target), "1"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1]}
        fold, issues = np.load(target).tolist()
    return {"one fold": fold, "issues": issues, "five folds": 5 * fold + issues}


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
    """Everything at 100,000 rows."""
    X, y, wrong = case(rows)
    ours(X[:2000], y[:2000])  # compiles
    grow, value, *sampled = ours(X, y)
    print(f"ours: {grow:.1f} + {value:.1f} s", flush=True)
    forest = scikit_learn(X, y)
    print(f"scikit-learn: {forest:.1f} s", flush=True)
    grow_all, value_all, *whole = ours(X, y, grown_from=rows)
    print(f"structure from all rows: {grow_all:.1f} + {value_all:.1f} s", flush=True)
    peer = cleanlab(X, y)
    print(peer, flush=True)
    return {
        "rows": rows, "grow": grow, "value and find": value, "scikit-learn": forest,
        "structure from all rows": {"grow": grow_all, "value and find": value_all},
        "cleanlab": peer,
        "quality": {
            "from 20,000 rows a fold": quality(*sampled, wrong),
            "from all rows": quality(*whole, wrong),
        },
    }  # fmt: skip


def render(result: dict) -> str:
    at = result["100,000"]
    all_in = at["grow"] + at["value and find"]
    lines = [
        "# Forests: what values and findings cost", "",
        f"{at['rows']:,} rows, {FEATURES} features, {TREES} trees, two cores. Times of one run.", "",
        "| work | seconds | of scikit-learn's forest |", "|---|---:|---:|",
    ]  # fmt: skip
    times = {
        "scikit-learn grows 200 trees on all rows": at["scikit-learn"],
        "Thresher grows 200 trees, 20,000 rows decide each": at["grow"],
        "Thresher values and findings": at["value and find"],
        "Thresher, everything": all_in,
        "Thresher grows from all rows": at["structure from all rows"]["grow"],
    }
    if "failed" not in at["cleanlab"]:
        times["cleanlab, five folds of 200 trees (one measured, times five)"] = at["cleanlab"][
            "five folds"
        ]
    for work, seconds in times.items():
        lines.append(f"| {work} | {seconds:.1f} | {seconds / at['scikit-learn']:.3f} |")
    if "failed" not in at["cleanlab"]:
        ratio = at["cleanlab"]["five folds"] / all_in
        lines += ["", f"Thresher is {ratio:.1f} times as fast as cleanlab, everything included."]
    names = list(at["quality"]["from all rows"])
    lines += ["", f"| structure | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for structure, told in at["quality"].items():
        lines.append(f"| {structure} | {' | '.join(f'{told[name]:.4f}' for name in names)} |")
    lines += [
        "",
        "| rows | seconds to grow | seconds to value and find | peak memory above the input |",
    ]
    lines += ["|---:|---:|---:|---:|"]
    for rows, told in result["growth"].items():
        lines.append(
            f"| {int(rows):,} | {told['grow']:.1f} | {told['value and find']:.1f} | "
            f"{told['memory'] / 1e6:,.0f} MB |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="250000,500000,1000000")
    sizes = parser.parse_args().sizes
    result = {"100,000": measure(100_000), "growth": {}}
    for rows in (100_000, *map(int, filter(None, sizes.split(",")))):
        X, y, _ = case(rows)
        grow, value, *_ = ours(X, y)
        result["growth"][rows] = {
            "grow": grow, "value and find": value, "memory": memory(rows, TREES)
        }  # fmt: skip
        print(rows, result["growth"][rows], flush=True)
    (HERE / "results" / "forest-speed.json").write_text(json.dumps(result, indent=1) + "\n")
    page = render(json.loads(json.dumps(result)))
    (HERE / "results" / "forest-speed.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
