"""Tables in files, named first and then read part by part: Parquet, text and Arrow."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.array_types import Array
from thresher.errors import InputError, plain_text
from thresher.inputs.labels import RawLabels, check_labels
from thresher.inputs.time_labels import arrow_entries
from thresher.passes.memory import give_back
from thresher.passes.parts import OBJECT, Part, Place
from thresher.regression import REGRESSION
from thresher.tables import parquet, text
from thresher.tables.cell_format import CellFormat, entries_without, named_formats
from thresher.tables.cell_values import stated_kind
from thresher.tables.columns import Columns, choose_columns, same_labels
from thresher.tables.date_text import ISO
from thresher.tables.encoder import Encoder
from thresher.tables.feature import Feature
from thresher.tables.label_column import check_distinct, check_target_cells, plain_labels
from thresher.tables.reader import CELLS, Table, read_batches, scan_table

TABLES = 6 * 8 * CELLS  # bytes of a small table, its columns as numbers, and rows of them
PARSED = 24 * text.BATCH  # bytes of text, its cells, and numbers, where cells are short
ROWS = 1 << 16  # of a part, where all of it is read at once
SINGLE = (pa.float16(), pa.float32(), pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16())


class Scan:
    r"""A table in files that may be larger than memory; pass it as X, with y=None.

    Only the names of columns are read before it is used. Then the rows are read part by part.

    Parameters
    ----------
    path
        A .csv, .tsv, .parquet, .arrow or .feather file (text may be .gz), a folder of files of one
        kind, or a pattern such as `parts/*.parquet`. Rows come in the order of the files' names.
    label
        The column of labels. Text labels become integers if all of them are written as plain
        integers.
    features
        Names of columns, or patterns such as "x*". The default is all other columns. They must hold
        numbers.
    ignore
        Columns to leave out: names or patterns.
    delimiter
        What separates cells of a text file. The default is a comma in a .csv and a tab in a .tsv.
    encoding
        The encoding of text, such as "latin-1" or "utf-16". The default is UTF-8.
    na
        Words that mean that a cell is missing, such as "?".
    decimal, thousands
        The marks before decimals, "." or ",", and between thousands, if there is one.
    date
        Columns of dates, to be used as numbers: names or patterns, with a format if the first rows
        do not show it, such as "born=%d/%m/%Y".

    Examples
    --------
    >>> import tempfile, thresher as th
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x1,x2,y\n1,0.1,cat\n0.9,0,dog\n0.1,1,dog\n")
    ...     points = th.Scan(Path(folder, "a.csv"), label="y")
    ...     valuation = th.tknn_shapley(points, None, [[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> valuation.values.round(3).tolist()
    [0.5, -0.5, 0.5]
    """

    def __init__(
        self, path: str | PathLike[str], *, label: str = "y",
        features: Sequence[str] | None = None, ignore: Sequence[str] = (),
        delimiter: str | None = None, encoding: str | None = None,
        na: Sequence[str] = (), decimal: str = ".", thousands: str | None = None,
        date: Sequence[str] = (),
    ) -> None:  # fmt: skip
        if not isinstance(label, str):
            raise InputError(f"label must be the name of a column, got {label!r}")
        self.table = scan_table(path, delimiter=delimiter, encoding=encoding, na=_listed(na))
        for name, given in (("delimiter", delimiter), ("encoding", encoding)):
            if given is not None and not self.table.is_text:
                raise InputError(
                    f"{name}={given!r} is for text, not for a .{self.table.kind} file: leave "
                    f"{name} out"
                )
        if twice := self.table.repeated:
            raise InputError(f"{path} has several columns named {twice[0]!r}: rename them")
        dates = named_formats(_listed(date))
        cells = CellFormat(decimal, thousands, dates)
        chosen = choose_columns(
            self.table, label=label, features=features, ignore=ignore, cells=cells
        )
        self.label, self.names, self.cells = label, chosen.names, chosen.cells
        types = {self.table.data.schema.field(name).type for name in self.names}
        self._dtype = np.float32 if types <= set(SINGLE) else np.float64

    def __repr__(self) -> str:
        about = f"{len(self.names)} features, label {self.label!r}"
        return plain_text(f"Scan({self.table.name}, {about})")

    def read(self) -> tuple[Array, list[Hashable]]:
        """Features and labels, all at once, for example for a validation set."""
        source = self.source_of_parts()
        parts = list(source.read(Place(), ROWS))
        if not parts:
            raise InputError(f"{self.table.name} has no rows")
        labels: list[Hashable] = [label for part in parts for label in list(part.y)]
        meaning, _ = source.settle(dict.fromkeys(labels, 0), [], len(labels))
        return np.concatenate([part.X for part in parts]), [meaning[label] for label in labels]

    def source_of_parts(self, *, missing: bool = False, numbers: bool = False) -> FileParts:
        """The rows, as both passes over them read them; missing cells are refused unless `missing`.

        Labels are numbers to predict if `numbers`, otherwise classes.
        """
        fill = math.nan if missing else None
        encoder = Encoder(tuple(Feature(name, self._kind(name), fill) for name in self.names))
        return FileParts(
            self.table, self.label, self.names, len(self.names), encoder.transform, plain=True,
            dtype=self._dtype, task=REGRESSION if numbers else None, cells=self.cells,
        )  # fmt: skip

    def _kind(self, name: str) -> str:
        """What cells of a feature say; rows that say another thing than the first are refused."""
        if name not in self.cells.dates:
            return "number"
        rows, first = next(read_batches(self.table, self.table.files[0], [name]), (0, None))
        if first is None:
            return f"date:{ISO}"
        numbered = np.arange(rows, rows + first.num_rows)
        about: Any = {"source": str(self.table.files[0]), "rows": numbered, "cells": self.cells}
        return stated_kind(Columns(tuple(numbered), first, **about), name) or f"date:{ISO}"


def _listed(words: Sequence[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


@dataclass(frozen=True, eq=False)
class FileParts:
    """The rows of files, in the order of their names. A part is of one file."""

    table: Table  # the files, without their rows
    label: str  # the column of labels
    features: tuple[str, ...]
    width: int  # how many numbers a row has
    encode: Callable[[Columns], NDArray[np.float64]]  # makes rows of numbers of a table
    plain: bool = False  # whether rows are nothing but the numbers of the columns, as they are
    dtype: Any = np.float64  # float32 where nothing is lost by it
    categorical: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)  # columns to read along, by their role
    written: bool = False  # whether the labels of the validation set are from text, too
    entries: Any = None  # the labels, where a file of their own holds them
    text: bool = False  # whether that is one of text
    task: str | None = None  # see `check_distinct`
    cells: CellFormat = field(default_factory=CellFormat)
    _sizes: list[tuple[int, int]] = field(default_factory=list, init=False, repr=False)

    @property
    def name(self) -> str:
        """The name of the table in messages."""
        return self.table.name

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        labels = [self.label] if self.entries is None else []
        return list(dict.fromkeys([*self.features, *labels, *self.beside.values()]))

    @property
    def is_written(self) -> bool:
        """Whether labels are read from text."""
        return self.table.is_text or self.text

    @property
    def count(self) -> int | None:
        """The number of rows, if the files say it."""
        sizes = self._measured()
        return sum(rows for rows, _ in sizes) if sizes else None

    @property
    def row_bytes(self) -> tuple[int, int]:
        """The bytes of a row: of its numbers, and of its label and other columns as objects."""
        return self.width * np.dtype(self.dtype).itemsize, OBJECT * (1 + len(self.beside))

    @property
    def reading(self) -> int:
        """The bytes that small tables take on their way into a part, and the reader of files."""
        if self.table.is_text:
            return PARSED
        return TABLES + max((held for _, held in self._measured()), default=0)

    def read(self, start: Place, rows: int) -> Iterator[Part]:
        """Parts of at most `rows` rows, from `start` on."""
        with _plain_allocator():
            yield from self._read(start, rows)

    def _read(self, start: Place, rows: int) -> Iterator[Part]:
        row, inside = start.row, start.inside
        for number, path in enumerate(self.table.files[start.file :], start.file):
            filling = _Filling(self, path, rows, row - inside)
            for first, table in read_batches(self.table, path, self.columns, inside):
                give_back()  # else cells of text that are freed pile up
                lo = 0
                while lo < table.num_rows:
                    lo += filling.add(first + lo, table.slice(lo))
                    if filling.count == rows:
                        yield filling.part(row, number, inside)
                        row, inside = row + filling.count, inside + filling.count
                        filling = _Filling(self, path, rows, row - inside)
            if filling.count:
                yield filling.part(row, number, inside)
                row += filling.count
            give_back()
            inside = 0

    def identity(self) -> dict[str, Any]:
        """Names, sizes and times of the files, and their columns."""
        stats = [(path, path.stat()) for path in self.table.files]
        files = [[str(path), stat.st_size, stat.st_mtime_ns] for path, stat in stats]
        cells = {} if self.cells == CellFormat() else {"cells": asdict(self.cells)}
        return {"files": files, "columns": self.columns, **self.table.format(), **cells}

    def keyed(self, labels: Sequence[Hashable]) -> list[Hashable]:
        """Labels as text would be read."""
        return list(map(str, labels)) if self.is_written else list(labels)

    def settle(
        self, found: Mapping[Hashable, int], labels: Sequence[Hashable], rows: int
    ) -> tuple[Mapping[Hashable, Hashable], list[Hashable]]:
        """Labels of text as integers if all look so; and both sides as labels of one kind."""
        text = self.is_written
        ours = plain_labels(found) if text else tuple(found)
        distinct = dict(zip(ours, found.values(), strict=True))
        check_distinct(f"{self.name} column {self.label!r}", distinct, rows, self.task)
        empty = pa.table({})
        points, validation = same_labels(
            Columns(ours, empty, written=text), Columns(tuple(labels), empty, written=self.written)
        )
        return dict(zip(found, points.labels, strict=True)), list(validation.labels)

    def _measured(self) -> list[tuple[int, int]]:
        """Rows and memory of each Parquet file, looked up once."""
        if self.table.kind == "parquet" and not self._sizes:
            self._sizes.extend(parquet.sizes(path, self.columns) for path in self.table.files)
        return self._sizes


class _Filling:
    """A part that is being put together from small tables."""

    def __init__(self, source: FileParts, path: Path, rows: int, before: int) -> None:
        self.source, self.path, self.rows, self.before = source, path, rows, before
        self.X: NDArray[Any] = np.empty((rows, source.width), source.dtype)
        self.labels: list[RawLabels] = []
        self.beside: dict[str, list[Any]] = {role: [] for role in source.beside}
        self.count = 0

    def add(self, first: int, table: pa.Table) -> int:
        """Take in as many rows as there is room for; return how many."""
        some = table.slice(0, self.rows - self.count)
        source, lo = self.source, self.count
        labels = self._labels(first, some)
        out = self.X[lo : lo + some.num_rows]
        if not (source.plain and _copied(some, source.features, out)):
            columns = Columns(
                tuple(range(len(labels))), some.select(list(source.features)),
                categorical=source.categorical, source=str(self.path),
                rows=np.arange(first, first + some.num_rows), cells=source.cells,
            )  # fmt: skip
            out[:] = source.encode(columns)
        self.labels.append(labels)
        for role, name in source.beside.items():
            self.beside[role] += arrow_entries(some.column(name))
        self.count += some.num_rows
        return int(some.num_rows)

    def _labels(self, first: int, some: pa.Table) -> RawLabels:
        source, row = self.source, first
        if source.entries is not None:
            what, row = source.label, self.before + first
            entries = entries_without(source.entries[row : row + some.num_rows], source.table.na)
        else:
            what = f"{self.path} column {source.label!r}"
            entries = _entries(what, some.column(source.label))
        if source.task == REGRESSION:
            return list(check_target_cells(what, entries, source.cells, first=row))
        return check_labels(what, entries, first=row)

    def part(self, row: int, number: int, inside: int) -> Part:
        after = Place(row + self.count, number, inside + self.count)
        whole = all(isinstance(each, np.ndarray) for each in self.labels)
        y: RawLabels = (
            np.concatenate(self.labels) if whole else [x for some in self.labels for x in some]
        )
        X, name = self.X[: self.count], str(self.path)
        return Part(row, X, y, after, name, inside, self.beside)


@contextlib.contextmanager
def _plain_allocator() -> Iterator[None]:
    """Let Arrow use the allocator of the system: Arrow's own keep what threads have freed."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _copied(table: pa.Table, names: tuple[str, ...], out: NDArray[Any]) -> bool:
    """Copy cells to `out` the fast way, if all are floats; return whether `out` is done."""
    columns = [table.column(name) for name in names]
    if not all(pa.types.is_floating(each.type) and not each.null_count for each in columns):
        return False
    for place, column in enumerate(columns):
        out[:, place] = column.to_numpy()
    return bool(np.isfinite(out).all())


def _entries(what: str, column: pa.ChunkedArray) -> Any:
    """The entries of a column: an array where all are integers, else a list."""
    kind = column.type
    if pa.types.is_nested(kind):
        raise InputError(f"{what} is of type {kind}: it must have one entry per row")
    if pa.types.is_integer(kind) and not column.null_count and kind != pa.uint64():
        return column.to_numpy()
    return arrow_entries(column)
