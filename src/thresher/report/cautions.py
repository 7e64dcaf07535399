"""What speaks against taking a verdict at its word."""

from __future__ import annotations

import numpy as np

from thresher.findings import Findings
from thresher.inputs import count_twins
from thresher.report.private import Private
from thresher.report.reach import RadiusCurve, Reach
from thresher.report.removal import THRESHOLD, Removal
from thresher.report.subject import Data, Subject
from thresher.report.words import count_of, fixed, percent

FEW_VALIDATION = 50
LOW_COVERAGE = 0.8
MANY_OUTLIERS = 0.2
OFF_RADIUS = 0.05  # accuracy that another radius would bring
LEAST_CLEAR = 5  # validation points of another label that are clear, if nobody disagrees
HARDLY = 0.02  # accuracy over that of guessing
NAMES = 5  # labels that are named


def find_cautions(
    subject: Subject, findings: Findings | None, reach: Reach | None, curve: RadiusCurve | None,
    removal: Removal | None,
) -> tuple[str, ...]:  # fmt: skip
    """Everything that calls for caution, the gravest first."""
    found = _about_reach(reach, curve) + _about_near(findings)
    found += _about_validation(subject)
    found += _about_fit(subject, curve, removal)
    if subject.data is not None:
        found += _about_twins(subject.data)
    errors = subject.valuation.standard_errors
    if errors is not None:
        unsure = float((np.abs(subject.values) < 2 * errors).mean())
        if unsure > 0.5:
            found.append(
                f"{percent(unsure)} of the values are within two standard errors of zero: more "
                "coalitions would tell more."
            )
    return tuple(found)


def reasons_for_care(subject: Subject, reach: Reach | None) -> tuple[str, ...]:
    """In few words, what belongs into the verdict itself."""
    found = []
    if reach is not None and reach.share < LOW_COVERAGE:
        found.append(f"{percent(1 - reach.share)} of the validation points have no row near")
    count = subject.valuation.params.get("validation_points")
    if isinstance(count, int) and count < FEW_VALIDATION:
        found.append(f"only {count_of(count, 'validation point', 'validation points')}")
    unseen, _ = _classes_apart(subject)
    if unseen:
        found.append(f"no validation point has the {_labels(unseen)}")
    return tuple(found)


def find_private_cautions(private: Private) -> tuple[str, ...]:
    """The same for a private release."""
    found = []
    if private.seeded:
        found.append("A seed was given, so this release protects nobody: it is for trials alone.")
    if private.caveat:
        found.append(f"The mechanism {private.mechanism} {private.caveat}.")
    if private.bought is None:
        found.append(f"What the budget bought cannot be told: {private.why_not}.")
    elif private.bought.rank_agreement <= private.bought.zero_budget:
        found.append("The score that costs no budget ranks points as well: spend more, or nothing.")
    return tuple(found)


def _about_reach(reach: Reach | None, curve: RadiusCurve | None) -> list[str]:
    if reach is None:
        return []
    found = []
    better = ""
    if curve is not None and curve.suggested > curve.used:
        better = f"; suggest_radius would take {curve.suggested:.4g} instead of {curve.used:.4g}"
    if reach.share < LOW_COVERAGE:
        found.append(
            f"Only {percent(reach.share)} of the validation points have a row within the radius, "
            f"so much of the validation set has no say{better}."
        )
    outliers = reach.total.missing / reach.total.points
    if outliers > MANY_OUTLIERS and reach.share > 0:
        found.append(
            f"{percent(outliers)} of the rows are near no validation point: their value is 0, and "
            f"nothing is known about them{better}."
        )
    if reach.median_near > reach.total.points / 2 and reach.total.points > 20:
        found.append(
            "A typical validation point has more than half of all rows near: the radius is too "
            "large to tell one region from another."
        )
    return found


def _about_near(findings: Findings | None) -> list[str]:
    """Whether there are enough validation points near for a label to be clearly wrong."""
    near = 0 if findings is None else float(np.median(findings.near))
    if not 0 < near < LEAST_CLEAR:
        return []
    return [
        f"A typical row has {count_of(int(near), 'validation point', 'validation points')} near, "
        f"and fewer than {LEAST_CLEAR} cannot clearly speak against a label: wrong ones may only "
        "be marked inspect. More validation points would tell more (--holdout, --validation)."
    ]


def _about_validation(subject: Subject) -> list[str]:
    count = subject.valuation.params.get("validation_points")
    found = []
    if isinstance(count, int) and count < FEW_VALIDATION:
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


def _about_fit(
    subject: Subject, curve: RadiusCurve | None, removal: Removal | None
) -> list[str]:  # fmt: skip
    found = []
    if curve is not None and curve.accuracy_used < curve.accuracy_suggested - OFF_RADIUS:
        found.append(
            f"The radius {curve.used:.4g} does not fit well: among the validation points it is "
            f"right for {percent(curve.accuracy_used)}, and {curve.suggested:.4g} would be for "
            f"{percent(curve.accuracy_suggested)}."
        )
    threshold = None if removal is None else removal.curve(THRESHOLD, "lowest")
    if threshold is not None and subject.codes_val is not None and len(subject.classes) > 1:
        guess = float(np.bincount(subject.codes_val).max() / len(subject.codes_val))
        if threshold.accuracy[0] < guess + HARDLY:
            found.append(
                f"The threshold classifier is right for {fixed(threshold.accuracy[0])} of the "
                f"validation points, hardly more than always guessing the most frequent label "
                f"({fixed(guess)}): these features and this radius tell little about the label."
            )
    return found


def _about_twins(data: Data) -> list[str]:
    twins = count_twins(data.rows, data.rows_val)
    if not twins:
        return []
    copies = count_of(twins, "validation row is an exact copy", "validation rows are exact copies")
    return [f"{copies} of rows that are valued: a leak, which flatters the copies."]
