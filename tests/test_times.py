"""Times as labels and owners: two that differ stay two, in every library, alone and together."""

from __future__ import annotations

import datetime
import sys
from zoneinfo import ZoneInfo

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher as th
from thresher.inputs.labels import check_labels
from thresher.runs.memory_run import value_files
from thresher.runs.results import write_results
from thresher.runs.settings import Settings
from thresher.runs.table_file import value_to_file

NANOSECONDS = np.array([0, 1, 999, 1000, 1001, -1, -1000, 10**18, 10**18 + 7])
BERLIN = ZoneInfo("Europe/Berlin")
KINDS = pytest.mark.parametrize("kind", ["M8", "m8"], ids=["datetime", "timedelta"])
CONTAINERS = {
    "array": lambda times: times,
    "big-endian": lambda times: times.astype(times.dtype.newbyteorder(">")),
    "masked": np.ma.array,
    "scalars": list,
    "objects": lambda times: np.array(list(times), object),
    "Series": pd.Series,
    "Index": pd.Index,
    "Categorical": pd.Categorical,
    "pandas scalars": lambda times: list(pd.Series(times)),
    "pandas objects": lambda times: pd.Series(list(pd.Series(times)), dtype=object),
    "pandas on Arrow": lambda times: pd.Series(times).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.Series,
    "Arrow": pa.array,
    "Arrow chunks": lambda times: pa.chunked_array([pa.array(times[:3]), pa.array(times[3:])]),
    "Arrow dictionary": lambda times: pa.array(times).dictionary_encode(),
}
ZONED = {
    "Series": lambda times: times,
    "Index": pd.Index,
    "scalars": list,
    "another zone": lambda times: times.dt.tz_convert("Asia/Tokyo"),
    "pandas on Arrow": lambda times: times.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "Arrow": pa.array,
}


def read(times):
    """Labels, and what tells them apart in a dictionary."""
    found = list(check_labels("y", times))
    assert len(set(found)) == len(found)
    return found, [hash(label) for label in found]


@KINDS
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_times_that_differ_by_a_nanosecond_differ_and_match_in_every_library(kind, container):
    times = NANOSECONDS.astype(f"{kind}[ns]")
    found, hashes = read(container(times))
    assert (found, hashes) == read(times)
    python = datetime.datetime if kind == "M8" else datetime.timedelta
    whole = NANOSECONDS % 1000 == 0
    assert [isinstance(label, python) for label in found] == whole.tolist()
    assert [np.asarray(label).astype(times.dtype) for label in found] == list(times)


@pytest.mark.parametrize("container", ZONED.values(), ids=ZONED)
def test_so_do_times_in_a_time_zone(container):
    utc = pd.Series(NANOSECONDS.astype("M8[ns]")).dt.tz_localize("UTC")
    found, hashes = read(container(utc.dt.tz_convert("Europe/Berlin")))
    assert (found, hashes) == read(utc)
    assert not set(found) & set(check_labels("y", NANOSECONDS.astype("M8[ns]")))


@KINDS
def test_one_time_is_one_label_in_every_unit(kind):
    for number, unit, coarse in [
        (7, "ns", "us"),
        (7, "ps", "ns"),
        (7, "fs", "ps"),
        (7, "as", "fs"),
    ]:
        fine = np.array([number], f"{kind}[{unit}]")
        finer = np.array([number * 1000], f"{kind}[{ {'ns': 'ps', 'ps': 'fs'}.get(unit, 'as') }]")
        if unit != "as":
            assert read(fine) == read(finer)
        assert read(fine)[0] != read(np.array([0], f"{kind}[{coarse}]"))[0]
    assert read(np.array([5], f"{kind}[us]")) == read(np.array([5_000_000_000], f"{kind}[fs]"))


def test_times_that_python_has_no_year_for_stay_apart():
    far = np.array(["20000-01-01", "20000-01-02", "-0005-01-01", "2020-01-01"], "M8[D]")
    found, hashes = read(far)
    assert (found, hashes) == read(far.astype("M8[ms]"))
    assert found[3] == datetime.datetime(2020, 1, 1)
    assert not any(isinstance(label, int) for label in found)
    read(np.array([300_000, 300_001], "M8[Y]"))
    read(np.array([2**62, 2**62 + 1], "m8[s]"))


def test_the_hour_that_is_repeated_is_two_hours():
    first = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN)
    both = [first, first.replace(fold=1)]
    assert read(both)[0] == read(pd.Series(both))[0] == read(list(pd.Series(both)))[0]
    counts = th.NeighborCounts([[0.0], [9.0]], both, radius=1, metric="euclidean")
    counts.add(np.array([[0.5]]), [both[1]])
    assert (counts.same.tolist(), counts.other.tolist()) == ([0, 0], [1, 0])


@pytest.mark.parametrize(
    "times",
    [
        np.array(["NaT", 1], "M8[ns]"),
        [pd.NaT, pd.Timestamp(1)],
        pa.array([None, 1], pa.duration("ns")),
        pa.array([None, 1], pa.timestamp("ns", "UTC")),
        pl.Series([None, 1]).cast(pl.Datetime("ns")),
    ],
    ids=["NumPy", "pandas", "Arrow", "Arrow zone", "polars"],
)
def test_a_time_that_is_not_there_is_missing(times):
    with pytest.raises(th.InputError, match="y has missing labels in row 0"):
        check_labels("y", times)


@pytest.mark.parametrize("convert", [pa.array, pl.from_arrow], ids=["Arrow", "polars"])
def test_times_of_day_too_fine_for_python_are_told_from_midnight(convert):
    column = convert(pa.array([1, 1000, 1001], pa.time64("ns")))
    found, _ = read(column)
    assert found[1] == datetime.time(microsecond=1)
    assert [found[0], found[2]] == [np.timedelta64(1, "ns"), np.timedelta64(1001, "ns")]


def test_pandas_need_not_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for zone in (None, "UTC", "Europe/Berlin"):
        arrow = pa.array(NANOSECONDS, pa.timestamp("ns", zone))
        found, hashes = read(arrow)
        assert (found, hashes) == read(pl.from_arrow(arrow))
        assert isinstance(found[0], datetime.datetime)
        assert found[1] == np.datetime64(1, "ns")


X = np.array([[0.0], [1.0], [2.0], [3.0]])
TIMES = np.array([1, 2, 1, 3], "M8[ns]")
NAMES = ["a", "b", "a", "c"]


@pytest.mark.parametrize("method", [th.tknn_shapley, th.knn_shapley])
@pytest.mark.parametrize("container", [np.asarray, pd.Series, pl.Series, pa.array])
def test_values_are_those_of_names(method, container):
    settings = {"metric": "euclidean", "classes": None}
    want = method(X, NAMES, X[:3] + 0.25, NAMES[:3], owners=NAMES, **settings)
    got = method(
        X, container(TIMES), X[:3] + 0.25, container(TIMES[:3]), owners=container(TIMES), **settings
    )
    np.testing.assert_array_equal(got.values, want.values)
    assert list(got.by_owner().values()) == list(want.by_owner().values())
    assert len(got.by_owner()) == 3


def test_the_same_values_in_parts_and_on_a_cluster():
    settings = {"metric": "euclidean", "radius": 1.5}
    want = th.tknn_shapley(X, TIMES, X[:3] + 0.25, TIMES[:3], **settings)
    assert th.tknn_shapley(X, TIMES, X[:3] + 0.25, TIMES[:3], memory="64GB", **settings) == want
    lazy = da.from_array(X, chunks=(2, 1)), da.from_array(TIMES, chunks=2)
    np.testing.assert_array_equal(
        th.tknn_shapley(*lazy, X[:3] + 0.25, TIMES[:3], **settings).values, want.values
    )


def test_one_label_may_be_a_time():
    counts = th.NeighborCounts(
        X[:3] + 0.25, TIMES[:3], radius=1.5, metric="euclidean", classes=TIMES[1:]
    )
    prices = counts.add(X, TIMES).price_list()
    want = prices.newcomer_values(X, [TIMES[1]] * 4)
    for label in (TIMES[1], pd.Timestamp(2)):
        np.testing.assert_array_equal(prices.newcomer_values(X, label), want)


def test_owners_and_classes_that_are_times_cannot_be_saved(tmp_path):
    found = th.tknn_shapley(X, NAMES, X + 0.25, NAMES, metric="euclidean", owners=TIMES)
    with pytest.raises(th.InputError, match="the owner .*00000001.* of type datetime64 cannot be"):
        found.save(tmp_path / "values.parquet")
    counts = th.NeighborCounts(X, TIMES, metric="euclidean")
    with pytest.raises(th.InputError, match="the label .*00000001.* of type datetime64 cannot be"):
        counts.save(tmp_path / "counts.npz")
    assert list(tmp_path.iterdir()) == []


def write_rows(path, zone=None):
    """A file with rows, names, distinct times, and times as two classes, one a whole second."""
    distinct = pa.array(np.arange(24), pa.timestamp("ns", zone))
    classes = pa.array([1, 10**9] * 12, pa.timestamp("ns", zone))
    table = {"x": np.arange(24.0), "name": ["a", "b"] * 12, "time": distinct, "class": classes}
    pq.write_table(pa.table(table), path)
    return {"file": str(path), "features": ("x",), "metric": "euclidean", "radius": "9"}


@pytest.mark.filterwarnings("ignore::thresher.TwinWarning")
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("role", [{"label": "class"}, {"owner": "time"}, {"id": "time"}], ids=str)
def test_times_of_a_file_are_refused_in_the_end_rather_than_cut(zone, role, tmp_path):
    known = {"label": "name", **write_rows(tmp_path / "p.parquet", zone), **role}
    with pytest.raises(th.InputError, match="cannot be saved"):
        write_results(tmp_path / "o.csv", value_files(Settings(**known, holdout=0.5)))
    with pytest.raises(th.InputError, match="cannot be saved"):
        value_to_file(Settings(**known, validation=known["file"]), tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()


def test_the_command_says_so_in_one_line(tmp_path, run_command):
    write_rows(tmp_path / "p.parquet")
    columns = ("--label", "class", "--features", "x", "--holdout", "0.5")
    run = run_command("value", "p.parquet", *columns, "--metric", "euclidean", cwd=tmp_path)
    assert run.returncode == 1
    assert "thresher: the columns cannot be saved" in run.stderr
    assert "Traceback" not in run.stderr
