"""What it comes to: one sentence, what speaks against it, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from thresher.report.crosscheck import Checked
from thresher.report.doubt import Doubt
from thresher.report.private import Private
from thresher.report.reach import RadiusCurve, Reach
from thresher.report.spread import Spread
from thresher.report.suggested import Suggested
from thresher.report.words import count_of, fixed, none_of, of_all, percent


@dataclass(frozen=True)
class Verdict:
    """The verdict in one sentence, and what to do about it, step by step."""

    sentence: str
    steps: tuple[str, ...]


def judge(
    spread: Spread,
    suggested: Suggested | None,
    reach: Reach | None,
    curve: RadiusCurve | None,
    doubt: Doubt | None,
    checked: Checked | None,
    care: tuple[str, ...] = (),
) -> Verdict:
    """The verdict on exact values; `care` says in few words why it may not be one."""
    points = spread.whole.points
    if reach is not None and reach.share == 0:
        better = "" if curve is None else f", such as {curve.suggested:.4g}"
        sentence = (
            "Nothing can be said: no row is within the radius of any validation point, so every "
            "value is 0"
        )
        return Verdict(f"{sentence}.", (f"Value the rows again with a larger radius{better}.",))
    if suggested is None:
        return _by_values(spread, checked)
    sentence = f"{_found(suggested, doubt, points)}{_gain(checked)}."
    if care:
        sentence = f"To be taken with care ({'; '.join(care)}): {sentence}"
    return Verdict(sentence, _steps(suggested, doubt, points))


def judge_release(private: Private) -> Verdict:
    """The verdict on a private release."""
    budget = f"epsilon = {private.epsilon:g}, delta = {private.delta:g}"
    steps: tuple[str, ...] = (
        "Publish the price list: it is what was released, and anyone may hold it.",
        "Let each owner value its own points with it (thresher appraise); a list of everybody's "
        "values is not covered by the guarantee.",
    )
    if private.prices is None:
        steps = ("Tell each owner the values of its own points, and nobody else.",)
    protects = f"A release at {budget}, {private.adjacency}, that protects each {private.unit}"
    if private.seeded:
        protects = f"A trial release at {budget} that protects nobody, since a seed was given"
        steps = ("Release again without a seed before anything leaves your hands.",)
    if private.bought is None:
        return Verdict(f"{protects}; how good its values are cannot be told.", steps)
    bought = private.bought
    better = bought.rank_agreement > bought.zero_budget
    against = "better than" if better else "no better than"
    return Verdict(
        f"{protects}: values are expected to be off by {percent(bought.relative_error)} and to "
        f"rank points with an agreement of {fixed(bought.rank_agreement)} with the exact ones, "
        f"{against} the {fixed(bought.zero_budget)} that costs no budget at all.",
        steps,
    )


def _found(suggested: Suggested, doubt: Doubt | None, points: int) -> str:
    total = suggested.total
    flagged = total["relabel"] + total["drop"]
    if flagged and doubt is not None and doubt.trusted and not doubt.exceeded(flagged, points):
        return _by_chance(flagged, doubt, points) + _look(total["inspect"])
    if not flagged and not total["inspect"]:
        return f"Nothing stands out: {none_of(points, 'suggested for a closer look')}"
    if not flagged:
        said = of_all(total["inspect"], points, "is", "are")
        return f"Nothing is clearly mislabeled, but {said} worth a look (suggestion: inspect)"
    parts = []
    if total["relabel"]:
        parts.append(_mislabeled(total, doubt, points))
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


def _by_chance(flagged: int, doubt: Doubt, points: int) -> str:
    """Where no more rows are flagged than right labels would be, or that cannot be told."""
    share = percent(flagged / points)
    if flagged > 2 * doubt.share * points:
        return (
            f"{of_all(flagged, points, 'contradicts', 'contradict')} the validation points "
            f"near ({share}), but these are too few to tell whether that is more than chance "
            f"({percent(doubt.share)} of them contradict each other)"
        )
    return (
        f"Nothing stands out: {of_all(flagged, points, 'contradicts', 'contradict')} the "
        f"validation points near ({share}), not clearly more than right labels do "
        f"({percent(doubt.share)} of the validation set)"
    )


def _mislabeled(total: dict[str, int], doubt: Doubt | None, points: int) -> str:
    """Rows marked relabel; where right labels often look wrong, how many of them are to blame."""
    relabel = total["relabel"]
    if doubt is not None and not doubt.trusted:
        return f"{of_all(relabel, points, 'looks', 'look')} mislabeled (suggestion: relabel)"
    wrong = relabel - count_right(total, doubt, points)
    if wrong > 0.9 * relabel:
        said = of_all(relabel, points, "is", "are")
        return f"{said} probably mislabeled (suggestion: relabel)"
    said = of_all(relabel, points, "looks", "look")
    return f"{said} mislabeled (suggestion: relabel), of which about {wrong:,} probably are"


def _gain(checked: Checked | None) -> str:
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


def _by_values(spread: Spread, checked: Checked | None) -> Verdict:
    whole = spread.whole
    if whole.negative:
        sentence = f"{of_all(whole.negative, whole.points, 'has', 'have')} a negative value"
    else:
        sentence = f"Nothing stands out: {none_of(whole.points, 'worth less than nothing')}"
    steps = (
        "Look at the rows with the lowest values first: they hurt by this method, which may "
        "mean a wrong label, a rare case, or a hard one.",
        "For suggestions, value the rows by tknn_shapley (--method tknn), and hand the data to the "
        "report.",
    )
    return Verdict(f"{sentence}{_gain(checked)}.", steps)


def _steps(suggested: Suggested, doubt: Doubt | None, points: int) -> tuple[str, ...]:
    total, steps = suggested.total, []
    if total["relabel"]:
        rows = count_of(total["relabel"], "row", "rows")
        caution = _about_right(total, doubt, points)
        steps.append(f"Look at the {rows} marked relabel, lowest value first.{caution}")
    if total["drop"]:
        rows = count_of(total["drop"], "row", "rows")
        steps.append(f"Look at the {rows} marked drop: they would hurt under every label.")
    if total["inspect"]:
        rows = count_of(total["inspect"], "row", "rows")
        steps.append(
            f"If there is time, look at the {rows} marked inspect: most validation points near "
            "disagree, but not clearly."
        )
    if total["outlier"]:
        rows = count_of(total["outlier"], "row", "rows")
        steps.append(
            f"Do not judge the {rows} marked outlier by this: no validation point is near. "
            "Validation points like them, or a larger radius, would tell."
        )
    if steps:
        steps.append("Change the data, then value again: values depend on the other rows.")
    return tuple(steps) or ("Nothing needs to be done.",)


def count_right(total: dict[str, int], doubt: Doubt | None, points: int) -> int:
    """How many of the rows marked relabel are probably right as they are.

    If w labels are wrong and a share s of right ones looks wrong, w + s (points - w) are flagged.
    """
    flagged = total["relabel"] + total["drop"]
    if doubt is None or not flagged:
        return 0
    wrong = max(0.0, (flagged - doubt.share * points) / max(1 - doubt.share, 1e-9))
    return total["relabel"] - min(total["relabel"], round(wrong * total["relabel"] / flagged))


def _about_right(total: dict[str, int], doubt: Doubt | None, points: int) -> str:
    """How many of the rows marked relabel are right as they are, going by the validation set."""
    if doubt is not None and not doubt.trusted:
        return " They were judged by rows of the same table, so look before you change them."
    right = count_right(total, doubt, points)
    if not right:
        return ""
    if right > 0.8 * total["relabel"]:
        return " Most of them are probably right as they are: change none without looking."
    return f" About {right:,} of them may be right as they are, so look before you change them."
