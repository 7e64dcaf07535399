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

    from thresher import federate as federate
    from thresher.attack.audit import Audit, audit_mechanism, audit_runs
    from thresher.attack.membership import Attack, membership_attack
    from thresher.classifier import TKNNClassifier
    from thresher.corrupt import add_feature_noise, flip_labels
    from thresher.counts import NeighborCounts
    from thresher.findings.explanation import explain
    from thresher.findings.label_findings import Findings
    from thresher.findings.leaf_findings import forest_findings
    from thresher.findings.target_findings import TargetFindings
    from thresher.forest import forest_shapley, leaf_shapley
    from thresher.games.semivalues import Beta, Calibrated
    from thresher.growth import grow_forest
    from thresher.knn import knn_shapley
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
    from thresher.tables.file_parts import Scan
    from thresher.tknn import tknn_shapley, zero_budget_score
    from thresher.valuation import Valuation

__all__ = [
    "Attack", "Audit", "Beta", "BudgetError", "Calibrated", "DaskValuation", "ExtraError",
    "Findings", "FitWarning", "Forest", "InputError", "KNNRelease", "LabelWarning", "Ledger",
    "LiveCounts", "NeighborCounts", "OwnerValuation", "Payout", "Plan", "PriceList",
    "PrivatePayout", "RadiusSuggestion", "ReachWarning", "Release", "ScaleWarning", "Scan",
    "SeededKNNRelease", "SeededRelease", "TKNNClassifier", "TargetFindings", "ThresherError",
    "ThresherWarning", "TwinWarning", "Valuation", "add_feature_noise", "audit_mechanism",
    "audit_runs", "beta_shapley", "data_banzhaf", "data_shapley", "dp_knn_shapley",
    "dp_tknn_shapley", "explain", "flip_labels", "forest_findings", "forest_shapley", "grow_forest",
    "knn_shapley", "leaf_shapley", "leave_one_out", "membership_attack", "owner_shapley", "payout",
    "plan_release", "private_payout", "suggest_radius", "tknn_shapley", "zero_budget_score",
]  # fmt: skip

# slow to import: only when asked for, so that the command is there at once
_HOMES = {
    ".attack.audit": "Audit audit_mechanism audit_runs",
    ".attack.membership": "Attack membership_attack",
    ".classifier": "TKNNClassifier",
    ".corrupt": "add_feature_noise flip_labels",
    ".counts": "NeighborCounts",
    ".findings.explanation": "explain",
    ".findings.label_findings": "Findings",
    ".findings.leaf_findings": "forest_findings",
    ".findings.target_findings": "TargetFindings",
    ".forest": "forest_shapley leaf_shapley",
    ".games.semivalues": "Beta Calibrated",
    ".growth": "grow_forest",
    ".knn": "knn_shapley",
    ".live.store": "LiveCounts",
    ".neighbors.forests": "Forest",
    ".owner_valuation": "OwnerValuation",
    ".owners": "owner_shapley",
    ".passes.dask_valuation": "DaskValuation",
    ".payouts.payout": "payout",
    ".payouts.private": "PrivatePayout private_payout",
    ".payouts.statement": "Payout",
    ".price_list": "PriceList",
    ".privacy.dp_knn": "KNNRelease SeededKNNRelease dp_knn_shapley",
    ".privacy.dp_tknn": "dp_tknn_shapley",
    ".privacy.ledger": "Ledger",
    ".privacy.plan": "Plan plan_release",
    ".privacy.release": "Release SeededRelease",
    ".radius": "RadiusSuggestion suggest_radius",
    ".retrain.methods": "beta_shapley data_banzhaf data_shapley leave_one_out",
    ".tables.file_parts": "Scan",
    ".tknn": "tknn_shapley zero_budget_score",
    ".valuation": "Valuation",
}

if not TYPE_CHECKING:  # a type checker would take any name for one of these
    _find = _lazy_names(__name__, {name: home for home in _HOMES for name in _HOMES[home].split()})

    def __getattr__(name: str) -> Any:
        if name == "federate":  # a package of its own, with the extra `federate`
            return import_module("thresher.federate")
        return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _write_page(*subject: Any, **options: Any) -> None:
    import_module("thresher.report").report_valuation(*subject, **options)


_lend_pages(_write_page)
