"""What owners gain by what they do, what a payout under noise misdirects, and what owner_shapley costs.

Usage: python benchmarks/owners.py [--data FOLDER] [--parts PART,PART]; else THRESHER_DATA. Writes
results/owners.json and results/owners.md; parts that are not asked for are kept. Parts are speed,
incentives, noise, approximation, clipping, and million (3 GB; ask for it alone).
"""

import argparse
import itertools
import json
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from provenance import store

import thresher as th
from thresher.paper.datasets import Shelf
from thresher.payouts.alike_owners import alike_values
from thresher.payouts.private import paid_values
from thresher.privacy import Paper

RESULTS = Path(__file__).parent / "results"
SETS, SEEDS = ("phoneme", "wind"), (0, 1)
EPSILONS, DELTA, POT = (0.1, 1.0, 10.0), 1e-4, 1_000_000
CASES = {
    "5 owners": (5, False), "20 owners": (20, False), "200 owners": (200, False),
    "20 alike owners": (20, True),
}  # fmt: skip
SPOILED = 0.5  # the most labels of an owner that are random
WAYS = (
    "private_payout",
    "paper's mechanism",
    "equal shares",
    "by number of points",
    "zero-budget score",
)


def rows_of(data, points, seed, validation=200):
    """Points and validation set of a data set, scaled by the latter."""
    rng = np.random.default_rng([seed, 3])
    order = rng.permutation(len(data.y))[: points + validation]
    X, y = data.X[order].astype(float), data.y[order]
    X = np.clip((X - X[:validation].mean(0)) / (X[:validation].std(0) + 1e-9), -10, 10)
    return X[validation:], y[validation:], X[:validation], y[:validation]


def shares(by_owner):
    """Shares of a pot, by name; negative values are paid nothing."""
    kept = {owner: max(value, 0.0) for owner, value in by_owner.items()}
    total = sum(kept.values()) or 1.0
    return {owner: value / total for owner, value in kept.items()}


def spoiled(y, where, rate, rng):
    """Labels, some of which are random among these rows."""
    y, rows = y.copy(), where[rng.random(len(where)) < rate]
    y[rows] = rng.choice(np.unique(y), len(rows))
    return y


def incentives(shelf):
    """The share of the pot of the last of ten owners of 100 points each, by what it does."""
    found = {}
    for name in SETS:
        for seed in SEEDS:
            X, y, V, y_val = rows_of(shelf.get(name), 1000, seed)
            rng, owners = np.random.default_rng(seed), np.arange(1000) // 100
            y = spoiled(y, np.arange(1000), 0.3, rng)
            clean = rows_of(shelf.get(name), 1000, seed)[1]
            last = np.flatnonzero(owners == 9)
            radius = th.suggest_radius(V, y_val)
            more = np.concatenate([np.arange(1000), *[last] * 3])
            good = last[clean[last] == y[last]]
            split = owners.copy()
            split[last] = 9 + np.arange(100) // 20
            apart = owners.copy()
            apart[np.setdiff1d(last, good)] = 10
            late = np.flatnonzero((owners < 5) | (owners == 9))
            tries = {
                "as the others": (X, y, owners),
                "hands in every row four times": (X[more], y[more], owners[more]),
                "splits into five names": (X, y, split),
                "splits right rows from wrong ones": (X, y, apart),
                "hands in junk: random labels": (X, spoiled(y, last, 1.0, rng), owners),
                "has all labels right": (X, np.where(owners == 9, clean, y), owners),
                "comes early: one of six owners": (X[late], y[late], owners[late]),
            }
            for what, (rows, labels, whose) in tries.items():
                data = rows, labels, V, y_val
                points = th.tknn_shapley(*data, owners=whose, radius=radius)
                game = th.owner_shapley(*data, owners=whose, radius=radius)
                floored = th.payout(points, pot=POT, flooring="point").cents
                mine = lambda paid: sum(part for owner, part in paid.items() if owner >= 9)  # noqa: E731
                found.setdefault(what, []).append(
                    [
                        mine(shares(game.by_owner())),
                        mine(shares(points.by_owner())),
                        mine(floored) / POT,
                    ]
                )
    return {what: np.mean(each, axis=0).tolist() for what, each in found.items()}


def owned(shelf, name, count, seed, *, alike):
    """Points of so many owners, whose sizes and wrong labels differ unless they are alike."""
    X, y, V, y_val = rows_of(shelf.get(name), 2000, seed)
    rng = np.random.default_rng(seed)
    owners = np.arange(2000) % count
    if not alike:
        owners = rng.choice(count, 2000, p=rng.dirichlet(np.full(count, 4.0)))
    for owner in range(count):
        rate = 0.1 if alike else rng.uniform(0, SPOILED)
        y = spoiled(y, np.flatnonzero(owners == owner), rate, rng)
    return (X, y, V, y_val), owners


def noise(shelf):
    """What a payout by a private release misdirects, against others, by epsilon and owners."""
    found = []
    for name, (case, (count, alike)), seed in itertools.product(SETS, CASES.items(), SEEDS):
        data, owners = owned(shelf, name, count, seed, alike=alike)
        radius = th.suggest_radius(*data[2:])
        exact = shares(th.tknn_shapley(*data, owners=owners, radius=radius).by_owner())
        sizes = {owner: float((owners == owner).sum()) for owner in exact}
        zero = th.zero_budget_score(*data, owners=owners, radius=radius)
        for epsilon in EPSILONS:
            budget = {"epsilon": epsilon, "delta": DELTA, "radius": radius, "seed": seed}
            release = th.dp_tknn_shapley(
                *data, owners=owners, points_per_owner=2000 // count, **budget
            )
            paper = th.dp_tknn_shapley(*data, mechanism=Paper(rescale=True), **budget).values
            names = list(exact)
            paid = paid_values(release, release._design, release._owners, names)[0]
            ways = (
                dict(zip(names, paid.tolist(), strict=True)),
                {owner: paper[owners == owner].sum() for owner in exact},
                dict.fromkeys(exact, 1.0), sizes, zero.by_owner(),
            )  # fmt: skip
            line = {"set": name, "case": case, "epsilon": epsilon, "seed": seed}
            line |= {basis: reserve(release, basis) for basis in ("total", "gains")}
            for way, by_owner in zip(WAYS, ways, strict=True):
                line[way] = misdirected(shares(by_owner), exact)
            found.append(line)
    return found


def approximation(shelf):
    """What the game among owners misses where all others are taken to be alike; exact totals."""
    found = {}
    for name, (case, (count, alike)), seed in itertools.product(SETS, CASES.items(), SEEDS):
        data, owners = owned(shelf, name, count, seed, alike=alike)
        radius = th.suggest_radius(*data[2:])
        exact = th.owner_shapley(*data, owners=owners, radius=radius).by_owner()
        near = th.NeighborCounts(*data[2:], radius=radius)
        near.add(*data[:2])
        table, own = near.table.astype(float), []
        for owner in exact:
            one = th.NeighborCounts(*data[2:], radius=radius)
            one.add(*(part[owners == owner] for part in data[:2]))
            own.append(one.table)
        same, other = np.array(own, float).transpose(1, 0, 2)
        guess = alike_values(same + other, same, tuple(table), len(exact) - 1.0, 2)
        wanted = np.array(list(exact.values()))
        wrong = misdirected(shares(dict(zip(exact, guess.tolist(), strict=True))), shares(exact))
        error = float(abs(guess - wanted).sum() / abs(wanted).sum())
        found.setdefault(case, []).append([error, *wrong])
    return {case: np.mean(each, axis=0).tolist() for case, each in found.items()}


def reserve(release, basis):
    """What is left of the pot, and the overshoot that was told; None where it is refused."""
    try:
        paid = th.private_payout(release, pot=POT, basis=basis)
    except th.InputError:
        return None
    return [paid.reserve / POT, paid.overshoot / POT]


def clipping(shelf):
    """The pay of an owner of 200 points among 45 of 40, under one name and under five."""
    found = []
    for name in SETS:
        for seed in SEEDS:
            data = rows_of(shelf.get(name), 2000, seed)
            owners = np.concatenate([np.arange(1800) // 40, np.full(200, 45)])
            radius, line = th.suggest_radius(*data[2:]), []
            split = np.where(owners == 45, 45 + np.arange(2000) // 40 % 5, owners)
            for whose in (owners, split):
                budget = {"epsilon": 10.0, "delta": DELTA, "radius": radius, "seed": seed}
                release = th.dp_tknn_shapley(*data, owners=whose, points_per_owner=40, **budget)
                try:
                    paid = th.private_payout(release, pot=POT, basis="total")
                except th.InputError:
                    continue
                mine = [each for each in paid.lines if each.owner >= 45]
                clipped = float(np.mean([each.clipped for each in mine]))
                line += [sum(each.cents for each in mine), clipped]
            found.append(line)
    return [each for each in found if len(each) == 4]


def misdirected(paid, exact):
    """The share of the pot that goes to another owner, and the share of pairs in the wrong order."""
    one, other = (np.array([each[owner] for owner in exact]) for each in (paid, exact))
    pairs = np.triu_indices(len(one), 1)
    turns = np.sign(one[:, None] - one) * np.sign(other[:, None] - other)
    wrong = (1 - turns[pairs]) / 2  # a tie is half wrong
    return [float(abs(one - other).sum() / 2), float(wrong.mean())]


def speed():
    """Seconds of owner_shapley and of tknn_shapley on the same points, the better of two runs."""
    found = []
    for owners, validation in ((50, 1000), (1000, 200)):
        rng = np.random.default_rng(0)
        X, V = rng.normal(size=(100_000, 4)), rng.normal(size=(validation, 4))
        data = X, X[:, 0] > 0, V, V[:, 0] > 0
        whose = rng.choice(owners, 100_000, p=rng.dirichlet(np.full(owners, 2.0)))
        times = []
        for _ in range(2):
            start = time.perf_counter()
            gap = th.owner_shapley(*data, owners=whose, radius=0.3).efficiency_gap()
            middle = time.perf_counter()
            th.tknn_shapley(*data, owners=whose, radius=0.3)
            times.append((middle - start, time.perf_counter() - middle))
        found.append([owners, validation, *np.min(times, axis=0).tolist(), gap])
    return found


def million():
    """Seconds, gigabytes at the peak and efficiency gap of a million owners."""
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(2_000_000, 4)), rng.normal(size=(64, 4))
    whose = rng.permutation(np.arange(2_000_000) // 2)
    start = time.perf_counter()
    found = th.owner_shapley(X, X[:, 0] > 0, V, V[:, 0] > 0, owners=whose, radius=0.3)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [seconds, peak, found.efficiency_gap()]


def million_lines(row):
    """What a million owners cost."""
    seconds, peak, gap = row
    return [
        "## A million owners",
        "",
        "`python benchmarks/owners.py --parts million` values 2,000,000 points of 1,000,000 owners, "
        f"with 64 validation points and 4 features. It took {seconds:.0f} s and {peak:.1f} GB at the "
        f"peak. The efficiency gap was {gap:.0e}.",
        "",
    ]


def incentive_lines(rows):
    """The table of what owners gain."""
    return [
        "## The share of the pot of the last of ten owners, by what it does",
        "",
        "There are ten owners of 100 points each, and 30 % of the labels are random. Owners with a "
        "negative value are paid nothing. *Floored by point* counts negative points as 0.",
        "",
        "| the last owner | game among owners | sum of points | sum of points, floored by point |",
        "|---|---|---|---|",
        *(f"| {what} | {' | '.join(f'{x:.3f}' for x in each)} |" for what, each in rows.items()),
        "",
    ]


def noise_lines(rows):
    """The tables of what noise misdirects, and of the reserve."""
    lines = [
        "## Under noise: share of the pot misdirected, and pairs of owners in the wrong order",
        "",
        f"There are 2,000 points and 200 validation points, and delta is {DELTA:g}. Owners are "
        "protected as a whole, but the paper's mechanism protects only single points. Owners have "
        "different sizes, and 0 to 50 % of their labels are random. Alike owners all have the same "
        "size and 10 % random labels. Each cell has the share of the pot that goes to the wrong "
        "owner, and then the share of pairs in the wrong order.",
        "",
        f"| | {' | '.join(WAYS)} |",
        f"|---|{'---|' * len(WAYS)}",
    ]
    reserves = [
        "",
        "## The reserve of `private_payout`, as a share of the pot: least to most, and refusals",
        "",
        "The reserve is what is left of the pot after pay. It is negative if pay exceeds the pot. "
        "`private_payout` refuses to pay if the release is too uncertain.",
        "",
        "| | basis total | refused | basis gains | refused |",
        "|---|---|---|---|---|",
    ]
    for case, epsilon in itertools.product(CASES, EPSILONS):
        some = [each for each in rows if (each["case"], each["epsilon"]) == (case, epsilon)]
        cells = [np.mean([each[way] for each in some], axis=0) for way in WAYS]
        shown = " | ".join(f"{wrong:.3f}, {order:.2f}" for wrong, order in cells)
        lines.append(f"| {case}, epsilon {epsilon:g} | {shown} |")
        spans = []
        for basis in ("total", "gains"):
            kept = sorted(each[basis][0] for each in some if each[basis])
            span = f"{kept[0]:.2f} to {kept[-1]:.2f}" if kept else ""
            spans += [span, f"{len(some) - len(kept)} of {len(some)}"]
        reserves.append(f"| {case}, epsilon {epsilon:g} | {' | '.join(spans)} |")
    return [*lines, *reserves, ""]


def approximation_lines(rows):
    """The table of what the approximation misses."""
    return [
        "## The game among owners from totals alone: others taken to be alike, no noise",
        "",
        "Figures compare these values with those of the exact game.",
        "",
        "| | relative error of values | pot misdirected | pairs in the wrong order |",
        "|---|---|---|---|",
        *(f"| {case} | {e:.3f} | {pot:.3f} | {o:.2f} |" for case, (e, pot, o) in rows.items()),
        "",
    ]


def clipping_lines(rows):
    """What a large owner gains by splitting."""
    one, clipped, five, left = np.mean(rows, axis=0)
    return [
        "## What the privacy bound does to an owner of 200 points among owners of 40",
        "",
        f"At epsilon 10 it is paid {one:,.0f} of {POT:,} cents under one name ({clipped:.0%} of "
        f"its value is clipped), and {five:,.0f} under five names ({left:.0%} clipped): "
        f"{five / one:.1f} times as much.",
        "",
    ]


def speed_lines(rows):
    """The table of seconds."""
    return [
        "## Seconds, two cores, 100,000 points, 4 features",
        "",
        "| owners | validation points | owner_shapley | tknn_shapley | efficiency gap |",
        "|---|---|---|---|---|",
        *(f"| {o:,} | {m:,} | {s:.2f} | {t:.2f} | {gap:.0e} |" for o, m, s, t, gap in rows),
        "",
    ]


SECTIONS = {
    "incentives": incentive_lines,
    "noise": noise_lines,
    "approximation": approximation_lines,
    "clipping": clipping_lines,
    "speed": speed_lines,
    "million": million_lines,
}


def render(result):
    """A Markdown page."""
    about = f"The data sets are {' and '.join(SETS)}, with {len(SEEDS)} draws each."
    lines = ["# Owners and payouts", "", about, ""]
    for name, section in SECTIONS.items():
        if result.get(name):
            lines += section(result[name])
    return "\n".join(lines).rstrip() + "\n"


def main():
    """Measure and write results/owners.json and .md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--parts", default="speed,incentives,noise,approximation,clipping")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", th.ThresherWarning)
    path = RESULTS / "owners.json"
    result = json.loads(path.read_text()) if path.exists() else {}
    shelf, parts = Shelf(arguments.data), arguments.parts.split(",")
    measures = {
        "speed": lambda _: speed(), "incentives": incentives, "noise": noise,
        "approximation": approximation, "clipping": clipping, "million": lambda _: million(),
    }  # fmt: skip
    for name, measure in measures.items():
        if name in parts:
            result[name] = measure(shelf)
            result.pop("machine", None)
            store("owners", result, render(result))
    print(render(result))


if __name__ == "__main__":
    main()
