"""Tables made messy as tables are, with wrong labels of five kinds; all of it seeded.

Of a table's rows (2,100 at most) two thirds are the points, a ninth are checked validation rows,
and the rest test models. Then

- every column changes its unit: it is multiplied by a power of ten from 0.001 to 1,000,000;
- ten points (one in fifty, if that is fewer) become wild: their numbers are multiplied by -1,000
  to 1,000;
- 3 % of the cells are missing;
- a text column with forty categories, and a column of distinct whole numbers (an id), say nothing;
- 2 % of the points become copies of others.

Labels are made wrong last, in the points alone, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict
from table_sources import load

ROWS, SEED = 2100, 19
COPIES, WILD, MISSING, CATEGORIES = 0.02, 10, 0.03, 40
NOISES = ("2 %", "8 %", "20 %", "one class 10 %", "similar 10 %")


@dataclass(frozen=True)
class Messy:
    """A messy table whose labels are right: points, checked validation rows, test rows."""

    name: str
    frame: pd.DataFrame
    labels: np.ndarray
    points: slice
    checked: slice
    test: slice

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1

    def noisy(self, kind: str) -> np.ndarray:
        """The labels of the points, some of them wrong."""
        right = self.labels[self.points]
        rng = np.random.default_rng([SEED, NOISES.index(kind)])
        share = float(kind.split()[-2]) / 100
        if "class" in kind:
            chosen, other = self._most_confused
            candidates, new = np.flatnonzero(right == chosen), np.full(len(right), other)
        elif "similar" in kind:
            candidates, new = np.arange(len(right)), self._similar.argmax(axis=1)[right]
        else:
            candidates = np.arange(len(right))
            new = (right + rng.integers(1, self.classes, len(right))) % self.classes
        wrong = rng.choice(candidates, max(3, round(share * len(candidates))), replace=False)
        found = right.copy()
        found[wrong] = new[wrong]
        return found

    @cached_property
    def _similar(self) -> np.ndarray:
        """How much a forest that knows the right labels mistakes each class for each other."""
        X, y = tree_array(self.frame[self.points]), self.labels[self.points]
        forest = RandomForestClassifier(100, random_state=SEED, n_jobs=2)
        shares = cross_val_predict(forest, X, y, cv=3, method="predict_proba")
        found = np.array([shares[y == code].mean(axis=0) for code in range(self.classes)])
        np.fill_diagonal(found, -1)
        return found

    @property
    def _most_confused(self) -> tuple[int, int]:
        return np.unravel_index(self._similar.argmax(), self._similar.shape)


def messy(name: str) -> Messy:
    """The messy table that is made of the one of this name."""
    frame, labels = load(name)
    rng = np.random.default_rng([SEED, *name.encode()])
    rows = rng.permutation(len(frame))[:ROWS]
    frame, labels = frame.iloc[rows].reset_index(drop=True), labels[rows]
    points, checked = slice(0, 2 * len(rows) // 3), slice(2 * len(rows) // 3, 7 * len(rows) // 9)
    numbers = frame.select_dtypes("number").columns
    frame[numbers] = frame[numbers].astype(np.float64) * 10.0 ** rng.integers(-3, 7, len(numbers))
    wild = rng.choice(points.stop, min(WILD, points.stop // 50), replace=False)
    frame.loc[wild, numbers] *= rng.uniform(-1000, 1000, (len(wild), len(numbers)))
    frame = frame.mask(rng.random(frame.shape) < MISSING).rename(columns="f{}".format)
    useless = {
        "category": [f"c{code}" for code in rng.integers(0, CATEGORIES, len(frame))],
        "id": 10_000 + rng.permutation(len(frame)),
    }
    frame = pd.concat([frame, pd.DataFrame(useless)], axis=1)
    copied, original = rng.permutation(points.stop)[: 2 * round(COPIES * points.stop)].reshape(
        2, -1
    )
    frame.iloc[copied], labels[copied] = frame.iloc[original].to_numpy(), labels[original]
    return Messy(name, frame, labels, points, checked, slice(checked.stop, len(rows)))


def tree_array(frame: pd.DataFrame) -> np.ndarray:
    """Numbers for trees: categories in their order, missing cells NaN."""
    columns = [
        column
        if column.dtype.kind in "fiu"
        else column.astype("category").cat.codes.where(column.notna())
        for _, column in frame.items()
    ]
    return np.column_stack(columns).astype(np.float32)


def linear_array(frame: pd.DataFrame) -> np.ndarray:
    """Numbers for linear models and distances: medians for missing cells, one-hot categories.

    Numbers are cut off at 1 % and 99 % before they are scaled, or wild rows would rule the scale.
    """
    numbers = frame.select_dtypes("number")
    numbers = numbers.clip(numbers.quantile(0.01), numbers.quantile(0.99), axis=1)
    filled = numbers.fillna(numbers.median().fillna(0))
    scaled = (filled - filled.mean()) / filled.std().replace(0, 1)
    texts = frame.select_dtypes(exclude="number")
    return np.hstack([scaled.to_numpy(), pd.get_dummies(texts, dummy_na=True).to_numpy(np.float64)])
