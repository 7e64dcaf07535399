r"""Text that says numbers in other notations: 1.234,5 and 1 234.5, 12 %, $1,200 and 5 EUR."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

SPACES = " \u00a0\u202f"  # between thousands, plain and not to be broken
SIGNS = "$€£¥₹₽₩₺"
CODES = "USD|EUR|GBP|JPY|CNY|INR|CHF|CAD|AUD|SEK|NOK|DKK|PLN|CZK|BRL|MXN|ZAR|KRW"
MONEY = re.compile(
    rf"[+-]?\s*([{SIGNS}]|{CODES})\s*[0-9.]|[+-]?[0-9.].*?[0-9.]?\s*([{SIGNS}]|{CODES})$"
)
MEASURE = re.compile(r"[+-]?[0-9]+[^0-9].*", re.DOTALL)  # more than a whole number: with a unit
PERCENT = re.compile(r"[+-]?[0-9.,].*%$")
NOTATIONS = (  # of decimals and thousands, the likely ones first
    (".", None), (".", ","), (",", None), (",", "."), (".", " "), (",", " "), (".", "'"),
    (",", "'"),
)  # fmt: skip


@lru_cache(maxsize=64)
def number_pattern(decimal: str = ".", thousands: str | None = None, kind: str = "number") -> str:
    r"""The regular expression of a cell that says a number.

    The kind is "number", "percent", or "money:" and the currency. In percents and money, commas
    may stand between thousands without being asked for.

    Examples
    --------
    >>> [bool(re.fullmatch(number_pattern(",", "."), cell)) for cell in ("1.234,5", "1.5", "-7")]
    [True, False, True]
    >>> bool(re.fullmatch(number_pattern(kind="money:$"), "-$1,200.50"))
    True
    """
    between = thousands or ("," if kind != "number" and decimal == "." else None)
    whole = "[0-9]+"
    if between is not None:
        mark = f"[{SPACES}]" if between == " " else re.escape(between)
        whole = f"(?:[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[0-9]+)"
    point = re.escape(decimal)
    core = f"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    if kind == "percent":
        return rf"[+-]?{core}\s*%"
    if kind.startswith("money:"):
        sign = re.escape(kind.removeprefix("money:"))
        return rf"(?:[+-]?\s*{sign}\s*{core}|{sign}\s*-{core}|[+-]?{core}\s*{sign})"
    return f"[+-]?{core}"


def plain_numbers(
    cells: pa.ChunkedArray, decimal: str = ".", thousands: str | None = None, kind: str = "number"
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Cells written the way Arrow reads numbers, and which are not numbers; missing ones stay so.

    Examples
    --------
    >>> cells = pa.chunked_array([["1.234,5", None, "x"]])
    >>> plain, odd = plain_numbers(cells, ",", ".")
    >>> plain.to_pylist()[:2], odd.to_pylist()
    (['1234.5', None], [False, None, True])
    """
    pattern = f"^(?:{number_pattern(decimal, thousands, kind)})$"
    odd = pc.invert(pc.match_substring_regex(cells, pattern))
    keep = re.escape(decimal)
    bare = pc.replace_substring_regex(cells, f"[^0-9eE+{keep}-]", "")
    if kind.startswith("money:"):  # letters of a currency
        bare = pc.replace_substring_regex(cells, f"[^0-9+{keep}-]", "")
    return (bare if decimal == "." else pc.replace_substring(bare, decimal, ".")), odd


def notation_of(cells: Iterable[str]) -> tuple[str, str | None] | None:
    """The marks of decimals and thousands in which all cells are numbers; None without any.

    What could be either, such as 1,234, is taken for thousands.

    Examples
    --------
    >>> notation_of(["1,5", "2,25"]), notation_of(["1.234,5", "7"]), notation_of(["1,234", "999"])
    ((',', None), (',', '.'), ('.', ','))
    >>> notation_of(["a"]) is None
    True
    """
    found = list(cells)
    for decimal, thousands in NOTATIONS:
        pattern = re.compile(number_pattern(decimal, thousands))
        if all(pattern.fullmatch(cell) for cell in found):
            return decimal, thousands
    return None


def sign_kind(cell: str) -> str | None:
    """The kind of number that a sign in a cell says: percent, or money with its currency.

    Examples
    --------
    >>> sign_kind("12 %"), sign_kind("$5"), sign_kind("5,10 EUR"), sign_kind("5")
    ('percent', 'money:$', 'money:EUR', None)
    """
    if PERCENT.fullmatch(cell):
        return "percent"
    found = MONEY.match(cell)
    return f"money:{found[1] or found[2]}" if found else None


def numbers_or_missing(column: Any) -> Any:
    """A column of text as numbers, missing where a cell is not a number."""
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_number_or_none(cell) for cell in column], pa.float64())


def _number_or_none(cell: Any) -> float | None:
    try:
        return float(cell.as_py())
    except (TypeError, ValueError):  # missing, no number, not even text
        return None
