"""The utility of a coalition: the accuracy, on the validation set, of a model trained on it.

Never a crash, always a number: nobody at all guesses (1/C), points of one class predict that class,
and a model that cannot be fitted is replaced by the class that most of its points carry.
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
    """The utilities of a block of coalitions, and what the fits had to say."""

    utilities: list[float] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)  # for each utility, whether its fit failed
    warned: int = 0
    complaint: str = ""  # the first error or warning

    def add(self, utility: float, *, failed: bool = False) -> None:
        """One more utility."""
        self.utilities.append(utility)
        self.failed.append(failed)

    def complain(self, complaint: object) -> None:
        """Keep the first complaint."""
        self.complaint = self.complaint or f"{type(complaint).__name__}: {complaint}"


@dataclass(frozen=True)
class Enough:
    """When a walk may stop: utility less than `gap` away from that of all points."""

    full: float
    gap: float

    def __call__(self, utility: float) -> bool:
        """Whether this utility is."""
        return abs(self.full - utility) < self.gap


@dataclass(frozen=True)
class Game:
    """Points, validation set and their class codes, as plain arrays that workers can be sent."""

    X: Array
    codes: Integers
    V: Array
    val_codes: Integers
    labels: Array  # what a model is shown in the place of a code

    @property
    def none(self) -> float:
        """The accuracy of guessing."""
        return 1 / len(self.labels)

    def class_counts(self, mask: Flags) -> Integers:
        """How many members carry each class."""
        return np.bincount(self.codes[mask], minlength=len(self.labels))

    def trivial(self, counts: Integers) -> float | None:
        """The utility of a coalition with these class counts, where none has to be trained."""
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
        """The accuracy of the most frequent class, where a fit failed."""
        return self.constant(int(self.class_counts(mask).argmax()))

    def shown(self, mask: Flags) -> Array:
        """The labels of a coalition, as a model is shown them."""
        return self.labels[self.codes[mask]]

    def score(self, found: Array, *, checked: bool) -> float:
        """The accuracy of predictions, or an error where they are no labels."""
        if not checked and not set(found.tolist()) & set(self.labels.tolist()):
            one, other = found.tolist()[0], self.labels.tolist()[0]
            raise ValueError(f"predict returned {one!r}, but labels are like {other!r}")
        return float(np.mean(found == self.labels[self.val_codes]))


@dataclass(frozen=True)
class NumberGame:
    """Points, validation set and their targets, as plain arrays that workers can be sent."""

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
        """The utility of predicting the mean, where a fit failed."""
        return self.constant(float(self.y[mask].mean()))

    def shown(self, mask: Flags) -> Floats:
        """The targets of a coalition."""
        return self.y[mask]

    def score(self, found: Array, *, checked: bool) -> float:
        """The utility of predictions, or an error where they are no finite numbers."""
        del checked
        if found.dtype.kind not in "fiu" or not np.isfinite(found).all():
            raise ValueError("predict returned numbers that are not finite")
        return -float(np.mean((self.y_val - found) ** 2))


@dataclass(frozen=True)
class Refit:
    """The utility of a scikit-learn model, fitted anew for every coalition.

    Once the model was `checked` on all points scikit-learn need not check its settings again.
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

        Utilities that are `known`, by position, are not computed again.
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
        """The utility of the model fitted on these points, or whatever it raises."""
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
    """One BLAS thread, and a list of the warnings heard; for the main thread of a process only.

    Both are settings of the whole process, which threads of one process must not change.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with one_blas_thread(), warnings.catch_warnings(record=True, action="always") as heard:
        yield heard


def check_model(model: object, seed: int, *, numbers: bool = False) -> Any:
    """A copy of the classifier, `LogisticRegression()` if None, that gives the same fit every time.

    For `numbers` it is a regressor, `Ridge()` if None. Wherever it would draw a random state of its
    own it gets the seed (below 2**32, as models do).
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
