"""The paper's own draw of its data sets, where the files are at hand: its printed figures come back."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import thresher as th

# noisy-feature detection by TKNN-Shapley at the default threshold, as printed
PRINTED = {
    "2dplanes": 0.705, "phoneme": 0.710, "cpu": 0.751, "fraud": 0.818,
    "creditcard": 0.611, "click": 0.558, "wind": 0.691, "pol": 0.680,
}  # fmt: skip


def standardized(train, val):
    """Columns scaled with the statistics of the training rows; constant ones become zero."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1)
    return (train - mean) / deviation, (val - mean) / deviation


@pytest.mark.filterwarnings("ignore::thresher.TwinWarning")
@pytest.mark.parametrize("name", PRINTED)
def test_noisy_rows_of_the_papers_own_draw_are_found_as_often_as_printed(name, dataset):
    stored = dataset(name)
    X, y = stored["X"].astype(np.float64), stored["y"]
    train, val = X[stored["paper_train_idx"]], X[stored["paper_val_idx"]]
    spread = np.sqrt((train**2).sum(axis=0))
    train[:200] += stored["paper_noise_z"] * spread
    train, val = standardized(train, val)
    labels = y[stored["paper_train_idx"]], y[stored["paper_val_idx"]]
    valuation = th.tknn_shapley(train, labels[0], val, labels[1], radius=0.5)
    found = roc_auc_score(np.arange(2000) < 200, -valuation.values)
    assert round(found, 3) == PRINTED[name]
