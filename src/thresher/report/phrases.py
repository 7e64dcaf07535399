"""Numbers and texts of the data as a reader wants them."""

from __future__ import annotations

import math
import re

MOST_TEXT = 200  # characters of a label, an id or a cell
UNSEEN = re.compile(  # controls, marks that turn the direction of writing, halves of characters
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""`text` with escapes for characters that do not show, or turn what follows around.

    Examples
    --------
    >>> print(visible("cat\u202e"))
    cat\u202e
    """
    return UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def brief(entry: object) -> str:
    """An entry of the data as text, cut where it is long."""
    text = str(entry)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def count_of(number: int, one: str, many: str = "") -> str:
    """A count with its noun, whose plural ends in s if not given.

    Examples
    --------
    >>> count_of(1, "row"), count_of(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def of_all(number: int, total: int, one: str, many: str) -> str:
    """How many of all rows, with the verb that fits.

    Examples
    --------
    >>> of_all(143, 2000, "is", "are"), of_all(1, 1, "is", "are")
    ('143 of 2,000 rows are', 'The only row is')
    """
    if total == 1:
        return f"The only row {one}"
    return f"{number:,} of {total:,} rows {one if number == 1 else many}"


def none_of(total: int, what: str) -> str:
    """The words that no row is `what`.

    Examples
    --------
    >>> none_of(2000, "odd"), none_of(1, "odd")
    ('none of 2,000 rows is odd', 'the only row is not odd')
    """
    return f"the only row is not {what}" if total == 1 else f"none of {total:,} rows is {what}"


def percent(share: float) -> str:
    """A share in percent, without decimals from 10% on.

    Examples
    --------
    >>> percent(0.1234), percent(0.0234), percent(1.0), percent(0.9999), percent(0.0001)
    ('12%', '2.3%', '100%', '99.9%', '0.01%')
    """
    part = 100 * share
    if 99.5 <= part < 100:
        return f"{min(part, 99.9):.1f}%"
    if part >= 9.95:
        return f"{part:.0f}%"
    return f"{part:.2g}%"


def whole_percent(share: float | None) -> str:
    """A share in whole percents, as a reader needs it; empty if it is not known.

    Examples
    --------
    >>> whole_percent(0.123), whole_percent(0.0004), whole_percent(0.997), whole_percent(0.0)
    ('12%', 'under 1%', 'over 99%', '0%')
    """
    if share is None:
        return ""
    if 0 < share < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def rough(number: float) -> str:
    """A number that is not known exactly, with two digits.

    Examples
    --------
    >>> rough(54.4), rough(1234), rough(0.3)
    ('54', '1,200', '0')
    """
    whole = round(number)
    return f"{round(whole, min(0, 2 - len(str(abs(whole))))):,}"


def fixed(number: float) -> str:
    """An accuracy or agreement with three decimals.

    Examples
    --------
    >>> fixed(0.86), fixed(float("nan"))
    ('0.860', 'unknown')
    """
    return "unknown" if math.isnan(number) else f"{number:.3f}"


def short(number: float | None) -> str:
    """A number with four digits; a whole number with commas between thousands.

    Examples
    --------
    >>> short(0.123456), short(2000), short(-0.5), short(1234.5), short(None), short(1e-9)
    ('0.1235', '2,000', '-0.5', '1,234', '', '1e-09')
    """
    if number is None or (isinstance(number, float) and math.isnan(number)):
        return ""
    if isinstance(number, int):
        return f"{number:,}"
    if not math.isfinite(number):
        return "infinite" if number > 0 else "-infinite"
    return f"{number:,.0f}" if 999.95 <= abs(number) < 1e15 else f"{number:.4g}"
