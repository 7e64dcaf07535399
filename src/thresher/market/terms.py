"""The terms of a task: everything about it that is public and fixed once it is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from thresher.checks import check_choice, check_count, check_flag, check_radius, check_text
from thresher.privacy.accountants import Budget

METRICS, PAYS, BASES = ("cosine", "euclidean"), ("estimate", "lower"), ("total", "gains")


@dataclass(frozen=True)
class Terms:
    """What a buyer asks for, and what is paid for it.

    Parameters
    ----------
    label
        The column of labels, in the validation set and in what owners hand in.
    pot_cents
        What there is to pay, in whole cents.
    epsilon, delta
        What each owner, with all rows, may lose of privacy by the release of this task.
    rows_per_owner
        About how many rows an owner is expected to hand in.
    owners
        About how many owners are expected.
    classes
        All labels; without it those of the validation set.
    standardize
        Scale each column by the mean and the deviation of the validation set.
    metric, radius
        As in `dp_tknn_shapley`; without `radius` the one that `suggest_radius` finds.
    pay, basis
        As in `private_payout`.
    most_rows
        The most rows that one owner may hand in.
    """

    label: str
    pot_cents: int
    epsilon: float
    delta: float
    rows_per_owner: int
    owners: int
    classes: tuple[str, ...] | None = None
    standardize: bool = True
    metric: str = "euclidean"
    radius: float | None = None
    pay: str = "estimate"
    basis: str = "gains"
    most_rows: int = 100_000

    def __post_init__(self) -> None:
        check_text("label", self.label, empty=False)
        check_count("pot_cents", self.pot_cents, least=0)
        Budget(self.epsilon, self.delta)
        for name in ("rows_per_owner", "owners", "most_rows"):
            check_count(name, getattr(self, name))
        if self.radius is not None:
            check_radius(self.radius)
        check_flag("standardize", self.standardize)
        for name, choices in (("metric", METRICS), ("pay", PAYS), ("basis", BASES)):
            check_choice(name, getattr(self, name), choices)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Terms from what `document()` gave."""
        known = {field.name: document[field.name] for field in fields(cls)}
        if known["classes"] is not None:
            known["classes"] = tuple(known["classes"])
        return cls(**known)

    def document(self) -> dict[str, Any]:
        """The terms as JSON."""
        return asdict(self) | {"classes": None if self.classes is None else list(self.classes)}
