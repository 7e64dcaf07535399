"""Solutions of logistic regressions, from which the search for the next one starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.kernels.logistic import fill_scores


@dataclass
class Solution:
    """The weights for each class, and what Newton's method knows at them."""

    present: Integers
    weights: Floats
    factor: Floats
    known: bool = False

    @classmethod
    def empty(cls) -> Solution:
        """No solution yet."""
        return cls(np.empty(0, np.int64), np.empty((0, 0)), np.empty((0, 0)))

    def predict(self, table: Floats) -> Integers:
        """Predict the class code of each column of a table."""
        scores = np.empty((len(self.weights), table.shape[1]))
        fill_scores(table, self.weights, scores)
        best = (scores[0] > 0).astype(np.int64) if len(scores) == 1 else scores.argmax(axis=0)
        return self.present[best]

    def copy(self) -> Solution:
        """A copy that can be changed without changing this one."""
        return Solution(self.present, self.weights.copy(), self.factor.copy(), self.known)

    def moved_to(self, present: Integers, columns: int) -> Solution:
        """Return this solution if it has these classes; otherwise one at zero."""
        if self.known and np.array_equal(present, self.present):
            return self
        rows = 1 if len(present) == 2 else len(present)
        return Solution(present, np.zeros((rows, columns)), np.zeros((rows * columns,) * 2))
