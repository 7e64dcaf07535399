"""Seeded corruptions that report what they changed, to test whether a valuation finds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.array_types import Array, Flags
from thresher.errors import InputError
from thresher.inputs.checks import check_count, check_features, check_number
from thresher.inputs.labels import check_labels, class_list, label_array


def flip_labels(y: Any, *, fraction: float, seed: int, classes: Any = None) -> tuple[Array, Flags]:
    """Replace a share of the labels by other classes; return the labels and the mask of those rows.

    Parameters
    ----------
    y
        The labels.
    fraction
        The share of rows to change, between 0 and 1; rounded to a whole number of rows.
    seed
        The same seed flips the same labels to the same classes.
    classes
        All classes. The default is those that occur. Each other class is equally likely to be the
        new label.

    Examples
    --------
    >>> import thresher as th
    >>> labels, flipped = th.flip_labels(["a", "b", "a", "b"], fraction=0.5, seed=0)
    >>> labels.tolist(), flipped.tolist()
    (['b', 'b', 'b', 'b'], [True, False, True, False])
    """
    raw = check_labels("y", y)
    known = class_list(classes, raw)
    codes = known.encode("y", raw)
    if len(known) < 2:
        raise InputError("y has one class: at least two are needed to flip labels (pass classes=)")
    chosen, rng = _choose(len(codes), fraction, seed)
    shift = rng.integers(1, len(known), size=int(chosen.sum()))
    flipped = codes.copy()
    flipped[chosen] = (codes[chosen] + shift) % len(known)
    result = label_array(known.labels)[flipped]
    if isinstance(y, np.ndarray) and np.can_cast(np.min_scalar_type(result), y.dtype):
        result = result.astype(y.dtype)
    return result, chosen


def add_feature_noise(
    X: Any, *, fraction: float, seed: int, scale: float = 1.0
) -> tuple[Array, Flags]:
    """Add normal noise to a share of the rows; return the rows and the mask of those changed.

    The standard deviation of the noise in a column is `scale` times the column's L2 norm over all
    rows. With `scale` 1 this is the noise behind the published tables of noisy-feature detection.

    Parameters
    ----------
    X
        The rows.
    fraction
        The share of rows to change, between 0 and 1; rounded to a whole number of rows.
    seed
        The same seed adds the same noise to the same rows.
    scale
        The strength of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> rows, noised = th.add_feature_noise(np.ones((4, 2)), fraction=0.25, seed=0)
    >>> int(noised.sum()), bool((rows[~noised] == 1).all())
    (1, True)
    """
    array = check_features("X", X)
    if not np.isfinite(array).all():
        raise InputError("X has NaN or infinite values: drop or fill those rows")
    scale = check_number("scale", scale, least=0)
    chosen, rng = _choose(len(array), fraction, seed)
    noised, half = array.copy(), array.dtype == np.float16
    with np.errstate(over="ignore", invalid="ignore"):
        spread = scale * np.sqrt((array.astype(np.float64) ** 2).sum(axis=0))
        noise = rng.standard_normal((int(chosen.sum()), array.shape[1])) * spread
        noised[chosen] = (array[chosen] + noise).astype(array.dtype)
    if not np.isfinite(noised).all():
        way_out = "use X.astype('float32')" if half else "rescale the features"
        raise InputError(f"the noise is beyond the range of {array.dtype}: {way_out}")
    return noised, chosen


def _choose(count: int, fraction: float, seed: int) -> tuple[Flags, np.random.Generator]:
    fraction = check_number("fraction", fraction, least=0, most=1)
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    chosen = np.zeros(count, np.bool_)
    chosen[rng.permutation(count)[: round(fraction * count)]] = True
    return chosen, rng
