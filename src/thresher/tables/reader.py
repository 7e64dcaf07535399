"""Files of any kind as one Arrow table: whole, without rows, or in small tables one by one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.files import BROKEN, KEY, damaged, record_path
from thresher.inputs.checks import check_columns
from thresher.tables import arrow, excel, json_lines, npz, parquet, text
from thresher.tables.cell_format import without_words
from thresher.tables.delimited import check_names, likely_delimiter
from thresher.tables.header import repeated_names
from thresher.tables.packing import check_encoding, unpacked
from thresher.tables.paths import TEXT_KINDS, delimiter_of, find_files, kind_of

FORMATS: Mapping[str, Any] = {
    "parquet": parquet, "arrow": arrow, "npz": npz, "npy": npz, "xlsx": excel, "jsonl": json_lines,
}  # fmt: skip
CELLS = 1 << 19  # of a small table


@dataclass(frozen=True, eq=False)
class Table:
    """A table, and the files that it was read from."""

    data: pa.Table  # all columns of .csv and .tsv files are text
    files: tuple[Path, ...]  # in the order of their rows
    kind: str  # such as "csv" or "parquet": see `thresher.tables.paths.KINDS`
    delimiter: str | None = None  # what stands between cells; None where there are none
    encoding: str | None = None  # of text that is not UTF-8
    na: tuple[str, ...] = ()  # words that say that a cell is missing
    repeated: tuple[str, ...] = ()  # names that the header has more than once; now with numbers
    kept: NDArray[np.int64] | None = None  # the numbers of its rows, if some were left out

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @property
    def name(self) -> str:
        """Its name in messages: the file, or the first of several."""
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.files[0]}{more}"

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number that each row has in the files."""
        return np.arange(len(self)) if self.kept is None else self.kept

    def format(self) -> dict[str, Any]:
        """How its files are read, which is part of what tells one run from another."""
        return {"delimiter": self.delimiter, "encoding": self.encoding, "na": list(self.na)}

    @property
    def is_text(self) -> bool:
        """Whether its files are text."""
        return self.kind in TEXT_KINDS


def read_table(
    spec: str | os.PathLike[str], *, delimiter: str | None = None, encoding: str | None = None,
    na: Sequence[str] = (),
) -> Table:  # fmt: skip
    r"""The table that a file, a folder or a pattern holds.

    Parameters
    ----------
    spec
        A .csv, .tsv, .txt, .parquet, .arrow, .feather, .xlsx, .jsonl, .npz or .npy file, most of
        them also as .gz or as the only one in a .zip; a folder of files of one kind, or a pattern
        such as "parts/*.csv". Several files are read in the order of their names and must have the
        same columns.
    delimiter
        What separates cells of text. If not given, a comma in a .csv, a tab in a .tsv, and the
        character that the first line of a .txt has most often. Other kinds of files have none.
    encoding
        The encoding of text, such as "latin-1"; UTF-8 if not given.
    na
        Words that say that a cell is missing, besides an empty one.

    Returns
    -------
    Table
        Cells of text stay text; those that are empty and not in quotes are missing. In an .npz, the
        columns of the array X are x0, x1 and so on, and arrays with one entry per row are columns
        of their own, except "classes" and those whose name ends in "_val". An .npy file is X alone.

    Raises
    ------
    InputError
        If there is no such file, or if it cannot be read as a table. The message names the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x,y\n1.50,cat\n,dog\n")
    ...     table = read_table(Path(folder, "a.csv"))
    >>> table.data.to_pydict()
    {'x': ['1.50', None], 'y': ['cat', 'dog']}
    """
    table = _unread(spec, delimiter, encoding, na)
    files = table.files
    parts = [_read_one(path, table.kind, table.delimiter, table.encoding) for path in files]
    first = parts[0].schema
    for part, path in zip(parts, files, strict=True):
        check_columns(str(path), tuple(part.column_names), str(files[0]), tuple(first.names))
    try:
        data = pa.concat_tables(parts, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as unlike:
        for part, path in zip(parts, files, strict=True):
            _check_same_types(part.schema, first, path, files[0])
        raise InputError(
            f"{files[0]} and the files after it have columns of different types"
        ) from unlike
    return replace(table, data=without_words(data, na), repeated=repeated_names(first))


def scan_table(
    spec: str | os.PathLike[str], *, delimiter: str | None = None, encoding: str | None = None,
    na: Sequence[str] = (),
) -> Table:  # fmt: skip
    """A table without its rows: the files, and the columns that all of them have."""
    table = _unread(spec, delimiter, encoding, na)
    if table.kind in {"npz", "npy"}:
        raise InputError(
            f"{table.files[0]} holds arrays, which cannot be scanned: map an .npy file with "
            "numpy.load(path, mmap_mode='r')"
        )
    found = common_schema(table.files, table.kind, table.delimiter, table.encoding)
    return replace(table, data=found.empty_table(), repeated=repeated_names(found))


def _unread(
    spec: str | os.PathLike[str], delimiter: str | None, encoding: str | None, na: Sequence[str]
) -> Table:
    """A table of files that were not opened yet: how to read them, but no columns."""
    files, how = find_files(spec), check_encoding(encoding)
    kind = kind_of(files[0])
    between = delimiter_of(kind, delimiter)
    if kind == "txt" and delimiter is None:
        between = likely_delimiter(text.first_line(files[0], how), "\t")
    return Table(pa.table({}), files, kind, between, how if between else None, tuple(na))


def common_schema(
    files: Sequence[Path], kind: str, delimiter: str | None, encoding: str | None = None
) -> pa.Schema:
    """The columns of the first file, which all other files must have, too."""
    first = _schema(files[0], kind, delimiter, encoding)
    for path in files[1:]:
        found = _schema(path, kind, delimiter, encoding)
        check_columns(str(path), tuple(found.names), str(files[0]), tuple(first.names))
        _check_same_types(found, first, path, files[0])
    return first


def read_batches(
    table: Table, path: Path, wanted: Sequence[str], start: int = 0
) -> Iterator[tuple[int, pa.Table]]:
    r"""The rows of a file of a table from row `start` on, in small tables of the `wanted` columns.

    Each comes with the number of its first row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x,y\n1.50,cat\n2,dog\n3,\n")
    ...     table = scan_table(Path(folder, "a.csv"))
    ...     batches = list(read_batches(table, table.files[0], ["y"], start=1))
    >>> [(row, some.to_pydict()) for row, some in batches]
    [(1, {'y': ['dog', None]})]
    """
    names, most = list(wanted), max(64, CELLS // max(1, len(wanted)))
    with _refusing(path, table.kind):
        if table.delimiter is None:
            batches = FORMATS[table.kind].batches(unpacked(path), names, start, most)
        else:
            batches = text.batches(path, table.delimiter, names, table.encoding)
        for first, some in batches:
            past = max(0, start - first)
            if past < some.num_rows:
                rest = without_words(some.slice(past).select(names), table.na)
                rest.validate(full=True)  # damaged offsets lead out of the file
                yield first + past, rest


def read_columns(path: Path, kind: str) -> pa.Table:
    """The table in a file that is not text, as it is; it may have no rows."""
    return FORMATS[kind].read(unpacked(path))


def input_digest(files: Iterable[Path]) -> str:
    """The SHA-256 of the bytes of files, one after the other, as hexadecimal digits."""
    state = hashlib.sha256()
    for path in files:
        with Path(path).open("rb") as file:
            hashlib.file_digest(file, lambda: state)
    return state.hexdigest()


def validation_inside(table: Table, label: str) -> Table | None:
    """The validation set that an .npz file holds besides the points, as `thresher embed` writes it.

    Its arrays have the names of those of the points with "_val" at the end.
    """
    if table.kind != "npz" or len(table.files) > 1:
        return None
    path = table.files[0]
    arrays = npz.arrays_of(path)
    end = npz.OF_VALIDATION
    inside = {name.removesuffix(end): x for name, x in arrays.items() if name.endswith(end)}
    if not {"X", label} <= set(inside):
        return None
    about = {KEY: str(arrays["about"])} if "about" in arrays else {}
    data = npz.table_of(path, inside).replace_schema_metadata(about)
    return Table(without_words(data, table.na), table.files, table.kind, na=table.na)


def record_of(table: Table) -> dict[str, Any]:
    """What a table of results says about how it was made; empty if it says nothing."""
    beside = record_path(table.files[0])
    try:
        if table.is_text:
            stored = beside.read_text(encoding="utf-8") if beside.is_file() else "{}"
        else:
            stored = (table.data.schema.metadata or {}).get(KEY, b"{}")
        about = json.loads(stored)
    except ValueError:
        raise InputError(f"{table.name} is damaged: its record is not JSON") from None
    return about if isinstance(about, dict) else {}


def _check_same_types(found: pa.Schema, wanted: pa.Schema, path: Path, first: Path) -> None:
    for field in found:
        kind = wanted.field(field.name).type
        if field.type != kind:
            raise InputError(
                f"column {field.name!r} has type {field.type} in {path} but {kind} in {first}: "
                "write both alike"
            )


def _schema(path: Path, kind: str, delimiter: str | None, encoding: str | None) -> pa.Schema:
    with _refusing(path, kind):
        if delimiter:
            found = text.schema(path, delimiter, encoding)
        else:
            found = FORMATS[kind].schema(unpacked(path))
        check_names(path, found.names)  # raises where one is no text
    return found


def _read_one(path: Path, kind: str, delimiter: str | None, encoding: str | None) -> pa.Table:
    if not path.stat().st_size:
        raise InputError(f"{path} is empty")
    with _refusing(path, kind):
        data = text.read(path, delimiter, encoding) if delimiter else read_columns(path, kind)
        check_names(path, data.column_names)  # raises where one is no text
    if not data.num_rows:
        raise InputError(f"{path} has columns but no rows: at least one row is needed")
    return data


@contextlib.contextmanager
def _refusing(path: Path, kind: str) -> Iterator[None]:
    """Turn any error inside into one that says that the file is damaged."""
    try:
        yield
    except InputError:
        raise
    except BROKEN as broken:
        if "pickle" in str(broken):
            raise InputError(
                f"{path} holds Python objects: save numbers, or text of a fixed length"
            ) from None
        what = f"is damaged, was not written to its end, or is not a .{kind} file"
        raise damaged(path, what, broken) from broken
