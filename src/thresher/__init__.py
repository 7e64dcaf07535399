"""Thresher says what each training point is worth: exactly, fast, and without retraining.

Start with `tknn_shapley`; its result is a `Valuation`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thresher.corrupt import add_feature_noise, flip_labels
from thresher.counts import NeighborCounts
from thresher.errors import (
    BudgetError,
    ExtraError,
    FitWarning,
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
    from thresher.attack.audit import Audit, audit_mechanism, audit_runs
    from thresher.attack.membership import Attack, membership_attack
    from thresher.classifier import TKNNClassifier
    from thresher.engines.scan import Scan
    from thresher.live.store import LiveCounts
    from thresher.privacy.knn import KNNRelease, dp_knn_shapley
    from thresher.privacy.ledger import Ledger
    from thresher.privacy.outcome import Release, SeededRelease
    from thresher.privacy.plan import Plan, plan_release
    from thresher.privacy.release import dp_tknn_shapley
    from thresher.retrain.methods import beta_shapley, data_banzhaf, data_shapley, leave_one_out

__version__ = "0.1.0"

__all__ = [
    "Attack",
    "Audit",
    "Beta",
    "BudgetError",
    "ExtraError",
    "FitWarning",
    "InputError",
    "KNNRelease",
    "LabelWarning",
    "Ledger",
    "LiveCounts",
    "NeighborCounts",
    "Plan",
    "PriceList",
    "RadiusSuggestion",
    "ReachWarning",
    "Release",
    "Scan",
    "SeededRelease",
    "TKNNClassifier",
    "ThresherError",
    "ThresherWarning",
    "TwinWarning",
    "Valuation",
    "add_feature_noise",
    "audit_mechanism",
    "audit_runs",
    "beta_shapley",
    "data_banzhaf",
    "data_shapley",
    "dp_knn_shapley",
    "dp_tknn_shapley",
    "flip_labels",
    "knn_shapley",
    "leave_one_out",
    "membership_attack",
    "plan_release",
    "suggest_radius",
    "tknn_shapley",
    "zero_budget_score",
]

# slow to import, or not needed by all: only when asked for
_LATER = {
    "Attack": "thresher.attack.membership",
    "Audit": "thresher.attack.audit",
    "KNNRelease": "thresher.privacy.knn",
    "Ledger": "thresher.privacy.ledger",
    "LiveCounts": "thresher.live.store",
    "Plan": "thresher.privacy.plan",
    "Release": "thresher.privacy.outcome",
    "Scan": "thresher.engines.scan",
    "SeededRelease": "thresher.privacy.outcome",
    "TKNNClassifier": "thresher.classifier",
    "audit_mechanism": "thresher.attack.audit",
    "audit_runs": "thresher.attack.audit",
    "beta_shapley": "thresher.retrain.methods",
    "data_banzhaf": "thresher.retrain.methods",
    "data_shapley": "thresher.retrain.methods",
    "dp_knn_shapley": "thresher.privacy.knn",
    "dp_tknn_shapley": "thresher.privacy.release",
    "leave_one_out": "thresher.retrain.methods",
    "membership_attack": "thresher.attack.membership",
    "plan_release": "thresher.privacy.plan",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    message = f"module 'thresher' has no attribute {name!r}"
    raise AttributeError(message)
