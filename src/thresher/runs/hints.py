"""What a user should know about the data before trusting their values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.runs.settings import Settings
from thresher.tables.cells import MISSING
from thresher.tables.encoding import Encoder

APART = 100.0  # the most by which deviations of columns may differ without a word
NAMES = 5  # labels that are named


def label_hints(points: Sequence[Hashable], validation: Sequence[Hashable]) -> list[str]:
    """What is odd about the labels.

    Examples
    --------
    >>> label_hints(["cat", "dog"], ["cat", "dog"]), label_hints(["cat", "Cat "], ["cat"])[0]
    ([], "labels differ in capitals or spaces only: 'cat', 'Cat '")
    """
    ours, theirs = dict.fromkeys(points), dict.fromkeys(validation)
    found = []
    alike = _look_alikes([*ours, *(label for label in theirs if label not in ours)])
    if alike:
        found.append(f"labels differ in capitals or spaces only: {_listed(alike)}")
    words = [x for x in ours if isinstance(x, str) and x.strip().lower() in MISSING]
    if words:
        found.append(f"labels are taken for classes that may stand for none: {_listed(words)}")
    for mine, other, who in ((ours, theirs, "validation point"), (theirs, ours, "point")):
        lacking = [label for label in mine if label not in other]
        if lacking:
            found.append(f"no {who} has the label{'s' * (len(lacking) > 1)} {_listed(lacking)}")
    if len({**ours, **theirs}) == 1:
        found.append("there is one class only, so that no label can be wrong and no value tells")
    return found


def row_hints(X: NDArray[np.float64], encoder: Encoder, settings: Settings) -> list[str]:
    """What is odd about the features."""
    if X.shape[1] == 1 and settings.metric == "cosine":
        return ["one feature has two directions only: use --metric euclidean"]
    unlike = _unlike_columns(X[:, : len(encoder.names)])
    if settings.standardize or unlike is None:
        return []
    low, high = (encoder.names[place] for place in unlike)
    return [
        f"columns differ in scale, from {low!r} to {high!r}: a few of them make up all distances; "
        "--standardize brings them to one scale"
    ]


def _look_alikes(labels: Sequence[Any]) -> list[str]:
    plain: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            plain.setdefault(label.strip().lower(), []).append(label)
    return [label for same in plain.values() if len(same) > 1 for label in same]


def _listed(labels: Sequence[Hashable]) -> str:
    more = f" and {len(labels) - NAMES} more" if len(labels) > NAMES else ""
    return ", ".join(map(repr, labels[:NAMES])) + more


def _unlike_columns(X: NDArray[np.float64]) -> tuple[int, int] | None:
    """Two columns whose deviations are far apart, the smaller one first; None if all are alike."""
    spread = X.std(axis=0)
    varied = np.flatnonzero(spread > 0)
    if len(varied) < 2:
        return None
    low, high = varied[spread[varied].argmin()], varied[spread[varied].argmax()]
    return (int(low), int(high)) if spread[high] > APART * spread[low] else None
