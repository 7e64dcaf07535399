"""Labels, ids and owners of every type that a Parquet file has, through the whole command."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tabular import check_refused

import thresher as th
from thresher.cli import app
from thresher.inputs.labels import check_labels
from thresher.tables.new_labels import fitting_label

DAY = 86_400
KINDS = {
    "bool": pa.array([True, False]),
    "int": pa.array([3, 7], pa.int8()),
    "uint64": pa.array([1, 2**63 + 5], pa.uint64()),
    "float": pa.array([1.0, 2.0]),
    "str": pa.array(["a", "b"]),
    "string_view": pa.array(["a", "b"], pa.string_view()),
    "binary": pa.array([b"a", b"=1"]),
    "binary_view": pa.array([b"a", b"b"], pa.binary_view()),
    "decimal": pa.array([Decimal("1.00"), Decimal("-2.00")]),
    "date32": pa.array([1, 2], pa.date32()),
    "date64": pa.array([DAY * 1000, 2 * DAY * 1000], pa.date64()),
    "timestamp[s]": pa.array([0, 1], pa.timestamp("s")),
    "timestamp[us]": pa.array([0, 1], pa.timestamp("us")),
    "timestamp[ns]": pa.array([1, 10**18 + 1], pa.timestamp("ns")),
    "timestamp[ns] of microseconds": pa.array([1000, 2000], pa.timestamp("ns")),
    "timestamp[s, zone]": pa.array([0, 1], pa.timestamp("s", "Europe/Berlin")),
    "timestamp[us, zone]": pa.array([0, 1], pa.timestamp("us", "UTC")),
    "timestamp[ns, zone]": pa.array([1000, 2000], pa.timestamp("ns", "Europe/Berlin")),
    "duration[s]": pa.array([5, -6], pa.duration("s")),
    "duration[us]": pa.array([0, 1], pa.duration("us")),
    "duration[ns]": pa.array([1, 2], pa.duration("ns")),
    "duration[ns] of microseconds": pa.array([1000, 2000], pa.duration("ns")),
    "time32[s]": pa.array([0, 1], pa.time32("s")),
    "time64[us]": pa.array([0, 1], pa.time64("us")),
    "time64[ns]": pa.array([1000, 2000], pa.time64("ns")),
    "dictionary": pa.array(["a", "b"]).dictionary_encode(),
    "dictionary of times": pa.array([1, 2], pa.timestamp("ns")).dictionary_encode(),
}
FAR = {
    "timestamp[s]": pa.array([0, 10**12], pa.timestamp("s")),
    "timestamp[us, zone]": pa.array([0, -(10**17)], pa.timestamp("us", "Europe/Berlin")),
    "date32": pa.array([0, 10**7], pa.date32()),
    "duration[s]": pa.array([0, 10**17], pa.duration("s")),
}
ROWS, WRONG = 24, 4
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    """The command, in this process; errors come as they are."""
    app([str(word) for word in words], standalone_mode=False)


def write(path, two, wrong=None, **more):
    """Two far groups of rows with a label each; one row may have the label of the other group."""
    group = np.arange(ROWS) % 2
    codes = group.copy()
    if wrong is not None:
        codes[wrong] = 1 - codes[wrong]
    plain = two.cast(two.type.value_type) if pa.types.is_dictionary(two.type) else two
    labels = pa.concat_arrays([plain.slice(code, 1) for code in codes])
    if pa.types.is_dictionary(two.type):
        labels = labels.dictionary_encode()
    x = group * 100.0 + np.arange(ROWS) / 100 + (path == "v.parquet") / 1000
    pq.write_table(pa.table({"x": x, "y": labels, **more}), path)


def value(*more):
    run("value", "t.parquet", "--validation", "v.parquet", "--metric", "euclidean",
        "--radius", 9, *more)  # fmt: skip


@every_kind
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_clean_takes_what_value_found_of_labels_of_every_type(kind, suffix):
    write("t.parquet", KINDS[kind], wrong=WRONG)
    write("v.parquet", KINDS[kind])
    value("-o", f"o.{suffix}")
    run("clean", "t.parquet", "--values", f"o.{suffix}", "--relabel", "relabel",
        "--drop", "drop", "-o", "c.parquet", "--log", "log.json")  # fmt: skip
    wanted, found = pq.read_table("v.parquet"), pq.read_table("c.parquet")
    assert found.schema == wanted.schema
    assert found.column("y").to_pylist() == wanted.column("y").to_pylist()
    assert found.column("x") == pq.read_table("t.parquet").column("x")
    changes = json.loads(Path("log.json").read_text())["changes"]
    assert [change["row"] for change in changes] == [WRONG]


@every_kind
def test_findings_of_other_labels_are_refused(kind):
    write("t.parquet", KINDS[kind], wrong=WRONG)
    write("v.parquet", KINDS[kind])
    value("-o", "o.csv")
    Path("o.csv.record.json").unlink()
    write("t.parquet", KINDS[kind], wrong=WRONG + 1)
    check_refused(
        lambda: run("clean", "t.parquet", "--values", "o.csv", "--relabel", "relabel", "-o",
                    "c.parquet"),
        f"o.csv has other labels than t.parquet in rows {WRONG}, {WRONG + 1}",
    )  # fmt: skip


@every_kind
def test_labels_of_every_type_are_in_json(kind, capsys):
    write("t.parquet", KINDS[kind], wrong=WRONG)
    write("v.parquet", KINDS[kind])
    value("--json")
    found = json.loads(capsys.readouterr().out)
    assert found["suggestions"]["relabel"] == 1
    labels = [row["label"] for row in found["rows"]]
    assert len(set(labels)) == 2
    assert labels[WRONG] == labels[WRONG + 1] != labels[WRONG + 2]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("date32", "1970-01-03"), ("timestamp[s]", "1970-01-01 00:00:01"),
        ("timestamp[us, zone]", "1970-01-01T00:00:00.000001Z"), ("duration[us]", "1 us"),
        ("time64[us]", "00:00:00.000001"), ("decimal", "-2.00"), ("bool", "False"),
    ],
)  # fmt: skip
def test_new_labels_of_every_type_may_be_named_outright(kind, text):
    write("t.parquet", KINDS[kind])
    run("clean", "t.parquet", "--relabel", f"rows:0={text}", "-o", "c.parquet")
    wanted = [KINDS[kind][code].as_py() for code in (1, 1, 0, 1)]
    assert pq.read_table("c.parquet").column("y").to_pylist()[:4] == wanted


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.date32(), "soon"), (pa.timestamp("s"), "1970-01-01 00:00:00.5"), (pa.duration("s"), "5"),
        (pa.duration("s"), "5 years"), (pa.duration("s"), "1 us"), (pa.time32("s"), "25:00:00"),
        (pa.decimal128(3, 2), "0.001"), (pa.timestamp("us", "UTC"), "1970-01-01 00:00:00"),
    ],
)  # fmt: skip
def test_text_that_is_no_entry_of_a_column_is_refused(kind, text):
    check_refused(lambda: fitting_label(text, kind, "y"), text, "does not fit column 'y'")


def test_bytes_in_text_are_harmless_and_utf8():
    write("t.parquet", KINDS["binary"], wrong=WRONG)
    write("v.parquet", KINDS["binary"])
    value("-o", "o.csv")
    assert ",'=1," in Path("o.csv").read_text().replace('"', "")
    write("t.parquet", pa.array([b"a", b"\xff"]))
    for more in (("-o", "p.csv"), ()):
        check_refused(lambda more=more: value(*more), "'label'", "not UTF-8", ".parquet")
    assert not Path("p.csv").exists()
    value("-o", "p.parquet")


@pytest.mark.parametrize("kind", FAR)
def test_times_beyond_what_python_holds_stay_distinct(kind, capsys, monkeypatch):
    labels = check_labels("y", FAR[kind])
    assert len({*labels}) == 2
    assert isinstance(labels[1], np.datetime64 | np.timedelta64)
    assert check_labels("y", pa.chunked_array([FAR[kind]])) == labels
    write("t.parquet", FAR[kind], wrong=WRONG)
    write("v.parquet", FAR[kind])
    value("--json")
    assert json.loads(capsys.readouterr().out)["suggestions"]["relabel"] == 1
    monkeypatch.setattr("thresher.runs.memory_run.encoded", None)
    check_refused(lambda: value("-o", "o.parquet"), "cannot be saved")


UNSAVED = {
    "date": (pa.array([datetime.date(2020, 1, day) for day in range(1, 25)]), "strings or numbers"),
    "time": (pa.array(range(24), pa.time32("s")), "strings or numbers"),
    "decimal": (pa.array(map(Decimal, range(24))), "strings or numbers"),
    "bytes": (pa.array([b"%d" % i for i in range(24)]), "strings or numbers"),
    "uint64": (pa.array(range(2**63, 2**63 + 24), pa.uint64()), "integers below 2**63"),
}


@pytest.mark.parametrize("role", ["id", "owner"])
@pytest.mark.parametrize("kind", UNSAVED)
@pytest.mark.parametrize("more", [(), ("-o", "o.csv"), ("--json",)], ids=str)
def test_ids_and_owners_that_cannot_be_saved_are_refused_at_the_start(
    kind, role, more, monkeypatch
):
    def late(*_, **__):
        raise AssertionError

    monkeypatch.setattr("thresher.runs.memory_run.encoded", late)
    entries, words = UNSAVED[kind]
    write("t.parquet", KINDS["str"], name=entries)
    write("v.parquet", KINDS["str"])
    check_refused(
        lambda: value(f"--{role}", "name", *more), f"the {role}", "cannot be saved", words
    )


@pytest.mark.parametrize("role", ["id", "owner", "label"])
@pytest.mark.parametrize("kind", ["date", "time", "decimal", "bytes"])
def test_columns_that_cannot_be_kept_between_passes_are_refused_at_the_start(
    kind, role, monkeypatch
):
    monkeypatch.setattr("thresher.runs.file_run.FileRun.source", None)
    entries, words = UNSAVED[kind]
    write("t.parquet", KINDS["str"], name=entries)
    write("v.parquet", KINDS["str"], name=entries)
    check_refused(
        lambda: value(f"--{role}", "name", "--memory", "64GB", "-o", "o.csv"),
        "column 'name'", "cannot be saved", words,
        *(["leave out --memory"] if role == "label" else []),
    )  # fmt: skip


ENDED = ["a", "a\0", "a\0\0", "\0", ""]


def test_labels_keep_zeros_at_their_end(tmp_path):
    """NumPy's texts of a fixed width drop them, so such labels are kept as objects."""
    V, X = np.arange(5.0)[:, None], np.arange(5.0)[:, None] + 0.1
    about = {"radius": 0.3, "metric": "euclidean"}
    with th.LiveCounts.create(tmp_path / "live", V, ENDED, **about) as live:
        live.add_many(range(5), X, ENDED)
        assert live.points()[1].tolist() == ENDED
        assert sorted(live.values().values.tolist()) == pytest.approx([0.8] * 5)
    with th.LiveCounts.open(tmp_path / "live") as live:
        assert live.points()[1].tolist() == ENDED
    counts = th.NeighborCounts(V, ENDED, **about).add(X, ENDED)
    counts.save(tmp_path / "counts.npz")
    loaded = th.NeighborCounts.load(tmp_path / "counts.npz")
    assert sorted(loaded.classes) == sorted(ENDED)
    loaded.price_list().save(tmp_path / "prices.json")
    prices = th.PriceList.load(tmp_path / "prices.json")
    assert [prices.classes[code] for code in prices.label_values(X).argmax(axis=1)] == ENDED
    valuation = th.tknn_shapley(X, ENDED, V, ENDED, owners=ENDED, **about)
    valuation.save(tmp_path / "values.parquet")
    loaded = th.Valuation.load(tmp_path / "values.parquet")
    assert loaded.by_owner().keys() == set(ENDED)
    assert loaded.params["classes"] == valuation.params["classes"]
    assert set(th.flip_labels(ENDED, fraction=0.9, seed=1)[0].tolist()) <= set(ENDED)
    model = th.TKNNClassifier(**about).fit(X, ENDED)
    assert model.predict(X).tolist() == ENDED


def test_long_integers_stay_integers():
    found = th.flip_labels([2**63, -1, -1], fraction=1, seed=1)[0].tolist()
    assert found == [-1, 2**63, 2**63]
    assert [type(each) for each in found] == [int, int, int]
