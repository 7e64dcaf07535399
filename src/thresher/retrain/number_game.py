"""The utility of a coalition where labels are numbers: minus the squared error of a model.

It is the mean over the validation set. Nobody at all predicts a public number, points of one target
predict that, and a model that cannot be fitted is replaced by the mean target of its points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.retrain.coalitions import Mask

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NumberGame:
    """Points, validation set and their targets, as plain arrays that workers can be sent."""

    X: NDArray[Any]
    y: Floats
    V: NDArray[Any]
    y_val: Floats
    empty: float

    @property
    def points(self) -> int:
        """How many points there are."""
        return len(self.y)

    @property
    def none(self) -> float:
        """The utility without points."""
        return self.constant(self.empty)

    def constant(self, prediction: float) -> float:
        """The utility of always predicting one number."""
        return -float(np.mean((self.y_val - prediction) ** 2))

    def without_fit(self, mask: Mask) -> float | None:
        """The utility of a coalition, where none has to be trained."""
        targets = self.y[mask]
        if not len(targets):
            return self.none
        return self.constant(float(targets[0])) if (targets == targets[0]).all() else None

    def fallback(self, mask: Mask) -> float:
        """The utility of predicting the mean, where a fit failed."""
        return self.constant(float(self.y[mask].mean()))

    def shown(self, mask: Mask) -> Floats:
        """The targets of a coalition."""
        return self.y[mask]

    def score(self, found: NDArray[Any], *, checked: bool) -> float:
        """The utility of predictions, or an error where they are no finite numbers."""
        del checked
        if found.dtype.kind not in "fiu" or not np.isfinite(found).all():
            raise ValueError("predict returned numbers that are not finite")
        return -float(np.mean((self.y_val - found) ** 2))

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Everything that utilities depend on."""
        return self.X, self.y, self.V, self.y_val, np.array([self.empty])
