"""Numbers as targets in parts and on Dask: the same bits as in memory, and the same command."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.errors import in_options, message_of
from thresher.passes import checkpoint as resume
from thresher.passes import memory
from thresher.passes.target_span import TargetSpan
from thresher.runs import table_folder
from thresher.runs.memory_run import value_files
from thresher.runs.owner_run import value_owners
from thresher.runs.settings import Settings
from thresher.runs.table_file import value_to_file
from thresher.runs.table_folder import value_to_folder
from thresher.sides import forest_side as forest_sides
from thresher.tables import encoder as encoder_module
from thresher.tables.columns import Columns
from thresher.tables.encoder import TreeEncoder

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SMALL = 37  # rows of a part
TREES = 10


def line(count, seed):
    """Targets that follow from two of three columns, with gaps and copies among the rows."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 9, (count, 3)) / 4
    y = 10 * X[:, 0] - 5 * X[:, 1] + random.normal(size=count)
    X[random.random(X.shape) < 0.05] = np.nan
    return X, y


X, Y = line(150, 0)
X_VAL, Y_VAL = line(40, 1)
JUDGES = {
    "points": ((None, None), {"empty": 1.5}),
    "validation": ((X_VAL, Y_VAL), {"semivalue": "banzhaf", "mean": True}),
}


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(memory.Account, "rows", lambda *_: SMALL)
    monkeypatch.setattr(forest_sides, "BLOCK_BYTES", 3000)  # of several trees


@pytest.fixture(params=list(JUDGES), scope="module")
def judged(request):
    """Judges and options, a grown forest, and the values in memory."""
    judges, more = JUDGES[request.param]
    about = {"task": "regression", "trees": TREES, **more}
    return judges, about, th.forest_shapley(X, Y, *judges, **about)


def write_two(folder, table):
    """The rows in two files of a folder."""
    folder.mkdir()
    for number, rows in enumerate((slice(0, 60), slice(60, None))):
        pq.write_table(table[rows], folder / f"{number}.parquet")


def check_same(found, wanted):
    assert found == wanted
    assert found.values.tobytes() == wanted.values.tobytes()
    assert (found.utility_all, found.utility_none) == (wanted.utility_all, wanted.utility_none)


def test_forests_of_numbers_give_the_same_bits_in_parts(judged, small_parts, tmp_path):
    judges, about, wanted = judged
    check_same(th.forest_shapley(X, Y, *judges, memory="64GB", **about), wanted)
    grown = th.grow_forest(X, Y, trees=TREES, task="regression")
    del about["trees"]
    check_same(th.forest_shapley(X, Y, *judges, forest=grown, memory="64GB", **about), wanted)
    about["trees"] = TREES
    data = pa.table({f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(3)} | {"y": Y})
    write_two(tmp_path / "parts", data)
    csv.write_csv(data, tmp_path / "points.csv")
    for path in ("parts/*.parquet", "points.csv"):
        points = th.Scan(tmp_path / path, label="y")
        check_same(th.forest_shapley(points, None, *judges, **about), wanted)


def test_forests_of_numbers_give_the_same_bits_on_dask(judged, small_parts):
    judges, about, wanted = judged
    lazy = da.from_array(X, chunks=(40, 3)), da.from_array(Y, chunks=40)
    check_same(th.forest_shapley(*lazy, *judges, **about).compute(), wanted)
    grown = th.grow_forest(X, Y, trees=TREES, task="regression")
    about = {name: each for name, each in about.items() if name != "trees"}
    check_same(th.forest_shapley(lazy[0], Y, *judges, forest=grown, **about).compute(), wanted)


def test_values_add_up_where_points_judge():
    found = th.forest_shapley(X, Y, task="regression", trees=TREES, empty=1.5, memory="64GB")
    assert abs(found.efficiency_gap()) < 1e-12 * abs(found.utility_none)


def test_a_broken_run_of_a_forest_of_numbers_goes_on(judged, small_parts, tmp_path, monkeypatch):
    judges, about, wanted = judged
    run, save, saved = tmp_path / "run", resume._save, []

    def break_off(file, piece, entry, chunks):
        save(file, piece, entry, chunks)
        saved.append(piece)
        if len(saved) == 4:  # the forest, and 3 of 5 parts counted
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(resume, "_save", break_off)
        with pytest.raises(KeyboardInterrupt):
            th.forest_shapley(X, Y, *judges, checkpoint=run, **about)
    with pytest.raises(th.InputError, match="run"):
        th.forest_shapley(X, Y, *judges, checkpoint=run, **{**about, "empty": 9.0})
    with monkeypatch.context() as patch:
        patch.setattr("thresher.passes.forest_growth.grow_targets", None)  # it is not grown again
        check_same(th.forest_shapley(X, Y, *judges, checkpoint=run, **about), wanted)
    assert not run.exists()


@pytest.mark.parametrize(
    ("y", "more", "why"),
    [
        (np.where(np.arange(150) == 140, np.nan, Y), {"empty": 0.0}, "row 140"),
        (np.ones(150), {"empty": 0.0}, "one distinct target"),
        (Y, {}, "empty is needed"),
        (Y, {"empty": np.inf}, "finite number"),
        (Y, {"empty": 0.0, "classes": [1, 2]}, "classes cannot be used"),
    ],
)
def test_bad_targets_are_refused_in_parts(y, more, why, small_parts):
    with pytest.raises(th.InputError, match=why):
        th.forest_shapley(X, y, task="regression", trees=2, memory="64GB", **more)
    lazy = da.from_array(X, chunks=(40, 3)), da.from_array(y, chunks=40)
    with pytest.raises(th.InputError, match=why.replace("140", "20")):
        th.forest_shapley(*lazy, task="regression", trees=2, **more)


def test_the_range_of_all_targets_is_found_first(small_parts, tmp_path):
    """Without bounds, a radius gives the same bits in parts and on Dask, too."""
    plain, plain_val = np.nan_to_num(X), np.nan_to_num(X_VAL)
    about = {"metric": "euclidean", "radius": 0.6, "task": "regression"}
    wanted = th.tknn_shapley(plain, Y, plain_val, Y_VAL, **about)
    check_same(th.tknn_shapley(plain, Y, plain_val, Y_VAL, memory="64GB", **about), wanted)
    lazy = da.from_array(plain, chunks=(40, 3)), da.from_array(Y, chunks=40)
    check_same(th.tknn_shapley(*lazy, plain_val, Y_VAL, **about).compute(), wanted)
    table = pa.table({f"x{j}": plain[:, j] for j in range(3)} | {"y": Y})
    csv.write_csv(table, tmp_path / "points.csv")
    points = th.Scan(tmp_path / "points.csv", label="y")
    check_same(th.tknn_shapley(points, None, plain_val, Y_VAL, **about), wanted)


def test_the_mean_of_targets_does_not_depend_on_their_order():
    targets = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-200, 100, 0.3)
    targets[:2] = 5e-324, -1e150
    parts = TargetSpan().see(targets[:300]).join(TargetSpan().see(targets[300:]))
    shuffled = TargetSpan().see(np.random.default_rng(1).permutation(targets))
    assert parts.mean() == shuffled.mean() == TargetSpan().see(targets).mean()
    few = np.array([0.1, 0.2, 0.3, 1e16, -1e16])
    assert TargetSpan().see(few).mean() == 0.6 / 5


# Columns for trees that come in parts


def texts(*cells):
    return Columns((0,) * len(cells), pa.table({"a": pa.array(cells, pa.string())}))


def test_columns_are_fitted_in_parts_as_on_all_of_them():
    parts = [texts(None, "1"), texts("2", "x"), texts("y", "1")]
    whole = texts(None, "1", "2", "x", "y", "1")
    found, wanted = TreeEncoder.fit_parts(parts, ""), TreeEncoder.fit(whole)
    assert found.features == wanted.features
    assert found.features[0].categories == ("1", "2", "x", "y")
    assert TreeEncoder.from_record(found.describe()) == found
    numbers = TreeEncoder.fit_parts([texts(None, None), texts("true", "false")], "")
    assert numbers.features == TreeEncoder.fit(texts(None, None, "true", "false")).features


def test_a_column_of_many_numbers_keeps_no_texts(monkeypatch):
    monkeypatch.setattr(encoder_module, "NUMBERS", 3)
    with pytest.raises(th.InputError, match="'x'"):
        TreeEncoder.fit_parts([texts(*"12345"), texts("x", "1")], "")
    assert TreeEncoder.fit_parts([texts(*"12345"), texts("6")], "").features[0].kind == "number"


# The command


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """points.csv, the same in two Parquet files, and val.csv: ids, owners, a category, gaps."""
    folder = tmp_path_factory.mktemp("numbers")
    for name, seed, count in (("points", 0, 150), ("val", 1, 40)):
        features, y = line(count, seed)
        random = np.random.default_rng(seed)
        table = pa.table(
            {f"x{j}": pa.array(features[:, j], from_pandas=True) for j in range(3)}
            | {"kind": random.choice(["u", "v"], count), "y": y}
            | {"name": [f"p{i}" for i in range(count)], "from": random.integers(0, 4, count)}
        )
        csv.write_csv(table, folder / f"{name}.csv")
        if name == "points":
            write_two(folder / "parts", table)
    return folder


WAYS = {
    "forest": {"trees": TREES},
    "forest and validation": {"validation": "val.csv", "trees": TREES, "mean": True},
    "radius": {"validation": "val.csv", "metric": "euclidean", "fill": "0", "radius": 0.6,
               "categorical": ("kind",), "method": "tknn"},
}  # fmt: skip


@pytest.fixture(params=list(WAYS))
def settings(request, files, monkeypatch):
    """The settings of a way, and what a run in memory found."""
    monkeypatch.chdir(files)
    more = WAYS[request.param] | {"id": "name", "owner": "from", "task": "regression"}
    return more, value_files(Settings("points.csv", **more))


def check_columns(found, wanted):
    columns = wanted.columns()
    for name in ("row", "id", "label", "value", "rank", "percentile"):
        if name in found.column_names:
            assert found.column(name).to_pylist() == list(columns[name])
    assert found.column("value").to_numpy().tobytes() == wanted.valuation.values.tobytes()
    assert "suggestion" not in found.column_names


@pytest.mark.parametrize("file", ["points.csv", "parts/*.parquet"])
def test_the_command_values_numbers_in_parts(settings, file, small_parts, tmp_path):
    more, wanted = settings
    done = value_to_file(Settings(file, memory="64GB", **more), tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet")
    check_columns(table, wanted)
    assert {"row", "id", "label", "value", "rank", "percentile", "owner"} == {*table.column_names}
    same = dataclasses.replace(wanted.valuation, owners=tuple(table.column("owner").to_pylist()))
    check_same(th.Valuation.load(tmp_path / "v.parquet"), same)
    assert done.suggestions is None
    assert done.by_owner == pytest.approx(same.by_owner())
    assert done.settings.method == wanted.settings.method


def test_the_command_values_numbers_on_dask(settings, small_parts, tmp_path, monkeypatch):
    more, wanted = settings
    monkeypatch.setattr(table_folder, "cluster", lambda _: contextlib.nullcontext())
    done = value_to_folder(Settings("parts/*.parquet", engine="dask", **more), tmp_path / "v")
    check_columns(pa.concat_tables([pq.read_table(path) for path in sorted(done.wrote)]), wanted)
    assert (done.valuation.params, done.rows) == (dict(wanted.valuation.params), 150)


def test_owners_are_valued_by_numbers_in_parts(settings, small_parts):
    more, _ = settings
    given = {**more, "players": "owners"}
    wanted = value_owners(Settings("points.csv", **given)).valuation
    found = value_owners(Settings("points.csv", memory="64GB", **given)).valuation
    assert found.values.tolist() == pytest.approx(wanted.values.tolist(), rel=1e-9)


def thresher(*words):
    return CliRunner().invoke(app, list(words))


def test_the_command_says_what_it_did(files, monkeypatch, tmp_path):
    monkeypatch.chdir(files)
    out = str(tmp_path / "v.csv")
    done = thresher("value", "points.csv", "--label", "y", "--task", "regression", "--id", "name",
                    "--trees", "4", "--memory", "64GB", "-o", out)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "valued 150 points by each other: forest-shapley, 4 trees" in done.stderr
    assert "lowest values (the first row of data is row 0):" in done.stderr
    assert len(Path(out).read_text().splitlines()) == 151


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--method", "knn"], "needs --method forest or tknn"),
        (["--method", "tknn"], "needs --validation"),
        (["--holdout", "0.2"], "needs --validation"),
        (["--label", "kind"], "entries that are not numbers, such as"),
    ],
)
def test_what_cannot_be_done_in_parts_is_refused(options, why, files, monkeypatch, tmp_path):
    monkeypatch.chdir(files)
    if "--label" not in options:
        options = [*options, "--label", "y"]
    done = thresher("value", "points.csv", "--task", "regression", *options, "--memory", "64GB",
                    "-o", str(tmp_path / "v.csv"))  # fmt: skip
    assert why in in_options(message_of(done.exception))
