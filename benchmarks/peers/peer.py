"""Run by the interpreter of a peer's own environment: time one call and save its values.

    python peer.py PEER data.npz values.npy REPEATS

Prints one line of JSON with the seconds of each repeat.
"""

import json
import sys
import time
import warnings

import numpy as np


def pydvl(data):
    from joblib import parallel_config
    from pydvl.valuation import Dataset, KNNShapleyValuation
    from sklearn.neighbors import KNeighborsClassifier

    k = int(data["k"])
    train, val = Dataset(data["X"], data["y"]), Dataset(data["V"], data["y_val"])

    def run():
        model = KNeighborsClassifier(k)
        valuation = KNNShapleyValuation(model, val, progress=False, clone_before_fit=False)
        with parallel_config("loky", n_jobs=2):
            result = valuation.fit(train).result
        values = np.empty(len(data["X"]))
        values[result.indices] = result.values
        return values * len(data["V"])

    return run


def shapiq_knn(data):
    from shapiq.explainer.nn import KNNExplainer
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(int(data["k"])).fit(data["X"], data["y"])
    return _shapiq(KNNExplainer, model, data)


def shapiq_tknn(data):
    from shapiq.explainer.nn import ThresholdNNExplainer
    from sklearn.neighbors import RadiusNeighborsClassifier

    model = RadiusNeighborsClassifier(radius=float(data["radius"])).fit(data["X"], data["y"])
    return _shapiq(ThresholdNNExplainer, model, data)


def _shapiq(explainer, model, data):
    def run():
        by_label = [explainer(model, class_index=label) for label in (0, 1)]
        total = np.zeros(len(data["X"]))
        for v, label in zip(data["V"], data["y_val"]):
            total += by_label[label].explain(v).get_n_order_values(1)
        return total

    return run


def datascope(data):
    from datascope.importance.shapley import ShapleyImportance
    from datascope.importance.utility import SklearnModelAccuracy
    from sklearn.neighbors import KNeighborsClassifier

    def run():
        utility = SklearnModelAccuracy(KNeighborsClassifier(1))
        importance = ShapleyImportance(method="neighbor", utility=utility)
        found = importance.fit(data["X"], data["y"]).score(data["V"], data["y_val"])
        return np.asarray(found) * len(data["V"])

    return run


def cleanlab(data):
    from cleanlab.data_valuation import data_shapley_knn

    return lambda: data_shapley_knn(
        data["y"], features=data["X"], metric="euclidean", k=int(data["k"])
    )


def cleanlab_issues(data):
    """Two scores, issue, best label, how many errors it expects, and seconds.

    The array has models by labelings by these six by rows.
    """
    from cleanlab.count import num_label_issues
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    models = {
        "forest": RandomForestClassifier(200, random_state=0, n_jobs=2),
        "linear": LogisticRegression(max_iter=100),
    }

    def found(name, y):
        start = time.perf_counter()
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        shares = cross_val_predict(models[name], data[name], y, cv=folds, method="predict_proba")
        issues = find_label_issues(y, shares)
        seconds = np.full(len(y), time.perf_counter() - start)
        expected = np.full(len(y), num_label_issues(y, shares))
        scores = (
            get_label_quality_scores(y, shares, method=method)
            for method in ("self_confidence", "normalized_margin")
        )
        return *scores, issues, shares.argmax(axis=1), expected, seconds

    return lambda: np.array([[found(name, y) for y in data["y"]] for name in models])


def cleanlab_fold(data):
    """To fit and ask a model in one fold of five, and to find issues in all rows.

    Models (a forest of 200 trees, and LightGBM as it comes) by these two works by seconds, and
    seconds of all cores together.
    """
    from cleanlab.filter import find_label_issues
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import RandomForestClassifier

    models = (
        RandomForestClassifier(200, random_state=0, n_jobs=2),
        LGBMClassifier(random_state=0, n_jobs=2, verbose=-1),
    )
    X, y = data["X"], data["y"]
    out = np.arange(len(y)) % 5 == 0

    def clock():
        return np.array([time.perf_counter(), time.process_time()])

    def run(model):
        start = clock()
        fitted = model.fit(X[~out], y[~out])
        fitted.predict_proba(X[out])
        fold = clock() - start
        shares = fitted.predict_proba(X)  # its own rows, too: for the size, not the findings
        start = clock()
        find_label_issues(y, shares)
        return fold, clock() - start

    return lambda: np.array([run(model) for model in models])


def main(peer, source, target, repeats):
    warnings.simplefilter("ignore")
    with np.load(source) as stored:
        data = {key: stored[key] for key in stored.files}
    run = globals()[peer](data)
    seconds = []
    for _ in range(int(repeats)):
        start = time.perf_counter()
        values = run()
        seconds.append(time.perf_counter() - start)
    np.save(target, values)
    print(json.dumps({"seconds": seconds, "peak": peak()}))


def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


if __name__ == "__main__":
    main(*sys.argv[1:])
