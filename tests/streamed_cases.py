"""Tables for the tests of runs in parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def table_of(count, seed):
    """Two clouds with one label in ten wrong, a category, a gap, ids and owners."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, count)
    X = random.normal(size=(count, 3)) + 1.5 * y[:, None]
    labels = np.where(random.random(count) < 0.1, 1 - y, y)
    gaps = pa.array(random.normal(size=count), mask=random.random(count) < 0.05)
    return pa.table(
        {f"x{j}": X[:, j] for j in range(3)}
        | {"gap": gaps, "kind": random.choice(["u", "v", "w"], count)}
        | {"y": np.where(labels, "dog", "cat"), "name": [f"p{i}" for i in range(count)]}
        | {"from": random.integers(0, 5, count)}
    )


ALL = {"id": "name", "owner": "from", "fill": "zero", "categorical": ("kind",)}
