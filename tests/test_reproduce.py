"""`thresher reproduce`: tables, figures and a page, whole after every interruption."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
import waits
from tabular import thresher

import thresher as th
from thresher.paper import (
    EXPERIMENTS,
    reproduce,
)
from thresher.paper.cells import Store


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run of everything, by the command."""
    folder = tmp_path_factory.mktemp("reproduction")
    few = ("--no-fetch", "--sets", "2dplanes")
    done = thresher("reproduce", "all", "--quick", *few, "--out", folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder / 'index.html'}\n"
    return folder


def records_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_gets_tables_and_figures(name, quick):
    text = (quick / f"{name}.md").read_text()
    assert text.startswith(f"# {EXPERIMENTS[name].title}\n")
    assert "A QUICK RUN" in text
    assert len(re.findall(r"^\| --- \|", text, re.MULTILINE)) >= 2
    drawn = re.findall(r"!\[.*?\]\((.*?)\.svg\)", text)
    assert drawn
    for figure in drawn:
        assert ElementTree.parse(quick / f"{figure}.svg").getroot().tag.endswith("svg")  # noqa: S314
        assert (quick / f"{figure}.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_shows_everything_and_needs_nothing_else(quick):
    page = (quick / "index.html").read_text()
    for name, experiment in EXPERIMENTS.items():
        assert f'<section id="{name}">' in page
        assert experiment.title in page
    assert page.count("<figure>") == len(list(quick.glob("*.svg")))
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_the_papers_figures_stand_beside_ours(quick):
    for row in records_of(quick, "mislabel"):
        if row["ours"] is None:
            continue
        assert row["difference"] == pytest.approx(row["ours"] - row["paper"])
    free = [row for row in records_of(quick, "privacy") if row["method"] == "zero-budget"]
    assert {row["measure"] for row in free if row["ours"] is not None} == {
        "AUROC", "rank correlation", "relative error", "relative error, rescaled",
    }  # fmt: skip


def test_a_missing_set_is_said_to_be_missing(tmp_path):
    done = reproduce(
        "radius-ablation", tmp_path, data=tmp_path, fetch=False, quick=True, sets=["2dplanes", "wind"]
    )[0]  # fmt: skip
    assert set(done.missing) == {"wind"}
    assert all(record.ours is None for record in done.records if record.set == "wind")
    assert all(record.ours is not None for record in done.records if record.set == "2dplanes")
    text = (tmp_path / "radius-ablation.md").read_text()
    assert "Missing: wind (wind.npz is not in a folder" in text
    assert text.count("| wind | missing |") == 4  # in the table of each task and protocol
    assert "<strong>Missing:</strong> wind" in (tmp_path / "index.html").read_text()
    alone = {"data": tmp_path, "fetch": False, "quick": True, "sets": ["wind"]}
    assert reproduce("radius-ablation", tmp_path, **alone)[0].missing
    assert "| wind | missing |" in (tmp_path / "radius-ablation.md").read_text()


def test_the_error_vanishes_under_the_theorems_condition_alone(quick):
    error = {
        (row["task"], row["set"], row["step"]): row["ours"]
        for row in records_of(quick, "consistency")
        if row["measure"] == "error"
    }
    for task in ("regressor", "classifier"):
        assert error[task, "radius N^(-1/3)", 1e4] < 0.25 * error[task, "radius N^(-1/3)", 1e2]
        assert error[task, "radius N^(-1/2)", 1e4] > 0.8 * error[task, "radius N^(-1/2)", 1e2]
        assert error[task, "radius fixed", 1e4] > 0.8 * error[task, "radius fixed", 1e2]
    bound = {
        (row["set"], row["step"]): row["ours"]
        for row in records_of(quick, "consistency")
        if row["measure"] == "bound"
    }
    for (rule, size), most in bound.items():
        assert error["regressor", rule, size] <= most


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    def start():
        command = [sys.executable, "-m", "thresher", "reproduce", "k-ablation", "--no-fetch", "--sets", "2dplanes",
                   "--protocol", "clean", "--runs", "2", "--out", str(tmp_path)]  # fmt: skip
        return waits.started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def kept():
        if not (tmp_path / "cells.db").exists():
            return {}
        with sqlite3.connect(tmp_path / "cells.db", timeout=60) as file:
            try:
                return dict(file.execute("SELECT key, seconds FROM cells").fetchall())
            except sqlite3.OperationalError:
                return {}

    with start() as process:
        waits.until(lambda: len(kept()) >= 5 or process.poll() is not None, "5 cells")
        assert process.poll() is None, process.stderr.read()
    first = kept()
    assert not (tmp_path / "k-ablation.md").exists()
    with start() as one, start() as two:  # and two at once go on together
        for process in (one, two):
            _, words = process.communicate()
            assert process.returncode == 0, words
    last = kept()
    assert len(last) == 2 * 15 * 2
    assert first.items() <= last.items()
    assert not list(tmp_path.glob(".thresher-*"))


def test_nothing_is_computed_twice_and_settings_are_not_mixed_up(tmp_path):
    settings = {
        "data": None,
        "fetch": False,
        "quick": True,
        "sets": ["2dplanes"],
        "protocols": ["clean"],
    }
    one = reproduce("radius-ablation", tmp_path, **settings)[0]
    store = sqlite3.connect(tmp_path / "cells.db")
    count = store.execute("SELECT count(*) FROM cells").fetchone()[0]
    store.execute("UPDATE cells SET outcome = replace(outcome, '0.', '0.0')")
    store.commit()
    again = reproduce("radius-ablation", tmp_path, **settings)[0]
    assert [record.ours for record in again.records] != [record.ours for record in one.records]
    more = reproduce("radius-ablation", tmp_path, **settings, runs=2)[0]
    assert store.execute("SELECT count(*) FROM cells").fetchone()[0] == 2 * count
    assert {record.runs for record in more.records} == {2}
    store.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "names must be"),
        ([], "names must be all, or one or more of runtime"),
        (["runtime", "--runs", "0"], "--runs must be an integer >= 1, got 0"),
        (["mislabel", "--subsets", "100"], "--subsets must be an integer >= 4000, got 100"),
        (["mislabel", "--sets", "iris"], "--sets must be"),
        (["mislabel", "--protocol", "mine"], "--protocol must be"),
        (["mislabel", "--data", "nowhere"], "nowhere does not exist"),
        (["mislabel", "--out", "file"], "cannot create the folder file"),
        (["all", "bogus"], "names must be"),
        (
            ["radius-ablation", "--sets", "mnist, dbpedia"],
            "radius-ablation does not use mnist, dbpedia",
        ),
        (["consistency", "--sets", "phoneme"], "sets was given, but no chosen experiment uses"),
        (["consistency", "runtime", "--protocol", "clean"], "--protocol was given, but no chosen"),
        (["runtime", "k-ablation", "--subsets", "9000"], "subsets was given, but no chosen exp"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, words, tmp_path):
    (tmp_path / "file").touch()
    done = thresher("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": "mislabel", "sets": []}, "sets is empty: name one or more"),
        ({"names": "mislabel", "protocols": ()}, "protocols is empty: name one or more"),
        ({"sets": ["phoneme"]}, "sets was given, but no chosen experiment uses data sets"),
        ({"protocols": ["clean"]}, "protocols was given, but no chosen experiment uses"),
        ({"subsets": 9000}, "subsets was given, but no chosen experiment trains"),
        (
            {"names": ["k-ablation"], "subsets": 9000},
            "subsets was given, but no chosen experiment trains",
        ),
    ],
)
def test_what_an_experiment_does_not_use_is_refused(arguments, words, tmp_path):
    with pytest.raises(th.InputError, match=words):
        reproduce(**{"names": "consistency", "out": tmp_path, "fetch": False} | arguments)


def test_the_list_names_everything():
    done = thresher("reproduce", "--list")
    assert done.returncode == 0
    for name in EXPERIMENTS:
        assert f'"{name}"' in done.stdout


def test_a_file_of_something_else_is_not_taken_for_outcomes(tmp_path):
    (tmp_path / "cells.db").write_text("my thesis" * 1000)
    with pytest.raises(th.InputError, match="is another kind of file, or damaged: move it away"):
        Store(tmp_path / "cells.db")
    assert (tmp_path / "cells.db").read_text() == "my thesis" * 1000
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE cells (key TEXT)")
    other.close()
    with pytest.raises(th.InputError, match="is another kind of file"):
        Store(tmp_path / "other.db")


def test_outcomes_that_version_0_1_kept_are_used(tmp_path):
    old = sqlite3.connect(tmp_path / "cells.db", isolation_level=None)
    old.execute(
        "CREATE TABLE IF NOT EXISTS cells (key TEXT PRIMARY KEY, outcome TEXT NOT NULL,"
        " seconds REAL NOT NULL, made TEXT NOT NULL)"
    )
    old.execute("INSERT INTO cells VALUES ('a', '{\"AUROC\": 0.5}', 1.5, 'here')")
    old.close()
    for _ in range(2):
        with Store(tmp_path / "cells.db") as store:
            assert store.get("a") == ({"AUROC": 0.5}, 1.5, "here")
            assert store.get("b") is None


def test_damaged_results_of_others_do_not_cost_the_page(quick, tmp_path):
    shutil.copytree(quick, tmp_path / "copy")
    (tmp_path / "copy" / "mislabel.parquet").write_bytes(b"junk")
    (tmp_path / "copy" / "noisy.svg").unlink()
    reproduce("consistency", tmp_path / "copy", fetch=False, quick=True)
    page = (tmp_path / "copy" / "index.html").read_text()
    assert page.count("<strong>Not shown</strong>") == 2
    assert '<section id="k-ablation">' in page
    assert "The choice of k (quick)" in page
