"""Files of any kind as one Arrow table."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from thresher.arrays import load_array, load_arrays
from thresher.errors import InputError
from thresher.files import BROKEN, KEY, damaged, open_parquet
from thresher.tables.delimited import check_delimiter
from thresher.tables.finding import TEXT_KINDS, find_files, kind_of
from thresher.tables.text import check_names, read_text

OF_VALIDATION = "_val"  # arrays with such names, as `thresher embed` writes them, are other rows
CLASSES = "classes"  # and this one has an entry a class
BLOCK = 1 << 20  # bytes hashed at a time
DAMAGED = "is damaged, was not written to its end, or is no .{} file"


@dataclass(frozen=True, eq=False)
class Table:
    """A table, and the files that it was read from.

    Parameters
    ----------
    data
        The table. All columns of .csv and .tsv files are text.
    files
        The files, in the order of their rows.
    kind
        "csv", "tsv", "parquet", "arrow", "npz" or "npy".
    delimiter
        What stands between cells; None where there are none.
    """

    data: pa.Table
    files: tuple[Path, ...]
    kind: str
    delimiter: str | None = None

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @property
    def name(self) -> str:
        """What messages call it: the file, or the first of them."""
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.files[0]}{more}"

    @property
    def is_text(self) -> bool:
        """Whether its files are text."""
        return self.kind in TEXT_KINDS


def read_table(spec: str | os.PathLike[str], *, delimiter: str | None = None) -> Table:
    r"""The table that a file, a folder or a pattern holds.

    Parameters
    ----------
    spec
        A .csv, .tsv, .parquet, .arrow, .feather, .npz or .npy file (text may be .gz), a folder of
        files of one kind, or a pattern such as "parts/*.csv". Several files are read in the order
        of their names and must have the same columns.
    delimiter
        What stands between cells of text: a comma in a .csv, a tab in a .tsv if not given. Files of
        other kinds have none.

    Returns
    -------
    Table
        Cells of text stay text; those that are empty and not in quotes are missing. Of an .npz, the
        columns of the array X are x0, x1 and so on, and arrays with one entry a row are columns of
        their own, but for "classes" and those whose name ends in "_val". An .npy file is X alone.

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
    files = find_files(spec)
    kind = kind_of(files[0])
    between = None
    if kind in TEXT_KINDS:
        usual = "," if kind == "csv" else "\t"
        between = usual if delimiter is None else check_delimiter(delimiter)
    parts = [_read_one(path, kind, between) for path in files]
    return Table(_joined(parts, files), files, kind, between)


def input_digest(files: Iterable[Path]) -> str:
    """The SHA-256 of the bytes of files, one after the other, as hexadecimal digits."""
    state = hashlib.sha256()
    for path in files:
        with Path(path).open("rb") as file:
            while block := file.read(BLOCK):
                state.update(block)
    return state.hexdigest()


def validation_inside(table: Table, label: str) -> Table | None:
    """The validation set that an .npz file holds besides the points, as `thresher embed` writes it.

    Its arrays are those of the points with "_val" behind their names.
    """
    if table.kind != "npz" or len(table.files) > 1:
        return None
    path, end = table.files[0], len(OF_VALIDATION)
    arrays = read_arrays(path)
    inside = {name[:-end]: each for name, each in arrays.items() if name.endswith(OF_VALIDATION)}
    if not {"X", label} <= set(inside):
        return None
    data = _table_of(path, inside)
    about = {KEY: str(arrays["about"])} if "about" in arrays else {}
    return Table(data.replace_schema_metadata(about), table.files, table.kind)


def record_path(path: Path) -> Path:
    """Where the record of a table of text is, which has no room for one itself.

    Examples
    --------
    >>> record_path(Path("values.csv")).name
    'values.csv.record.json'
    """
    return path.with_name(f"{path.name}.record.json")


def record_of(table: Table) -> dict[str, Any]:
    """What a table of results says about how it was made; empty where it says nothing."""
    beside = record_path(table.files[0])
    try:
        if table.is_text:
            stored = beside.read_text(encoding="utf-8") if beside.is_file() else "{}"
        else:
            stored = (table.data.schema.metadata or {}).get(KEY, b"{}")
        about = json.loads(stored)
    except ValueError:
        raise InputError(f"{table.name} is damaged: its record is no JSON") from None
    return about if isinstance(about, dict) else {}


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz, or the one of an .npy, as X."""
    if path.suffix.lower() == ".npy":
        return {"X": load_array(path)}
    return load_arrays(path)


def is_column(name: str, array: NDArray[Any], rows: int) -> bool:
    """Whether an array of an .npz has one entry for each row of the table."""
    other = name == CLASSES or name.endswith(OF_VALIDATION)
    return array.ndim >= 1 and len(array) == rows and not other


def _read_one(path: Path, kind: str, delimiter: str | None) -> pa.Table:
    if not path.stat().st_size:
        raise InputError(f"{path} is empty")
    try:
        data = read_text(path, delimiter) if delimiter else read_columns(path, kind)
        names = data.column_names  # raises where one is no text
    except InputError:
        raise
    except BROKEN as broken:
        if "pickle" in str(broken):
            raise InputError(
                f"{path} holds Python objects: save numbers, or text of a fixed length"
            ) from None
        raise damaged(path, DAMAGED.format(kind), broken) from broken
    check_names(path, names)
    if not data.num_rows:
        raise InputError(f"{path} has columns but no rows: at least one row is needed")
    return data


def read_columns(path: Path, kind: str) -> pa.Table:
    """The table in a file that is no text, as it is: maybe without rows."""
    return _READERS[kind](path)


def _read_ipc(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as source:
        reader = ipc.open_stream(source) if is_stream(path) else ipc.open_file(source)
        data = reader.read_all()
        data.validate(full=True)  # damaged offsets lead out of the file
        return without_views(data)


def without_views(data: pa.Table) -> pa.Table:
    """Text and bytes as Polars stores them, in a form of which Arrow can take rows."""
    for place, field in enumerate(data.schema):
        if is_view(field.type):
            text = pa.types.is_string_view(field.type)
            plain = field.with_type(pa.large_string() if text else pa.large_binary())
            data = data.set_column(place, plain, data.column(place).cast(plain.type))
    return data


def is_view(kind: pa.DataType) -> bool:
    """Whether a column is of a type of which Arrow cannot take rows."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def is_stream(path: Path) -> bool:
    """Whether an Arrow file is a stream, without the mark that other Arrow files begin with."""
    with path.open("rb") as file:
        return file.read(6) != b"ARROW1"


def _read_parquet(path: Path) -> pa.Table:
    with open_parquet(path) as file:  # not read_table: it reads folders' names, too
        return without_views(file.read())


def _read_arrays(path: Path) -> pa.Table:
    return _table_of(path, read_arrays(path))


def _table_of(path: Path, arrays: dict[str, NDArray[Any]]) -> pa.Table:
    if "X" not in arrays:
        listed = ", ".join(arrays)
        raise InputError(f"{path} has no array 'X' of features: it has {listed or 'no arrays'}")
    X = arrays.pop("X")
    if X.ndim not in {1, 2}:
        raise InputError(
            f"{path} has features X of shape {X.shape}: one row a point is needed, as by "
            "X.reshape(len(X), -1)"
        )
    y = arrays.get("y", X)
    if len(y) != len(X):
        raise InputError(f"{path} has {len(y)} entries in y for {len(X)} rows in X")
    matrix = X if X.ndim == 2 else X[:, None]
    columns = [(f"x{j}", _column(path, "X", matrix[:, j])) for j in range(matrix.shape[1])]
    columns += [
        (name, _column(path, name, array))
        for name, array in arrays.items()
        if array.ndim == 1 and is_column(name, array, len(X))
    ]
    return pa.table([column for _, column in columns], names=[name for name, _ in columns])


def _column(path: Path, name: str, array: NDArray[Any]) -> pa.Array:
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if native.dtype.kind not in "biufUMm":
        raise InputError(
            f"{path} has an array {name!r} of dtype {array.dtype}: use numbers or text"
        )
    return pa.array(native)


def _joined(parts: list[pa.Table], files: tuple[Path, ...]) -> pa.Table:
    """Several tables with the same columns as one."""
    first = parts[0]
    for part, path in zip(parts[1:], files[1:], strict=True):
        check_same_columns(part.column_names, first.column_names, path, files[0])
    try:
        return pa.concat_tables(parts, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as unlike:
        raise _other_types(parts, files) from unlike


def check_same_columns(names: list[str], wanted: list[str], path: Path, first: Path) -> None:
    """Raise where a file has other columns than the first one, or in another order."""
    if names == wanted:
        return
    if sorted(names) == sorted(wanted):
        raise InputError(f"{path} has the columns of {first} in another order: put them in one")
    lacking = [name for name in wanted if name not in names][:5]
    extra = [name for name in names if name not in wanted][:5]
    raise InputError(
        f"{path} and {first} have different columns: only in {first} {lacking}, "
        f"only in {path} {extra}"
    )


def _other_types(parts: list[pa.Table], files: tuple[Path, ...]) -> InputError:
    wanted = parts[0].schema
    for part, path in zip(parts, files, strict=True):
        for field in part.schema:
            if field.type != wanted.field(field.name).type:
                return InputError(
                    f"column {field.name!r} has type {field.type} in {path} but "
                    f"{wanted.field(field.name).type} in {files[0]}: write both alike"
                )
    return InputError(f"{files[0]} and the files after it have different types of columns")


_READERS: Mapping[str, Any] = {
    "parquet": _read_parquet,
    "arrow": _read_ipc,
    "npz": _read_arrays,
    "npy": _read_arrays,
}
