"""From a raw table to owners' values: scaling and encoding by the public validation set."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.errors import in_options, message_of
from thresher.runs.appraisal import appraise_files
from thresher.runs.public_encoding import Preparation, read_radius
from thresher.tables.labeled import read_private

RANDOM = np.random.default_rng(0)


def rows(count):
    size, age = RANDOM.normal(5000, 900, count), RANDOM.integers(18, 90, count)
    town = RANDOM.choice(["Bern", "Basel", "Chur"], count)
    y = np.where((size > 5000) ^ (town == "Chur"), "yes", "no")
    return [f"{a:.1f},{b},{c},{d}" for a, b, c, d in zip(size, age, town, y)]


def write(path, lines):
    path.write_text("\n".join(["size,age,town,y", *lines]) + "\n")
    return path


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "val.csv", rows(60)), write(tmp_path / "points.csv", rows(150))


def encoding(val, fill="median"):
    return Preparation.of("validation", fill, ["town"]).fit(val, "y", [], None)


def test_a_raw_table_becomes_prices_and_values_without_scaling_by_hand(
    files, tmp_path, run_command
):
    pytest.importorskip("opendp")
    val, points = files
    bad = write(tmp_path / "bad.csv", [*points.read_text().splitlines()[1:], "?,30,Bern,yes"])
    ledger = tmp_path / "l.db"
    th.Ledger.create(ledger, epsilon=20, delta=1e-4)
    said = []
    for name, table in (("a", points), ("b", bad)):
        done = run_command(
            "release", str(table), "--validation", str(val), "--epsilon", "8", "--delta", "1e-6",
            "--ledger", str(ledger), "--out-prices", str(tmp_path / f"{name}.json"), "--version", name,
            "--standardize", "validation", "--fill", "median", "--categorical", "town",
            "--radius", "auto", "--metric", "euclidean", "--unusable", str(tmp_path / f"{name}.csv"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stderr.replace(f"{name}.json", "prices").splitlines()[0])
        assert json.loads(done.stdout)["radius"] > 0
    assert "?" not in (tmp_path / "b.json").read_text()
    assert len((tmp_path / "b.csv").read_text().splitlines()) == 2  # the header, one row
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1
    prices = th.PriceList.load(tmp_path / "a.json")
    assert [each["name"] for each in prices.encoding["columns"]] == ["size", "age", "town"]
    found = appraise_files(str(points), tmp_path / "a.json")
    encoded = encoding(val).private(points, read_private(points, "y").X)
    y = [line.rsplit(",", 1)[1] for line in points.read_text().splitlines()[1:]]
    np.testing.assert_array_equal(found.values, prices.values(encoded, y))
    with pytest.raises(th.InputError, match="says what replaces missing cells"):
        appraise_files(str(points), tmp_path / "a.json", fill="zero")


def test_private_rows_are_encoded_as_public_ones_are(files):
    """Bit by bit, by an encoder that never saw them."""
    val, _ = files
    fitted = encoding(val)
    own = fitted.private(val, read_private(val, "y").X)
    np.testing.assert_array_equal(own, fitted.rows)
    assert abs(fitted.rows[:, :2].mean()) < 0.1


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ("oops,30,Bern,yes", np.nan),
        (",30,Bern,yes", 0.0),
        ("NA,30,Bern,yes", 0.0),
        ("1e999,30,Bern,yes", np.inf),
    ],
)
def test_what_one_row_holds_changes_no_other_row(files, tmp_path, row, wanted):
    val, points = files
    fitted = encoding(val, fill=None if np.isnan(wanted) else "5000")
    lines = points.read_text().splitlines()[1:]
    with_row = write(tmp_path / "more.csv", [row, *lines])
    plain = fitted.private(points, read_private(points, "y").X)
    found = fitted.private(with_row, read_private(with_row, "y").X)
    np.testing.assert_array_equal(found[1:], plain)
    mean = fitted.encoder.features[0].means[0], fitted.encoder.features[0].deviations[0]
    if wanted == 0:
        assert found[0, 0] == (5000 - mean[0]) / mean[1]
    else:
        assert not np.isfinite(found[0, 0])


def test_categories_that_were_not_seen_are_zeros(files):
    val, _ = files
    fitted = encoding(val)
    table = pa.table({"size": [1.0, 2.0], "age": [20, 30], "town": ["Genf", None]})
    assert np.ptp(fitted.private(val, table)[:, 2:], axis=0).max() == 0
    with pytest.raises(th.InputError, match="no column 'size'"):
        fitted.private(val, table.drop_columns(["size"]))
    with pytest.raises(th.InputError, match="table with named columns"):
        fitted.private(val, np.zeros((2, 3)))


def test_what_cannot_be_prepared_is_refused(files, tmp_path):
    val, _ = files
    assert Preparation.of(None, None, ()) is None
    with pytest.raises(th.InputError, match="standardize must be one of 'validation'"):
        Preparation.of("points", None, ())
    with pytest.raises(th.InputError, match="must be a number or auto"):
        read_radius("wide", None, None, metric="cosine")
    lines = [f"{a},{b},C,no" for a, b in (("10%", 1), ("20%", 2), ("30%", 3))]
    with pytest.raises(th.InputError, match="holds percent"):
        Preparation.of("validation", None, ["town"]).fit(write(val, lines), "y", [], None)


def test_a_raw_table_is_released_planned_and_appraised_by_leaves(files, tmp_path):
    pytest.importorskip("opendp")
    val, points = files
    th.Ledger.create(tmp_path / "l.db", epsilon=20, delta=1e-4)
    trees = ("--validation", val, "--trees", 3, "--leaves", 6, "--delta", 1e-6)

    def told(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    done = told(
        "release", points, *trees, "--epsilon", 8, "--ledger", tmp_path / "l.db",
        "--out-prices", tmp_path / "p.json", "--categorical", "town",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "without a prior, nothing says" in done.stderr
    record = json.loads(done.stdout)
    plain = Preparation.of(None, None, ["town"]).fit(val, "y", [], None)
    forest = th.privacy.public_forest(plain.rows, labels(val), trees=3, leaves=6)
    assert (record["trees"], record["forest_digest"]) == (3, forest.digest())
    listed = th.PriceList.load(tmp_path / "p.json")
    X = plain.private(points, read_private(points, "y").X)
    mine = appraise_files(str(points), tmp_path / "p.json").values
    np.testing.assert_array_equal(mine, listed.values(X, labels(points)))
    planned = told("plan", *trees, "--points", 150, "--ignore", "town", "--epsilon", 8)
    (plan,) = json.loads(planned.stdout)["plans"]
    assert (plan["bound"], plan["mechanism"]) == (3, "table")
    assert 0 < plan["relative_error"] < 1
    assert "cannot say how far off" in planned.stderr
    wrong = told("plan", *trees, "--points", 150, "--ignore", "town", "--radius", 2)
    assert "near means in the same leaf" in str(wrong.exception)


def test_a_release_of_a_raw_table_is_planned_with_the_options_of_the_release(files):
    val, _ = files
    about = ("--validation", val, "--points", 150, "--epsilon", 8, "--delta", 1e-6)
    raw = ("--standardize", "validation", "--fill", "median", "--categorical", "town")
    done = CliRunner().invoke(
        app, [str(word) for word in ("plan", *about, *raw, "--radius", "auto")]
    )
    assert done.exit_code == 0, done.output
    encoded = Preparation.of("validation", "median", ["town"]).fit(val, "y", [], None)
    radius = read_radius("auto", encoded.rows, labels(val), metric="cosine")
    wanted = th.plan_release(
        encoded.rows, labels(val), points=150, epsilon=8, delta=1e-6, radius=radius,
        mechanisms=["table", "cells"],
    )  # fmt: skip
    found = json.loads(done.stdout)["plans"]
    assert [each["relative_error"] for each in found] == [each.relative_error for each in wanted]
    more = ("--ignore", "town", "--radius", "wide")
    wrong = CliRunner().invoke(app, ["plan", *map(str, about), *more])
    assert "--radius must be a number or auto" in in_options(message_of(wrong.exception))


def labels(path):
    return [line.rsplit(",", 1)[1] for line in path.read_text().splitlines()[1:]]
