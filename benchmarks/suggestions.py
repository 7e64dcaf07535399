"""How well wrong labels are found in messy tables: Thresher beside cleanlab and other values.

    python benchmarks/suggestions.py [--sets held-out | choosing | all | "NAME, NAME, ..."]

`messy_tables.py` says what is done to the tables, `table_sources.py` which of them were used to
choose the rule of the suggestions; the others are the evidence. All methods see the same labels in
the same run. Tables that are measured again replace their figures, those of others are kept. Writes
results/suggestions.json and results/suggestions.md; where data is missing it says so and leaves
them as they are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from pathlib import Path

import finders
import suggestions_page
from judging import accuracies, cleanings, judge
from messy_tables import NOISES, Messy, messy
from provenance import machine, store
from table_sources import CHOOSING, HELD_OUT
from tqdm import tqdm

from thresher.paper.datasets import MissingSetError

FOLDER = Path(__file__).parent / "results"
CLEANED = ("8 %", "similar 10 %")  # kinds of noise after which models are trained
OURS, THEIRS = "Thresher", "cleanlab, forest"


def findings(table: Messy, labels: dict) -> dict[str, dict[str, finders.Found]]:
    """What each method finds under each kind of noise."""
    found = {}
    peers = finders.cleanlab(table, list(labels.values()))
    for place, (kind, y) in enumerate(labels.items()):
        start = time.perf_counter()
        ours = finders.thresher(table, y, checked=False)
        ours.seconds = time.perf_counter() - start
        found[kind] = {
            OURS: ours,
            "Thresher, checked rows": finders.thresher(table, y, checked=True),
            **{name: each[place] for name, each in peers.items()},
            "Data-OOB": finders.data_oob(table, y),
            **{
                f"{method.upper()}-Shapley{', checked rows' * checked}":
                finders.neighbors(table, y, method=method, checked=checked)
                for method in ("tknn", "knn") for checked in (False, True)
            },
        }  # fmt: skip
    return found


def measure(name: str) -> dict:
    """Figures for one table: each kind of noise, each method."""
    table = messy(name)
    right = table.labels[table.points]
    labels = {kind: table.noisy(kind) for kind in NOISES}
    found = findings(table, labels)
    told = {
        kind: {method: judge(each, labels[kind], right) for method, each in by_method.items()}
        for kind, by_method in found.items()
    }
    cleaned = {
        kind: accuracies(
            table, cleanings(labels[kind], right, found[kind][OURS], found[kind][THEIRS])
        )
        for kind in CLEANED
    }
    about = {"points": len(right), "columns": table.frame.shape[1], "classes": table.classes}
    return {"about": about, "found": told, "accuracy": cleaned}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="all")
    wanted = parser.parse_args().sets
    groups = {"held-out": HELD_OUT, "choosing": CHOOSING, "all": HELD_OUT + CHOOSING, "none": ()}
    names = groups.get(wanted) or [name.strip() for name in wanted.split(",") if name != "none"]
    path = FOLDER / "suggestions.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    about = {"machine": machine() if names else stored["machine"]}
    result = {name: told for name, told in stored.items() if name in HELD_OUT + CHOOSING}
    for name in tqdm(names, unit="tables"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result[name] = measure(name)
        except (MissingSetError, subprocess.CalledProcessError) as missing:
            print(f"suggestions.py was skipped, its results are kept: {missing}")
            return
        path.write_text(json.dumps(about | result, indent=1) + "\n")
    page = suggestions_page.render(result)
    store("suggestions", about | result, page)
    print(page)


if __name__ == "__main__":
    main()
