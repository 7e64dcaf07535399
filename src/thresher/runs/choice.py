"""Which method "auto" is: a forest, unless an option is about distances.

A forest asks one column at a time, so units, categories, wild rows and missing cells do no harm. It
lets rows judge each other, so nothing is held out. But what it suggests about labels needs all rows
at once, so for classes in parts near validation points judge.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from thresher.errors import in_options, option
from thresher.neighbors.kernel import BOX
from thresher.runs.settings import AUTO, Settings

ARRAYS = ("npy", "npz")
IN_PARTS = ("memory", "engine")
SAYING = {  # options that say which method is meant
    **dict.fromkeys(IN_PARTS, ("tknn", "reads rows in parts")),
    **dict.fromkeys(("trees", "folds"), ("forest", "was given")),
    **dict.fromkeys(
        ("radius", "metric", "kernel", "rings", "standardize", "fill"),
        ("tknn", "is about distances"),
    ),
}

WEIGHED = (
    f"closer points count more, which finds wrong labels better; {option('kernel', BOX)} counts "
    "all near points alike"
)

Choice = tuple[Settings, Mapping[str, Any]]


def choose_method(settings: Settings) -> Choice:
    """The settings with a method chosen, and what the record says about it: which one, and why."""
    about = {"method": settings.method}
    if settings.method == AUTO:
        method, why = _chosen(settings)
        about = {"method": method, "why": in_options(why)}  # beside the command, in the record
        settings = dataclasses.replace(settings, method=method)
    if settings.kernel == AUTO and settings.weighing != BOX:
        about |= {"kernel": settings.weighing, "kernel_why": in_options(WEIGHED)}
    return settings, about


def original_settings(settings: Settings, chosen: Mapping[str, Any]) -> Settings:
    """The settings before a method was chosen, which make the same run again."""
    return dataclasses.replace(settings, method=AUTO) if "why" in chosen else settings


def _chosen(settings: Settings) -> tuple[str, str]:
    given = settings.given()
    for name, (method, why) in SAYING.items():
        if name in given and not (settings.numbers and name in IN_PARTS):
            return method, f"{option(name)} {why}"
    if settings.semivalue.startswith("calibrated"):
        return "tknn", f"{option('semivalue')} {settings.semivalue} is about distances"
    return "forest", "it takes columns as they are, and needs no scaling and no validation set"
