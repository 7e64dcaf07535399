"""`thresher reproduce`: tables, figures and a page, whole after every interruption."""

from __future__ import annotations

import ast
import dataclasses
import functools
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
import waits
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.attack import DPTKNN, KNN, TKNN
from thresher.paper import (
    EXPERIMENTS,
    dependencies,
    detection,
    leaks,
    reproduce,
    runtime,
    tradeoff,
)
from thresher.paper.cells import Cell, Experiment, Scope, Store
from thresher.paper.consistency import target
from thresher.paper.datasets import SETS, DataSet, generate_2dplanes
from thresher.paper.draws import draw_problem, seed_of
from thresher.paper.figures import draw_figures
from thresher.paper.pages import make_grids
from thresher.paper.records import make_records


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run of everything, by the command."""
    folder = tmp_path_factory.mktemp("reproduction")
    command = [sys.executable, "-m", "thresher", "reproduce", "all", "--quick", "--no-fetch", "--out", str(folder)]  # fmt: skip
    done = waits.run(command, limit=540)
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


def test_the_target_is_as_steep_as_the_bound_says(rng):
    x, direction = rng.random((20_000, 2)), rng.normal(size=(20_000, 2))
    direction *= 1e-6 / np.linalg.norm(direction, axis=1, keepdims=True)
    slopes = np.abs(target(x + direction) - target(x)) / 1e-6
    assert 3.1 < slopes.max() < np.pi + 1e-3


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    def start():
        command = [sys.executable, "-m", "thresher", "reproduce", "k-ablation", "--no-fetch", "--sets", "2dplanes",
                   "--out", str(tmp_path)]  # fmt: skip
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


def made(figure, outcomes, **about):
    cell = Cell("mislabel", about.pop("set", "fraud"), "clean", "tknn", **about)
    experiment = Experiment(
        "x", "X", "", "", lambda _: [], lambda *_: {}, printed=lambda *_: figure
    )  # fmt: skip
    return experiment, make_records(experiment, [(cell, {"AUROC": entry}) for entry in outcomes])


def test_a_difference_is_judged_by_its_standard_error():
    _, [record] = made((0.9, None), [0.92, 0.94, 0.93])
    spread = np.std([0.92, 0.94, 0.93], ddof=1)
    assert record.ours == pytest.approx(0.93)
    assert record.deviation == pytest.approx(spread)
    assert record.standard_error == pytest.approx(np.sqrt(spread**2 / 3 + spread**2))
    assert record.beyond
    assert not made((0.91, None), [0.92, 0.94, 0.93])[1][0].beyond
    _, [other_rows] = made(
        (0.9, 0.001), [0.92, 0.94, 0.93]
    )  # the paper's noise says nothing of its rows
    assert other_rows.standard_error == record.standard_error
    _, [noise] = made((0.9, 0.001), [0.92, 0.93, 0.925], replayed=True)
    assert noise.standard_error == pytest.approx(np.sqrt(0.000025 / 3 + 0.000001 / 5))
    assert noise.beyond


def test_a_replay_may_differ_by_rounding_alone_and_one_random_run_says_nothing():
    assert not made((0.914, None), [0.91449], fixed=True)[1][0].beyond
    assert made((0.914, None), [0.91451], fixed=True)[1][0].beyond
    single = made((0.914, None), [0.5])[1][0]
    assert single.standard_error is single.deviation is None
    assert not single.beyond
    assert made((0.914, None), [0.5, 0.51])[1][0].standard_error is None  # nor do two
    in_kind = made((0.914, None), [0.5, 0.51, 0.5], set="agnews")[1][0]
    assert not in_kind.beyond
    assert "in kind" in in_kind.note


def test_tables_show_ours_the_papers_and_the_difference():
    experiment, records = made((0.914, None), [0.917], fixed=True)
    [grid] = make_grids(experiment, records)
    assert grid.markdown().splitlines()[-1] == "| fraud | 0.917 (0.914, +0.003*) |"
    assert grid.title == "mislabel: AUROC, 1 run, protocol clean"
    experiment, records = made((0.914, None), [0.5])
    assert make_grids(experiment, records)[0].rows == (("fraud", "0.500 (0.914, -0.414?)"),)


def test_many_columns_are_stacked_line_by_line():
    cells = [Cell("noisy", "fraud", "clean", "knn", float(k)) for k in range(1, 9)]
    experiment = Experiment(
        "x", "X", "", "", lambda _: [], lambda *_: {}, "k", "step", lambda cell, _: (cell.step / 10, None)
    )  # fmt: skip
    done = [(cell, {"AUROC": 0.5 + draw / 10}) for cell in cells for draw in (0, 1, 2)]
    [grid] = make_grids(experiment, make_records(experiment, done))
    assert grid.header[:4] == ("set", "", "k 1", "2")
    assert [row[:3] for row in grid.rows] == [
        ("fraud", "ours", "0.600"), ("", "±", "0.100"), ("", "paper", "0.100"), ("", "difference", "+0.500*"),
    ]  # fmt: skip
    assert grid.rows[2][2:] == (
        "0.100",
        "0.200",
        "0.300",
        "0.400",
        "0.500",
        "0.600",
        "0.700",
        "0.800",
    )


def test_curves_show_ours_and_the_printed_ones():
    cells = [Cell("noisy", "fraud", "paper", "knn", float(k)) for k in (1, 2, 3)]
    experiment = Experiment(
        "x", "X", "", "", lambda _: [], lambda *_: {}, "k", "step", lambda cell, _: (cell.step / 10, None)
    )  # fmt: skip
    records = make_records(experiment, [(cell, {"AUROC": cell.step / 5}) for cell in cells])
    [figure] = draw_figures(experiment, records).values()
    lines = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].lines}
    assert lines["AUROC, as printed"] == [0.1, 0.2, 0.3]
    assert [0.2, 0.4, 0.6] in lines.values()
    assert figure.axes[0].get_ylabel() == "AUROC"


def test_the_key_of_a_cell_knows_its_rows_and_its_settings():
    cell = Cell("noisy", "fraud", "paper", "knn")
    key = detection.NOISY.key
    keys = {
        key(cell, "a"),
        key(cell, "b"),
        dataclasses.replace(detection.NOISY, name="x").key(cell, "a"),
    }
    keys |= {key(dataclasses.replace(cell, **{name: entry}), "a") for name, entry in
             {"draw": 1, "step": 6.0, "set": "wind", "options": (("subsets", 3),), "fixed": True}.items()}  # fmt: skip
    assert len(keys) == 8


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        ("kernels.logistic", {"data-shapley", "leave-one-out", "data-banzhaf"}),
        ("retrain.plans", {"data-shapley", "leave-one-out", "data-banzhaf"}),
        ("tknn", {"tknn"}),
        ("knn", {"knn", "knn k=11"}),
        ("paper.draws", set(detection.FUNCTIONS)),
        ("paper.pages", set()),
        ("findings", set()),
    ],
)
def test_the_key_of_a_cell_changes_with_the_code_that_makes_it_and_no_other(
    module, changed, monkeypatch
):
    def keys():
        dependencies.module_code.cache_clear()
        return {
            m: detection.NOISY.key(Cell("noisy", "fraud", "paper", m), "")
            for m in detection.FUNCTIONS
        }

    before, source = keys(), dependencies._source

    def edited(name):
        return source(name) + ("\nEDITED = True\n" if name == f"thresher.{module}" else "")

    monkeypatch.setattr(dependencies, "_source", edited)
    after = keys()
    monkeypatch.undo()
    assert {m for m in before if before[m] != after[m]} == changed
    assert keys() == before


@pytest.mark.parametrize(
    ("experiment", "module", "old", "new", "same"),
    [
        ("mislabel", "detection", "roc_auc_score(problem.bad, -values)", "0.5", False),
        ("mislabel", "detection", '"k": 11}', '"k": 12}', False),
        ("privacy", "detection", "roc_auc_score(problem.bad, -values)", "0.5", False),
        ("privacy", "tradeoff", "if power else 0.0", "if power else 1.0", False),
        ("privacy", "tradeoff", "RATE = 0.01", "RATE = 0.02", False),
        ("privacy", "tradeoff", '"tables 2 and 8"', '"tables"', True),
        ("mislabel", "detection", '"tables 3 and 9"', '"tables"', True),
        ("mislabel", "printed", "16 - k", "15 - k", True),
    ],
)
def test_the_key_of_a_cell_changes_with_what_its_experiment_computes_not_with_what_it_says(
    experiment, module, old, new, same, monkeypatch
):
    cell = Cell("mislabel", "fraud", "paper", "dp-tknn" if experiment == "privacy" else "tknn")
    before, source = EXPERIMENTS[experiment].key(cell, ""), dependencies._source

    def edited(name):
        text = source(name)
        if name == f"thresher.paper.{module}":
            assert old in text
            text = text.replace(old, new)
        return text

    monkeypatch.setattr(dependencies, "_source", edited)
    assert (EXPERIMENTS[experiment].key(cell, "") == before) is same


def test_comments_docstrings_and_imports_are_not_code():
    def plain(text):
        return dependencies._plain_code(ast.parse(text))

    code = "def f(x):\n    return x + 1\n"
    same = 'from a import b\n"""Words."""\nimport c\ndef f(x):\n    """More."""\n    from d import e\n    # why\n    return x + 1\n'
    assert plain(same.replace("from a import b\n", "")) == plain(code) == plain('"""W."""\n' + code)
    assert plain(code.replace("1", "2")) != plain(code)


@pytest.fixture(scope="module")
def planes():
    return generate_2dplanes(4000, seed=3)


def test_every_method_of_detection_is_what_its_name_says(planes):
    problem = draw_problem(planes, "mislabel", "clean", 0)
    data, low = problem.data, {"evaluations": 4000, "accelerate": True}
    wanted = {
        "tknn": th.tknn_shapley(*data, radius=0.5), "knn": th.knn_shapley(*data, k=5),
        "knn k=11": th.knn_shapley(*data, k=11), "leave-one-out": th.leave_one_out(*data, accelerate=True),
        "data-shapley": th.data_shapley(*data, **low, seed=0),
        "data-banzhaf": th.data_banzhaf(*data, **low, seed=0),
    }  # fmt: skip
    for method, valuation in wanted.items():
        cell = Cell("mislabel", "2dplanes", "clean", method, options=(("subsets", 4000),))
        found = detection.run(cell, planes)
        assert found["AUROC"] == roc_auc_score(problem.bad, -valuation.values)


@pytest.mark.parametrize("method", tradeoff.PRIVATE)
def test_every_private_method_is_what_its_name_says(method, planes):
    cell = Cell("noisy", "2dplanes", "clean", method, 0.5, 1)
    problem = draw_problem(planes, "noisy", "clean", 1)
    seed = seed_of(method, "2dplanes", "noisy", "clean", 0.5, 1)
    budget = {"epsilon": 0.5, "delta": 1e-4, "seed": seed}
    release = {
        "dp-tknn": lambda: th.dp_tknn_shapley(*problem.data, **budget, mechanism="paper"),
        "dp-knn": lambda: th.dp_knn_shapley(*problem.data, **budget),
        "dp-knn-sampled": lambda: th.dp_knn_shapley(*problem.data, **budget, subsample=0.01),
        "table": lambda: th.dp_tknn_shapley(*problem.data, **budget, mechanism="table"),
    }[method]()
    found = tradeoff.run(cell, planes)
    assert found["AUROC"] == roc_auc_score(problem.bad, -release.values)
    again = tradeoff.run(dataclasses.replace(cell, draw=2), planes)
    assert again["AUROC"] != found["AUROC"]


def test_agreement_by_hand():
    found = tradeoff.agreement(np.array([3.0, 1.0, 2.0, 0.0]), np.array([1.0, 2.0, 0.0, 0.0]))
    assert found["relative error"] == pytest.approx(np.sqrt((4 + 1 + 4) / 5))
    assert found["relative error, rescaled"] == pytest.approx(np.sqrt(1 - 25 / (14 * 5)))
    assert tradeoff.agreement(np.zeros(3), np.arange(3.0))["rank correlation"] == 0


def test_every_target_of_an_attack_is_what_its_name_says():
    told = {
        "knn": KNN(7), "tknn": TKNN(0.3), "dp-tknn-0.5": DPTKNN(0.5, 1e-4, "paper", 0.3),
        "dp-tknn-1": DPTKNN(1.0, 1e-4, "paper", 0.3), "table-0.5": DPTKNN(0.5, 1e-4, "table", 0.3),
        "table-1": DPTKNN(1.0, 1e-4, "table", 0.3),
    }  # fmt: skip
    for method, wanted in told.items():
        cell = Cell(method, "fraud", "paper", method, 7.0 if method == "knn" else 0.3)
        assert leaks._target(cell) == wanted


def test_the_strong_attack_is_not_the_papers_and_few_rows_leave_fewer_shadow_points():
    few = generate_2dplanes(4000, seed=3)
    keep = np.flatnonzero(few.y == 0)[:450].tolist() + np.flatnonzero(few.y == 1)[:450].tolist()
    few = DataSet("fraud", few.X[keep], few.y[keep], "made up")
    found = leaks.attack(Cell("knn", "fraud", "clean", "knn", 5.0), few)
    assert found["strong AUROC"] > 0.95 > 0.75 > found["AUROC"]
    assert found["points"] < 700


def test_the_effect_of_a_neighbor_is_that_of_taking_it_out(planes):
    found = leaks.compare(Cell("soft-label", "2dplanes", "clean", "soft-label", 5.0), planes)
    problem = draw_problem(planes, "intact", "clean", 0)
    point = int(np.random.default_rng(seed_of("point", "2dplanes", "clean")).integers(2000))
    assert found["with neighbor"] == th.knn_shapley(*problem.data, k=5).values[point]
    assert found["without"] != found["with neighbor"]


def test_seconds_belong_to_their_method(monkeypatch):
    ticks = {"tknn_shapley": 1.0, "knn_shapley": 4.0}

    def tick(call):
        method = call.func.func if isinstance(call.func, functools.partial) else call.func
        return ticks[method.__name__]

    monkeypatch.setattr(runtime, "_seconds", tick)
    found = runtime.run(Cell("runtime", "d=10", "made up", "seconds", 100.0), None)
    assert found == {"tknn": 1.0, "tknn, half near": 1.0, "knn": 4.0, "tknn / knn": 0.25}


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
        (["all", "bogus"], "name must be"),
        (
            ["radius-ablation", "--sets", "mnist, dbpedia"],
            "radius-ablation is not about mnist, dbpedia",
        ),
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
