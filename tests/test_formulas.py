"""Text that a spreadsheet would compute: harmless in files of text, the same again when read."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tabular import put, thresher

import thresher as th
from thresher.tables.formulas import harmless, harmless_text, meant

COMPUTED = re.compile(r"[=+\-@\t\r\n]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
cells = st.text(st.sampled_from("'=+-@\t\r\n1.e5a \uff1d"), max_size=6) | st.text(max_size=6)


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def is_computed(cell):
    return bool(COMPUTED.match(cell)) and not NUMBER.fullmatch(cell)


@given(cells=st.lists(st.none() | cells, min_size=1, max_size=8))
@example(cells=["=1+1", "'=1", "''", "-5", "-5\n", "+1e3", "-", "@a", "\tx", "", None, "5\n=x"])
def test_no_cell_is_computed_and_every_one_is_what_it_was(cells):
    column = pa.array(cells, pa.string())
    for kind in (pa.string(), pa.large_string()):
        found = harmless(pa.table({"a": column.cast(kind), "b": range(len(cells))}))
        assert found.column("a").to_pylist() == [harmless_text(cell) for cell in cells]
    for cell in filter(None, cells):
        assert not is_computed(harmless_text(cell))
        assert meant(harmless_text(cell)) == cell


@pytest.mark.parametrize("number", ["-5", "+1", "-1.5e-3", "-.5", "0", "-5."])
def test_numbers_stay_numbers(number):
    assert harmless_text(number) == number


LABELS = ["=cmd|' /C calc'!A0", "-1", "'@x", "dog"]
STARTS = ["=A", "+", "-5", "@", "p"]


@pytest.fixture
def tables():
    random = np.random.default_rng(1)
    for name, rows in (("p.csv", 120), ("v.csv", 60)):
        right = random.integers(0, 4, rows)
        given_ = np.where(random.random(rows) < 0.15, random.integers(0, 4, rows), right)
        X = 0.3 * random.normal(size=(rows, 4)) + np.eye(4)[right]
        with Path(name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["who", "a", "b", "c", "d", "y"])
            for i, (row, code) in enumerate(zip(X.tolist(), given_, strict=True)):
                table.writerow([f"{STARTS[i % 5]}{i}", *row, LABELS[code]])


def read(name, delimiter=","):
    with Path(name).open(newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_values_as_text_are_harmless_and_clean_acts_on_them_as_on_parquet(tables):
    for name in ("o.csv", "o.tsv", "o.parquet"):
        options = ("--validation", "v.csv", "--method", "tknn", "--id", "who", "--out", name)
        done = thresher("value", "p.csv", *options)
        assert done.returncode == 0, done.stderr
    exact = pq.read_table("o.parquet")
    for name, delimiter in (("o.csv", ","), ("o.tsv", "\t")):
        rows = read(name, delimiter)
        assert not any(is_computed(cell) for row in rows for cell in row)
        for column in ("id", "label", "best_label"):
            place = rows[0].index(column)
            assert [meant(row[place]) for row in rows[1:]] == exact.column(column).to_pylist()
        assert "apostrophe" in json.loads(Path(f"{name}.record.json").read_text())["cells"]
    assert exact.column("id").to_pylist()[0] == "=A0"
    act = ("--id", "who", "--drop", "drop,inspect", "--relabel", "relabel")
    for name in ("o.parquet", "o.csv", "o.tsv"):
        out = f"clean-{name}.csv"
        done = thresher(
            "clean", "p.csv", "--values", name, *act, "--out", out, "--log", f"{out}.log.csv"
        )
        assert done.returncode == 0, done.stderr
        assert Path(out).read_bytes() == Path("clean-o.parquet.csv").read_bytes()
    assert "\n=A5," in Path("clean-o.csv.csv").read_text()  # the user's own cells stay as they are
    log = read("clean-o.csv.csv.log.csv")
    assert len(log) > 5
    assert not any(is_computed(cell) for row in log for cell in row)


def test_printed_values_are_harmless_and_clean_reads_them_without_a_record(tables):
    done = thresher("value", "p.csv", "--validation", "v.csv", "--id", "who")
    put("printed.csv", done.stdout)
    assert not any(is_computed(cell) for row in read("printed.csv") for cell in row)
    act = ("--values", "printed.csv", "--relabel", "relabel", "--out", "c.csv", "--id", "who")
    assert thresher("clean", "p.csv", *act).returncode == 0


def test_values_in_parts_are_the_same_text(tables):
    options = (
        "value",
        "p.csv",
        "--validation",
        "v.csv",
        "--method",
        "tknn",
        "--id",
        "who",
        "--out",
    )
    assert thresher(*options, "whole.csv").returncode == 0
    done = thresher(*options, "parts.csv", "--memory", "64GB")
    assert done.returncode == 0, done.stderr
    assert Path("parts.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_appraisals_are_harmless(tables):
    sides = []
    for name in ("v.csv", "p.csv"):
        rows = read(name)[1:]
        sides += [[[float(cell) for cell in row[1:5]] for row in rows], [row[5] for row in rows]]
    counts = th.NeighborCounts(*sides[:2], radius=0.5).add(*sides[2:])
    counts.price_list().save("prices.json")
    options = ("appraise", "p.csv", "--prices", "prices.json", "--id", "who", "--out")
    done = thresher(*options, "worth.csv")
    assert done.returncode == 0, done.stderr
    assert thresher(*options, "worth.parquet").returncode == 0
    rows, exact = read("worth.csv"), pq.read_table("worth.parquet")
    assert not any(is_computed(cell) for row in rows for cell in row)
    assert [meant(row[1]) for row in rows[1:]] == exact.column("id").to_pylist()
