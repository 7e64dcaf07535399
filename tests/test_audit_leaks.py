"""Audits find what leaves beside the table, noise that depends on the data, and rare leaks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from test_audit import audit, broken

from thresher.attack.area import Area, Scores, epsilon_from_area, mu_from_area
from thresher.attack.audit import audit_mechanism
from thresher.attack.bounds import ceiling, gaussian_ceiling
from thresher.attack.noise_size import Shape, too_quiet
from thresher.attack.replay import leaks, replay_bait
from thresher.attack.trials import coins
from thresher.privacy import Cells, Paper, Table
from thresher.privacy.accountants import Budget
from thresher.privacy.cells_mechanism import CellsDesign
from thresher.privacy.contributions import clipped_weights
from thresher.privacy.noise import Seeded
from thresher.privacy.table_design import TableDesign

BUDGET = Budget(1, 1e-5)


def found_leaks(mechanism, runs=4):
    return leaks(replay_bait(mechanism, BUDGET, "add-remove", 8), runs)


def remembering(**parts):
    """A table whose design remembers what it measured, as a careless one might."""

    def measure(self, contributions, source):
        object.__setattr__(self, "seen", contributions)
        return TableDesign.footprint(self, contributions)

    return broken(Table, TableDesign, measure=measure, **parts)()


@pytest.mark.parametrize("mechanism", [Table(), Table(bound=3), Cells(), Paper(rate=0.5)])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_nothing_leaks_from_right_mechanisms(mechanism, adjacency):
    if isinstance(mechanism, Paper):
        pytest.importorskip("dp_accounting")
    assert leaks(replay_bait(mechanism, BUDGET, adjacency, 8), 8) == ()


def test_the_own_contribution_left_in_the_prices_is_found():
    def prices(self, release):
        return TableDesign.prices(self, release + TableDesign.footprint(self, self.seen))

    found = found_leaks(remembering(prices=prices))
    assert "prices depend on more than the released table" in found
    assert "the values of others depend on more than the released table" in found
    whole = audit(remembering(prices=prices), runs=100)
    assert not whole.passed
    assert whole.leaks
    assert "violated" in whole.verdict


def test_prices_with_a_sigma_from_the_data_are_found():
    def estimates(self, release):
        posterior = self._prior.posterior(
            release.ravel() / self.scale,
            np.tile(self.deviations, 2) / self.scale * (1 + len(self.seen.points)),
        )
        return posterior.mean, posterior.draws(32, np.random.default_rng(0))

    assert any("prices" in each for each in found_leaks(remembering(estimates=estimates)))


def test_noise_with_a_sigma_from_the_data_is_found():
    """Once in the parameters of the noise, once where it is drawn behind the back of the tape."""

    def asked(self, contributions, source):
        more = source.gaussian(self.sigma * len(contributions.points), 1)
        return TableDesign.footprint(self, contributions) + 0 * more

    assert any("noise" in each for each in found_leaks(broken(Table, TableDesign, measure=asked)()))
    random = np.random.default_rng(0)

    def hidden(self, contributions, source):
        counts = TableDesign.footprint(self, contributions)
        louder = 2 * self.sigma * min(1, len(contributions.points))
        return counts + np.rint(louder * random.standard_normal(counts.shape)).astype(np.int64)

    found = audit(broken(Table, TableDesign, measure=hidden)())
    assert found.gaussian_bound > 2  # by how loud the runs are


def test_a_bound_from_the_data_is_found():
    def footprint(self, contributions):
        squares = self.squares(contributions)
        largest = max(1, int(squares.max(initial=1)))
        return contributions.counts(clipped_weights(squares, largest, self.scale))

    found = found_leaks(broken(Table, TableDesign, footprint=footprint)())
    assert any("moves the table so far" in each for each in found)

    def prices(self, release):
        return TableDesign.prices(self, release + int(self.seen.squares().max()))

    assert found_leaks(remembering(prices=prices))


def test_prices_that_leak_in_one_run_of_a_thousand_are_found():
    """5,000 replays, as many as 20,000 runs have; the prior is left out to save time."""
    random = np.random.default_rng(0)

    def prices(self, release):
        rare = random.random() < 1e-3
        return TableDesign.prices(self, release + rare * TableDesign.footprint(self, self.seen))

    worse = remembering(prices=prices)
    object.__setattr__(worse, "prior", False)
    assert found_leaks(worse, runs=5000)
    assert leaks(replay_bait(Table(prior=False), BUDGET, "add-remove", 8), 500) == ()


@pytest.mark.parametrize(("kind", "design"), [(Table, TableDesign), (Cells, CellsDesign)])
def test_releases_without_noise_in_one_run_of_a_thousand_are_found(kind, design):
    random, honest = np.random.default_rng(0), design.noise
    worse = broken(
        kind, design, noise=lambda self, source: honest(self, source) * (random.random() > 1e-3)
    )()
    found = audit(worse, runs=2000)
    assert found.proven < 1
    assert not found.passed
    assert "almost no noise" in found.verdict


def test_noise_that_depends_on_who_else_is_there_is_seen_in_lonely_runs():
    truth, crowded = coins(10, 4, np.random.default_rng(0))
    assert truth[:, 0].sum() == 10
    assert not truth[~crowded, 1:].any()
    assert truth[crowded, 1:].any()
    assert not coins(10, 1, np.random.default_rng(0))[1].any()


def test_right_ones_are_rarely_rejected(monkeypatch):
    """Of 60 audits with a false-alarm rate of 1 %, at most 4: more have a chance of 1 in 1,000.

    Replays have no false alarms and are left out; benchmarks/audit.py has more audits.
    """
    assert binom.ppf(0.999, 60, 0.01) == 4
    monkeypatch.setattr("thresher.attack.audit.leaks", lambda *_: ())
    rejected = [
        not audit_mechanism(
            mechanism, epsilon=1, delta=1e-5, runs=100, canaries=0, confidence=0.99, seed=seed
        ).passed
        for mechanism in ("table", "cells")
        for seed in range(30)
    ]
    assert sum(rejected) <= 4


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_what_the_noise_proves_is_rarely_too_much(kind):
    """Of 1,000 audits with a false-alarm rate of 1 %, at most 21: more have 1 chance in 1,000."""
    assert binom.ppf(0.999, 1000, 0.01) == 21
    shape, wrong, quiet = Shape(kind, 8.0, lambda scale: 8.0 / scale), 0, 0
    for seed in range(1000):
        noise = getattr(Seeded(seed), kind)(8.0, 100 * 16).reshape(100, 16)
        energy = shape.energy(noise)
        wrong += shape.most(energy, 16, 0.01) < 8.0
        quiet += too_quiet(*shape.quiet(energy, 16), 0.01)
    assert wrong <= 21
    assert quiet <= 21


def test_the_area_and_its_error():
    random = np.random.default_rng(0)
    inside, outside = random.normal(0, 1, (2, 4000))
    inside += 0.5
    area = Area.of(Scores.of(inside, outside))
    assert area.value == pytest.approx((inside[:, None] > outside).mean(), abs=1e-12)
    assert area.error == pytest.approx(0.006, abs=0.001)
    assert area.value - 0.025 < area.least(1e-3) < area.value - 0.015
    copied = Scores(*(np.tile(each, 4) for each in vars(Scores.of(inside, outside)).values()))
    assert Area.of(copied).error == pytest.approx(area.error, rel=1e-3)  # groups are what counts


@pytest.mark.parametrize("number", [0.1, 1.0, 3.0])
def test_areas_are_turned_back_into_budgets(number):
    assert mu_from_area(gaussian_ceiling(number)) == pytest.approx(number)
    assert epsilon_from_area(ceiling(number, 1e-5), 1e-5) == pytest.approx(number, abs=1e-6)
    assert epsilon_from_area(0.4, 0) == mu_from_area(0.4) == 0


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_scale_of_noise_is_bounded_and_quiet_runs_are_as_rare_as_they_should_be(kind):
    shape = Shape(kind, 20.0, lambda scale: 1 / scale)
    noise = getattr(Seeded(0), kind)(20.0, 8 * 4000).reshape(4000, 2, 4)
    energy = shape.energy(noise)
    assert 20 < shape.most(energy, 8, 1e-3) < 21
    count, expected = shape.quiet(energy, 8)
    assert expected == pytest.approx(0.01, rel=0.5)
    assert not too_quiet(count, expected, 1e-3)
    energy[:3] = 0
    assert too_quiet(shape.quiet(energy, 8)[0], expected, 1e-3)
