"""Private text line by line, and `thresher release` on rows that cannot be read."""

from __future__ import annotations

import gzip
import json
import stat
import string

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from releases import X_VAL, Y_VAL, X, Y
from test_cli import thresher
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.errors import InputError
from thresher.privacy.noise import Seeded
from thresher.tables import text as text_module
from thresher.tables.labeled import read_private
from thresher.tables.text import read_lines

HEADER = b"a,b,c,y,who"
GOOD = [b'1.5,2,-3,"up",o1', b"0.5,-1,2,down,o2", b'"3",1,"1",up,"o, ""1"""']
UNQUOTED = [b"1.5,2,-3,up,o1", b"0.5,-1,2,down,o2", b"3,1,1,up,o"]
BAD = {
    "short": b"1,2",
    "long": b"1,2,3,up,o1,9",
    "open quote": b'1,2,3,"up,o1',
    "two open quotes": b'1,2,3,"up\n",o1',
    "plain quote, then open": b'1,x"y,3,up,"o1',
    "only a quote": b'"',
    "latin": b"1,2,3,caf\xe9,o1",
    "surrogate": b"1,2,3,\xed\xa0\x80,o1",
    "carriage return": b"1,2,3,up\r4,5,6,up,o1",
    "carriage return, five cells": b"1,2\r3,3,up,o1",
    "two rows in a line": b"1,2,3,up,o1\r4,5,6,up,o1",
    "returns": b"\r\r",
    "spaces": b"  ",
    "text": b"1,two,3,up,o1",
    "no number": b"1,,3,up,o1",
    "mark": b"\xef\xbb\xbf1,2,3,up,o1",
    "NUL": b"1,\x002,3,up,o1",
    "no class": b"1,2,3,sideways,o1",
    "no label": b"1,2,3,,o1",
    "huge": b"1,1e400,3,up,o1",
    "5 MB": b"1,2,3," + b"u" * 5_000_000 + b",o1",
    "digits": b"1," + b"9" * 5000 + b",3,up,o1",
}


def csv_file(path, lines, end=b"\n", header=HEADER):
    path.write_bytes(end.join([header, *lines]) + end)
    return path


def rows_of(path, **options):
    found = read_lines(path, ",", **options)
    return found.table.to_pylist()


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("good", [GOOD, UNQUOTED], ids=["quotes", "plain"])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_changes_no_other(tmp_path, name, good, end, at):
    want = rows_of(csv_file(tmp_path / "plain.csv", good, end))
    path = csv_file(tmp_path / "odd.csv", [*good[:at], BAD[name], *good[at:]], end)
    found = rows_of(path)
    extra = len(found) - len(want)
    assert found[:at] == want[:at]
    assert found[at + extra :] == want[at:]
    assert found == rows_of(path, numbered=True)
    if name in list(BAD)[:13]:
        assert extra == 0


line_bytes = st.binary(max_size=30) | st.lists(
    st.sampled_from([b",", b'"', b'""', b"\r", b"1", b"2.5", b"up", b" ", b"\xff", b"\xc3\xa9", b"\0"]),
    max_size=12,
).map(b"".join)  # fmt: skip


@settings(max_examples=300)
@given(
    line=line_bytes.filter(lambda line: b"\n" not in line),
    at=st.integers(0, 3),
    good=st.sampled_from([GOOD, UNQUOTED]),
)
@example(line=b'"', at=3, good=GOOD)
@example(line=b'1,2,3,"up",', at=3, good=GOOD)
@example(line=b'1,2,3,"up"x"y,o', at=1, good=GOOD)
@example(line=b"\xef\xbb\xbf1,2,3,up,o", at=0, good=UNQUOTED)
@example(line=b"1,2,3,up,o\r1,2,3,up,o", at=3, good=UNQUOTED)
def test_a_line_of_any_bytes_is_one_row_or_none(tmp_path_factory, line, at, good):
    """The rows of the file are those of the other lines, and that of the line by itself."""
    folder = tmp_path_factory.getbasetemp()
    plain = rows_of(csv_file(folder / "plain.csv", good))
    alone = rows_of(csv_file(folder / "alone.csv", [line]))
    path = csv_file(folder / "odd.csv", [*good[:at], line, *good[at:]])
    assert len(alone) <= 1
    assert rows_of(path) == [*plain[:at], *alone, *plain[at:]]
    with path.open("ab") as file:
        file.write(b"1,2\n")  # which sends all lines the slow way
    assert rows_of(path) == [*plain[:at], *alone, *plain[at:]]
    (folder / "cut.csv").write_bytes(b"\n".join([HEADER, *good, line]))
    assert rows_of(folder / "cut.csv") == [*plain, *alone]


@settings(max_examples=200)
@given(text=st.text(string.digits + "+-.eEinfaN_ x()", max_size=8) | st.floats().map(str))
def test_a_number_is_the_same_beside_a_cell_that_is_none(text):
    import pyarrow as pa

    from thresher.tables.number_text import numbers_or_missing

    alone, beside = (
        numbers_or_missing(pa.chunked_array([some]))[0].as_py() for some in ([text], [text, "x"])
    )
    usable = [x for x in (alone, beside) if x is not None and np.isfinite(x)]
    assert usable == [] or repr(alone) == repr(beside)


@pytest.mark.parametrize("size", [40, 64])
def test_lines_are_rows_wherever_blocks_are_cut(tmp_path, monkeypatch, size):
    """With a small block, quotes are open at the ends of blocks, and lines too long."""
    monkeypatch.setattr(text_module, "LONGEST", size)
    body = [*GOOD, BAD["open quote"], *GOOD, b"1,2,3," + b"u" * size + b",o", *GOOD] * 5
    want = rows_of(csv_file(tmp_path / "a.csv", GOOD * 15))
    assert rows_of(csv_file(tmp_path / "b.csv", body)) == want
    exact = b"1,2,3," + b"u" * (size - 9) + b",o"
    for line, rows in ((exact, 1), (exact + b"p", 0)):
        assert len(rows_of(csv_file(tmp_path / "c.csv", [line]))) == rows
        assert len(rows_of(csv_file(tmp_path / "d.csv", [line, b"1"]))) == rows
        (tmp_path / "e.csv").write_bytes(HEADER + b"\n" + line)
        assert len(rows_of(tmp_path / "e.csv")) == rows


def test_line_ends_marks_and_empty_files(tmp_path):
    want = rows_of(csv_file(tmp_path / "a.csv", GOOD))
    assert rows_of(csv_file(tmp_path / "b.csv", GOOD, b"\r")) == want
    assert rows_of(csv_file(tmp_path / "c.csv", GOOD, b"\n\n")) == want
    assert rows_of(csv_file(tmp_path / "d.csv", GOOD, header=b"\xef\xbb\xbf" + HEADER)) == want
    assert rows_of(csv_file(tmp_path / "e.csv", [b""])) == []
    (tmp_path / "e.csv").write_bytes(HEADER)
    assert rows_of(tmp_path / "e.csv") == []
    found = read_lines(csv_file(tmp_path / "f.csv", [b"", *GOOD, b"1"]), ",", numbered=True)
    assert found.numbers == [3, 4, 5]
    assert found.unread == {6: "it has 1 cell, but the header has 5"}


@pytest.mark.parametrize(
    ("header", "message"),
    [(b'a,"b', "quote in its header that is not closed"), (b"a,a", "several columns named 'a'"),
     (b"a;b", "delimiter=';'"), (b"", "is empty"), (b"\xff\xfea\0", "begins as UTF-16"),
     (b"a,\xe9", "the header has the byte 0xe9")],
)  # fmt: skip
def test_what_is_wrong_with_a_header_is_told(tmp_path, header, message):
    path = csv_file(tmp_path / "a.csv", [], header=header)
    with pytest.raises(InputError, match=message):
        read_private(path, "a")


def test_private_tables_of_other_kinds(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = csv_file(tmp_path / "a.tsv", [b"1\t2\tup\to"], header=b"a\tb\ty\twho")
    found = read_private(path, "y", "who")
    assert (found.X.column_names, found.y.to_pylist()) == (["a", "b"], ["up"])
    table = arrow.table({"a": ["1", "x"], "b": [1.0, None], "y": [["up"], None]})
    parquet.write_table(table, tmp_path / "a.parquet")
    found = read_private(tmp_path / "a.parquet", "y")
    release = th.dp_tknn_shapley(
        found.X, found.y, found.X.slice(0, 0).from_pydict({"a": [1.0], "b": [2.0]}), ["up"],
        epsilon=1, delta=1e-5, seed=0,
    )  # fmt: skip
    assert found.unusable(release.unusable)[0] == "row"
    assert list(release.unusable) == [0, 1]
    (tmp_path / "b.parquet").write_bytes(b"secret")
    for name in ("b.parquet", "b.npz", "b.arrow", "b.csv.gz"):
        (tmp_path / name).write_bytes(b"secret")
        with pytest.raises(InputError, match=f"{name} is damaged, or is no") as told:
            read_private(tmp_path / name, "y")
        assert "secret" not in str(told.value)


@pytest.fixture
def folder(tmp_path):
    for name, A, b in (("val", X_VAL, Y_VAL), ("points", X[:60], Y[:60])):
        lines = [f"{p!r},{q!r},{r!r},{label},o{i // 3}" for i, ((p, q, r), label) in
                 enumerate(zip(A.tolist(), b.tolist()))]  # fmt: skip
        csv_file(tmp_path / f"{name}.csv", [line.encode() for line in lines])
    return tmp_path


OPTIONS = ["--validation", "val.csv", "--epsilon", "1", "--delta", "1e-6", "--ledger", "l.db",
           "--out-prices", "p.json", "--force"]  # fmt: skip


def released(folder, monkeypatch, *more, points="odd.csv"):
    """What the command does and says with one tape of noise, and a ledger of its own."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("thresher.privacy.dp_tknn.noise_source", lambda seed: Seeded(0))
    for path in folder.glob("l.db*"):
        path.unlink()
    th.Ledger.create("l.db", epsilon=1, delta=1e-6, unit="owner" if "--owner" in more else "point")
    done = CliRunner().invoke(app, ["release", points, *OPTIONS, *more])
    record = json.loads(done.stdout) | {"ledger": None}
    return done.exit_code, done.stderr, record, (folder / "p.json").read_bytes()


KINDS = ["tsv", "csv.gz", "tsv.gz", "parquet", "arrow", "feather"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_the_same_from_every_kind_of_file(folder, monkeypatch, kind):
    pa, csv = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.csv")
    ignore = ["--ignore", "who"]
    want = released(folder, monkeypatch, *ignore, points="points.csv")
    assert want[0] == 0, want
    table = csv.read_csv(folder / "points.csv")
    path = folder / f"points.{kind}"
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    elif kind in {"arrow", "feather"}:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        text = (folder / "points.csv").read_bytes()
        text = text.replace(b",", b"\t") if kind.startswith("tsv") else text
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    assert released(folder, monkeypatch, *ignore, points=path.name) == want


@pytest.mark.parametrize(
    "more",
    [["--ignore", "who"], ["--owner", "who", "--points-per-owner", "3"]],
    ids=["points", "owners"],
)
def test_no_bad_line_shows_in_what_is_printed_or_written(folder, monkeypatch, more):
    """The command with one tape of noise: exit code, words, record and prices are the same."""
    _, *lines = (folder / "points.csv").read_bytes().splitlines()
    csv_file(folder / "odd.csv", lines)
    want = released(folder, monkeypatch, *more)
    assert want[0] == 0, want
    bad = [BAD[name] for name in BAD if name not in {"5 MB", "digits"}]
    bad += [b"1,2,3,up,"] if "--owner" in more else []
    for at in (0, 30, 60):
        csv_file(folder / "odd.csv", [*lines[:at], *bad, *lines[at:]])
        assert released(folder, monkeypatch, *more) == want


def test_the_command_lists_what_is_unusable_for_the_holder_alone(folder):
    """Real runs: the list is asked for, is private, and what is printed does not depend on it."""
    pytest.importorskip("opendp")
    lines = (folder / "points.csv").read_bytes().splitlines()[1:]
    told = []
    for name, bad in (("plain", []), ("odd", [b'1,"2', b"1,2,3,sideways,o", b"1,x,3,up,\xff"])):
        csv_file(folder / f"{name}.csv", [*lines[:2], *bad, *lines[2:]])
        th.Ledger.create(folder / f"{name}.db", epsilon=1, delta=1e-6)
        (folder / "list.csv").write_text("old")
        (folder / "list.csv").chmod(0o644)
        done = thresher(
            "release", f"{name}.csv", "--validation", "val.csv", "--epsilon", 1, "--delta", 1e-6,
            "--ledger", f"{name}.db", "--out-prices", "p.json", "--ignore", "who", "--unusable",
            "list.csv", "--force", cwd=folder,
        )  # fmt: skip
        words = done.stderr.partition(";")[0].strip()  # how good it is depends on noise
        told.append((done.returncode, words, sorted(json.loads(done.stdout))))
        assert stat.S_IMODE((folder / "list.csv").stat().st_mode) == 0o600
        assert (folder / "list.csv").read_text().splitlines()[1:] == (
            []
            if name == "plain"
            else [
                '4,"it has an open quote, or other than 5 cells"',
                "5,its label is not a class",
                "6,it is not UTF-8",
            ]
        )
    assert told[0] == told[1]
    assert told[0][0] == 0
    missing = thresher("release", "plain.csv", *OPTIONS, "--unusable", "val.csv", cwd=folder)
    assert missing.returncode == 1
    assert "cannot write val.csv: this run already uses that file" in missing.stderr


@settings(max_examples=20)
@given(line=line_bytes.filter(lambda line: b"\n" not in line))
def test_a_release_of_a_file_is_that_of_its_other_lines(tmp_path_factory, line):
    """A line of any bytes adds nothing, or what it adds when it is the only one."""
    folder = tmp_path_factory.getbasetemp()
    tables = []
    for lines in ([*GOOD[:2], line, GOOD[2]], GOOD, [line], []):
        found = read_private(csv_file(folder / "a.csv", lines), "y", "who")
        release = th.dp_tknn_shapley(
            found.X, found.y, X_VAL, Y_VAL, epsilon=1, delta=1e-4, seed=0
        )  # fmt: skip
        tables.append(release.table)
    np.testing.assert_array_equal(tables[0] - tables[1], tables[2] - tables[3])
