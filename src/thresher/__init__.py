"""Thresher says what each training point is worth: exactly, fast, and without retraining.

Start with `tknn_shapley`; its result is a `Valuation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thresher.corrupt import add_feature_noise, flip_labels
from thresher.counts import NeighborCounts
from thresher.errors import (
    BudgetError,
    ExtraError,
    InputError,
    LabelWarning,
    ReachWarning,
    ThresherError,
    ThresherWarning,
    TwinWarning,
)
from thresher.nearest import knn_shapley
from thresher.price_list import PriceList
from thresher.prices import Beta
from thresher.radius import RadiusSuggestion, suggest_radius
from thresher.threshold import tknn_shapley, zero_budget_score
from thresher.valuation import Valuation

if TYPE_CHECKING:
    from thresher.classifier import TKNNClassifier

__version__ = "0.1.0"

__all__ = [
    "Beta",
    "BudgetError",
    "ExtraError",
    "InputError",
    "LabelWarning",
    "NeighborCounts",
    "PriceList",
    "RadiusSuggestion",
    "ReachWarning",
    "TKNNClassifier",
    "ThresherError",
    "ThresherWarning",
    "TwinWarning",
    "Valuation",
    "add_feature_noise",
    "flip_labels",
    "knn_shapley",
    "suggest_radius",
    "tknn_shapley",
    "zero_budget_score",
]


def __getattr__(name: str) -> Any:
    if name == "TKNNClassifier":  # scikit-learn takes a second to import: only when asked for
        from thresher.classifier import TKNNClassifier

        return TKNNClassifier
    message = f"module 'thresher' has no attribute {name!r}"
    raise AttributeError(message)
