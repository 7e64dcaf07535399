"""How well each radius tells right targets from wrong ones, for `suggest_radius` with numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from thresher.array_types import Floats


def target_curves(
    distances: Callable[[int], Floats], radii: Floats, targets: Floats, tried: int
) -> tuple[Floats, Floats, list[tuple[Floats, Floats]]]:
    """Leave-one-out R^2 and coverage at each radius, and scores of right and of wrong targets.

    Every validation point is judged by the mean target of the others within the radius, of all
    others where there are none. The nearer a target is to that mean, the higher is its score. Wrong
    targets are those of so many other validation points.
    """
    count, total = len(targets), targets.sum()
    errors, coverage = np.zeros(len(radii)), np.zeros(len(radii))
    right, wrong = [], []
    for v, target in enumerate(targets.tolist()):
        first = np.searchsorted(radii, distances(v))  # the first radius that reaches each point
        near = np.bincount(first, minlength=len(radii) + 1)[:-1].cumsum()
        sums = np.bincount(first, targets, minlength=len(radii) + 1)[:-1].cumsum()
        means = np.where(near > 0, sums / np.maximum(near, 1), (total - target) / (count - 1))
        others = targets[(v + 1 + (v * tried + np.arange(tried)) % (count - 1)) % count]
        errors += (means - target) ** 2
        coverage += near > 0
        right.append(-np.abs(target - means))
        wrong.append(-np.abs(others - means[:, None]))
    spread = float(((targets - targets.mean()) ** 2).sum())
    explained = 1 - errors / spread if spread > 0 else np.zeros(len(radii))
    scores = list(zip(np.array(right).T, np.stack(wrong, axis=1), strict=True))
    return explained, coverage / count, scores
