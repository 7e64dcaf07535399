"""Logistic regressions on some of the points, judged by the validation set."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from thresher.embed import project_on_components
from thresher.labels import Codes
from thresher.report.map import read_rows
from thresher.report.subject import Data, Floats, Indices, Subject, sample
from thresher.threads import one_blas_thread

MOST_POINTS = 20_000  # points to train on
MOST_NUMBERS = 8_000_000  # points times features times classes, likewise
MOST_FEATURES = 64  # of wider rows the leading components are taken
PURPOSE = 3


@dataclass(frozen=True)
class Tables:
    """Standardized features of points and validation points, and their classes."""

    rows: Floats
    codes: Codes
    rows_val: Floats
    codes_val: Codes


def training_points(subject: Subject, data: Data) -> Indices:
    """The points to train on, in input order: all, or at random as many as take a minute."""
    size = min(data.rows.width, MOST_FEATURES) * len(subject.classes)
    most = min(MOST_POINTS, max(1000, MOST_NUMBERS // size))
    return sample(len(subject), most, subject.random(PURPOSE))


def standardize(data: Data, chosen: Indices) -> Tables:
    """The chosen points with columns of mean 0 and deviation 1, the validation set likewise.

    Of many columns the leading components are taken: what is to be seen takes seconds with them,
    and minutes without.
    """
    table = read_rows(data.rows, chosen)
    table_val = read_rows(data.rows_val, np.arange(len(data.codes_val)))
    if table.shape[1] > MOST_FEATURES and len(table) > MOST_FEATURES:
        parts = project_on_components(table, table_val, MOST_FEATURES)
        table, table_val = (part.astype(np.float64) for part in parts)
    mean, deviation = table.mean(axis=0), table.std(axis=0)
    deviation[~(deviation > 1e-6 * np.abs(mean))] = 1.0  # constant columns
    scale = [(part - mean) / deviation for part in (table, table_val)]
    return Tables(scale[0], data.codes[chosen], scale[1], data.codes_val)


def predictions(tables: Tables, kept: Indices) -> Codes:
    """The classes that a logistic regression on the `kept` points gives the validation points."""
    from sklearn.linear_model import LogisticRegression

    codes = tables.codes[kept]
    if not len(codes) or codes.min() == codes.max():  # nothing to tell apart
        return np.full(len(tables.codes_val), codes[0] if len(codes) else -1, np.int32)
    with warnings.catch_warnings(), one_blas_thread():  # it may not converge, which is no harm
        warnings.simplefilter("ignore")
        model = LogisticRegression(max_iter=1000).fit(tables.rows[kept], codes)
        found: Codes = model.predict(tables.rows_val)
    return found
