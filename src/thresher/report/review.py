"""The review: what the page's script needs to ask about each listed row, and to save the answers.

Answers are kept in the browser under the digest of the table, and saved as a decisions.csv that
`thresher clean --decisions` applies to this table and no other.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thresher.findings.label_findings import Findings
from thresher.findings.target_findings import TargetFindings
from thresher.report.lowest_rows import LowestRows
from thresher.report.phrases import brief, short, visible
from thresher.report.subject import Subject


@dataclass(frozen=True)
class Review:
    """The rows under review, in the order of the list."""

    digest: str  # of the table's files; empty where it is not known
    # labels, names: the classes as the table has them, and as the page shows them
    labels: tuple[str, ...]
    names: tuple[str, ...]
    # of each row its number, id, label, suggestion, and best other label. Labels are numbers.
    rows: tuple[Mapping[str, Any], ...]
    command: str = ""  # the command that applies what was decided; empty where it is not known
    numbers: bool = False  # whether labels are numbers: of each row its own and the expected one

    @property
    def pictured(self) -> bool:
        """Whether there are pictures."""
        return any("image" in row for row in self.rows)

    @property
    def key(self) -> str:
        """Under which a browser keeps the answers."""
        about = json.dumps([self.labels, self.rows], default=str)
        known = self.digest or hashlib.sha256(about.encode()).hexdigest()
        return f"thresher:{known}"

    def document(self) -> dict[str, Any]:
        """For the script of the page."""
        return {
            "digest": self.digest,
            "key": self.key,
            "labels": self.labels,
            "names": self.names,
            "rows": self.rows,
            "numbers": self.numbers,
        }


def describe_review(
    subject: Subject, findings: Findings | None, lowest: LowestRows, record: Mapping[str, Any],
    command: str = "", why: Sequence[Mapping[str, Any]] = (),
) -> Review | None:  # fmt: skip
    """The review of the listed rows; None where nothing is suggested."""
    if findings is None or subject.codes is None or len(subject.classes) < 2:
        return None
    rows = []
    for listed, place in enumerate(lowest.places):
        about = _about_row(subject, findings, place) | {"label": int(subject.codes[place])}
        if findings.near[place]:
            about["best"] = int(findings.best_codes[place])
        rows.append(about | dict(_visible(why[listed]) if why else {}))
    digest = str(record.get("input_digest", ""))
    return Review(
        digest, subject.labels, tuple(map(visible, subject.classes)), tuple(rows), command
    )


def describe_target_review(
    subject: Subject, findings: TargetFindings, lowest: LowestRows, record: Mapping[str, Any],
    command: str = "", why: Sequence[Mapping[str, Any]] = (),
) -> Review:  # fmt: skip
    """The review of the listed rows, where labels are numbers."""
    labels: list[str] = []
    names: list[str] = []
    rows = []
    for listed, place in enumerate(lowest.places):
        about = _about_row(subject, findings, place) | {"label": len(labels)}
        numbers = [float(findings.targets[place])]
        if not math.isnan(findings.expected[place]):
            about["best"] = len(labels) + 1
            numbers.append(float(findings.expected[place]))
        labels += map(repr, numbers)
        names += map(short, numbers)
        rows.append(about | dict(_visible(why[listed]) if why else {}))
    digest = str(record.get("input_digest", ""))
    return Review(digest, tuple(labels), tuple(names), tuple(rows), command, numbers=True)


def _about_row(subject: Subject, findings: Findings, place: int) -> dict[str, Any]:
    """The number, id and suggestion of a row."""
    about = {"row": subject.number(place), "suggestion": findings.suggestion[place]}
    if subject.ids is not None:
        about["id"] = str(subject.ids[place])
        about["name"] = visible(brief(about["id"]))
    return about


def _visible(entry: Any) -> Any:
    """What the page shows of a row, with escapes in all its texts."""
    if isinstance(entry, Mapping):
        return {name: _visible(each) for name, each in entry.items()}
    if isinstance(entry, list | tuple):
        return [_visible(each) for each in entry]
    return visible(entry) if isinstance(entry, str) else entry
