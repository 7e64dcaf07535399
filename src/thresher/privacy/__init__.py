"""Private values: counts are privatized once, and everything else follows from them.

The mechanisms with their options are here; `dp_tknn_shapley`, `Ledger` and the other names that
everyone needs are in `thresher` itself.
"""

from __future__ import annotations

from thresher.privacy.cells import Cells
from thresher.privacy.paper import Paper
from thresher.privacy.table import Table

__all__ = ["Cells", "Paper", "Table"]
