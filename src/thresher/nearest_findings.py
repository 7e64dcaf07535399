"""Findings of a valuation by nearest neighbors: the votes of the validation points near a row.

A row's evidence are its own nearest validation points, k of them and ten at least. So every row has
as many judges. The other way around, by validation points that have the row among their k nearest,
most rows would have none.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from thresher.advice import SUGGESTIONS, Near, suggest_by_votes
from thresher.coded import Coded
from thresher.errors import InputError
from thresher.findings import Findings
from thresher.inputs import Points, Validation
from thresher.metrics import Rows
from thresher.neighbors.closest import closest
from thresher.valuation import Valuation

VOTERS = 10  # validation points, or k if that is more


def explain_by_nearest(valuation: Valuation, points: Points, validation: Validation) -> Findings:
    """What the nearest validation points say about each point."""
    votes = count_votes(points, validation, max(int(valuation.params["k"]), VOTERS))
    each, codes = np.arange(len(points)), points.codes.astype(np.int64)
    near, own = votes.sum(axis=1), votes[each, codes].copy()
    votes[each, codes] = -1
    best = votes.argmax(axis=1) if votes.shape[1] > 1 else codes
    other = np.maximum(votes[each, best], 0)
    known = np.bincount(validation.codes, minlength=votes.shape[1]) > 0
    found = Near(near, own, valuation.values, best, other, other, np.ones(len(points)))
    labels = validation.classes.labels
    return Findings(
        Coded.numbered(codes, labels),
        valuation.values,
        valuation.ranks(),
        valuation.percentiles(),
        near,
        own / near,
        Coded.numbered(best, labels),
        None,
        Coded.numbered(suggest_by_votes(valuation.values, found, known[codes]), SUGGESTIONS),
        best,
        other / near,
        np.divide(own, own + other, out=np.full(len(own), 0.5), where=own + other > 0),
    )


def count_votes(points: Points, validation: Validation, voters: int) -> NDArray[np.int64]:
    """How many of each point's nearest validation points carry each label: one row per point."""
    classes = len(validation.classes)
    if len(validation) <= voters:
        every = np.bincount(validation.codes, minlength=classes)
        return np.tile(every, (len(points), 1))
    if validation.rows is None or not isinstance(points.rows, Rows):
        raise InputError("findings by the nearest neighbors need features, not distances")
    votes = np.zeros((len(points), classes), np.int64)
    judges = Points(validation.rows, validation.codes)
    asking = dataclasses.replace(validation, rows=points.rows, codes=points.codes)
    for row, keys in enumerate(closest(judges, asking, voters, "float64", None)):
        codes = validation.codes[(keys >> np.uint64(1)).astype(np.int64)]
        votes[row] = np.bincount(codes, minlength=classes)
    return votes
