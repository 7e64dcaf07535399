"""Private values: counts are privatized once, and everything else follows from them.

The mechanisms with their options are here; `dp_tknn_shapley`, `Ledger` and the other names that
everyone needs are in `thresher` itself.
"""

from __future__ import annotations

from thresher.lazy_names import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thresher.privacy.cells_mechanism import Cells
    from thresher.privacy.leaf_setting import public_forest
    from thresher.privacy.paper_mechanism import Paper
    from thresher.privacy.table_mechanism import Table

_LATER = {
    "Cells": ".cells_mechanism",
    "Paper": ".paper_mechanism",
    "Table": ".table_mechanism",
    "public_forest": ".leaf_setting",
}
__all__ = ["Cells", "Paper", "Table", "public_forest"]
if not TYPE_CHECKING:  # a type checker would take any name for one of these
    __getattr__ = lazy_names(__name__, _LATER)  # readers of tables need no accountant
