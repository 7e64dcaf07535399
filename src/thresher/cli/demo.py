"""`thresher demo`: find flipped labels among scikit-learn's handwritten digits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any


def demo() -> None:
    """Find flipped labels among handwritten digits: a first look, in a few seconds.

    Example: thresher demo
    """
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import train_test_split

    from thresher import flip_labels, knn_shapley, suggest_radius, tknn_shapley

    digits = load_digits()
    center = digits.data.mean(axis=0)
    X, X_val, y, y_val = train_test_split(
        digits.data - center, digits.target, test_size=300, random_state=0, stratify=digits.target
    )
    y_noisy, flipped = flip_labels(y, fraction=0.1, seed=0)
    radius = suggest_radius(X_val, y_val)
    _say(
        f"{len(y)} digits, {flipped.sum()} of their labels flipped, {len(y_val)} to validate with."
    )
    _say(f"radius {float(radius):.3f}, suggested from the validation digits alone\n")

    data = X, y_noisy, X_val, y_val
    methods: dict[str, Callable[[], Any]] = {
        "tknn": lambda: tknn_shapley(*data, radius=float(radius)),
        "knn": lambda: knn_shapley(*data, k=5),
    }
    _say("method  seconds  AUROC  ten most suspicious rows (* flipped)")
    for name, method in methods.items():
        method()  # compiles, or loads what was compiled before
        start = time.perf_counter()
        valuation = method()
        seconds = time.perf_counter() - start
        found = roc_auc_score(flipped, -valuation.values)
        rows = [f"{row}{'*' if flipped[row] else ''}" for row in valuation.suspects(10)]
        _say(f"{name:<6}  {seconds:7.4f}  {found:.3f}  {' '.join(rows)}")
        assert np.isfinite(found)  # noqa: S101 - a demonstration that shows NaN shows nothing


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
