"""suggest_radius: a radius from public data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import SMALLEST_RADIUS, check_count
from thresher.errors import InputError
from thresher.inputs import Validation, check_validation
from thresher.kernels.pairs import pair_distances
from thresher.labels import Classes
from thresher.metrics import Rows

Floats = NDArray[np.float64]

SMOOTHING = 0.3  # of the deviation of distances: how far around a radius its AUROC is smoothed
MOST_OTHERS = 8  # labels that are tried for a validation point besides its own


class RadiusSuggestion(float):
    """A radius that knows the curves it was read off: a float, to be used like one.

    Attributes
    ----------
    radii
        The radii that were tried, ascending.
    accuracy
        Leave-one-out accuracy of the threshold classifier at each: the expected one, if it guesses
        evenly among the labels that lead.
    coverage
        The share of validation points that have another one within each radius.
    detection
        How well wrong labels of validation points would be found at each: the AUROC, smoothed. The
        radius is where it is highest. None in suggestions that earlier versions pickled.
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
) -> RadiusSuggestion:
    """A radius for `tknn_shapley` from the validation set alone, so that it costs no privacy.

    Every validation point is scored by the others within the radius (`zero_budget_score`), once
    with its own label and once with other labels. The radius is suggested at which the scores tell
    right labels from wrong ones best, by the AUROC. Among equals it is the one with most coverage,
    then the smallest. A point with nobody near scores 0 in either case.

    Parameters
    ----------
    X_val, y_val, metric, classes
        As in `tknn_shapley`; the metric is "cosine" or "euclidean".
    candidates
        How many radii to try: even quantiles of the distances between validation points, and of
        those to the nearest other one; under cosine none so small that rounding would keep parallel
        rows apart.
    most_points
        Larger validation sets are thinned to this many rows, evenly.

    Notes
    -----
    The AUROC of a few hundred points is rough, so each radius takes a weighted mean of those around
    it. The weights are normal, with a deviation of `SMOOTHING` times that of the distances between
    validation points. At most `MOST_OTHERS` other labels of each point are tried.

    A radius tuned on the training points would be more exact, and would have to be paid for in a
    private release. Cost O(M^2 (d + C)) in time, O(M) memory.

    Examples
    --------
    >>> import thresher as th
    >>> rows = [[0.0], [1.0], [10.0], [11.0]]
    >>> th.suggest_radius(rows, ["a", "a", "b", "b"], metric="euclidean")
    RadiusSuggestion(1, accuracy=1.000, coverage=1.000)
    """
    if metric == "precomputed":
        raise InputError("metric must be 'cosine' or 'euclidean': suggest_radius needs the rows")
    candidates = check_count("candidates", candidates, least=2)
    most_points = check_count("most_points", most_points, least=2)
    validation = check_validation(X_val, y_val, metric=metric, classes=classes)
    return judge_radius(validation, candidates=candidates, most_points=most_points)[0]


def suggest_for(validation: Validation) -> RadiusSuggestion:
    """What `suggest_radius` suggests for a validation set that was checked: by its own labels."""
    present, codes = np.unique(validation.codes, return_inverse=True)
    classes = Classes(tuple(validation.classes.labels[code] for code in present))
    own = Validation(validation.rows, codes.astype(np.int32), classes, validation.metric)
    return judge_radius(own)[0]


def judge_radius(
    validation: Validation, radius: float | None = None, *, candidates: int = 64,
    most_points: int = 4000,
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
    table = _Distances(_thin(validation, most_points))
    radii, scale = _candidates(table, candidates)
    tried = radii if radius is None else np.union1d(radii, [radius])
    accuracy, coverage, detection = _curves(table, tried)
    at = np.searchsorted(tried, radii)
    smooth = _smoothed(radii, detection[at], SMOOTHING * scale)
    best = radii[np.lexsort((radii, -coverage[at], -smooth))[0]]
    found = RadiusSuggestion(float(best), radii, accuracy[at], coverage[at], smooth)
    place = np.searchsorted(tried, best if radius is None else radius)
    return found, float(accuracy[place]), float(coverage[place])


class _Distances:
    """Distances between validation points, a row at a time; infinite to itself."""

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


def _candidates(table: _Distances, count: int) -> tuple[Floats, float]:
    """Quantiles of all distances and of the nearest ones, ascending; and how distances deviate."""
    size = len(table.rows)
    sampled = [table.row(v) for v in np.linspace(0, size - 1, min(size, 256)).astype(int).tolist()]
    pooled = np.concatenate(sampled)
    pooled = pooled[np.isfinite(pooled)]
    nearest = np.array([row.min() for row in sampled])
    levels = np.linspace(0, 1, max(2, count // 2))
    quantiles = [np.quantile(part, levels, method="higher") for part in (pooled, nearest)]
    return np.unique(_usable(np.concatenate(quantiles), table)), float(pooled.std())


def _usable(radii: Floats, table: _Distances) -> Floats:
    """Radii that `tknn_shapley` takes, and that reach rows at distance 0 in spite of rounding.

    Parallel rows are at cosine distance 0. Rounding their numbers turns each by up to eps/2, half
    the spacing of their dtype at 1, which is a distance of eps^2/2 between two of them. The pair
    rule adds at most (2d + 3) u, u = 2^-53: d u for the product, d u for the norms, 3 u for the
    rest.
    """
    if table.validation.metric == "cosine":
        eps = float(np.finfo(table.rows.array.dtype).eps)
        return np.maximum(radii, eps**2 / 2 + (table.rows.width + 2) * 2.0**-52)
    return np.where(radii > 0, np.maximum(radii, SMALLEST_RADIUS), radii)


def _curves(table: _Distances, radii: Floats) -> tuple[Floats, Floats, Floats]:
    """Leave-one-out accuracy, coverage and AUROC of wrong labels at each radius."""
    codes, classes = table.validation.codes, len(table.validation.classes)
    accuracy, coverage = np.zeros(len(radii)), np.zeros(len(radii))
    right, wrong = [], []
    for v in range(len(codes)):
        first = np.searchsorted(radii, table.row(v))  # the first radius that reaches each point
        counts = np.bincount(first * classes + codes, minlength=(len(radii) + 1) * classes)
        shares = counts.reshape(-1, classes)[:-1].cumsum(axis=0)
        near = shares.sum(axis=1)
        leads = shares == shares.max(axis=1, keepdims=True)
        accuracy += leads[:, codes[v]] / leads.sum(axis=1)
        coverage += near > 0
        scores = classes * shares - near[:, None]  # C times the zero-budget score of each label
        right.append(scores[:, codes[v]])
        wrong.append(scores[:, _other_labels(v, codes[v], classes)])
    found = [_auroc(*each) for each in zip(np.array(right).T, np.stack(wrong, axis=1), strict=True)]
    return accuracy / len(codes), coverage / len(codes), np.array(found)


def _other_labels(v: int, code: int, classes: int) -> NDArray[np.int64]:
    """Labels that a validation point does not have: all of them, or some that go round."""
    tried = min(classes - 1, MOST_OTHERS)
    return (code + 1 + (v * tried + np.arange(tried)) % max(1, classes - 1)) % classes


def _auroc(right: NDArray[np.int64], wrong: NDArray[np.int64]) -> float:
    """How often a right score is above a wrong one; ties count half.

    Examples
    --------
    >>> _auroc(np.array([1, 2]), np.array([[1], [0]]))
    0.875
    """
    if not wrong.size:
        return 0.5
    ordered = np.sort(right)
    below = sum(np.searchsorted(ordered, wrong, side=side).sum() for side in ("left", "right"))
    return float(1 - below / (2 * right.size * wrong.size))


def _smoothed(radii: Floats, curve: Floats, width: float) -> Floats:
    """A curve over radii as means of what is around each, by normal weights of this width."""
    if len(radii) < 2 or width == 0:
        return curve
    apart = (radii[:, None] - radii) / width
    weights = np.exp(-(apart**2) / 2) * np.gradient(radii)
    return (weights * curve).sum(axis=1) / weights.sum(axis=1)
