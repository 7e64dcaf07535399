"""render: the evidence as one self-contained HTML page; write_report: that page as a file."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from thresher.errors import InputError, option, require
from thresher.files import check_writable, write_text
from thresher.inputs.checks import check_flag
from thresher.report.charts import mark
from thresher.report.evidence import Evidence
from thresher.report.phrases import count_of, fixed, percent, short, visible
from thresher.version import __version__

FORMAT = "thresher.report/1"
SETTINGS = (  # that the document inside the page repeats
    "method", "params", "points", "validation_points", "total", "utility_all", "utility_none",
    "record",
)  # fmt: skip


def render(evidence: Evidence) -> str:
    """The page: one HTML document that needs nothing else.

    Parameters
    ----------
    evidence
        What `gather` found.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.report import gather, render
    >>> from thresher.valuation import Valuation
    >>> page = render(gather(Valuation(np.array([0.5, -0.25]), "example", {}, 0.75, 0.5)))
    >>> "1 of 2 rows has a negative value" in page
    True
    """
    return render_page("page.html.jinja", e=evidence, document=_document(evidence))


def render_page(template: str, **content: Any) -> str:
    """One HTML document that needs nothing else, by a template of this package."""
    require("jinja2", purpose="the HTML report", extra="report")
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    found = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_finalize,
        loader=FunctionLoader(asset),
    )  # fmt: skip
    found.filters |= {
        "short": short, "percent": percent, "fixed": fixed, "digest": _digest,
        "px": lambda number: f"{number:.1f}",
    }  # fmt: skip
    found.globals |= {
        "mark": mark, "count_of": count_of, "version": __version__,
        "assets": lambda *names: "".join(map(asset, names)),
    }  # fmt: skip
    return found.get_template(template).render(content)


def write_report(path: str | Path, evidence: Evidence, *, force: bool = False) -> None:
    """Write the page to a file, whole or not at all; `force` replaces an existing file.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.report import gather, write_report
    >>> from thresher.valuation import Valuation
    >>> evidence = gather(Valuation(np.array([0.5]), "example", {}, 0.75, 0.25))
    >>> write_report("page.txt", evidence)
    Traceback (most recent call last):
    thresher.errors.InputError: a report must be an .html file, got page.txt
    """
    check_target(path, force=force)
    write_text(path, render(evidence), replace=force)


def check_target(path: str | Path, *, force: bool = False) -> None:
    """Raise unless a report can be written to `path`."""
    force = check_flag("force", force)
    if not isinstance(path, str | Path) or not str(path):
        raise InputError(f"path must be the name of a file, got {path!r}")
    if Path(path).suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"a report must be an .html file, got {path}")
    if Path(path).exists() and not force:
        raise InputError(
            f"{path} already exists: name another file, or use {option('force', value=True)}"
        )
    check_writable(path)


def _finalize(entry: Any) -> Any:
    """What the template prints; what is HTML already stays as it is."""
    return visible(entry) if type(entry) is str else entry


def _document(evidence: Evidence) -> Any:
    """What a program may want to read from the page: settings, record and main numbers."""
    suggestions = evidence.suggestions
    document = {
        "format": FORMAT,
        "version": __version__,
        "headline": None if evidence.headline is None else evidence.headline.sentence,
        "verdict": evidence.verdict.sentence,
        "leak": evidence.leak or None,
        "cautions": evidence.cautions,
        "suggestions": None if suggestions is None else suggestions.total,
    }
    return _finite(document | {name: getattr(evidence.about, name) for name in SETTINGS})


def _finite(entry: Any) -> Any:
    """`entry` with text in place of numbers that JSON does not have, infinity and NaN."""
    if isinstance(entry, Mapping):
        return {str(key): _finite(part) for key, part in entry.items()}
    if isinstance(entry, list | tuple):
        return [_finite(part) for part in entry]
    return str(entry) if isinstance(entry, float) and not math.isfinite(entry) else entry


def asset(name: str) -> str:
    """The text of a template, style or script of this package."""
    return resources.files("thresher.report").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    """The digest by which a page allows this style or script, and no other."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
