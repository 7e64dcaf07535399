"""CellFormat: how cells say numbers and dates, and which words mean that a cell is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thresher.errors import InputError, option, quoted

WORDS = {"space": " ", "none": None, "apostrophe": "'"}


@dataclass(frozen=True)
class CellFormat:
    """How cells say numbers and dates."""

    # decimal, thousands: the marks in numbers of text: "." or "," before decimals; ",", ".",
    # "'" or a space between thousands, if there is one
    decimal: str = "."
    thousands: str | None = None
    # the columns of dates with their formats, empty where they are to be found out
    dates: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.decimal not in {".", ","}:
            raise InputError(f"{option('decimal')} must be . or , but got {quoted(self.decimal)}")
        mark = WORDS.get(str(self.thousands), self.thousands)
        if mark not in {None, ",", ".", "'", " ", "_"}:
            raise InputError(
                f"{option('thousands')} must be one of , . ' _ or space, got "
                f"{quoted(self.thousands)}"
            )
        if mark == self.decimal:
            raise InputError(
                f"{option('decimal')} and {option('thousands')} are both {mark!r}: choose two marks"
            )
        object.__setattr__(self, "thousands", mark)

    @property
    def is_plain(self) -> bool:
        """Whether numbers in text are written the way Arrow reads them."""
        return self.decimal == "." and self.thousands is None

    def with_dates(self, dates: Mapping[str, str]) -> CellFormat:
        """The same format with these columns of dates."""
        return dataclasses.replace(self, dates=dict(dates))


def named_formats(entries: Sequence[str]) -> dict[str, str]:
    """Names or patterns of columns, each with the format that may follow an equals sign.

    Examples
    --------
    >>> named_formats(["joined", "born=%d/%m/%Y"])
    {'joined': '', 'born': '%d/%m/%Y'}
    """
    found = {}
    for entry in entries:
        name, mark, form = entry.partition("=%")
        found[name] = f"%{form}" if mark else ""
    return found


def without_words(data: pa.Table, words: Sequence[str]) -> pa.Table:
    """A table in which cells that say one of these words are missing; numbers too, if one does.

    Examples
    --------
    >>> data = pa.table({"x": ["1", " ? "], "n": [1.5, -999.0]})
    >>> without_words(data, ["?", "-999"]).to_pydict()
    {'x': ['1', None], 'n': [1.5, None]}
    """
    if not words:
        return data
    for place, name in enumerate(data.column_names):
        column = data.column(place)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        said = _saying(column, words)
        if said is not None and pc.any(said).as_py():
            kept = pc.if_else(pc.fill_null(said, False), pa.scalar(None, column.type), column)  # noqa: FBT003
            data = data.set_column(place, name, kept)
    return data


def entries_without(entries: Any, words: Sequence[str]) -> Any:
    """Entries with None in place of those that say one of these words; see `without_words`.

    Examples
    --------
    >>> entries_without(["1", " ? ", 1.5, -999], ["?", "-999"])
    ['1', None, 1.5, None]
    """
    if not words:
        return entries
    said = {*(word.strip() for word in words), *_numbers(words)}
    found = entries.tolist() if hasattr(entries, "tolist") else entries
    plain = (entry.strip() if isinstance(entry, str) else entry for entry in found)
    return [
        None if word in said and not isinstance(word, bool) else entry
        for word, entry in zip(plain, found, strict=True)
    ]


def _saying(column: pa.ChunkedArray, words: Sequence[str]) -> pa.ChunkedArray | None:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        wanted = pa.array([word.strip() for word in words], kind)
        return pc.is_in(pc.utf8_trim_whitespace(column), value_set=wanted)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    numbers = pc.cast(column, pa.float64(), safe=False)
    return pc.is_in(numbers, value_set=pa.array(_numbers(words), pa.float64()))


def _numbers(words: Sequence[str]) -> list[float]:
    found = []
    for word in words:
        try:
            found.append(float(word))
        except ValueError:
            continue
    return found
