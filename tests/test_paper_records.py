"""What a reproduction says of a figure: ours, the paper's, and how far apart."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.paper.cells import Cell, Experiment
from thresher.paper.figures import draw_figures
from thresher.paper.pages import make_grids
from thresher.paper.records import make_records


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
