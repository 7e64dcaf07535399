"""Labels of a table, as classes or as numbers to predict; refused if they look like neither."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.errors import InputError, UndecidedError, either, option
from thresher.inputs.checks import MAX_INTEGER, rows_text
from thresher.inputs.coded import Coded
from thresher.inputs.labels import check_labels, is_missing
from thresher.tables.cell_format import CellFormat
from thresher.tables.number_text import plain_numbers, sign_kind

FEW_ROWS = 20  # up to so many, labels may well be all different
MOST_DISTINCT = 0.9  # of the rows; beyond, a column is no class


def check_classes(
    what: str,
    entries: list[Any] | Coded,
    *,
    written: bool,
    task: str | None = None,
    rows: NDArray[np.int64] | None = None,
) -> tuple[Coded, bool]:
    """The labels, if none is missing and they look like classes; and whether they were `written`.

    Labels that were written as text become integers if all look like integers. If `task` is
    classification, numbers that are not whole are classes, too. Messages name rows by
    the numbers in `rows`.
    """
    labels = Coded.of(check_labels(what, entries))
    if written:
        labels = labels.renamed(plain_labels(labels.distinct))
    first = labels.first_rows()
    if rows is not None:
        first = {label: int(rows[row]) for label, row in first.items()}
    check_distinct(what, first, len(labels), task)
    return labels, written


def check_distinct(
    what: str, distinct: Mapping[Hashable, int], rows: int, task: str | None = None
) -> None:
    """Refuse labels that do not look like classes; `distinct` has the first row of each label.

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
    """What to do if labels may be classes or amounts."""
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
    """The first label that is not a whole number, if all say numbers; else None."""
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


def check_target_cells(
    what: str, entries: Iterable[Any], cells: CellFormat, *, first: int = 0
) -> Coded:
    """The targets as floats, if every entry is a finite number that float64 holds.

    `first` is the number of the first row.

    Examples
    --------
    >>> check_target_cells("y", ["1.5", "2", "-3e2"], CellFormat())
    (1.5, 2.0, -300.0)
    """
    raw = Coded.of(entries)
    numbers = _target_numbers(raw.distinct, cells)

    def refuse(
        wrong: Callable[[Any, float], bool], why: str, way_out: str, *, quoted: bool = False
    ) -> None:
        pairs = zip(raw.distinct, numbers, strict=True)
        bad = {code for code, (cell, number) in enumerate(pairs) if wrong(cell, number)}
        if bad:
            rows = [row for row, code in enumerate(raw.codes.tolist(), first) if code in bad]
            such = f", such as {raw[rows[0] - first]!r}" if quoted else ""
            raise InputError(f"{what} has {why}{such} in {rows_text(rows)}: {way_out}")

    refuse(lambda cell, _: _is_gap(cell), "missing targets", "drop those rows, or fill them in")
    needs = f"{option('task', 'regression')} needs numbers; name another {option('label')}"
    no_numbers = "entries that are not numbers"
    refuse(lambda _, number: math.isnan(number), no_numbers, needs, quoted=True)
    huge = "integers beyond 2**53, which no float64 holds"
    refuse(
        lambda cell, number: _is_whole(cell) and abs(number) > MAX_INTEGER,
        huge, "rescale them", quoted=True,
    )  # fmt: skip
    refuse(lambda _, number: math.isinf(number), "infinite targets", "drop those rows")
    return Coded.of([numbers[code] for code in raw.codes.tolist()])


def _target_numbers(distinct: Iterable[Any], cells: CellFormat) -> list[float]:
    """Entries as numbers, text in the notation of the table; NaN where they are none."""
    texts = [each.strip() for each in distinct if isinstance(each, str)]
    kind = next((sign_kind(text) for text in texts if text), None) or "number"
    column = pa.chunked_array([texts], pa.string())
    plain, odd = plain_numbers(column, cells.decimal, cells.thousands, kind)
    triples = zip(texts, plain.to_pylist(), odd.to_pylist(), strict=True)
    known = {text: float(number) for text, number, is_odd in triples if not is_odd}

    def number(entry: Any) -> float:
        if isinstance(entry, str):
            endless = entry.strip().lower().lstrip("+-") in {"inf", "infinity"}
            return known.get(entry.strip(), math.inf if endless else math.nan)
        if isinstance(entry, int | float) and not isinstance(entry, bool):
            return float(entry) if abs(entry) < 10**300 else math.inf
        return float(entry) if isinstance(entry, Decimal) else math.nan

    return list(map(number, distinct))


def _is_gap(cell: Any) -> bool:
    return is_missing(cell) or (isinstance(cell, str) and cell.strip().lower() in {"", "nan", "na"})


def _is_whole(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lstrip("+-").isdigit()
    return isinstance(cell, int)
