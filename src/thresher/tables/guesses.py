"""Guesses: which column of a table holds labels, ids or owners."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thresher.inputs.spelling import spelled
from thresher.tables.column_profile import Profile, is_id_name
from thresher.tables.label_column import FEW_ROWS

LABEL_NAMES = (
    "y", "label", "labels", "target", "class", "class label", "label name", "true label", "y true",
    "ground truth", "gold", "gold label", "classification", "outcome",
)  # fmt: skip
OWNER_NAMES = (
    "owner", "owners", "owner id", "data owner", "provider", "contributor", "annotator",
    "annotator id", "labeler", "vendor", "supplier",
)  # fmt: skip
AMOUNT_NAMES = (  # of a last column that is probably to be predicted as a number
    "price", "sale price", "amount", "cost", "value", "revenue", "sales", "salary", "income",
    "demand", "duration", "yield", "rating", "score",
)  # fmt: skip
FEW_NUMBERS = 10  # different whole numbers in the last column that are taken for classes


@dataclass(frozen=True)
class Guess:
    """A column, and why it was taken."""

    column: str
    why: str


def guess_label(profiles: Sequence[Profile]) -> Guess | None:
    """The column of labels: by its name, or by its place and its few different entries.

    Examples
    --------
    >>> x, y = Profile("x", "number", 9, 0, 9), Profile("kind", "category", 9, 0, 2)
    >>> guess_label([x, y])
    Guess(column='kind', why='the last column, 2 different entries')
    """
    by_name = {plain_name(each.name): each for each in reversed(profiles)}
    for name in LABEL_NAMES:
        if name in by_name and by_name[name].kind != "empty":
            return Guess(by_name[name].name, "by its name")
    likely = label_candidates(profiles)
    usable = [each for each in profiles if each.kind not in {"id", "empty", "constant"}]
    for place, each in (("last", usable[-1:]), ("first", usable[:1])):
        few = each and (each[0].kind == "category" or each[0].distinct <= FEW_NUMBERS)
        if few and each[0].name in likely and (place == "last" or each[0].kind == "category"):
            return Guess(each[0].name, f"the {place} column, {each[0].distinct} different entries")
    if usable and usable[-1].kind == "number" and plain_name(usable[-1].name) in AMOUNT_NAMES:
        return Guess(usable[-1].name, "the last column, by its name")
    words = [each for each in profiles if each.name in likely and each.kind == "category"]
    if len(words) == 1:
        return Guess(words[0].name, f"the only column of categories, {words[0].distinct} different")
    return None


def label_candidates(profiles: Iterable[Profile]) -> list[str]:
    """The columns that may hold labels: at least two different entries, and not too many."""
    return [each.name for each in profiles if _is_class(each)]


def _is_class(column: Profile) -> bool:
    most = max(FEW_ROWS, math.sqrt(column.rows))
    few = 2 <= column.distinct <= most
    return few and (column.kind == "category" or (column.kind == "number" and column.whole))


def guess_id(profiles: Iterable[Profile]) -> Guess | None:
    """The column of ids: one whose entries are all different, by its name or as codes."""
    likely = [each for each in profiles if is_certain_id(each)]
    named = [each for each in likely if is_id_name(each.name)]
    for each in (*named, *likely):
        return Guess(each.name, each.note or "all different")
    return None


def is_certain_id(column: Profile) -> bool:
    """Whether a column surely holds ids: by its name, because it has no name, or by its codes."""
    sure = is_id_name(column.name) or not column.name or column.note.startswith(("codes", "names"))
    return column.kind == "id" and sure and not column.missing and column.distinct == column.rows


def guess_owner(profiles: Iterable[Profile]) -> Guess | None:
    """The column of owners, by its name."""
    for each in profiles:
        several = 2 <= each.distinct <= each.rows / 2 and not each.missing
        if plain_name(each.name) in OWNER_NAMES and several:
            return Guess(each.name, f"by its name, {each.distinct} different")
    return None


def plain_name(name: str) -> str:
    """A name without capitals, underscores and the like.

    Examples
    --------
    >>> plain_name("Class_Label "), plain_name("y-true")
    ('class label', 'y true')
    """
    return spelled(name.replace("_", " ").replace("-", " ").replace(".", " "))
