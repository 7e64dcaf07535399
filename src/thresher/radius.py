"""`suggest_radius`: a radius from public data alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError
from thresher.inputs.checked_inputs import Validation, check_validation
from thresher.inputs.checks import SMALLEST_RADIUS, check_count
from thresher.inputs.far_off import brought_in
from thresher.inputs.labels import Classes
from thresher.kernels.pairs import pair_distances
from thresher.metrics import Rows
from thresher.neighbors.kernel import BOX, SHAPES, check_kernel
from thresher.regression import CLASSES, REGRESSION, check_targets, check_task

LENIENCE = 0.2  # over the root of the validation points: an AUROC lower by that weighs 1/e
MOST_WEIGHED = 1000  # validation points that a kernel is judged by
MOST_OTHERS = 8  # labels that are tried for a validation point besides its own


class RadiusSuggestion(float):
    """A radius with the curves from which it was chosen. It is a float, and can be used as one.

    Attributes
    ----------
    radii
        The radii that were tried, ascending.
    accuracy
        Leave-one-out accuracy of the threshold classifier at each radius. If labels are tied, it is
        the expected accuracy of a random guess among them. For regression, it is R^2.
    coverage
        The share of validation points that have another validation point within each radius.
    detection
        How well wrong labels of validation points would be found at each radius, as AUROC. None in
        suggestions that earlier versions pickled.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X_val = np.random.default_rng(0).normal(size=(200, 2))
    >>> radius = th.suggest_radius(X_val, X_val[:, 0] > 0)
    >>> isinstance(radius, float), len(radius.radii) == len(radius.accuracy)
    (True, True)
    """

    radii: Floats
    accuracy: Floats
    coverage: Floats
    detection: Floats | None

    def __new__(
        cls, radius: float, radii: Floats, accuracy: Floats, coverage: Floats,
        detection: Floats | None = None,
    ) -> RadiusSuggestion:  # fmt: skip
        """Make a float that carries its curves."""
        self = super().__new__(cls, radius)
        self.radii, self.accuracy, self.coverage = radii, accuracy, coverage
        self.detection = detection
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.radii, self.accuracy, self.coverage, self.detection

    @property
    def radius(self) -> float:
        """The suggestion as a plain float."""
        return float(self)

    def __repr__(self) -> str:
        at = int(np.flatnonzero(self.radii == float(self))[0])
        how = f"accuracy={self.accuracy[at]:.3f}, coverage={self.coverage[at]:.3f}"
        return f"RadiusSuggestion({float(self):.4g}, {how})"


def suggest_radius(
    X_val: Any,
    y_val: Any,
    *,
    metric: str = "cosine",
    classes: Any = None,
    candidates: int = 64,
    most_points: int = 4000,
    kernel: Any = BOX,
    rings: int = 16,
    task: str = CLASSES,
) -> RadiusSuggestion:
    """Suggest a radius for `tknn_shapley` from the validation set alone, which costs no privacy.

    Every validation point is judged by the others within the radius, once with its own label and
    once with other labels. How well this tells right labels from wrong ones is measured by the
    AUROC. A radius in the middle of the best ones is suggested.

    Parameters
    ----------
    X_val, y_val, metric, classes
        As in `tknn_shapley`; the metric is "cosine" or "euclidean".
    candidates
        How many radii to try. They are even quantiles of the distances between validation points,
        and of the distances to the nearest other one. Under cosine, none is so small that rounding
        would keep parallel rows apart.
    most_points
        Larger validation sets are thinned evenly to this many rows, or to 1000 with a kernel.
    kernel, rings
        A named kernel, as in `tknn_shapley`, which then weights near points.
    task
        "classification" or "regression". For regression, `y_val` holds numbers, and each validation
        point is judged by the mean of the others within the radius.

    Returns
    -------
    RadiusSuggestion
        A float, with the curves from which it was chosen.

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the first offending rows.

    Notes
    -----
    If n others are near, and m of them have the label, the score of a label is
    (C m - n) / sqrt(n + 1). It says how far they are from even odds, roughly in standard
    deviations. It is 0 if nobody is near. At most 8 other labels of each point are tried. With a
    kernel, n and m are sums of weights, and n + 1 becomes the sum of their squares plus 1.

    The AUROC of a few hundred points is rough. So the suggestion is not the best radius, but the
    candidate nearest to a weighted geometric mean of all candidates. The weight of a radius is the
    width of the range that it stands for (at most the median candidate), times
    exp((AUROC - best) sqrt(M) / 0.2).

    A radius tuned on the training points would be more exact, but a private release would have to
    pay for it. Cost O(M^2 (d + C)) in time, O(M) memory.

    Examples
    --------
    >>> import thresher as th
    >>> rows = [[0.0], [1.0], [10.0], [11.0]]
    >>> th.suggest_radius(rows, ["a", "a", "b", "b"], metric="euclidean")
    RadiusSuggestion(1, accuracy=1.000, coverage=1.000)
    """
    if isinstance(metric, str) and metric == "precomputed":
        raise InputError("metric must be 'cosine' or 'euclidean': suggest_radius needs the rows")
    candidates = check_count("candidates", candidates, least=2, most=1_000_000)
    most_points = check_count("most_points", most_points, least=2)
    kernel = _named_kernel(kernel, rings)
    if check_task(task) == REGRESSION:
        if classes is not None or kernel != BOX:
            raise InputError("classes and kernel cannot be used with task='regression'")
        return _suggest_for_targets(X_val, y_val, metric, candidates, most_points)
    validation = check_validation(X_val, y_val, metric=metric, classes=classes)
    how: dict[str, Any] = {"candidates": candidates, "most_points": most_points, "rings": rings}
    return judge_radius(validation, kernel=kernel, **how)[0]


def _suggest_for_targets(
    X_val: Any, y_val: Any, metric: str, candidates: int, most_points: int
) -> RadiusSuggestion:
    """Suggest a radius for numbers; here, a validation point's code is its place in the targets."""
    targets = brought_in(check_targets("y_val", y_val))
    places = np.arange(len(targets))
    validation = check_validation(X_val, places, metric=metric, classes=places.tolist())
    how: dict[str, Any] = {"candidates": candidates, "most_points": most_points}
    return judge_radius(validation, targets=targets, **how)[0]


def _named_kernel(kernel: object, rings: int) -> str:
    if not isinstance(kernel, str):
        raise InputError("kernel must be a name: a sequence of (radius, weight) has a radius")
    check_kernel(kernel, rings, 1.0)
    return kernel


def suggest_for(validation: Validation, kernel: str = BOX, rings: int = 16) -> RadiusSuggestion:
    """What `suggest_radius` suggests for a checked validation set with its own labels."""
    present, codes = np.unique(validation.codes, return_inverse=True)
    classes = Classes(tuple(validation.classes.labels[code] for code in present))
    own = Validation(validation.rows, codes.astype(np.int32), classes, validation.metric)
    return judge_radius(own, kernel=kernel, rings=rings)[0]


def judge_radius(
    validation: Validation, radius: float | None = None, *, candidates: int = 64,
    most_points: int = 4000, kernel: str = BOX, rings: int = 16, targets: Floats | None = None,
) -> tuple[RadiusSuggestion, float, float]:  # fmt: skip
    """What `suggest_radius` suggests, and accuracy and coverage at one radius: its own if None.

    Examples
    --------
    >>> rows, labels = [[0.0], [1.0], [10.0], [11.0]], ["a", "a", "b", "b"]
    >>> validation = check_validation(rows, labels, metric="euclidean", classes=None)
    >>> judge_radius(validation, 0.5)
    (RadiusSuggestion(1, accuracy=1.000, coverage=1.000), 0.5, 0.0)
    """
    if len(validation) < 2:
        raise InputError("X_val has one row: at least two are needed to suggest a radius")
    most = most_points if kernel == BOX else min(most_points, MOST_WEIGHED)
    table = _Distances(_thin(validation, most))
    radii = _candidates(table, candidates)
    tried = radii if radius is None else np.union1d(radii, [radius])
    if kernel != BOX:  # rings have a width; where all rows are equal any will do
        tried, radii = (each[each > 0] if each.any() else np.ones(1) for each in (tried, radii))
    if targets is None:
        accuracy, coverage, detection = _curves(table, tried, kernel, rings)
    else:
        kept = targets[table.validation.codes]
        others = min(MOST_OTHERS, len(kept) - 1)
        accuracy, coverage, scores = target_curves(table.row, tried, kept, others)
        detection = np.array([_auroc(*each) for each in scores])
    at = np.searchsorted(tried, radii)
    best = _middle(radii, (detection[at] - detection[at].max()) * np.sqrt(len(table.rows)))
    found = RadiusSuggestion(float(best), radii, accuracy[at], coverage[at], detection[at])
    place = np.searchsorted(tried, best if radius is None else radius)
    return found, float(accuracy[place]), float(coverage[place])


class _Distances:
    """Distances between validation points, one row at a time; infinite from a point to itself."""

    def __init__(self, validation: Validation) -> None:
        assert validation.rows is not None  # noqa: S101 - precomputed was refused
        self.validation = validation
        self.rows = validation.rows
        self.table = self.rows.as_float64(slice(None))

    def row(self, v: int) -> Floats:
        out = np.empty(len(self.rows))
        metric = self.validation.metric
        squares, row = self.rows.squares, self.table[v]
        pair_distances(self.table, squares, row, float(squares[v]), metric == "cosine", out)
        out[v] = np.inf
        return np.maximum(out, 0.0)


def _thin(validation: Validation, most: int) -> Validation:
    if len(validation) <= most:
        return validation
    rows = validation.rows
    assert rows is not None  # noqa: S101
    kept = np.linspace(0, len(validation) - 1, most).round().astype(np.int64)
    thinned = Rows(rows.array[kept], rows.squares[kept])
    return Validation(thinned, validation.codes[kept], validation.classes, validation.metric)


def _candidates(table: _Distances, count: int) -> Floats:
    """Quantiles of all distances and of the nearest ones, ascending."""
    size = len(table.rows)
    sampled = [table.row(v) for v in np.linspace(0, size - 1, min(size, 256)).astype(int).tolist()]
    pooled = np.concatenate(sampled)
    pooled = pooled[np.isfinite(pooled)]
    nearest = np.array([row.min() for row in sampled])
    levels = np.linspace(0, 1, max(2, count // 2))
    quantiles = [np.quantile(part, levels, method="higher") for part in (pooled, nearest)]
    return np.unique(_usable(np.concatenate(quantiles), table))


def _usable(radii: Floats, table: _Distances) -> Floats:
    """Radii that `tknn_shapley` accepts and that reach rows at distance 0 in spite of rounding.

    Parallel rows are at cosine distance 0. Rounding their numbers turns each by up to eps/2, half
    the spacing of their dtype at 1, which is a distance of eps^2/2 between two of them. The points
    may be float32 where the validation set is float64, so eps is at least that of float32. The pair
    rule adds at most (2d + 3) u, u = 2^-53: d u for the product, d u for the norms, 3 u for the
    rest.
    """
    if table.validation.metric == "cosine":
        eps = max(float(np.finfo(kind).eps) for kind in (table.rows.array.dtype, np.float32))
        return np.maximum(radii, eps**2 / 2 + (table.rows.width + 2) * 2.0**-52)
    return np.where(radii > 0, np.maximum(radii, SMALLEST_RADIUS), radii)


def _votes(
    distances: Floats, radii: Floats, codes: Array, classes: int, kernel: str, rings: int
) -> tuple[Floats, Floats]:
    """The weight of each class within each radius, and the sum of squared weights."""
    if kernel == BOX:
        first = np.searchsorted(radii, distances)  # the first radius that reaches each point
        counts = np.bincount(first * classes + codes, minlength=(len(radii) + 1) * classes)
        votes = counts.reshape(-1, classes)[:-1].cumsum(axis=0)
        return votes, votes.sum(axis=1)
    each = np.append(SHAPES[kernel]((np.arange(rings) + 0.5) / rings), 0.0)
    inside = np.minimum(np.ceil(distances / radii[:, None] * rings) - 1, rings)
    weights = each[np.maximum(inside, 0).astype(np.int64)]
    return weights @ np.eye(classes)[codes], (weights**2).sum(axis=1)


def _curves(
    table: _Distances, radii: Floats, kernel: str = BOX, rings: int = 16
) -> tuple[Floats, Floats, Floats]:
    """Leave-one-out accuracy, coverage and AUROC of wrong labels at each radius."""
    codes, classes = table.validation.codes, len(table.validation.classes)
    accuracy, coverage = np.zeros(len(radii)), np.zeros(len(radii))
    right, wrong = [], []
    for v in range(len(codes)):
        shares, squares = _votes(table.row(v), radii, codes, classes, kernel, rings)
        near = shares.sum(axis=1)
        leads = shares == shares.max(axis=1, keepdims=True)
        accuracy += leads[:, codes[v]] / leads.sum(axis=1)
        coverage += near > 0
        scores = (classes * shares - near[:, None]) / np.sqrt(squares + 1)[:, None]
        right.append(scores[:, codes[v]])
        wrong.append(scores[:, _other_labels(v, codes[v], classes)])
    found = [_auroc(*each) for each in zip(np.array(right).T, np.stack(wrong, axis=1), strict=True)]
    return accuracy / len(codes), coverage / len(codes), np.array(found)


def _other_labels(v: int, code: int, classes: int) -> Integers:
    """Labels that a validation point does not have: all of them, or some in rotation."""
    tried = min(classes - 1, MOST_OTHERS)
    return (code + 1 + (v * tried + np.arange(tried)) % max(1, classes - 1)) % classes


def _auroc(right: Floats, wrong: Floats) -> float:
    """How often a right score is above a wrong one; ties count half.

    Examples
    --------
    >>> _auroc(np.array([1.0, 2.0]), np.array([[1.0], [0.0]]))
    0.875
    """
    if not wrong.size:
        return 0.5
    ordered = np.sort(right)
    below = sum(np.searchsorted(ordered, wrong, side=side).sum() for side in ("left", "right"))
    return float(1 - below / (2 * right.size * wrong.size))


def _middle(radii: Floats, short: Floats) -> float:
    """The radius in the middle of those that are nearly as good as the best.

    Examples
    --------
    >>> _middle(np.array([1.0, 2.0, 4.0, 8.0, 9.0]), np.array([0.0, 0.0, 0.0, -9.0, -9.0]))
    2.0
    >>> two_peaks = np.array([0.0, 0.0, -9.0, -9.0, -0.1, -0.1])
    >>> _middle(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), two_peaks)  # not 3, between them
    2.0
    """
    if len(radii) < 2 or not radii.any():
        return float(radii[0])
    logs = np.log(np.maximum(radii, radii[radii > 0][0]))
    ranges = np.minimum(np.gradient(radii), np.median(radii))  # a few points may be far out
    weights = np.exp(short / LENIENCE) * ranges
    at = np.argmin(np.abs(logs - np.average(logs, weights=weights)))
    if short[at] < -3 * LENIENCE:  # a valley between two peaks: stay with the higher one
        best, low = int(np.argmax(short)), np.flatnonzero(short <= short[at])
        weights[: max([-1, *low[low < best]]) + 1] = 0
        weights[min([len(short), *low[low > best]]) :] = 0
        at = np.argmin(np.abs(logs - np.average(logs, weights=weights)))
    return float(radii[at])


def target_curves(
    distances: Callable[[int], Floats], radii: Floats, targets: Floats, tried: int
) -> tuple[Floats, Floats, list[tuple[Floats, Floats]]]:
    """Leave-one-out R^2 and coverage at each radius, and scores of right and of wrong targets.

    Every validation point is judged by the mean target of the others within the radius, or of all
    others if there are none. The nearer a target is to that mean, the higher its score. Wrong
    targets are taken from other validation points.
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
