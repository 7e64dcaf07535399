"""The paper's four tables of membership inference, measured anew, with a stronger attack beside.

    THRESHER_DATA=folder python benchmarks/attacks.py [--seeds 3]

200 members, 200 non-members, 400 shadow points, 200 validation points, standardized, drawn at random from each of the
nine tabular data sets. Writes results/attacks.json, results/attacks.md and results/attacks.svg.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import thresher as th
from thresher.attack import DPTKNN, KNN, TKNN
from thresher.attack.curves import neighbor_effect
from thresher.attack.plots import plot_effect, plot_roc

sys.path.insert(0, str(Path(__file__).parent))
import paper_attacks as paper
from privacy import load
from report import table
from run import machine

HERE = Path(__file__).parent
SETS = tuple(paper.KNN)
TABLES = {
    "knn": ("KNN-Shapley by k", paper.KS, KNN, paper.KNN),
    "tknn": ("TKNN-Shapley by radius", paper.RADII, TKNN, paper.TKNN),
    "dp 0.5": ("DP-TKNN by radius, the paper's mechanism, epsilon 0.5, delta 1e-4", paper.RADII,
               lambda r: DPTKNN(0.5, 1e-4, "paper", r), paper.DP_HALF),
    "dp 1": ("DP-TKNN by radius, the paper's mechanism, epsilon 1, delta 1e-4", paper.RADII,
             lambda r: DPTKNN(1.0, 1e-4, "paper", r), paper.DP_ONE),
    "table 0.5": ("DP-TKNN, the table mechanism, epsilon 0.5, delta 1e-4", (0.5,),
                  lambda r: DPTKNN(0.5, 1e-4, "table", r), None),
    "table 1": ("DP-TKNN, the table mechanism, epsilon 1, delta 1e-4", (0.5,),
                lambda r: DPTKNN(1.0, 1e-4, "table", r), None),
}  # fmt: skip


@functools.cache
def stored(name):
    return load(name, os.environ.get("THRESHER_DATA"))


def draw(name, seed):
    X, y = stored(name)
    rows = np.random.default_rng([seed, 6]).permutation(len(X))[:1000]
    X, y = X[rows].astype(np.float64), y[rows]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    X[(X**2).sum(axis=1) == 0] = 1e-6
    return X[200:], y[200:], X[:200], y[:200]


def cells(tables, seeds):
    return [
        (key, name, step, seed)
        for key in tables
        for name in SETS
        for step in TABLES[key][1]
        for seed in range(seeds)
    ]


def measure(seeds):
    found = {key: {name: {} for name in SETS} for key in TABLES}
    start = time.perf_counter()
    for key, name, step, seed in tqdm(cells(TABLES, seeds)):
        attack = th.membership_attack(*draw(name, seed), against=TABLES[key][2](step), seed=seed)
        entry = found[key][name].setdefault(str(step), {"paper": [], "strong": [], "tpr": []})
        for kind in ("paper", "strong"):
            entry[kind].append(attack.rocs[kind].auroc)
        entry["tpr"].append(attack.rocs["strong"].tpr_at(0.01))
    return found, time.perf_counter() - start


def render(result):
    about = result["machine"]
    lines = [
        "# Results of `benchmarks/attacks.py`", "",
        f"{about['processor']}, {about['cores']} cores, Python {about['python']}, commit {about['commit']}, "
        f"{about['date']}; {result['seeds']} draws of members, non-members, shadow and validation points a cell, "
        f"{result['seconds']:.0f} seconds in all. AUROC; 0.5 is guessing, and the standard error of one draw is about 0.03.", "",
        "![curves](attacks.svg)", "",
    ]  # fmt: skip
    for key, (title, steps, _, printed) in TABLES.items():
        told = result["tables"][key]
        if printed is not None:
            rows = [
                (name, *(f"{np.mean(told[name][str(s)]['paper']):.3f} ({p:.3f})"
                         for s, p in zip(steps, printed[name])))
                for name in SETS
            ]  # fmt: skip
            ours = np.mean([np.mean(told[n][str(s)]["paper"]) for n in SETS for s in steps])
            theirs = np.mean([printed[n] for n in SETS])
            lines += [f"## {title}: the paper's attack, ours (and the paper's figure)", "",
                      *table(("data set", *map(str, steps)), rows),
                      f"Mean {ours:.3f} ({theirs:.3f}).", ""]  # fmt: skip
        kinds = ("strong",) if printed is not None else ("paper", "strong")
        for kind in kinds:
            rows = [
                (name, *(f"{np.mean(told[name][str(s)][kind]):.3f}" for s in steps))
                for name in SETS
            ]
            mean = np.mean([told[n][str(s)][kind] for n in SETS for s in steps])
            lines += [f"## {title}: the {kind} attack", "", *table(("data set", *map(str, steps)), rows),
                      f"Mean {mean:.3f}.", ""]  # fmt: skip
    return "\n".join(lines)


def figure(path):
    shown = Figure(figsize=(12, 9), layout="constrained")
    axes = shown.subplots(2, 2).ravel()
    data = draw("phoneme", 0)
    for ax, (title, target) in zip(axes, (
        ("exact TKNN-Shapley, radius 0.5", TKNN(0.5)),
        ("DP-TKNN (table), epsilon 1, delta 1e-4", DPTKNN(1.0, 1e-4)),
    )):  # fmt: skip
        plot_roc(th.membership_attack(*data, against=target), ax, title=f"phoneme: {title}")
    for ax, over in zip(axes[2:], ("k", "radius")):
        effect = neighbor_effect(*data, point=7, over=over)
        plot_effect(effect, ax, title="phoneme: one point, with and without its nearest neighbor")
    shown.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    found, seconds = measure(seeds)
    result = {"machine": machine(), "seeds": seeds, "seconds": seconds, "tables": found}
    folder = HERE / "results"
    figure(folder / "attacks.svg")
    (folder / "attacks.json").write_text(json.dumps(result) + "\n")
    (folder / "attacks.md").write_text(render(result))
    print(render(result))


if __name__ == "__main__":
    main()
