"""Thresher says what each training point is worth: exactly, fast, and without retraining.

Start with `tknn_shapley`; its result is a `Valuation`.
"""

from __future__ import annotations

from importlib import import_module

from thresher.errors import (
    BudgetError,
    ExtraError,
    FitWarning,
    InputError,
    LabelWarning,
    ReachWarning,
    ScaleWarning,
    ThresherError,
    ThresherWarning,
    TwinWarning,
)
from thresher.hooks import lend_pages as _lend_pages
from thresher.lazy_names import lazy_names as _lazy_names
from thresher.version import __version__ as __version__

TYPE_CHECKING = False  # without the time that it takes to import `typing`
if TYPE_CHECKING:
    from typing import Any

    from thresher.attack.audit import Audit, audit_mechanism, audit_runs
    from thresher.attack.membership import Attack, membership_attack
    from thresher.classifier import TKNNClassifier
    from thresher.corrupt import add_feature_noise, flip_labels
    from thresher.counts import NeighborCounts
    from thresher.explained import explain
    from thresher.findings import Findings
    from thresher.forest import forest_shapley, leaf_shapley
    from thresher.games.semivalues import Beta, Calibrated
    from thresher.growth import grow_forest
    from thresher.knn import knn_shapley
    from thresher.leaf_findings import forest_findings
    from thresher.live.store import LiveCounts
    from thresher.neighbors.forests import Forest
    from thresher.owner_valuation import OwnerValuation
    from thresher.owners import owner_shapley
    from thresher.passes.dask_valuation import DaskValuation
    from thresher.payouts.payout import payout
    from thresher.payouts.private import PrivatePayout, private_payout
    from thresher.payouts.statement import Payout
    from thresher.price_list import PriceList
    from thresher.privacy.dp_knn import KNNRelease, SeededKNNRelease, dp_knn_shapley
    from thresher.privacy.dp_tknn import dp_tknn_shapley
    from thresher.privacy.ledger import Ledger
    from thresher.privacy.plan import Plan, plan_release
    from thresher.privacy.release import Release, SeededRelease
    from thresher.radius import RadiusSuggestion, suggest_radius
    from thresher.retrain.methods import beta_shapley, data_banzhaf, data_shapley, leave_one_out
    from thresher.tables.file_scan import Scan
    from thresher.target_findings import TargetFindings
    from thresher.tknn import tknn_shapley, zero_budget_score
    from thresher.valuation import Valuation

__all__ = [
    "Attack",
    "Audit",
    "Beta",
    "BudgetError",
    "Calibrated",
    "DaskValuation",
    "ExtraError",
    "Findings",
    "FitWarning",
    "Forest",
    "InputError",
    "KNNRelease",
    "LabelWarning",
    "Ledger",
    "LiveCounts",
    "NeighborCounts",
    "OwnerValuation",
    "Payout",
    "Plan",
    "PriceList",
    "PrivatePayout",
    "RadiusSuggestion",
    "ReachWarning",
    "Release",
    "ScaleWarning",
    "Scan",
    "SeededKNNRelease",
    "SeededRelease",
    "TKNNClassifier",
    "TargetFindings",
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
    "explain",
    "flip_labels",
    "forest_findings",
    "forest_shapley",
    "grow_forest",
    "knn_shapley",
    "leaf_shapley",
    "leave_one_out",
    "membership_attack",
    "owner_shapley",
    "payout",
    "plan_release",
    "private_payout",
    "suggest_radius",
    "tknn_shapley",
    "zero_budget_score",
]

# slow to import: only when asked for, so that the command is there at once
_LATER = {
    "Attack": "thresher.attack.membership",
    "Audit": "thresher.attack.audit",
    "Beta": "thresher.games.semivalues",
    "Calibrated": "thresher.games.semivalues",
    "DaskValuation": "thresher.passes.dask_valuation",
    "Findings": "thresher.findings",
    "Forest": "thresher.neighbors.forests",
    "KNNRelease": "thresher.privacy.dp_knn",
    "Ledger": "thresher.privacy.ledger",
    "LiveCounts": "thresher.live.store",
    "NeighborCounts": "thresher.counts",
    "OwnerValuation": "thresher.owner_valuation",
    "Payout": "thresher.payouts.statement",
    "Plan": "thresher.privacy.plan",
    "PriceList": "thresher.price_list",
    "PrivatePayout": "thresher.payouts.private",
    "RadiusSuggestion": "thresher.radius",
    "Release": "thresher.privacy.release",
    "Scan": "thresher.tables.file_scan",
    "SeededKNNRelease": "thresher.privacy.dp_knn",
    "SeededRelease": "thresher.privacy.release",
    "TKNNClassifier": "thresher.classifier",
    "TargetFindings": "thresher.target_findings",
    "Valuation": "thresher.valuation",
    "add_feature_noise": "thresher.corrupt",
    "audit_mechanism": "thresher.attack.audit",
    "audit_runs": "thresher.attack.audit",
    "beta_shapley": "thresher.retrain.methods",
    "data_banzhaf": "thresher.retrain.methods",
    "data_shapley": "thresher.retrain.methods",
    "dp_knn_shapley": "thresher.privacy.dp_knn",
    "dp_tknn_shapley": "thresher.privacy.dp_tknn",
    "explain": "thresher.explained",
    "flip_labels": "thresher.corrupt",
    "forest_findings": "thresher.leaf_findings",
    "forest_shapley": "thresher.forest",
    "grow_forest": "thresher.growth",
    "knn_shapley": "thresher.knn",
    "leaf_shapley": "thresher.forest",
    "leave_one_out": "thresher.retrain.methods",
    "membership_attack": "thresher.attack.membership",
    "owner_shapley": "thresher.owners",
    "payout": "thresher.payouts.payout",
    "plan_release": "thresher.privacy.plan",
    "private_payout": "thresher.payouts.private",
    "suggest_radius": "thresher.radius",
    "tknn_shapley": "thresher.tknn",
    "zero_budget_score": "thresher.tknn",
}


_find = _lazy_names(__name__, _LATER)


def __getattr__(name: str) -> Any:
    if name == "federate":  # a package of its own, with the extra `federate`
        return import_module("thresher.federate")
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _write_page(*subject: Any, **options: Any) -> None:
    import_module("thresher.report").report_valuation(*subject, **options)


_lend_pages(_write_page)
