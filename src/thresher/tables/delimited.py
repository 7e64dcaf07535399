"""Delimited text as bytes: where records and cells begin and end, what they say, and edits.

The grammar is that of Arrow's reader. A cell that begins with a quote runs to the next quote that
is not doubled, and what follows up to the delimiter still belongs to it; elsewhere quotes are plain
characters. A record ends at a line feed, a carriage return or both; empty lines are not records.
"""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from thresher.errors import InputError, either, option
from thresher.tables.packing import is_packed, open_bytes
from thresher.tables.paths import delimiter_of, kind_of

NEWLINE = re.compile(rb"\r\n|\n|\r")
DELIMITERS = (",", ";", "\t", "|")
SIXTEEN = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
WESTERN = " if it comes from Windows in Western Europe (check its accents)"
QUOTED = re.compile(rb'"((?:[^"]++|"")*+)("?+)', re.DOTALL)


class Record(NamedTuple):
    """Where one record is: its first byte, the end of its last cell, and the end of its line."""

    start: int
    stop: int
    end: int


@dataclass(frozen=True, eq=False)
class Delimited:
    r"""The bytes of a delimited file.

    Examples
    --------
    >>> text = Delimited(b'a,b\n1,"x, ""y"" z"\n', ",")
    >>> [[text.text(cell) for cell in text.cells(record)] for record in text.records()]
    [['a', 'b'], ['1', 'x, "y" z']]
    """

    raw: bytes | mmap.mmap
    delimiter: str
    quotes: bool = True  # whether quotes mean anything

    @classmethod
    def open(
        cls, path: Path, delimiter: str, *, quotes: bool = True, encoding: str | None = None
    ) -> Delimited:
        """The bytes of a file, unpacked if it is packed, and as UTF-8."""
        with open_bytes(path, encoding) as file:
            if is_packed(path) or encoding is not None or not path.stat().st_size:
                return cls(file.read(), delimiter, quotes)
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), delimiter, quotes)

    def records(self) -> Iterator[Record]:
        """Where every record is, the header among them."""
        mark = len(codecs.BOM_UTF8)
        start = mark if self.raw[:mark] == codecs.BOM_UTF8 else 0
        cell, delimiter = self._grammar()
        record = re.compile(cell + rb"(?:" + delimiter + cell + rb")*+(\r\n|\n|\r|\Z)", re.DOTALL)
        for found in record.finditer(self.raw, start):
            if found.start(1) > found.start():
                yield Record(found.start(), found.start(1), found.end())

    def cells(self, record: Record) -> list[tuple[int, int]]:
        """Where the cells of a record begin and end."""
        cell = re.compile(self._grammar()[0], re.DOTALL)
        spans, position = [], record.start
        while True:
            found = cell.match(self.raw, position, record.stop)
            stop = found.end() if found else record.stop
            spans.append((position, stop))
            if stop >= record.stop:
                return spans
            position = stop + 1

    def text(self, span: tuple[int, int]) -> str | None:
        """What a cell says; None if it is empty and not in quotes."""
        cell = self.raw[span[0] : span[1]]
        quoted = QUOTED.match(cell) if self.quotes else None
        if quoted:
            cell = quoted[1].replace(b'""', b'"') + cell[quoted.end() :]
        return cell.decode() if cell or quoted else None

    def is_open(self, span: tuple[int, int]) -> bool:
        """Whether a cell begins with a quote that is never closed."""
        quoted = QUOTED.match(self.raw, *span)
        return quoted is not None and not quoted[2]

    def line(self, position: int) -> int:
        """The number of the line, from 1, on which a byte is."""
        return 1 + sum(1 for _ in NEWLINE.finditer(self.raw, 0, position))

    def _grammar(self) -> tuple[bytes, bytes]:
        """Patterns of a cell, and of the delimiter."""
        delimiter = re.escape(self.delimiter).encode()
        quoted = rb'(?:"(?:[^"]++|"")*+"?+)?+' if self.quotes else b""
        return quoted + rb"[^\r\n" + delimiter + rb"]*+", delimiter


def read_names(path: Path, source: Delimited, header: Record | None) -> list[str]:
    """The names of the columns in the record that is the header; some may be the same."""
    if source.raw[:2] in SIXTEEN:
        raise not_utf8(path, "it begins as UTF-16 does", old="UTF-16")
    if header is None:
        raise InputError(f"{path} is empty")
    try:
        names = [source.text(cell) or "" for cell in source.cells(header)]
    except UnicodeDecodeError as foreign:
        raise not_utf8(path, "the header", foreign) from None
    _check_delimiter(path, names, source.delimiter)
    return names


def likely_delimiter(line: str, usual: str = ",") -> str:
    r"""The character that seems to separate the cells of a line.

    Examples
    --------
    >>> likely_delimiter("a;b;c"), likely_delimiter("a\tb,c\td"), likely_delimiter("a")
    (';', '\t', ',')
    """
    counts = {mark: line.count(mark) for mark in DELIMITERS}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else usual


def _check_delimiter(path: Path, names: list[str], delimiter: str) -> None:
    """Refuse a single column whose name looks like several names."""
    others = [other for other in DELIMITERS if other != delimiter and other in names[0]]
    if len(names) == 1 and others:
        likely = max(others, key=names[0].count)
        shown = "tab" if likely == "\t" else f"'{likely}'"
        command = f"{option('delimiter')} {shown}"
        advice = f"use {either(f'delimiter={likely!r}', command)}"
        if delimiter != delimiter_of(kind_of(path)):
            one = f"{option('delimiter')} is one for all files"
            advice = f"{one}: write this one with the same delimiter"
        raise InputError(
            f"{path} has one column, {names[0]!r}: its delimiter seems to be {likely!r}, not "
            f"{delimiter!r}: {advice}"
        )


def check_names(path: Path, names: Sequence[str]) -> None:
    """Raise where two columns have one name."""
    places: dict[str, list[str]] = {}
    for place, name in enumerate(names, start=1):
        places.setdefault(name, []).append(str(place))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    if twice:
        name, where = next(iter(twice.items()))
        more = f", and {len(twice) - 1} more such names" if len(twice) > 1 else ""
        listed = f"columns {', '.join(where[:5])}{more}"
        raise InputError(f"{path} has several columns named {name!r} ({listed}): rename them")


def not_utf8(
    path: Path, where: str, foreign: UnicodeDecodeError | None = None, old: str = "LATIN1"
) -> InputError:
    """An error that says where bytes are not UTF-8, and what to do about them."""
    byte = "" if foreign is None else f" has the byte 0x{foreign.object[foreign.start]:02x}"
    name, sure = ("utf-16", "") if old == "UTF-16" else ("cp1252", WESTERN)
    return InputError(
        f"{path} is not UTF-8 ({where}{byte}): read it with {option('encoding', name)}{sure}, or "
        f"save it as UTF-8, for example by iconv -f {old} -t UTF-8 {path} > utf8.csv"
    )


def quoted(text: str, delimiter: str) -> bytes:
    """A cell that says `text`, in quotes only if it needs them.

    Examples
    --------
    >>> quoted("cat", ","), quoted('a "big" cat', ","), quoted("", ",")
    (b'cat', b'"a ""big"" cat"', b'""')
    """
    plain = text and not any(mark in text for mark in (delimiter, '"', "\r", "\n"))
    return text.encode() if plain else b'"' + text.replace('"', '""').encode() + b'"'


def edited(
    source: Delimited, drop: AbstractSet[int], cells: Mapping[int, bytes], column: int,
    *, header: bool = True, from_header: bool = True,
) -> Iterator[bytes]:  # fmt: skip
    r"""The bytes of a file, piece by piece, without some rows and with other cells in one column.

    Rows are numbered from 0 after the header, if there is a `header`. Everything else is copied,
    empty lines too. With `from_header` false, what comes up to the end of the header is left out.

    Examples
    --------
    >>> text = Delimited(b"x,y\r\n 1.50,a\r\n2,b\r\n3,c", ",")
    >>> b"".join(edited(text, {1}, {0: b"z"}, 1))
    b'x,y\r\n 1.50,z\r\n3,c'
    """
    position = 0
    for row, record in enumerate(source.records(), start=-1 if header else 0):
        if row < 0 and not from_header:
            position = record.end
        elif row in drop:
            yield source.raw[position : record.start]
            position = record.end
        elif row in cells:
            start, stop = source.cells(record)[column]
            yield source.raw[position:start]
            yield cells[row]
            position = stop
    yield source.raw[position:]
