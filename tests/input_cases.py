"""Points that every way to hand them in is compared with."""

from __future__ import annotations

import numpy as np
import pytest

import thresher as th

X = np.array([[1.0, 0.5], [0.5, 2.0], [2.0, 1.0], [0.25, 1.0]], np.float32)


Y = np.array([0, 1, 0, 1])


V = np.array([[1.0, 0.25], [0.25, 2.0]], np.float32)


YV = np.array([0, 1])


BOTH = pytest.mark.parametrize("method", [th.tknn_shapley, th.knn_shapley], ids=["tknn", "knn"])
