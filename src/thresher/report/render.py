"""render: the evidence as one self-contained HTML page; write_report: that page as a file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from thresher.errors import InputError, require
from thresher.files import check_writable, write_whole
from thresher.report.evidence import Evidence
from thresher.report.figures import (
    map_chart,
    map_legend,
    price_chart,
    radius_chart,
    radius_legend,
    removal_chart,
    removal_legend,
    value_chart,
)
from thresher.report.tables import matrix, tiles, worst_columns
from thresher.report.told import facts, heading, how, kind, lede, map_text, parts, removal_text
from thresher.report.words import fixed, percent, short, visible
from thresher.version import __version__

FORMAT = "thresher.report/1"


def render(evidence: Evidence) -> str:
    """The page: one HTML document that needs nothing else.

    Parameters
    ----------
    evidence
        What `gather` found.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.report import gather
    >>> from thresher.valuation import Valuation
    >>> page = render(gather(Valuation(np.array([0.5, -0.25]), "example", {}, 0.75, 0.5)))
    >>> "1 of 2 rows has a negative value" in page
    True
    """
    require("jinja2", purpose="the HTML report", extra="report")
    from jinja2 import Environment, StrictUndefined

    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_finalize
    )
    page.filters |= {"short": short, "percent": percent, "fixed": fixed}
    css, js = _file("page.css"), _file("page.js")
    return page.from_string(_file("page.html.jinja")).render(
        e=evidence,
        version=_version(),
        css=css,
        js=js,
        css_digest=_digest(css),
        js_digest=_digest(js),
        kind=kind(evidence),
        heading=heading(evidence),
        lede=lede(evidence),
        how=how(evidence),
        facts=facts(evidence),
        parts=parts(evidence),
        tiles=tiles(evidence),
        record=json.dumps(evidence.about.record, indent=1, ensure_ascii=False),
        document=_document(evidence),
        **_drawings(evidence),
    )


def write_report(path: str | Path, evidence: Evidence, *, force: bool = False) -> None:
    """Write the page to a file, whole or not at all; a file that is there is replaced by `force`.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.report import gather
    >>> from thresher.valuation import Valuation
    >>> evidence = gather(Valuation(np.array([0.5]), "example", {}, 0.75, 0.25))
    >>> write_report("page.txt", evidence)
    Traceback (most recent call last):
    thresher.errors.InputError: a report must be an .html file, got page.txt
    """
    check_target(path, force=force)
    text = render(evidence)
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"), replace=force)


def check_target(path: str | Path, *, force: bool = False) -> None:
    """Raise unless a report can be written there."""
    if not isinstance(path, str | Path) or not str(path):
        raise InputError(f"path must be the name of a file, got {path!r}")
    if Path(path).suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"a report must be an .html file, got {path}")
    if Path(path).exists() and not force:
        raise InputError(f"{path} is there already: name another file, or use force")
    check_writable(path)


def _finalize(entry: Any) -> Any:
    """What the template prints; what is HTML already stays as it is."""
    return visible(entry) if type(entry) is str else entry


def _drawings(evidence: Evidence) -> dict[str, Any]:
    """What the template draws for the parts that are there."""
    found: dict[str, Any] = {}
    if evidence.worst is not None:
        found["columns"] = worst_columns(evidence.worst)
    if evidence.plane is not None:
        found |= {"map_chart": map_chart(evidence.plane), "map_text": map_text(evidence)}
        found["map_legend"] = map_legend()
    if evidence.suggested is not None:
        total = evidence.suggested.total
        found |= {"matrix": matrix(evidence), "flagged": total["relabel"] + total["drop"]}
    if evidence.spread is not None:
        spread = evidence.spread
        shown = spread.parts or (spread.whole,)
        found["value_charts"] = [(part, value_chart(spread, part)) for part in shown]
    if evidence.removal is not None:
        removal = evidence.removal
        charts = [(model, removal_chart(removal, model)) for model in removal.models]
        found |= {"removal_charts": charts, "removal_text": removal_text(evidence)}
        found["removal_legend"] = removal_legend()
    if evidence.radius is not None:
        found["radius_chart"] = radius_chart(evidence.radius)
        found["radius_legend"] = radius_legend()
    return found | _price_drawings(evidence)


def _price_drawings(evidence: Evidence) -> dict[str, Any]:
    prices = None if evidence.private is None else evidence.private.prices
    if prices is None:
        return {}
    return {
        "gain_chart": price_chart(prices, gains=True),
        "loss_chart": price_chart(prices, gains=False),
    }


def _document(evidence: Evidence) -> Any:
    """What a program may want to read from the page: settings, record and main numbers."""
    about, suggested = evidence.about, evidence.suggested
    document = {
        "format": FORMAT,
        "version": _version(),
        "method": about.method,
        "params": about.params,
        "points": about.points,
        "validation_points": about.validation_points,
        "total": about.total,
        "utility_all": about.utility_all,
        "utility_none": about.utility_none,
        "verdict": evidence.verdict.sentence,
        "cautions": evidence.cautions,
        "suggestions": None if suggested is None else suggested.total,
        "record": about.record,
    }
    return _finite(document)


def _finite(entry: Any) -> Any:
    """`entry` with texts where JSON has no numbers: infinite, not a number."""
    if isinstance(entry, Mapping):
        return {str(key): _finite(part) for key, part in entry.items()}
    if isinstance(entry, list | tuple):
        return [_finite(part) for part in entry]
    return str(entry) if isinstance(entry, float) and not math.isfinite(entry) else entry


def _file(name: str) -> str:
    return resources.files("thresher.report").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    """The digest by which a page allows this style or script, and no other."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _version() -> str:
    return __version__
