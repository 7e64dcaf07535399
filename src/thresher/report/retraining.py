"""Regressions on some of the points, judged by the validation set."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.embed import project_on_components
from thresher.inputs.labels import Codes
from thresher.kernels.logistic import fill_scores, train
from thresher.logistic import Solution
from thresher.report.map import read_rows
from thresher.report.subject import Data, Subject, sample
from thresher.threads import one_blas_thread

MOST_POINTS = 20_000  # points to train on
MOST_NUMBERS = 8_000_000  # points times features times classes, likewise
MOST_FEATURES = 64  # of wider rows the leading components are taken
MOST_WEIGHTS = 128  # beyond, Newton's method takes longer than scikit-learn
RIDGE = 1.0  # penalty on the weights of standardized columns, as in scikit-learn's Ridge
PURPOSE = 3


@dataclass(frozen=True)
class Tables:
    """Standardized features, one column per point and a last row of ones; and classes.

    There are those of the points that regressions are trained on, and of the validation points.
    """

    rows: Floats
    codes: Codes
    rows_val: Floats
    codes_val: Codes


def training_points(subject: Subject) -> Integers:
    """The points to train on, in input order: all, or as many random ones as take a minute."""
    size = min(subject.data.rows.width, MOST_FEATURES) * len(subject.classes)
    most = min(MOST_POINTS, max(1000, MOST_NUMBERS // size))
    return sample(len(subject), most, subject.random(PURPOSE))


def standardize(data: Data, chosen: Integers) -> Tables:
    """The chosen points with columns of mean 0 and deviation 1, the validation set likewise.

    If there are many columns, their leading components are used, so that the curves take seconds
    instead of minutes.
    """
    table = read_rows(data.rows, chosen)
    table_val = read_rows(data.rows_val, np.arange(len(data.codes_val)))
    if table.shape[1] > MOST_FEATURES and len(table) > MOST_FEATURES:
        parts = project_on_components(table, table_val, MOST_FEATURES)
        table, table_val = (part.astype(np.float64) for part in parts)
    mean, deviation = table.mean(axis=0), table.std(axis=0)
    deviation[~(deviation > 1e-6 * np.abs(mean))] = 1.0  # constant columns
    ours, theirs = (
        np.vstack([((part - mean) / deviation).T, np.ones(len(part))])
        for part in (table, table_val)
    )
    return Tables(ours, data.codes[chosen], theirs, data.codes_val)


def predict(tables: Tables, kept: Integers, last: Solution) -> tuple[Codes, Solution]:
    """The classes that a logistic regression on the `kept` points gives the validation points.

    Training begins at the `last` solution, and ends at the optimum of what `LogisticRegression` of
    scikit-learn minimizes. If that takes many weights, or does not converge, it is trained by
    scikit-learn.
    """
    codes = tables.codes[kept]
    present = np.unique(codes).astype(np.int64)
    if len(present) < 2:  # nothing to tell apart
        found = present[0] if len(present) else -1
        return np.full(len(tables.codes_val), found, np.int32), last
    now = last.moved_to(present, len(tables.rows))
    if now.weights.size > MOST_WEIGHTS:
        return _predict_by_sklearn(tables, kept, codes), last
    places, penalties = np.full(int(tables.codes.max()) + 1, -1), np.ones(len(tables.rows) - 1)
    places[present] = np.arange(len(present))
    now.known = train(
        tables.rows, places[tables.codes], kept, penalties, now.weights, now.factor, now.known
    )
    if not now.known:
        return _predict_by_sklearn(tables, kept, codes), last
    scores = np.empty((len(now.weights), len(tables.codes_val)))
    fill_scores(tables.rows_val, now.weights, scores)
    best = (scores[0] > 0).astype(np.int64) if len(scores) == 1 else scores.argmax(axis=0)
    return present[best].astype(np.int32), now


def _predict_by_sklearn(tables: Tables, kept: Integers, codes: Codes) -> Codes:
    from sklearn.linear_model import LogisticRegression

    with one_blas_thread(), warnings.catch_warnings():  # it may not converge, which is no harm
        warnings.simplefilter("ignore")
        model = LogisticRegression(max_iter=1000).fit(tables.rows[:-1, kept].T, codes)
        found: Codes = model.predict(tables.rows_val[:-1].T)
    return found


def explained(tables: Tables, y: Floats, y_val: Floats, kept: Integers) -> float:
    """R^2 on the validation points of a ridge regression on the `kept` points."""
    some = tables.rows[:, kept]
    penalty = np.diag(np.append(np.full(len(some) - 1, RIDGE), 0.0))
    weights = np.linalg.lstsq(some @ some.T + penalty, some @ y[kept], rcond=None)[0]
    spread = float(((y_val - y_val.mean()) ** 2).sum()) or 1.0
    return 1 - float(((tables.rows_val.T @ weights - y_val) ** 2).sum()) / spread
