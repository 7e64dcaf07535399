"""R^2 of a linear regression as points are removed, where labels are numbers."""

from __future__ import annotations

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError
from thresher.progress import Advance
from thresher.report.removal import (
    FRACTIONS,
    LEAST_POINTS,
    Removal,
    among,
    can_remove,
    curves_of,
    removal_orders,
    removed_counts,
)
from thresher.report.retraining import MOST_POINTS, standardize
from thresher.report.subject import Subject, sample

LINEAR = "linear regression"
RIDGE = 1.0  # penalty on the weights of standardized columns, as in scikit-learn's Ridge
PURPOSE = 3


def target_removal(subject: Subject, advance: Advance | None = None) -> Removal:
    """The curves: the lowest values first, the highest first, or at random."""
    data = subject.data
    if not len(data.codes_val) or subject.targets is None or subject.targets_val is None:
        raise InputError(
            "the rows judged each other, so there is no validation set to measure the effect on"
        )
    if not can_remove(subject):
        raise InputError(f"there are fewer than {LEAST_POINTS} points")
    chosen = sample(len(subject), MOST_POINTS, subject.random(PURPOSE))
    tables = standardize(data, chosen)
    y, y_val = subject.targets[chosen], subject.targets_val
    found = []
    for order in among(removal_orders(subject), chosen):
        found.append(_explained(tables.rows, y, tables.rows_val, y_val, order))
        if advance is not None:
            advance(len(FRACTIONS) - 1)
    return Removal(
        FRACTIONS, curves_of(LINEAR, found), len(chosen), len(subject), None, measure="R^2"
    )


def _explained(rows: Floats, y: Floats, rows_val: Floats, y_val: Floats, order: Integers) -> Floats:
    """R^2 on the validation set at each step, by ridge regression."""
    spread = float(((y_val - y_val.mean()) ** 2).sum()) or 1.0
    penalty = np.diag(np.append(np.full(len(rows) - 1, RIDGE), 0.0))
    found = []
    for gone in removed_counts(len(order)):
        kept = order[gone:]
        some = rows[:, kept]
        weights = np.linalg.lstsq(some @ some.T + penalty, some @ y[kept], rcond=None)[0]
        found.append(1 - float(((rows_val.T @ weights - y_val) ** 2).sum()) / spread)
    return np.array(found)
