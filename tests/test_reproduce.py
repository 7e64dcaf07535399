"""`thresher reproduce`: tables, figures and a page, whole after every interruption."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

import thresher as th
from thresher.paper import EXPERIMENTS, reproduce
from thresher.paper.cells import Cell, Experiment, Scope, Store
from thresher.paper.consistency import target
from thresher.paper.datasets import SETS
from thresher.paper.grids import make_grids
from thresher.paper.records import make_records


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run of everything, by the command."""
    folder = tmp_path_factory.mktemp("reproduction")
    command = [sys.executable, "-m", "thresher", "reproduce", "all", "--quick", "--no-fetch", "--out", str(folder)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
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
    assert text.count("| --- |") >= 2 or name == "runtime"
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
        if row["method"] == "knn k=11":
            assert row["paper"] is None
        else:
            assert row["difference"] == pytest.approx(row["ours"] - row["paper"])
    free = [row for row in records_of(quick, "privacy") if row["method"] == "zero-budget"]
    assert {row["measure"] for row in free if row["ours"] is not None} == {
        "AUROC", "rank correlation", "relative error",
    }  # fmt: skip


def test_a_missing_set_is_said_to_be_missing(tmp_path):
    done = reproduce(
        "radius-ablation", tmp_path, data=tmp_path, fetch=False, quick=True, sets=["2dplanes", "wind"]
    )[0]  # fmt: skip
    assert set(done.missing) == {"wind"}
    assert all(record.ours is None for record in done.records if record.set == "wind")
    assert all(record.ours is not None for record in done.records if record.set == "2dplanes")
    assert (
        "Missing: wind (wind.npz is not in the folder"
        in (tmp_path / "radius-ablation.md").read_text()
    )
    assert "<strong>Missing:</strong> wind" in (tmp_path / "index.html").read_text()


def test_the_error_vanishes_under_the_theorems_condition_alone(quick):
    error = {
        (row["task"], row["set"], row["step"]): row["ours"]
        for row in records_of(quick, "consistency")
        if row["measure"] == "error"
    }
    for task in ("regressor", "classifier"):
        assert error[task, "radius N^(-1/3)", 1e4] < 0.25 * error[task, "radius N^(-1/3)", 1e2]
        assert error[task, "radius N^(-1/2)", 1e4] > 0.8 * error[task, "radius N^(-1/2)", 1e2]
    assert error["regressor", "radius fixed", 1e4] > 0.8 * error["regressor", "radius fixed", 1e2]
    bound = {
        (row["set"], row["step"]): row["ours"]
        for row in records_of(quick, "consistency")
        if row["measure"] == "bound"
    }
    for (rule, size), most in bound.items():
        assert error["regressor", rule, size] <= most


def test_the_target_is_as_steep_as_the_bound_says(rng):
    x, direction = rng.random((20_000, 2)), rng.normal(size=(20_000, 2))
    direction *= 1e-6 / np.linalg.norm(direction, axis=1, keepdims=True)
    slopes = np.abs(target(x + direction) - target(x)) / 1e-6
    assert 3.1 < slopes.max() < np.pi + 1e-3


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    def start():
        command = [sys.executable, "-m", "thresher", "reproduce", "k-ablation", "--no-fetch", "--sets", "2dplanes",
                   "--out", str(tmp_path)]  # fmt: skip
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603

    def kept():
        if not (tmp_path / "cells.db").exists():
            return {}
        with sqlite3.connect(tmp_path / "cells.db", timeout=60) as file:
            try:
                return dict(file.execute("SELECT key, seconds FROM cells").fetchall())
            except sqlite3.OperationalError:
                return {}

    process = start()
    while len(kept()) < 5:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    first = kept()
    assert not (tmp_path / "k-ablation.md").exists()
    both = start(), start()  # and two at once go on together
    for process in both:
        _, words = process.communicate()
        assert process.returncode == 0, words
    last = kept()
    runs = 1 if "THRESHER_DATA" in os.environ else 5
    assert len(last) == 2 * 15 * (runs + 5)
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


def made(figure, outcomes, *, fixed=False):
    cell = Cell("mislabel", "fraud", "clean", "tknn", fixed=fixed)
    experiment = Experiment(
        "x", "X", "", lambda _: [], lambda *_: {}, printed=lambda *_: figure
    )  # fmt: skip
    return experiment, make_records(experiment, [(cell, {"AUROC": entry}) for entry in outcomes])


def test_a_difference_is_judged_by_its_standard_error():
    _, [record] = made((0.9, None), [0.92, 0.94])
    spread = np.std([0.92, 0.94], ddof=1)
    assert record.ours == pytest.approx(0.93)
    assert record.deviation == pytest.approx(spread)
    assert record.standard_error == pytest.approx(np.sqrt(spread**2 / 2 + spread**2))
    assert not record.beyond
    _, [told] = made((0.9, 0.001), [0.92, 0.93])
    assert told.standard_error == pytest.approx(np.sqrt(0.0001 / 4 + 0.000001 / 5))
    assert told.beyond


def test_a_replay_may_differ_by_rounding_alone_and_one_random_run_says_nothing():
    assert not made((0.914, None), [0.91449], fixed=True)[1][0].beyond
    assert made((0.914, None), [0.91451], fixed=True)[1][0].beyond
    single = made((0.914, None), [0.5])[1][0]
    assert single.standard_error is None
    assert not single.beyond


def test_tables_show_ours_the_papers_and_the_difference():
    experiment, records = made((0.914, None), [0.917], fixed=True)
    [grid] = make_grids(experiment, records)
    assert grid.markdown().splitlines()[-1] == "| fraud | 0.917 (0.914, +0.003*) |"
    assert grid.title == "mislabel: AUROC, protocol clean, 1 run"


def test_the_scope_covers_what_the_paper_covers():
    cells = {name: experiment.cells(Scope()) for name, experiment in EXPERIMENTS.items()}
    for name in ("mislabel", "noisy"):
        found = {(cell.set, cell.method) for cell in cells[name]}
        assert {set_ for set_, _ in found} == set(SETS)
        retrained = {set_ for set_, method in found if method == "data-banzhaf"}
        assert len(retrained) == 9
        assert {dict(cell.options).get("subsets") for cell in cells[name]} == {None, 10_000}
    steps = {(cell.task, cell.step) for cell in cells["radius-ablation"]}
    assert len(steps) == 2 * 9
    assert len({(cell.task, cell.step) for cell in cells["k-ablation"]}) == 2 * 15
    assert {cell.step for cell in cells["privacy"]} == {None, 0.1, 0.5, 1.0}
    assert {cell.task for cell in cells["membership"]} >= {
        "knn",
        "tknn",
        "dp-tknn-0.5",
        "dp-tknn-1",
    }
    assert {cell.set for cell in cells["runtime"]} == {"d=10", "d=100"}
    assert {cell.method for cell in cells["neighbor-effect"]} == {"soft-label", "jia2019"}
    assert {cell.protocol for cell in cells["membership"]} == {"paper", "clean"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "name must be"),
        ([], "name must be all or some of runtime"),
        (["runtime", "--runs", "0"], "runs must be an integer >= 1, got 0"),
        (["mislabel", "--subsets", "100"], "subsets must be an integer >= 4000, got 100"),
        (["mislabel", "--sets", "iris"], "sets must be"),
        (["mislabel", "--protocol", "mine"], "protocols must be"),
        (["mislabel", "--data", "nowhere"], "nowhere does not exist"),
        (["mislabel", "--out", "file"], "out file cannot be made a folder"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, words, tmp_path, run_command):
    (tmp_path / "file").touch()
    done = run_command("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr


def test_the_list_names_everything(run_command):
    done = run_command("reproduce", "--list")
    assert done.returncode == 0
    for name in EXPERIMENTS:
        assert f'"{name}"' in done.stdout


def test_a_file_of_something_else_is_not_taken_for_outcomes(tmp_path):
    (tmp_path / "cells.db").write_text("my thesis" * 1000)
    with pytest.raises(th.InputError, match="cannot be used for outcomes"):
        Store(tmp_path / "cells.db")
    assert (tmp_path / "cells.db").read_text() == "my thesis" * 1000
