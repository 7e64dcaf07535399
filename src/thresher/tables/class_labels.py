"""Labels of a table, refused where they do not look like classes."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from thresher.errors import InputError, UndecidedError, either, option
from thresher.inputs.coded import Coded
from thresher.inputs.labels import check_labels

FEW_ROWS = 20  # up to so many, labels may well be all different
MOST_DISTINCT = 0.9  # of the rows; beyond, a column is no class


def check_classes(
    what: str, entries: list[Any] | Coded, *, written: bool, task: str | None = None
) -> tuple[Coded, bool]:
    """The labels, if none is missing and they look like classes; and whether they were `written`.

    Labels that were written as text are integers if all look so. With a `task` of classification,
    numbers that are not whole are classes, too.
    """
    labels = Coded.of(check_labels(what, entries))
    if written:
        labels = labels.renamed(plain_labels(labels.distinct))
    check_distinct(what, labels.first_rows(), len(labels), task)
    return labels, written


def check_distinct(
    what: str, distinct: Mapping[Hashable, int], rows: int, task: str | None = None
) -> None:
    """Refuse labels of so many rows, each with the first row it is in, that look like no classes.

    Examples
    --------
    >>> check_distinct("y", {0.5: 0, 1.5: 1}, 2)
    Traceback (most recent call last):
    thresher.errors.UndecidedError: y has numbers that are not whole, such as 0.5 in row 0: it \
looks like the target of a regression; classes are needed: name another label, or group its \
entries into classes
    """
    broken = _broken_number(distinct)
    if broken is not None and task is None:
        raise UndecidedError(
            f"{what} has numbers that are not whole, such as {broken!r} in row "
            f"{distinct[broken]}: it looks like the target of a regression; {which_task()}"
        )
    if rows > FEW_ROWS and len(distinct) > MOST_DISTINCT * rows:
        said = f"{what} has {len(distinct)} distinct entries in {rows} rows: it looks like an id"
        if task is None and all(isinstance(label, int | float | Decimal) for label in distinct):
            raise UndecidedError(f"{said} or the target of a regression; {which_task()}")
        raise InputError(
            f"{said}; classes are needed: name another {option('label')}, or group its entries "
            "into classes"
        )


def which_task() -> str:
    """The way out where labels may be classes or amounts."""
    tasks = f"{option('task', 'regression')} or {option('task', 'classification')}"
    other = f"name another {option('label')}"
    return either(
        f"classes are needed: {other}, or group its entries into classes",
        f"say which with {tasks}, or {other}",
    )


def infer_task(what: str, labels: Iterable[Hashable], rows: int) -> str:
    """Why labels are classes: they are text, or few. Others are refused.

    Examples
    --------
    >>> infer_task("y", ["cat", "dog"], 100), infer_task("y", [0, 1], 100)
    ('the labels are text', '2 different labels')
    """
    distinct = dict.fromkeys(labels)
    if not all(isinstance(label, int | float) for label in distinct):
        return "the labels are text"
    if len(distinct) > max(FEW_ROWS, math.sqrt(rows)):
        raise UndecidedError(
            f"{what} has {len(distinct)} different numbers in {rows} rows, which may be classes or "
            f"amounts: {which_task()}"
        )
    return f"{len(distinct)} different label{'' if len(distinct) == 1 else 's'}"


def _broken_number(distinct: Iterable[Any]) -> Any:
    """The first label that is no whole number, if all are numbers or are written so; else None."""
    first = None
    for label in distinct:
        try:
            number = Decimal(label) if isinstance(label, str | int | Decimal | float) else None
        except ArithmeticError:
            number = None
        if number is None:
            return None
        if first is None and not (number.is_finite() and number == number.to_integral_value()):
            first = label
    return first


def plain_labels(labels: Iterable[Any]) -> tuple[Hashable, ...]:
    """Labels of text, as integers if all are plainly written as such.

    Examples
    --------
    >>> plain_labels(["1", "-2"]), plain_labels(["1", "02"])
    ((1, -2), ('1', '02'))
    """
    found = tuple(labels)
    plain = {label: label for label in found}
    for label in plain:
        if not re.fullmatch(r"0|-?[1-9][0-9]{0,17}", label):
            return found
        plain[label] = int(label)
    return tuple(plain[label] for label in found)
