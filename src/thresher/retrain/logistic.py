"""Logistic regression trained to its optimum by our own kernel, from the last solution on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.kernels.logistic import right_predictions, train
from thresher.retrain.coalitions import Mask
from thresher.retrain.utility import Enough, Game, Outcome, Refit

PLAIN = {"class_weight": None, "dual": False, "warm_start": False, "l1_ratio": (None, 0, 0.0)}


@dataclass(frozen=True)
class Newton:
    """The accuracy of `LogisticRegression` at the optimum of its objective.

    scikit-learn stops short of it (`tol=1e-4`), so that single predictions next to the decision
    boundary may differ. Where the kernel does not converge the model is fitted by scikit-learn.
    """

    game: Game
    model: Any
    table: NDArray[np.float64]  # one column a point, with a row of ones if there is an intercept
    validation: NDArray[np.float64]

    @classmethod
    def of(cls, game: Game, model: Any) -> Newton:
        """Transposed tables for the kernel; an error if it is not this model that is asked for."""
        check_plain(model)
        tables = [_transposed(rows, intercept=model.fit_intercept) for rows in (game.X, game.V)]
        return cls(game, model, *tables)

    @property
    def points(self) -> int:
        """How many points there are."""
        return self.game.points

    @property
    def none(self) -> float:
        """The accuracy of guessing."""
        return self.game.none

    def evaluate(self, masks: Iterable[Mask], enough: Enough | None = None) -> Outcome:
        """The utility of each coalition, up to the first that is `enough`."""
        outcome, last = Outcome(), _Solution.empty()
        for mask in masks:
            counts = self.game.class_counts(mask)
            present = np.flatnonzero(counts)
            if len(present) == 0:
                utility = self.none
            elif len(present) == 1:
                utility = self.game.constant(int(present[0]))
            else:
                last = last.moved_to(present, len(self.table))
                utility = self._solved(np.flatnonzero(mask), last)
                if not last.known:
                    single = Refit(self.game, self.model).evaluate([mask])
                    utility = single.utilities[0]
                    outcome.failed += single.failed
                    outcome.complaint = outcome.complaint or single.complaint
            outcome.utilities.append(utility)
            if enough is not None and enough(utility):
                break
        return outcome

    def _solved(self, members: NDArray[np.int64], last: _Solution) -> float:
        game, width = self.game, self.game.X.shape[1]
        position = np.full(len(game.labels), -1)
        position[last.present] = np.arange(len(last.present))
        last.known = train(
            self.table, position[game.codes], members, 1 / self.model.C, width,
            last.weights, last.factor, last.known,
        )  # fmt: skip
        right = right_predictions(self.validation, game.val_codes, last.present, last.weights)
        return float(right / len(game.val_codes))


@dataclass
class _Solution:
    """Where the search for the next solution starts."""

    present: NDArray[np.int64]
    weights: NDArray[np.float64]
    factor: NDArray[np.float64]
    known: bool = False

    @classmethod
    def empty(cls) -> _Solution:
        return cls(np.empty(0, np.int64), np.empty((0, 0)), np.empty((0, 0)))

    def moved_to(self, present: NDArray[np.int64], columns: int) -> _Solution:
        """The same if it is of these classes, else one at zero."""
        if self.known and np.array_equal(present, self.present):
            return self
        rows = 1 if len(present) == 2 else len(present)
        return _Solution(present, np.zeros((rows, columns)), np.zeros((rows * columns,) * 2))


def check_plain(model: Any) -> None:
    """Raise unless the kernel's objective is the model's."""
    from sklearn.linear_model import LogisticRegression

    wanted = "accelerate=True needs a LogisticRegression with an L2 penalty and no class weights"
    if type(model) is not LogisticRegression:
        raise InputError(f"{wanted}, got {type(model).__name__}: leave accelerate out")
    given = model.get_params()
    odd = {name: given[name] for name, plain in PLAIN.items() if given.get(name) not in _all(plain)}
    if given.get("penalty", "l2") not in {"l2", "deprecated"}:
        odd["penalty"] = given["penalty"]
    if given["solver"] == "liblinear":  # it penalizes the intercept too
        odd["solver"] = "liblinear"
    if odd or not np.isfinite(given["C"]) or given["C"] <= 0:
        shown = ", ".join(f"{name}={entry!r}" for name, entry in (odd or {"C": given["C"]}).items())
        raise InputError(f"{wanted}, got {shown}: leave accelerate out")


def _all(plain: object) -> tuple[object, ...]:
    return plain if isinstance(plain, tuple) else (plain,)


def _transposed(rows: NDArray[Any], *, intercept: bool) -> NDArray[np.float64]:
    table = np.ones((rows.shape[1] + bool(intercept), len(rows)))
    table[: rows.shape[1]] = rows.T
    return table
