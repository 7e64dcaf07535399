"""`thresher value` and `appraise`: what is refused, hinted at and said next."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import waits
from pages import Page
from pyarrow import csv
from tabular import check_refused, put, thresher, with_last
from value_cases import VALUE, table_of, write_clouds, write_table

import thresher as th
from thresher.runs.appraisal import appraise_files
from thresher.runs.hints import label_hints
from thresher.runs.memory_run import value_files
from thresher.runs.results import write_results
from thresher.runs.settings import Settings
from thresher.tables.reader import read_table

BIN = Path(sys.executable).parent


PATH = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}  # where the command is


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """points.csv with one wrong label and val.csv, in the working folder."""
    monkeypatch.chdir(tmp_path)
    return write_clouds()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label", "Y"], "did you mean 'y'"),
        (["--features", "x9"], "no column 'x9'"),
        (["--radius", "big"], "--radius must be auto or a number, got 'big'"),
        (["--radius", "-1"], "radius"),
        (["--semivalue", "nash"], "--semivalue must be shapley, banzhaf"),
        (["--holdout", "0.1"], "choose one of the two"),
        (["--k", "3"], "--k needs --method knn"),
        (["--method", "tknn", "--seed", "1"], "--seed needs --method forest, leave-one-out, data-"),
        (["--radius", "0.5", "--seed", "0"], "or rows that are held out, but the method is tknn"),
        (["--method", "knn", "--seed", "0"], "but the method is knn, and there is a validation"),
        (["--method", "zero-budget", "--seed", "7"], "the method is zero-budget"),
        (["--memory", "64GB", "--out", "o.csv", "--seed", "7"], "the method is tknn"),
        (["--k", "5"], "--k needs --method knn"),  # what is usual is not passed over either
        (["--method", "forest", "--radius", "auto"], "--radius needs --method tknn"),
        (
            ["--method", "knn", "--metric", "cosine", "--folds", "2"],
            "--folds needs --method forest",
        ),
        (["--scaling", "robust"], "--scaling needs --standardize"),
        (["--kernel", "box", "--rings", "16"], "--rings needs a --kernel other than box"),
        (["--model", "nosuchmodel"], "--model needs --text, the column of texts"),
        (
            ["--unlabeled", "skip", "--owner", "x0", "--players", "owners"],
            "--players owners cannot be used with --unlabeled: drop the rows without a label",
        ),
        (
            ["--task", "regression", "--method", "knn", "--utility", "jia2019", "--empty", "9"],
            "--empty cannot be used with --utility jia2019",
        ),
        (["--error", "0.1"], "--error needs --method knn"),
        (["--method", "knn", "--error", "2"], "--error must be a number between 0 and 1"),
        (["--method", "knn", "--radius", "0.5"], "--radius needs --method tknn"),
        (["--out", "v.xlsx"], "--out must be a .parquet"),
        (["--out", "none/v.csv"], "does not exist"),
        (["--report", "r.txt"], "a report must be an .html file"),
        (["--out", "points.csv", "--force"], "this run already uses that file"),
        (["--out", "v.csv", "--report", "v.csv"], "this run already uses that file"),
        (["--validation", "vol.csv"], "did you mean val.csv"),
    ],
)
def test_what_cannot_be_done_is_refused_and_writes_nothing(data, options, words):
    before = sorted(Path.cwd().iterdir())
    done = thresher(*with_last(*VALUE, *options))
    assert done.returncode == 1, done.stderr
    assert words in done.stderr
    assert done.stdout == ""
    assert sorted(Path.cwd().iterdir()) == before


def test_usage_is_an_exit_code_of_its_own():
    assert thresher("value").returncode == 2
    assert thresher(*VALUE, "--method", "magic").returncode == 2
    assert thresher("value", "points.csv", "--holdout", "much").returncode == 2


@pytest.mark.parametrize("name", ["v.csv", "v.csv.record.json", "r.html"])
def test_files_that_are_there_are_replaced_by_force_only(data, name):
    put(name, "precious")
    options = ("--radius", 0.5, "--out", "v.csv", "--report", "r.html")
    done = thresher(*VALUE, *options)
    assert done.returncode == 1
    assert f"{name} already exists" in done.stderr
    assert Path(name).read_text() == "precious"
    assert thresher(*VALUE, *options, "--force").returncode == 0
    assert Path(name).read_text() != "precious"


def test_columns_of_other_scales_are_pointed_out(data):
    X, y, X_val, y_val = data
    for name, rows, labels in (("p.csv", X, y), ("w.csv", X_val, y_val)):
        write_table(name, rows * [1, 1, 1e6], labels)
    done = thresher("value", "p.csv", "--validation", "w.csv", "--method", "tknn", "-o", "v.csv")
    assert "columns differ in scale" in done.stderr
    assert "--standardize" in done.stderr
    done = thresher("value", "p.csv", "--validation", "w.csv", "--standardize", "--out", "w2.csv")
    assert "differ in scale" not in done.stderr


def test_labels_that_differ_in_kind_are_told():
    put("p.csv", "x,y\n1,0\n2,1\n3,0\n")
    put("w.csv", "x,y\n1.5,0\n2.5,yes\n")
    settings = {"validation": "w.csv", "metric": "euclidean", "radius": 1}
    valued = value_files(Settings("p.csv", **settings))
    assert valued.valuation.params["classes"] == ["0", "1", "yes"]
    hints = ["no validation point has the label '1'", "no point has the label 'yes'"]
    assert valued.hints() == hints
    put("w.csv", "x,y\n1.5,0.0\n2.5,1.0\n")  # so pandas writes integers with gaps
    assert value_files(Settings("p.csv", **settings)).valuation.params["classes"] == [0, 1]
    put("w.csv", "x,y\n1.5,no\n2.5,yes\n")
    check_refused(lambda: value_files(Settings("p.csv", **settings)), "no label in common", "'no'")


@pytest.mark.parametrize(
    ("labels", "words"),
    [(["cat", "Cat", "dog"], "different classes: 'cat', 'Cat'"), (["NA", "cat"], "'NA'"),
     (["cat", "cat"], ""), (["cat", "dog"], "")],
)  # fmt: skip
def test_odd_labels_are_pointed_out(labels, words):
    hints = label_hints(labels, labels)
    assert words in "".join(hints)
    assert len(hints) == (1 if words else 0)


@pytest.mark.parametrize(
    ("cell", "metric", "words"),
    [("0,0,0", "cosine", "has nothing but zeros in row 77"),
     ("1e80,1,1", "euclidean", "has numbers beyond 1e72 in row 77")],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_rows_without_a_distance_are_named_as_in_the_table(cell, metric, words, seed):
    """Whether they are held out or not."""
    lines = Path("points.csv").read_text().splitlines()
    lines[78] = f"{cell},{lines[78].split(',')[-1]}"
    put("odd.csv", "\n".join(lines) + "\n")
    settings = Settings("odd.csv", method="tknn", metric=metric, seed=seed, holdout=0.4)
    check_refused(lambda: value_files(settings), f"odd.csv {words}")


def test_of_two_that_write_one_file_the_second_is_refused(data):
    """It was not there when they began."""
    valued = value_files(Settings("points.csv", validation="val.csv", radius=0.5))
    write_results(Path("v.csv"), valued)
    before = Path("v.csv").read_bytes()
    check_refused(
        lambda: write_results(Path("v.csv"), valued),
        "was created while this file was being written",
    )
    assert Path("v.csv").read_bytes() == before
    write_results(Path("v.csv"), valued, force=True)
    valued.report("r.html")
    check_refused(lambda: valued.report("r.html"), "already exists")


def test_what_to_do_next_can_be_pasted(data):
    Path("my data").mkdir()
    lines = Path("points.csv").read_text().replace(",", ";").replace('"y"', "the label")
    put("my data/a b.csv", lines)
    put("my data/v.csv", Path("val.csv").read_text().replace(",", ";").replace('"y"', "the label"))
    done = thresher("value", "my data/a b.csv", "--validation", "my data/v.csv", "--label",
                    "the label", "--delimiter", ";", "--radius", 0.5, "--out", "o v.parquet")  # fmt: skip
    command = re.search("to act on it: (.*)", done.stderr)[1]
    assert thresher(*shlex.split(command)[1:]).returncode == 0
    assert len(read_table("clean.csv", delimiter=";")) == 120


def test_what_to_do_next_keeps_the_kind_of_a_compressed_table(data):
    put("points.csv.gz", gzip.compress(Path("points.csv").read_bytes()))
    done = thresher(
        "value", "points.csv.gz", "--validation", "val.csv", "--radius", 0.5, "--out", "v.csv"
    )
    command = re.search("to act on it: (.*)", done.stderr)[1]
    assert thresher(*shlex.split(command)[1:]).returncode == 0
    assert len(read_table("clean.csv.gz")) == 120


def test_an_interrupted_run_says_so_and_leaves_nothing(data):
    X = np.random.default_rng(0).normal(size=(40_000, 40))
    np.savez("big.npz", X=X, y=(X[:, 0] > 0).astype(int))
    command = [sys.executable, "-m", "thresher", "value", "big.npz", "--radius", "0.9",
               "--holdout", "0.4", "--out", "v.parquet"]  # fmt: skip
    before = sorted(Path.cwd().iterdir())
    with waits.started(command, stderr=subprocess.PIPE, text=True) as run:
        time.sleep(3.0)
        run.send_signal(signal.SIGINT)
        _, words = run.communicate()
    if run.returncode != 0:  # else it was faster than we are
        assert (run.returncode, "interrupted" in words) == (130, True), words
        assert sorted(Path.cwd().iterdir()) == before


def test_one_row_and_one_class():
    put("one.csv", "x,z,y\n1,2,a\n")
    put("w.csv", "x,z,y\n1,3,a\n2,1,a\n")
    near = {"validation": "w.csv", "radius": 1}
    check_refused(lambda: value_files(Settings("one.csv", **near)), "'y' has one class only, 'a'")
    put("w.csv", "x,z,y\n1,3,a\n2,1,b\n")
    assert value_files(Settings("one.csv", **near)).valuation.values.tolist() == [0.0]
    check_refused(lambda: value_files(Settings("one.csv")), "has 1 row: nothing can be said")
    by_radius = {"method": "tknn"}
    put("few.csv", "x,z,y\n1,2,a\n2,1,b\n1,1,c\n")
    check_refused(
        lambda: value_files(Settings("few.csv", **by_radius)), "a class of one row is not held out"
    )
    put("twins.csv", "x,z,y\n" + "1,2,a\n1,2,b\n" * 5)
    check_refused(lambda: value_files(Settings("twins.csv", **by_radius)), "every row has copies")
    check_refused(lambda: Settings("one.csv", holdout=1.0), "--holdout must be between 0 and 1")


# Appraising


def test_an_owner_appraises_points_by_a_price_list(data):
    X, y, X_val, y_val = data
    counts = th.NeighborCounts(X_val, list(y_val), radius=0.5).add(X, list(y))
    prices = counts.price_list()
    prices.save("prices.json")
    write_table("mine.csv", X[:7], y[:7], name=[f"n{i}" for i in range(7)])
    done = thresher("appraise", "mine.csv", "--prices", "prices.json", "--id", "name", "--out",
                    "worth.parquet", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pq.read_table("worth.parquet")
    assert table.column_names == ["row", "id", "label", "value"]
    wanted = prices.values(X[:7], list(y[:7]))
    assert table.column("value").to_pylist() == wanted.tolist()
    assert json.loads(done.stdout)["total"] == pytest.approx(wanted.sum(), abs=1e-12)
    new = thresher("appraise", "mine.csv", "--prices", "prices.json", "--ignore", "name",
                   "--newcomer")  # fmt: skip
    shown = csv.read_csv(pa.BufferReader(new.stdout.encode()))
    assert shown.column("value").to_pylist() == prices.newcomer_values(X[:7], list(y[:7])).tolist()
    told = thresher("appraise", "mine.csv", "--prices", "prices.json", "--ignore", "name", "--json")
    assert [row["value"] for row in json.loads(told.stdout)["rows"]] == wanted.tolist()


def test_labels_of_a_price_list_may_be_written_otherwise(data):
    X, _, X_val, _ = data
    y, y_val = ["0", "1"] * 60, ["0", "1"] * 30
    prices = th.NeighborCounts(X_val, y_val, radius=0.5).add(X, y).price_list()
    prices.save("prices.json")
    write_table("mine.csv", X, [int(label) for label in y])
    found = appraise_files("mine.csv", Path("prices.json"))
    assert found.values.tolist() == prices.values(X, y).tolist()


def test_a_list_that_is_none_is_refused(data):
    put("prices.json", "{}")
    done = thresher("appraise", "points.csv", "--prices", "prices.json")
    assert done.returncode == 1
    assert "does not hold a price list" in done.stderr
    th.Ledger.create("l.db", epsilon=1, delta=0)
    for name in ("points.csv", "l.db"):
        done = thresher("appraise", "points.csv", "--prices", name)
        assert done.stderr == (
            f"thresher: {name} does not hold a price list of Thresher, or is damaged: thresher "
            "release --out-prices writes one\n"
        )
        with pytest.raises(th.InputError, match=r": PriceList.save and Release.save write one$"):
            th.PriceList.load(name)


def test_a_price_list_names_the_columns_it_needs(data):
    points, validation = (
        table_of(*data[place : place + 2]).drop_columns(["y"]) for place in (0, 2)
    )
    counts = th.NeighborCounts(validation, list(data[3]), radius=0.5)
    counts.add(points, list(data[1])).price_list().save("prices.json")
    write_table("mine.csv", data[0][:, ::-1], data[1])
    renamed = csv.read_csv("mine.csv").rename_columns(["x2", "x1", "x0", "y"])
    csv.write_csv(renamed, "mine.csv")  # the same columns in another order, and one more
    found = appraise_files("mine.csv", Path("prices.json"))
    wanted = th.PriceList.load("prices.json").values(data[0], list(data[1]))
    assert found.values.tolist() == wanted.tolist()
    put("less.csv", "x0,x1,y\n1,2,cat\n")
    check_refused(lambda: appraise_files("less.csv", Path("prices.json")), "no column 'x2'")


# The command as a whole


def test_help_shows_the_way_and_shells_complete(monkeypatch):
    shown = thresher("--help").stdout
    for verb in ("value", "clean", "release", "appraise", "reproduce"):
        assert verb in shown
    assert "thresher value train.csv" in shown
    command = str(BIN / "thresher")
    for words, wanted in (("value --meth", "--method"), ("value --method t", "tknn")):
        monkeypatch.setenv("_THRESHER_COMPLETE", "complete_zsh")
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"thresher {words}")
        done = waits.run([command], check=True)
        assert wanted in done.stdout


def test_the_documents_show_what_the_command_does():
    """Every console block of docs/command.md, line by line, and what it quotes of the report."""
    text = (Path(__file__).parent.parent / "docs" / "command.md").read_text()
    source = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    code = "\n".join(line[4:] for line in source.splitlines() if line[:4] in {">>> ", "... "})
    names = {}
    exec(code, names)  # noqa: S102
    wrong = names["write_tables"]()
    rows = (
        f"{i};{i + 1},5;{31 - i % 30}.01.2024;{'' if i == 7 else 'ab'[i % 2]}" for i in range(60)
    )
    put("export.csv", "\n".join(["id;size;joined;kind", *rows]) + "\n")
    steps = [
        block.split("\n$ ") for block in re.findall(r"```console\n(.*?)\n```", text, re.DOTALL)
    ]
    for step in (step.removeprefix("$ ") for block in steps for step in block):
        command, _, wanted = step.partition("\n")
        run = waits.run(command.split(), env=PATH)
        assert run.returncode == wanted.startswith("thresher: "), command
        shown = re.escape(wanted).replace(r"\.\.\.", ".*")
        assert re.fullmatch(shown, (run.stdout + run.stderr).rstrip("\n")), command
    page = Page(Path("report.html").read_text())
    prose = " ".join(text.split())
    quoted = re.findall(r'report says "([^"]+)"', prose)
    assert quoted
    for words in quoted:
        assert words in page.said("verdict")
    headline = re.search(r'a headline \("([^"]+)"\)', prose)[1]
    assert f"<h1>{headline}</h1>" in page.text
    right, marked = re.search(
        r"In the example above, (\d+) of the (\d+) rows to relabel are wrong", prose
    ).groups()
    suggested = pq.read_table("values.parquet").column("suggestion").to_numpy() == "relabel"
    assert (suggested.sum(), (suggested & wrong).sum()) == (int(marked), int(right))


def test_a_warning_is_told_once_and_in_words(data):
    X, y, _, _ = data
    write_table("w.csv", X[:30], y[:30])
    done = thresher("value", "points.csv", "--validation", "w.csv", "--out", "v.csv",
                    "--report", "r.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: 30 of 30 validation rows are exact copies") == 1
    assert "TwinWarning" not in done.stderr


def test_one_delimiter_is_for_all_files():
    put("semi.csv", "a;b;y\n1;2;0\n2;1;1\n")
    put("val.csv", "a,b,y\n1,2,0\n2,1,1\n")
    release = ("--epsilon", 1, "--delta", 1e-6, "--ledger", "l.db", "--out-prices", "p.json")
    for command in (("value", "semi.csv"), ("release", "semi.csv", *release)):
        start = (*command, "--validation", "val.csv")
        first, second = thresher(*start), thresher(*start, "--delimiter", ";")
        assert first.stderr.startswith("thresher: semi.csv has one column"), first.stderr
        assert "use --delimiter ';'\n" in first.stderr
        assert second.stderr.startswith("thresher: val.csv has one column"), second.stderr
        assert "--delimiter is one for all files: write this one with the same" in second.stderr


def test_a_column_that_only_the_points_have_is_named_with_the_ways_out():
    put("ids.csv", "id,a,y\n1,2,0\n2,1,1\n")
    put("v.csv", "a,y\n2,0\n1,1\n")
    settings = {"file": "ids.csv", "validation": "v.csv"}
    said = check_refused(
        lambda: value_files(Settings(**settings)),
        "v.csv has no column 'id', which is a feature of ids.csv: it seems to hold ids, so name it "
        "with --id id, or leave it out with --ignore id",
    )
    assert "--features" not in said
    named = Settings(**settings, features=("id", "a"))
    check_refused(lambda: value_files(named), "v.csv has no column 'id' (--features)")


def test_one_point_is_one_point():
    put("one.csv", "a,y\n1,0\n")
    put("v.csv", "a,y\n2,0\n3,1\n")
    done = thresher("value", "one.csv", "--validation", "v.csv", "--radius", 1)
    assert "valued 1 point by 2 validation points: " in done.stderr
    said = thresher("value", "one.csv", "--validation", "v.csv", "--semivalue", "beta(0,1)").stderr
    assert "'beta(4, 1)' with two positive numbers" in said


def test_an_appraisal_names_the_column_that_a_price_list_wants():
    V = pa.table({"a": [1.0, 2.0], "b": [2.0, 1.0]})
    th.NeighborCounts(V, ["x", "y"]).price_list().save("prices.json")
    put("mine.csv", "a,y\n1,x\n")
    check_refused(
        lambda: appraise_files("mine.csv", Path("prices.json")),
        "mine.csv has no column 'b' (a feature of the price list): it has 'a', 'y'",
    )


def test_a_seed_is_taken_where_anything_is_drawn(data):
    X, y, X_val, y_val = data
    np.savez("both.npz", X=X, y=y, X_val=X_val, y_val=y_val)
    done = thresher("value", "both.npz", "--method", "tknn", "--seed", "1")
    assert done.returncode == 1
    assert "--seed needs --method forest" in done.stderr
    for words in (
        ["both.npz", "--method", "tknn", "--seed", "1", "--holdout", "0.2"],
        ["points.csv", "--method", "tknn", "--seed", "1"],
        ["points.csv", "--validation", "val.csv", "--seed", "1", "--trees", "2"],
        ["points.csv", "--validation", "val.csv", "--seed", "1", "--radius", "0.5", "--report",
         "r.html"],
    ):  # fmt: skip
        done = thresher("value", *words)
        assert done.returncode == 0, done.stderr


def test_columns_without_any_cell_are_named():
    X, y = np.arange(1.0, 41)[:, None], ["cat", "dog"] * 20
    none = pa.nulls(40, pa.float64())
    pq.write_table(table_of(X, y, gone=none, lost=pa.array([" NA "] * 40)), "gaps.parquet")
    empty = "columns 'gone', 'lost' are empty: leave them out with --ignore gone,lost"
    done = thresher("value", "gaps.parquet", "--trees", "2")
    assert f"hint: {empty}\n" in done.stderr
    done = thresher("value", "gaps.parquet", "--trees", "2", "--ignore", "gone,lost")
    assert "empty" not in done.stderr
    many = {f"g{place}": none for place in range(30)}
    pq.write_table(table_of(X, y, **many), "gaps.parquet")
    done = thresher("value", "gaps.parquet", "--method", "knn", "--fill", "zero")
    assert "'g11' and 18 more are empty\n" in done.stderr
