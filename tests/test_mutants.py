"""Mutants of a release: each must fail a check that the code itself passes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import discrete_gaussian_delta
from releases import X_VAL, release

import thresher as th
from thresher.games.semivalues import prices_between
from thresher.price_list import CARRIES, LACKS
from thresher.privacy import Paper, Table
from thresher.privacy import release_setting as release_module
from thresher.privacy import table_design as design_module
from thresher.privacy import table_mechanism as table_module
from thresher.privacy.accountants import sampled_epsilon
from thresher.privacy.paper_mechanism import PaperDesign
from thresher.privacy.public_rows import priceable, total_deviations


def check_noise_is_enough(found):
    """Exact lattice sum for a point that touches B validation points."""
    record = found.record
    shift = [record["scale"]] * record["bound"]
    delta = discrete_gaussian_delta(record["epsilon"], record["sigma"] * record["scale"], shift)
    assert delta <= record["delta"]


def check_bound_is_public():
    assert release().record["bound"] == release(points=slice(3)).record["bound"]


def check_sampling_is_accounted_for(found):
    record, m = found.record, len(X_VAL)
    shared = record["scheme"].startswith("shared")
    sensitivity = math.sqrt((3 if record["counts"] == "three" else 1) * (m if shared else 1))
    steps = 1 if shared else m
    epsilon = sampled_epsilon(
        record["delta"], record["rate"], record["sigma"] / sensitivity, steps, "add-remove"
    )
    assert epsilon <= record["epsilon"]


def check_own_point_is_subtracted_once(found):
    """A member with the label is priced beside same - 1, one without beside other - 1."""
    mean, draws = found._design.estimates(found.table)
    same, other = priceable(mean, total_deviations(draws))
    rests = {CARRIES: (np.maximum(same - 1, 0), other), LACKS: (same, np.maximum(other - 1, 0))}
    for kind, rest in rests.items():
        gain, loss = prices_between(*rest, 2, "shapley")
        np.testing.assert_allclose(found.price_list.table[kind], [gain, loss])


def test_the_code_itself_passes_the_checks_for_mutants():
    check_noise_is_enough(release(mechanism=Table(bound=9)))
    check_bound_is_public()
    check_own_point_is_subtracted_once(release())


def test_mutant_noise_too_small(monkeypatch):
    honest = design_module.discrete_sigma
    monkeypatch.setattr(design_module, "discrete_sigma", lambda *a: honest(*a) / 1.05)
    with pytest.raises(AssertionError):
        check_noise_is_enough(release(mechanism=Table(bound=9)))


def test_mutant_bound_from_the_data(monkeypatch):
    """As if the largest number of validation points that a training point is near were taken."""
    honest, seen = release_module.read_points, {}

    def peek(*arguments):
        seen["points"] = honest(*arguments)
        return seen["points"]

    class Mutant(design_module.TableDesign):
        @property
        def record(self):
            points = len(seen["points"]) if seen else 0
            return super().record | {"bound": self.bound + points // 100}

    monkeypatch.setattr(release_module, "read_points", peek)
    monkeypatch.setattr(table_module, "TableDesign", Mutant)
    release()  # looks at the points before the next design is made
    with pytest.raises(AssertionError):
        check_bound_is_public()


def test_mutant_shared_sample_accounted_for_as_fresh(monkeypatch):
    pytest.importorskip("dp_accounting")
    check_sampling_is_accounted_for(release(mechanism=Paper(sample="fresh")))
    monkeypatch.setattr(PaperDesign, "steps", len(X_VAL))
    with pytest.raises(AssertionError):
        check_sampling_is_accounted_for(release(mechanism=Paper(sample="shared")))


def test_mutant_own_point_subtracted_twice(monkeypatch):
    honest = th.PriceList.over.__func__

    def mutant(cls, side, counts, semivalue):
        same, other = counts
        return honest(cls, side, (np.maximum(same - 1, 0), other), semivalue)

    monkeypatch.setattr(th.PriceList, "over", classmethod(mutant))
    with pytest.raises(AssertionError):
        check_own_point_is_subtracted_once(release())
