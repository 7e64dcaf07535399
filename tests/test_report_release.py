"""The page of a private release: what is public, and nothing else."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from pages import Page
from releases import X_VAL, Y_VAL, X, Y, exact, release

import thresher as th
from thresher.errors import InputError
from thresher.privacy.release import Release
from thresher.ranking import rank_agreement
from thresher.report import gather, render
from thresher.report.private_release import Bought

# private releases


class Sealed:
    """A release of which nothing private can be asked for."""

    ranks, warning, is_noise = Release.ranks, Release.warning, Release.is_noise

    def __init__(self, found):
        self.record, self.price_list, self._drawn = found.record, found.price_list, found._drawn
        self.relative_error, self.table = found.relative_error, found.table
        self._design = found._design  # made from public facts, before points are counted


def test_the_page_of_a_release_follows_from_what_is_public():
    found = release()
    assert render(gather(None, release=found)) == render(gather(None, release=Sealed(found)))


def test_a_table_that_is_noise_tells_nothing_of_its_error():
    options = {"radius": 0.7, "metric": "euclidean", "delta": 1e-5, "seed": 3}
    small, large = (
        th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, epsilon=epsilon, **options) for epsilon in (0.001, 5)
    )
    assert (small.is_noise, large.is_noise) == (True, False)
    page = render(gather(None, release=small))
    assert "its table cannot be told from noise" in page
    assert "it is not known how good its values are" in page
    assert "not known" not in render(gather(None, release=large))


def test_points_with_the_same_release_have_the_same_page():
    far = np.full((5, 3), [50.0, 0.0, 0.0])
    options = {"radius": 0.7, "metric": "euclidean", "epsilon": 1, "delta": 1e-5, "seed": 3}
    order = np.random.default_rng(0).permutation(len(X))
    one = th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, **options)
    more = np.concatenate([X[order], far]), np.concatenate([Y[order], ["up"] * 5])
    two = th.dp_tknn_shapley(*more, X_VAL, Y_VAL, **options)
    np.testing.assert_array_equal(one.table, two.table)
    assert len(one.values) != len(two.values)
    assert render(gather(None, release=one)) == render(gather(None, release=two))
    other = th.dp_tknn_shapley(X[:700], Y[:700], X_VAL, Y_VAL, **options)
    assert render(gather(None, release=one)) != render(gather(None, release=other))


def test_the_page_of_a_release_has_no_value_and_no_number_of_points():
    found = release()
    text = render(gather(None, release=found, record={"command": "thresher release"}))
    page = Page(text)
    assert not {"rows", "map", "values", "removal", "suggestions", "coverage", "owners"} & set(
        page.ids
    )
    assert not {"worst", "spread", "matrix"} & page.tables.keys()
    assert not [
        number for number in (*found.values, *exact()) if number and repr(float(number)) in text
    ]
    assert str(len(X)) not in re.findall(r"\d+", re.sub(r"[0-9a-f]{64}", "", page.said("how")))


@pytest.mark.parametrize("extra", ["valuation", "X", "ids"])
def test_a_report_of_a_release_takes_nothing_exact(extra):
    given = {"valuation": None, "X": None, "ids": None} | {extra: exact()}
    with pytest.raises(InputError, match="nothing exact may be on its page"):
        gather(given["valuation"], given["X"], ids=given["ids"], release=release())


def test_the_budget_and_what_it_bought_are_shown():
    found = gather(None, release=release())
    private = found.private
    page = Page(render(found))
    assert [private.record[name] for name in ("epsilon", "delta", "adjacency")] == [
        1.0,
        1e-4,
        "add-remove",
    ]
    assert page.table("quality")[0][1:] == [str(private.bought.rank_agreement), str(private.bought.relative_error)]  # fmt: skip
    assert page.table("quality")[1][1] == str(private.bought.zero_budget)
    assert private.bought.relative_error == release().relative_error
    assert any("protects nobody" in caution for caution in found.cautions)
    assert "A trial release" in found.verdict.sentence
    assert "protects each point" in gather(None, release=release(seed=None)).verdict.sentence


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_rank_agreement_told_is_about_the_real_one(epsilon):
    truth, free = exact(), th.zero_budget_score(X, Y, X_VAL, Y_VAL).values
    found = [release(epsilon=epsilon, seed=seed) for seed in range(3)]
    told = [gather(None, release=each).private.bought for each in found]
    real = np.mean([rank_agreement(each.values, truth) for each in found])
    assert np.mean([bought.rank_agreement for bought in told]) == pytest.approx(real, abs=0.02)
    free_told = np.mean([bought.zero_budget for bought in told])
    assert free_told == pytest.approx(rank_agreement(free, truth), abs=0.04)


def test_releases_that_cannot_tell_their_error_say_so():
    knn = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, epsilon=1, delta=1e-5, seed=0)
    found = gather(None, release=knn)
    assert found.private.bought is None
    assert any("no protection against collusion" in caution for caution in found.cautions)
    assert "This is not known" in Page(render(found)).said("bought")
    few = th.dp_tknn_shapley(X, Y, X_VAL[:5], Y_VAL[:5], epsilon=1, delta=1e-5, seed=0)
    assert gather(None, release=few).private.bought is None
    Page(render(gather(None, release=few)))


def test_a_budget_that_buys_nothing_is_called_so():
    private = gather(None, release=release(seed=None)).private
    poor = dataclasses.replace(private, bought=Bought(2.0, 0.5, 0.9), no_better=True)
    assert "no better than the 0.900 that costs no budget" in poor.verdict().sentence
