"""Rows that are copies of each other, those with different labels first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from thresher.report.phrases import count_of
from thresher.report.subject import Subject

MOST_GROUPS, MOST_MEMBERS = 50, 8  # that the page shows


@dataclass(frozen=True)
class CopiedRows:
    """How many rows have copies, and groups of copies with different labels."""

    exact: int  # rows that have exact copies
    near: int  # rows that have near ones only
    exact_groups: int  # of exact copies with different labels
    near_groups: int
    groups: tuple[tuple[str, tuple[tuple[int, str, str], ...], int], ...]
    name: ClassVar[str] = "copies"
    title: ClassVar[str] = "Copies"

    def cautions(self) -> list[str]:
        """A warning if copies have different labels."""
        if not self.exact_groups:
            return []
        have = count_of(
            self.exact_groups, "group of exact copies has", "groups of exact copies have"
        )
        return [
            f"{have} different labels: at most one of them is right, or the columns cannot tell "
            "the rows apart. They are listed under Copies, and come first in the review."
        ]


def describe_copies(subject: Subject) -> CopiedRows | None:
    """The section, if there are any copies."""
    copies = subject.copies
    if copies is None or not copies.exact_rows + copies.near_rows:
        return None
    exact, near = copies.conflicts(), copies.near_conflicts()
    groups = [("exact", group) for group in exact] + [("near", group) for group in near]

    def named(row: int) -> tuple[int, str, str]:
        return subject.number(row), subject.name(row), subject.label(row)

    listed = tuple(
        (kind, tuple(map(named, group[:MOST_MEMBERS])), len(group))
        for kind, group in groups[:MOST_GROUPS]
    )
    return CopiedRows(copies.exact_rows, copies.near_rows, len(exact), len(near), listed)
