"""Delimited text as an Arrow table of text, and what is wrong with text that is none."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from thresher.errors import InputError
from thresher.tables.delimited import Delimited, Record

BLOCK = 1 << 26  # bytes of text without quotes parsed at a time, and so the most one row may have
MOST = (1 << 31) - 1  # bytes that Arrow parses at a time
DELIMITERS = (",", ";", "\t", "|")
SIXTEEN = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path, delimiter: str) -> pa.Table:
    """The table in a delimited file: a header, then rows as wide; all cells are text.

    Cells that are empty and not in quotes are missing; cells in quotes may hold line ends. Empty
    lines are passed over. The text is UTF-8, with or without a byte order mark.
    """
    source = Delimited.open(path, delimiter)
    names, start = read_header(path, source)
    if source.raw.find(b'"', start) >= 0:
        _check_quotes(path, source)
    try:
        return parse(source, start, names)
    except pa.ArrowInvalid as wrong:
        raise diagnosis(path, source, len(names), str(wrong)) from None


def read_header(path: Path, source: Delimited) -> tuple[list[str], int]:
    """The names of the columns, and where the header ends, if there are rows behind it."""
    header, first = islice(chain(source.records(), (None, None)), 2)
    names = read_names(path, source, header)
    if header is None or first is None:
        raise InputError(f"{path} has a header but no rows: at least one row is needed")
    return names, header.end


def read_names(path: Path, source: Delimited, header: Record | None) -> list[str]:
    """The names of the columns in the record that is the header."""
    if source.raw[:2] in SIXTEEN:
        raise _not_utf8(path, "it begins as UTF-16 does")
    if header is None:
        raise InputError(f"{path} is empty")
    try:
        names = [source.text(cell) or "" for cell in source.cells(header)]
    except UnicodeDecodeError as foreign:
        raise _not_utf8(path, f"the header has the byte {_byte(foreign)}") from None
    _check_delimiter(path, names, source.delimiter)
    check_names(path, names)
    return names


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


def _check_delimiter(path: Path, names: list[str], delimiter: str) -> None:
    """Refuse one column whose name seems to be many."""
    others = [other for other in DELIMITERS if other != delimiter and other in names[0]]
    if len(names) == 1 and others:
        likely = max(others, key=names[0].count)
        shown = "tab" if likely == "\t" else f"'{likely}'"
        tabs = any(suffix.lower() == ".tsv" for suffix in path.suffixes[-2:])
        advice = f"use --delimiter {shown}"
        if delimiter != ("\t" if tabs else ","):  # it was given
            advice = "--delimiter is one for all files: write this one with the same delimiter"
        raise InputError(
            f"{path} has one column, {names[0]!r}: its delimiter seems to be {likely!r}, not "
            f"{delimiter!r}: {advice}"
        )


def _check_quotes(path: Path, source: Delimited) -> None:
    """Refuse a quote that is never closed, and so takes in all that follows it."""
    last = Record(0, 0, 0)
    for last in source.records():  # noqa: B007
        pass
    for span in source.cells(last):
        if source.is_open(span):
            raise InputError(
                f"{path} has a quote in line {source.line(span[0])} that is never closed: "
                "close it, or double it if it is part of the text"
            )


def parse(
    source: Delimited, start: int, names: list[str], wanted: Sequence[str] | None = None
) -> pa.Table:
    """The rows from the byte `start` on; of their columns those that are `wanted`."""
    body = pa.py_buffer(source.raw).slice(start)
    if source.raw[-1:] == source.delimiter.encode():
        # Arrow takes an empty cell at the very end for one in quotes, if the one before it is
        body = pa.py_buffer(bytes(body) + b"\n")
    quotes = source.raw.find(b'"', start) >= 0
    # one block where there are quotes: Arrow drops a line feed in quotes at the start of a block
    block = min(max(body.size, 1), MOST) if quotes else BLOCK
    return csv.read_csv(
        pa.BufferReader(body),
        csv.ReadOptions(block_size=block, column_names=names),
        csv.ParseOptions(delimiter=source.delimiter, newlines_in_values=quotes),
        convert_options(names, wanted),
    )


def convert_options(
    names: Sequence[str], wanted: Sequence[str] | None = None
) -> csv.ConvertOptions:
    """Cells as text, missing where they are empty and not in quotes."""
    return csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=None if wanted is None else list(wanted),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def diagnosis(path: Path, source: Delimited, width: int, said: str, before: int = 0) -> InputError:
    """Why Arrow refused: the first line with another number of cells, or other bytes than UTF-8.

    So many lines come `before` the source.
    """
    unlike: list[str] = []
    more = 0
    for record in source.records():
        cells = source.cells(record)
        if len(cells) != width:
            more += 1
            if len(unlike) < 3:
                unlike.append(f"line {before + source.line(record.start)} has {len(cells)}")
    if unlike:
        rest = f" and {more - len(unlike)} more lines differ" if more > len(unlike) else ""
        return InputError(
            f"{path} has a header of {width} cells, but {', '.join(unlike)}{rest}: "
            "quote cells that hold the delimiter, or name another --delimiter"
        )
    try:
        bytes(source.raw).decode()
    except UnicodeDecodeError as foreign:
        line = before + source.line(foreign.start)
        return _not_utf8(path, f"line {line} has the byte {_byte(foreign)}")
    return InputError(f"{path} cannot be read: {said}")


def _byte(foreign: UnicodeDecodeError) -> str:
    return f"0x{foreign.object[foreign.start]:02x}"


def _not_utf8(path: Path, why: str) -> InputError:
    old = "UTF-16" if "UTF-16" in why else "LATIN1"
    return InputError(
        f"{path} is not UTF-8 ({why}): save it as UTF-8, for example by "
        f"iconv -f {old} -t UTF-8 {path} > utf8.csv"
    )
