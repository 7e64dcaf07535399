"""Figures by matplotlib: what is drawn, where, and what is refused."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from pages import blobs

import thresher as th
from thresher.errors import ExtraError, InputError
from thresher.plots import plot_map, plot_owners, plot_radius, plot_removal, plot_values
from thresher.report import gather

DATA = blobs(240, 60)[:4]
OWNERS = [f"owner {i % 3}" for i in range(240)]
VALUATION = th.tknn_shapley(*DATA, radius=1.8, metric="euclidean", owners=OWNERS)
SUGGESTION = th.suggest_radius(*DATA[2:], metric="euclidean")


@pytest.fixture(scope="module")
def evidence():
    return gather(VALUATION, *DATA)


def heights(ax):
    return sum(patch.get_height() for patch in ax.patches)


def test_every_plot_draws_on_the_axis_it_is_given(evidence, tmp_path):
    figure = Figure(figsize=(12, 8))
    axes = figure.subplots(2, 3).ravel()
    drawn = [
        plot_values(VALUATION, DATA[1], ax=axes[0]),
        plot_map(evidence, ax=axes[1]),
        plot_removal(evidence, ax=axes[2]),
        plot_radius(SUGGESTION, 1.8, ax=axes[3]),
        plot_owners(VALUATION, ax=axes[4]),
        plot_map(VALUATION, DATA[0], ax=axes[5]),
    ]
    assert all(one is other for one, other in zip(drawn, axes))
    figure.savefig(tmp_path / "all.png")
    assert (tmp_path / "all.png").stat().st_size > 10_000


def test_bars_hold_every_value():
    assert heights(plot_values(VALUATION)) == 240
    lines = plot_values(VALUATION, DATA[1])
    names = [text.get_text() for text in lines.get_legend().get_texts()]
    assert names == [f"{x} ({(DATA[1] == x).sum()})" for x in ("ant", "bee", "cat")]
    negative = (VALUATION.values < 0).mean()
    assert lines.get_title() == f"{negative:.0%} negative"


def test_of_many_classes_the_largest_are_drawn():
    labels = np.minimum(np.arange(240), 200 + np.arange(240) % 9)
    ax = plot_values(VALUATION, labels)
    assert len(ax.get_legend().get_texts()) == 6


def test_the_map_shows_all_points_by_sign(evidence):
    for ax in (plot_map(evidence), plot_map(VALUATION, DATA[0])):
        drawn = {part.get_label(): len(part.get_offsets()) for part in ax.collections}
        assert drawn["helps"] == (VALUATION.values >= 0).sum()
        assert drawn["hurts"] == (VALUATION.values < 0).sum()
    assert plot_map(evidence).collections[2].get_label() == "validation"


def test_the_map_of_a_valuation_is_the_map_of_its_evidence(evidence):
    ours, theirs = (
        np.concatenate([part.get_offsets() for part in plot_map(*given).collections[:2]])
        for given in ((evidence,), (VALUATION, DATA[0]))
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_one_feature_is_drawn_against_the_value():
    data = blobs(50, 20, width=1)[:4]
    valuation = th.knn_shapley(*data, metric="euclidean")
    ax = plot_map(valuation, data[0])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("the only feature", "value")
    heights = np.concatenate([part.get_offsets()[:, 1] for part in ax.collections])
    np.testing.assert_allclose(np.sort(heights), np.sort(valuation.values))


@pytest.mark.parametrize("model", ["threshold classifier", "logistic regression", None])
def test_removal_curves_are_those_of_the_evidence(evidence, model):
    ax = plot_removal(evidence, model=model)
    wanted = model or "logistic regression"
    assert ax.get_title() == wanted
    for line, order in zip(ax.get_lines(), ("lowest", "highest", "random")):
        curve = evidence.removal.curves[wanted, order]
        assert tuple(line.get_ydata()) == curve
        assert tuple(line.get_xdata()) == evidence.removal.fractions


def test_the_radius_curve_marks_both_radii():
    ax = plot_radius(SUGGESTION, 1.8)
    assert ax.get_lines()[0].get_ydata().tolist() == SUGGESTION.accuracy.tolist()
    assert ax.get_lines()[2].get_ydata().tolist() == SUGGESTION.detection.tolist()
    assert [line.get_xdata()[0] for line in ax.get_lines()[3:]] == [float(SUGGESTION), 1.8]
    assert len(plot_radius(SUGGESTION).get_lines()) == 4


def test_owners_are_in_order_of_value():
    ax = plot_owners(VALUATION)
    worth = sorted(VALUATION.by_owner().items(), key=lambda entry: -entry[1])
    assert [text.get_text() for text in ax.get_yticklabels()] == [owner for owner, _ in worth]
    assert [bar.get_width() for bar in ax.patches] == [value for _, value in worth]
    values = np.concatenate([np.arange(60.0), [-1.0]])
    ax = plot_owners(th.Valuation(values, "example", {}, 1.0, 0.0, tuple(range(61))))
    assert len(ax.patches) == 40
    assert ax.get_title() == "40 of 61 owners"
    assert to_hex(ax.patches[-1].get_facecolor()) == "#d55e00"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_map(gather(VALUATION)), "takes evidence that has a map, or a valuation and its X"),
        (lambda: plot_map(VALUATION), "takes evidence that has a map, or a valuation and its X"),
        (lambda: plot_map(VALUATION, DATA[0][:5]), "X has 5 rows but the valuation has 240 points"),
        (lambda: plot_removal(gather(VALUATION)), "there are no removal curves: the report was made without"),
        (lambda: plot_radius(0.5), "suggestion must come from suggest_radius, got 0.5"),
        (lambda: plot_values(VALUATION, ["a"]), "y has 1 labels but there are 240 rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()


def test_an_unknown_model_is_refused(evidence):
    with pytest.raises(InputError, match="model must be one of threshold classifier, logistic"):
        plot_removal(evidence, model="forest")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ExtraError, match=re.escape("a plot needs matplotlib: install the extra 'plot' ")
    ):
        plot_values(VALUATION)
