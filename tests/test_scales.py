"""Values of the right size: rows on the scale of a price list, and lists that know their own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tabular import check_refused, thresher

import thresher as th
from thresher.inputs.checked_inputs import check_validation
from thresher.privacy import Paper
from thresher.runs.appraisal import appraise_files
from thresher.runs.scales import scale_mismatch

RANDOM = np.random.default_rng(0)
DATA_SETS = ["2dplanes", "agnews", "click", "cpu", "creditcard", "fraud", "phoneme", "pol", "wind"]


def public(rows, metric="cosine"):
    return check_validation(rows, np.arange(len(rows)) % 2, metric=metric, classes=None)


def census(count, seed=0):
    """Age, income, hours a week, and two columns of zeros and ones, one of them nearly constant."""
    random = np.random.default_rng(seed)
    numbers = [random.uniform(18, 80, count), random.lognormal(10, 0.8, count)]
    flags = [random.random(count) < share for share in (0.4, 0.01)]
    return np.column_stack([*numbers, random.normal(40, 9, count), *flags]).astype(float)


def standardized(rows, by):
    spread = by.std(axis=0)
    return (rows - by.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


# Rows and validation sets


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("validation_points", [30, 200])
@pytest.mark.parametrize("rows", [1, 4, 300])
def test_rows_that_only_one_side_standardized_are_on_another_scale(metric, validation_points, rows):
    V, X = census(validation_points, 1), census(rows, 2)
    assert scale_mismatch(X, public(standardized(V, V), metric))
    assert scale_mismatch(standardized(X, V), public(V, metric))
    assert scale_mismatch(X, public(V, metric)) == ""
    assert scale_mismatch(standardized(X, V), public(standardized(V, V), metric)) == ""


@pytest.mark.parametrize("change", [lambda X: X + 50, lambda X: 100 * X, lambda X: X / 1000])
def test_rows_that_are_shifted_or_scaled_are_on_another_scale(change):
    V, X = RANDOM.normal(size=(2, 150, 6))
    assert scale_mismatch(change(X), public(V))
    assert scale_mismatch(change(X[:1]), public(V))


def test_ordinary_owners_are_on_the_scale():
    V, X = RANDOM.normal(size=(2, 200, 5))
    assert scale_mismatch(X + np.array([2, 0, -1, 0, 0]), public(V)) == ""  # another place
    assert scale_mismatch(np.repeat(X[:1], 40, axis=0), public(V)) == ""  # copies of one row
    assert scale_mismatch(0.1 * X + X[0], public(V)) == ""  # rows much alike
    assert scale_mismatch(2 * X, public(V)) == ""
    outlier = X[:1] * [1, 1, 1, 1, 40]
    assert scale_mismatch(outlier, public(V)) == ""  # one column of one row


def test_constant_and_sparse_columns_say_nothing():
    V, X = (RANDOM.random((2, 200, 40)) < 0.02) * RANDOM.lognormal(0, 1, (2, 200, 40))
    V[:, :10] = 0  # never seen in the validation set
    assert scale_mismatch(X, public(V, "euclidean")) == ""
    assert all(scale_mismatch(row[None], public(V, "euclidean")) == "" for row in X)
    assert scale_mismatch(1e6 + X, public(np.ones((50, 40)))) != ""  # but lengths do
    assert scale_mismatch(1e6 + X, public(np.ones((5, 40)))) == ""  # if there are some
    assert scale_mismatch(np.empty((0, 40)), public(V, "euclidean")) == ""


@pytest.mark.parametrize("name", DATA_SETS)
def test_halves_of_real_data_are_on_one_scale(name, dataset):
    """20 splits, four owners each, of rows at random and of rows that are alike."""
    X = dataset(name)["X"][:3000].astype(np.float64)
    random, alarms = np.random.default_rng(0), 0
    for _ in range(20):
        order = random.permutation(len(X))
        V, rest = X[order[:200]], X[order[200:]]
        for form in (lambda rows, V=V: rows, lambda rows, V=V: standardized(rows, V)):
            Q, known = form(rest), public(form(V) + 1e-9)
            far = np.argsort(((Q - Q[0]) ** 2).sum(axis=1))
            owners = (Q[:1], Q[:3], Q[:100], Q[far[:50]])
            alarms += sum(scale_mismatch(rows, known) != "" for rows in owners)
    assert alarms == 0


# The command


@pytest.fixture
def prices(tmp_path, monkeypatch):
    """prices.json for a standardized validation set, and the rows of mine.csv, not standardized."""
    monkeypatch.chdir(tmp_path)
    V, X = census(150, 3), census(60, 4)
    labels = np.where(X[:, 0] > 50, "old", "young")
    counts = th.NeighborCounts(standardized(V, V), np.where(V[:, 0] > 50, "old", "young"))
    counts.add(standardized(X, V), labels).price_list().save("prices.json")
    write("mine.csv", X, labels)
    write("scaled.csv", standardized(X, V), labels)
    return counts


def write(path, X, labels):
    header = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
    rows = [",".join([*(f"{x:.9g}" for x in row), y]) for row, y in zip(X, labels, strict=True)]
    Path(path).write_text("\n".join([header, *rows]) + "\n")


def test_the_command_refuses_rows_on_another_scale(prices):
    done = thresher("appraise", "mine.csv", "--prices", "prices.json", "--out", "worth.csv")
    assert (done.returncode, done.stdout) == (1, "")
    assert "mine.csv is on another scale than the price list: column 2 has values" in done.stderr
    assert "--anyway" in done.stderr
    assert not Path("worth.csv").exists()
    done = thresher("appraise", "mine.csv", "--prices", "prices.json", "--anyway", "--json")
    assert done.returncode == 0
    assert "warning: mine.csv is on another scale" in done.stderr
    assert json.loads(done.stdout)["points"] == 60
    assert thresher("appraise", "scaled.csv", "--prices", "prices.json").returncode == 0


def test_the_command_refuses_more_or_fewer_columns_than_a_list_without_names_expects(prices):
    lines = Path("scaled.csv").read_text().splitlines()
    write_lines("more.csv", ["id", *(f"{700 + row}" for row in range(60))], lines)
    write_lines("odd.csv", ["x9", *("0.5" for _ in range(60))], lines)
    write_lines("fewer.csv", [], [line.partition(",")[2] for line in lines])
    about = ["--prices", "prices.json"]
    for name, said in {
        "more.csv": "has 6 columns of features ('id', 'x0', 'x1', 'x2', 'x3', 'x4'), but the price "
        "list expects 5: 'id' looks like an id: leave it out with --ignore id",
        "odd.csv": "but the price list expects 5: leave the others out with --ignore",
        "fewer.csv": "has 4 columns of features ('x1', 'x2', 'x3', 'x4'), but the price list "
        "expects 5: add the columns that are missing",
    }.items():
        done = thresher("appraise", name, *about)
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr
    assert thresher("appraise", "more.csv", *about, "--ignore", "id").returncode == 0


def write_lines(path, cells, lines):
    """A column of cells before the lines of a table, if there is one."""
    joined = map(",".join, zip(cells, lines, strict=True)) if cells else lines
    Path(path).write_text("\n".join(joined) + "\n")


@pytest.mark.parametrize("factor", [10, -10, 100])
@pytest.mark.parametrize("rows", [59, 60])
def test_what_is_quoted_lies_outside(factor, rows):
    V = np.random.default_rng(1).normal(size=(200, 3))
    said = scale_mismatch(V[:rows] * factor, public(V))
    value, low, high = [float(word) for word in said.split() if word[-1].isdigit()][-3:]
    assert not low <= value <= high


def test_what_is_quoted_lies_outside_where_no_column_is_off_in_most_rows():
    random = np.random.default_rng(2)
    V = random.normal(size=(200, 8)) * [1, 1, 1, 1, 1, 1, 1, 1000]
    X = V.copy()
    for row in X:  # two columns each, whose lengths are those of the validation set
        row[random.choice(7, 2, replace=False)] += 50
    said = scale_mismatch(X, public(V))
    assert said.startswith("column ")
    value, low, high = [float(word) for word in said.split() if word[-1].isdigit()][-3:]
    assert not low <= value <= high


# Lists that do not know how large values are


def test_a_list_of_owners_of_unknown_size_says_so_for_good(tmp_path):
    X, V = RANDOM.normal(size=(300, 3)), RANDOM.normal(size=(60, 3))
    y, y_val = (np.where(rows[:, 0] > 0, "a", "b") for rows in (X, V))
    options = {"epsilon": 5.0, "delta": 1e-3, "owners": np.arange(300) // 28, "seed": 0}
    with pytest.warns(
        th.ScaleWarning, match="pass roughly how many points each owner has"
    ) as caught:
        unknown = th.dp_tknn_shapley(X, y, V, y_val, **options)
    assert caught[0].filename == __file__
    assert "too large" in unknown.record["caveat"]
    known = th.dp_tknn_shapley(X, y, V, y_val, points_per_owner=28, **options)
    assert "caveat" not in known.record
    assert np.abs(unknown.values).mean() > 5 * np.abs(known.values).mean()
    for made, words in ((unknown, True), (known, False)):
        made.price_list.save(tmp_path / "prices.json")
        made.save(tmp_path / "release.json")
        for name in ("prices.json", "release.json"):
            loaded = th.PriceList.load(tmp_path / name)
            assert loaded.scaled is not words
            if words:
                with pytest.warns(th.ScaleWarning, match="right order but are too large"):
                    values = loaded.values(X, y)
            else:
                values = loaded.values(X, y)
            np.testing.assert_array_equal(values, made.values)


@pytest.mark.parametrize("mechanism", ["owners", "sample"])
def test_the_command_appraises_by_no_list_of_the_wrong_size(tmp_path, monkeypatch, mechanism):
    monkeypatch.chdir(tmp_path)
    X, V = RANDOM.normal(size=(300, 3)), RANDOM.normal(size=(60, 3))
    y, y_val = (np.where(rows[:, 0] > 0, "a", "b") for rows in (X, V))
    options = {"epsilon": 50.0, "delta": 1e-3, "seed": 0}
    if mechanism == "owners":
        with pytest.warns(th.ScaleWarning):
            made = th.dp_tknn_shapley(X, y, V, y_val, owners=np.arange(300) // 28, **options)
    else:
        pytest.importorskip("dp_accounting")
        made = th.dp_tknn_shapley(X, y, V, y_val, mechanism=Paper(sample="shared"), **options)
    made.price_list.save("prices.json")
    write("mine.csv", X[:5], y[:5])
    check_refused(lambda: appraise_files("mine.csv", Path("prices.json")), "--anyway")
    with pytest.warns(th.ScaleWarning, match="too large"):
        found = appraise_files("mine.csv", Path("prices.json"), anyway=True)
    np.testing.assert_allclose(found.values, made.values[:5], rtol=1e-6)


def test_the_command_warns_of_a_list_that_is_noise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, V = RANDOM.normal(size=(300, 3)), RANDOM.normal(size=(60, 3))
    y, y_val = (np.where(rows[:, 0] > 0, "a", "b") for rows in (X, V))
    write("mine.csv", X[:5], y[:5])
    for epsilon, noise in ((0.001, True), (50.0, False)):
        made = th.dp_tknn_shapley(X, y, V, y_val, epsilon=epsilon, delta=1e-3, seed=0)
        assert made.is_noise is noise
        made.price_list.save("prices.json")
        assert ("noise" in json.loads(Path("prices.json").read_text())) is noise
        made.save("release.json")
        for name in ("prices.json", "release.json"):
            assert th.PriceList.load(name).noise is noise
            done = thresher("appraise", "mine.csv", "--prices", name)
            assert done.returncode == 0
            assert ("warning: this price list comes from a private release" in done.stderr) is noise
