"""Kernels in the classifier, in suggest_radius and in the command."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tabular import check_refused, put, thresher

import thresher as th
from thresher.neighbors.ball import Ball
from thresher.report import near_pairs, why
from thresher.report.subject import check_subject
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
@pytest.mark.parametrize("chosen", [False, True])
def test_the_command_values_by_a_kernel(tmp_path, more, chosen):
    X, y, V, y_val = problem()
    train, val = write_csv(tmp_path / "t.csv", X, y), write_csv(tmp_path / "v.csv", V, y_val)
    out = tmp_path / "values.parquet"
    about, radius = ["--rings", 5, "--metric", "euclidean"], 2.0
    if chosen:
        radius = th.suggest_radius(V, y_val, metric="euclidean", kernel="gaussian", rings=5)
    else:
        about += ["--kernel", "gaussian", "--radius", 2]
    done = thresher("value", train, "--validation", val, *about, "--out", out, *more)
    assert done.returncode == 0, done.stderr
    wanted = th.tknn_shapley(
        X, [f"c{each}" for each in y], V, [f"c{each}" for each in y_val], metric="euclidean",
        radius=radius, kernel="gaussian", rings=5,
    )  # fmt: skip
    found = th.Valuation.load(out)
    assert found.params["kernel"] == "gaussian"
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-12)


def test_the_command_refuses_kernels_that_make_no_sense():
    for more, message in [
        ({"kernel": "cubic"}, "--kernel must be one of"),
        ({"rings": 5, "kernel": "box"}, "--rings needs a --kernel other than box"),
        ({"kernel": "gaussian", "method": "knn"}, "--kernel needs --method tknn"),
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


def embedding(rows, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    return rng.normal(size=(rows, 70)) + 0.6 * y[:, None], y


def test_distances_are_weighed_by_a_gaussian_unless_a_box_is_asked_for(tmp_path):
    X, y = embedding(120, 0)
    V, y_val = embedding(60, 1)
    paths = {name: tmp_path / f"{name}.npz" for name in ("train", "val")}
    np.savez(paths["train"], X=X, y=y)
    np.savez(paths["val"], X=V, y=y_val)

    def run(*more, out="values.parquet"):
        about = "--validation", paths["val"], "--out", tmp_path / out, "--force"
        done = thresher("value", paths["train"], *about, *more)
        assert done.returncode == 0, done.stderr
        return th.Valuation.load(tmp_path / out), done.stderr

    found, said = run("--method", "tknn")
    reach = th.suggest_radius(V, y_val, kernel="gaussian")
    wanted = th.tknn_shapley(X, y, V, y_val, kernel="gaussian", radius=reach)
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-12)
    assert found.params["kernel"] == "gaussian"
    assert "kernel gaussian: closer points count more" in said
    assert "--kernel box" in said
    box, said = run("--kernel", "box")
    plain = th.tknn_shapley(X, y, V, y_val, radius=th.suggest_radius(V, y_val))
    np.testing.assert_allclose(box.values, plain.values, atol=1e-12)
    assert "kernel" not in said
    given, _ = run("--radius", 0.5)  # a radius that was given is that of the box
    np.testing.assert_allclose(given.values, th.tknn_shapley(X, y, V, y_val).values, atol=1e-12)


def test_the_record_says_which_kernel_was_chosen_and_the_command_makes_the_same_run():
    settings = Settings("x.npz", method="tknn")
    assert settings.weighing == "gaussian"
    assert settings.command() == "thresher value x.npz --method tknn"
    assert Settings("x.npz", method="tknn", radius=0.4).weighing == "box"
    assert Settings("x.csv", method="tknn", task="regression").weighing == "box"
    assert Settings("x.csv", method="knn").weighing == "box"
    assert Settings("x.csv", method="tknn", kernel="box").command().endswith("--kernel box")


@pytest.mark.parametrize("neighbors", ["all", "tree"])
def test_a_report_of_a_kernel_shows_its_own_values(tmp_path, monkeypatch, neighbors):
    monkeypatch.setattr(near_pairs, "Ball", partial(Ball, neighbors=neighbors))
    X, y, V, y_val = problem()
    about = {"kernel": "gaussian", "radius": 2.0, "metric": "euclidean", "rings": 5}
    found = th.tknn_shapley(X, y, V, y_val, **about)
    subject = check_subject(found, X, y, V, y_val)
    halves = np.arange(0, 60, 2), np.arange(1, 60, 2)
    steps = np.zeros(len(X), np.int32)
    pairs = near_pairs.walk_near_pairs(subject, [steps], 1, halves)
    np.testing.assert_allclose(pairs.half_values.sum(axis=0), found.values, atol=1e-12)
    classifier = th.TKNNClassifier(**about).fit(X, y)
    right = classifier.predict_proba(V)[np.arange(60), y_val]
    np.testing.assert_array_equal(pairs.right[0, 0] == 1, right > 0.5)
    prices = th.NeighborCounts(V, y_val, **about).add(X, y).price_list()
    wanted = prices.label_values(X[:4], y[:4])
    np.testing.assert_allclose(why._values(subject, np.arange(4), pairs), wanted, atol=1e-12)
    found.report(tmp_path / "page.html", X, y, V, y_val)
    assert "gaussian kernel in 5 rings" in (tmp_path / "page.html").read_text()


def test_calibrated_values_of_a_store_and_of_the_command(tmp_path):
    X, y, V, y_val = problem()
    labels, theirs = ([f"c{each}" for each in codes] for codes in (y, y_val))
    about = {"metric": "euclidean", "radius": 1.5}
    wanted = th.tknn_shapley(X, labels, V, theirs, semivalue=th.Calibrated(4), **about)
    store = th.LiveCounts.create(tmp_path / "store", V, theirs, dtype="float64", **about)
    store.add_many(list(range(len(X))), X, labels)
    kept = store.values(th.Calibrated(4))
    np.testing.assert_array_equal(kept.values, wanted.values)
    with pytest.raises(th.InputError, match="without a kernel"):
        store.owner_values({i: i % 3 for i in range(len(X))}, th.Calibrated(4))
    store.close()
    train, val = write_csv(tmp_path / "t.csv", X, y), write_csv(tmp_path / "v.csv", V, y_val)
    options = ["--metric", "euclidean", "--radius", 1.5, "--semivalue", "calibrated(4)"]
    for more in ([], ["--memory", "64GB"]):
        out = tmp_path / f"{len(more)}.parquet"
        done = thresher("value", train, "--validation", val, *options, "--out", out, *more)
        assert done.returncode == 0, done.stderr
        assert "calibrated(4)" in done.stderr
        np.testing.assert_allclose(th.Valuation.load(out).values, wanted.values, atol=1e-12)
    assert Settings("t.csv", semivalue="calibrated(4)").weighing == "box"
    for bad in ({"kernel": "gaussian"}, {"method": "forest"}, {"task": "regression"}):
        given = {"semivalue": "calibrated(4)", **bad}
        check_refused(lambda given=given: Settings("t.csv", **given), "calibrated(4) is for points")
