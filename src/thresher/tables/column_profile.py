"""What a column is by its cells: number, category, text, date, id, constant or empty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thresher.array_types import Floats
from thresher.inputs.spelling import MISSING, NO_LABEL
from thresher.tables.cell_format import CellFormat
from thresher.tables.date_text import date_formats, is_date
from thresher.tables.number_text import (
    MEASURE,
    NOTATIONS,
    notation_of,
    number_pattern,
    plain_numbers,
    sign_kind,
)

LOOKED = 1000  # texts that tell what a column of text is, and cells that tell that it has any
MOST_STRAYS = 3  # words that stand for missing numbers
FEW_STRAYS = 0.2  # of the cells: with more, a column is no numbers
MOST_DISTINCT = 0.5  # of the rows: with more different texts, a column is no category
FEW = 20  # different texts are categories, however few rows there are
LONG = 40  # characters: cells that are longer in the mean are prose
PROSE = "sentences"
REPEATED = "codes that repeat"
MEASURED = "numbers in several forms"
NAMES = "words, all of them different"
SEVERAL = "of several formats"
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
PICTURED = "names of pictures, which the report can show"
SPACED = 3  # words of a cell, in the mean: the same
LEAST_IDS = 20  # rows; fewer may well have different numbers
DISTINCT = 0.95  # share of ids that are different, though rows may have copies
DENSE = 2.0  # ids of n rows are numbers from a range of at most so many times n
OWNERS_OF_IDS = "case|client|customer|item|order|patient|person|record|sample|user|[cgpsu]?"
ID_NAME = re.compile(
    rf"(?i:(?:.*[\W_])?(?:(?:{OWNERS_OF_IDS})id|ids|uuid|guid|key|idx|index|row))|.*[a-z](?:Id|ID)",
    re.DOTALL,
)
INFINITE = {"inf": np.inf, "-inf": -np.inf}
NAME = re.compile(r"[\w.'-]{1,30}")
CODE = re.compile(r"[\w@.:/#+=-]{1,64}")  # one word, such as p17 or a hash


@dataclass(frozen=True)
class Profile:
    """One column."""

    # name, kind: its name, and what it is: number, category, text, date, id, constant or empty
    name: str
    kind: str
    # rows, missing, distinct: how many rows there are, how many have nothing, and how many
    # different entries
    rows: int
    missing: int
    distinct: int
    # options, with what to set them to, by which its cells are read as what they are
    fix: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False  # whether it holds whole numbers
    note: str = ""  # what else is to be said of it


def profile(name: str, column: pa.ChunkedArray, cells: CellFormat | None = None) -> Profile:
    """What a column is.

    Examples
    --------
    >>> profile("x", pa.chunked_array([["1,5", "2,5", None]])).fix
    {'decimal': ','}
    >>> profile("x", pa.chunked_array([["red", "blue", "red"]])).kind
    'category'
    """
    column, cells = decoded(column), cells or CellFormat()
    known = _known(column)
    missing = len(column) - len(known)
    nested = pa.types.is_nested(column.type)
    distinct = len(known) if nested else len(pc.unique(known))
    about: dict[str, Any] = {
        "name": name,
        "rows": len(column),
        "missing": missing,
        "distinct": distinct,
    }
    if not len(known):
        return Profile(kind="empty", **about)
    if distinct == 1 and len(column) > 1 and not missing:
        return Profile(kind="constant", **about)
    if nested:
        return Profile(kind="text", note=f"cells of type {column.type}", **about)
    return Profile(**about | _look(name, known, cells))


def is_empty(column: pa.ChunkedArray) -> bool:
    """Whether no cell of a column says anything."""
    return not any(len(_known(decoded(some))) for some in (column.slice(0, LOOKED), column))


def _known(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells that are not missing."""
    if is_text(column.type):
        column = bare_cells(column.cast(pa.string()))
    elif pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return column.drop_null()


def _look(name: str, known: pa.ChunkedArray, cells: CellFormat) -> dict[str, Any]:
    """The kind of cells that are there, and how to read them."""
    if name in cells.dates:
        return {"kind": "date"}
    if pa.types.is_temporal(known.type):
        return {"kind": "date", "fix": {"date": [name]}}
    if not is_text(known.type):
        return _number_look(name, known)
    entries = pc.unique(known).to_pylist()
    return (
        _numeric_text(name, known, entries, cells)
        or _date_text(name, entries, known)
        or _words(name, entries, len(known))
    )


def _number_look(name: str, known: pa.ChunkedArray) -> dict[str, Any]:
    if pa.types.is_boolean(known.type):
        return {"kind": "category", "note": "true or false"}
    numeric = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal
    if not any(fits(known.type) for fits in numeric):  # such as bytes
        return {"kind": "category", "note": f"cells of type {known.type}"}
    found = np.asarray(pc.cast(known, pa.float64(), safe=False).to_numpy(), np.float64)
    finite = found[np.isfinite(found)]
    whole = bool((np.rint(finite) == finite).all())
    if len(finite) < len(found):
        words = [word for word, end in INFINITE.items() if (found == end).any()]
        return {"kind": "number", "whole": whole, "fix": {"na": words}}
    why = why_ids(name, found)
    return {"kind": "id" if why else "number", "whole": whole, "note": why}


def _numeric_text(
    name: str, known: pa.ChunkedArray, entries: list[str], cells: CellFormat
) -> dict[str, Any] | None:
    """Text that says numbers: plain, with a sign such as %, in another notation, or with strays."""
    if {entry.lower() for entry in entries} <= {"true", "false"}:
        return {"kind": "category", "note": "true or false"}
    marks = cells.decimal, cells.thousands
    if plain := _read(name, known, *marks):
        return plain
    if kind := sign_kind(entries[0]):
        return _signed(entries, kind, marks)
    if not any(x.isdigit() for entry in entries[:9] for x in entry):
        return None
    found = notation_of(entries)
    if found is not None:
        return (_read(name, known, *found) or {"kind": "number"}) | {"fix": _options(*found)}
    return _with_strays(entries, known, marks)


def _read(
    name: str, known: pa.ChunkedArray, decimal: str, thousands: str | None
) -> dict[str, Any] | None:
    """How to read text as numbers; None if some cells are not numbers."""
    plain, odd = plain_numbers(known, decimal, thousands)
    try:
        found = (known if pc.any(odd).as_py() else plain).cast(pa.float64())  # infinity is odd
    except pa.ArrowInvalid:
        return None
    look = _number_look(name, found)
    if "fix" in look:  # a word stands for itself only, and infinity is written in many ways
        look["fix"] = {"na": pc.unique(known.filter(pc.is_inf(found))).to_pylist()}
    return look


def _signed(entries: list[str], kind: str, marks: tuple[str, str | None]) -> dict[str, Any] | None:
    """Percents or money, maybe in another notation."""
    for decimal, thousands in (marks, (".", ","), (",", None), (",", "."), (",", " ")):
        pattern = re.compile(number_pattern(decimal, thousands, kind))
        if all(pattern.fullmatch(entry) for entry in entries):
            other = (decimal, thousands) != marks
            fix = {"fix": _options(decimal, thousands)} if other else {}
            return {"kind": "number", "note": kind.partition(":")[0]} | fix
    return None


def _options(decimal: str, thousands: str | None) -> dict[str, str]:
    marks = {"decimal": decimal if decimal != "." else None, "thousands": thousands}
    return {key: mark for key, mark in marks.items() if mark is not None}


def _with_strays(
    entries: list[str], known: pa.ChunkedArray, marks: tuple[str, str | None]
) -> dict[str, Any] | None:
    """Numbers, apart from a few words that may stand for missing ones."""
    for decimal, thousands in dict.fromkeys([marks, *NOTATIONS]):
        pattern = re.compile(number_pattern(decimal, thousands))
        strays = _strays(known, (entry for entry in entries if not pattern.fullmatch(entry)))
        if strays is not None:
            other = {} if (decimal, thousands) == marks else _options(decimal, thousands)
            return {"kind": "number", **_but_for(strays, other)}
    return None


def _strays(known: pa.ChunkedArray, others: Iterable[str]) -> list[str] | None:
    """The other cells, if they are few, so that they may stand for missing ones; else None."""
    odd = list(islice(others, MOST_STRAYS + 1))
    if len(odd) > MOST_STRAYS or any("," in x or MEASURE.fullmatch(x) for x in odd):
        return None
    count = pc.sum(pc.is_in(known, value_set=pa.array(odd, pa.string()))).as_py()
    sure = all(stray.lower().lstrip("+-") in {*NO_LABEL, "inf", "infinity"} for stray in odd)
    return None if count > FEW_STRAYS * len(known) and not sure else odd


def _but_for(strays: list[str], fix: dict[str, Any]) -> dict[str, Any]:
    """How to read cells of which some are strays."""
    return {"fix": fix | {"na": strays}, "note": f"but for {', '.join(map(repr, strays))}"}


def _date_text(name: str, entries: list[str], known: pa.ChunkedArray) -> dict[str, Any] | None:
    strays = _strays(known, (entry for entry in entries if not is_date(entry)))
    if strays is None or len(strays) == len(entries):
        return None
    formats = date_formats([entry for entry in entries if entry not in strays])
    if not formats:
        return {"kind": "date", "note": SEVERAL}
    named = name if len(formats) == 1 else f"{name}={formats[0]}"
    fix = {"date": [named]}
    if strays:
        return {"kind": "date", **_but_for(strays, fix)}
    note = "" if len(formats) == 1 else "the day or the month may come first"
    return {"kind": "date", "fix": fix, "note": note}


def _words(name: str, entries: list[str], cells: int) -> dict[str, Any]:
    """The kind of text that says neither numbers nor dates."""
    if all(entry.lower().endswith(PICTURES) for entry in entries):
        return {"kind": "id" if len(entries) == cells else "text", "note": PICTURED}
    most = max(MOST_DISTINCT * cells, FEW)
    enough = cells >= LEAST_IDS or is_id_name(name)
    codes = len(entries) > DISTINCT * cells and enough and are_codes(name, entries)
    if codes and len(entries) == cells:
        return {"kind": "id", "note": "codes, all of them different"}
    prose = _is_prose(entries)
    if len(entries) > most or prose:
        return {"kind": "text", "note": PROSE if prose else _text_note(entries, cells, codes=codes)}
    return {"kind": "category"}


def _text_note(entries: list[str], cells: int, *, codes: bool) -> str:
    """What is to be said of many different texts that are no sentences."""
    if codes:
        return f"{REPEATED}, {cells - len(entries)} of them"
    some = entries[:LOOKED]
    units = sum(bool(MEASURE.fullmatch(entry) or sign_kind(entry)) for entry in some)
    if units > FEW_STRAYS * len(some):
        return MEASURED
    return NAMES if len(entries) == cells and all(map(_is_name, some)) else ""


def _is_name(entry: str) -> bool:
    """Whether a text is one short word, in a script that puts spaces between words."""
    return NAME.fullmatch(entry) is not None and entry.lower() != entry.upper()


def is_prose(column: Profile) -> bool:
    """Whether a column holds sentences, which may be embedded."""
    return column.note == PROSE


def _is_prose(entries: list[str]) -> bool:
    """Whether cells are sentences rather than names."""
    letters = np.mean([len(entry) for entry in entries])
    words = np.mean([len(entry.split()) for entry in entries])
    return bool(letters > LONG and words > SPACED)


def is_id_name(name: str) -> bool:
    """Whether a column has a name that ids often have.

    Examples
    --------
    >>> [name for name in ("id", "patient_id", "rowId", "width", "paid") if is_id_name(name)]
    ['id', 'patient_id', 'rowId']
    """
    return ID_NAME.fullmatch(name) is not None


def why_ids(name: str, column: Floats) -> str:
    """Why a column of numbers looks like ids; empty if it does not."""
    rows, whole = len(column), np.rint(column)
    if rows < LEAST_IDS or not np.allclose(column, whole, rtol=1e-13, atol=1e-6):
        return ""
    distinct = len(np.unique(whole))
    if distinct < DISTINCT * rows:
        return ""
    different = f"{'all' if distinct == rows else 'nearly all'} of them different"
    if (np.diff(whole) >= 0).all() or (np.diff(whole) <= 0).all():
        return f"whole numbers in order, {different}"
    dense = float(np.ptp(whole)) < DENSE * rows
    return f"whole numbers, {different}" if dense or is_id_name(name) else ""


def are_codes(name: str, cells: list[str]) -> bool:
    """Whether different texts look like ids: single words, with digits or under a name for ids.

    Examples
    --------
    >>> are_codes("patient", ["p1", "p2"]), are_codes("city", ["Rome", "Oslo"])
    (True, False)
    """
    words = all(CODE.fullmatch(cell) for cell in cells)
    digits = sum(any(x.isdigit() for x in cell) for cell in cells)
    return words and (is_id_name(name) or digits > DISTINCT * len(cells))


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def plain_type(column: pa.ChunkedArray) -> Any:
    """The type of a column's entries, also where a dictionary holds them."""
    kind = column.type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without a dictionary."""
    return column.cast(plain_type(column)) if pa.types.is_dictionary(column.type) else column


def bare_cells(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without spaces around it; words that mean that a cell is missing become missing."""
    bare = pc.utf8_trim_whitespace(text)
    said = pc.is_in(pc.utf8_lower(bare), value_set=pa.array(MISSING))
    return pc.if_else(said, pa.scalar(None, pa.string()), bare)
