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
        """The key under which a browser keeps the answers."""
        about = json.dumps([self.labels, self.rows], default=str)
        known = self.digest or hashlib.sha256(about.encode()).hexdigest()
        return f"thresher:{known}"

    def document(self) -> dict[str, Any]:
        """The review as JSON for the script of the page."""
        shown = "digest", "key", "labels", "names", "rows", "numbers"
        return {name: getattr(self, name) for name in shown}


def describe_review(
    subject: Subject, findings: Findings | None, lowest: LowestRows, record: Mapping[str, Any],
    command: str = "", why: Sequence[Mapping[str, Any]] = (),
) -> Review | None:  # fmt: skip
    """The review of the listed rows; None if there are no suggestions."""
    numbers = isinstance(findings, TargetFindings)
    if findings is None or subject.codes is None or (len(subject.classes) < 2 and not numbers):
        return None
    labels, names = ([], []) if numbers else (subject.labels, map(visible, subject.classes))
    labels, names, rows = list(labels), list(names), []
    for listed, place in enumerate(lowest.places):
        about: dict[str, Any] = {"row": subject.number(place)}
        about["suggestion"] = findings.suggestion[place]
        if subject.ids is not None:
            about["id"] = str(subject.ids[place])
            about["name"] = visible(brief(about["id"]))
        if isinstance(findings, TargetFindings):  # each number is a label of its own
            both = findings.targets[place], findings.expected[place]
            known = [float(number) for number in both if not math.isnan(number)]
            about["label"] = len(labels)
            if len(known) > 1:
                about["best"] = len(labels) + 1
            labels += map(repr, known)
            names += map(short, known)
        else:
            about["label"] = int(subject.codes[place])
            if findings.near[place]:
                about["best"] = int(findings.best_codes[place])
        rows.append(about | dict(_visible(why[listed]) if why else {}))
    digest = str(record.get("input_digest", ""))
    return Review(digest, tuple(labels), tuple(names), tuple(rows), command, numbers)


def _visible(entry: Any) -> Any:
    """What the page shows about a row, with escapes in all its texts."""
    if isinstance(entry, Mapping):
        return {name: _visible(each) for name, each in entry.items()}
    if isinstance(entry, list | tuple):
        return [_visible(each) for each in entry]
    return visible(entry) if isinstance(entry, str) else entry
