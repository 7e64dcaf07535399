"""A valuation or a private release as one self-contained page: gather, render, write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thresher.errors import InputError
from thresher.owner_valuation import OwnerValuation
from thresher.report.evidence import Evidence, gather
from thresher.report.owner_page import owner_page, write_statement
from thresher.report.page import check_target, render, write_report
from thresher.report.pictures import Pictures
from thresher.report.why import Details
from thresher.statement_page import StatementPage
from thresher.valuation import Valuation

__all__ = [
    "Details", "Evidence", "Pictures", "check_target", "gather", "render", "report_valuation",
    "write_report",
]  # fmt: skip


def report_valuation(
    valuation: Valuation | StatementPage | None,
    path: str | Path,
    *data: Any,
    force: bool = False,
    **options: Any,
) -> None:
    """Write the report of a valuation, or of a private release, as one HTML file.

    Takes what `gather` takes, and where to write it; `force` replaces a file that is there.

    Examples
    --------
    >>> import tempfile
    >>> import thresher as th
    >>> data = [[0.0], [0.1]], ["a", "b"], [[0.05], [0.06]], ["a", "a"]
    >>> valuation = th.tknn_shapley(*data, radius=1, metric="euclidean")
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> report_valuation(valuation, path, *data)
    >>> path.read_text()[:15]
    '<!doctype html>'
    """
    check_target(path, force=force)  # before the work, not after it
    if isinstance(valuation, StatementPage):
        write_statement(valuation, path, force=force)
        return
    if isinstance(valuation, OwnerValuation):
        if any(entry is not None and entry is not False for entry in (*data, *options.values())):
            raise InputError(
                "the page of an OwnerValuation shows owners, not points: pass only path and force"
            )
        write_statement(owner_page(valuation), path, force=force)
        return
    write_report(path, gather(valuation, *data, **options), force=force)
