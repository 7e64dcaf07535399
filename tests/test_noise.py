"""The noise is what it is said to be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

import thresher as th
from thresher.errors import ExtraError, InputError
from thresher.privacy.noise import Seeded, System, noise_source

SIZE = 20_000
FALSE_ALARM = 1e-6  # of each test below


def sources():
    pytest.importorskip("opendp")
    return [System(), Seeded(7)]


def chi_square(draws, mass):
    """p-value that draws follow the probabilities; cells with few expected join the next one."""
    reach = (len(mass) - 1) // 2
    seen = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(mass))
    expected = len(draws) * mass / mass.sum()
    inner = np.flatnonzero(expected >= 8)  # a tail of its own would expect less than one draw
    ends = np.concatenate([[0], inner[1:]])
    seen, expected = np.add.reduceat(seen, ends), np.add.reduceat(expected, ends)
    return chi2.sf(((seen - expected) ** 2 / expected).sum(), len(ends) - 1)


@pytest.mark.parametrize("which", [0, 1], ids=["system", "seeded"])
@pytest.mark.parametrize("sigma", [0.6, 2.5, 40.0])
def test_gaussian_noise_has_its_probabilities(which, sigma):
    """n = 20,000 draws; false alarm 1e-6."""
    draws = sources()[which].gaussian(sigma, SIZE)
    x = np.arange(-int(8 * sigma) - 2, int(8 * sigma) + 3)
    assert chi_square(draws, np.exp(-(x**2) / (2 * sigma**2))) > FALSE_ALARM


@pytest.mark.parametrize("which", [0, 1], ids=["system", "seeded"])
@pytest.mark.parametrize("scale", [0.5, 2.0, 10.0])
def test_laplace_noise_has_its_probabilities(which, scale):
    """n = 20,000 draws; false alarm 1e-6."""
    draws = sources()[which].laplace(scale, SIZE)
    x = np.arange(-int(30 * scale) - 2, int(30 * scale) + 3)
    assert chi_square(draws, np.exp(-np.abs(x) / scale)) > FALSE_ALARM


@pytest.mark.parametrize("which", [0, 1], ids=["system", "seeded"])
def test_large_noise_has_its_variance(which):
    """n = 2,000 draws: the sample variance has a relative deviation of 0.032; 6 of them: 2e-9."""
    draws = sources()[which].gaussian(1e6, 2000).astype(float)
    assert abs(draws.var() / 1e12 - 1) < 6 * math.sqrt(2 / 2000)
    assert abs(draws.mean()) < 6 * 1e6 / math.sqrt(2000)


@pytest.mark.parametrize("which", [0, 1], ids=["system", "seeded"])
def test_coins_show_up_at_their_rate(which):
    """n = 100,000 coins; six standard deviations: 2e-9."""
    coins = sources()[which].sample(0.01, 100_000)
    assert abs(coins.mean() - 0.01) < 6 * math.sqrt(0.01 * 0.99 / 100_000)


def test_system_noise_is_never_the_same_and_seeded_noise_always():
    system = sources()[0]
    assert not np.array_equal(system.gaussian(50.0, 100), system.gaussian(50.0, 100))
    assert np.array_equal(Seeded(1).gaussian(50.0, 100), Seeded(1).gaussian(50.0, 100))
    assert not np.array_equal(Seeded(1).gaussian(50.0, 100), Seeded(2).gaussian(50.0, 100))


def test_a_seed_is_a_whole_number():
    with pytest.raises(InputError, match="seed must be an integer >= 0"):
        noise_source("secret")


def test_without_the_extra_the_error_names_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ExtraError, match="install the extra 'private'"):
        System().gaussian(1.0, 1)


def test_without_the_extra_nothing_is_charged_and_what_was_released_is_given(monkeypatch, tmp_path):
    import sys

    pytest.importorskip("opendp")
    X = np.random.default_rng(0).normal(size=(150, 3))
    y = X[:, 0] > 0
    ledger = th.Ledger.create(tmp_path / "ledger.db", epsilon=10, delta=1e-5)

    def release(version):
        return th.dp_tknn_shapley(
            X[50:], y[50:], X[:50], y[:50], epsilon=1, delta=1e-6, ledger=ledger, version=version
        ).table.tolist()

    first = release("one")
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    assert release("one") == first
    for _ in range(2):
        with pytest.raises(ExtraError, match="opendp"):
            release("two")
    assert len(ledger) == 1
