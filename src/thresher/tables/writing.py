"""A table without some rows and with other labels, everything else untouched; and the log of it."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import rows_text
from thresher.errors import InputError
from thresher.files import check_writable, resolved, write_whole
from thresher.tables.columns import entries_of
from thresher.tables.cutting import Cut, write_array, write_cut, write_pieces
from thresher.tables.finding import kind_of
from thresher.tables.formulas import harmless_text
from thresher.tables.label_files import LabelFile, read_label_file
from thresher.tables.reading import Table
from thresher.tables.relabeling import fitting_label, relabeled_array, written_label

LOG_COLUMNS = ("row", "id", "action", "old_label", "new_label")

Change = dict[str, Any]


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
        New labels by row number. One that is the label already is no change.
    label
        The column of labels; for an .npy file, the file of labels, which is then written too, as
        `labels_target` says.
    id
        The column of ids, for the log.
    force
        Replace a file that is there.

    Returns
    -------
    list of dict
        For each changed row, in order: "row", "id" (if there are ids), "action" ("drop" or
        "relabel"), "old_label" and "new_label".

    Examples
    --------
    >>> import tempfile
    >>> from thresher.tables.reading import read_table
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
    keep = _kept(table, drop)
    wanted = _checked(table, dict(relabel or {}), keep)
    if wanted and label is None:
        raise InputError("label must name the column of labels that are to change, got None")
    beside = _label_file(table, label)
    old = old_labels(table, label)
    labels = {
        row: new
        for row, label_ in wanted.items()
        if (new := _fitted(table, label, label_, beside)) != old[row]
    }
    ids = None if id is None else entries_of(table, id, "--id")
    cut = Cut(table, keep, labels, label)
    write_whole(target, lambda temporary: write_cut(cut, target, temporary), replace=force)
    if beside is not None:
        _write_labels(beside, cut, labels_target(target, beside.path), force=force)
    return _log(cut, old, ids)


def labels_target(target: Path, labels: Path) -> Path:
    """Where the labels of a cleaned .npy file are written.

    Examples
    --------
    >>> labels_target(Path("clean.npy"), Path("labels.txt")).name
    'clean-labels.txt'
    """
    return target.with_name(f"{target.stem}-labels{labels.suffix}")


def old_labels(table: Table, label: str | None) -> list[Any]:
    """The labels as the file has them, some of them maybe missing."""
    beside = _label_file(table, label)
    if beside is not None:
        return beside.entries
    if label is None:
        return [None] * len(table)
    return entries_of(table, label, "--label")


def check_target(
    table: Table, path: str | os.PathLike[str], *, label: str | None = None, force: bool = False
) -> Path:
    """The path of a cleaned table, if it can be written there."""
    target = Path(path)
    if kind_of(target) != table.kind:
        raise InputError(
            f"{target} must be a file of the kind of {table.files[0].name}, which is .{table.kind}"
        )
    if len(table.files) > 1:
        check_apart(target, table.files)
    targets = [target]
    if table.kind == "npy" and label is not None:
        targets.append(labels_target(target, Path(label)))
    for each in targets:
        check_free(each, table.files, force=force)
    return target


def check_free(path: Path, inputs: Iterable[Path] = (), *, force: bool = False) -> None:
    """Raise where a file cannot be written, or is there already, unless by `force`."""
    if path.exists() and not path.is_dir() and not force:
        same = any(path.samefile(each) for each in inputs)
        what = "is the input itself" if same else "is there already"
        raise InputError(f"{path} {what}: name another file, or replace it by --force")
    check_writable(path)


def check_apart(path: Path, others: Iterable[Path]) -> None:
    """Raise where a file to be written is also another one of those in use."""
    for other in others:
        if resolved(path) == resolved(other):
            raise InputError(f"{path} cannot be written, it is in use itself: name another file")


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
    """Write the log of changes as .csv, or as .json together with how they came `about`.

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
            names = [name for name in LOG_COLUMNS if name != "id" or present]
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {key: harmless_text(entry) for key, entry in change.items()} for change in log
            )

    write_whole(target, write, replace=force)


def _kept(table: Table, drop: Sequence[int] | NDArray[Any]) -> NDArray[np.bool_]:
    given, count = np.asarray(drop), len(table)
    keep = np.ones(count, np.bool_)
    if given.dtype == np.bool_:
        if given.shape != (count,):
            raise InputError(f"drop has {given.size} entries but {table.name} has {count} rows")
        keep[given] = False
    elif given.size:
        if given.dtype.kind not in "iu" or given.ndim != 1:
            raise InputError("drop must be a boolean mask or a list of row numbers")
        _check_rows(table, given.tolist())
        keep[given] = False
    if not keep.any():
        rows = "the only row" if count == 1 else f"all {count} rows"
        raise InputError(f"dropping {rows} of {table.name} would leave nothing")
    return keep


def _checked(table: Table, wanted: dict[int, Any], keep: NDArray[np.bool_]) -> dict[int, Any]:
    _check_rows(table, list(wanted))
    both = sorted(row for row in wanted if not keep[row])
    if both:
        raise InputError(f"{rows_text(both)} cannot be dropped and relabeled at once: choose one")
    return {int(row): new for row, new in wanted.items()}


def _check_rows(table: Table, rows: list[Any]) -> None:
    for row in rows:
        whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
        if not whole or not 0 <= row < len(table):
            raise InputError(
                f"there is no row {row!r}: {table.name} has rows 0 to {len(table) - 1}"
            )


def _label_file(table: Table, label: str | None) -> LabelFile | None:
    if table.kind != "npy" or label is None:
        return None
    return read_label_file(label, table.name, len(table))


def _fitted(table: Table, label: str | None, new: Any, beside: LabelFile | None) -> Any:
    """A new label as the file can hold it."""
    kind = _label_kind(table, label, beside)
    if kind is None:
        return written_label(new)
    return fitting_label(new, kind, str(label) if beside is None else beside.path.name)


def label_kind(table: Table, label: str | None) -> Any:
    """The type of Arrow that the labels have; None of text."""
    return _label_kind(table, label, _label_file(table, label))


def _label_kind(table: Table, label: str | None, beside: LabelFile | None) -> Any:
    import pyarrow as pa

    if beside is not None:
        return None if beside.array is None else pa.from_numpy_dtype(beside.array.dtype)
    return None if table.is_text or label is None else table.data.schema.field(label).type


def _write_labels(beside: LabelFile, cut: Cut, target: Path, *, force: bool) -> None:
    if beside.array is not None:
        array = relabeled_array(beside.array, cut.labels, beside.path.name)[cut.keep]
        write_whole(target, lambda temporary: write_array(array, temporary), replace=force)
        return
    drop = set(np.flatnonzero(~cut.keep).tolist())
    pieces = beside.pieces(drop, cut.labels)
    write_whole(target, lambda temporary: write_pieces(pieces, target, temporary), replace=force)


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
