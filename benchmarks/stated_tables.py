"""Tables on which stated errors are tried, split before any of them was looked at.

`DEVELOPMENT` are the tables on which the statement of errors was developed: those that earlier
constants were chosen on (the paper's, and normal, blobs and letters of stated_errors.py), and two
fifths of a pool. `UNSEEN` are the other three fifths, and had no
part in any choice. The order of the pool is that of the hashes of the names.
"""

from __future__ import annotations

import hashlib
import zlib
from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn import datasets
from table_sources import load

import thresher as th

USED = tuple(
    f"paper {name}"
    for name in [
        "2dplanes",
        "phoneme",
        "wind",
        "pol",
        "cpu",
        "creditcard",
        "click",
        "fraud",
        "apsfail",
    ]
)
KEEL = [
    "letter",
    "magic",
    "penbased",
    "texture",
    "optdigits",
    "satimage",
    "marketing",
    "ring",
    "twonorm",
    "spambase",
    "page-blocks0",
    "splice",
    "chess",
    "banana",
    "mushroom",
    "segment",
    "titanic",
    "vowel",
    "vehicle",
    "contraceptive",
    "german",
    "kr-vs-k-three_vs_eleven",
    "abalone19",
    "shuttle-2_vs_5",
    "yeast1",
    "car-good",
    "winequality-red-4",
    "mammographic",
    "pima",
]
EMBEDDED = ("agnews", "dbpedia", "mnist", "cifar10")
CLASSIFICATION = {  # arguments of make_classification
    "two10": {"n_features": 10, "n_informative": 6},
    "two100": {"n_features": 100, "n_informative": 20},
    "five20": {"n_features": 20, "n_informative": 10, "n_classes": 5},
    "ten40": {"n_features": 40, "n_informative": 15, "n_classes": 10},
    "rare12": {"n_features": 12, "n_informative": 5, "weights": [0.95]},
    "rare50": {"n_features": 50, "n_informative": 8, "n_classes": 3, "weights": [0.9, 0.08]},
    "sparse": {
        "n_features": 60, "n_informative": 2, "n_redundant": 0, "n_clusters_per_class": 1,
    },
}  # fmt: skip
SHAPES = ("moons", "circles", "hastie", "quantiles", "swiss")
POOL = sorted(
    [
        *(f"keel {name}" for name in KEEL), "sklearn breast_cancer",
        *(f"paper {name}" for name in EMBEDDED),
        *(f"generated {name}" for name in (*CLASSIFICATION, *SHAPES)),
    ],
    key=lambda name: hashlib.sha256(name.encode()).hexdigest(),
)  # fmt: skip
UNSEEN = tuple(sorted(POOL[: len(POOL) * 3 // 5]))
DEVELOPMENT = USED + tuple(sorted(POOL[len(POOL) * 3 // 5 :]))
MADE_ROWS = 22_000
POINTS = (300, 1000, 3000, 8000, 20_000)
VALIDATION = (50, 100, 200, 500, 1000)
EPSILONS = (0.1, 0.3, 1.0, 4.0)
FLIPPED = (0.0, 0.1, 0.1)


def settings(name, count):
    """Some settings of a table, drawn at random: points, validation rows, epsilon, wrong labels."""
    random = np.random.default_rng([0, zlib.crc32(name.encode())])
    rows = len(rows_of(name, 0)[1])
    for seed in range(count):
        validation = int(random.choice([m for m in VALIDATION if m <= max(rows // 4, 50)]))
        sizes = [n for n in POINTS if n + validation <= rows] or [rows - validation]
        yield {
            "set": name, "points": int(random.choice(sizes)), "validation": validation,
            "epsilon": float(random.choice(EPSILONS)), "flipped": float(random.choice(FLIPPED)),
            "seed": seed,
        }  # fmt: skip


def problem(about):
    """Points, labels, validation rows and labels; columns are scaled by the validation rows."""
    name, seed, validation = about["set"], about["seed"], about["validation"]
    X, y = rows_of(name, seed if name.startswith("generated") else 0)
    random = np.random.default_rng([seed, about["points"], validation, zlib.crc32(name.encode())])
    order = random.permutation(len(y))[: validation + about["points"]]
    X, y, judges, classes = (
        *(part[order[validation:]] for part in (X, y)),
        *(part[order[:validation]] for part in (X, y)),
    )
    if name.split()[1] not in EMBEDDED:
        mean, deviation = judges.mean(axis=0), judges.std(axis=0)
        deviation = np.where(deviation > 1e-9, deviation, 1.0)
        X, judges = (np.clip((part - mean) / deviation, -10, 10) for part in (X, judges))
    if about["flipped"]:
        y, _ = th.flip_labels(y, fraction=about["flipped"], seed=seed)
    known, directed = np.isin(y, classes), np.abs(judges).sum(axis=1) > 0
    return X[known], y[known], judges[directed], classes[directed]


@lru_cache(4)
def rows_of(name, seed):
    """Features and labels of a table."""
    source, short = name.split()
    if source == "generated":
        return generated(short, seed)
    frame, y = load(name)
    return pd.get_dummies(frame).fillna(0).to_numpy(np.float64), y


def generated(name, seed):
    """A table by a generator of scikit-learn."""
    if name in CLASSIFICATION:
        return datasets.make_classification(MADE_ROWS, random_state=seed, **CLASSIFICATION[name])
    if name == "swiss":
        X, along = datasets.make_swiss_roll(MADE_ROWS, noise=0.5, random_state=seed)
        return X, np.digitize(along, [7.0, 9.5, 12.0])
    make = {
        "moons": lambda: datasets.make_moons(MADE_ROWS, noise=0.3, random_state=seed),
        "circles": lambda: datasets.make_circles(
            MADE_ROWS, noise=0.2, factor=0.5, random_state=seed
        ),
        "hastie": lambda: datasets.make_hastie_10_2(MADE_ROWS, random_state=seed),
        "quantiles": lambda: datasets.make_gaussian_quantiles(
            n_samples=MADE_ROWS, n_features=6, n_classes=4, random_state=seed
        ),
    }
    X, y = make[name]()
    return X, (y > 0) * 1 if name == "hastie" else y
