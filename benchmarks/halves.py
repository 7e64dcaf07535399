"""Data sets in two halves, one to choose by and one held out; and the page of a comparison on both."""

import sys
import warnings

import numpy as np
from provenance import store

import thresher as th
from thresher.paper import Shelf
from thresher.paper.datasets import MissingSetError

CHOOSING = ("2dplanes", "click", "creditcard", "phoneme", "wind", "mnist", "dbpedia")
HELD_OUT = ("apsfail", "cpu", "fraud", "pol", "cifar10", "agnews")


def compare(name, title, about, groups):
    """Measure each data set of each group and write results/NAME.json and results/NAME.md.

    `groups` has, for each group, names of data sets and a function from a data set to a figure for each way. Where data sets
    are missing, say so and leave the results as they are. The folder of data sets is the first argument, or THRESHER_DATA.
    """
    shelf = Shelf(*sys.argv[1:2], fetch=False)
    try:
        sets = {each: shelf.get(each) for names, _ in groups.values() for each in names}
    except MissingSetError as missing:
        print(f"{name}.py was skipped, its results are kept: {missing}")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", th.ThresherWarning)
        result = {
            group: {each: measure(sets[each]) for each in names}
            for group, (names, measure) in groups.items()
        }
    page = f"# {title}\n\n{about}\n{render(result)}"
    store(name, {"auroc": result}, page)
    print(page)


def render(result):
    lines = []
    for title, table in result.items():
        ways = list(next(iter(table.values())))
        lines += ["", f"| {title} | {' | '.join(ways)} |", f"|---|{'---:|' * len(ways)}"]
        means = {way: np.mean([row[way] for row in table.values()]) for way in ways}
        for name, row in [*table.items(), ("mean", means)]:
            lines.append(f"| {name} | {' | '.join(f'{row[way]:.3f}' for way in ways)} |")
    return "\n".join(lines) + "\n"


def means(rows):
    """The mean of each way over draws."""
    return {way: float(np.mean([row[way] for row in rows])) for way in rows[0]}
