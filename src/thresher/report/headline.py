"""The headline: what it comes to, for somebody who reads one line, and three numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thresher.report.coverage import Coverage
from thresher.report.distribution import Distribution
from thresher.report.lowest_rows import LowestRows
from thresher.report.phrases import count_of, percent, rough, short, whole_percent
from thresher.report.suggestions import Suggestions
from thresher.report.verdict import nothing_stands_out

MANY = 0.05  # share of wrong labels from which on they are many
STATES = {  # a mark and words, so that the color is not all there is
    "good": ("●", "Looks good"),
    "doubtful": ("◆", "Nothing is clearly wrong"),
    "look": ("▲", "Some labels are wrong"),
    "bad": ("■", "Many labels are wrong"),
    "numbers": ("▲", "Some targets look wrong"),
    "many numbers": ("■", "Many targets look wrong"),
    "unsure": ("◆", "Cannot be told for sure"),
}


@dataclass(frozen=True)
class Headline:
    """One or two sentences, a state, and the numbers that matter: name, number, what else."""

    sentence: str
    state: str
    numbers: tuple[tuple[str, str, str], ...]

    @property
    def color(self) -> str:
        """The class of the page's style."""
        colors = {"numbers": "look", "many numbers": "bad", "doubtful": "unsure"}
        return colors.get(self.state, self.state)

    @property
    def mark(self) -> str:
        """The state as a shape."""
        return STATES[self.state][0]

    @property
    def words(self) -> str:
        """The state in words."""
        return STATES[self.state][1]


def describe_headline(
    distribution: Distribution, suggestions: Suggestions | None, coverage: Coverage | None,
    lowest: LowestRows,
) -> Headline:  # fmt: skip
    """The headline on exact values."""
    rows, listed = distribution.whole.points, lowest.marked or 0
    review = review_number(listed, {} if suggestions is None else suggestions.total)
    if coverage is not None and coverage.share == 0:
        sentence = "Nothing can be said yet: the radius is too small for these rows."
        return Headline(sentence, "unsure", (("rows", short(rows), ""),))
    if suggestions is None:
        return _by_values(distribution)
    if nothing_stands_out(suggestions):
        doubtful = rows_to_look_at(lowest, wrong=False)
        sentence = f"Nothing stands out among {count_of(rows, 'label')}.{doubtful}"
        return Headline(sentence, calm_state(listed), (("labels", short(rows), ""), review))
    wrong, sure = _wrong(suggestions)
    number = ("probably wrong" if sure else "look wrong", _about(wrong), _share(wrong, rows))
    numbers = (("labels", short(rows), ""), number, review)
    if not wrong:
        sentence = f"No label is clearly wrong.{rows_to_look_at(lowest, wrong=False)}"
        return Headline(sentence, calm_state(listed), numbers)
    are = "is" if wrong == 1 else "are"
    if sure:
        sentence = f"{_about(wrong).capitalize()} of {rows:,} labels {are} wrong."
        state = "bad" if wrong >= MANY * rows else "look"
        return Headline(f"{sentence}{rows_to_look_at(lowest, wrong=True)}", state, numbers)
    why = "nobody checked the rows that judge them"
    if suggestions.forecast is not None:
        why = "the classes overlap, so many of them are right"
    look = "looks" if wrong == 1 else "look"
    sentence = f"{_about(wrong).capitalize()} of {rows:,} labels {look} wrong, but {why}."
    return Headline(f"{sentence}{rows_to_look_at(lowest, wrong=True)}", "unsure", numbers)


def _wrong(suggestions: Suggestions) -> tuple[int, bool]:
    """How many labels are wrong, and whether that can be told."""
    forecast, alarms = suggestions.forecast, suggestions.false_alarms
    if forecast is not None:
        return round(forecast.wrong), not forecast.poor
    return suggestions.flagged - suggestions.count_right(), alarms is not None and alarms.trusted


def _about(number: int) -> str:
    return f"about {rough(number)}" if number else "0"


def _share(wrong: int, rows: int) -> str:
    return f"{whole_percent(wrong / rows)} of all" if wrong else ""


def calm_state(listed: int) -> str:
    """The state where nothing is clearly wrong: good only if there is nothing to look at either."""
    return "doubtful" if listed else "good"


def review_number(listed: int, total: Mapping[str, int]) -> tuple[str, str, str]:
    """How many rows are listed, and what they add up from."""
    parts = {name: total.get(name, 0) for name in ("relabel", "correct", "drop", "inspect")}
    parts["copies"] = listed - sum(parts.values())
    said = ", ".join(f"{short(number)} {name}" for name, number in parts.items() if number > 0)
    return ("rows to review", short(listed), said)


def rows_to_look_at(lowest: LowestRows, *, wrong: bool) -> str:
    """How many rows are worth a look, or doubtful where none is clearly wrong."""
    marked, shown = lowest.marked or 0, len(lowest.rows)
    if not marked:
        return ""
    if marked > shown:
        why = "worth a look," if wrong else "doubtful: if there is time, look at"
        return f" {marked:,} rows are {why} these {shown:,} first."
    these = "this row is" if shown == 1 else f"these {shown:,} rows are"
    return f" {these.capitalize()} worth a look." if wrong else f" But {these} doubtful."


def _by_values(distribution: Distribution) -> Headline:
    whole = distribution.whole
    negative = count_of(whole.negative, "row makes", "rows make")
    sentence = f"{negative} the model worse. Look at the lowest values first."
    if not whole.negative:
        sentence = f"None of {count_of(whole.points, 'row')} makes the model worse."
    numbers = (
        ("rows", short(whole.points), ""),
        ("negative values", short(whole.negative), percent(whole.negative / whole.points)),
    )
    return Headline(sentence, "unsure" if whole.negative else "good", numbers)
