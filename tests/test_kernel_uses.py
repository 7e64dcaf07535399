"""Kernels in the classifier, in suggest_radius and in the command."""

from __future__ import annotations

import numpy as np
import pytest
from tabular import check_refused, put, thresher

import thresher as th
from thresher.runs.appraisal import appraise_files
from thresher.runs.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


def problem(points=80, validation=60, seed=0):
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(points, 3)), rng.normal(size=(validation, 3))
    return X, (X[:, 0] > 0).astype(int), V, (V[:, 0] > 0).astype(int)


def test_the_soft_accuracy_of_the_classifier_is_the_utility():
    X, y, V, y_val = problem()
    about = {"metric": "euclidean", "kernel": "triangular", "radius": 0.8, "rings": 6}
    found = th.TKNNClassifier(**about).fit(X, y).predict_proba(V)
    shares = found[np.arange(len(V)), y_val]
    wanted = th.tknn_shapley(X, y, V, y_val, **about)
    assert shares.sum() == pytest.approx(wanted.utility_all, rel=1e-13)
    assert found[shares == 0.5].tolist() == [[0.5, 0.5]] * int((shares == 0.5).sum())


def test_the_box_of_the_classifier_is_what_it_was():
    X, y, V, _ = problem()
    plain = th.TKNNClassifier(radius=0.9, metric="euclidean").fit(X, y)
    rings = th.TKNNClassifier(metric="euclidean", kernel=[(0.4, 2.0), (0.9, 2.0)]).fit(X, y)
    np.testing.assert_allclose(rings.predict_proba(V), plain.predict_proba(V), atol=1e-15)


def test_a_radius_is_suggested_for_a_kernel():
    _, _, V, y_val = problem(validation=150)
    box = th.suggest_radius(V, y_val, metric="euclidean")
    found = th.suggest_radius(V, y_val, metric="euclidean", kernel="gaussian")
    assert found > box  # three standard deviations reach farther than a box
    assert found.accuracy.max() > 0.85
    by_hand = 0.0
    for v in range(len(V)):
        d = np.sqrt(((V - V[v]) ** 2).sum(axis=1))
        d[v] = np.inf
        places = np.ceil(d / float(found) * 16) - 1
        weights = np.where(places < 16, np.exp(-4.5 * ((np.maximum(places, 0) + 0.5) / 16) ** 2), 0)
        votes = np.array([weights[y_val == c].sum() for c in (0, 1)])
        leads = votes == votes.max()
        by_hand += leads[y_val[v]] / leads.sum() / len(V)
    at = int(np.flatnonzero(found.radii == float(found))[0])
    assert found.accuracy[at] == pytest.approx(by_hand, abs=1e-12)
    with pytest.raises(th.InputError, match="kernel must be a name"):
        th.suggest_radius(V, y_val, kernel=[(0.5, 1.0)])


def write_csv(path, X, y):
    rows = [",".join([*(f"{each:.17g}" for each in x), f"c{label}"]) for x, label in zip(X, y)]
    put(path, "\n".join(["a,b,c,y", *rows]) + "\n")
    return path


@pytest.mark.parametrize("more", [[], ["--memory", "64GB"]])
def test_the_command_values_by_a_kernel(tmp_path, more):
    X, y, V, y_val = problem()
    train, val = write_csv(tmp_path / "t.csv", X, y), write_csv(tmp_path / "v.csv", V, y_val)
    out = tmp_path / "values.parquet"
    about = ["--kernel", "gaussian", "--rings", 5, "--metric", "euclidean", "--radius", 2]
    done = thresher("value", train, "--validation", val, *about, "--out", out, *more)
    assert done.returncode == 0, done.stderr
    wanted = th.tknn_shapley(
        X, [f"c{each}" for each in y], V, [f"c{each}" for each in y_val], metric="euclidean",
        radius=2.0, kernel="gaussian", rings=5,
    )  # fmt: skip
    found = th.Valuation.load(out)
    assert found.params["kernel"] == "gaussian"
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-12)


def test_the_command_refuses_kernels_that_make_no_sense():
    for more, message in [
        ({"kernel": "cubic"}, "--kernel must be one of"),
        ({"rings": 5, "method": "tknn"}, "--rings goes with a --kernel other than box"),
        ({"kernel": "gaussian", "method": "knn"}, "--kernel goes with --method tknn"),
    ]:
        check_refused(lambda more=more: Settings("points.csv", **more), message)


def test_appraise_reads_a_price_list_with_rings(tmp_path):
    X, y, V, y_val = problem()
    names, names_val = ([f"c{each}" for each in labels] for labels in (y, y_val))
    about = {"metric": "euclidean", "radius": 2.0, "kernel": "epanechnikov"}
    prices = th.NeighborCounts(V, names_val, **about).add(X, names).price_list()
    prices.save(tmp_path / "prices.json")
    found = appraise_files(write_csv(tmp_path / "t.csv", X, y), tmp_path / "prices.json")
    np.testing.assert_allclose(found.values, prices.values(X, names), atol=1e-9)
    assert found.record["kernel"] == "epanechnikov"


def test_the_command_releases_a_kernel_and_appraises_by_it(tmp_path):
    X, y, V, y_val = problem(points=300)
    points, val = write_csv(tmp_path / "p.csv", X, y), write_csv(tmp_path / "v.csv", V, y_val)
    ledger, prices = tmp_path / "ledger.db", tmp_path / "prices.json"
    th.Ledger.create(ledger, epsilon=2, delta=1e-5)
    budget = ["--epsilon", 2, "--delta", 1e-5, "--ledger", ledger, "--out-prices", prices]
    about = ["--kernel", "gaussian", "--rings", 3, "--metric", "euclidean", "--radius", "auto"]
    done = thresher("release", points, "--validation", val, *budget, *about)
    assert done.returncode == 0, done.stderr
    listed = th.PriceList.load(prices)
    reach = th.suggest_radius(
        V, [f"c{each}" for each in y_val], metric="euclidean", kernel="gaussian", rings=3
    )
    assert (listed.kernel.name, len(listed.kernel.edges)) == ("gaussian", 3)
    assert listed.radius == float(reach)
    done = thresher("appraise", points, "--prices", prices, "--out", tmp_path / "worth.csv")
    assert done.returncode == 0, done.stderr
    found = np.loadtxt(tmp_path / "worth.csv", delimiter=",", skiprows=1, usecols=-1, dtype=str)
    assert len(found) == 300
