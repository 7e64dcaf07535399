"""Files as small Arrow tables, one after the other, from any row on, for what exceeds memory."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc, parquet

from thresher.errors import InputError
from thresher.files import BROKEN, damaged, open_parquet
from thresher.tables.delimited import Delimited
from thresher.tables.finding import is_gzip
from thresher.tables.reading import DAMAGED, check_same_columns, is_stream
from thresher.tables.text import BLOCK as LONGEST
from thresher.tables.text import check_names, diagnosis, parse, read_header

TEXT = 1 << 21  # bytes of text parsed at a time
NUMBERS = 1 << 19  # cells of a small table
BUFFER = 1 << 16  # bytes read at a time from a column of a Parquet file
PAGE = 3 << 20  # a page of a column, packed and unpacked, and its dictionary

Batch = tuple[int, pa.Table]  # the number of the first row in its file, and some rows


def schema_of(path: Path, kind: str, delimiter: str | None) -> pa.Schema:
    """The columns of a file; those of text are text."""
    try:
        schema = _schema_of(path, kind, delimiter)
        check_names(path, schema.names)  # raises where one is no text
    except InputError:
        raise
    except BROKEN as broken:
        raise damaged(path, DAMAGED.format(kind), broken) from broken
    return schema


def _schema_of(path: Path, kind: str, delimiter: str | None) -> pa.Schema:
    if delimiter is not None:
        with _opened(path) as file:
            names, _ = read_header(path, _head(path, file, delimiter))
        return pa.schema([(name, pa.string()) for name in names])
    if kind == "parquet":
        return parquet.read_schema(path)
    if kind == "npy":
        array = _mapped(path)
        each = pa.from_numpy_dtype(array.dtype.newbyteorder("="))
        return pa.schema([(f"x{place}", each) for place in range(array.shape[1])])
    with pa.memory_map(str(path)) as source:
        return _reader(path, source).schema


def common_schema(files: Sequence[Path], kind: str, delimiter: str | None) -> pa.Schema:
    """The columns of the first file, if all have the same."""
    first = schema_of(files[0], kind, delimiter)
    for path in files[1:]:
        found = schema_of(path, kind, delimiter)
        check_same_columns(found.names, first.names, path, files[0])
        for field in found:
            wanted = first.field(field.name).type
            if field.type != wanted:
                raise InputError(
                    f"column {field.name!r} has type {field.type} in {path} but {wanted} in "
                    f"{files[0]}: write both alike"
                )
    return first


def read_batches(
    path: Path, kind: str, delimiter: str | None, wanted: Sequence[str], start: int = 0
) -> Iterator[Batch]:
    r"""The rows of a file from row `start` on, in small tables of the `wanted` columns.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x,y\n1.50,cat\n2,dog\n3,\n")
    ...     batches = list(read_batches(Path(folder, "a.csv"), "csv", ",", ["y"], start=1))
    >>> [(row, table.to_pydict()) for row, table in batches]
    [(1, {'y': ['dog', None]})]
    """
    try:
        for first, table in _READERS[kind](path, delimiter, list(wanted), start):
            past = max(0, start - first)
            if past < table.num_rows:
                yield first + past, table.slice(past).select(list(wanted))
    except InputError:
        raise
    except BROKEN as broken:
        raise damaged(path, DAMAGED.format(kind), broken) from broken


def parquet_sizes(path: Path, wanted: Sequence[str]) -> tuple[int, int]:
    """The rows of a file, and the most bytes that reading `wanted` columns holds at once.

    The sizes are those of whole groups of rows. Arrow ends the process, without an error, where it
    is asked for the size of a single column and finds the description of that column damaged.
    """
    with open_parquet(path) as file:
        about, paths = file.metadata, [column.path for column in file.schema]
        read = sum(path.split(".")[0] in wanted or path in wanted for path in paths)
        most = max((about.row_group(group).total_byte_size for group in _groups(about)), default=0)
        return about.num_rows, read * BUFFER + min(2 * max(most, 0), read * PAGE)


def _text_batches(
    path: Path, delimiter: str | None, wanted: list[str], start: int
) -> Iterator[Batch]:
    """Pieces of text that end where a record does, each parsed by itself."""
    del start  # where a row begins is known only by what comes before it
    assert delimiter is not None  # noqa: S101
    with _opened(path) as file:
        source = _head(path, file, delimiter)
        names, position = read_header(path, source)
        rest, row, lines = bytes(source.raw), 0, 0
        while True:
            more = file.read(TEXT)
            rest += more
            end = _last_end(path, rest, delimiter, lines) if more else len(rest)
            piece, rest = rest[:end], rest[end:]
            if not more:
                _check_open(path, Delimited(piece, delimiter), lines)
            if piece[position:].strip(b"\r\n"):
                table = _parsed(path, Delimited(piece, delimiter), position, names, wanted, lines)
                yield row, table
                row += table.num_rows
            if not more:
                return
            if end:
                position = 0
            lines += piece.count(b"\n") or piece.count(b"\r")


def _parsed(
    path: Path, source: Delimited, position: int, names: list[str], wanted: list[str], lines: int
) -> pa.Table:
    try:
        return parse(source, position, names, wanted)
    except pa.ArrowInvalid as wrong:
        raise diagnosis(path, source, len(names), str(wrong), lines) from None


def _check_open(path: Path, source: Delimited, lines: int) -> None:
    """Refuse a quote that is still open at the end of the file."""
    if b'"' not in source.raw:
        return
    last = None
    for last in source.records():  # noqa: B007
        pass
    if last is not None and any(source.is_open(span) for span in source.cells(last)):
        line = lines + source.line(last.start)
        raise InputError(
            f"{path} has a quote in line {line} that is never closed: close it, or double it if it "
            "is part of the text"
        )


def _last_end(path: Path, text: bytes, delimiter: str, lines: int) -> int:
    """Where the last record ends of which text behind it shows that it is through."""
    end = 0
    if b'"' in text:
        for record in Delimited(text, delimiter).records():
            end = record.end if record.end < len(text) else end
    else:
        mark = b"\n" if b"\n" in text else b"\r"
        end = text.rfind(mark, 0, len(text) - 1) + 1
    if not end and len(text) > LONGEST:
        raise InputError(
            f"{path} has a row in line {lines + 1} of more than {LONGEST} bytes, or a quote that "
            "is never closed"
        )
    return end


def _head(path: Path, file: IO[bytes], delimiter: str) -> Delimited:
    """As much of the beginning of a file as holds the header and one row."""
    text = b""
    while True:
        more = file.read(BUFFER)
        text += more
        source = Delimited(text, delimiter)
        found = sum(1 for record, _ in zip(source.records(), range(3), strict=False) if record)
        if not more or found > 2:
            return source
        if len(text) > LONGEST:
            raise InputError(f"{path} has a header or a first row of more than {LONGEST} bytes")


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if is_gzip(path) else path.open("rb")  # type: ignore[return-value]


def _parquet_batches(path: Path, _: str | None, wanted: list[str], start: int) -> Iterator[Batch]:
    with open_parquet(path, buffer_size=BUFFER, pre_buffer=False) as file:
        size = max(64, min(NUMBERS // max(1, len(wanted)), 8 * NUMBERS // _row_bytes(file, wanted)))
        groups, row = [], 0
        first = None
        for number in _groups(file.metadata):
            rows = file.metadata.row_group(number).num_rows
            if row + rows > start:
                groups.append(number)
                first = row if first is None else first
            row += rows
        row = first or 0
        for batch in file.iter_batches(size, row_groups=groups, columns=wanted):
            yield row, pa.Table.from_batches([batch])
            row += batch.num_rows


def _row_bytes(file: parquet.ParquetFile, wanted: list[str]) -> int:
    """At most the bytes of a row of some columns; of a row of all where some hold text."""
    types = [file.schema_arrow.field(name).type for name in wanted]
    if all(pa.types.is_primitive(each) for each in types):
        return max(1, sum(each.bit_width for each in types) // 8)
    about = file.metadata
    size = sum(about.row_group(group).total_byte_size for group in _groups(about))
    return max(1, size // max(1, about.num_rows))


def _groups(about: parquet.FileMetaData) -> range:
    return range(about.num_row_groups)


def _arrow_batches(path: Path, _: str | None, wanted: list[str], start: int) -> Iterator[Batch]:
    size = max(64, NUMBERS // max(1, len(wanted)))
    with pa.memory_map(str(path)) as source:
        reader, row = _reader(path, source), 0
        stream = isinstance(reader, ipc.RecordBatchStreamReader)
        batches = reader if stream else map(reader.get_batch, range(reader.num_record_batches))
        for batch in batches:
            batch.select(wanted).validate(full=True)  # damaged offsets lead out of the file
            for lo in range(0, batch.num_rows, size):
                some = batch.slice(lo, size).select(wanted)
                if row + lo + some.num_rows > start:
                    yield row + lo, pa.Table.from_batches([some])
            row += batch.num_rows


def _array_batches(path: Path, _: str | None, wanted: list[str], start: int) -> Iterator[Batch]:
    array = _mapped(path)
    size = max(64, NUMBERS // max(1, len(wanted)))
    places = [int(name[1:]) for name in wanted]
    for lo in range(start, len(array), size):
        rows = np.array(array[lo : lo + size])
        native = rows.astype(rows.dtype.newbyteorder("="), copy=False)
        columns = [pa.array(np.ascontiguousarray(native[:, place])) for place in places]
        yield lo, pa.table(columns, names=wanted)


def _mapped(path: Path) -> NDArray[Any]:
    """The rows of an .npy file, which stay there."""
    array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} must hold rows of numbers, got {array.dtype} of shape {array.shape}"
        )
    return array


def _reader(path: Path, source: Any) -> Any:
    return ipc.open_stream(source) if is_stream(path) else ipc.open_file(source)


_READERS: dict[str, Any] = {
    "csv": _text_batches,
    "tsv": _text_batches,
    "parquet": _parquet_batches,
    "arrow": _arrow_batches,
    "npy": _array_batches,
}
