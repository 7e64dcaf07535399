"""The headline: the result for somebody who reads one line, and three numbers."""

from __future__ import annotations

from dataclasses import dataclass

from thresher.report.coverage import Coverage
from thresher.report.distribution import Distribution
from thresher.report.lowest_rows import LowestRows
from thresher.report.phrases import count_of, rough, short, whole_percent
from thresher.report.suggestions import Counted, Suggestions
from thresher.report.target_charts import TargetCharts
from thresher.report.verdict import nothing_stands_out

MANY = 0.05  # share of wrong labels from which on they are many
STATES = {  # a color, and a mark and words, so that the color is not all there is
    "good": ("good", "●", "Looks good"),
    "doubtful": ("unsure", "◆", "Nothing is clearly wrong"),
    "look": ("look", "▲", "Some labels are probably wrong"),
    "bad": ("bad", "■", "Many labels are probably wrong"),
    "numbers": ("look", "▲", "Some targets look wrong"),
    "many numbers": ("bad", "■", "Many targets look wrong"),
    "unsure": ("unsure", "◆", "Not known for sure"),
}

Number = tuple[str, str, str]  # its name, the number, and what else there is to say


@dataclass(frozen=True)
class Headline:
    """One or two sentences, a state, and the numbers that matter."""

    sentence: str
    state: str
    numbers: tuple[Number, ...]

    @property
    def color(self) -> str:
        """The class of the page's style."""
        return STATES[self.state][0]

    @property
    def mark(self) -> str:
        """A shape that stands for the state."""
        return STATES[self.state][1]

    @property
    def words(self) -> str:
        """The state in words."""
        return STATES[self.state][2]


def describe_headline(
    distribution: Distribution, suggestions: Suggestions | None, coverage: Coverage | None,
    lowest: LowestRows,
) -> Headline:  # fmt: skip
    """The headline on exact values."""
    rows = distribution.whole.points
    labels = ("labels", short(rows), "")
    if coverage is not None and coverage.share == 0:
        sentence = "Nothing can be said yet: the radius is too small for these rows."
        return Headline(sentence, "unsure", (("rows", short(rows), ""),))
    if suggestions is None:
        return _by_values(distribution)
    if nothing_stands_out(suggestions):
        sentence = f"Nothing stands out among {count_of(rows, 'label')}."
        return _headline(sentence, "", (labels,), suggestions, lowest)
    wrong, sure = _wrong(suggestions)
    about = f"about {rough(wrong)}" if wrong else "0"
    numbers = labels, ("probably wrong" if sure else "look wrong", about, _share(wrong, rows))
    sentence, state = "No label is clearly wrong.", ""
    if wrong and sure:
        are = "is" if wrong == 1 else "are"
        sentence = f"{about.capitalize()} of {rows:,} labels {are} probably wrong."
        state = "bad" if wrong >= MANY * rows else "look"
    elif wrong:
        why = "nobody checked the rows that judge them"
        if suggestions.forecast is not None:
            why = "the classes overlap, so many of them are right"
        look, state = "looks" if wrong == 1 else "look", "unsure"
        sentence = f"{about.capitalize()} of {rows:,} labels {look} wrong, but {why}."
    return _headline(sentence, state, numbers, suggestions, lowest)


def target_headline(charts: TargetCharts, lowest: LowestRows) -> Headline:
    """The headline on numbers."""
    rows, wrong = charts.points, charts.flagged
    sentence, state = f"No target of {count_of(rows, 'row')} is clearly wrong.", ""
    if wrong:
        look = "looks" if wrong == 1 else "look"
        sentence = f"{wrong:,} of {rows:,} targets {look} wrong."
        state = "many numbers" if wrong >= MANY * rows else "numbers"
    numbers = ("targets", short(rows), ""), ("look wrong", short(wrong), _share(wrong, rows))
    return _headline(sentence, state, numbers, charts, lowest)


def _headline(
    sentence: str, state: str, numbers: tuple[Number, ...], counted: Counted, lowest: LowestRows
) -> Headline:
    """A headline that adds how many rows to look at; `state` is empty if none is clearly wrong."""
    listed = lowest.marked or 0
    parts = {word: counted.total.get(word, 0) for word in ("relabel", "correct", "drop", "inspect")}
    parts["copies"] = listed - sum(parts.values())
    said = ", ".join(f"{short(number)} {name}" for name, number in parts.items() if number > 0)
    look = _rows_to_look_at(listed, len(lowest.rows), wrong=bool(state))
    calm = "doubtful" if listed else "good"
    review = ("rows to review", short(listed), said)
    return Headline(f"{sentence}{look}", state or calm, (*numbers, review))


def _wrong(suggestions: Suggestions) -> tuple[int, bool]:
    """How many labels are wrong, and whether that number is reliable."""
    forecast, alarms = suggestions.forecast, suggestions.false_alarms
    if forecast is not None:
        return round(forecast.wrong), not forecast.poor
    return suggestions.flagged - suggestions.count_right(), alarms is not None and alarms.trusted


def _share(wrong: int, rows: int) -> str:
    return f"{whole_percent(wrong / rows)} of all" if wrong else ""


def _rows_to_look_at(marked: int, shown: int, *, wrong: bool) -> str:
    """A sentence on how many rows are worth a look, or doubtful if none is clearly wrong."""
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
    return Headline(sentence, "unsure" if whole.negative else "good", tuple(distribution.tiles()))
