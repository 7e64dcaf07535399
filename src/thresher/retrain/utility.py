"""The utility of a coalition: the accuracy, on the validation set, of a model trained on it.

It is always a number and never an error. A coalition without points guesses (1/C), and points of
one class predict that class. If a model cannot be fitted, the most frequent class of its points is
predicted.
"""

from __future__ import annotations

import contextlib
import re
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers
from thresher.errors import InputError
from thresher.threads import one_blas_thread

INTERRUPTED = "interrupted by user"  # what a model says that takes Ctrl-C for the end of training

Known = Mapping[int, tuple[float, bool]]  # by position: the utility, and whether its fit failed
NOTHING: Known = {}


@dataclass
class Outcome:
    """The utilities of a block of coalitions, and failures and warnings of the fits."""

    utilities: list[float] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)  # for each utility, whether its fit failed
    warned: int = 0
    complaint: str = ""  # the first error or warning

    def add(self, utility: float, *, failed: bool = False) -> None:
        """Add one utility."""
        self.utilities.append(utility)
        self.failed.append(failed)

    def complain(self, complaint: object) -> None:
        """Keep the first complaint."""
        self.complaint = self.complaint or f"{type(complaint).__name__}: {complaint}"


@dataclass(frozen=True)
class Enough:
    """When a walk may stop: if its utility is less than `gap` away from that of all points."""

    full: float
    gap: float

    def __call__(self, utility: float) -> bool:
        """Whether this utility is close enough."""
        return abs(self.full - utility) < self.gap


@dataclass(frozen=True)
class Game:
    """Points, validation set and their class codes, as plain arrays that can be sent to workers."""

    X: Array
    codes: Integers
    V: Array
    val_codes: Integers
    labels: Array  # what a model is shown in the place of a code

    @property
    def none(self) -> float:
        """The utility without points: the accuracy of guessing."""
        return 1 / len(self.labels)

    def class_counts(self, mask: Flags) -> Integers:
        """How many members have each class."""
        return np.bincount(self.codes[mask], minlength=len(self.labels))

    def trivial(self, counts: Integers) -> float | None:
        """The utility of a coalition with these class counts; None if a model has to be trained."""
        present = np.flatnonzero(counts)
        if len(present) == 0:
            return self.none
        return self.constant(int(present[0])) if len(present) == 1 else None

    def constant(self, code: int) -> float:
        """The accuracy of always predicting one class."""
        return float(np.mean(self.val_codes == code))

    def without_fit(self, mask: Flags) -> float | None:
        """The utility of a coalition, where none has to be trained."""
        return self.trivial(self.class_counts(mask))

    def fallback(self, mask: Flags) -> float:
        """The accuracy of the most frequent class, for a coalition whose fit failed."""
        return self.constant(int(self.class_counts(mask).argmax()))

    def shown(self, mask: Flags) -> Array:
        """The labels of a coalition, as a model sees them."""
        return self.labels[self.codes[mask]]

    def score(self, found: Array, *, checked: bool) -> float:
        """The accuracy of predictions; raise if they are not labels."""
        if not checked and not set(found.tolist()) & set(self.labels.tolist()):
            one, other = found.tolist()[0], self.labels.tolist()[0]
            raise ValueError(f"predict returned {one!r}, but labels are like {other!r}")
        return float(np.mean(found == self.labels[self.val_codes]))


@dataclass(frozen=True)
class NumberGame:
    """Points, validation set and their targets, as plain arrays that can be sent to workers."""

    X: Array
    y: Floats
    V: Array
    y_val: Floats
    empty: float

    @property
    def none(self) -> float:
        """The utility without points."""
        return self.constant(self.empty)

    def constant(self, prediction: float) -> float:
        """The utility of always predicting one number."""
        return -float(np.mean((self.y_val - prediction) ** 2))

    def without_fit(self, mask: Flags) -> float | None:
        """The utility of a coalition, where none has to be trained."""
        targets = self.y[mask]
        if not len(targets):
            return self.none
        return self.constant(float(targets[0])) if (targets == targets[0]).all() else None

    def fallback(self, mask: Flags) -> float:
        """The utility of predicting the mean, for a coalition whose fit failed."""
        return self.constant(float(self.y[mask].mean()))

    def shown(self, mask: Flags) -> Floats:
        """The targets of a coalition."""
        return self.y[mask]

    def score(self, found: Array, *, checked: bool) -> float:
        """The utility of predictions; raise if they are not finite numbers."""
        del checked
        if found.dtype.kind not in "fiu" or not np.isfinite(found).all():
            raise ValueError("predict returned numbers that are not finite")
        return -float(np.mean((self.y_val - found) ** 2))


@dataclass(frozen=True)
class Refit:
    """The utility of a scikit-learn model, fitted again for every coalition.

    Once the model was `checked` on all points, scikit-learn does not check its settings again.
    """

    game: Any  # a `Game`, or a `NumberGame`
    model: Any
    checked: bool = False

    @property
    def points(self) -> int:
        """How many points there are."""
        return len(self.game.X)

    def evaluate(
        self, masks: Iterable[Flags], enough: Enough | None = None, known: Known = NOTHING
    ) -> Outcome:
        """The utility of each coalition, up to the first that is `enough`.

        Utilities that are already `known`, by position, are not computed again.
        """
        from sklearn import config_context

        outcome = Outcome()
        with config_context(skip_parameter_validation=self.checked), _alone() as heard:
            for position, mask in enumerate(masks):
                if position in known:
                    utility, failed = known[position]
                    outcome.add(utility, failed=failed)
                else:
                    self._add(mask, outcome)
                if heard:
                    if INTERRUPTED in str(heard[0].message).lower():
                        raise KeyboardInterrupt
                    outcome.warned += 1
                    outcome.complain(heard[0].message)
                    heard.clear()
                if enough is not None and enough(outcome.utilities[-1]):
                    break
        return outcome

    def _add(self, mask: Flags, outcome: Outcome) -> None:
        known = self.game.without_fit(mask)
        if known is not None:
            outcome.add(known)
            return
        try:
            outcome.add(self.fitted(mask))
        except Exception as failure:  # noqa: BLE001 - whatever a model raises, the game goes on
            outcome.add(self.game.fallback(mask), failed=True)
            outcome.complain(failure)

    def fitted(self, mask: Flags) -> float:
        """The utility of the model fitted on these points; its errors are passed on."""
        from sklearn.base import clone

        game = self.game
        model = clone(self.model).fit(game.X[mask], game.shown(mask))
        found = np.asarray(model.predict(game.V))
        if found.shape == (len(game.V), 1):
            found = found[:, 0]
        if found.shape != (len(game.V),):
            raise ValueError(f"predict returned shape {found.shape} for {len(game.V)} rows")
        return float(game.score(found, checked=self.checked))


@contextlib.contextmanager
def _alone() -> Iterator[list[Any]]:
    """Use one BLAS thread, and record warnings, but only in the main thread of a process.

    Both are settings of the whole process, which threads of one process must not change.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with one_blas_thread(), warnings.catch_warnings(record=True, action="always") as heard:
        yield heard


def check_model(model: object, seed: int, *, numbers: bool = False) -> Any:
    """A copy of the classifier (`LogisticRegression()` if None) that gives the same fit every time.

    For `numbers`, it is a regressor (`Ridge()` if None). Every random state that is not set gets
    the seed (below 2**32, as models require).
    """
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.linear_model import LogisticRegression, Ridge

    if model is None:
        return Ridge() if numbers else LogisticRegression()
    kind = "regressor, such as Ridge()" if numbers else "classifier, such as LogisticRegression()"
    wanted = f"model must be a scikit-learn {kind}"
    fits = is_regressor if numbers else is_classifier
    if isinstance(model, type):
        raise InputError(f"{wanted}, got the class {model.__name__}: add the parentheses")
    try:
        copy: Any = clone(model)
        usable = fits(copy) and hasattr(copy, "predict")
    except (AttributeError, RuntimeError, TypeError, ValueError):
        usable = False
    if not usable:
        raise InputError(f"{wanted}, got {model!r}")
    states = {
        name: seed % 2**32
        for name, entry in copy.get_params().items()
        if entry is None and name.split("__")[-1] == "random_state"
    }
    return copy.set_params(**states)


def model_identity(model: Any) -> dict[str, str]:
    """The model in words and as a hash of its settings: the same in every process."""
    import joblib

    text = re.sub(r"\s+", " ", f"{type(model).__module__}.{type(model).__qualname__} {model!r}")
    try:
        settings = joblib.hash(model.get_params())
    except Exception as unfit:
        raise InputError(
            "checkpoint needs a model whose settings can be stored: use functions of a module "
            f"instead of lambdas ({type(unfit).__name__}: {unfit})"
        ) from unfit
    return {"model": re.sub(r" at 0x[0-9a-fA-F]+", "", text), "model's settings": settings}
