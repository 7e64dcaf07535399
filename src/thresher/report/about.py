"""What was computed, and how: the first lines of the page, and its last section."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from thresher.errors import InputError
from thresher.report.phrases import brief, count_of
from thresher.report.subject import Subject

METHODS = {  # the name of each, and what kind of numbers it gives
    "tknn-shapley": ("Threshold KNN-Shapley", "exact values"),
    "knn-shapley": ("KNN-Shapley", "exact values"),
    "forest-shapley": ("the Shapley value of a random forest", "exact values"),
    "leaf-shapley": ("the Shapley value of trees", "exact values"),
    "zero-budget-score": ("zero-budget score", "a score"),
    "dp-tknn-shapley": ("private Threshold KNN-Shapley", "private release"),
    "dp-knn-shapley": ("private KNN-Shapley", "private release"),
}


@dataclass(frozen=True)
class About:
    """What was computed, and how; a field is None if it is not known, or not public."""

    method: str  # of the valuation, or of the release
    params: Mapping[str, Any]
    points: int | None
    validation_points: int | None
    classes: tuple[str, ...]
    total: float | None = None  # of all values
    utility_all: float | None = None
    utility_none: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict)  # how the run was made
    private: bool = False
    name: ClassVar[str] = "how"
    title: ClassVar[str] = "How it was computed"

    @property
    def names(self) -> tuple[str, str]:
        """The method, and the kind of its numbers, in words."""
        return METHODS.get(self.method, (self.method, "values by retraining"))

    @property
    def mutual(self) -> bool:
        """Whether the rows judged each other."""
        return self.params.get("judges") == "points"

    @property
    def heading(self) -> str:
        """The heading of the page."""
        return "What a private release says" if self.private else "What each row is worth"

    def lede(self) -> str:
        """What was computed, in a sentence."""
        sizes = [] if self.points is None else [f"of {count_of(self.points, 'row')}"]
        if self.validation_points is not None:
            sizes.append(f"judged by {count_of(self.validation_points, 'validation point')}")
        elif self.mutual:
            sizes.append("judged by each other")
        kind, settings = "Prices" if self.private else "Values", self._settings()
        said = f"{kind} by {self.names[0]} {', '.join(sizes)}".replace("  ", " ")
        return f"{said}; {', '.join(settings)}." if settings else f"{said}."

    def _settings(self) -> list[str]:
        settings, params = [], self.params
        if params.get("radius") is not None:
            metric = params.get("metric")
            prefix = f"{metric} " if metric in {"cosine", "euclidean"} else ""
            settings.append(f"{prefix}radius {params['radius']:.4g}")
        if params.get("kernel") is not None:
            named = params["kernel"] if isinstance(params["kernel"], str) else "own"
            settings.append(f"{named} kernel in {params['rings']} rings")
        if params.get("k") is not None:
            settings.append(f"k = {params['k']}")
        if params.get("trees") is not None:
            settings.append(f"{params['trees']} trees")
        semivalue = params.get("semivalue", "shapley")
        if semivalue != "shapley":
            settings.append(
                f"semivalue {semivalue}, which does not add up to the utility of all rows"
            )
        if len(self.classes) > 1:
            settings.append(f"{len(self.classes):,} classes")
        return settings

    @property
    def whole(self) -> bool | None:
        """Whether values add up to the difference that all rows make; None if that is not shown."""
        if self.utility_all is None or self.utility_none is None or self.total is None:
            return None
        gain = self.utility_all - self.utility_none
        return math.isclose(self.total, gain, rel_tol=1e-6, abs_tol=1e-6)

    def facts(self) -> list[tuple[str, str]]:
        """The settings, as they are stored."""
        named = [(name.replace("_", " "), _plain(entry)) for name, entry in self.params.items()]
        return [("method", self.method), *named]

    def record_text(self) -> str:
        """The record as the page shows it."""
        return json.dumps(self.record, indent=1, ensure_ascii=False)


def about_subject(subject: Subject, record: Mapping[str, Any]) -> About:
    """What was computed, for exact values."""
    valuation = subject.valuation
    all_points, none = (
        None if math.isnan(end) else float(end)
        for end in (valuation.utility_all, valuation.utility_none)
    )
    return About(
        valuation.method, dict(valuation.params), len(valuation), subject.validation_points,
        subject.classes if subject.targets is None else (), float(math.fsum(valuation.values)),
        all_points, none, record,
    )  # fmt: skip


def about_release(release: Any, record: Mapping[str, Any]) -> About:
    """What was computed, for a private release."""
    params, prices = plain_record(release.record), release.price_list
    classes = () if prices is None else tuple(map(brief, prices.side.classes.labels))
    method = "dp-knn-shapley" if prices is None else "dp-tknn-shapley"
    count = params["validation_points"]
    return About(method, params, None, count, classes, record=record, private=True)


def plain_record(record: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A record as JSON holds it; what JSON does not know becomes text."""
    if record is None:
        return {}
    if not isinstance(record, Mapping):
        raise InputError(f"record must be a dictionary, got {type(record).__name__}")
    return json.loads(json.dumps(dict(record), default=_plain_entry))


def _plain_entry(entry: Any) -> Any:
    return entry.item() if hasattr(entry, "item") and not hasattr(entry, "shape") else str(entry)


def _plain(entry: Any) -> str:
    if isinstance(entry, list):
        shown = ", ".join(map(brief, entry[:20]))
        entry = f"{shown} and {len(entry) - 20} more" if len(entry) > 20 else shown
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    return "none" if entry is None or entry == "" else str(entry)
