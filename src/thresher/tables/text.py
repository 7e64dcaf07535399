"""Delimited text as Arrow tables of text: whole, in batches, or each line by itself.

`read` and `batches` refuse a file that is not a table, and say which line is wrong. `read_lines` is
for private rows, about which no error may say anything. A quote that is never closed would take in
the lines that follow it, so that one row would change many. `read_lines` prevents that: a row is a
line, from one line feed to the next. A line that cannot be read as one row (another number of cells
than the header has, an open quote, bytes that are not UTF-8, a carriage return inside, 16 MiB or
more) is left out, and nothing else changes. Only a wrong header is refused, which is public.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from thresher.errors import InputError, option
from thresher.tables.delimited import Delimited, Record, check_names, not_utf8, read_names
from thresher.tables.header import about_names, numbered_names
from thresher.tables.packing import open_bytes

BLOCK = 1 << 26  # bytes of text without quotes parsed at a time, and so the most one row may have
MOST = (1 << 31) - 1  # bytes that Arrow parses at a time
BATCH = 1 << 21  # bytes of text that become one batch
LONGEST = 1 << 24  # bytes of a private line, and of a block: a shorter line always fits
HEADER = re.compile(rb"[\r\n]*+([^\r\n]*+)(\r?\n|\r|\Z)")
SWAP = bytes.maketrans(b"\r\n", b"\n\r")


@dataclass(frozen=True, eq=False)
class Lines:
    """The rows of a text file that could be read, and the numbers of their lines, if asked for."""

    table: pa.Table
    numbers: list[int] = field(default_factory=list)  # the line of each row, from 1
    unread: dict[int, str] = field(default_factory=dict)  # other lines, and why; as private


def read(path: Path, delimiter: str, encoding: str | None = None) -> pa.Table:
    """The table in a file: a header, then rows of the same width; all cells are text.

    Cells that are empty and not in quotes are missing; cells in quotes may hold line ends. Empty
    lines are skipped. The text is UTF-8, with or without a byte order mark, or in `encoding`.
    """
    source = Delimited.open(path, delimiter, encoding=encoding)
    header, first = islice(chain(source.records(), (None, None)), 2)
    names = read_names(path, source, header)
    if header is None or first is None:
        raise _no_rows(path)
    found = _rows(path, source, header.end, numbered_names(names))
    return found.replace_schema_metadata(about_names(names))


def first_line(path: Path, encoding: str | None = None) -> str:
    """The first line of a file that is not empty."""
    with open_bytes(path, encoding) as file:
        for line in file.read(BATCH).splitlines():
            if line.strip():
                return line.removeprefix(codecs.BOM_UTF8).decode(errors="replace")
    return ""


def schema(path: Path, delimiter: str, encoding: str | None = None) -> pa.Schema:
    """The columns of a file, all of them text."""
    with contextlib.closing(_pieces(path, delimiter, encoding)) as pieces:
        for names, *_ in pieces:
            columns = [(name, pa.string()) for name in numbered_names(names)]
            return pa.schema(columns, about_names(names))
    raise _no_rows(path)


def batches(
    path: Path, delimiter: str, wanted: Sequence[str], encoding: str | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """The rows in small tables, each with the number of its first row."""
    row = 0
    for names, source, start, lines in _pieces(path, delimiter, encoding):
        table = _rows(path, source, start, numbered_names(names), wanted, lines)
        yield row, table
        row += table.num_rows
    if not row:
        raise _no_rows(path)


def read_lines(path: Path, delimiter: str, *, numbered: bool = False) -> Lines:
    """The private rows of a file, each line by itself; with `numbered`, also their line numbers."""
    source, header = _first_line(path, delimiter)
    names = read_names(path, source, header if header.stop > header.start else None)
    check_names(path, names)
    if any(source.is_open(span) for span in source.cells(header)):
        raise InputError(f"{path} has a quote in its header that is not closed in the same line")
    if not numbered and _is_plain(source, header.stop):
        end = b"" if source.raw[-1:] == b"\n" else b"\n"  # the end of the header is an empty line
        body = _arrow_bytes(memoryview(source.raw)[header.stop :], end)
        quotes = source.raw.find(b'"', header.stop) >= 0
        with contextlib.suppress(pa.ArrowInvalid):
            table = _parsed(body, names, delimiter, LONGEST)
            if not quotes or _is_one_a_line(body, table, delimiter):
                return Lines(table)
    return _one_by_one(source, header, names)


def _no_rows(path: Path) -> InputError:
    return InputError(f"{path} has a header but no rows: at least one row is needed")


def _pieces(
    path: Path, delimiter: str, encoding: str | None = None
) -> Generator[tuple[list[str], Delimited, int, int]]:
    """Pieces of text that have rows, and end where a row ends.

    With each come the names of the columns, where its rows start, and how many lines are before it.
    """
    rest, lines, names, last = b"", 0, None, False
    with open_bytes(path, encoding) as file:
        while not last:
            more = file.read(BATCH)
            last = len(more) < BATCH
            rest += more
            end = len(rest) if last else _last_end(path, rest, delimiter, lines)
            piece, rest = rest[:end], rest[end:]
            source, start = Delimited(piece, delimiter), 0
            if names is None:
                header = next(source.records(), None)
                if header is not None or last:
                    names = read_names(path, source, header)
                start = 0 if header is None else header.end
            if names is not None and piece[start:].strip(b"\r\n"):
                yield names, source, start, lines
            lines += piece.count(b"\n") or piece.count(b"\r")


def _last_end(path: Path, text: bytes, delimiter: str, lines: int) -> int:
    """Where the last complete record ends: more text follows it."""
    end = 0
    if b'"' in text:
        for record in Delimited(text, delimiter).records():
            end = record.end if record.end < len(text) else end
    else:
        mark = b"\n" if b"\n" in text else b"\r"
        end = text.rfind(mark, 0, len(text) - 1) + 1
    if not end and len(text) > BLOCK:
        raise InputError(
            f"{path} has a row in line {lines + 1} of more than {BLOCK} bytes, or a quote that "
            "is never closed"
        )
    return end


def _rows(
    path: Path, source: Delimited, start: int, names: list[str],
    wanted: Sequence[str] | None = None, lines: int = 0,
) -> pa.Table:  # fmt: skip
    """The rows from the byte `start` on; `lines` lines come before the source."""
    body, between = memoryview(source.raw)[start:], source.delimiter
    if source.raw.find(b'"', start) < 0:
        try:
            return _parsed(_arrow_bytes(body), names, between, BLOCK, wanted)
        except pa.ArrowInvalid as wrong:
            raise _diagnosis(path, source, len(names), str(wrong), lines) from None
    # a row of marks at the end, which a quote that is still open takes in; and one block, since
    # Arrow drops a line feed in quotes at the start of a block
    mark = "\x1f" if between != "\x1f" else "\x1e"
    whole = _arrow_bytes(body, f"\n{between.join([mark] * len(names))}\n".encode())
    try:
        table = _parsed(whole, names, between, min(whole.size, MOST), wanted, quotes=True)
    except pa.ArrowInvalid as wrong:
        _check_closed(path, source, lines)
        raise _diagnosis(path, source, len(names), str(wrong), lines) from None
    rows = table.num_rows - 1
    if any(cell != mark for column in table.slice(rows).to_pydict().values() for cell in column):
        _check_closed(path, source, lines)
        raise InputError(f"{path} cannot be read: a quote near its end does not seem to be closed")
    return table.slice(0, rows)


def _arrow_bytes(*pieces: bytes | memoryview) -> pa.Buffer:
    """A copy in Arrow's own memory.

    Arrow's threads may let go of what they read after it is read. If Python is ending then, a
    thread that gives back Python's memory aborts the process.
    """
    found = pa.allocate_buffer(sum(map(len, pieces)))
    place, view = 0, memoryview(found).cast("B")
    for piece in pieces:
        view[place : place + len(piece)] = piece
        place += len(piece)
    return found


def _parsed(
    body: pa.Buffer, names: list[str], delimiter: str, block: int,
    wanted: Sequence[str] | None = None, *, quotes: bool = False,
) -> pa.Table:  # fmt: skip
    """Cells as text, missing where they are empty and not in quotes."""
    return csv.read_csv(
        pa.BufferReader(body),
        csv.ReadOptions(block_size=block, column_names=names),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=quotes),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=None if wanted is None else list(wanted),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _check_closed(path: Path, source: Delimited, lines: int) -> None:
    """Refuse a quote that is still open at the end of the file, and so takes in what follows it."""
    for last in deque(source.records(), maxlen=1):
        for span in filter(source.is_open, source.cells(last)):
            raise InputError(
                f"{path} has a quote in line {lines + source.line(span[0])} that is never closed: "
                "close it, or double it if it is part of the text"
            )


def _diagnosis(path: Path, source: Delimited, width: int, said: str, lines: int) -> InputError:
    """Why Arrow refused: the first line with another number of cells, or other bytes than UTF-8."""
    unlike: list[str] = []
    more = 0
    for record in source.records():
        cells = source.cells(record)
        if len(cells) != width:
            more += 1
            if len(unlike) < 3:
                unlike.append(f"line {lines + source.line(record.start)} has {len(cells)}")
    if unlike:
        rest = f" and {more - len(unlike)} more lines differ" if more > len(unlike) else ""
        return InputError(
            f"{path} has {width} cell{'s' * (width != 1)} in its header, but "
            f"{', '.join(unlike)}{rest}: quote cells that hold the delimiter, add missing cells, "
            f"remove lines above the header, or name another {option('delimiter')}"
        )
    try:
        bytes(source.raw).decode()
    except UnicodeDecodeError as foreign:
        line = lines + source.line(foreign.start)
        return not_utf8(path, f"line {line}", foreign)
    return InputError(f"{path} cannot be read: {said}")


def _first_line(path: Path, delimiter: str) -> tuple[Delimited, Record]:
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


def _is_one_a_line(body: pa.Buffer, table: pa.Table, delimiter: str) -> bool:
    """Whether Arrow made one row of each line; only an open quote can prevent that.

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
    # without the empty line Arrow would take a byte order mark off the first row, and off no other
    body = _arrow_bytes(b"".join([b"\n", *(line + b"\n" for line in kept)]))
    table = _parsed(body, names, source.delimiter, LONGEST)
    return Lines(table, found.numbers, found.unread)


def _fault(line: bytes, whole: re.Pattern[bytes], delimiter: bytes, width: int) -> str:
    """Why a line is not a row; empty if it is one."""
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
    """The pattern of a line of `width` cells, without an open quote."""
    between = re.escape(delimiter).encode()
    cell = rb'(?:"(?:[^"]++|"")*+"|(?!"))[^' + between + rb"]*+"
    return re.compile(cell + rb"(?:" + between + cell + rb"){%d}" % (width - 1), re.DOTALL)
