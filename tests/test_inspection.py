"""`thresher inspect`, guesses, and what `thresher value` does with tables of all kinds."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import shlex
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tabular import check_refused, put
from typer.testing import CliRunner
from ugly import ROWS, cells, column, german, label, plain, table, workbook, x

import thresher as th
from thresher.cli import app, streams
from thresher.errors import ExtraError, InputError, UndecidedError, in_options, message_of
from thresher.runs.inspection import inspect_files
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings
from thresher.runs.table_file import value_to_file
from thresher.tables import json_lines
from thresher.tables.clean_copy import write_cleaned
from thresher.tables.columns import choose_columns
from thresher.tables.reader import read_table

ROLES = ("label", "id", "owner")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def command(*words, **more):
    return CliRunner().invoke(app, list(words), **more)


def valued(file, **more):
    return value_files(Settings(file, trees=2, guess=ROLES, **more))


def test_inspect_shows_columns_guesses_problems_and_the_line_that_solves_them():
    body = table(["id", "joined"], lambda row: [f"p{row}", f"{row + 1:02}.01.2024"])
    put("a.csv", body.replace(b",", b";"))
    done = command("inspect", "a.csv")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "a.csv: 24 rows, 4 columns"
    assert [line.split()[1] for line in lines[2:6]] == ["number", "id", "date", "category"]
    assert "guessed: label kind (the last column, 2 different entries), id id" in done.stdout
    assert done.stdout.count("problem: ") == 2
    line = "thresher value a.csv --label kind --id id --delimiter ';' --date joined"
    assert lines[-2:] == ["the first row of data is row 0", f"this line solves them: {line}"]
    refused = command("value", "a.csv").exception.__notes__
    assert refused[refused.index(lines[-2]) + 1].startswith("columns: ")
    told = json.loads(command("inspect", "a.csv", "--json").stdout)
    assert told["command"] == line
    assert [each["kind"] for each in told["columns"]] == ["number", "id", "date", "category"]
    assert told["solved"]
    assert len(told["problems"]) == 2


def test_how_rows_are_counted_is_said_only_if_a_row_is_named():
    put("a.csv", plain)
    assert "row 0" not in command("inspect", "a.csv").stdout


def test_the_line_has_names_as_the_hints_spell_them_and_invents_none():
    def rows(start):
        lines = [f"{row % 7},{row % 5},{'car' if row % 2 else 'bus'},m{row % 4}" for row in start]
        return "\n".join(["speed,length,mode,member", *lines])

    put("trips.csv", rows(range(60)))
    put("val.csv", rows(range(60, 90)))
    start, end = "thresher value trips.csv", "--validation val.csv --out v.parquet"
    last = command("inspect", "trips.csv", "--label", "moed").stdout.splitlines()[-1]
    assert last == f"this line solves it: {start} --label mode"
    for wrong, right in {
        "--label moed --owner member": "--label mode --owner member",
        "--label mode --owner membr": "--label mode --owner member",
        "--label mode --owner member --ignore spede": "--label mode --ignore speed --owner member",
    }.items():
        done = command(*f"value trips.csv {wrong} {end}".split())
        assert "did you mean" in str(done.exception)
        notes = done.exception.__notes__
        assert not [note for note in notes if note.startswith("also: ") and "both" in note]
        assert notes[-1] == f"this line solves it: {start} {right} {end}"
    for name in ("zzz", "membre"):  # nothing like it, and what is the owner
        done = command(*f"value trips.csv --label {name} --owner member {end}".split())
        assert done.exception.__notes__[-1].startswith("this line does not solve everything; ")
        assert f"{start} --label {name} --owner member" in done.exception.__notes__[-1]
    done = command(*f"value trips.csv --label mode --id zzz {end}".split())
    assert "--ignore" not in done.exception.__notes__[-1]


def test_a_clean_table_needs_nothing_and_the_record_has_the_guesses():
    put("a.csv", table(["id", "owner"], lambda row: [f"p{row}", f"clinic {row % 3}"]))
    done = command("value", "a.csv", "--out", "v.csv")
    assert done.exit_code == 0
    assert "guessed: label kind (the last column, 2 different entries), id id (" in done.output
    record = json.loads(Path("v.csv.record.json").read_text())
    assert {role: record["guessed"][role]["column"] for role in ROLES} == {
        "label": "kind", "id": "id", "owner": "owner",
    }  # fmt: skip
    assert record["guessed"]["task"]["task"] == "classification"
    assert "--label kind --id id --owner owner" in record["command"]
    assert [each["name"] for each in record["encoder"]["columns"]] == ["size"]


def test_what_is_named_is_not_guessed():
    put("a.csv", table(["id", "owner"], lambda row: [str(row), f"clinic {row % 3}"]))
    run = valued("a.csv", features=("id", "size"))
    assert run.points.names == ("id", "size")
    assert run.points.ids is None
    other = value_files(Settings("a.csv", label="owner", trees=2, guess=("id", "owner")))
    assert set(other.points.labels) == {"clinic 0", "clinic 1", "clinic 2"}
    assert "kind" in other.points.names


def test_a_typed_label_that_is_not_there_is_refused_and_the_line_has_another():
    put("a.csv", plain)
    done = command("value", "a.csv", "--label", "kin")
    assert "did you mean 'kind'" in str(done.exception)
    assert done.exception.__notes__[-1].endswith("thresher value a.csv --label kind")


def test_numbers_that_may_be_amounts_ask_for_the_task():
    body = table([], lambda row: [], label=lambda row: str(row * 7 % 23)).decode()
    put("a.csv", body + "".join(f"{x(row):.2f},{row * 7 % 23}\n" for row in range(24, 100)))
    with pytest.raises(UndecidedError) as refused:
        value_files(Settings("a.csv", label="kind", trees=2))
    assert "--task classification" in in_options(message_of(refused.value))
    run = value_files(Settings("a.csv", label="kind", task="classification", trees=2))
    assert len(run.points) == 100
    assert run.record["guessed"] == {}


def test_an_id_is_never_suggested_as_a_category():
    put("a.csv", table(["id", "code"], lambda row: [f"p{row}", f"x-{row}"]))
    said = check_refused(lambda: valued("a.csv"), "column 'code'", "--ignore code", "--id code")
    assert "categorical" not in said
    assert "id='code'" not in said  # a Scan takes no ids


@pytest.mark.parametrize("method", ["forest", "tknn"])
def test_rows_without_a_label_get_one_and_no_value(method):
    put(
        "a.csv",
        column(lambda row: f"{row / 7 + 1:.2f}", label=lambda row: "" if row == 5 else label(row)),
    )
    more = ["--method", method, *(["--metric", "euclidean"] if method == "tknn" else [])]
    done = command("value", "a.csv", *more, "--unlabeled", "skip", "--out", "v.csv")
    assert done.exit_code == 0, done.output
    assert "rows without a label: 1, not valued; suggested labels: row 5 dog" in done.output
    rows = read_table("v.csv").data.column("row").to_pylist()
    assert "5" not in rows
    assert "23" in rows or method == "tknn"
    assert read_table("v-unlabeled.csv").data.select(["row", "best_label"]).to_pylist() == [
        {"row": "5", "best_label": "dog"}
    ]
    in_parts = Settings("a.csv", label="kind", unlabeled="skip")
    check_refused(
        lambda: Settings(**{**vars(in_parts), "memory": "64GB", "validation": "v.csv"}),
        "--unlabeled",
    )


def test_formats_of_cells_are_the_same_in_parts():
    body = column(lambda row: f"{row / 7 + 1:.3f}".replace(".", ","), mark=";").replace(b".", b",")
    put("a.csv", body)
    put("v.csv", body.replace(b",", b",1"))
    how = {"delimiter": ";", "decimal": ",", "na": ("?",), "guess": ROLES, "metric": "euclidean"}
    whole = value_files(Settings("a.csv", validation="v.csv", **how))
    value_to_file(Settings("a.csv", validation="v.csv", memory="64GB", **how), Path("o.parquet"))
    values = parquet.read_table("o.parquet").column("value").to_numpy()
    np.testing.assert_array_equal(values, whole.valuation.values)


@pytest.mark.parametrize("kind", ["xlsx", "jsonl"])
def test_workbooks_and_json_lines_are_read_in_parts(kind, monkeypatch):
    pytest.importorskip("openpyxl")
    monkeypatch.setattr(json_lines, "ROWS", 5)  # so that types differ between parts
    for name, off in (("a", 0.0), ("v", 0.25)):
        rows = [[x(row) + off, row % 3 if row < 9 else row / 7, label(row)] for row in ROWS]
        body = workbook([["size", "size", "kind"], *rows])
        if kind == "jsonl":
            lines = [
                json.dumps(dict(zip(["size", "own", "kind"], row, strict=True))) for row in rows
            ]
            body = "\n".join(lines).encode()
        put(f"{name}.{kind}", body)
    how = {"label": "kind", "metric": "euclidean", "radius": 4.0}
    whole = value_files(Settings(f"a.{kind}", validation=f"v.{kind}", **how))
    parts = Settings(f"a.{kind}", validation=f"v.{kind}", memory="64GB", **how)
    done = value_to_file(parts, Path("o.parquet"))
    values = parquet.read_table("o.parquet").column("value").to_numpy()
    np.testing.assert_array_equal(values, whole.valuation.values)
    assert ("columns" in done.record["guessed"]) == (kind == "xlsx")


def test_what_is_refused_in_parts_has_a_line_that_solves_it():
    put("a.csv", german)
    put("v.csv", german.replace(b",5;", b",6;"))
    words = ["value", "a.csv", "--validation", "v.csv", "--memory", "64GB", "--out"]
    refused = command(*words, "my values.csv").exception
    line = refused.__notes__[-1].removeprefix("this line solves them: ")
    assert line.endswith("--validation v.csv --memory 64GB --out 'my values.csv'")
    assert command(*shlex.split(line)[1:]).exit_code == 0
    put("a.csv", column(str, label=lambda row: "" if row == 5 else label(row)))
    refused = command(*words, "o.csv", "--force").exception
    assert refused.__notes__[-1].startswith("this line does not solve everything; ")
    assert "--unlabeled" not in f"{refused}{refused.__notes__}"


def test_names_that_a_header_has_twice_get_numbers_and_clean_keeps_the_header():
    put("a.csv", plain.replace(b"own", b"size"))
    run = valued("a.csv")
    assert run.points.names == ("size", "size.2")
    assert run.record["guessed"]["columns"]["column"] == "size, size.2"
    source = read_table("a.csv")
    write_cleaned(source, "c.csv", relabel={0: "4"}, label="size.2")
    assert Path("c.csv").read_bytes() == Path("a.csv").read_bytes().replace(
        b"0.00,0,", b"0.00,4,", 1
    )
    check_refused(lambda: th.Scan("a.csv", label="kind"), "several columns named 'size'")


def test_owners_are_guessed_where_they_are_the_players():
    put("a.csv", column(lambda row: f"clinic {row % 3}").replace(b"own", b"owner"))
    done = command("value", "a.csv", "--players", "owners", "--trees", "2")
    assert "owner owner (by its name, 3 different)" in done.output
    assert "valued 3 owners of 24 points" in done.output


def test_points_and_validation_must_say_numbers_alike():
    put("a.csv", column(lambda row: f"{row / 2} %"))
    put("v.csv", column(lambda row: f"{row / 200}"))
    check_refused(lambda: valued("a.csv", validation="v.csv"), "not percents", "'0.0' in row 0")


def test_dates_are_days_whatever_the_file():
    put("a.csv", column(lambda row: f"{row + 1:02}/01/2024"))
    days = valued("a.csv", date=("own",)).data[0][:, 1]
    stamps = np.arange("2024-01-01", "2024-01-25", dtype="datetime64[D]")
    data = pa.table(
        {
            "own": stamps,
            "size": [x(row) for row in range(24)],
            "kind": [label(row) for row in range(24)],
        }
    )
    parquet.write_table(data, "a.parquet")
    typed = valued("a.parquet", date=("own",)).data[0][:, 0]
    np.testing.assert_array_equal(days, typed)
    assert days[0] == 19723
    put("b.csv", column(lambda row: f"0{row % 9 + 1}/0{row // 9 + 1}/2024"))
    check_refused(lambda: valued("b.csv", date=("own",)), "--date own=%d/%m/%Y", "%m/%d/%Y")
    assert valued("b.csv", date=("own=%m/%d/%Y",)).data[0][1, 1] == 19723 + 31
    check_refused(lambda: valued("a.csv", date=("own=%Y",)), "not dates of the format %Y")


def test_columns_that_only_one_side_has_explain_themselves():
    put("a.csv", column(lambda row: f"c{row % 3}").replace(b"own", b"owner"))
    put("v.csv", table([], lambda row: []))
    settings = Settings("a.csv", label="kind", validation="v.csv", trees=2)
    said = check_refused(lambda: value_files(settings), "seems to hold owners", "--owner owner")
    assert "v.csv has no column 'owner'" in said
    found = inspect_files(settings)
    assert found.command.endswith("--owner owner --validation v.csv --trees 2")
    put("v.csv", plain.replace(b"own", b"own_"))
    said = check_refused(lambda: valued("a.csv", validation="w.csv"), "no file w.csv")
    put("a.csv", plain)
    said = check_refused(
        lambda: valued("a.csv", validation="v.csv"), "it has 'own_'", "name both alike"
    )
    put("v.csv", b"kind\ncat\ndog\n")
    check_refused(
        lambda: valued("a.csv", validation="v.csv"),
        "lacks 2 of the 2 features",
        "--ignore size,own",
    )


def test_a_table_on_standard_input_may_be_of_any_kind():
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.csv", plain)
    lines = [json.dumps({"size": x(row), "kind": label(row)}) for row in range(24)]
    for content in (plain, gzip.compress(plain), sink.getvalue(), "\n".join(lines).encode()):
        streams._typed.clear()
        done = command("inspect", "-", input=content)
        assert done.exit_code == 0, done.exception
        assert "standard input: 24 rows" in done.stdout


def test_clean_keeps_what_it_does_not_change():
    body = column(str).replace(b"own", "größe".encode("cp1252"))
    put("a.csv", body)
    latin = read_table("a.csv", encoding="cp1252")
    write_cleaned(latin, "b.csv", drop=[0], relabel={1: "katze"}, label="kind")
    lines = body.splitlines(keepends=True)
    assert Path("b.csv").read_bytes().splitlines(keepends=True)[2:] == lines[3:]
    assert b"katze" in Path("b.csv").read_bytes()
    check_refused(
        lambda: write_cleaned(latin, "c.csv", relabel={1: "\u732b"}, label="kind"), "cp1252"
    )
    put("a.jsonl", '{"size": 1.50, "kind": "cat"}\n\n{"size": 2, "kind": "dog"}\n{"size": 3}')
    write_cleaned(read_table("a.jsonl"), "b.jsonl", drop=[1], relabel={2: "cat"}, label="kind")
    wanted = '{"size": 1.50, "kind": "cat"}\n{"size": 3, "kind": "cat"}\n'
    assert Path("b.jsonl").read_text() == wanted
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("in/a.csv", plain)
    write_cleaned(read_table("a.zip"), "b.csv.zip", drop=[0])
    assert len(read_table("b.csv.zip")) == 23


def test_clean_keeps_the_rest_of_a_workbook():
    openpyxl = pytest.importorskip("openpyxl")
    put("a.xlsx", workbook([["All of 2024"], [], *cells()], [["notes"]]))
    write_cleaned(read_table("a.xlsx"), "b.xlsx", drop=[0, 2], relabel={1: "bird"}, label="kind")
    found = read_table("b.xlsx")
    assert len(found) == 22
    assert found.data.column("kind").to_pylist()[:2] == ["bird", label(3)]
    book = openpyxl.load_workbook("b.xlsx")
    assert book.worksheets[0]["A1"].value == "All of 2024"
    assert book.worksheets[1]["A1"].value == "notes"


def test_excel_without_its_package_names_the_extra(monkeypatch):
    put("a.xlsx", b"PK")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ExtraError, match=r"needs openpyxl: install the extra 'excel' "):
        read_table("a.xlsx")


def test_marks_that_do_not_go_together_are_refused():
    check_refused(
        lambda: Settings("a.csv", thousands="."), "--decimal and --thousands are both '.'"
    )
    check_refused(lambda: Settings("a.csv", thousands="x"), "--thousands must be one of")
    put("a.csv", plain)
    check_refused(lambda: read_table("a.csv", encoding="klingon"), "--encoding must be one such as")
    check_refused(lambda: read_table("a.csv", encoding="utf-16"), "is not utf-16")
    wrong = Settings("a.csv", label="kind", date=("kind",))
    check_refused(lambda: value_files(wrong), "--date 'kind' is not one of the features")


def test_sparse_matrices_are_tables():
    sparse = pytest.importorskip("scipy.sparse")
    data = np.random.default_rng(0).random((30, 4)) * ([[1], [0]] * 15)
    data[:, 0] += 0.1 + np.arange(30)
    y = np.arange(30) % 3
    wanted = th.tknn_shapley(data[6:], y[6:], data[:6], y[:6]).values
    for make in (sparse.csr_array, sparse.csc_matrix):
        found = th.tknn_shapley(make(data[6:]), y[6:], make(data[:6]), y[:6]).values
        np.testing.assert_array_equal(found, wanted)


def test_many_columns_hide_no_label():
    names = [f"x{number}" for number in range(60)]
    body = ",".join([*names[:30], "a", "b", *names[30:]]) + "\n"
    body += "".join(
        ",".join([str(r / 7)] * 30 + ["pq"[r % 2], "rs"[r % 2]] + [str(r / 3)] * 30) + "\n"
        for r in range(24)
    )
    put("a.csv", body)
    with pytest.raises(InputError) as refused:
        valued("a.csv")
    assert "it may be one of 'a', 'b'" in str(refused.value)
    words = shlex.split(inspect_files(Settings("a.csv", guess=ROLES)).command)
    assert words[words.index("--label") + 1] in {"a", "b"}
    assert choose_columns(read_table("a.csv"), label="a").names[30] == "b"


def test_suggested_labels_are_those_of_the_forest_that_values_the_rows():
    unknown = 5, 18
    put("a.csv", column(str, label=lambda row: "" if row in unknown else label(row)))
    run = valued("a.csv", unlabeled="skip", ignore=("own",))
    points = run.data[0]
    forest = th.grow_forest(*run.data[:2], trees=2)
    votes = {"cat": [], "dog": []}
    for row in unknown:
        cell = run.encoder.transform(
            dataclasses.replace(run.points, features=run.points.features.slice(0, 1))
        )
        cell[:] = x(row)
        near = forest.apply(points) == forest.apply(cell)
        for name, found in votes.items():
            mine = np.array([each == name for each in run.points.labels])
            found.append(np.mean([mine[near[:, tree]].mean() for tree in range(2)]))
    best = [max(votes, key=lambda name: votes[name][place]) for place in range(2)]
    assert run.suggested["best_label"] == best == ["dog", "cat"]
    np.testing.assert_allclose(run.suggested["share"], np.max(list(votes.values()), axis=0))
    assert run.valuation == valued("a.csv", unlabeled="skip", ignore=("own",)).valuation
    again = th.forest_shapley(*run.data[:2], trees=2)
    np.testing.assert_array_equal(run.valuation.values, again.values)


MODEL = """
import numpy as np

class SentenceTransformer:
    def __init__(self, name):
        pass

    def encode(self, texts, show_progress_bar=False):
        return np.array([[text.count(x) for x in "abcdefghij"] for text in texts], np.float32)
"""


@pytest.mark.parametrize("header", [[], ["size"]])
def test_a_column_of_texts_is_embedded_by_the_line_if_the_package_is_there(header, monkeypatch):
    put("packages/sentence_transformers.py", MODEL)
    monkeypatch.syspath_prepend("packages")
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    sizes = [f"{row}.5" for row in ROWS] if header else [""] * len(ROWS)
    lines = [
        ",".join(
            filter(None, [size, f"What was seen in house {row} by the {row}th guest", label(row)])
        )
        for row, size in zip(ROWS, sizes, strict=True)
    ]
    put("a.csv", "\n".join([",".join([*header, "said", "kind"]), *lines]))
    last = command("inspect", "a.csv").stdout.splitlines()[-1]
    assert last == "this line solves it: thresher value a.csv --label kind --text said"
    done = command(*shlex.split(last.partition(": thresher ")[2]), "--out", "v.csv")
    assert done.exit_code == 0, done.output
    assert "valued 24 points by each other: forest-shapley" in done.output
    sys.modules.pop("sentence_transformers")


def test_a_name_that_a_list_cannot_hold_is_a_pattern():
    names = ("last, first", " age", "a[1],b", "plain")
    assert Settings("a.csv", ignore=names).command() == (
        "thresher value a.csv --ignore 'last? first,?age,a[[]1]?b,plain'"
    )
