"""The verdict: one sentence, what to do, and what speaks against relying on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thresher.findings.false_alarms import FalseAlarms
from thresher.findings.forecast import LEAST_RIGHT
from thresher.findings.second_look import SecondLook
from thresher.inputs.checked_inputs import count_twins
from thresher.report.copied_rows import CopiedRows
from thresher.report.coverage import Coverage
from thresher.report.distribution import Distribution
from thresher.report.phrases import count_of, fixed, none_of, of_all, percent
from thresher.report.removal import CrossCheck, Removal
from thresher.report.subject import Data, Subject
from thresher.report.suggestions import Suggestions
from thresher.report.target_charts import TargetCharts

FEW_VALIDATION = 50
BY_VOTES = {  # what to do about rows that are marked so, by validation points near
    "relabel": "Look at the {rows} marked relabel, lowest value first.",
    "drop": "Look at the {rows} marked drop: they would hurt under every label.",
    "inspect": "If there is time, look at the {rows} marked inspect: most validation points near "
    "disagree, but not clearly.",
    "outlier": "Do not judge the {rows} marked outlier by this: no validation point is near. "
    "Validation points like them, or a larger radius, would tell.",
}
BY_SHARES = {  # and by the rows that share their leaves
    "relabel": "Go through the list of rows to review from the top: {rows} are marked relabel.",
    "drop": "Look at the {rows} marked drop: nothing speaks for their label, or for another one.",
    "inspect": "If there is time, look at the {rows} marked inspect: they come next in the list.",
    "outlier": "Do not judge the {rows} marked outlier by this: hardly any row is like them.",
}
TARGETS_FOUND = {  # of one row, and of several
    "correct": ("is far from what the others expect", "are far from what the others expect"),
    "drop": ("fits no number", "fit no number"),
    "inspect": ("is worth a look", "are worth a look"),
}
BY_TARGETS = {  # and of numbers
    "correct": "Look at the {rows} marked correct, and accept the number that the others expect, "
    "write another one, or drop the row.",
    "drop": "Look at the {rows} marked drop.",
    "inspect": "If there is time, look at the {rows} marked inspect.",
    "outlier": "Do not judge the {rows} marked outlier by this: nothing is near them.",
}
NAMES = 5  # labels that are named


@dataclass(frozen=True)
class Verdict:
    """The verdict in one sentence, and what to do about it, step by step."""

    sentence: str
    steps: tuple[str, ...]


def judge(
    distribution: Distribution, suggestions: Suggestions | None, coverage: Coverage | None,
    checked: CrossCheck | None, care: tuple[str, ...] = (), second: SecondLook | None = None,
) -> Verdict:  # fmt: skip
    """The verdict on exact values; `care` says in a few words why it may be unreliable."""
    if coverage is not None and coverage.share == 0:
        curve = coverage.radius
        better = "" if curve is None else f", such as {curve.suggested:.4g}"
        sentence = (
            "Nothing can be said: no row is within the radius of any validation point, so every "
            "value is 0"
        )
        return Verdict(f"{sentence}.", (f"Value the rows again with a larger radius{better}.",))
    if suggestions is None:
        return _by_values(distribution, checked)
    sentence = f"{_found(suggestions)}{_gain(checked)}.{_second(second)}"
    if care:
        sentence = f"Take this with care ({'; '.join(care)}): {sentence}"
    said = BY_SHARES if suggestions.by_shares else BY_VOTES
    about = {"relabel": said["relabel"] + _about_right(suggestions)}
    return Verdict(sentence, steps_for(suggestions.total, said | about))


def leaking(leak: str) -> Verdict:
    """The verdict while a column repeats the label; `leak` says so in a few words."""
    again = "Leave out what repeats the label or was made from it (--ignore), and value again."
    return Verdict(f"Nothing can be said about wrong labels: {leak}.", (again,))


def nothing_stands_out(suggestions: Suggestions) -> bool:
    """Whether no row is called wrong, or no more rows than by chance."""
    flagged, points, alarms = suggestions.flagged, suggestions.points, suggestions.false_alarms
    if not flagged:
        return not suggestions.total["inspect"]
    if alarms is None or not alarms.trusted or alarms.exceeded(flagged, points):
        return False
    return flagged <= 2 * alarms.share * points


def _second(look: SecondLook | None) -> str:
    """What another method found after the first one found nothing."""
    if look is None:
        return ""
    if not look.called_wrong:
        return f" A second look, by {look.method}, finds nothing either."
    wrong = of_all(look.called_wrong, look.rows, "as", "as").removesuffix(" as")
    return f" A second look, by {look.method}, calls {wrong} wrong: see which, by that method."


def _found(suggestions: Suggestions) -> str:
    total, points, flagged = suggestions.total, suggestions.points, suggestions.flagged
    alarms = suggestions.false_alarms
    if flagged and alarms is not None and alarms.trusted and not alarms.exceeded(flagged, points):
        return _by_chance(flagged, alarms, points) + _look(total["inspect"])
    if nothing_stands_out(suggestions):
        return f"Nothing stands out: {none_of(points, 'suggested for a closer look')}"
    if not flagged:
        said = of_all(total["inspect"], points, "is", "are")
        return f"Nothing is clearly mislabeled, but {said} worth a look (suggestion: inspect)"
    parts = []
    if total["relabel"]:
        parts.append(_mislabeled(suggestions))
    if total["drop"]:
        said = of_all(total["drop"], points, "fits", "fit")
        if parts:
            said = count_of(total["drop"], "fits", "fit")
        parts.append(f"{said} no label (suggestion: drop)")
    if total["inspect"]:
        parts.append(_look(total["inspect"]).removeprefix(", and "))
    return f"{', '.join(parts[:-1])}, and {parts[-1]}" if len(parts) > 1 else parts[0]


def _look(inspect: int) -> str:
    are = "is" if inspect == 1 else "are"
    return f", and {inspect:,} more {are} worth a look (suggestion: inspect)" if inspect else ""


def _by_chance(flagged: int, alarms: FalseAlarms, points: int) -> str:
    """The verdict if no more rows are flagged than right labels would be, or if that is unclear."""
    share = percent(flagged / points)
    if flagged > 2 * alarms.share * points:
        return (
            f"{of_all(flagged, points, 'contradicts', 'contradict')} the validation points "
            f"near ({share}), but these are too few to tell whether that is more than chance "
            f"({percent(alarms.share)} of them contradict each other)"
        )
    return (
        f"Nothing stands out: {of_all(flagged, points, 'contradicts', 'contradict')} the "
        f"validation points near ({share}), not clearly more than right labels do "
        f"({percent(alarms.share)} of the validation set)"
    )


def _mislabeled(suggestions: Suggestions) -> str:
    """The rows marked relabel; if right labels often look wrong, how many are truly mislabeled."""
    relabel, alarms = suggestions.total["relabel"], suggestions.false_alarms
    said = of_all(relabel, suggestions.points, "looks", "look")
    if suggestions.forecast is not None and suggestions.forecast.poor:
        return (
            f"{said} mislabeled (suggestion: relabel), but classes overlap so much that right "
            "labels look wrong as well"
        )
    if alarms is not None and not alarms.trusted:
        return f"{said} mislabeled (suggestion: relabel)"
    wrong = relabel - suggestions.count_right()
    if suggestions.forecast is not None and suggestions.forecast.right < LEAST_RIGHT:
        wrong = round(suggestions.forecast.right * relabel)
    if wrong > 0.9 * relabel:
        said = of_all(relabel, suggestions.points, "is", "are")
        return f"{said} probably mislabeled (suggestion: relabel)"
    return f"{said} mislabeled (suggestion: relabel), and about {wrong:,} of these probably are"


def _gain(checked: CrossCheck | None) -> str:
    if checked is None:
        return ""
    ends = f"from {fixed(checked.before)} to {fixed(checked.after)}"
    change = "raises" if checked.after > checked.before else "lowers"
    if checked.after == checked.before:
        change, ends = "leaves", f"at {fixed(checked.before)}"
    chance = "" if checked.clear else ", which may be chance"
    return (
        f"; dropping the lowest tenth {change} the accuracy of a logistic regression {ends} on "
        f"validation points other than those that chose them{chance}"
    )


def _by_values(distribution: Distribution, checked: CrossCheck | None) -> Verdict:
    points, negative = distribution.whole.points, distribution.whole.negative
    if negative:
        sentence = f"{of_all(negative, points, 'has', 'have')} a negative value"
    else:
        sentence = f"Nothing stands out: {none_of(points, 'worth less than nothing')}"
    steps = (
        "Look at the rows with the lowest values first: they hurt by this method, which may "
        "mean a wrong label, a rare case, or a hard one.",
        "For suggestions, value the rows by forest_shapley (--method forest), and pass the data "
        "to the report.",
    )
    return Verdict(f"{sentence}{_gain(checked)}.", steps)


def steps_for(total: Mapping[str, int], said: Mapping[str, str]) -> tuple[str, ...]:
    """What to do about the rows with each mark, by the sentence in `said` about that mark."""
    steps = [
        text.format(rows=count_of(total[word], "row")) for word, text in said.items() if total[word]
    ]
    if not steps:
        return ("Nothing needs to be done.",)
    return (*steps, "Change the data, then value again: values depend on the other rows.")


def _about_right(suggestions: Suggestions) -> str:
    """How many of the rows marked relabel are right as they are, as far as that is known."""
    if suggestions.forecast is not None and suggestions.forecast.poor:
        return " Many of them are probably right as they are: change none without looking."
    if suggestions.false_alarms is not None and not suggestions.false_alarms.trusted:
        return " They were judged by rows of the same table, so look before you change them."
    if why := suggestions.why_look():
        return f" Change none without looking: {why}."
    right = suggestions.count_right()
    if not right:
        return ""
    return f" About {right:,} of them may be right as they are, so look before you change them."


def judge_targets(charts: TargetCharts, removal: Removal | None) -> Verdict:
    """The verdict on numbers."""
    parts = [
        f"{of_all(charts.total[word], charts.points, one, many)} (suggestion: {word})"
        for word, (one, many) in TARGETS_FOUND.items()
        if charts.total[word]
    ]
    nothing = f"Nothing stands out: {none_of(charts.points, 'suggested for a look')}"
    gain = "" if removal is None else _target_gain(removal)
    return Verdict(f"{'; '.join(parts) or nothing}{gain}.", steps_for(charts.total, BY_TARGETS))


def _target_gain(removal: Removal) -> str:
    curve = removal.curves[removal.models[0], "lowest"]
    place = removal.fractions.index(0.1)
    return (
        f"; without the lowest tenth, R^2 of a {removal.models[0]} goes from {curve[0]:.3f} to "
        f"{curve[place]:.3f} on the validation set, which also chose them"
    )


def find_cautions(
    subject: Subject, suggestions: Suggestions | None, coverage: Coverage | None,
    removal: Removal | None, copies: CopiedRows | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Everything that calls for caution, the most serious first."""
    parts = [part for part in (copies, coverage, suggestions) if part is not None]
    found = [caution for part in parts for caution in part.cautions()] + _about_validation(subject)
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
    """Reasons for caution that belong in the verdict itself, in a few words each."""
    found = []
    if coverage is not None and coverage.low:
        found.append(f"{percent(1 - coverage.share)} of the validation points have no row near")
    count = subject.validation_points
    if count is not None and count < FEW_VALIDATION:
        found.append(f"only {count_of(count, 'validation point')}")
    unseen, _ = _classes_apart(subject)
    if unseen:
        found.append(f"no validation point has the {_labels(unseen)}")
    return tuple(found)


def _about_validation(subject: Subject) -> list[str]:
    count, found = subject.validation_points, []
    if count is not None and count < FEW_VALIDATION:
        found.append(
            f"There {'is' if count == 1 else 'are'} only {count_of(count, 'validation point')}: a "
            "single wrong one can decide over many rows."
        )
    if subject.held_out:
        found.append(
            "The validation points are rows of the same table that nobody checked: wrong labels "
            "are among them too, so nobody knows how many suggestions are right, and "
            "accuracies are understated. A validation set with checked labels would tell more."
        )
    if subject.targets is not None:
        return found
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
    return [
        f"{copies} of rows that are valued: this leak makes the copies look better than they are."
    ]
