"""A table without some rows and with other labels, written as its kind of file is."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc, parquet

from thresher.errors import InputError
from thresher.tables.delimited import NEWLINE, Delimited, edited, quoted
from thresher.tables.finding import is_gzip
from thresher.tables.reading import Table, is_column, is_stream, is_view, read_arrays
from thresher.tables.relabeling import relabeled, relabeled_array


@dataclass(frozen=True, eq=False)
class Cut:
    """What to write of a table: the rows to keep, and new labels by row."""

    table: Table
    keep: NDArray[np.bool_]
    labels: Mapping[int, Any]
    label: str | None

    def data(self) -> pa.Table:
        """The table that is left."""
        data = self.table.data
        if self.labels and self.label is not None:
            place = data.column_names.index(self.label)
            column = relabeled(data.column(place), self.labels, self.label)
            data = data.set_column(place, data.field(place), column)
        return data.filter(pa.array(self.keep))


def write_cut(cut: Cut, target: Path, temporary: Path) -> None:
    """Write what is left into a temporary file; the name of the target says whether to pack it."""
    kind = cut.table.kind
    if cut.table.is_text:
        write_pieces(_text(cut), target, temporary)
    elif kind == "parquet":
        _write_parquet(cut, temporary)
    elif kind == "arrow":
        _write_ipc(cut, target, temporary)
    elif kind == "npz":
        _write_npz(cut, temporary)
    else:
        whole = np.concatenate([read_arrays(path)["X"] for path in cut.table.files])
        write_array(whole[cut.keep], temporary)


def write_pieces(pieces: Iterator[bytes], target: Path, temporary: Path) -> None:
    """Write bytes, packed if the target's name ends in .gz."""
    with temporary.open("wb") as file:
        if is_gzip(target):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                packed.writelines(pieces)
        else:
            file.writelines(pieces)


def write_array(array: NDArray[Any], temporary: Path) -> None:
    """Write an .npy file under any name."""
    with temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _text(cut: Cut) -> Iterator[bytes]:
    """The bytes of all files, one after the other, under the header of the first."""
    names, between = cut.table.data.column_names, cut.table.delimiter or ","
    column = names.index(cut.label) if cut.label is not None and cut.labels else 0
    first, last = 0, b""
    for number, path in enumerate(cut.table.files):
        source = Delimited.open(path, between)
        rows = _check_unchanged(cut, source, path, first, column)
        if last and not last.endswith((b"\n", b"\r")):
            newline = NEWLINE.search(source.raw)
            yield newline[0] if newline else b"\n"
        drop = {row for row in range(rows) if not cut.keep[first + row]}
        cells = {
            row - first: quoted(label, between)
            for row, label in cut.labels.items()
            if first <= row < first + rows
        }
        for piece in edited(source, drop, cells, column, from_header=number == 0):
            last = piece or last
            yield piece
        first += rows


def _check_unchanged(cut: Cut, source: Delimited, path: Path, first: int, column: int) -> int:
    """The number of rows, if the file still says what was read from it."""
    records = source.records()
    header = next(records, None)
    names = [] if header is None else [source.text(cell) or "" for cell in source.cells(header)]
    same = names == cut.table.data.column_names
    row = first - 1
    for row, record in enumerate(records, start=first):
        if same and row in cut.labels and row < len(cut.keep):
            said = source.text(source.cells(record)[column])
            same = said == cut.table.data.column(column)[row].as_py()
    last = path == cut.table.files[-1]
    if not same or row >= len(cut.keep) or (last and row != len(cut.keep) - 1):
        raise InputError(f"{path} was changed after it was read: nothing was written")
    return row + 1 - first


def _write_parquet(cut: Cut, temporary: Path) -> None:
    """Compressed, and with dictionaries, as the first file is."""
    with parquet.ParquetFile(cut.table.files[0]) as file:
        about, schema = file.metadata, file.schema_arrow
        group = about.row_group(0)
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
    rows = max(group.num_rows, 1)
    parquet.write_table(
        _with_views(cut.data(), schema),
        temporary,
        row_group_size=rows,
        compression=codecs,
        use_dictionary=coded or False,
    )


def _write_ipc(cut: Cut, target: Path, temporary: Path) -> None:
    """As a stream if the first file is one; packed as Feather files are if the target is one."""
    first = cut.table.files[0]
    with pa.OSFile(str(first)) as source:
        schema = (ipc.open_stream(source) if is_stream(first) else ipc.open_file(source)).schema
    data = _with_views(cut.data(), schema).unify_dictionaries()
    packed = "lz4" if target.suffix.lower() == ".feather" else None
    options = ipc.IpcWriteOptions(compression=packed)
    make = ipc.new_stream if is_stream(first) else ipc.new_file
    with (
        pa.OSFile(str(temporary), "wb") as sink,
        make(sink, data.schema, options=options) as writer,
    ):
        writer.write_table(data)


def _with_views(data: pa.Table, schema: pa.Schema) -> pa.Table:
    """Text and bytes in the form in which the first file has them."""
    for place, field in enumerate(schema):
        if is_view(field.type):
            data = data.set_column(place, field, data.column(place).cast(field.type))
    return data


def _write_npz(cut: Cut, temporary: Path) -> None:
    """All arrays with one entry a row are cut, all others kept; packed as the first file is."""
    parts = [read_arrays(path) for path in cut.table.files]
    with zipfile.ZipFile(cut.table.files[0]) as old:
        packing = {each.filename: each.compress_type for each in old.infolist()}
    with zipfile.ZipFile(temporary, "w") as file:
        for name in parts[0]:
            about = zipfile.ZipInfo(f"{name}.npy")  # dated 1980: the same bytes again
            about.compress_type = packing.get(about.filename, zipfile.ZIP_STORED)
            with file.open(about, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _cut_array(cut, parts, name), allow_pickle=False)


def _cut_array(cut: Cut, parts: list[dict[str, NDArray[Any]]], name: str) -> NDArray[Any]:
    arrays = [part.get(name) for part in parts]
    present = [array for array in arrays if array is not None]
    if len(present) < len(arrays):
        raise InputError(f"array {name!r} is not in all files: write them alike")
    if all(is_column(name, part[name], len(part["X"])) for part in parts):
        whole = present[0] if len(present) == 1 else np.concatenate(present)
        if name == cut.label and cut.labels:
            whole = relabeled_array(whole, cut.labels, name)
        return whole[cut.keep]
    if any(not np.array_equal(array, present[0]) for array in present[1:]):
        raise InputError(f"array {name!r} differs between the files: clean them one by one")
    return present[0]
