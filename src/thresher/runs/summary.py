"""What a run says at the end, whether in memory, in parts or on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from thresher.findings.advice import CALLED_WRONG, SUGGESTIONS
from thresher.findings.forecast import Forecast
from thresher.runs.leak_hints import Leaks
from thresher.runs.memory_run import MemoryRun
from thresher.runs.settings import Settings
from thresher.valuation import Valuation

WORST = 5  # rows that are told in words
GROUPS, MEMBERS = 3, 4  # groups of copies that are told, and rows of each


@dataclass(frozen=True, eq=False)
class Summary:
    """What came out of a run."""

    settings: Settings  # what was wanted
    valuation: Valuation  # the values; none where they are in files only
    # rows, validation_points: how many there are
    rows: int
    validation_points: int
    suggestions: Mapping[str, int] | None  # how many rows got each, where the method makes any
    worst: list[dict[str, Any]]  # the rows to look at first, with what is known of each
    by_owner: Mapping[Any, float] | None  # the value of each owner, if there are owners
    hints: list[str]  # what would have made for better values
    record: Mapping[str, Any]  # from what, how and by which version
    wrote: list[Path]  # the files that were written
    # what is to be said about rows that are copies of each other
    copies: list[str] = field(default_factory=list)
    # how many labels are expected to be wrong, where the method can tell
    forecast: Forecast | None = None
    leaks: Leaks = field(default_factory=dict)  # columns that repeat the label
    why_look: str = ""  # why nobody should change marked rows without a look; empty if one may

    @classmethod
    def of(cls, run: MemoryRun, wrote: list[Path]) -> Summary:
        """What came out of a run in memory."""
        valuation, findings = run.valuation, run.findings
        return cls(
            run.settings, valuation, len(run.points), len(run.validation),
            None if findings is None else findings.counts(), _worst(run),
            None if valuation.owners is None else valuation.by_owner(),
            run.hints(), run.record, wrote,
            [] if run.settings.method == "tknn" else copy_lines(run),
            None if findings is None else findings.forecast, run.leaks,
            run.why_look(),
        )  # fmt: skip


@dataclass
class Highlights:
    """What the summary says about rows, collected while they are written to files."""

    suggestions: Counter[str] = field(default_factory=Counter)
    worst: list[dict[str, Any]] = field(default_factory=list)
    by_owner: dict[Any, float] | None = None

    def add(self, table: pa.Table) -> None:
        """Take in some rows of a table of results."""
        values = table.column("value").to_numpy()
        low = np.argsort(values, kind="stable")[:WORST]
        owners = table.column("owner").to_pylist() if "owner" in table.column_names else None
        sums = None if owners is None else zip(owners, values.tolist(), strict=True)
        words = table.column("suggestion").to_pylist() if "suggestion" in table.column_names else []
        self._take(words, table.take(low).to_pylist(), sums)

    def merge(self, other: Highlights) -> None:
        """Take in the highlights of other rows."""
        sums = None if other.by_owner is None else other.by_owner.items()
        self._take(other.suggestions, other.worst, sums)

    def _take(
        self, words: Any, worst: list[dict[str, Any]], sums: Iterable[tuple[Any, float]] | None
    ) -> None:
        self.suggestions.update(words)
        rows = [*self.worst, *worst]
        self.worst = sorted(rows, key=lambda row: (row["value"], row["row"]))[:WORST]
        if sums is not None:
            self.by_owner = {} if self.by_owner is None else self.by_owner
            for owner, value in sums:
                self.by_owner[owner] = self.by_owner.get(owner, 0.0) + value

    @property
    def called_wrong(self) -> int:
        """How many rows were called wrong."""
        return sum(self.suggestions[word] for word in CALLED_WRONG)

    def counts(self) -> dict[str, int]:
        """How many rows got each suggestion."""
        return {word: self.suggestions[word] for word in SUGGESTIONS}


def _worst(run: MemoryRun) -> list[dict[str, Any]]:
    points, findings, found = run.points, run.findings, []
    listed = run.valuation.suspects(min(WORST, len(points)))
    if findings is not None and findings.score is not None:
        listed = run.review[:WORST]
    for place in listed:
        row = {"row": points.rows[place], "label": points.labels[place]}
        row["value"] = run.valuation.values[place]
        if points.ids is not None:
            row["id"] = points.ids[place]
        if findings is not None:
            row |= {
                "suggestion": findings.suggestion[place],
                "best_label": findings.best_label[place],
            }
        if findings is not None and findings.score is not None:
            row["score"] = findings.score[place]
        found.append(row)
    return found


def copy_lines(run: MemoryRun) -> list[str]:
    """Lines that say where copies have different labels, and how many rows are copies."""
    copies, found = run.copies, []
    for kind, count, groups in (
        ("exact", copies.exact_rows, copies.conflicts()),
        ("near", copies.near_rows, copies.near_conflicts()),
    ):
        if groups:
            have = "group of {} copies has" if len(groups) == 1 else "groups of {} copies have"
            shown = "; ".join(_group(run, group) for group in groups[:GROUPS])
            more = f"; and {len(groups) - GROUPS} more" if len(groups) > GROUPS else ""
            found.append(f"{len(groups)} {have.format(kind)} different labels: {shown}{more}")
        if count:
            found.append(f"{count} rows have {kind} copies")
    return found


def _group(run: MemoryRun, group: list[int]) -> str:
    rows, labels = run.points.rows, run.points.labels
    shown = ", ".join(f"row {rows[place]} is {labels[place]}" for place in group[:MEMBERS])
    return shown + (f" and {len(group) - MEMBERS} more" if len(group) > MEMBERS else "")
