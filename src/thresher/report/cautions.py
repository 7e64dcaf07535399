"""What speaks against taking a verdict at its word."""

from __future__ import annotations

import numpy as np

from thresher.inputs import count_twins
from thresher.report.coverage import Coverage
from thresher.report.removal import Removal
from thresher.report.subject import Data, Subject
from thresher.report.suggestions import Suggestions
from thresher.report.words import count_of, percent

FEW_VALIDATION = 50
NAMES = 5  # labels that are named


def find_cautions(
    subject: Subject, suggestions: Suggestions | None, coverage: Coverage | None,
    removal: Removal | None,
) -> tuple[str, ...]:  # fmt: skip
    """Everything that calls for caution, the gravest first."""
    found = [] if coverage is None else coverage.cautions()
    found += [] if suggestions is None else suggestions.cautions()
    found += _about_validation(subject)
    found += [] if coverage is None or coverage.radius is None else coverage.radius.cautions()
    found += [] if removal is None else removal.cautions(subject)
    if subject.given is not None:
        found += _about_twins(subject.given)
    errors = subject.valuation.standard_errors
    if errors is not None:
        unsure = float((np.abs(subject.values) < 2 * errors).mean())
        if unsure > 0.5:
            found.append(
                f"{percent(unsure)} of the values are within two standard errors of zero: more "
                "coalitions would tell more."
            )
    return tuple(found)


def reasons_for_care(subject: Subject, coverage: Coverage | None) -> tuple[str, ...]:
    """In few words, what belongs into the verdict itself."""
    found = []
    if coverage is not None and coverage.low:
        found.append(f"{percent(1 - coverage.share)} of the validation points have no row near")
    count = subject.validation_points
    if count is not None and count < FEW_VALIDATION:
        found.append(f"only {count_of(count, 'validation point', 'validation points')}")
    unseen, _ = _classes_apart(subject)
    if unseen:
        found.append(f"no validation point has the {_labels(unseen)}")
    return tuple(found)


def _about_validation(subject: Subject) -> list[str]:
    count, found = subject.validation_points, []
    if count is not None and count < FEW_VALIDATION:
        found.append(
            f"There {'is' if count == 1 else 'are'} only "
            f"{count_of(count, 'validation point', 'validation points')}: a single wrong one can "
            "decide over many rows."
        )
    if subject.held_out:
        found.append(
            "The validation points are rows of the same table that nobody checked: wrong labels "
            "are among them too, so it cannot be told how many suggestions are right, and "
            "accuracies are understated. A validation set with checked labels would tell more."
        )
    unseen, absent = _classes_apart(subject)
    if unseen:
        found.append(
            f"No validation point has the {_labels(unseen)}: rows labeled so can only lose, and "
            "say nothing about their labels."
        )
    if absent:
        found.append(f"No row has the {_labels(absent)}, which validation points have.")
    if len(subject.classes) == 1:
        found.append("There is only one class, so no label can be wrong and no value negative.")
    return found


def _classes_apart(subject: Subject) -> tuple[list[str], list[str]]:
    """Labels that only points have, and those that only validation points have."""
    if subject.codes is None or subject.codes_val is None:
        return [], []
    ours, theirs = (
        np.bincount(codes, minlength=len(subject.classes)) > 0
        for codes in (subject.codes, subject.codes_val)
    )
    apart = ours & ~theirs, theirs & ~ours
    unseen, absent = ([subject.classes[code] for code in np.flatnonzero(which)] for which in apart)
    return unseen, absent


def _labels(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:NAMES])
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"label{'s' if len(names) > 1 else ''} {shown}{more}"


def _about_twins(data: Data) -> list[str]:
    twins = count_twins(data.rows, data.rows_val)
    if not twins:
        return []
    copies = count_of(twins, "validation row is an exact copy", "validation rows are exact copies")
    return [f"{copies} of rows that are valued: a leak, which flatters the copies."]
