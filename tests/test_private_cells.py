"""What a histogram over public cells says about wrong labels, and what follows for the counts."""

from __future__ import annotations

import numpy as np
import pytest

import thresher as th
from thresher.privacy.cell_map import wrong_shares


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("classes", [2, 4])
def test_the_share_of_wrong_labels_is_found_from_the_histogram(wrong, classes):
    random = np.random.default_rng(classes)
    pure = random.dirichlet(np.full(classes, 0.3), size=20)  # of the classes in each cell
    cells = np.repeat(np.arange(20), 400)
    codes = np.array([random.choice(classes, p=pure[cell]) for cell in cells])
    flipped = pure + wrong * ((1 - pure) / (classes - 1) - pure)
    found = wrong_shares(1000 * flipped, np.eye(20)[cells], np.eye(classes)[codes])
    assert (found * flipped).sum() / flipped.sum() == pytest.approx(wrong, abs=0.02)
    assert ((found >= 0) & (found <= 1)).all()


def test_one_class_and_empty_cells_have_no_wrong_labels():
    assert (wrong_shares(np.array([[5.0], [0.0]]), np.eye(2), np.ones((2, 1))) == 0).all()
    nothing = wrong_shares(np.zeros((2, 2)), np.eye(2), np.eye(2))
    assert (nothing == 0).all()


def test_wrong_labels_do_not_make_cells_tell_too_small_an_error():
    random = np.random.default_rng(0)
    X = random.normal(size=(2500, 6))
    y = (X[:, 0] + X[:, 1] + 0.5 * random.normal(size=2500) > 0) * 1
    flipped, _ = th.flip_labels(y[1000:], fraction=0.2, seed=0)
    data = X[1000:], flipped, X[:1000], y[:1000]
    exact = th.tknn_shapley(*data).values
    found = th.dp_tknn_shapley(*data, epsilon=4, delta=0, mechanism="cells", seed=0)
    missed = np.sqrt(((found.values - exact) ** 2).mean() / (exact**2).mean())
    assert missed < 1.5 * found.error.relative
    inside = (found.error.low <= exact) & (exact <= found.error.high)
    assert inside.mean() > 0.8
