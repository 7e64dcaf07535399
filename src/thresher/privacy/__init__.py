"""Private values: counts are privatized once, and everything else follows from them.

The mechanisms with their options are here; `dp_tknn_shapley`, `Ledger` and the other names that
everyone needs are in `thresher` itself.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from thresher.privacy.cells_mechanism import Cells
    from thresher.privacy.few_leaves import public_forest
    from thresher.privacy.paper_mechanism import Paper
    from thresher.privacy.table_mechanism import Table

_LATER = {
    "Cells": "cells_mechanism",
    "Paper": "paper_mechanism",
    "Table": "table_mechanism",
    "public_forest": "few_leaves",
}
__all__ = ["Cells", "Paper", "Table", "public_forest"]


def __getattr__(name: str) -> Any:
    if name in _LATER:  # only when asked for: readers of tables need no accountant
        module = import_module(f"thresher.privacy.{_LATER[name]}")
        found = globals()[name] = getattr(module, name)
        return found
    message = f"module 'thresher.privacy' has no attribute {name!r}"
    raise AttributeError(message)
