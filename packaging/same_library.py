"""Calls of the library's public names, for `same.py`."""

# fmt: off
from __future__ import annotations

import inspect
import itertools
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from same_worker import Cases
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neighbors import KNeighborsClassifier

import thresher as th

RANDOM = np.random.default_rng(0)
N, M = 36, 14
X, V = (RANDOM.normal(size=(rows, 3)).round(2) for rows in (N, M))
X[20] = X[4]  # a copy
T, U = 10 * X[:, 0] + RANDOM.normal(size=N).round(1), (10 * V[:, 0]).round(1)
WORDS = np.array(["ant", "bee", "cat"])
Y, W = (WORDS[(np.digitize(X[:, 0], [-0.5, 0.5]) + (RANDOM.random(N) < 0.2)) % 3], WORDS[np.digitize(V[:, 0], [-0.5, 0.5])])
D = np.abs(X[:, None] - V[None]).sum(2)
D_OWN = np.abs(X[:, None] - X[None]).sum(2)
OWNERS = np.array([*"aabbbcd" * 6])[:N]
TASK = {"classes": {"X": X, "y": Y, "y_val": W}, "numbers": {"X": X, "y": T, "y_val": U, "task": "regression", "empty": 3.0}}
JUDGE = {"val": {"X_val": V}, "each other": {"X_val": None, "y_val": None}}
METRIC = {"cosine": {"metric": "cosine", "radius": 0.3}, "euclidean": {"metric": "euclidean", "radius": 1.2}, "distances": {"metric": "precomputed", "X": D, "X_val": None, "radius": 2.5}}
NEAREST = {label: {**given, "radius": ...} for label, given in METRIC.items()}
KERNEL = {"box": {}, "gaussian": {"kernel": "gaussian", "rings": 4}, "triangular": {"kernel": "triangular"}, "own": {"kernel": [(0.4, 2.0), (1.5, 0.5)], "radius": ...}}
SEMIVALUE = ["shapley", "banzhaf", th.Beta(4, 1), th.Calibrated(2)]
EMPTY = {"default": {"empty": ...}, "5": {"empty": 5.0}}
OWNED = {"": {}, "owned": {"owners": OWNERS}}
FOREST = {"trees": 6, "seed": 1}
LEAVES = RANDOM.integers(0, 5, (N, 4)), RANDOM.integers(0, 5, (M, 4))
ROWS = {
    "lists": lambda rows: rows.tolist(),
    "float32": lambda rows: rows.astype("f4"),
    "float16": lambda rows: rows.astype("f2"),
    "int64": lambda rows: (10 * rows).astype(int),
    "int8": lambda rows: (10 * rows).astype("i1"),
    "bool": lambda rows: rows > 0,
    "columns first": np.asfortranarray,
    "every other": lambda rows: np.repeat(rows, 2, 0)[::2],
    "csr": sparse.csr_matrix,
    "csc array": sparse.csc_array,
    "coo": sparse.coo_matrix,
    "pandas": lambda rows: pd.DataFrame(rows, columns=[*"pqr"]),
    "polars": lambda rows: pl.DataFrame(rows, schema=[*"pqr"]),
    "arrow": lambda rows: pa.table(dict(zip("pqr", rows.T))),
    "objects": lambda rows: rows.astype(object),
    "longdouble": lambda rows: rows.astype(np.longdouble),
    "text": lambda rows: rows.astype(str),
    "complex": lambda rows: rows + 0j,
    "pandas Int64": lambda rows: pd.DataFrame((10 * rows).astype(int), columns=[*"pqr"]).astype("Int64"),
}
LABELS = {
    "ints": [1, 2, 3],
    "floats": [0.5, 1.5, 2.5],
    "bools": [True, False, True],
    "tuples": [(1,), (2, "b"), ()],
    "bytes": [b"a", b"b", b"c"],
    "dates": [date(2020, 1, day) for day in (1, 2, 3)],
    "mixed": [1, "1", None],
    "missing": [1.0, 2.0, np.nan],
    "times": [datetime(2020, 1, 1, hour) for hour in (1, 2, 3)],
    "huge": [2**60, 2**60 + 1, 2**53 + 1],
    "empty": ["", " ", "é"],
}
PACKS = {
    "list": list,
    "objects": lambda labels: np.array([*labels, None], dtype=object)[:-1],
    "pandas": pd.Series,
    "categorical": lambda labels: pd.Series(labels).astype("category"),
    "polars": lambda labels: pl.Series(labels, strict=False),
    "arrow": pa.array,
}
ALL = {"X": X, "y": Y, "X_val": V, "y_val": W}
USUAL = {  # functions with arguments that they take
    "tknn_shapley": ALL,
    "knn_shapley": ALL,
    "zero_budget_score": ALL,
    "forest_shapley": ALL | FOREST,
    "grow_forest": {"X": X, "y": Y} | FOREST,
    "leaf_shapley": {"leaves": LEAVES[0], "y": Y, "leaves_val": LEAVES[1], "y_val": W},
    "owner_shapley": ALL | {"owners": OWNERS},
    "forest_findings": ALL | FOREST,
    "suggest_radius": {"X_val": V, "y_val": W},
    "NeighborCounts": {"X_val": V, "y_val": W},
    "plan_release": {"X_val": V, "y_val": W, "points": 90, "epsilon": 1, "delta": 1e-5},
    "dp_tknn_shapley": ALL | {"epsilon": 2.0, "delta": 1e-4, "seed": 0},
    "dp_knn_shapley": ALL | {"epsilon": 2.0, "delta": 1e-4, "seed": 0},
    "leave_one_out": ALL | {"workers": 1},
    "data_shapley": ALL | {"workers": 1, "evaluations": 80},
    "beta_shapley": ALL | {"workers": 1, "evaluations": 80},
    "data_banzhaf": ALL | {"workers": 1, "evaluations": 40},
    "membership_attack": {**ALL, "members": 8, "nonmembers": 8, "shadow": 12, "shadow_sets": 2},
    "flip_labels": {"y": Y, "fraction": 0.2, "seed": 0},
    "add_feature_noise": {"X": X, "fraction": 0.2, "seed": 0},
    "TKNNClassifier": {},
}
SPOT = np.arange(X.size).reshape(X.shape) == 10
NAN, INFINITE = np.where(SPOT, np.nan, X), np.where(SPOT, np.inf, X)
BAD = {
    "X NaN": {"X": NAN},
    "X infinite": {"X": INFINITE},
    "X narrow": {"X": X[:, :2]},
    "X flat": {"X": X[:, 0]},
    "X deep": {"X": X[None]},
    "X none": {"X": None},
    "X empty": {"X": X[:0], "y": Y[:0]},
    "X short": {"X": X[:-1]},
    "X words": {"X": np.full(X.shape, "a")},
    "X set": {"X": {1, 2}},
    "X zero": {"X": X * (np.arange(N) != 7)[:, None]},
    "X ragged": {"X": [[1.0, 2.0], [3.0]]},
    "X huge": {"X": np.full(X.shape, 2**60)},
    "one": {"X": X[:1], "y": Y[:1]},
    "y none": {"y": None},
    "y deep": {"y": Y[:, None]},
    "y set": {"y": {"a"}},
    "y NaN": {"y": [np.nan] * N},
    "y one class": {"y": ["ant"] * N},
    "val NaN": {"X_val": V * np.nan},
    "val wide": {"X_val": np.hstack([V, V])},
    "val empty": {"X_val": V[:0], "y_val": W[:0]},
    "val short": {"X_val": V[:-1]},
    "val one": {"X_val": V[:1], "y_val": W[:1]},
    "val other": {"y_val": ["dog"] * M},
    "val none": {"X_val": None},
    "classes few": {"classes": ["ant", "bee"]},
    "classes twice": {"classes": ["ant", "ant", "bee", "cat"]},
    "classes more": {"classes": ["eel", *WORDS]},
    "classes set": {"classes": {*WORDS}},
    "classes text": {"classes": "ant"},
    "radius negative": {"radius": -1},
    "radius NaN": {"radius": float("nan")},
    "radius text": {"radius": "auto"},
    "radius zero": {"radius": 0},
    "radius array": {"radius": np.ones(2)},
    "metric": {"metric": "manhattan"},
    "kernel": {"kernel": "cosine"},
    "kernel rings": {"kernel": [(1, 1), (0.5, 2)]},
    "kernel weights": {"kernel": [(1, -1)]},
    "kernel outward": {"kernel": [(0.5, 1), (1, 2)]},
    "rings": {"rings": 3},
    "rings 0": {"rings": 0, "kernel": "gaussian"},
    "semivalue": {"semivalue": "core"},
    "semivalue 1": {"semivalue": 1},
    "neighbors": {"neighbors": "fast"},
    "task": {"task": "ranking"},
    "task words": {"task": "regression"},
    "task NaN": {"task": "regression", "y": T * np.nan, "y_val": U},
    "empty": {"empty": 1.0},
    "bounds": {"bounds": (0, 1)},
    "bounds turned": {"task": "regression", "bounds": (1, 0), "y": T, "y_val": U},
    "owners short": {"owners": OWNERS[:-1]},
    "owners None": {"owners": [None] * N},
    "owners list": {"owners": [[]] * N},
    "mean": {"mean": 1},
    "memory": {"memory": "lots"},
    "memory little": {"memory": 10},
    "checkpoint": {"checkpoint": "c"},
    "k 0": {"k": 0},
    "k 1.5": {"k": 1.5},
    "k many": {"k": 1000},
    "utility": {"utility": "hard"},
    "precision": {"precision": "float16"},
    "error": {"error": -1.0},
    "trees 0": {"trees": 0},
    "trees text": {"trees": "ten"},
    "folds": {"folds": 0},
    "folds many": {"folds": 99},
    "seed": {"seed": -1},
    "seed text": {"seed": "a"},
    "fraction": {"fraction": 1.5},
    "scale": {"scale": -1.0},
    "candidates": {"candidates": 0},
    "epsilon": {"epsilon": 0},
    "epsilon text": {"epsilon": "one"},
    "delta": {"delta": 1.0},
    "delta 0": {"delta": 0},
    "adjacency": {"adjacency": "swap"},
    "mechanism": {"mechanism": "magic"},
    "mechanisms": {"mechanisms": ["magic"]},
    "publish": {"publish": "all"},
    "points": {"points": 0},
    "version": {"version": 3},
    "points_per_owner": {"points_per_owner": 3},
    "ledger": {"ledger": "none.db"},
    "model": {"model": 3},
    "evaluations": {"evaluations": 0},
    "stability": {"stability": 2.0},
    "workers": {"workers": 0},
    "truncation": {"truncation": -1},
    "alpha": {"alpha": 0},
    "members": {"members": 10**6},
    "forest": {"forest": 3},
    "unknown": {"nonsense": 1},
    "subsample": {"subsample": 2.0},
}


def packed(function, pack):
    rows = {"X": pack(X), "y": Y, "X_val": pack(V), "y_val": W}
    return getattr(th, function)(**USUAL[function] | rows)


def labeled(function, words, pack):
    at = {word: place for place, word in enumerate(WORDS)}
    labels = {"y": pack([words[at[word]] for word in Y]), "y_val": pack([words[at[word]] for word in W])}
    return getattr(th, function)(**USUAL[function] | labels)


def bad_cases(cases):
    for name, usual in USUAL.items():
        function = getattr(th, name)
        known = inspect.signature(function).parameters
        for label, given in BAD.items():
            if label == "unknown" or set(given) <= set(known):
                cases.add(f"refused: {name}, {label}", lambda f=function, a=usual | given: f(**a))


def value_cases(cases):
    near = {"task": TASK, "judge": JUDGE, "metric": METRIC}
    cases.calls("tknn", th.tknn_shapley, **near, kernel=KERNEL, semivalue=SEMIVALUE)
    cases.calls("tknn", th.tknn_shapley, **near, mean=[True], owned=OWNED, neighbors=["all", "tree"], empty=EMPTY)
    own = {"": {"X_val": None, "y_val": None, "X": D_OWN, "metric": "precomputed", "radius": 2.0}}
    cases.calls("tknn of own distances", th.tknn_shapley, task=TASK, judge=own, kernel=KERNEL)
    cases.calls("knn of own distances", th.knn_shapley, task=TASK, judge={"": own[""] | {"radius": ...}}, k=[1, 4])
    cases.calls("owners by own distances", th.owner_shapley, task=TASK, judge=own, kernel=KERNEL, owned={"": {"owners": OWNERS}})
    cases.calls("tknn in blocks", lambda width, **more: th.tknn_shapley(iter(np.split(D, range(width, M, width), axis=1)), Y, None, W, metric="precomputed", **more), width=[1, 5, 20], radius=[1.0, 2.5])
    cases.calls("knn", th.knn_shapley, task=TASK, judge=JUDGE, metric=NEAREST, k=[1, 3, 50], utility=["soft-label", "jia2019", "mean"])
    cases.calls("knn", th.knn_shapley, task=TASK, judge=JUDGE, semivalue=SEMIVALUE, mean=[False, True], precision=["float64", "float32"], owned=OWNED)
    cases.calls("knn roughly", th.knn_shapley, task=TASK, judge=JUDGE, error=[0.01, 0.2], k=[1, 4])
    cases.calls("zero budget", th.zero_budget_score, task=TASK, judge={"val": {"X_val": V}}, metric=METRIC, mean=[False, True], owned=OWNED)
    cases.calls("owners", th.owner_shapley, task=TASK, judge=JUDGE, metric=METRIC, kernel=KERNEL, semivalue=SEMIVALUE[:3], owned={"": {"owners": OWNERS}})
    cases.calls("suggest radius", th.suggest_radius, task={"classes": {"X_val": V, "y_val": W}, "numbers": {"X_val": V, "y_val": U, "task": "regression"}}, metric=["cosine", "euclidean"], kernel=["box", "gaussian"], candidates=[8, 64])
    for name in ("tknn_shapley", "knn_shapley", "zero_budget_score", "forest_shapley", "owner_shapley", "suggest_radius", "add_feature_noise"):
        for label, pack in ROWS.items():
            if name == "suggest_radius":
                cases.add(f"rows: {name}, {label}", lambda pack=pack: th.suggest_radius(pack(V), W))
            else:
                cases.add(f"rows: {name}, {label}", lambda name=name, pack=pack: packed(name, pack) if name != "add_feature_noise" else th.add_feature_noise(pack(X), fraction=0.2, seed=0))
    for (label, words), (how, pack), name in itertools.product(LABELS.items(), PACKS.items(), ("tknn_shapley", "forest_shapley")):
        if name == "tknn_shapley" or how in {"list", "pandas"}:
            cases.add(f"labels: {name}, {label} as {how}", lambda name=name, words=words, pack=pack: labeled(name, words, pack))


def forest_cases(cases):
    scikit = (RandomForestClassifier(5, random_state=0).fit(X, Y), RandomForestRegressor(5, random_state=0).fit(X, T))
    forests = {"grown": FOREST, "folds": {**FOREST, "folds": 4}, "given": {"forest": scikit[0]}, "of numbers": {"forest": scikit[1]}}
    cases.calls("forest", th.forest_shapley, task=TASK, judge=JUDGE, forest=forests, semivalue=SEMIVALUE, mean=[False, True])
    cases.calls("forest findings", th.forest_findings, task=TASK, judge=JUDGE, forest=forests, owned=OWNED)
    cases.calls("grow", th.grow_forest, task={"classes": {"X": X, "y": Y}, "numbers": {"X": X, "y": T, "task": "regression"}}, trees=[1, 6], folds=[2, 3], seed=[0, 5])
    leaves = {"val": {"leaves_val": LEAVES[1]}, "each other": {"leaves_val": None, "y_val": None}}
    tasks = {label: {**given, "leaves": LEAVES[0], "X": ...} for label, given in TASK.items()}
    cases.calls("leaves", th.leaf_shapley, task=tasks, judge=leaves, semivalue=SEMIVALUE, owned=OWNED, unseen={"": {}, "some": {"unseen": RANDOM.random((N, 4)) < 0.1}})
    table = pd.DataFrame({"p": X[:, 0], "q": np.where(X[:, 1] > 0.8, np.nan, X[:, 1]), "c": pd.Categorical(WORDS[(X[:, 2] > 0).astype(int)])})
    cases.add("forest of a table with gaps and categories", lambda: th.forest_findings(table, Y, **FOREST))
    grown = th.grow_forest(X, Y, **FOREST)
    cases.add("forest saved", lambda: [grown.save("f.json"), th.Forest.load("f.json"), Path("f.json"), grown.apply(X[:5]), grown.document(), grown.some(1, 3), grown.unseen(X)])
    cases.calls("owners in leaves", th.owner_shapley, judge={"val": ALL, "each other": {"X": X, "y": Y}}, forest=[grown], semivalue=SEMIVALUE[:3], owned={"": {"owners": OWNERS}}, mean=[False, True])


def parts_cases(cases):
    import dask.array as da
    import dask.dataframe as dd

    frame = pd.DataFrame(X, columns=[*"pqr"]).assign(y=Y, t=T)

    def scanned(function, suffix, **more):
        frame.drop(columns="t").to_csv("points.csv", index=False)
        frame.drop(columns="t").to_parquet("points.parquet", index=False)
        return getattr(th, function)(th.Scan(f"points.{suffix}", label="y"), None, V, W, **more)

    cases.calls("scan", scanned, function=["tknn_shapley", "forest_shapley", "knn_shapley"], suffix=["csv", "parquet"], memory=[None, "2GB"], checkpoint=[None, "run"])
    cases.calls("parts", lambda **given: th.tknn_shapley(**ALL | given, memory="2GB"), kernel=KERNEL, semivalue=SEMIVALUE, owned=OWNED)

    def spread(function, chunk, *, frames=False, **more):
        points = (dd.from_pandas(frame[[*"pqr"]], npartitions=2), dd.from_pandas(frame["y"], npartitions=2))
        arrays = da.from_array(X, chunks=(chunk, 3)), da.from_array(Y.astype(object), chunks=chunk)
        found = getattr(th, function)(*(points if frames else arrays), V, W, **more)
        return [found, found.suspects(3), found.to_frame(), found.efficiency_gap()]

    cases.calls("dask", spread, function=["tknn_shapley"], chunk=[9, 100], kernel=KERNEL, semivalue=SEMIVALUE[:2], frames=[False, True])
    cases.calls("dask forest", spread, function=["forest_shapley"], chunk=[9], given={"": FOREST}, frames=[False, True])
    cases.calls("dask refused", spread, function=["knn_shapley", "zero_budget_score"], chunk=[9])


def story_of_counts(**given):
    more = given | {"task": given.get("task", "classification")}
    labels = T if more["task"] == "regression" else Y
    begun = th.NeighborCounts(**more)
    counts = begun.add(X[:20], labels[:20]).merge(th.NeighborCounts(**more).add(X[20:], labels[20:]))
    less = counts.remove(X[:3], labels[:3])
    prices = counts.price_list()
    asked = [
        lambda: [counts.save("c.json"), th.NeighborCounts.load("c.json"), Path("c.json")],
        lambda: [prices.save("p.json"), th.PriceList.load("p.json"), Path("p.json")],
        lambda: prices.values(X, labels),
        lambda: prices.newcomer_values(X[:4], labels[:4]),
        lambda: prices.label_values(X[:4]),
        lambda: prices.label_values(X[:4], labels[:4]),
        lambda: prices.best_targets(X[:4]),
        lambda: prices.values(X[:2], labels[:2], label=labels[5]),
        lambda: less.relabel(X[5:7], labels[5:7], labels[8:10]),
        lambda: less.remove(V, [labels[0]] * M),
        lambda: less.add(X, ["eel"] * N),
        lambda: less.merge(th.NeighborCounts(**more | {"radius": 0.77})),
        lambda: [counts.price_list(semivalue) for semivalue in SEMIVALUE],
    ]
    return [counts, less, *map(tried, asked)]


def tried(function):
    try:
        return function()
    except th.ThresherError as error:
        return [type(error).__name__, str(error)]


def story_of_live(**given):
    labels = T if given.get("task") == "regression" else Y
    rows = X.astype(given["dtype"]).astype(float)
    with th.LiveCounts.create("live", **given) as live:
        live.add_many([f"p{row}" for row in range(20)], rows[:20], labels[:20])
        live.add("q", rows[30], labels[30])
        live.relabel("p3", labels[8])
        live.remove("p7")
        live.commit()
        asked = [
            lambda: live.remove("p7"),
            lambda: live.add("q", rows[0], labels[0]),
            lambda: live.add("r", rows[0, :2], labels[0]),
            live.verify,
            lambda: live.values(th.Calibrated(2)),
            lambda: live.owner_values({each: each[0] for each in live.ids}),
            lambda: th.LiveCounts.open("live"),
        ]
        found = [live, live.counts, *map(tried, asked)]
        live.snapshot()
        seen = (list(map(str, found)), live.values(), tried(lambda: live.price_list().document()), [tried(each) for each in asked[:6]])
    with th.LiveCounts.open("live") as live:
        return [*seen, live, "p3" in live, "p7" in live, len(live)]


def count_cases(cases):
    grown = th.grow_forest(X, Y, **FOREST)
    settings = {
        "box": {"X_val": V, "y_val": W},
        "cosine": {"X_val": V, "y_val": W, "metric": "cosine", "radius": 0.3},
        "rings": {"X_val": V, "y_val": W, "kernel": "gaussian", "rings": 3, "radius": 1.0},
        "own": {"X_val": V, "y_val": W, "kernel": KERNEL["own"]["kernel"], "metric": "euclidean"},
        "numbers": {"X_val": V, "y_val": U, "task": "regression", "bounds": (-40, 40)},
        "numbers and rings": {"X_val": V, "y_val": U, "task": "regression", "bounds": (-40, 40), "kernel": "triangular"},
        "leaves": {"forest": grown},
        "leaves judged": {"forest": grown, "X_val": V, "y_val": W},
        "each other": {"classes": WORDS},
        "nothing": {},
        "more classes": {"X_val": V, "y_val": W, "classes": ["eel", *WORDS]},
        "numbers alone": {"forest": grown, "task": "regression", "empty": 1.0, "bounds": (-40, 40)},
    }
    cases.calls("counts", story_of_counts, of=settings)
    cases.calls("live", story_of_live, of={label: {"radius": 0.5, **given} if "forest" not in given and given.get("kernel") != KERNEL["own"]["kernel"] else given for label, given in settings.items()}, dtype=["float64", "float32"])


def result_cases(cases):
    made = {
        "points": th.tknn_shapley(**ALL),
        "owned": th.tknn_shapley(**ALL, owners=OWNERS, mean=True),
        "nearest": th.knn_shapley(**ALL, owners=OWNERS),
        "players": th.owner_shapley(**ALL, owners=OWNERS),
        "forest": th.forest_shapley(X, Y, **FOREST, owners=OWNERS),
        "numbers": th.tknn_shapley(X, T, V, U, task="regression", owners=OWNERS),
        "zero": th.zero_budget_score(**ALL),
    }
    for label, found in made.items():
        labels = T if label == "numbers" else Y
        rows = (X, labels) if label == "forest" else (X, labels, V, U if label == "numbers" else W)
        asked = {
            "suspects": lambda f=found: [tried(lambda n=n: f.suspects(n)) for n in (0, 1, 5, 0.5, 10**6, -1, None)] + [tried(lambda s=s: f.suspects(fraction=s)) for s in (0, 0.1, 1, 1.5)],
            "owners": lambda f=found: f.by_owner(),
            "pandas": lambda f=found: f.to_frame("pandas"),
            "polars": lambda f=found: f.to_frame("polars"),
            "text": lambda f=found: [repr(f), len(f), tried(lambda: f == made["points"])],
            "explained": lambda f=found, rows=rows: th.explain(f, *rows),
            "explained by others": lambda f=found, rows=rows: th.explain(f, *(each[:-1] for each in rows)),
            "saved": lambda f=found: [f.save("v.parquet"), Path("v.parquet"), type(f).load("v.parquet")],
            "saved as csv": lambda f=found: [f.save("v.csv"), Path("v.csv")],
            "reported": lambda f=found, rows=rows: [f.report("r.html", *rows), Path("r.html")],
            "reported alone": lambda f=found: [f.report("r.html"), Path("r.html")],
        }
        for what, function in asked.items():
            cases.add(f"result: {label}, {what}", function)
    pays = {"values": {label: {"values": made[label]} for label in ("owned", "players", "numbers", "points")}, "pot": [0, 1, 99_999], "floor": [0, 100], "cap": [None, 30_000], "flooring": ["owner", "point"]}
    cases.calls("payout", th.payout, **pays, minimum=[0, 9_000])
    cases.calls(
        "payout refused",
        th.payout,
        values={"": {"values": made["owned"]}},
        of={
            "pot": {"pot": -1},
            "part": {"pot": 1.5},
            "floor": {"pot": 3, "floor": 4},
            "turned": {"pot": 300, "floor": 4, "cap": 2},
            "within": {"pot": 3, "within": 1.0},
            "rows": {"pot": 300, "rows": X},
            "rows near": {"pot": 300, "rows": X, "within": 0.5},
        },
    )
    for suffix in ("csv", "json", "parquet"):
        cases.add(f"payout saved as {suffix}", lambda suffix=suffix: [[path.name for path in th.payout(made["owned"], pot=1000).save(f"p.{suffix}")], Path(), th.Payout.load(f"p.{suffix}")])
    cases.add("payout reported", lambda: [th.payout(made["owned"], pot=1000, rows=X).report("p.html"), Path("p.html")])


def other_cases(cases):
    cases.calls(
        "classifier",
        lambda **given: [(model := th.TKNNClassifier(**given).fit(X, Y)), model.predict(V), model.predict_proba(V), model.score(V, W), model.get_params(), tried(lambda: model.predict(V[:, :2]))],
        metric=["cosine", "euclidean"],
        kernel=["box", "gaussian", "epanechnikov"],
        radius=[0.2, 1.0],
    )
    retrain = {"data_shapley": {"evaluations": 80}, "beta_shapley": {"evaluations": 80, "alpha": 2.0}, "data_banzhaf": {"evaluations": 40}, "leave_one_out": {}}
    few = {"classes": {"X": X[:10], "y": Y[:10], "X_val": V, "y_val": W}, "numbers": {"X": X[:10], "y": T[:10], "X_val": V, "y_val": U, "task": "regression"}}
    for name, more in retrain.items():
        cases.calls(
            name, getattr(th, name), task=few, of={"": {**more, "workers": 1}}, model={"": {}, "fast": {"accelerate": True}, "nearest": {"model": KNeighborsClassifier(2)}}, owned={"": {}, "owned": {"owners": OWNERS[:10]}}, seed=[0, 3]
        )
    cases.calls("flip labels", th.flip_labels, y={"words": {"y": Y}, "list": {"y": Y.tolist()}, "two": {"y": X[:, 0] > 0}, "pandas": {"y": pd.Series(Y)}, "one": {"y": ["a"] * 5}}, fraction=[0, 0.3, 1], seed=[0, 4])
    cases.calls("noise on features", th.add_feature_noise, X={"": {"X": X}}, fraction=[0, 0.3, 1], seed=[0, 4], scale=[1.0, 3.0])
    cases.calls("audit runs", th.audit_runs, inside={"": {"inside": np.arange(150) * 0.7 + 20, "outside": np.arange(150) * 0.7}}, epsilon=[0.1, 3.0], delta=[0, 1e-3], gaussian=[False, True])
    cases.calls("audit", th.audit_mechanism, mechanism=["table", "cells", "paper", "knn"], epsilon=[1.0], delta=[0, 1e-4], of={"": {"runs": 300, "canaries": 20, "seed": 0}})
    from thresher.attack import DPTKNN, KNN, TKNN
    from thresher.embed import leading_components

    against = {"tknn": TKNN(radius=0.5), "knn": KNN(k=2), "private": DPTKNN(epsilon=1, delta=1e-4), "paper": DPTKNN(epsilon=1, delta=1e-4, mechanism="paper")}
    cases.calls("attack", th.membership_attack, of={"": USUAL["membership_attack"]}, against={label: {"against": each} for label, each in against.items()}, seed=[0, 1])
    cases.add("leading components", lambda: leading_components(X, V, 2))
    for name in th.__all__:
        if inspect.isfunction(getattr(th, name)) or name in {"NeighborCounts", "TKNNClassifier", "Beta", "Calibrated", "Scan"}:
            cases.add(f"signature of {name}", lambda name=name: [f"{p.name} {p.kind.name} {p.default!r}" for p in inspect.signature(getattr(th, name)).parameters.values()])
        elif issubclass(getattr(th, name), Exception):
            cases.add(f"bases of {name}", lambda name=name: [kind.__name__ for kind in getattr(th, name).__mro__])
    cases.add("public names", lambda: [th.__all__, th.__version__, sorted(set(dir(th)) & set(th.__all__))])
    for name in ("privacy", "federate", "market", "attack", "report", "paper"):
        cases.add(f"public names of {name}", lambda name=name: sorted(__import__(f"thresher.{name}", fromlist=["x"]).__all__))


def cases():
    found = Cases()
    for add in (value_cases, forest_cases, parts_cases, count_cases, result_cases, other_cases, bad_cases):
        add(found)
    return found
