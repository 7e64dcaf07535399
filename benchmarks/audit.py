"""What audits catch, and how often they are wrong: power and false alarms.

.venv/bin/python benchmarks/audit.py [--runs 20000] [--more 100000] [--audits 20] [--alarms 300]

Mechanisms with 0.8 of the noise that is needed are audited with the default number of runs, and
with 0.95 of it with --more runs; right ones --alarms times, with few runs. Noise is seeded, by 0, 1
and so on. Replays are left out to save time: how much noise there is does not change them. For the
same reason what a table or cells measure is counted once for each canary and added up, which a
check compares with `measure`, and noise is drawn for many runs at a time.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from itertools import product

import numpy as np
from provenance import store

import thresher as th
import thresher.attack.audit as audits
from thresher.attack.canaries import Bait
from thresher.privacy import Cells, Paper, Table
from thresher.privacy.cells_mechanism import CellsDesign
from thresher.privacy.paper_mechanism import PaperDesign
from thresher.privacy.table_design import TableDesign

AT_ONCE = 4096  # runs
DELTA = 1e-5
KINDS = {
    "table": (Table, TableDesign, "sigma"),
    "cells": (Cells, CellsDesign, "laplace_scale"),
    "paper": (Paper, PaperDesign, "sigma"),
}
BOUNDS = ("gaussian_bound", "sampled_bound", "area_bound", "spread_bound")


def with_less_noise(name, factor):
    """The mechanism with this part of its noise."""
    kind, design, scale = KINDS[name]
    honest = vars(design)[scale]
    honest = honest.func if hasattr(honest, "func") else honest.fget
    worse = type("Worse", (design,), {scale: property(lambda self: factor * honest(self))})

    class Mechanism(kind):
        def design(self, setting):
            good = super().design(setting)
            return worse(*(getattr(good, field) for field in design.__match_args__))

    return Mechanism()


def quick_trial(bait, honest):
    """The bait's trial, with what each canary adds counted once and noise for many runs drawn."""
    trial, design = honest(bait), bait.design
    if isinstance(design, PaperDesign):
        return trial  # who is sampled is drawn in every run
    without, within = (np.array(each) for each in zip(*bait.shifts, strict=True))
    moves, drawn = within - without, []

    def measured(truth):
        return without.sum(axis=0) + np.tensordot(truth.astype(np.int64), moves, 1)

    def release(source, truth):
        if not drawn:
            drawn.extend(many_noises(design, source, AT_ONCE))
        return measured(truth) + drawn.pop()

    for truth in np.random.default_rng(0).random((20, len(moves))) < 0.5:
        world = bait.contributions(bait.chosen(truth))
        assert (measured(truth) == design.measure(world, None)).all()
    return replace(trial, release=release)


def many_noises(design, source, runs):
    """The noise of so many runs."""
    if isinstance(design, CellsDesign):
        one = design.noise(source)
        return source.laplace(design.laplace_scale, runs * one.size).reshape(runs, *one.shape)
    each = design.deviations
    drawn = np.empty((runs, design.setting.entries, len(each)), np.int64)
    for width in np.unique(each).tolist():
        places = np.flatnonzero(each == width)
        numbers = source.gaussian(width, runs * drawn.shape[1] * len(places))
        drawn[:, :, places] = numbers.reshape(runs, -1, len(places))
    return drawn


def power(name, factor, epsilon, runs, audits):
    """The share of audits that reject, and the share that each bound alone would."""
    mechanism = with_less_noise(name, factor)
    found = [
        th.audit_mechanism(
            mechanism, epsilon=epsilon, delta=DELTA, runs=runs, canaries=0, seed=seed
        )
        for seed in range(audits)
    ]
    shares = {"any": sum(not each.passed for each in found) / audits}
    for bound in BOUNDS:
        over = [getattr(each, bound) for each in found]
        if None not in over:
            shares[bound] = sum(each > epsilon for each in over) / audits
    about = {"mechanism": name, "noise": factor, "epsilon": epsilon, "runs": runs}
    return about | {"audits": audits, **shares}


def false_alarms(name, audits, runs=200):
    """How many right ones are rejected at confidence 0.99."""
    found = [
        th.audit_mechanism(
            name, epsilon=1.0, delta=DELTA, runs=runs, canaries=20, confidence=0.99, seed=seed
        )
        for seed in range(audits)
    ]
    rejected = sum(not each.passed for each in found)
    return {"mechanism": name, "audits": audits, "runs": runs, "rejected": rejected}


def render(result):
    """A Markdown page."""
    lines = [
        "# What audits catch", "",
        "An audit tests whether a mechanism adds the noise that its epsilon needs. The mechanisms of "
        "the first table add too little: *noise* is how much they add, as a share of what they need. "
        "*Caught* is the share of audits that reject such a mechanism. The last column has the share "
        "in which each bound alone exceeds epsilon.",
        "",
    ]  # fmt: skip
    lines += ["| mechanism | noise | epsilon | runs | audits | caught | by one bound alone |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for row in result["power"]:
        alone = ", ".join(
            f"{bound.removesuffix('_bound')} {row[bound]:.2f}" for bound in BOUNDS if bound in row
        )
        about = [row[name] for name in ("mechanism", "noise", "epsilon", "runs", "audits")]
        lines.append(f"| {' | '.join(map(str, about))} | {row['any']:.2f} | {alone} |")
    lines += ["", "The mechanisms of the second table add all the noise that they need. No audit should "
              "reject them.", ""]  # fmt: skip
    lines += ["| right mechanism | audits at confidence 0.99 | rejected |", "|---|---|---|"]
    for row in result["false alarms"]:
        lines.append(f"| {row['mechanism']} | {row['audits']} | {row['rejected']} |")
    return "\n".join(lines) + "\n"


def main():
    """Measure and write results/audit.json and .md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--more", type=int, default=100_000)
    parser.add_argument("--audits", type=int, default=20)
    parser.add_argument("--alarms", type=int, default=300)
    parser.add_argument("--mechanisms", nargs="+", default=list(KINDS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 4.0])
    arguments = parser.parse_args()
    cases = [(0.8, arguments.runs), (0.95, arguments.more)]
    cases = [(factor, runs) for factor, runs in cases if runs]
    result = {"power": [], "false alarms": []}
    audits.leaks = lambda *_: ()
    honest = Bait.trial
    Bait.trial = lambda bait: quick_trial(bait, honest)
    for (factor, runs), name, epsilon in product(cases, arguments.mechanisms, arguments.epsilons):
        start = time.perf_counter()
        row = power(name, factor, epsilon, runs, arguments.audits)
        row["seconds"] = (time.perf_counter() - start) / arguments.audits
        print(row, flush=True)
        result["power"].append(row)
        write(result)
    for name in arguments.mechanisms if arguments.alarms else ():
        result["false alarms"].append(false_alarms(name, arguments.alarms))
        write(result)
    print(render(result))


def write(result):
    """Store what there is so far."""
    store("audit", result, render(result))


if __name__ == "__main__":
    main()
