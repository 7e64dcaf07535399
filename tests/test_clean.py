"""Cleaned tables of text: some rows dropped, some labels changed, the other bytes as they were."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from cleaned_cases import cleaned
from hypothesis import given
from hypothesis import strategies as st
from tabular import check_refused, put

from thresher.tables.clean_copy import write_cleaned
from thresher.tables.reader import read_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Text, byte for byte


plain = st.text(st.sampled_from("ab 1.50é'"), min_size=1, max_size=5)


inside = st.text(st.sampled_from('ab ,;"\r\n\té'), max_size=6)


def in_quotes(text):
    return '"' + text.replace('"', '""') + '"'


@st.composite
def files(draw):
    """The header, then for each row the text before it, its cells, their label and its line end."""
    width = draw(st.integers(2, 4))
    delimiter = draw(st.sampled_from([",", ";", "\t"]))
    label = draw(st.integers(0, width - 1))
    raw_cell = st.one_of(plain, inside.map(in_quotes))
    names = [f"c{i}" if i != label else in_quotes("the, y") for i in range(width)]
    ends = st.sampled_from(["\n", "\r\n"])
    blank = st.sampled_from(["", "", "\n", "\r\n\r\n"])
    rows = [
        (draw(blank), [draw(raw_cell) for _ in range(width)], draw(ends))
        for _ in range(draw(st.integers(2, 6)))
    ]
    mark = draw(st.sampled_from(["", "\ufeff"]))
    last = draw(st.booleans())
    return delimiter, label, mark + delimiter.join(names) + draw(ends), rows, last


def text_of(delimiter, head, rows, last):
    text = head + "".join(blank + delimiter.join(cells) + end for blank, cells, end in rows)
    return text if last else text.removesuffix(rows[-1][2])


def relabeled(rows, label, new):
    """Rows with other raw cells in the column of labels."""
    return [
        (blank, [new.get(i, cell) if j == label else cell for j, cell in enumerate(cells)], end)
        for i, (blank, cells, end) in enumerate(rows)
    ]


@given(file=files(), data=st.data())
def test_kept_lines_are_copied_byte_for_byte(folder, file, data):
    delimiter, label, head, rows, last = file
    put("a.csv", text_of(delimiter, head, rows, last))
    fates = data.draw(st.lists(st.sampled_from(["keep", "drop", "relabel"]), min_size=len(rows),
                               max_size=len(rows)).filter(lambda f: set(f) != {"drop"}))  # fmt: skip
    new = {i: data.draw(inside | plain) for i, fate in enumerate(fates) if fate == "relabel"}
    special = set(f'{delimiter}"\r\n')
    raw = {i: in_quotes(x) if set(x) & special or not x else x for i, x in new.items()}
    drop = [i for i, fate in enumerate(fates) if fate == "drop"]
    table = read_table("a.csv", delimiter=delimiter)
    old = table.data.column("the, y").to_pylist()
    raw = {i: cell for i, cell in raw.items() if new[i] != old[i]}
    log = write_cleaned(table, "b.csv", drop=drop, relabel=new, label="the, y", force=True)

    kept = relabeled(rows, label, raw)
    kept = [(blank, [], "") if i in drop else (blank, cells, end)
            for i, (blank, cells, end) in enumerate(kept)]  # fmt: skip
    wanted = head + "".join(blank + delimiter.join(cells) + end for blank, cells, end in kept)
    wanted = wanted if last or fates[-1] == "drop" else wanted.removesuffix(rows[-1][2])
    assert Path("b.csv").read_bytes() == wanted.encode()

    again = read_table("b.csv", delimiter=delimiter).data.to_pylist()
    before = table.data.to_pylist()
    for i, x in new.items():
        before[i]["the, y"] = x
    assert again == [row for i, row in enumerate(before) if i not in drop]
    assert [(change["row"], change["action"]) for change in log] == sorted(
        [(i, "drop") for i in drop] + [(i, "relabel") for i in raw]
    )


@given(file=files())
def test_without_changes_it_is_the_same_file(folder, file):
    delimiter, _, head, rows, last = file
    put("a.csv", text_of(delimiter, head, rows, last))
    write_cleaned(read_table("a.csv", delimiter=delimiter), "b.csv", force=True)
    assert Path("b.csv").read_bytes() == Path("a.csv").read_bytes()


def test_a_label_is_rewritten_and_quoted_only_if_it_must_be():
    put("a.tsv", b'\xef\xbb\xbfx\ty\r\n 1.50\t"cat"\r\n2e0\tdog\r\n\r\n3\t')
    relabel = {0: "dog", 1: 'a "big"\tcat', 2: "cat, dog"}
    found, log = cleaned("a.tsv", "b.tsv", relabel=relabel, label="y")
    assert found == (b'\xef\xbb\xbfx\ty\r\n 1.50\tdog\r\n2e0\t"a ""big""\tcat"\r\n\r\n3\tcat, dog')
    assert log[2] == {"row": 2, "action": "relabel", "old_label": None, "new_label": "cat, dog"}


def test_a_label_that_stays_is_no_change():
    content = b'x,y\n1,"cat"\n2,dog\n'
    put("a.csv", content)
    assert cleaned("a.csv", "b.csv", relabel={0: "cat"}, label="y") == (content, [])
    np.savez("a.npz", X=np.eye(2), y=[1, 2])
    assert cleaned("a.npz", "b.npz", relabel={0: "1", 1: 2.0}, label="y")[1] == []


def test_several_files_become_one_under_one_header():
    put("p/a.csv", b"\xef\xbb\xbfx,y\r\n1,a\r\n2,b")
    put("p/b.csv", b"\xef\xbb\xbfx,y\r\n3,a\r\n4,b\r\n")
    put("p/c.csv", b"x,y\n5,a\n6,b")
    put("p/d.csv", b"x,y\n7,a")
    found, log = cleaned("p", "b.csv", drop=[2, 5], relabel={1: "c", 4: "d", 6: "e"}, label="y")
    assert found == b"\xef\xbb\xbfx,y\r\n1,a\r\n2,c\r\n4,b\r\n5,d\n7,e"
    assert [change["row"] for change in log] == [1, 2, 4, 5, 6]


def test_compressed_text_stays_so_if_its_name_says_it():
    put("a.csv.gz", gzip.compress(b"x,y\n1,a\n2,b\n"))
    cleaned("a.csv.gz", "b.csv.gz", drop=[0])
    assert gzip.decompress(Path("b.csv.gz").read_bytes()) == b"x,y\n2,b\n"
    assert Path("b.csv.gz").read_bytes()[4:8] == bytes(4)  # no date: the same bytes again
    assert cleaned("a.csv.gz", "b.csv", drop=[0])[0] == b"x,y\n2,b\n"


@pytest.mark.parametrize(
    "content",
    [b"x,y\n1,a\n", b"x,y\n1,a\n2,b\n3,c\n", b"x,z\n1,a\n2,b\n", b"", b"x,y\n1,q\n2,b\n"],
)
def test_a_file_that_changed_since_it_was_read_is_refused(content):
    put("a.csv", "x,y\n1,a\n2,b\n")
    table = read_table("a.csv")
    put("a.csv", content)
    change = {"relabel": {0: "c"}, "label": "y"}
    check_refused(
        lambda: write_cleaned(table, "b.csv", **change), "a.csv was changed after it was read"
    )
    assert not Path("b.csv").exists()
