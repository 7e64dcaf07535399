"""Cleaned tables of other kinds than text, and what is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cleaned_cases import cleaned
from pyarrow import feather, ipc
from tabular import check_refused, put

import thresher as th
from thresher.tables import clean_copy
from thresher.tables.new_labels import fitting_label
from thresher.tables.reader import read_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Other kinds


SCHEMA = pa.schema(
    [
        pa.field("x", pa.float32(), nullable=False, metadata={b"unit": b"m"}),
        pa.field("n", pa.list_(pa.int8())),
        pa.field("y", pa.dictionary(pa.int8(), pa.string(), ordered=True)),
        pa.field("i", pa.int16()),
    ],
    metadata={b"made": b"by hand"},
)


WORDS = pa.DictionaryArray.from_arrays(
    pa.array([1, 0, 1, None], pa.int8()), pa.array(["dog", "cat"]), ordered=True
)


TABLE = pa.table(
    [pa.array([0.1, 0.2, 0.3, 0.4], pa.float32()), [[1], None, [], [2, 3]], WORDS, [7, 8, 9, 10]],
    schema=SCHEMA,
)


def test_parquet_keeps_schema_metadata_compression_and_dictionaries():
    pq.write_table(TABLE, "a.parquet", row_group_size=2, use_dictionary=["y"],
                   compression={"x": "zstd", "n": "none", "y": "gzip", "i": "snappy"})  # fmt: skip
    _, log = cleaned("a.parquet", "b.parquet", drop=[1], relabel={0: "dog", 3: "bird"}, label="y",
                     id="i")  # fmt: skip
    assert log == [
        {"row": 0, "id": 7, "action": "relabel", "old_label": "cat", "new_label": "dog"},
        {"row": 1, "id": 8, "action": "drop", "old_label": "dog", "new_label": None},
        {"row": 3, "id": 10, "action": "relabel", "old_label": None, "new_label": "bird"},
    ]
    old, new = pq.ParquetFile("a.parquet"), pq.ParquetFile("b.parquet")
    with old, new:
        assert new.schema_arrow.equals(old.schema_arrow, check_metadata=True)
        for group in range(new.metadata.num_row_groups):
            for place in range(4):
                ours, theirs = (f.metadata.row_group(group).column(place) for f in (new, old))
                assert ours.compression == theirs.compression
                assert ("RLE_DICTIONARY" in ours.encodings) == (
                    "RLE_DICTIONARY" in theirs.encodings
                )
        found = new.read()
    assert found.column("y").to_pylist() == ["dog", "cat", "bird"]
    kept = TABLE.filter(pa.array([True, False, True, True]))
    assert found.drop_columns("y").equals(kept.drop_columns("y"))


def write_ipc(name, make, table=TABLE):
    with make(name, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "write", "mark"),
    [
        ("arrow", lambda name: write_ipc(name, ipc.new_file), b"ARROW1"),
        ("arrow", lambda name: write_ipc(name, ipc.new_stream), b"\xff\xff\xff\xff"),
        ("feather", lambda name: feather.write_feather(TABLE, name), b"ARROW1"),
    ],
)
def test_arrow_files_stay_what_they_are(name, write, mark):
    write(f"a.{name}")
    found, _ = cleaned(f"a.{name}", f"b.{name}", drop=[2], relabel={3: "cat"}, label="y")
    assert found.startswith(mark)
    again = read_table(f"b.{name}").data
    assert again.schema.equals(SCHEMA, check_metadata=True)
    assert again.column("y").to_pylist() == ["cat", "dog", "cat"]
    assert again.column("n").to_pylist() == [[1], None, [2, 3]]


def test_text_as_polars_stores_it_comes_back_so():
    polars = pytest.importorskip("polars")
    kinds = {"c": polars.Categorical}
    frame = polars.DataFrame({"x": [1, 2, 3], "y": list("aba"), "c": list("pqp")}).cast(kinds)
    frame.write_ipc("a.arrow")
    cleaned("a.arrow", "b.arrow", drop=[0], relabel={2: "b"}, label="y")
    again = polars.read_ipc("b.arrow")
    assert again.rows() == [(2, "b", "q"), (3, "b", "p")]
    with ipc.open_file("a.arrow") as old, ipc.open_file("b.arrow") as new:
        assert new.schema.equals(old.schema, check_metadata=True)
    cleaned("a.arrow", "b.arrow", relabel={0: "r"}, label="c", force=True)
    assert polars.read_ipc("b.arrow")["c"].to_list() == ["r", "q", "p"]


def test_batches_with_dictionaries_of_their_own_are_one_table():
    parts = [pa.table({"y": pa.array(list(w)).dictionary_encode()}) for w in ("ab", "cb")]
    write_ipc("a.arrow", ipc.new_stream, pa.concat_tables(parts))
    cleaned("a.arrow", "b.arrow", drop=[0], relabel={2: "d"}, label="y")
    assert read_table("b.arrow").data.column("y").to_pylist() == ["b", "d", "b"]


@pytest.mark.parametrize(
    ("entries", "new", "stored"),
    [
        (pa.array([1, 2], pa.int8()), "3", 3),
        (pa.array([1, 2], pa.uint64()), np.int64(3), 3),
        (pa.array([1, 2]), 3.0, 3),
        (pa.array([0.0, 1.0]), "2", 2.0),
        (pa.array([0.0, 1.0], pa.float32()), 2, 2.0),
        (pa.array(np.array([0, 1], np.float16)), 2, 2.0),
        (pa.array([True, True]), "false", False),
        (pa.array([True, True]), False, False),
        (pa.array(["a", "b"], pa.large_string()), "c", "c"),
        (pa.array(["a", "b"]).dictionary_encode(), "c", "c"),
    ],
)
def test_a_new_label_takes_the_type_of_its_column(entries, new, stored):
    pq.write_table(pa.table({"x": [1, 2], "y": entries}), "a.parquet")
    cleaned("a.parquet", "b.parquet", relabel={1: new}, label="y")
    again = read_table("b.parquet").data
    assert again.column("y").to_pylist() == [entries[0].as_py(), stored]
    assert again.schema.equals(read_table("a.parquet").data.schema)


@pytest.mark.parametrize(
    ("kind", "new"),
    [
        (pa.int8(), 300), (pa.int8(), "cat"), (pa.int8(), 1.5), (pa.int8(), True), (pa.int64(), None),
        (pa.uint8(), -1), (pa.string(), 3), (pa.bool_(), "maybe"), (pa.float64(), "cat"),
        (pa.timestamp("s"), "cat"), (pa.dictionary(pa.int8(), pa.int16()), "1_0"),
    ],
)  # fmt: skip
def test_a_new_label_that_does_not_fit_is_refused(kind, new):
    check_refused(
        lambda: fitting_label(new, kind, "y"), f"label {new!r} does not fit column 'y' of type"
    )


def test_a_dictionary_that_is_full_takes_no_new_label():
    words = [f"w{i}" for i in range(128)]
    full = pa.DictionaryArray.from_arrays(pa.array(range(128), pa.int8()), pa.array(words))
    pq.write_table(pa.table({"y": full}), "a.parquet")
    change = {"relabel": {0: "new"}, "label": "y"}
    check_refused(
        lambda: cleaned("a.parquet", "b.parquet", **change), "no room for more categories"
    )


def test_arrays_are_cut_and_keep_their_types():
    X, y = np.arange(12, dtype=">f4").reshape(4, 3), np.array(["cat", "dog", "cat", "dog"])
    arrays = {"X": X, "y": y, "w": np.arange(4, dtype=np.int8), "image": np.ones((4, 2, 2), "?"),
              "file": np.arange(4), "classes": np.arange(3), "about": np.array("{}"),
              "X_val": X + 1, "y_val": y}  # fmt: skip
    with zipfile.ZipFile("a.npz", "w") as file:
        for name, array in arrays.items():
            how = zipfile.ZIP_DEFLATED if name == "X" else zipfile.ZIP_STORED
            with zipfile.ZipFile.open(file, zipinfo(name, how), "w") as member:
                np.lib.format.write_array(member, array)
    found, _ = cleaned("a.npz", "b.npz", drop=np.array([True, False, False, False]),
                       relabel={1: "cat"}, label="y")  # fmt: skip
    with np.load("b.npz") as stored:
        again = {name: stored[name] for name in stored.files}
    wanted = arrays | {name: arrays[name][1:] for name in ("X", "w", "image", "file")}
    wanted["y"] = np.array(["cat", "cat", "dog"])
    assert list(again) == list(arrays)
    for name, array in wanted.items():
        assert again[name].dtype == array.dtype
        np.testing.assert_array_equal(again[name], array)
    with zipfile.ZipFile("b.npz") as file:
        assert [each.compress_type for each in file.infolist()] == [8] + [0] * 8
    assert (
        cleaned("a.npz", "b.npz", drop=[0], relabel={1: "cat"}, label="y", force=True)[0] == found
    )
    horse = {"relabel": {0: "horse"}, "label": "y", "force": True}
    check_refused(
        lambda: cleaned("a.npz", "b.npz", **horse), "'horse' does not fit array 'y' of dtype <U3"
    )


def zipinfo(name, how):
    about = zipfile.ZipInfo(f"{name}.npy")
    about.compress_type = how
    return about


def test_several_files_of_arrays_become_one():
    Path("p").mkdir()
    np.savez("p/a.npz", X=np.eye(2), y=[0, 1], classes=["u", "v"])
    np.savez("p/b.npz", X=np.eye(2) + 1, y=[1, 0], classes=["u", "v"])
    cleaned("p", "b.npz", drop=[0], relabel={3: 1}, label="y")
    with np.load("b.npz") as stored:
        assert stored["y"].tolist() == [1, 1, 1]
        assert stored["X"].tolist() == [[0, 1], [2, 1], [1, 2]]
        assert stored["classes"].tolist() == ["u", "v"]
    np.savez("p/b.npz", X=np.eye(2) + 1, y=[1, 0], classes=["u", "w"])
    check_refused(
        lambda: cleaned("p", "c.npz", drop=[0]), "array 'classes' differs between the files"
    )
    np.savez("p/b.npz", X=np.eye(2) + 1, y=[1, 0])
    check_refused(lambda: cleaned("p", "c.npz", drop=[0]), "array 'classes' is not in all files")


@pytest.mark.parametrize(
    ("name", "content", "after"),
    [
        ("y.txt", b'cat\r\n"dog\r\n\r\nbird', b'dog, "big"\r\n\r\nbird'),
        ("y.csv", b"label\ncat\ndog\nbird\n", b'label\n"dog, ""big"""\nbird\n'),
    ],
)
def test_labels_in_a_file_of_their_own_are_cleaned_beside(name, content, after):
    np.save("X.npy", np.arange(6).reshape(3, 2))
    put(name, content)
    log = cleaned("X.npy", "b.npy", drop=[1], relabel={0: 'dog, "big"'}, label=name)[1]
    assert np.load("b.npy").tolist() == [[0, 1], [4, 5]]
    assert Path(f"b-labels{Path(name).suffix}").read_bytes() == after
    assert log[0] == {"row": 0, "action": "relabel", "old_label": "cat", "new_label": 'dog, "big"'}
    again = {"relabel": {0: "x"}, "label": name}
    Path("b.npy").unlink()
    check_refused(
        lambda: cleaned("X.npy", "b.npy", **again), "b-labels", "already exists", "--force"
    )
    if name == "y.txt":
        lines = {"relabel": {0: "a\nb"}, "label": name, "force": True}
        check_refused(lambda: cleaned("X.npy", "b.npy", **lines), "does not fit in a line of y.txt")


def test_labels_in_an_array_of_their_own_are_cleaned_beside():
    np.save("X.npy", np.arange(6).reshape(3, 2))
    np.save("y.npy", np.array([0, 1, 0], np.int8))
    cleaned("X.npy", "b.npy", drop=[1], relabel={0: "1"}, label="y.npy")
    found = np.load("b-labels.npy")
    assert (found.tolist(), found.dtype) == ([1, 0], np.int8)
    big = {"relabel": {0: 300}, "label": "y.npy", "force": True}
    check_refused(
        lambda: cleaned("X.npy", "b.npy", **big), "300 does not fit column 'y.npy' of type int8"
    )
    assert np.load("b-labels.npy").tolist() == [1, 0]


# What is refused


def test_files_that_are_there_are_replaced_by_force_only():
    put("a.csv", "x,y\n1,a\n2,b\n")
    put("b.csv", "mine")
    check_refused(lambda: cleaned("a.csv", "b.csv", drop=[0]), "b.csv already exists", "--force")
    check_refused(
        lambda: cleaned("a.csv", "./a.csv", drop=[0]), "a.csv is the input itself", "--force"
    )
    assert Path("b.csv").read_text() == "mine"
    assert cleaned("a.csv", "a.csv", drop=[0], force=True)[0] == b"x,y\n2,b\n"
    put("p/a.csv", "x,y\n1,a\n")
    put("p/b.csv", "x,y\n1,a\n")
    part = {"drop": [0], "force": True}
    check_refused(lambda: cleaned("p", "p/b.csv", **part), "this run already uses that file")


def test_a_file_is_written_whole_or_not_at_all(monkeypatch):
    put("a.csv", "x,y\n1,a\n2,b\n")
    put("b.csv", "before")

    def broken(*_, **__):
        yield b"x,"
        raise OSError("disk full")

    monkeypatch.setattr(clean_copy, "edited", broken)
    with pytest.raises(th.InputError, match="cannot write b.csv: disk full"):
        cleaned("a.csv", "b.csv", drop=[0], force=True)
    assert Path("b.csv").read_text() == "before"
    assert sorted(path.name for path in Path().iterdir()) == ["a.csv", "b.csv"]


@pytest.mark.parametrize(
    ("out", "arguments", "words"),
    [
        ("b.parquet", {"drop": [0]}, ["b.parquet must be a file of the kind of a.csv", ".csv"]),
        ("b.doc", {"drop": [0]}, ["b.doc must be a .csv, "]),
        ("none/b.csv", {"drop": [0]}, ["folder", "does not exist"]),
        ("b.csv", {"drop": [0, 1]}, ["dropping all 2 rows"]),
        ("b.csv", {"drop": [2]}, ["no row 2: a.csv has rows 0 to 1"]),
        ("b.csv", {"drop": [-1]}, ["no row -1"]),
        ("b.csv", {"drop": [0.5]}, ["drop must be a boolean mask or a list of row numbers"]),
        ("b.csv", {"drop": [True]}, ["drop has 1 entries but a.csv has 2 rows"]),
        ("b.csv", {"relabel": {2: "a"}, "label": "y"}, ["no row 2"]),
        ("b.csv", {"relabel": {"0": "a"}, "label": "y"}, ["no row '0'"]),
        ("b.csv", {"relabel": {True: "a"}, "label": "y"}, ["no row True"]),
        (
            "b.csv",
            {"relabel": {0: "a"}, "drop": [0], "label": "y"},
            ["row 0 cannot be dropped and"],
        ),
        ("b.csv", {"relabel": {0: "a"}}, ["label must name the column"]),
        ("b.csv", {"relabel": {0: "a"}, "label": "z"}, ["no column 'z' (--label)"]),
        (
            "b.csv",
            {"relabel": {0: None}, "label": "y"},
            ["label None must be a string or a number"],
        ),
        ("b.csv", {"drop": [0], "id": "i"}, ["no column 'i' (--id)"]),
    ],
)
def test_changes_that_cannot_be_are_refused(out, arguments, words):
    put("a.csv", "x,y\n1,a\n2,b\n")
    check_refused(lambda: cleaned("a.csv", out, **arguments), *words)
    assert not Path(out).exists()
