"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import compute, parquet

from thresher.errors import InputError
from thresher.files import open_parquet
from thresher.tables.arrow import with_views, without_views

BUFFER = 1 << 16  # bytes read at a time from a column
PAGE = 3 << 20  # a page of a column, packed and unpacked, and its dictionary
BATCH = 1 << 22  # bytes of a batch


def schema(path: Path) -> pa.Schema:
    """The columns of a file."""
    return parquet.read_schema(path)


def read(path: Path) -> pa.Table:
    """The table in a file."""
    with open_parquet(path) as file:  # not read_table: it reads folders' names, too
        data = file.read()
        _check_codes(path, data)
        _check_rows(path, file, data.num_rows)
        return without_views(data)


def batches(path: Path, wanted: list[str], start: int, most: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows from the group that holds row `start` on, at most `most` at a time."""
    with open_parquet(path, buffer_size=BUFFER, pre_buffer=False) as file:
        size = max(64, min(most, BATCH // _row_bytes(file, wanted)))
        groups, row, first = [], 0, None
        for number in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            if row + rows > start:
                groups.append(number)
                first = row if first is None else first
            row += rows
        row = first or 0
        for batch in file.iter_batches(size, row_groups=groups, columns=wanted):
            yield row, pa.Table.from_batches([batch])
            row += batch.num_rows
        if groups:
            _check_rows(path, file, row)


def sizes(path: Path, wanted: list[str]) -> tuple[int, int]:
    """The rows of a file, and the most bytes that reading `wanted` columns holds at once.

    The sizes are those of whole groups of rows. Arrow ends the process, without an error, where it
    is asked for the size of a single column and finds the description of that column damaged.
    """
    with open_parquet(path) as file:
        paths = [column.path for column in file.schema]
        read = sum(path.split(".")[0] in wanted or path in wanted for path in paths)
        most = max(_group_bytes(file), default=0)
        return file.metadata.num_rows, read * BUFFER + min(2 * max(most, 0), read * PAGE)


def write(data: pa.Table, like: Path, temporary: Path) -> None:
    """Write a table, with the compression and the dictionaries that the file `like` has."""
    with open_parquet(like) as file:
        group, views = file.metadata.row_group(0), file.schema_arrow
        columns = [group.column(place) for place in range(group.num_columns)]
        codecs = {
            each.path_in_schema: each.compression.lower().replace("uncompressed", "none")
            for each in columns
        }
        coded = [
            each.path_in_schema
            for each in columns
            if any("DICTIONARY" in encoding for encoding in each.encodings)
        ]
    parquet.write_table(
        with_views(data, views),
        temporary,
        row_group_size=max(group.num_rows, 1),
        compression=codecs,
        use_dictionary=coded or False,
    )


def _check_codes(path: Path, data: pa.Table) -> None:
    """Raise where a damaged column names entries that its dictionary does not have."""
    for column in data.columns:
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            most = compute.max(chunk.indices).as_py()
            if most is not None and most >= len(chunk.dictionary):
                raise InputError(f"{path} is damaged: entries of a dictionary are missing")


def _check_rows(path: Path, file: parquet.ParquetFile, found: int) -> None:
    """Raise if pages end early: Arrow takes that for the end of a group, without an error."""
    if found != file.metadata.num_rows:
        raise InputError(
            f"{path} is damaged: its footer says that there are {file.metadata.num_rows} rows, "
            f"and its pages hold {found}"
        )


def _row_bytes(file: parquet.ParquetFile, wanted: list[str]) -> int:
    """An upper bound for the bytes of a row of some columns; of all columns if some hold text."""
    types = [file.schema_arrow.field(name).type for name in wanted]
    if all(pa.types.is_primitive(each) for each in types):
        return max(1, sum(each.bit_width for each in types) // 8)
    return max(1, sum(_group_bytes(file)) // max(1, file.metadata.num_rows))


def _group_bytes(file: parquet.ParquetFile) -> list[int]:
    about = file.metadata
    return [about.row_group(group).total_byte_size for group in range(about.num_row_groups)]
