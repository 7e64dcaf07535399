"""What the page says in words: heading, what was computed, how, and what the figures show."""

from __future__ import annotations

import math
from typing import Any

from thresher.report.evidence import Evidence
from thresher.report.models import MOST_FEATURES
from thresher.report.removal import THRESHOLD
from thresher.report.words import brief, count_of, percent, short

METHODS = {
    "tknn-shapley": "Threshold KNN-Shapley",
    "knn-shapley": "KNN-Shapley",
    "zero-budget-score": "zero-budget score",
    "dp-tknn-shapley": "private Threshold KNN-Shapley",
    "dp-knn-shapley": "private KNN-Shapley",
}
PARTS = {
    "rows": "Lowest values",
    "map": "Map",
    "suggestions": "Labels and suggestions",
    "values": "Spread of values",
    "removal": "Removing rows",
    "coverage": "Coverage and radius",
    "owners": "Owners",
    "bought": "What the budget bought",
    "prices": "Prices",
    "how": "How it was computed",
}


def kind(evidence: Evidence) -> str:
    """What kind of numbers these are."""
    if evidence.private is not None:
        return "private release"
    if evidence.about.method in {"tknn-shapley", "knn-shapley"}:
        return "exact values"
    return "a score" if evidence.about.method == "zero-budget-score" else "values by retraining"


def heading(evidence: Evidence) -> str:
    """The heading of the page."""
    return "What a private release tells" if evidence.private else "What each row is worth"


def lede(evidence: Evidence) -> str:
    """What was computed, in a sentence."""
    about = evidence.about
    name = METHODS.get(about.method, about.method)
    sizes = []
    if about.points is not None:
        sizes.append(f"of {count_of(about.points, 'row', 'rows')}")
    if about.validation_points is not None:
        count = count_of(about.validation_points, "validation point", "validation points")
        sizes.append(f"judged by {count}")
    settings = [_setting(about.params, key) for key in ("radius", "k")]
    semivalue = about.params.get("semivalue", "shapley")
    if semivalue != "shapley":
        settings.append(f"semivalue {semivalue}, which does not add up to the utility of all rows")
    if len(about.classes) > 1:
        settings.append(f"{len(about.classes):,} classes")
    kind = "Prices" if evidence.private else "Values"
    told = ", ".join(setting for setting in settings if setting)
    return f"{kind} by {name} {', '.join(sizes)}{'; ' if told else ''}{told}.".replace("  ", " ")


def _setting(params: Any, key: str) -> str:
    found = params.get(key)
    if found is None:
        return ""
    metric = f"{params['metric']} " if params.get("metric") in {"cosine", "euclidean"} else ""
    return f"{metric}radius {found:.4g}" if key == "radius" else f"k = {found}"


def parts(evidence: Evidence) -> list[tuple[str, str]]:
    """The parts that are there, and their titles."""
    private = evidence.private
    there = {
        "rows": evidence.worst,
        "map": evidence.plane,
        "suggestions": evidence.suggested,
        "values": evidence.spread,
        "removal": evidence.removal,
        "coverage": evidence.reach,
        "owners": evidence.payout,
        "bought": private,
        "prices": None if private is None else private.prices,
        "how": evidence.about,
    }
    return [(name, title) for name, title in PARTS.items() if there[name] is not None]


def how(evidence: Evidence) -> str:
    """What a value is, and what all of them add up to."""
    about = evidence.about
    if evidence.private is not None:
        return (
            "Noise was added to what the points contribute before anything else was done, and all "
            "that is on this page follows from the noisy numbers and the public validation set. "
            "How many points there are is not told."
        )
    means = about.params.get("mean")
    what = "the mean over" if means else "a sum over"
    text = f"A value is {what} the validation points of what a row adds to their utility."
    if about.utility_all is None or about.utility_none is None or about.total is None:
        return text
    gain = about.utility_all - about.utility_none
    text += (
        f" The utility of all rows is {short(about.utility_all)}, of none "
        f"{short(about.utility_none)}; all values add up to {short(about.total)}"
    )
    close = math.isclose(about.total, gain, rel_tol=1e-6, abs_tol=1e-6)
    return f"{text}, the whole difference." if close else f"{text}."


def facts(evidence: Evidence) -> list[tuple[str, str]]:
    """The settings, as they are stored."""
    found = [("method", evidence.about.method)]
    for name, entry in evidence.about.params.items():
        if isinstance(entry, list):
            shown = ", ".join(map(brief, entry[:20]))
            entry = f"{shown} and {len(entry) - 20} more" if len(entry) > 20 else shown  # noqa: PLW2901
        found.append((name.replace("_", " "), _plain(entry)))
    return found


def _plain(entry: Any) -> str:
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    return "none" if entry is None or entry == "" else str(entry)


def map_text(evidence: Evidence) -> str:
    """What the map shows."""
    plane = evidence.plane
    assert plane is not None  # noqa: S101 - by those who call
    if plane.variance is None:
        text = "The only feature across, the value up."
    else:
        text = (
            "Rows that are alike lie close together, as far as two directions can show: they hold "
            f"{percent(plane.variance)} of the variance"
        )
        directions = evidence.about.params.get("metric") == "cosine"
        text += " of the rows scaled to length 1." if directions else "."
    if len(plane.rows) < plane.points:
        text += (
            f" Drawn are the 1,000 rows of lowest value and {len(plane.rows) - 1000:,} of the "
            f"other {plane.points - 1000:,} at random, so bad rows look more frequent than they "
            "are."
        )
    return f"{text} Point at a mark, or tap it, to see its row."


def removal_text(evidence: Evidence) -> str:
    """What the models of the removal curves are."""
    removal = evidence.removal
    assert removal is not None  # noqa: S101 - by those who call
    text = ""
    if THRESHOLD in removal.models:
        text = (
            "The threshold classifier has the radius of the valuation, and guesses evenly where "
            "labels lead together or nobody is near. "
        )
    text += "The logistic regression has standardized columns"
    text += f"; of more than {MOST_FEATURES} columns, as many leading components. "
    if removal.logistic_points < removal.points:
        text += (
            f"To save time it was trained on {removal.logistic_points:,} of {removal.points:,} "
            "rows, chosen at random. "
        )
    return f"{text}Random removal is the mean of five draws."
