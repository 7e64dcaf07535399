"""The verdict of a report, and what it is careful about."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pages import DATA, blobs, overlapping, value

import thresher as th
from thresher.findings.advice import SUGGESTIONS
from thresher.findings.explanation import explain
from thresher.findings.false_alarms import FalseAlarms
from thresher.report import gather
from thresher.report.coverage import ClassCoverage, Coverage
from thresher.report.removal import CrossCheck
from thresher.report.suggestions import Suggestions
from thresher.report.verdict import judge

# the verdict


def spread_of(n):
    return gather(th.Valuation(np.linspace(-1, 1, n), "example", {}, 1.0, 0.0)).distribution


def suggested(alarms=None, **counts):
    total = {name: counts.get(name, 0) for name in SUGGESTIONS}
    return Suggestions(total, false_alarms=alarms)


def coverage_of(none=0, enough=100, missing=0):
    return Coverage((), 0, ClassCoverage("all", none, 0, enough, missing, 2000), 20.0)


def sentence(counts, *, checked=None, coverage=None, care=()):
    found = judge(spread_of(2000), counts, coverage or coverage_of(), checked, care)
    assert found.sentence.endswith(".")
    assert found.sentence.count(". ") == 0
    return found.sentence


GAIN = CrossCheck(0.81, 0.86, 60, 10)


def test_the_verdict_names_mislabeled_rows_and_what_dropping_brings():
    found = sentence(suggested(keep=1645, relabel=143, inspect=212), checked=GAIN)
    assert found == (
        "143 of 2,000 rows are probably mislabeled (suggestion: relabel), and 212 more are worth a "
        "look (suggestion: inspect); dropping the lowest tenth raises the accuracy of a logistic "
        "regression from 0.810 to 0.860 on validation points other than those that chose them."
    )


def test_the_verdict_does_not_call_chance_a_gain():
    counts = suggested(keep=1999, relabel=1)
    hardly = sentence(counts, checked=CrossCheck(0.81, 0.815, 8, 7))
    assert "which may be chance" in hardly
    assert "lowers" in sentence(counts, checked=CrossCheck(0.81, 0.7, 1, 20))
    assert sentence(counts).startswith("1 of 2,000 rows is probably mislabeled")


def test_the_verdict_says_when_nothing_stands_out():
    assert "Nothing stands out: none of 2,000 rows" in sentence(suggested(keep=2000))
    assert sentence(suggested(keep=1990, inspect=10)).startswith(
        "Nothing is clearly mislabeled, but 10 of 2,000 rows are worth a look"
    )
    doubted = sentence(suggested(FalseAlarms(20, 500), keep=1920, relabel=80))
    assert doubted.startswith("Nothing stands out: 80 of 2,000 rows contradict")
    assert "(4%), not clearly more than right labels do (4% of the validation set)" in doubted


def test_the_verdict_takes_off_what_right_labels_would_give():
    found = sentence(suggested(FalseAlarms(20, 500), keep=1695, relabel=300, drop=5))
    assert (
        "300 of 2,000 rows look mislabeled (suggestion: relabel), and about 231 of these probably are"
        in found
    )
    assert "and 5 fit no label (suggestion: drop)" in found


def test_the_verdict_says_that_nothing_can_be_said():
    found = sentence(
        suggested(outlier=2000), coverage=coverage_of(none=100, enough=0, missing=2000)
    )
    assert found.startswith("Nothing can be said: no row is within the radius")


def test_the_verdict_is_careful_where_it_has_to_be():
    assert sentence(suggested(keep=2000), care=("only 30 validation points",)).startswith(
        "Take this with care (only 30 validation points): Nothing stands out"
    )
    few = blobs(200, 30)[:4]
    found = gather(value(few), *few)
    assert "Take this with care (only 30 validation points" in found.verdict.sentence
    assert any("only 30 validation points" in caution for caution in found.cautions)


def test_little_coverage_is_said():
    data = DATA[0], DATA[1], np.concatenate([DATA[2], DATA[2] + 100]), np.tile(DATA[3], 2)
    found = gather(value(data), *data)
    assert found.coverage.share <= 0.5
    assert "validation points have no row near" in found.verdict.sentence
    assert any(caution.startswith(("Only 50%", "Only 4")) for caution in found.cautions)


def test_classes_that_one_side_lacks_are_said():
    X, y, X_val, y_val = DATA
    data = X, y, X_val[y_val != "cat"], y_val[y_val != "cat"]
    found = gather(value(data), *data)
    assert 'no validation point has the label "cat"' in found.verdict.sentence
    assert any('No validation point has the label "cat"' in caution for caution in found.cautions)
    data = X[y != "cat"], y[y != "cat"], X_val, y_val
    assert any('No row has the label "cat"' in x for x in gather(value(data), *data).cautions)


def test_twins_and_a_radius_that_does_not_fit_are_said():
    X, y, X_val, y_val = DATA
    data = X, y, np.concatenate([X[:7], X_val]), np.concatenate([y[:7], y_val])
    with pytest.warns(th.TwinWarning):
        valuation = value(data)
    assert any("7 validation rows are exact copies" in x for x in gather(valuation, *data).cautions)
    found = gather(value(radius=100.0), *DATA).cautions
    assert any("The radius 100 does not fit well" in caution for caution in found)
    assert any("more than half of all rows near" in caution for caution in found)
    assert any("hardly more than always guessing" in caution for caution in found)


def test_false_alarms_are_the_rule_for_points_tried_on_the_validation_set():
    data = overlapping(500, 300)
    found = gather(value(data, radius=0.7), *data).suggestions.false_alarms
    near = np.linalg.norm(data[2][:, None] - data[2][None], axis=2) <= 0.7
    np.fill_diagonal(near, val=False)
    flagged = 0
    for i, label in enumerate(data[3]):
        own, other = (near[i] & (data[3] == label)).sum(), (near[i] & (data[3] != label)).sum()
        clear = other - own > 2 * np.sqrt(own + other) and own <= 0.2 * (own + other)
        flagged += bool(clear and own < other)
    assert (found.flagged, found.validation_points) == (flagged, 300)


def test_right_labels_where_classes_overlap_are_not_called_mislabeled():
    told, real = 0, 0
    for seed in range(4):
        data = overlapping(seed=seed)
        clean = gather(value(data, radius=0.8), *data)
        assert clean.suggestions.total["relabel"] > 40
        assert clean.verdict.sentence.startswith("Nothing stands out")
        noisy = overlapping(flipped=0.2, seed=seed)
        valuation = value(noisy, radius=0.8)
        found = gather(valuation, *noisy).verdict.sentence
        told += int(re.search(r"and about (\d+) of these probably are", found)[1])
        marked = np.array(explain(valuation, *noisy).suggestion) == "relabel"
        real += int((noisy[1] != data[1])[marked].sum())
    assert told == pytest.approx(real, rel=0.2)
