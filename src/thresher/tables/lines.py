"""Private rows from text: each line is a row, or counts for nothing.

A quote that is never closed would take in the lines that follow it, and so one row would change
many. Here it cannot: a row is a line, from one line feed to the next. A line that cannot be read as
one row (another number of cells than the header has, an open quote, bytes that are not UTF-8, a
carriage return inside, 16 MiB or more) is left out, and nothing else changes. So a cell in quotes
cannot hold a line feed: what stands before it and behind it are two rows, or none.

What is refused is what is wrong with the header, which is public.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from thresher.errors import InputError
from thresher.tables.delimited import Delimited, Record
from thresher.tables.text import convert_options, read_names

LONGEST = 1 << 24  # bytes of a line, and of a block that Arrow parses: a shorter line always fits
HEADER = re.compile(rb"[\r\n]*+([^\r\n]*+)(\r?\n|\r|\Z)")
SWAP = bytes.maketrans(b"\r\n", b"\n\r")


@dataclass(frozen=True, eq=False)
class Lines:
    """The rows of a text file.

    Parameters
    ----------
    table
        The rows that could be read; all cells are text, and missing where they are empty.
    numbers
        The line of each row, from 1; empty unless they were asked for.
    unread
        The lines that could not be read, and why: as private as the rows.
    """

    table: pa.Table
    numbers: list[int] = field(default_factory=list)
    unread: dict[int, str] = field(default_factory=dict)


def read_lines(path: Path, delimiter: str, *, numbered: bool = False) -> Lines:
    """The rows of a delimited text file, each line for itself; with `numbered`, where they are."""
    source, header = _opened(path, delimiter)
    names = read_names(path, source, header if header.stop > header.start else None)
    if not _whole(delimiter, len(names)).fullmatch(source.raw, header.start, header.stop):
        raise InputError(f"{path} has a quote in its header that is not closed in the same line")
    if not numbered and _is_plain(source, header.stop):
        body = bytes(source.raw[header.stop :]) + b"\n" if source.raw[-1:] != b"\n" else None
        whole = pa.py_buffer(source.raw).slice(header.stop) if body is None else pa.py_buffer(body)
        table = _parsed(whole, names, delimiter)
        quotes = source.raw.find(b'"', header.stop) >= 0
        if table is not None and (not quotes or _is_one_a_line(whole, table, delimiter)):
            return Lines(table)
    return _one_by_one(source, header, names)


def _opened(path: Path, delimiter: str) -> tuple[Delimited, Record]:
    """The bytes of a file whose lines end in line feeds, and where the header is."""
    source = Delimited.open(path, delimiter)
    mark = len(codecs.BOM_UTF8)
    found = HEADER.match(source.raw, mark if source.raw[:mark] == codecs.BOM_UTF8 else 0)
    assert found is not None  # noqa: S101 - it matches nothing, too
    if found[2] == b"\r":  # as in files of old: carriage returns end lines, and line feeds do not
        source = Delimited(bytes(source.raw).translate(SWAP), delimiter)
    return source, Record(found.start(1), found.end(1), found.end())


def _is_plain(source: Delimited, start: int) -> bool:
    """Whether no line is too long, and carriage returns only come before line feeds."""
    raw, position = source.raw, start
    while position + LONGEST <= len(raw):
        position = raw.rfind(b"\n", position, position + LONGEST) + 1
        if not position:
            return False
    if raw.find(b"\r", start) < 0:
        return True
    bytes_ = np.frombuffer(raw, np.uint8)
    for lo in range(start, len(raw), LONGEST):
        part = bytes_[lo : lo + LONGEST + 1]
        if ((part[:-1] == 13) & (part[1:] != 10)).any():
            return False
    return bool(raw[-1:] != b"\r")


def _parsed(body: pa.Buffer, names: list[str], delimiter: str) -> pa.Table | None:
    """What Arrow makes of lines that begin with an empty one; None where it refuses them.

    Without the empty line it would take a byte order mark off the first row, and off no other.
    """
    try:
        return csv.read_csv(
            pa.BufferReader(body),
            csv.ReadOptions(block_size=LONGEST, column_names=names),
            csv.ParseOptions(delimiter=delimiter),
            convert_options(names),
        )
    except pa.ArrowInvalid:
        return None


def _is_one_a_line(body: pa.Buffer, table: pa.Table, delimiter: str) -> bool:
    """Whether Arrow made one row of each line, which only a quote can keep it from.

    An open quote takes in lines or loses one, so there are fewer rows; in the last line it does
    neither.
    """
    raw = np.frombuffer(body, np.uint8)
    ends = sum(
        int(np.count_nonzero(raw[lo : lo + LONGEST] == 10)) for lo in range(0, len(raw), LONGEST)
    )
    if table.num_rows != ends - 1:  # the first ends the header
        return False
    last = raw[-LONGEST:].tobytes().removesuffix(b"\n").rpartition(b"\n")[2].removesuffix(b"\r")
    return _whole(delimiter, table.num_columns).fullmatch(last) is not None


def _one_by_one(source: Delimited, header: Record, names: list[str]) -> Lines:
    whole, delimiter = _whole(source.delimiter, len(names)), source.delimiter.encode()
    first = 1 + source.raw[: header.start].count(b"\n")
    kept: list[bytes] = []
    found = Lines(pa.table({}))
    for number, line in enumerate(bytes(source.raw[header.stop :]).split(b"\n"), first):
        text = line.removesuffix(b"\r")
        if not text:
            continue
        if len(line) >= LONGEST:
            found.unread[number] = f"it has {LONGEST} bytes or more"
        elif why := _fault(text, whole, delimiter, len(names)):
            found.unread[number] = why
        else:
            kept.append(text)
            found.numbers.append(number)
    body = pa.py_buffer(b"".join([b"\n", *(line + b"\n" for line in kept)]))
    return Lines(_parsed(body, names, source.delimiter), found.numbers, found.unread)


def _fault(line: bytes, whole: re.Pattern[bytes], delimiter: bytes, width: int) -> str:
    """Why a line is no row; empty where it is one."""
    if b"\r" in line:
        return "it has a carriage return inside"
    cells = line.count(delimiter) + 1
    if b'"' not in line and cells != width:
        return f"it has {cells} {'cell' if cells == 1 else 'cells'}, but the header has {width}"
    if not whole.fullmatch(line):
        return f"it has an open quote, or other than {width} cells"
    try:
        line.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    return ""


def _whole(delimiter: str, width: int) -> re.Pattern[bytes]:
    """The pattern of a line of so many cells, without an open quote."""
    between = re.escape(delimiter).encode()
    cell = rb'(?:"(?:[^"]++|"")*+"|(?!"))[^' + between + rb"]*+"
    return re.compile(cell + rb"(?:" + between + cell + rb"){%d}" % (width - 1), re.DOTALL)
