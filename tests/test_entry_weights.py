"""Weights of validation points: what a unit can move (T15), the noise, and the audit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from releases import X, release
from test_audit import audit, broken
from test_private_owners import POINTS, adjacent_moves, measured
from test_private_owners import design as owner_design

from thresher.errors import InputError
from thresher.privacy import Table
from thresher.privacy.accountants import gaussian_mu
from thresher.privacy.entry_weights import EntryWeights
from thresher.privacy.noise import Seeded
from thresher.privacy.table_design import TableDesign


def hidden(found, moved):
    """mu^2 of T3, with the noise that is really drawn for each number."""
    return float((moved**2 / (found.deviations**2 - 4)).sum())


@pytest.mark.parametrize("exponent", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("bound", [3, 40])
def test_a_unit_moves_the_table_by_no_more_than_the_noise_is_for(exponent, bound):
    """Every adjacent pair of up to two points, two owners; and every owner replaced by another."""
    found = owner_design(Table(bound=bound, weights=exponent))
    assert len(set(found.entries.whole.tolist())) == 3  # clusters of 1, 3 and 12
    for adjacency, _, moved in adjacent_moves(found, 2):
        charged = found.cost(adjacency, "point", "gaussian").mu_squared
        assert hidden(found, moved) <= charged * (1 + 1e-9)
    ways = itertools.combinations_with_replacement
    alone = [
        measured(found, [(point, 0) for point in mine])
        for n in (0, 1, 2)
        for mine in ways(POINTS, n)
    ]
    worst = max(hidden(found, table) for table in alone)
    limit = gaussian_mu(1.0, 1e-4) ** 2
    assert 0.9 * limit < worst <= limit * (1 + 1e-9)  # and the bound is not a loose one
    for one, other in itertools.combinations(alone, 2):
        assert hidden(found, one - other) <= 2 * limit * (1 + 1e-9)


def test_the_noise_of_each_number_is_what_its_weight_asks_for(monkeypatch):
    asked, draw = [], Seeded.gaussian
    monkeypatch.setattr(Seeded, "gaussian", lambda *a: asked.append(a[1:]) or draw(*a))
    found = release()
    design, record = found._design, found.record
    first, second = found.table.shape
    assert sum(size for _, size in asked) == first * second
    near, rows = design.public.near.sum(axis=0), len(design.public.near)
    wanted = ((near + 1) / rows) ** 0.25  # 1 / s_v, up to steps of 2^(1/4) in s_v
    np.testing.assert_allclose(
        design.deviations / design.sigma / wanted, 1, atol=2**0.125 - 1 + 1e-3
    )
    assert {sigma for sigma, _ in asked} == set(design.deviations.tolist())
    assert record["weights"] == "validation set"
    assert record["weights_digest"] == release(points=slice(9)).record["weights_digest"]


def test_replaying_without_a_point_changes_the_noised_sum_and_nothing_else():
    whole, limit = release(), gaussian_mu(1.0, 1e-4) ** 2
    for gone in (0, 17, 400):
        less = release(points=np.delete(np.arange(len(X)), gone))
        assert hidden(whole._design, whole.table - less.table) <= limit
        ours, theirs = ({**r.record, "table_digest": 0} for r in (whole, less))
        assert ours == theirs


def test_the_posterior_trusts_a_number_by_its_own_noise():
    prior = release()._design._prior
    usual = 500 * prior.clipped_mean
    sure = np.full(len(usual), 50.0)
    sure[7] = 0.01
    seen = usual.copy()
    seen[[7, 8]] += 60
    mean = prior.posterior(seen, sure).mean * np.divide(prior.clipped_mean, prior.mean)
    assert mean[7] == pytest.approx(seen[7], abs=0.5)
    assert mean[8] < seen[8] - 20


def test_audits_pass_weights_and_catch_noise_with_too_much_of_them():
    assert audit(Table(weights=0.5)).passed
    twice = property(lambda self: self.drawn_sigma / self.entries.squares)
    assert not audit(broken(Table, TableDesign, deviations=twice)(weights=0.5)).passed


@pytest.mark.parametrize("weights", [-0.1, 1.5, True, "usual", np.nan])
def test_weights_that_are_no_exponent_are_refused(weights):
    with pytest.raises(InputError, match=r"weights must be a number between 0 and 1, got"):
        Table(weights=weights)


def test_a_certified_bound_has_no_weights():
    with pytest.raises(InputError, match="weights cannot be used with bound='certified'"):
        Table(bound="certified", weights=0.5)
    assert EntryWeights.alike(3).record()["weights"] == "none"
    assert release(mechanism=Table(bound="certified")).record["weights"] == "none"
