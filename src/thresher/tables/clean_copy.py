"""A table without some rows and with other labels, all else untouched; and the log of changes."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.files import check_apart, check_free, write_whole
from thresher.inputs.checks import rows_text
from thresher.tables import arrow, excel, json_lines, npz, parquet
from thresher.tables.columns import entries_of
from thresher.tables.delimited import NEWLINE, Delimited, edited, quoted
from thresher.tables.formulas import harmless_text
from thresher.tables.header import numbered_names
from thresher.tables.label_files import LabelFile, read_label_file
from thresher.tables.new_labels import fitting_label, relabeled, relabeled_array, written_label
from thresher.tables.packing import inner_name, is_gzip, is_packed, is_zip
from thresher.tables.paths import kind_of
from thresher.tables.reader import Table

COLUMNS = ("row", "id", "action", "old_label", "new_label")

Change = dict[str, Any]


@dataclass(frozen=True, eq=False)
class OldLabels:
    """The labels of a table as its file has them, some of them maybe missing."""

    entries: list[Any]
    kind: Any = None  # the type of Arrow; None of text
    name: str = ""  # of the column or file that holds them
    file: LabelFile | None = None  # where they have one of their own

    @classmethod
    def of(cls, table: Table, label: str | None) -> OldLabels:
        """The labels in a column, or in a file; all are missing where there is neither."""
        if label is None:
            return cls([None] * len(table))
        if table.kind != "npy":
            kind = None if table.is_text else table.data.schema.field(label).type
            return cls(entries_of(table, label, "label"), kind, label)
        file = read_label_file(label, table.name, len(table))
        kind = None if file.array is None else pa.from_numpy_dtype(file.array.dtype)
        return cls(file.entries, kind, file.path.name, file)

    def fitting(self, new: Any) -> Any:
        """A new label as the file can hold it."""
        return written_label(new) if self.kind is None else fitting_label(new, self.kind, self.name)


@dataclass(frozen=True, eq=False)
class Cut:
    """What to write of a table: the rows to keep, and new labels by row."""

    table: Table
    keep: NDArray[np.bool_]
    labels: Mapping[int, Any]
    label: str | None

    def write(self, target: Path, temporary: Path) -> None:
        """Write what is left to `temporary`, in the table's format, packed as `target` is named."""
        files, kind = self.table.files, self.table.kind
        if self.table.is_text:
            _write_pieces(_encoded(_pieces(self), self.table.encoding), target, temporary)
        elif kind == "parquet":
            parquet.write(self.data(), files[0], temporary)
        elif kind == "arrow":
            packed = target.suffix.lower() == ".feather"
            arrow.write(self.data(), files[0], temporary, packed=packed)
        elif kind == "npz":
            npz.write(files, self.array, temporary)
        elif kind == "xlsx":
            excel.write(files[0], self.dropped(), self.label, self.labels, temporary)
        elif kind == "jsonl":
            json_lines.write(files[0], self.dropped(), self.label, self.labels, temporary)
        else:
            whole = np.concatenate([npz.arrays_of(path)["X"] for path in files])
            npz.write_array(whole[self.keep], temporary)

    def array(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """What is left of an array with one entry per row."""
        if name == self.label and self.labels:
            array = relabeled_array(array, self.labels, name)
        return array[self.keep]

    def dropped(self) -> set[int]:
        """The rows that are left out."""
        return set(np.flatnonzero(~self.keep).tolist())

    def data(self) -> pa.Table:
        """The table that is left."""
        data = self.table.data
        if self.labels and self.label is not None:
            place = data.column_names.index(self.label)
            column = relabeled(data.column(place), self.labels, self.label)
            data = data.set_column(place, data.field(place), column)
        return data.filter(pa.array(self.keep))


def write_cleaned(
    table: Table, path: str | os.PathLike[str], *, drop: Sequence[int] | NDArray[Any] = (),
    relabel: Mapping[int, Any] | None = None, label: str | None = None,
    id: str | None = None, force: bool = False,  # noqa: A002
) -> list[Change]:  # fmt: skip
    r"""Write a table without some rows and with other labels, and return the log of changes.

    Parameters
    ----------
    table
        The table, as `read_table` read it. Several files become one.
    path
        Where to write it: a file of the same kind. Lines of text are copied byte for byte.
    drop
        The rows to leave out: a boolean mask, or row numbers from 0.
    relabel
        New labels by row number. A label that the row already has is no change.
    label
        The column of labels; for an .npy file, the file of labels, which is then written too, as
        `labels_target` says.
    id
        The column of ids, for the log.
    force
        Replace an existing file.

    Returns
    -------
    list of dict
        For each changed row, in order: "row", "id" (if there are ids), "action" ("drop" or
        "relabel"), "old_label" and "new_label".

    Examples
    --------
    >>> import tempfile
    >>> from thresher.tables.reader import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x,y\n 1.50,cat\n2,dog\n3,cat\n")
    ...     table = read_table(Path(folder, "a.csv"))
    ...     out = Path(folder, "b.csv")
    ...     log = write_cleaned(table, out, drop=[1], relabel={2: "dog"}, label="y")
    ...     out.read_text()
    'x,y\n 1.50,cat\n3,dog\n'
    >>> log[1]
    {'row': 2, 'action': 'relabel', 'old_label': 'cat', 'new_label': 'dog'}
    """
    target = check_target(table, path, label=label, force=force)
    keep, wanted = _kept(table, drop), dict(relabel or {})
    _check_rows(table, list(wanted))
    both = sorted(row for row in wanted if not keep[row])
    if both:
        raise InputError(f"{rows_text(both)} cannot be dropped and relabeled at once: choose one")
    if wanted and label is None:
        raise InputError("label must name the column of labels that are to change, got None")
    old = OldLabels.of(table, label)
    fitting = {int(row): old.fitting(new) for row, new in wanted.items()}
    labels = {row: new for row, new in fitting.items() if new != old.entries[row]}
    ids = None if id is None else entries_of(table, id, "id")
    cut = Cut(table, keep, labels, label)
    write_whole(target, lambda temporary: cut.write(target, temporary), replace=force)
    if old.file is not None:
        _write_labels(old.file, cut, labels_target(target, old.file.path), force=force)
    return _log(cut, old.entries, ids)


def labels_target(target: Path, labels: Path) -> Path:
    """Where the labels of a cleaned .npy file are written.

    Examples
    --------
    >>> labels_target(Path("clean.npy"), Path("labels.txt")).name
    'clean-labels.txt'
    """
    return target.with_name(f"{target.stem}-labels{labels.suffix}")


def check_target(
    table: Table, path: str | os.PathLike[str], *, label: str | None = None, force: bool = False
) -> Path:
    """The path of a cleaned table, if it can be written there."""
    target = Path(path)
    if kind_of(target) != table.kind:
        raise InputError(
            f"{target} must be a file of the kind of {table.files[0].name}, which is .{table.kind}"
        )
    if not table.is_text and (is_packed(table.files[0]) or is_packed(target)):
        raise InputError(
            f"{table.files[0]} is packed, which works only for tables of text: unpack it first, "
            "and name a file that is not packed"
        )
    if len(table.files) > 1 and table.kind in {"xlsx", "jsonl"}:
        raise InputError(f"clean .{table.kind} files one by one, got {len(table.files)}")
    if len(table.files) > 1:
        check_apart(target, table.files)
    check_free(target, table.files, force=force)
    if table.kind == "npy" and label is not None:
        check_free(labels_target(target, Path(label)), table.files, force=force)
    return target


def _kept(table: Table, drop: Sequence[int] | NDArray[Any]) -> NDArray[np.bool_]:
    given, count = np.asarray(drop), len(table)
    keep = np.ones(count, np.bool_)
    if given.dtype == np.bool_:
        if given.shape != (count,):
            raise InputError(f"drop has {given.size} entries but {table.name} has {count} rows")
    elif given.size:
        if given.dtype.kind not in "iu" or given.ndim != 1:
            raise InputError("drop must be a boolean mask or a list of row numbers")
        _check_rows(table, given.tolist())
    keep[given if given.size else []] = False
    if not keep.any():
        rows = "the only row" if count == 1 else f"all {count} rows"
        raise InputError(f"dropping {rows} of {table.name} would leave nothing")
    return keep


def _check_rows(table: Table, rows: list[Any]) -> None:
    for row in rows:
        whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
        if not whole or not 0 <= row < len(table):
            raise InputError(
                f"there is no row {row!r}: {table.name} has rows 0 to {len(table) - 1}"
            )


def _write_labels(beside: LabelFile, cut: Cut, target: Path, *, force: bool) -> None:
    if beside.array is not None:
        array = relabeled_array(beside.array, cut.labels, beside.path.name)[cut.keep]
        write_whole(target, lambda temporary: npz.write_array(array, temporary), replace=force)
        return
    pieces = beside.pieces(cut.dropped(), cut.labels)
    write_whole(target, lambda temporary: _write_pieces(pieces, target, temporary), replace=force)


def _log(cut: Cut, old: list[Any], ids: list[Any] | None) -> list[Change]:
    changed = sorted({*np.flatnonzero(~cut.keep).tolist(), *cut.labels})
    return [
        {"row": row}
        | ({} if ids is None else {"id": ids[row]})
        | {
            "action": "relabel" if row in cut.labels else "drop",
            "old_label": old[row],
            "new_label": cut.labels.get(row),
        }
        for row in changed
    ]


def _write_pieces(pieces: Iterator[bytes], target: Path, temporary: Path) -> None:
    """Write bytes, packed if the target's name ends in .gz or .zip."""
    with temporary.open("wb") as file:
        if is_gzip(target):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                packed.writelines(pieces)
        elif is_zip(target):
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(zipfile.ZipInfo(inner_name(target)), b"".join(pieces))
        else:
            file.writelines(pieces)


def _encoded(pieces: Iterator[bytes], encoding: str | None) -> Iterator[bytes]:
    """Bytes of UTF-8 in another encoding."""
    if encoding is None:
        yield from pieces
        return
    encoder = codecs.getincrementalencoder(encoding)()
    for piece in pieces:
        try:
            yield encoder.encode(piece.decode())
        except UnicodeEncodeError as foreign:
            raise InputError(
                f"{foreign.object[foreign.start : foreign.end]!r} cannot be written as {encoding}: "
                "save the table as UTF-8 first"
            ) from None


def _pieces(cut: Cut) -> Iterator[bytes]:
    """The bytes of all files, one after the other, under the header of the first."""
    names, between = cut.table.data.column_names, cut.table.delimiter or ","
    column = names.index(cut.label) if cut.label is not None and cut.labels else 0
    first, last = 0, b""
    for number, path in enumerate(cut.table.files):
        source = Delimited.open(path, between, encoding=cut.table.encoding)
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
    """The number of rows in a file, which is refused if it no longer says what was read from it."""
    records = source.records()
    header = next(records, None)
    names = [] if header is None else [source.text(cell) or "" for cell in source.cells(header)]
    same = numbered_names(names) == cut.table.data.column_names
    row = first - 1
    for row, record in enumerate(records, start=first):
        if same and row in cut.labels and row < len(cut.keep):
            said = source.text(source.cells(record)[column])
            same = said == cut.table.data.column(column)[row].as_py()
    last = path == cut.table.files[-1]
    if not same or row >= len(cut.keep) or (last and row != len(cut.keep) - 1):
        raise InputError(f"{path} was changed after it was read: nothing was written")
    return row + 1 - first


def check_log(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """The path of a log of changes, if it can be written there."""
    target = Path(path)
    if target.suffix.lower() not in {".csv", ".json"}:
        raise InputError(f"a log of changes must be a .csv or .json file, got {target}")
    check_free(target, force=force)
    return target


def write_change_log(
    path: str | os.PathLike[str], log: Sequence[Change], about: Mapping[str, Any],
    *, force: bool = False,
) -> None:  # fmt: skip
    """Write the log of changes as .csv, or as .json together with `about`, how they were made.

    A .csv has nothing but the changes: its first line is the header, and its text is written so
    that no spreadsheet computes it.
    """
    target = check_log(path, force=force)

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            if target.suffix.lower() == ".json":
                document = {"about": dict(about), "changes": list(log)}
                file.write(json.dumps(document, indent=1, default=str) + "\n")
                return
            present = {"id"} & {key for change in log for key in change}
            names = [name for name in COLUMNS if name != "id" or present]
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {key: harmless_text(entry) for key, entry in change.items()} for change in log
            )

    write_whole(target, write, replace=force)
