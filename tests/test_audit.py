"""Audits accept the mechanisms of this library and reject broken ones.

Every audit here has a false-alarm rate of 0.1 % and, unless it says otherwise, 1,000 runs with and
1,000 without the canary, with noise from a fixed seed. benchmarks/audit.py has the power of the
default 20,000 and of 100,000 runs.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import thresher as th
from thresher.attack import subjects
from thresher.attack.audit import audit_mechanism, audit_runs
from thresher.attack.canaries import Bait, guesses, knn_trial
from thresher.attack.sampled_bound import Scheme
from thresher.attack.trials import Buffered
from thresher.privacy import Cells, Paper, Table
from thresher.privacy.accountants import Budget
from thresher.privacy.cells_mechanism import CellsDesign
from thresher.privacy.dp_knn import STEPS, KNNDesign
from thresher.privacy.noise import Seeded
from thresher.privacy.paper_mechanism import SCALE, PaperDesign
from thresher.privacy.table_design import TableDesign

OPTIONS = {"epsilon": 1.0, "delta": 1e-5, "seed": 0, "canaries": 0, "runs": 1000}


def audit(mechanism="table", **options):
    return audit_mechanism(mechanism, **(OPTIONS | options))


def broken(kind, design, **parts):
    """A mechanism whose design has these attributes instead of its own."""
    worse = type("Worse", (design,), parts)

    class Mechanism(kind):
        def design(self, setting):
            good = super().design(setting)
            fields = [getattr(good, name) for name in design.__match_args__]
            return worse(*fields)

    return Mechanism


def sigma_times(design, factor):
    honest = design.sigma.func if hasattr(design.sigma, "func") else design.sigma.fget
    return property(lambda self: honest(self) * factor)


# --- right ones ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "options", "least"),
    [
        ("table", {}, 0.97),
        (Table(bound=3), {"adjacency": "replace-one"}, 0.97),
        (Table(bound="certified"), {}, 0.97),
        (Table(bound=4), {"near": 9}, 0.95),
        ("cells", {"canaries": 100}, 0.95),
        (Cells(cells=1), {"adjacency": "replace-one"}, 0.9),
        ("knn", {}, 0.3),
        ("knn", {"k": 1}, 0.3),
        ("knn", {"adjacency": "replace-one"}, -1),
    ],
)
def test_right_mechanisms_pass_and_their_epsilon_is_nearly_proven(mechanism, options, least):
    found = audit(mechanism, **options)
    assert found.passed
    assert least < found.proven <= found.epsilon
    assert found.auroc < found.auroc_ceiling + 4 * found.auroc_error


@pytest.mark.parametrize(
    ("mechanism", "options", "least"),
    [
        (Paper(rate=0.5), {}, 0.9),
        (Paper(rate=0.5, counts="disjoint"), {}, 0.9),
        (Paper(rate=0.5, sample="shared"), {}, 0.9),
        ("paper", {}, 0.9),
        ("knn", {"subsample": 0.5, "k": 1, "runs": 1000}, -1),
    ],
)
def test_right_sampled_mechanisms_pass(mechanism, options, least):
    """Where little is sampled, so many runs prove nothing: the bound is 0 at least."""
    pytest.importorskip("dp_accounting")
    found = audit(mechanism, **options)
    assert found.passed
    assert least < found.proven <= found.epsilon
    assert found.gaussian_bound is None


def test_noise_from_the_operating_system_passes():
    """200 runs, and 20 canaries in one release."""
    pytest.importorskip("opendp")
    for mechanism in ("table", "cells", "knn"):
        found = audit(mechanism, runs=200, seed=None, canaries=20)
        assert found.passed
        assert not any("seed" in sentence for sentence in found.assumptions)


# --- broken ones --------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize("factor", [0.8, 0.95])
def test_a_table_with_too_little_noise_is_rejected(factor, epsilon):
    """By the spread of the noise; by the area, that assumes less, where it is far too little."""
    worse = broken(Table, TableDesign, sigma=sigma_times(TableDesign, factor))()
    found = audit(worse, epsilon=epsilon)
    assert not found.passed
    assert found.spread_bound > epsilon
    assert found.verdict.startswith("violated: epsilon is at least")


def test_half_the_noise_is_rejected_without_a_look_at_the_noise():
    found = audit(broken(Table, TableDesign, sigma=sigma_times(TableDesign, 1 / 2))())
    assert found.gaussian_bound > 1.5
    assert found.lower_bound < 1  # what it takes to see this at one threshold


@pytest.mark.parametrize("factor", [1 / 2, 0.8, 0.95])
def test_cells_with_too_little_noise_are_rejected(factor):
    less = property(lambda self: CellsDesign.laplace_scale.fget(self) * factor)
    found = audit(broken(Cells, CellsDesign, laplace_scale=less)())
    assert found.spread_bound > 1
    assert not found.passed
    if factor == 1 / 2:  # assuming nothing at all
        assert found.lower_bound > 1.4
        assert found.area_bound > 1.8


def test_private_neighbor_values_with_too_little_noise_are_rejected(monkeypatch):
    monkeypatch.setattr(KNNDesign, "sigma", sigma_times(KNNDesign, 1 / 2))
    assert not audit("knn").passed


@pytest.mark.parametrize(("factor", "rate"), [(1 / 2, 0.5), (0.8, 0.5), (0.8, 0.01)])
def test_the_papers_mechanism_with_too_little_noise_is_rejected(factor, rate):
    pytest.importorskip("dp_accounting")
    worse = broken(Paper, PaperDesign, sigma=sigma_times(PaperDesign, factor))
    found = audit(worse(rate=rate))
    assert not found.passed
    assert found.spread_bound > 1
    if factor == 1 / 2:
        assert found.sampled_bound > 1


def test_a_shared_sample_accounted_for_as_fresh_ones_is_rejected():
    """64 neighbors, rate 0.05: the noise is that of 64 fresh samples, one is drawn."""
    pytest.importorskip("dp_accounting")
    steps = property(lambda self: len(self.setting.validation))
    worse = broken(Paper, PaperDesign, steps=steps)(sample="shared", rate=0.05)
    assert audit(worse, near=64, runs=3000).lower_bound > 1


def rounded(how, sigma):
    """Noise of a float Gaussian turned into whole numbers, on a table of whole counts."""
    random = np.random.default_rng(0)
    return {
        "parts": 1,  # and so the scale
        "sigma": sigma,
        "personal_epsilon": lambda self, contributions: None,
        "noise": lambda self, source: how(
            sigma * random.standard_normal((2, len(self.setting.validation)))
        ).astype(np.int64),
    }


def test_a_float_gaussian_rounded_to_the_nearest_number_passes_even_at_a_tiny_sigma():
    """No flaw: rounding commutes with whole shifts, so it is done after the noise is added.

    Sigma 0.5 for one count: mu = 2, which is epsilon = 10 at delta = 1e-5 (gaussian_epsilon).
    """
    found = audit(broken(Table, TableDesign, **rounded(np.rint, 0.5))(bound=1), epsilon=10, near=1)
    assert found.passed
    assert found.gaussian_bound > 7


def test_a_float_gaussian_cut_off_to_a_whole_number_at_a_tiny_sigma_is_rejected():
    """Towards zero: it is 0 far too often, and shifts show."""
    found = audit(broken(Table, TableDesign, **rounded(np.trunc, 0.5))(bound=1), epsilon=10, near=1)
    assert not found.passed
    assert found.gaussian_bound > 18


def test_whole_noise_on_counts_that_are_clipped_to_fractions_is_rejected():
    """Noise rounded to whole counts, as large as it should be; what is left of them tells all."""

    def noise(self, source):
        shape = (2, len(self.setting.validation))
        whole = np.rint(self.sigma / self.scale * random.standard_normal(shape))
        return self.scale * whole.astype(np.int64)

    random = np.random.default_rng(0)
    worse = broken(Table, TableDesign, noise=noise)(bound=4)
    found = audit(worse, epsilon=4, near=9)
    assert not found.passed
    assert "noise comes in steps of 64" in found.verdict


@pytest.mark.parametrize(
    ("kind", "design"), [(Table, TableDesign), (Cells, CellsDesign)], ids=["table", "cells"]
)
def test_a_seed_that_is_used_again_is_rejected_without_assumptions(kind, design):
    honest = design.noise
    worse = broken(kind, design, noise=lambda self, source: honest(self, Seeded(7)))()
    assert audit(worse).lower_bound > 3


def test_one_release_is_enough_to_reject_a_tenth_of_the_noise():
    """400 canaries, no repeated runs to speak of."""
    options = {"runs": 100, "canaries": 400, "delta": 1e-7}
    right = audit("table", **options)
    worse = broken(Table, TableDesign, sigma=sigma_times(TableDesign, 1 / 10))()
    found = audit(worse, **options)
    assert right.passed
    assert found.one_run_bound > 1
    assert found.canaries == 400


# --- canaries -----------------------------------------------------------------------------------


def test_the_canary_of_the_table_moves_it_as_far_as_the_bound_allows():
    for adjacency, factor in (("add-remove", 1), ("replace-one", 2)):
        bait = Bait.of(Table(bound=7), Budget(1, 1e-5), adjacency, 1, 7)
        without, canary = bait.shifts[0]
        assert ((canary - without) ** 2).sum() == factor * 7 * 64**2
        assert bait.design.length(adjacency) ** 2 == pytest.approx(factor * 7 * 64**2)


@pytest.mark.parametrize(("counts", "square"), [("three", 3), ("disjoint", 1)])
def test_the_canary_of_the_papers_mechanism_moves_every_count(counts, square):
    bait = Bait.of(Paper(counts=counts), Budget(1, 1e-5), "add-remove", 1, 5)
    assert (bait.shifts[0][1] ** 2).sum() == 5 * square * SCALE**2


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_canary_of_neighbor_values_reaches_the_sensitivity(k, monkeypatch):
    monkeypatch.setattr(KNNDesign, "sigma", 1e-3)
    trial = knn_trial(KNNDesign(Budget(1, 1e-5), k, 6, None, "add-remove", False))
    without, canary = (trial.release(Seeded(0), np.array([here])) for here in (False, True))
    assert 6 * STEPS <= (without - canary)[0] <= 6 * (STEPS + 2)


def laws(design, shift, outputs):
    """The probability of each output, term by term, up to what all have in common."""
    rate = design.options.rate
    density = lambda x, s: np.exp(-((x - s) ** 2) / (2 * design.sigma**2))  # noqa: E731
    if design.options.sample == "shared":
        return [
            (1 - rate) * density(x, 0).prod() + rate * density(x, shift).prod() for x in outputs
        ]
    return [
        np.prod([
            (1 - rate) * density(a, 0).prod() + rate * density(a, s).prod()
            for a, s in zip(x.T, shift.T)
        ])
        for x in outputs
    ]  # fmt: skip


@pytest.mark.parametrize("sample", ["fresh", "shared"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_score_is_the_logarithm_of_the_likelihood_ratio(sample, adjacency):
    pytest.importorskip("dp_accounting")
    bait = Bait.of(Paper(rate=0.3, sample=sample), Budget(1, 1e-5), adjacency, 1, 3)
    outputs = np.random.default_rng(0).integers(-40, 60, (20, 3, 3))
    without, canary = (laws(bait.design, shift, outputs) for shift in bait.shifts[0])
    np.testing.assert_allclose(
        bait.trial().score(outputs)[:, 0], np.log(canary) - np.log(without), atol=1e-5
    )


def test_the_ceiling_of_a_sampled_scheme_is_that_of_its_trade_off_curve():
    """One step: (1 - q) a + q Phi(Phi^-1(a) + 1 / s); claims hold both ways, hence a bit more."""
    pytest.importorskip("dp_accounting")
    from scipy.special import ndtr, ndtri

    alarms, rate, noise = np.linspace(0.02, 0.6, 30), 0.4, 1.1
    exact = (1 - rate) * alarms + rate * ndtr(ndtri(alarms) + 1 / noise)
    found = Scheme(rate, 1, noise, "add-remove").ceiling(noise, 1.0)(alarms)
    assert (found >= exact - 1e-9).all()
    assert (found <= exact + 0.04).all()
    assert (found[alarms < 0.2] <= exact[alarms < 0.2] + 0.015).all()
    assert (Scheme(rate, 1, noise, "add-remove").ceiling(0.8, 1.0)(alarms) > found).all()


def test_the_score_of_cells_never_exceeds_epsilon():
    bait = Bait.of(Cells(), Budget(0.7, 0), "add-remove", 1, 4)
    outputs = np.random.default_rng(0).integers(-9, 9, (50, 1, 2))
    scores = bait.trial().score(outputs)[:, 0]
    assert scores.max() == pytest.approx(0.7)
    assert scores.min() == pytest.approx(-0.7)
    votes = outputs[:, 0, 1]
    np.testing.assert_allclose(scores, 0.7 * np.where(votes >= 1, 1, -1), rtol=1e-6)


def test_buffered_noise_is_the_same_noise_in_the_same_order():
    plain, buffered = Seeded(3), Buffered(Seeded(3))
    wanted = plain.gaussian(5.0, 1 << 15)
    found = np.concatenate([buffered.gaussian(5.0, size) for size in (3, 0, 7, 100)])
    np.testing.assert_array_equal(found, wanted[:110])
    assert buffered.laplace(2.0, 40_000).shape == (40_000,)
    assert not np.array_equal(buffered.sample(0.5, 64), buffered.sample(0.5, 64))


def test_guesses_go_to_the_canaries_that_stand_out():
    assert guesses(np.array([0.1, -3.0, 2.0, -0.2]), 2).tolist() == [0, -1, 1, 0]
    with pytest.raises(th.InputError, match="count must be between 1 and 4"):
        guesses(np.zeros(4), 5)


# --- the result ---------------------------------------------------------------------------------


def test_the_page_says_what_was_claimed_proven_and_assumed():
    found = audit("cells", canaries=50, epsilon=0.5)
    page = str(found)
    for words in ("epsilon 0.5, delta 0, add-remove", "proven, many runs", "proven, one run",
                  "attack AUROC", "1000 with and 1000 without", "fair coin", "a seed"):  # fmt: skip
        assert words in page
    assert page.endswith(found.verdict)
    assert "0.5 was claimed" in found.verdict
    assert f"{found.certifiable:.3g} at most" in found.verdict
    told = json.loads(found.to_json())
    assert told["passed"] is True
    assert told["lower_bound"] == found.lower_bound
    assert told["assumptions"] == list(found.assumptions)


def test_scores_of_anybody_are_audited():
    """N(1, 1) against N(0, 1): epsilon is 4.38 at delta = 1e-5."""
    random = np.random.default_rng(0)
    scores = random.normal(1, 1, 20_000), random.normal(0, 1, 20_000)
    plain = audit_runs(*scores, epsilon=4.4, delta=1e-5)
    assert plain.passed
    assert plain.gaussian_bound is None
    gaussian = audit_runs(*scores, epsilon=4.4, delta=1e-5, gaussian=True)
    assert plain.proven < 3.8 < 4.2 < gaussian.proven <= 4.4
    assert not audit_runs(*scores, epsilon=3.5, delta=1e-5, gaussian=True).passed
    assert gaussian.auroc == pytest.approx(0.76, abs=0.01)


def test_a_progress_bar_is_shown_on_demand(capsys):
    audit("cells", runs=100, progress=True)
    assert "audit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: audit("histogram"), "mechanism must be one of 'table', 'paper', 'cells', 'knn'"),
        (lambda: audit("table", k=3), "k and subsample need mechanism='knn'"),
        (lambda: audit("knn", task="nonsense"), "task must be one of"),
        (lambda: audit("knn", task="regression"), "task, kernel and leaves need mechanism='table'"),
        (lambda: audit("knn", kernel="gaussian"), "task, kernel and leaves need mechanism='table'"),
        (lambda: audit("knn", leaves=True), "task, kernel and leaves need mechanism='table'"),
        (lambda: audit("knn", leaves="maybe"), "leaves must be True or False, got 'maybe'"),
        (lambda: audit("table", runs=10), "runs must be an integer >= 100"),
        (lambda: audit("table", delta=0), "delta must be > 0"),
        (lambda: audit("table", confidence=2), "confidence must be"),
        (lambda: audit("table", epsilon=-1), "epsilon must be"),
        (lambda: audit("table", adjacency="none"), "adjacency must be one of"),
        (lambda: audit_runs([1.0] * 5, [1.0] * 50, epsilon=1, delta=0), "inside must be"),
        (lambda: audit_runs([1.0] * 50, [1.0] * 50, epsilon=1, delta=0, gaussian=True), "delta"),
    ],
)
def test_what_cannot_be_audited_is_refused(call, message):
    with pytest.raises(th.InputError, match=message):
        call()


def test_every_mechanism_by_name_is_audited():
    assert set(subjects.MECHANISMS) == {"table", "paper", "cells"}


def test_the_command_prints_a_verdict(run_command):
    done = run_command(
        "audit", "--mechanism", "cells", "--epsilon", "1", "--delta", "0", "--runs", "100"
    )
    assert done.returncode == 0, done.stderr
    assert "no violation found" in done.stderr
    assert json.loads(done.stdout)["passed"] is True
    refused = run_command("audit", "--mechanism", "magic")
    assert refused.returncode == 1
    assert "mechanism must be one of" in refused.stderr
