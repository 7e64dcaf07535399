"""Tables in Arrow files: .arrow and .feather, also streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc


def schema(path: Path) -> pa.Schema:
    """The columns of a file."""
    with pa.memory_map(str(path)) as source:
        return _reader(path, source).schema


def read(path: Path) -> pa.Table:
    """The table in a file."""
    with pa.OSFile(str(path)) as source:
        data = _reader(path, source).read_all()
        data.validate(full=True)  # damaged offsets lead out of the file
        return without_views(data)


def batches(path: Path, wanted: list[str], start: int, most: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows from row `start` on, at most `most` at a time."""
    with pa.memory_map(str(path)) as source:
        reader, row = _reader(path, source), 0
        stream = isinstance(reader, ipc.RecordBatchStreamReader)
        for batch in reader if stream else map(reader.get_batch, range(reader.num_record_batches)):
            for lo in range(0, batch.num_rows, most):
                some = batch.slice(lo, most).select(wanted)
                if row + lo + some.num_rows > start:
                    yield row + lo, pa.Table.from_batches([some])
            row += batch.num_rows


def write(data: pa.Table, like: Path, temporary: Path, *, packed: bool) -> None:
    """Write a table, as a stream if `like` is one, and compressed like Feather if `packed`."""
    data = with_views(data, schema(like)).unify_dictionaries()
    options = ipc.IpcWriteOptions(compression="lz4" if packed else None)
    make = ipc.new_stream if _is_stream(like) else ipc.new_file
    with (
        pa.OSFile(str(temporary), "wb") as sink,
        make(sink, data.schema, options=options) as writer,
    ):
        writer.write_table(data)


def without_views(data: pa.Table) -> pa.Table:
    """A table without the types of text and bytes from Polars, of which Arrow cannot take rows."""
    for place, field in enumerate(data.schema):
        if _is_view(field.type):
            text = pa.types.is_string_view(field.type)
            plain = field.with_type(pa.large_string() if text else pa.large_binary())
            data = data.set_column(place, plain, data.column(place).cast(plain.type))
    return data


def with_views(data: pa.Table, wanted: pa.Schema) -> pa.Table:
    """A table with the types of text and bytes from Polars where the `wanted` schema has them."""
    for place, field in enumerate(wanted):
        if _is_view(field.type):
            data = data.set_column(place, field, data.column(place).cast(field.type))
    return data


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _reader(path: Path, source: Any) -> Any:
    return ipc.open_stream(source) if _is_stream(path) else ipc.open_file(source)


def _is_stream(path: Path) -> bool:
    """Whether a file is a stream: it lacks the mark that all other Arrow files begin with."""
    with path.open("rb") as file:
        return file.read(6) != b"ARROW1"
