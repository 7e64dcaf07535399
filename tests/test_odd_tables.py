"""Odd tables: encodings, labels, ids, dates and options that are easy to get wrong."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from tabular import put, thresher


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows_of(count, *more):
    """Lines of a table with columns x and y, in two clear classes, and what is put in besides."""
    lines = [f"{row % 2 * 100 + row},{['cat', 'dog'][row % 2]}" for row in range(count)]
    return [",".join([line, *(each(row) for each in more)]) for row, line in enumerate(lines)]


def said_by(code, *words):
    """What the command says, if it ends with this code."""
    done = thresher(*words)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("encoding", ["nonsense", "latin-2"])
@pytest.mark.parametrize("verb", ["inspect", "value", "clean --drop rows:1 --out b.csv"])
def test_an_unknown_encoding_is_refused_alike_by_all_verbs(verb, encoding):
    put("a.csv", "x,y\n1,a\n2,b\n")
    name, *more = verb.split()
    said = said_by(1, name, "a.csv", "--encoding", encoding, *more)
    wanted = f"--encoding must be one such as latin-1, cp1252 or utf-16, got {encoding!r}"
    assert said == f"thresher: {wanted}\n"


SKIP = ("--label", "y", "--unlabeled", "skip", "--trees", "2", "--out", "v.csv")


@pytest.mark.parametrize(
    ("column", "options", "said"),
    [
        ("{even}", ("--id", "extra"), "ids that are not distinct: '8' in rows 8, 9; '10' in rows"),
        ("{gap}", ("--id", "extra"), "has missing ids in row 20:"),
        ("{gap}", ("--owner", "extra"), "has missing owners in row 20:"),
    ],
)
def test_messages_number_rows_as_the_file_does_if_some_are_skipped(column, options, said):
    def extra(row):
        return column.format(row=row, even=row - row % 2 * (row > 7), gap="" if row == 20 else row)

    lines = rows_of(24, extra)
    lines[0] = lines[0].replace("cat", "")
    put("a.csv", "\n".join(["x,y,extra", *lines]))
    assert said in said_by(1, "value", "a.csv", *options, *SKIP)


def test_rows_of_labels_and_of_the_validation_set_are_those_of_the_file_too():
    body = ["x,y", "1,", *(f"{row},{row}.5" for row in range(9))]
    put("a.csv", "\n".join(body))
    assert "such as '0.5' in row 1:" in said_by(2, "value", "a.csv", *SKIP)
    put("a.csv", "\n".join(["x,y", *rows_of(24)]))
    put("b.csv", "\n".join(["x,y", "1,", *rows_of(4), "?,cat"]))
    said = said_by(1, "value", "a.csv", "--validation", "b.csv", *SKIP)
    assert "b.csv column 'x' has cells that are not numbers: '?' in row 5" in said


def test_an_option_that_is_given_twice_is_refused_and_none_is_dropped():
    put("a.csv", "\n".join(["x,y", *rows_of(4)]))
    twice = "clean", "a.csv", "--label", "y", "--relabel", "rows:1=cat", "--relabel=rows:3=cat"
    said = said_by(1, *twice, "--out", "b.csv")
    assert "--relabel must be given once, got it 2 times: keep one of them, and put a list" in said
    assert not Path("b.csv").exists()
    assert "relabeled 2" in said_by(
        0, *twice[:5], "rows:1=cat,3=cat", "--out", "b.csv", "--force", "--force"
    )
    said = said_by(1, "ledger", "create", "a.db", *["--epsilon", "1"] * 2, "--delta", "0")
    assert "must be given once" in said


@pytest.mark.parametrize(
    "options", ["--date born", "--categorical x --date born", "--date born=%d"]
)
def test_a_column_that_is_left_out_has_no_other_option_in_the_suggested_line(options):
    put("a.csv", "\n".join(["x,y,born", *rows_of(24, lambda row: "")]))
    put("b.csv", "\n".join(["x,y", *rows_of(8)]))
    wanted = *options.split(), "--validation", "b.csv", "--out", "v.csv"
    said = said_by(1, "value", "a.csv", *wanted)
    assert "not one of the features" not in said
    line = said.partition("this line solves it: ")[2].strip()
    assert "--ignore born" in line
    assert "--date" not in line
    said_by(0, *shlex.split(line)[1:])


@pytest.mark.parametrize("options", [(), ("--date", "born"), ("--date", "born=%d")])
def test_dates_that_no_option_reads_are_not_left_out_by_the_suggested_line(options):
    put("a.csv", "\n".join(["x,y,born", *rows_of(24, born)]))
    line = said_by(1, "value", "a.csv", *options, "--out", "v.csv").splitlines()[-1]
    assert line.startswith("this line does not solve everything; ")
    assert "--ignore" not in line


@pytest.mark.parametrize(
    ("theirs", "wanted"),
    [
        ("1.5", ""),  # as the points have it
        ("inf", " --na inf"),
        ("?", " --na '?'"),
        ("1 kg", None),
    ],
)
def test_a_line_solves_what_only_the_validation_set_has(theirs, wanted):
    put("a.csv", "\n".join(["x,y,size", *rows_of(24, lambda row: f"{row}.5")]))
    cells = [f"{row}.5" for row in range(8)]
    cells[5] = theirs
    put("b.csv", "\n".join(["x,y,size", *rows_of(8, cells.__getitem__)]))
    done = thresher("value", "a.csv", "--validation", "b.csv", "--trees", "2", "--out", "v.csv")
    if wanted == "":
        assert done.returncode == 0, done.stderr
        return
    line = done.stderr.splitlines()[-1]
    assert line.startswith("this line solves it: ") == (wanted is not None)
    assert "--ignore" not in line
    if wanted is not None:
        assert wanted in line
        said_by(0, *shlex.split(line.partition(": ")[2])[1:])


@pytest.mark.parametrize(
    ("column", "kept"), [("", False), ("same", False), ("p-{row}", False), ("{row}.5", True)]
)
def test_a_feature_that_the_validation_set_lacks_is_kept_if_it_has_a_meaning(column, kept):
    put("a.csv", "\n".join(["x,y,own", *rows_of(24, lambda row: column.format(row=row))]))
    put("b.csv", "\n".join(["x,y", *rows_of(8)]))
    wanted = "--features", "x,own", "--validation", "b.csv", "--trees", "2", "--out", "v.csv"
    line = thresher("value", "a.csv", *wanted).stderr.splitlines()[-1]
    assert line.startswith("this line does not solve everything; ") == kept
    if not kept:
        said_by(0, *shlex.split(line.partition(": ")[2])[1:])


def test_counts_with_gaps_are_filled_and_not_left_out():
    put("a.csv", "\n".join(["x,y,day", *rows_of(40, lambda row: "" if row == 7 else str(row))]))
    said = said_by(1, "value", "a.csv", "--method", "tknn", "--out", "v.csv")
    line = said.splitlines()[-1]
    assert (
        line == "this line solves it: thresher value a.csv --fill median --method tknn --out v.csv"
    )


def test_owners_that_are_missing_are_not_given_up_by_the_suggested_line():
    def owner(row):
        return "" if row == 5 else f"clinic {row % 3}"

    put("a.csv", "\n".join(["x,y,from", *rows_of(24, owner)]).replace("7,dog", "?,dog", 1))
    said = said_by(1, "value", "a.csv", "--owner", "from", "--out", "v.csv")
    assert "missing owners in row 5" in said
    assert "also: a.csv column 'x' has cells that are not numbers: '10?'" in said
    line = said.splitlines()[-1]
    assert line.startswith("this line does not solve everything; ")
    assert "--owner from" in line
    assert "--ignore" not in line


def test_dates_of_several_formats_are_not_said_to_be_readable_as_they_are():
    put("a.csv", "\n".join(["x,y,born", *rows_of(24, born)]))
    said = said_by(0, "inspect", "a.csv")
    assert ": write its dates in one format, and turn it into numbers with --date born" in said


def born(row):
    """Dates, some of them in another format."""
    return f"{1950 + row}-01-31" if row % 5 else f"01/31/{1950 + row}"


def test_inspect_describes_labels_such_as_na_as_value_reads_them():
    lines = [line.replace("cat", "NA").replace("dog", "OK") for line in rows_of(24)]
    lines[3] = "3,"
    put("a.csv", "\n".join(["x,kind", *lines, "7,bad"]))
    said = said_by(0, "inspect", "a.csv", "--label", "kind")
    assert "\n  kind    category        1          3\n" in said
    assert "has missing labels in row 3:" in said
    hint = next(line for line in said.splitlines() if line.startswith("hint: "))
    assert "a class is made of each of these labels: 'NA'" in hint
    assert "read them as missing with --na NA, or confirm them as classes with --keep-na" in hint
    line = said.partition("this line solves it: ")[2].strip()
    assert "label kind (the last column, 3 different" in said_by(0, "inspect", "a.csv")
    assert f"\n{hint}\n" in said_by(0, *shlex.split(line)[1:], "--trees", "2", "--out", "v.csv")
    put("b.csv", "x,kind\n" + "1,NA\n2,null\n" * 5)
    assert "kind    category        0          2" in said_by(
        0, "inspect", "b.csv", "--label", "kind"
    )


@pytest.mark.parametrize(
    ("rows", "about", "way"),
    [("1,a", "has 1 row: nothing can be said", "at least 3 are needed"),
     ("1,a\n2,b", "has 2 rows: nothing can be said", "at least 3 are needed"),
     ("1,a\n" * 30, "has one class only, 'a': nothing can be said", "with --label")],
)  # fmt: skip
@pytest.mark.parametrize("how", [(), ("--method", "knn"), ("--holdout", "0.3")])
def test_one_class_and_two_rows_say_nothing_and_are_refused(rows, about, way, how):
    put("few.csv", f"x,y\n{rows}\n")
    for said in (
        said_by(0, "inspect", "few.csv", "--label", "y"),
        said_by(1, "value", "few.csv", "--label", "y", *how, "--out", "v.csv"),
        said_by(1, "value", "few.csv", "--label", "y", *how, "--json"),
    ):
        assert about in said
        assert way in said
        assert not re.search("ready|stands out|wrong labels expected", said)
    assert not Path("v.csv").exists()


def test_two_rows_of_numbers_are_refused_and_three_rows_have_no_forecast():
    put("few.csv", "x,y\n1,2.5\n2,3.5\n")
    assert "has 2 rows: nothing" in said_by(1, "value", "few.csv", "--task", "regression")
    put("few.csv", "x,y\n1,a\n2,b\n3,a\n")
    assert "nothing can be said" not in said_by(0, "inspect", "few.csv")
    assert "wrong labels expected" not in said_by(0, "value", "few.csv", "--out", "v.csv")


def test_one_class_in_files_larger_than_memory_is_refused():
    for name in ("p.csv", "v.csv"):
        put(name, "x,y\n" + "1,a\n2,a\n" * 20)
    how = "--validation", "v.csv", "--memory", "1GB", "--metric", "euclidean", "--out", "o.csv"
    assert "has one class only, 'a'" in said_by(1, "value", "p.csv", "--label", "y", *how)


def test_a_few_rows_have_no_label_that_is_clearly_wrong():
    for count, other in ((3, 0), (9, 3), (10, 3)):
        lines = [f"{row},{'b' if row == other else 'a'}" for row in range(count)]
        put("few.csv", "\n".join(["x,y", *lines]))
        said = said_by(0, "value", "few.csv", "--label", "y", "--out", "v.csv", "--force")
        assert ("0 relabel" in said) == (count < 10), said
        assert "0 drop" in said
        assert "to act on it" not in said
        assert ("\nchange no row without a look: the marked rows are so few" in said) == (
            count == 10
        )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("gap", "more"), [("", ()), ("?", ("--na", "?"))])
def test_labels_suggested_for_rows_without_one_are_filled_in_by_the_line_that_is_printed(
    suffix, gap, more
):
    lines = rows_of(24)
    filled = "\n".join(["x,y", *lines]) + "\n"
    lines[4] = lines[4].replace("cat", gap)
    put("a.csv", "\n".join(["x,y", *lines]) + "\n")
    out = "--unlabeled", "skip", "--trees", "2", "--out", f"v{suffix}"
    said = said_by(0, "value", "a.csv", "--label", "y", *more, *out)
    line = said.partition("to fill in the suggested labels: ")[2].partition("\n")[0]
    assert f"--values v-unlabeled{suffix} " in line
    assert "relabeled 1 of 24" in said_by(0, *shlex.split(line)[1:])
    assert Path("filled.csv").read_text() == filled
    told = said_by(0, "value", "a.csv", "--label", "y", *more, *out[:4], "--json")
    assert json.loads(told[told.index("{") : told.rindex("}") + 1])["unlabeled"]["row"] == [4]


def test_codes_that_repeat_are_said_to_be_no_ids_yet():
    put("a.csv", "\n".join(["number,x,y", *(f"A-{row % 47},{line}" for row, line in enumerate(rows_of(48)))]))  # fmt: skip
    said = said_by(0, "inspect", "a.csv")
    assert "  number  text            0         47  codes that repeat, 1 of them\n" in said
    assert ": give each row a code of its own, and name it with --id number, or leave" in said
    said = said_by(1, "value", "a.csv", "--id", "number")
    assert "not distinct: 'A-0' in rows 0, 47: give each row its own, or leave --id out" in said


def test_an_encoding_that_is_guessed_is_not_said_for_sure():
    body = "größe,y\n1,Česko\n2,España\n"
    put("a.csv", body.replace("ñ", "n").encode("iso8859-2"))
    guess = (
        "with --encoding cp1252 if it comes from Windows in Western Europe (check its accents), or"
    )
    assert guess in said_by(0, "inspect", "a.csv")
    put("a.csv", body.encode("utf-16"))
    assert "--encoding utf-16, or save it" in said_by(0, "inspect", "a.csv")
