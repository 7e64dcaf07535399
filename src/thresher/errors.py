"""The exceptions and warnings of this library.

ThresherError
├── InputError   (also a ValueError)    what was handed in cannot be used
├── BudgetError                         a private release does not fit its ledger
└── ExtraError   (also an ImportError)  an optional dependency is missing

ThresherWarning (a UserWarning)
├── FitWarning                          models failed to fit, or warned
├── LabelWarning                        points and validation set share no label
├── ReachWarning                        no point is near any validation point
└── TwinWarning                         a validation row is also a training row
"""

from __future__ import annotations

import importlib
from types import ModuleType


class ThresherError(Exception):
    """The root of every exception this library raises on purpose."""


class InputError(ThresherError, ValueError):
    """An argument cannot be used; the message says which, why, and the way out."""


class BudgetError(ThresherError):
    """A private release does not fit what is left of its budget."""


class ExtraError(ThresherError, ImportError):
    """A feature needs a package that is not installed."""


class ThresherWarning(UserWarning):
    """The root of every warning: the numbers are right, but maybe not what was meant."""


class FitWarning(ThresherWarning):
    """Some of the models that were trained failed, or had something to say."""


class LabelWarning(ThresherWarning):
    """The points and the validation set have no label in common."""


class ReachWarning(ThresherWarning):
    """No point is within the radius of any validation point, so every value is zero."""


class TwinWarning(ThresherWarning):
    """Some validation rows are exact copies of training rows: a leak."""


def require(module: str, *, purpose: str, extra: str) -> ModuleType:
    """The imported `module`, or an `ExtraError` that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        message = (
            f"{purpose} needs {module.split('.', maxsplit=1)[0]}: pip install 'thresher[{extra}]'"
        )
        raise ExtraError(message) from missing
