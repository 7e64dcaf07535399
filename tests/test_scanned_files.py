"""Files larger than memory: scanned in parts, read ahead; the same bits as in memory."""

from __future__ import annotations

import re
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parted import problem, table_of, write_parts
from tabular import check_refused, put

import thresher as th
from thresher.passes.in_parts import Run, value_in_parts
from thresher.passes.parts import Place, read_ahead
from thresher.tables import parquet as parquet_module
from thresher.tables import text as text_module
from thresher.tables.reader import Table, read_batches

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


# Files


@pytest.mark.parametrize("names", [None, "abc"], ids=["integers", "words"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "csv.gz", "arrow", "feather"])
def test_files_are_valued_as_arrays_are(tmp_path, kind, names, small_parts, monkeypatch):
    monkeypatch.setattr(text_module, "BATCH", 3000)
    monkeypatch.setattr(parquet_module, "BUFFER", 1000)
    X, y, X_val, y_val = problem(2500)
    if names:
        y, y_val = (np.array(list(names))[labels] for labels in (y, y_val))
    folder = write_parts(tmp_path / "data", kind, X, y)
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    scan = th.Scan(folder)
    assert th.tknn_shapley(scan, None, X_val, y_val, memory="64GB") == wanted
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
        lambda: th.tknn_shapley(th.Scan(folder), None, X_val, y_val, memory="64GB"),
        f"part-2.{kind} column 'x3' has missing numbers in row {inside}:",
    )
    assert "part-0" not in said
    X[2600] = 0
    folder = write_parts(tmp_path / "zero", kind, X, y)
    check_refused(
        lambda: th.tknn_shapley(th.Scan(folder), None, X_val, y_val, memory="64GB"),
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
    monkeypatch.setattr(text_module, "BATCH", size)
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
        patch.setattr(text_module, "BATCH", size)
        table = Table(pa.table({}), (path,), "csv", ",")
        found = list(read_batches(table, path, ["x", "y"]))
        later = list(read_batches(table, path, ["y"], start=len(cells) // 2))
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
        ("a,b,y\n1,,0\n1,2,0\n", "row 0: leave it out with ignore=['b'], or drop those rows"),
        ("a,b,y\n1,red,0\n", "clean it"),
        ("a;b;y\n1;2;0\n", "delimiter="),
        ("a,b,z\n1,2,0\n", "(label)"),
        ("a,b,y\n1,2,0.5\n", "name another label,"),
    ],
)
def test_a_scan_advises_its_own_arguments(content, words, tmp_path):
    path = put(tmp_path / "a.csv", content)
    check_refused(lambda: th.tknn_shapley(th.Scan(path), None, [[1.0, 2.0]], [0]), words)


def test_a_scan_of_no_text_has_no_delimiter(tmp_path):
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0, 1]}), tmp_path / "a.parquet")
    with pytest.raises(th.InputError, match=r"delimiter=';' is for text, not for a .parquet file"):
        th.Scan(tmp_path / "a.parquet", delimiter=";")


@pytest.mark.parametrize("label", [None, ["y"], 3])
def test_a_scan_needs_the_name_of_a_column(label, tmp_path):
    path = put(tmp_path / "a.csv", "a,y\n1,2\n")
    check_refused(lambda: th.Scan(path, label=label), "label must be the name of a column")


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
        lambda: th.tknn_shapley(th.Scan(folder), None, X_val, y_val, memory="64GB"),
        "the points changed while they were valued",
    )


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

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("thresher.passes.problem.Priced.values", fail)
    with pytest.raises(MemoryError) as caught:
        th.tknn_shapley(X, y, X_val, y_val, memory="1TB", checkpoint=None)
    assert caught.value.__traceback__ is not None  # which holds all frames
    assert not _readers()


def _readers():
    return [each for each in threading.enumerate() if each.name.startswith("thresher-ahead")]


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


ADVISED = {
    "decimal": ("a,b,y\n\"1,5\",2,0\n\"2,5\",3,1\n", [[1.5, 2], [2.5, 3]]),
    "thousands": ("a,b,y\n\"1,500\",2,0\n\"22,500\",3,1\n", [[1500, 2], [22500, 3]]),
    "date": ("a,b,y\n03/04/2020,2,0\n25/05/2020,3,1\n", [[18355, 2], [18407, 3]]),
    "date by format": ("a,b,y\n03/04/2020,2,0\n05/05/2020,3,1\n", [[18355, 2], [18387, 3]]),
    "iso": ("a,b,y\n2020-04-03,2,0\n2020-05-05,3,1\n", [[18355, 2], [18387, 3]]),
    "encoding": ("a,b,y\n1,2,é\n2,3,à\n".encode("cp1252"), [[1, 2], [2, 3]]),
    "wide": ("a,b,y\n1,2,é\n2,3,à\n".encode("utf-16"), [[1, 2], [2, 3]]),
    "delimiter": ("a;b;y\n1;2;0\n2;3;1\n", [[1, 2], [2, 3]]),
}  # fmt: skip


def advice(message):
    """The arguments of `Scan` that a message names, last first."""
    found = re.findall(r"(\w+)=(\[[^\]]*\]|'[^']*')", message)
    return {name: eval(value) for name, value in reversed(found) if name != "ignore"}  # noqa: S307


@pytest.mark.parametrize("name", ADVISED)
def test_what_a_message_about_a_scan_advises_works(name, tmp_path):
    content, wanted = ADVISED[name]
    path, options = tmp_path / "a.csv", {}
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for _ in range(3):
        try:
            found, labels = th.Scan(path, **options).read()
            break
        except th.InputError as refused:
            options |= advice(str(refused))
    assert options
    epoch = found[0, 0] - wanted[0][0] if "date" in options else 0.0  # days from any day on
    np.testing.assert_array_equal(found - [epoch, 0], wanted)
    assert len(set(labels)) == 2


def test_a_scan_reads_dates_numbers_and_words_as_a_folder_in_parts(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    rng = np.random.default_rng(0)
    days = rng.integers(0, 5000, 60)
    numbers = rng.normal(size=60).round(3) * 1000
    for part in range(3):
        rows = [
            f'{np.datetime64("2001-01-01") + days[i]},"{numbers[i]:.1f}",{i % 2}'.replace(".", ",")
            for i in range(20 * part, 20 * part + 20)
        ]
        text = "\n".join(["d,x,y", *rows])
        (folder / f"{part}.csv").write_text(text)
    scan = th.Scan(folder, date=["d=%Y-%m-%d"], decimal=",")
    X, y = scan.read()
    assert np.ptp(X[:, 0] - days) == 0
    np.testing.assert_allclose(X[:, 1], numbers.round(1))
    V = X[:5] + 0.5
    wanted = th.tknn_shapley(X, y, V, y[:5], metric="euclidean", radius=900.0)
    found = th.tknn_shapley(
        scan, None, V, y[:5], metric="euclidean", radius=900.0, checkpoint=tmp_path / "run"
    )
    assert found.values.tobytes() == wanted.values.tobytes()
    assert np.ptp(found.values) > 0
    (folder / "3.csv").write_text('d,x,y\n03/04/2001,"1,0",1\n')
    for date in ("d", "d=%Y-%m-%d"):  # the format of the first rows is that of all
        check_refused(
            lambda date=date: th.Scan(folder, date=date, decimal=",").read(), "03/04/2001"
        )
    (folder / "3.csv").write_text('d,x,y\n2003-04-01,"?",1\n')
    check_refused(
        lambda: th.Scan(folder, date="d", decimal=",").read(), "cells that are not numbers"
    )
    with_missing = th.Scan(folder, date="d", decimal=",", na="?")
    check_refused(with_missing.read, "missing numbers in row 0")


def test_what_a_scan_cannot_be_told_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0, 1]}), path)
    for about, message in (
        ({"encoding": "latin-1"}, "encoding='latin-1' is for text, not for a .parquet file"),
        ({"decimal": ";"}, "decimal must be . or , but got ';'"),
        ({"date": ["b"]}, "date"),
        ({"date": ["y"]}, "date 'y' is not one of the features"),
    ):
        check_refused(lambda about=about: th.Scan(path, **about), message)
    check_refused(lambda: th.Scan(path, encoding="no such"), "encoding must be one such as latin-1")
