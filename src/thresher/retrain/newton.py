"""Logistic regression trained to its optimum by our own kernel, starting at the last solution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Flags, Floats, Integers
from thresher.errors import InputError
from thresher.kernels.logistic import train
from thresher.logistic import Solution
from thresher.retrain.utility import NOTHING, Enough, Game, Known, Outcome, Refit

PLAIN: dict[str, tuple[object, ...]] = {
    "class_weight": (None,),
    "dual": (False,),
    "l1_ratio": (None, 0),
    "multi_class": (None, "auto", "deprecated", "multinomial"),
    "penalty": ("l2", "deprecated"),
    "solver": ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"),  # liblinear is another
    "warm_start": (False,),
}
MOST_WEIGHTS = 512  # beyond, a Hessian costs more than many fits of scikit-learn


@dataclass(frozen=True, kw_only=True)
class Newton(Refit):
    """The accuracy of `LogisticRegression` at the optimum of its objective.

    scikit-learn stops just before the optimum (`tol=1e-4`), so single predictions next to the
    decision boundary may differ. If the kernel does not converge, scikit-learn fits the model.

    Columns are centered, which the intercept undoes, and scaled, which the penalties undo. So the
    objective stays the same, but no column is large or far from zero.
    """

    table: Floats  # one column per point, with a row of ones if there is an intercept
    validation: Floats
    penalties: Floats  # of the features' weights

    @classmethod
    def of(cls, game: Game, model: Any) -> Newton:
        """Transpose tables for the kernel; raise unless the kernel can train this model."""
        check_plain(model)
        weights = game.X.shape[1] * (1 if len(game.labels) <= 2 else len(game.labels))
        if weights > MOST_WEIGHTS:
            raise InputError(
                f"accelerate=True is for up to {MOST_WEIGHTS} weights (features times classes), "
                f"got {weights}: leave accelerate out"
            )
        X = game.X.astype(np.float64)
        center = X.mean(axis=0) if model.fit_intercept else np.zeros(X.shape[1])
        scale = np.sqrt(((X - center) ** 2).mean(axis=0))
        scale[scale == 0] = 1.0
        ones = int(bool(model.fit_intercept))
        table, validation = (
            np.vstack([((rows - center) / scale).T, np.ones((ones, len(rows)))])
            for rows in (X, game.V.astype(np.float64))
        )
        penalties = 1 / model.C / scale**2
        return cls(
            game, model, checked=True, table=table, validation=validation, penalties=penalties
        )

    def evaluate(
        self, masks: Iterable[Flags], enough: Enough | None = None, known: Known = NOTHING
    ) -> Outcome:
        """The utility of each coalition, up to the first that is `enough`."""
        del known  # each search starts where the last one ended, so none is left out
        outcome, last = Outcome(), Solution.empty()
        for mask in masks:
            counts = self.game.class_counts(mask)
            utility = self.game.trivial(counts)
            if utility is None:
                last = last.moved_to(np.flatnonzero(counts), len(self.table))
                utility = self._solved(np.flatnonzero(mask), last)
            if utility is not None:
                outcome.add(utility)
            else:
                single = super().evaluate([mask])
                outcome.add(single.utilities[0], failed=single.failed[0])
                outcome.warned += 1
                why = "not accelerated, because Thresher's own fit did not converge"
                more = f"; scikit-learn says: {single.complaint}" if single.complaint else ""
                outcome.complain(RuntimeWarning(why + more))
            if enough is not None and enough(outcome.utilities[-1]):
                break
        return outcome

    def _solved(self, members: Integers, last: Solution) -> float | None:
        game = self.game
        position = np.full(len(game.labels), -1)
        position[last.present] = np.arange(len(last.present))
        last.known = train(
            self.table, position[game.codes], members, self.penalties,
            last.weights, last.factor, last.known,
        )  # fmt: skip
        if not last.known:
            return None
        return float(np.mean(last.predict(self.validation) == game.val_codes))


def check_plain(model: Any) -> None:
    """Raise unless the model has the kernel's objective."""
    from sklearn.linear_model import LogisticRegression

    wanted = "accelerate=True needs a LogisticRegression with an L2 penalty and no class weights"
    if type(model) is not LogisticRegression:
        raise InputError(f"{wanted}, got {type(model).__name__}: leave accelerate out")
    given = model.get_params()
    odd = [name for name, plain in PLAIN.items() if name in given and given[name] not in plain]
    if isinstance(given["C"], bool | str | None) or not 0 < float(given["C"]) < np.inf:
        odd.append("C")
    if odd:
        shown = ", ".join(f"{name}={given[name]!r}" for name in odd)
        raise InputError(f"{wanted}, got {shown}: leave accelerate out")
