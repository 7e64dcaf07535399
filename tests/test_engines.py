"""Points larger than memory: parts, read-ahead, budgets, checkpoints; the same bits as in memory."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peaks import WATCH
from pyarrow import csv, feather
from tabular import check_refused, put

import thresher as th
from thresher.engines import counted, memory, resume
from thresher.engines.ahead import read_ahead
from thresher.engines.memory import Account, check_memory, in_use
from thresher.engines.parts import ArrayParts, Place
from thresher.engines.resume import Checkpoint
from thresher.engines.stream import Run
from thresher.engines.valuing import value_in_parts
from thresher.inputs import Validation
from thresher.tables import batches

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of 256 rows, so that small data have many."""
    monkeypatch.setattr(memory, "LARGEST", 1)


def problem(count, width=6, seed=0, classes=3, points=200):
    """Points of three classes, validation points of two of them; rows on a grid, so with ties."""
    random = np.random.default_rng(seed)
    X = random.integers(-3, 4, (count, width)) / 2 + 0.25
    X_val = random.integers(-3, 4, (points, width)) / 2 + 0.25
    return X, random.integers(0, classes, count), X_val, random.integers(0, 2, points)


# The same bits


@given(
    count=st.integers(1, 1500),
    points=st.integers(1, 150),
    dtype=st.sampled_from(["f2", "f4", "f8", ">f4", "i2", "i8", "?"]),
    metric_radius=st.sampled_from([("cosine", 0.5), ("euclidean", 2.0), ("euclidean", 1e9)]),
    semivalue=st.sampled_from(["shapley", "banzhaf", "leave-one-out", th.Beta(4, 1)]),
    names=st.sampled_from([None, "abc"]),
    mean=st.booleans(),
    rows=st.integers(1, 700),
)
@settings(max_examples=25)
def test_parts_give_the_same_bits(
    count, points, dtype, metric_radius, semivalue, names, mean, rows
):
    X, y, X_val, y_val = problem(count, seed=count, points=points)
    X = (2 * X + 0.5 + 8 * (dtype in {"i2", "i8"})).astype(dtype)
    X[:, 0] = 1  # no zero rows
    if names:
        y, y_val = ([names[label] for label in labels] for labels in (y, y_val))
    metric, radius = metric_radius
    about = {"radius": radius, "metric": metric, "semivalue": semivalue, "mean": mean}
    wanted = th.tknn_shapley(X, y, X_val, y_val, **about)
    patch = pytest.MonkeyPatch()
    with patch.context() as within:
        within.setattr(Account, "rows", lambda *_: rows)
        got = th.tknn_shapley(X, y, X_val, y_val, memory="1TB", **about)
    assert got == wanted
    assert got.values.tobytes() == wanted.values.tobytes()
    assert got.utility_all == wanted.utility_all


def test_a_memmap_is_valued_as_the_array_is(tmp_path, small_parts):
    X, y, X_val, y_val = problem(2000)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    owners = y % 2
    wanted = th.tknn_shapley(X, y, X_val, y_val, owners=owners)
    assert th.tknn_shapley(mapped, y, X_val, y_val, owners=owners, memory="1GB") == wanted
    assert len(list(ArrayParts(mapped, y).read(Place(), 256))) == 8
    fortran = np.asfortranarray(X)
    assert th.tknn_shapley(fortran, y, X_val, y_val, owners=owners, memory="1GB") == wanted


def test_distances_come_in_parts_too(tmp_path, small_parts):
    random = np.random.default_rng(3)
    D, y, y_val = random.random((1000, 90)), random.integers(0, 2, 1000), random.integers(0, 2, 90)
    np.save(tmp_path / "d.npy", D)
    mapped = np.load(tmp_path / "d.npy", mmap_mode="r")
    wanted = th.tknn_shapley(D, y, None, y_val, metric="precomputed", radius=0.2)
    got = th.tknn_shapley(mapped, y, None, y_val, metric="precomputed", radius=0.2, memory="1GB")
    assert got == wanted
    D[700, 3] = np.nan
    refused = {"metric": "precomputed", "memory": "1GB"}
    check_refused(lambda: th.tknn_shapley(D, y, None, y_val, **refused), "row 700, column 3")
    columns = iter([D])
    check_refused(lambda: th.tknn_shapley(columns, y, None, y_val, **refused), "one array")


def test_frames_and_lists_are_taken_with_a_budget(small_parts):
    import pandas as pd

    X, y, X_val, y_val = problem(600)
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    assert th.tknn_shapley(X.tolist(), list(y), X_val, y_val, memory="1GB") == wanted
    frame, frame_val = (pd.DataFrame(rows, columns=list("abcdef")) for rows in (X, X_val))
    assert th.tknn_shapley(frame, pd.Series(y), frame_val, y_val, memory="1GB") == wanted
    check_refused(
        lambda: th.tknn_shapley(frame[list("fedcba")], y, frame_val, y_val, memory="1GB"),
        "in another order",
    )


def test_labels_that_come_last_count(small_parts):
    """The number of classes is known at the end of the first pass only."""
    X, y, X_val, y_val = problem(1500)
    y = y.astype(object)
    y[-1] = 77
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    got = th.tknn_shapley(X, y, X_val, y_val, memory="1GB")
    assert got == wanted
    assert got.params["classes"] == [0, 1, 2, 77]
    assert got.utility_none == len(y_val) / 4


def test_given_classes_refuse_others_by_their_row(small_parts):
    X, y, X_val, y_val = problem(1500)
    y[1111] = 9
    about = {"classes": [0, 1, 2], "memory": "1GB"}
    check_refused(lambda: th.tknn_shapley(X, y, X_val, y_val, **about), "row 1111", "is 9")
    y[1111] = 0
    wanted = th.tknn_shapley(X, y, X_val, y_val, classes=range(7))
    assert th.tknn_shapley(X, y, X_val, y_val, classes=range(7), memory="1GB") == wanted


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
def test_warnings_are_those_of_all_points(small_parts):
    X, y, X_val, y_val = problem(1500)
    X_val[3], X_val[5] = X[20], X[1400]
    X_val[6:] += 0.01
    with pytest.warns(th.TwinWarning, match="^2 of 200") as caught:
        th.tknn_shapley(X, y, X_val, y_val, memory="1GB")
    assert caught[0].filename == __file__
    with pytest.warns(th.LabelWarning, match="no label in common"):
        th.tknn_shapley(X, y, X_val[6:], [str(label) for label in y_val[6:]], memory="1GB")
    with pytest.warns(th.ReachWarning):
        th.tknn_shapley(X, y, X_val[6:] + 99, y_val[6:], metric="euclidean", memory="1GB")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda X, y: X.__setitem__((1700, 2), np.nan), ["NaN", "row 1700"]),
        (lambda X, y: X.__setitem__((1700, 2), 1e99), ["1e72", "row 1700"]),
        (lambda X, y: X.__setitem__(1700, 0), ["zero rows", "row 1700"]),
        (lambda X, y: y.__setitem__(1700, None), ["missing labels", "row 1700"]),
        (lambda X, y: y.__setitem__(1700, []), ["not hashable", "row 1700"]),
    ],
)
def test_errors_name_the_row_among_all(spoil, words, small_parts):
    X, y, X_val, y_val = problem(2000)
    y = y.astype(object)
    spoil(X, y)
    check_refused(lambda: th.tknn_shapley(X, y, X_val, y_val, memory="1GB"), *words)


# Files


def table_of(X, y):
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": list(y)})


def write_parts(folder, kind, X, y, files=3):
    """The rows in several files of a folder, of unequal size."""
    folder.mkdir()
    ends = np.linspace(0, 1, files + 1) ** 1.5 * len(X)
    for number, (lo, hi) in enumerate(zip(ends[:-1].astype(int), ends[1:].astype(int))):
        table, path = table_of(X[lo:hi], y[lo:hi]), folder / f"part-{number}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=300)
        elif kind == "feather":
            feather.write_feather(table, path, chunksize=170)
        elif kind == "arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as file:
                file.write_table(table, max_chunksize=170)
        else:
            options = csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
            csv.write_csv(table, path, options)
            if kind == "csv.gz":
                path.write_bytes(gzip.compress(path.read_bytes()))
    return folder


@pytest.mark.parametrize("names", [None, "abc"], ids=["integers", "words"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "csv.gz", "arrow", "feather"])
def test_files_are_valued_as_arrays_are(tmp_path, kind, names, small_parts, monkeypatch):
    monkeypatch.setattr(batches, "TEXT", 3000)
    monkeypatch.setattr(batches, "BUFFER", 1000)
    X, y, X_val, y_val = problem(2500)
    if names:
        y, y_val = (np.array(list(names))[labels] for labels in (y, y_val))
    folder = write_parts(tmp_path / "data", kind, X, y)
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    scan = th.Scan(folder)
    assert th.tknn_shapley(scan, None, X_val, y_val, memory="1GB") == wanted
    assert repr(scan).endswith(".parquet and 2 more, 6 features, label 'y')") or kind != "parquet"
    parts = list(scan.source_of_parts().read(Place(), 256))
    assert [part.first for part in parts[:3]] == [0, 256, parts[1].after.row]
    for part in parts:  # from any part on
        again = next(iter(scan.source_of_parts().read(parts[0].after, 256)))
        assert (again.first, again.after) == (parts[1].first, parts[1].after)
        np.testing.assert_array_equal(part.X, X[part.first : part.after.row])
    whole, labels = scan.read()
    np.testing.assert_array_equal(whole, X)
    assert labels == y.tolist()


def test_only_named_columns_are_read(tmp_path):
    X, y, X_val, y_val = problem(500)
    table = table_of(X, y).append_column("note", pa.array(["text"] * 500))
    pq.write_table(table, tmp_path / "a.parquet")
    wanted = th.tknn_shapley(X[:, :3], y, X_val[:, :3], y_val)
    for about in ({"features": ["x[012]"]}, {"ignore": ["note", "x3", "x4", "x5"]}):
        scan = th.Scan(tmp_path / "a.parquet", **about)
        assert scan.source_of_parts().columns == ["x0", "x1", "x2", "y"]
        assert th.tknn_shapley(scan, None, X_val[:, :3], y_val) == wanted
    check_refused(lambda: th.Scan(tmp_path / "a.parquet", label="z"), "no column 'z'")
    check_refused(lambda: th.tknn_shapley(scan, y, X_val, y_val), "y must be None")
    check_refused(lambda: th.tknn_shapley(scan, None, X_val, y_val), "3 features but X_val has 6")
    frame = pa.table({name: X_val[:, j] for j, name in enumerate("abc")})
    check_refused(lambda: th.tknn_shapley(scan, None, frame, y_val), "different columns")
    np.save(tmp_path / "x.npy", X)
    check_refused(lambda: th.Scan(tmp_path / "x.npy"), "mmap_mode")


def test_half_precision_columns_take_half_the_memory(tmp_path):
    X, y, X_val, y_val = problem(500)
    table = table_of(X.astype(np.float32), y)
    pq.write_table(table, tmp_path / "a.parquet")
    source = th.Scan(tmp_path / "a.parquet").source_of_parts()
    assert source.row_bytes[0] == 6 * 4
    assert next(iter(source.read(Place(), 100))).X.dtype == np.float32
    scan = th.Scan(tmp_path / "a.parquet")
    assert th.tknn_shapley(scan, None, X_val, y_val) == th.tknn_shapley(X, y, X_val, y_val)


def test_labels_of_text_are_what_they_are_in_all_files(tmp_path, small_parts):
    """Integers if all look so; 1.0 is 1 where one side writes it so, which takes another count."""
    X, y, X_val, y_val = problem(1500)
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    whole = write_parts(tmp_path / "whole", "csv", X, y)
    for labels in (y_val, list(map(str, y_val)), y_val.astype(float)):
        got = th.tknn_shapley(th.Scan(whole), None, X_val, labels)
        assert got == wanted
    for labels in (y_val, list(map(str, y_val))):
        given = range(5) if labels is y_val else list("01234")
        got = th.tknn_shapley(th.Scan(whole), None, X_val, labels, classes=given)
        assert got == th.tknn_shapley(X, y, X_val, y_val, classes=range(5))
        check_refused(
            lambda labels=labels, given=given: th.tknn_shapley(
                th.Scan(whole), None, X_val, labels, classes=given[:2]
            ),
            "part-0.csv has labels not in classes", f"rows {np.flatnonzero(y == 2)[0]},",
        )  # fmt: skip
    floats = write_parts(tmp_path / "floats", "csv", X, [f"{label}.0" for label in y])
    assert th.tknn_shapley(th.Scan(floats), None, X_val, y_val) == wanted
    mixed = [*map(str, y[:-1]), "x"]
    late = write_parts(tmp_path / "late", "csv", X, mixed)
    texts = list(map(str, y_val))
    assert th.tknn_shapley(th.Scan(late), None, X_val, texts) == th.tknn_shapley(
        X, mixed, X_val, texts
    )


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_missing_number_is_named_by_file_column_and_row(tmp_path, kind, small_parts):
    X, y, X_val, y_val = problem(4000)
    X[2600, 3] = np.nan
    folder = write_parts(tmp_path / "data", kind, X, y)
    inside = 2600 - int((2 / 3) ** 1.5 * 4000)
    said = check_refused(
        lambda: th.tknn_shapley(th.Scan(folder), None, X_val, y_val, memory="1GB"),
        f"part-2.{kind} column 'x3' has missing numbers in row {inside}:",
    )
    assert "part-0" not in said
    X[2600] = 0
    folder = write_parts(tmp_path / "zero", kind, X, y)
    check_refused(
        lambda: th.tknn_shapley(th.Scan(folder), None, X_val, y_val, memory="1GB"),
        f"part-2.{kind} has zero rows", f"row {inside};",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,a\nhello,b\n", ["'hello' in row 1"]),
        ("x,y\n1,a\n2\n", ["line 3 has 1"]),
        ("x,y\n1,a\n2,\n", ["column 'y' has missing labels in row 1"]),
        ('x,y\n1,a\n2,"b\n3,a\n', ["quote in line 3 that is never closed"]),
        ("x;y\n1;a\n", ["delimiter="]),
        ("x,y\n", ["no rows"]),
        ("x,x\n1,2\n", ["several columns named 'x'"]),
        (b"x,y\n1,a\n2,\xe4\n", ["line 3", "UTF-8"]),
        ("x,y\n" + "".join(f"{i},{i + 0.5}\n" for i in range(30)), ["regression", "row 0"]),
    ],
)
@pytest.mark.parametrize("size", [4, 1 << 20], ids=["small", "large"])
def test_text_is_read_as_strictly_in_pieces(tmp_path, monkeypatch, text, words, size):
    monkeypatch.setattr(batches, "TEXT", size)
    monkeypatch.setattr(batches, "BUFFER", size)
    path = put(tmp_path / "a.csv", text)
    X_val = [[1.0], [2.0]]
    check_refused(
        lambda: th.tknn_shapley(th.Scan(path), None, X_val, ["a", "b"], metric="euclidean"), *words
    )


@given(
    cells=st.lists(
        st.tuples(st.integers(0, 99), st.sampled_from(['a"b', "a\nb", "a,b", '"', "\n", "a", "é"])),
        min_size=1, max_size=30,
    ),
    size=st.integers(1, 60),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    last=st.booleans(),
)  # fmt: skip
def test_text_is_the_same_however_it_is_cut(tmp_path, cells, size, end, last):
    lines = ["x,y", *(f"{x},{_quoted(label)}" for x, label in cells)]
    path = put(tmp_path / "a.csv", ("\ufeff" + end.join(lines) + end * last).encode())
    with pytest.MonkeyPatch().context() as patch:
        patch.setattr(batches, "TEXT", size)
        patch.setattr(batches, "BUFFER", size)
        found = list(batches.read_batches(path, "csv", ",", ["x", "y"]))
        later = list(batches.read_batches(path, "csv", ",", ["y"], start=len(cells) // 2))
    whole = pa.concat_tables([table for _, table in found])
    assert whole.column("x").to_pylist() == [str(x) for x, _ in cells]
    assert whole.column("y").to_pylist() == [label for _, label in cells]
    rest = [label for _, table in later for label in table.column("y").to_pylist()]
    assert rest == [label for _, label in cells][len(cells) // 2 :]


def _quoted(label):
    text = label.replace('"', '""')
    return f'"{text}"' if re.search('[",\r\n]', label) else label


def test_files_must_have_the_same_columns(tmp_path):
    X, y, _, _ = problem(10)
    folder = write_parts(tmp_path / "data", "parquet", X, y)
    pq.write_table(table_of(X[:, :5], y), folder / "z.parquet")
    check_refused(lambda: th.Scan(folder), "z.parquet", "different columns", "x5")
    pq.write_table(table_of(X, list(map(str, y))), folder / "z.parquet")
    check_refused(lambda: th.Scan(folder), "z.parquet", "'y' has type string")
    (folder / "z.parquet").write_bytes(b"PAR1")
    check_refused(lambda: th.Scan(folder), "z.parquet", "damaged")


# Read-ahead


def test_the_next_part_is_read_while_one_is_in_use():
    """Told by events: the reader of part 1 waits for the user of part 0, who waits for it."""
    in_use, read = threading.Event(), threading.Event()

    def source():
        yield 0
        assert in_use.wait(30)
        read.set()
        yield 1

    with read_ahead(source()) as items:
        assert next(items) == 0
        in_use.set()
        assert read.wait(30)  # part 1 is read though nobody asked for it
        assert next(items) == 1


def test_no_more_than_one_part_is_read_ahead():
    begun = []

    def source():
        for number in range(9):
            begun.append(number)
            yield number

    with read_ahead(source()) as items:
        for number in items:
            time.sleep(0.02)
            assert len(begun) <= number + 2
    assert begun == list(range(9))


@pytest.mark.parametrize("threaded", [True, False])
def test_what_the_reader_raises_is_raised_in_its_place(threaded):
    def source():
        yield 0
        raise OSError("the disk is gone")

    with read_ahead(source(), threaded=threaded) as items:
        assert next(items) == 0
        with pytest.raises(OSError, match="disk is gone"):
            next(items)
    assert not _readers()


def test_no_thread_is_left_behind():
    closed = threading.Event()

    def source():
        try:
            yield from range(100)
        finally:
            closed.set()

    def fail():
        with read_ahead(source()) as items:
            raise ZeroDivisionError(next(items))

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not _readers()
    assert closed.is_set()


def test_no_thread_is_left_behind_by_a_run_that_fails(small_parts, monkeypatch):
    X, y, X_val, y_val = problem(2000)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("thresher.engines.valuing.part_values", fail)
    with pytest.raises(MemoryError) as caught:
        th.tknn_shapley(X, y, X_val, y_val, memory="1TB", checkpoint=None)
    assert caught.value.__traceback__ is not None  # which holds all frames
    assert not _readers()


def _readers():
    return [each for each in threading.enumerate() if each.name == "thresher-ahead"]


def test_a_run_reads_ahead_and_does_without(small_parts, tmp_path):
    X, y, X_val, y_val = problem(2000)
    folder = write_parts(tmp_path / "data", "parquet", X, y)
    about = {"radius": 0.5, "metric": "cosine", "semivalue": "shapley", "classes": None,
             "owners": None, "mean": False, "progress": False, "memory": None,
             "checkpoint": None}  # fmt: skip
    scan = th.Scan(folder)
    one, other = (
        value_in_parts(scan, None, X_val, y_val, threaded=threaded, **about)
        for threaded in (True, False)
    )
    assert one == other == th.tknn_shapley(X, y, X_val, y_val)


# Memory


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5 gib", 3 << 29), ("300m", 300 << 20), (7, 7), ("12345", 12345)],
)
def test_budgets_are_read(text, size):
    assert check_memory(text) == size


@pytest.mark.parametrize("text", ["", "lots", "2XB", "-2GB", 0, -1, True, None, 2.5])
def test_budgets_that_are_none_are_refused(text):
    check_refused(lambda: check_memory(text), "memory must be bytes")


def test_a_tree_is_taken_where_memory_affords_it(monkeypatch):
    """Never at the price of small parts, nor of a refusal."""
    ways, find = set(), Validation.search

    def told(self, points, radius, neighbors="auto"):
        ways.add(neighbors)
        return find(self, points, radius, neighbors)

    monkeypatch.setattr(Validation, "search", told)
    data, used = problem(2000), in_use()
    for most, wanted in (("60GB", {"auto"}), (used + (130 << 20), {"all"})):
        ways.clear()
        th.tknn_shapley(*data, memory=most)
        assert ways - {"all"} == wanted - {"all"}, most


def test_a_budget_that_is_too_small_says_how_much_is_needed(tmp_path):
    X, y, X_val, y_val = problem(5000)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    said = check_refused(
        lambda: th.tknn_shapley(mapped, y, X_val, y_val, memory="20MB"), "20MB is too little"
    )
    least = re.search(r"need (\d+MB) at least", said)[1]
    assert check_memory(least) > in_use() / 2
    assert th.tknn_shapley(mapped, y, X_val, y_val, memory=least)


CHILD = (
    WATCH
    + """
import json
import numpy as np
import thresher as th

kind, path, labels, budget, neighbors, out = sys.argv[1:]
random = np.random.default_rng(1)
X_val, y_val = random.normal(size=(64, 100)).astype(np.float32), random.integers(0, 2, 64)
if kind == "npy":
    X, y = np.load(path, mmap_mode="r"), np.load(labels)
else:
    X, y = th.Scan(path), None
found = th.tknn_shapley(X, y, X_val, y_val, radius=0.9, memory=int(budget), neighbors=neighbors)
np.save(out, found.values)
print(json.dumps(most))
"""
)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux only")
@pytest.mark.parametrize(
    ("kind", "rows", "budget", "neighbors"),
    [
        ("npy", 1_000_000, 250, "auto"),
        ("npy", 1_100_000, 400, "tree"),
        ("parquet", 900_000, 330, "auto"),
    ],
)
def test_a_budget_is_obeyed_by_data_larger_than_it(tmp_path, kind, rows, budget, neighbors):
    """Tables of 360 to 440 MB; the peak is that of the whole process."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, rows)
    np.save(tmp_path / "y.npy", y)
    path = tmp_path / f"x.{kind}"
    step = rows // 20
    block = random.normal(size=(step, 100)).astype(np.float32)
    if kind == "npy":
        X = np.lib.format.open_memmap(path, "w+", np.float32, (rows, 100))
        for lo in range(0, rows, step):
            X[lo : lo + step] = block + np.float32(lo / rows)
        X.flush()
    else:
        path.mkdir()
        for lo in range(0, rows, 5 * step):
            large = np.concatenate([block + np.float32((lo + k * step) / rows) for k in range(5)])
            table = table_of(large, y[lo : lo + 5 * step])
            pq.write_table(table, path / f"{lo:09}.parquet", row_group_size=50_000)
    out = tmp_path / "values.npy"
    arguments = [kind, path, tmp_path / "y.npy", budget * 10**6, neighbors, out]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", CHILD, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    peak = json.loads(done.stdout)
    assert peak <= budget * 10**6, f"{peak / 1e6:.0f} MB"
    random = np.random.default_rng(1)
    X_val, y_val = random.normal(size=(64, 100)).astype(np.float32), random.integers(0, 2, 64)
    some = slice(7 * step, 7 * step + 1000)
    counts = th.NeighborCounts(X_val, y_val, radius=0.9)
    for lo in range(0, rows, step):
        counts._counts += counts._count(
            th.inputs.check_points(
                block + np.float32(lo / rows), y[lo : lo + step], counts.validation
            )
        )[0]
    values = counts.price_list().values((block + np.float32(7 * step / rows))[:1000], y[some])
    assert np.load(out)[some].tobytes() == values.tobytes()


# Checkpoints


BROKEN = """
import os, signal, sys
import numpy as np
import thresher as th
from thresher.engines import memory, resume

memory.LARGEST = 1
folder, name, times, whole = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "whole"
put, seen = resume.write_whole, 0
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def put_and_die(path, write):
    global seen
    seen += path.name.startswith(name)
    torn = seen == times and not whole  # written, and not yet in its place
    put(path, (lambda temporary: (write(temporary), die())) if torn else write)
    if seen == times:
        die()
resume.write_whole = put_and_die
data = [np.load(f"{folder}/{part}.npy", mmap_mode="r" if part == "X" else None)
        for part in ("X", "y", "X_val", "y_val")]
if os.path.exists(f"{folder}/data"):
    data[:2] = th.Scan(f"{folder}/data"), None
found = th.tknn_shapley(*data, checkpoint=f"{folder}/run")
np.save(f"{folder}/values.npy", found.values)
"""


def save_data(folder, data):
    for name, part in zip(("X", "y", "X_val", "y_val"), data):
        np.save(folder / f"{name}.npy", part)


def broken_run(folder, name, times, whole="whole"):
    """A run that is killed after, or while, it keeps its piece number `times` of a name."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", BROKEN, str(folder), name, str(times), whole],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder / "run"


def counting_parts(monkeypatch):
    """A list that gets the first row of every part that is read."""
    read, rows = ArrayParts.read, []

    def watched(self, start, size):
        for part in read(self, start, size):
            rows.append(part.first)
            yield part

    monkeypatch.setattr(ArrayParts, "read", watched)
    return rows


@pytest.mark.parametrize("whole", ["whole", "torn"])
@pytest.mark.parametrize(("name", "times"), [("counts", 3), ("counts", 8), ("values", 4)])
def test_a_killed_run_goes_on(tmp_path, monkeypatch, small_parts, name, times, whole):
    data = problem(2000)  # 8 parts
    save_data(tmp_path, data)
    run = broken_run(tmp_path, name, times, whole)
    assert (run / "run.json").exists()
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r"), *data[1:]
    rows = counting_parts(monkeypatch)
    got = th.tknn_shapley(*mapped, checkpoint=run)
    assert got == th.tknn_shapley(*data)
    done = times - (whole == "torn")
    parts = 8 - done + 8 if name == "counts" else 8 - done
    assert len(rows) == parts
    assert not run.exists()


def test_a_killed_run_over_files_goes_on_within_a_file(tmp_path, small_parts):
    data = problem(2000)
    save_data(tmp_path, data)
    folder = write_parts(tmp_path / "data", "csv", data[0], data[1])
    for name, times in (("counts", 6), ("values", 6)):
        run = broken_run(tmp_path, name, times)
    got = th.tknn_shapley(th.Scan(folder), None, *data[2:], checkpoint=run)
    assert got == th.tknn_shapley(*data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about, data: about.update(radius=0.6), "its radius is 0.5, not 0.6"),
        (lambda about, data: about.update(metric="euclidean"), "its metric"),
        (lambda about, data: about.update(semivalue="banzhaf"), "its semivalue"),
        (lambda about, data: about.update(mean=True), "its mean"),
        (lambda about, data: about.update(classes=range(9)), "its classes"),
        (lambda about, data: data.__setitem__(0, data[0] + 1), "its points"),
        (lambda about, data: data.__setitem__(1, (data[1] + 1) % 3), "its points"),
        (lambda about, data: data.__setitem__(2, data[2] + 1), "its validation"),
        (lambda about, data: data.__setitem__(3, 1 - data[3]), "its validation"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, small_parts, change, words):
    data = list(problem(2000))
    save_data(tmp_path, data)
    run = broken_run(tmp_path, "values", 2)
    about = {"radius": 0.5}
    before = sorted(run.iterdir())
    change(about, data)
    check_refused(
        lambda: th.tknn_shapley(*data, **about, checkpoint=run), "another run", words, "new folder"
    )
    assert sorted(run.iterdir()) == before


def test_points_that_change_between_passes_are_refused(tmp_path, small_parts):
    """The sample of rows may miss it; the fingerprints of all do not."""
    X, y, X_val, y_val = problem(2000)
    X = np.repeat(X, 2, axis=0)  # so that a sample takes every third row
    y = np.repeat(y, 2)
    save_data(tmp_path, (X, y, X_val, y_val))
    run = broken_run(tmp_path, "counts", 16)
    X[3001, 2] += 0.125
    check_refused(
        lambda: th.tknn_shapley(X, y, X_val, y_val, checkpoint=run), "changed while they were"
    )
    X[3001, 2] -= 0.125
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    y[3001] = (y[3001] + 1) % 2
    run = broken_run(tmp_path, "counts", 16) if not run.exists() else run
    check_refused(
        lambda: th.tknn_shapley(X, y, X_val, y_val, checkpoint=run), "changed while they were"
    )
    assert wanted.values.any()


def test_files_that_change_are_refused(tmp_path, small_parts):
    data = problem(2000)
    save_data(tmp_path, data)
    folder = write_parts(tmp_path / "data", "csv", data[0], data[1])
    run = broken_run(tmp_path, "values", 2)
    os.utime(folder / "part-1.csv", ns=(1, 1))
    scan = th.Scan(folder)
    check_refused(lambda: th.tknn_shapley(scan, None, *data[2:], checkpoint=run), "its points")


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
@pytest.mark.parametrize("how", ["cut", "flip", "gone"])
@pytest.mark.parametrize("name", ["counts", "values-0", "values-512"])
def test_a_damaged_piece_is_computed_again(tmp_path, small_parts, name, how):
    data = problem(2000)
    save_data(tmp_path, data)
    run = broken_run(tmp_path, "values", 5)
    path = run / name
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[:-20])
    else:
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    wanted = th.tknn_shapley(*data)
    if how == "gone":
        assert th.tknn_shapley(*data, checkpoint=run) == wanted
        return
    with pytest.warns(th.ThresherWarning, match="damaged, and is computed again"):
        assert th.tknn_shapley(*data, checkpoint=run) == wanted


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
@pytest.mark.parametrize("name", ["values-0.arrow", "values-0.arrow.json"])
def test_a_damaged_file_is_as_if_it_were_not_there(name, tmp_path):
    with Checkpoint(tmp_path / "run", {}) as kept:
        kept.save("values-0.arrow", {"row": 7}, lambda path: path.write_text("values"))
        assert kept.load("values-0.arrow")[0] == {"row": 7}
        path = tmp_path / "run" / name
        path.write_text(path.read_text().replace("values", "valueS").replace("7", "8"))
        with pytest.warns(th.ThresherWarning, match="damaged, and is computed again"):
            assert kept.load("values-0.arrow") is None
        path.unlink()
        assert kept.load("values-0.arrow") is None


def test_a_crash_at_any_write_loses_one_part_at_most(tmp_path, monkeypatch):
    data, whole = problem(2000), resume.write_whole
    monkeypatch.setattr(Account, "rows", lambda *_: 256)  # eight parts
    wanted = th.tknn_shapley(*data)
    counting, times = counted.count_points, []
    monkeypatch.setattr(counted, "count_points", lambda *given: times.append(1) or counting(*given))
    for number in range(1, 11):
        writes = []

        def failing(path, write, writes=writes, number=number):
            writes.append(path.name)
            if len(writes) > number:
                raise KeyboardInterrupt
            whole(path, write)

        with monkeypatch.context() as patch:
            patch.setattr(resume, "write_whole", failing)
            with pytest.raises(KeyboardInterrupt):
                th.tknn_shapley(*data, checkpoint=tmp_path / "run")
        times.clear()
        assert th.tknn_shapley(*data, checkpoint=tmp_path / "run") == wanted
        assert len(times) == max(0, 8 - (number - 1))  # the first write says what the run is


def test_a_folder_of_others_is_no_checkpoint(tmp_path):
    theirs = [
        put(tmp_path / "run" / name, "text") for name in ("lock", "values.csv", "counts.xlsx")
    ]
    check_refused(
        lambda: th.tknn_shapley(*problem(600), checkpoint=tmp_path / "run"), "other files"
    )
    assert all(path.read_text() == "text" for path in theirs)


def test_owners_that_do_not_fit_are_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(ArrayParts, "read", None)
    check_refused(lambda: th.tknn_shapley(*problem(600), owners=["a"], memory="2GB"), "owners")


def test_a_file_that_grows_meanwhile_is_refused(tmp_path, monkeypatch):
    X, y, X_val, y_val = problem(2000)
    folder = write_parts(tmp_path / "data", "csv", X, y)
    last, priced = sorted(folder.iterdir())[-1], Run.count

    def count_and_grow(self, advance):
        found = priced(self, advance)
        with last.open("a") as file:
            file.write(last.read_text().splitlines()[1] + "\n")
        return found

    monkeypatch.setattr(Run, "count", count_and_grow)
    check_refused(
        lambda: th.tknn_shapley(th.Scan(folder), None, X_val, y_val, memory="2GB"),
        "the points changed while they were valued",
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["01", "02"], ["01", "02"]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["1e3", "1000"], ["1e3", "1000"]),
        (["9007199254740993", "9007199254740992"], [9007199254740993, 9007199254740992]),
        (["1", "-2"], [1, -2]),
    ],
)
def test_labels_of_a_scan_are_those_that_are_written(written, read, tmp_path):
    points, V = [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]
    rows = [f"{a},{b},{label}" for (a, b), label in zip(points, written)]
    scan = th.Scan(put(tmp_path / "a.csv", "\n".join(["a,b,y", *rows])))
    assert scan.read()[1] == read
    for labels in (written, read):
        wanted = th.tknn_shapley(points, labels, V, labels, radius=0.01)
        assert th.tknn_shapley(scan, None, V, labels, radius=0.01).values.tolist() == [0.5, 0.5]
        assert wanted.values.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b,y\n1,,0\n1,2,0\n", "row 0: leave it out by ignore=b, or drop those rows"),
        ("a,b,y\n1,red,0\n", "clean it"),
        ("a;b;y\n1;2;0\n", "delimiter="),
        ("a,b,z\n1,2,0\n", "label="),
        ("a,b,y\n1,2,0.5\n", "name another label="),
    ],
)
def test_a_scan_advises_its_own_arguments(content, words, tmp_path):
    path = put(tmp_path / "a.csv", content)
    said = check_refused(lambda: th.tknn_shapley(th.Scan(path), None, [[1.0, 2.0]], [0]), words)
    assert "--" not in said


@pytest.mark.parametrize("label", [None, ["y"], 3])
def test_a_scan_needs_the_name_of_a_column(label, tmp_path):
    path = put(tmp_path / "a.csv", "a,y\n1,2\n")
    check_refused(lambda: th.Scan(path, label=label), "label must be the name of a column")


def test_the_least_memory_that_is_told_holds_for_both_passes(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4_000_000, 1), np.float32))
    X, y = np.load(tmp_path / "x.npy", mmap_mode="r"), np.zeros(4_000_000, np.int8)
    data = X, y, np.ones((3, 1)), [0, 0, 0]
    said = check_refused(lambda: th.tknn_shapley(*data, memory="1MB"), "is too little")
    least = re.search(r"need (\d+MB) at least", said)[1]
    assert th.tknn_shapley(*data, memory=least).values[0] == 0


def test_checkpoints_that_are_none_are_refused(tmp_path, small_parts):
    data = problem(600)
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=7), "name of a folder")
    path = put(tmp_path / "file", "text")
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=path), "is a file")
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=tmp_path), "holds other files")
    assert path.read_text() == "text"
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=tmp_path / "a" / "b"), "does not exist")
    run = tmp_path / "run"
    with Checkpoint(run, {"points": 1}):
        check_refused(lambda: Checkpoint(run, {"points": 1}), "in use by another run")
    put(run / "run.json", "{}")
    check_refused(lambda: Checkpoint(run, {"points": 1}), "damaged", "remove it")
    labels = [(label,) for label in data[1]]
    check_refused(
        lambda: th.tknn_shapley(data[0], labels, data[2], labels[:200], checkpoint=tmp_path / "new"),
        "cannot be saved", "strings or numbers",
    )  # fmt: skip


def test_progress_is_told_in_rows_of_both_passes(capfd, small_parts):
    X, y, X_val, y_val = problem(2000)
    th.tknn_shapley(X, y, X_val, y_val, memory="1GB", progress=True)
    told = capfd.readouterr().err
    assert "4.00k/4.00k" in told
    assert "rows" in told
