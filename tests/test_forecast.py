"""How many labels are wrong, and which points are called so."""

from __future__ import annotations

import numpy as np
import pytest

import thresher as th
from thresher.findings.advice import NEW_LABEL, SUGGESTIONS, suggest_by_shares
from thresher.findings.forecast import Forecast, forecast_errors, lowest
from thresher.games.label_shares import LabelShares


def of_shares(own, other, best, near=3.0):
    own, other = np.asarray(own, np.float64), np.asarray(other, np.float64)
    return LabelShares(own, other, np.asarray(best), np.broadcast_to(near, own.shape))


def by_definition(shares, codes, classes):
    """The forecast, class by class and point by point."""
    preferred = [
        best if other > own else code
        for own, other, best, code in zip(shares.own, shares.other, shares.best, codes, strict=True)
    ]
    found, seen, clear = np.zeros((3, classes))
    for label in range(classes):
        members = [i for i in range(len(codes)) if preferred[i] == label]
        if not members:
            continue
        top = {i: max(shares.own[i], shares.other[i]) for i in members}
        least = sorted(top.values(), reverse=True)[int(np.ceil(len(members) / 4)) - 1]
        surest = [i for i in members if top[i] >= least]
        for i in surest:
            if codes[i] != label:
                found[codes[i]] += len(members) / len(surest)
                seen[codes[i]] += 1
        margins = {i: abs(shares.own[i] - shares.other[i]) for i in members}
        typical = np.median(list(margins.values()))
        for i in members:
            clear[codes[i]] += codes[i] != label and margins[i] >= 0.7 * typical
    contradicted = [(shares.other > shares.own)[codes == label].sum() for label in range(classes)]
    moved = np.sign(clear - found) * np.minimum(abs(clear - found), np.sqrt(seen + 1))
    return np.minimum(np.maximum(found + moved, 0), contradicted)


@pytest.mark.parametrize("seed", range(40))
def test_the_forecast_is_the_rate_among_the_surest_quarter_within_reach_of_a_count(seed):
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(1, 40)), int(rng.integers(2, 5))
    codes = rng.integers(0, classes, n).astype(np.int32)
    own, other = rng.integers(0, 6, (2, n)) / 10  # few values, so that some are equal
    best = (codes + rng.integers(1, classes, n)) % classes
    shares = of_shares(own, other, best)
    found = forecast_errors(shares, codes, classes)
    np.testing.assert_allclose(found.by_label, by_definition(shares, codes, classes))
    assert found.contradicted == (other > own).mean()
    order = rng.permutation(n)
    moved = forecast_errors(shares.take(order), codes[order], classes)
    np.testing.assert_allclose(moved.by_label, found.by_label)


def test_overlapping_classes_do_not_count_where_the_others_are_sure():
    """A hundred sure points, four of them wrong; a hundred unsure ones, where half is."""
    codes = np.r_[np.ones(4, int), np.zeros(96, int), np.ones(50, int), np.zeros(50, int)]
    sure = np.where(codes == 0, 0.95, 0.05)
    own = np.r_[sure[:100], np.where(codes[100:] == 0, 0.55, 0.45)]
    found = forecast_errors(of_shares(own, 1 - own, 1 - codes), codes, 2)
    # 4 % of 200 are 8, but 4 are clear, and 4 that were seen might have been sqrt(5) fewer
    np.testing.assert_allclose(found.by_label, [0, 8 - np.sqrt(5)])
    assert found.contradicted == 0.27
    assert found.poor


@pytest.mark.parametrize("kind", ["uniform", "one label"])
def test_the_forecast_of_a_clear_table_is_near_the_truth(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    right = (X[:, 0] > 0).astype(int)
    wrong = rng.random(2000) < (0.06 if kind == "uniform" else 0.12 * right)
    _, found = th.forest_findings(X, np.where(wrong, 1 - right, right), trees=40)
    assert not found.forecast.poor
    assert abs(found.forecast.wrong / wrong.sum() - 1) < 0.35
    if kind == "one label":  # all that is wrong is called 0
        assert found.forecast.by_label[0] > 5 * found.forecast.by_label[1]


def test_labels_that_mean_nothing_make_a_poor_forecast():
    rng = np.random.default_rng(0)
    _, found = th.forest_findings(rng.normal(size=(400, 3)), rng.integers(0, 2, 400), trees=20)
    assert found.forecast.poor


def test_lowest_takes_so_many_of_each_group_and_all_that_are_equal_to_the_last():
    numbers, groups = np.array([3.0, 1.0, 2.0, 1.0, 5.0]), np.array([0, 0, 0, 0, 1])
    assert lowest(numbers, groups, np.array([1, 0])).tolist() == [False, True, False, True, False]
    assert lowest(numbers, groups, np.array([3, 9])).tolist() == [False, True, True, True, True]


def test_suggestions_follow_the_scores_up_to_the_forecast():
    """Two are called wrong, and as many again are to be looked at, if others contradict them."""
    own = np.array([0.10, 0.05, 0.30, 0.40, 0.45, 0.60])
    other = np.array([0.80, NEW_LABEL - 0.01, 0.60, 0.55, 0.50, 0.40])
    shares, codes = of_shares(own, other, np.ones(6, int)), np.zeros(6, np.int32)
    found = suggest_by_shares(shares, codes, Forecast(np.array([2.4, 0.0]), 0.8))
    words = [SUGGESTIONS[place] for place in found]
    assert words == ["relabel", "drop", "inspect", "inspect", "inspect", "keep"]
    nothing = suggest_by_shares(shares, codes, Forecast(np.array([0.2, 9.0]), 0.8))
    assert {SUGGESTIONS[place] for place in nothing} == {"keep"}
    alone = of_shares(own, other, np.ones(6, int), near=0.01)
    outliers = suggest_by_shares(alone, codes, Forecast(np.zeros(2), 0.0))
    assert {SUGGESTIONS[place] for place in outliers} == {"outlier"}
