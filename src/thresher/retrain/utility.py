"""The utility of a coalition: the accuracy, on the validation set, of a model trained on it.

Never a crash, always a number: nobody at all guesses (1/C), points of one class predict that class,
and a model that cannot be fitted is replaced by the class that most of its points carry.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.retrain.coalitions import Mask

Codes = NDArray[np.int64]


@dataclass
class Outcome:
    """The utilities of a block of coalitions, and what the fits had to say."""

    utilities: list[float] = field(default_factory=list)
    failed: int = 0
    warned: int = 0
    complaint: str = ""  # the first error or warning

    def note(self, complaint: object, *, failed: bool) -> None:
        """Count a fit that failed, or one that warned."""
        self.failed += failed
        self.warned += not failed
        self.complaint = self.complaint or f"{type(complaint).__name__}: {complaint}"


@dataclass(frozen=True)
class Enough:
    """When a walk may stop: utility less than `gap` away from that of all points."""

    full: float
    gap: float

    def __call__(self, utility: float) -> bool:
        """Whether this utility is."""
        return abs(self.full - utility) < self.gap


class Utility(Protocol):
    """A number for every coalition, in blocks."""

    @property
    def points(self) -> int:
        """How many players there are."""

    @property
    def none(self) -> float:
        """The utility of the empty coalition."""

    def evaluate(self, masks: Iterable[Mask], enough: Enough | None = None) -> Outcome:
        """The utility of each coalition, up to the first that is `enough`."""


@dataclass(frozen=True)
class Game:
    """Points, validation set and their class codes, as plain arrays that workers can be sent."""

    X: NDArray[Any]
    codes: Codes
    V: NDArray[Any]
    val_codes: Codes
    labels: NDArray[Any]  # what a model is shown in the place of a code

    @property
    def points(self) -> int:
        """How many points there are."""
        return len(self.codes)

    @property
    def none(self) -> float:
        """The accuracy of guessing."""
        return 1 / len(self.labels)

    def class_counts(self, mask: Mask) -> Codes:
        """How many members carry each class."""
        return np.bincount(self.codes[mask], minlength=len(self.labels))

    def constant(self, code: int) -> float:
        """The accuracy of always predicting one class."""
        return float(np.mean(self.val_codes == code))


@dataclass(frozen=True)
class Refit:
    """The accuracy of a scikit-learn classifier, fitted anew for every coalition.

    Once the model was `checked` on all points scikit-learn need not check numbers and settings.
    """

    game: Game
    model: Any
    checked: bool = False

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
        from sklearn import config_context

        outcome = Outcome()
        trust = {"assume_finite": True, "skip_parameter_validation": True} if self.checked else {}
        with config_context(**trust), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for mask in masks:
                outcome.utilities.append(self._utility(mask, outcome))
                if heard:
                    outcome.note(heard[0].message, failed=False)
                    heard.clear()
                if enough is not None and enough(outcome.utilities[-1]):
                    break
        return outcome

    def _utility(self, mask: Mask, outcome: Outcome) -> float:
        counts = self.game.class_counts(mask)
        present = np.flatnonzero(counts)
        if len(present) == 0:
            return self.none
        if len(present) == 1:
            return self.game.constant(int(present[0]))
        try:
            return self.fitted(mask)
        except Exception as failure:  # noqa: BLE001 - whatever a model raises, the game goes on
            outcome.note(failure, failed=True)
            return self.game.constant(int(counts.argmax()))

    def fitted(self, mask: Mask) -> float:
        """The accuracy of the model fitted on these points, or whatever it raises."""
        from sklearn.base import clone

        game = self.game
        model = clone(self.model).fit(game.X[mask], game.labels[game.codes[mask]])
        return float(np.mean(model.predict(game.V) == game.labels[game.val_codes]))


def check_model(model: object, seed: int) -> Any:
    """A copy of the classifier, `LogisticRegression()` if None, that gives the same fit every time.

    Wherever it would draw a random state of its own it gets the seed.
    """
    from sklearn.base import clone, is_classifier
    from sklearn.linear_model import LogisticRegression

    if model is None:
        return LogisticRegression()
    wanted = "model must be a scikit-learn classifier, such as LogisticRegression()"
    if isinstance(model, type):
        raise InputError(f"{wanted}, got the class {model.__name__}: add the parentheses")
    try:
        copy: Any = clone(model)
        usable = is_classifier(copy) and hasattr(copy, "predict")
    except (AttributeError, RuntimeError, TypeError, ValueError):
        usable = False
    if not usable:
        raise InputError(f"{wanted}, got {model!r}")
    states = {
        name: seed
        for name, entry in copy.get_params().items()
        if entry is None and name.split("__")[-1] == "random_state"
    }
    return copy.set_params(**states)


def model_text(model: object) -> str:
    """The model in words, the same in every process."""
    parameters: dict[str, Any] = getattr(model, "get_params", dict)()
    written = f"{type(model).__module__}.{type(model).__qualname__}({parameters})"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", re.sub(r"\s+", " ", written))
