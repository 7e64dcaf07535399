"""Labels in a file of their own, beside a table that has no columns for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.array_types import Array
from thresher.errors import InputError, option
from thresher.files import reading
from thresher.inputs.arrays import load_array
from thresher.tables.delimited import Delimited, edited, quoted

SUFFIXES = (".npy", ".csv", ".txt")
NONE = "\x1f"  # the delimiter of a .txt file: a character that no label has


@dataclass(frozen=True, eq=False)
class LabelFile:
    """The labels of a file, and what is needed to write it again."""

    path: Path  # .npy, or text with one label per line
    entries: list[Any]
    array: Array | None = None  # of an .npy file
    text: Delimited | None = None  # the bytes of a file of text
    header: bool = False  # whether its first line is one

    def pieces(self, drop: AbstractSet[int], labels: Mapping[int, str]) -> Iterator[bytes]:
        """The bytes of a file of text without some rows and with other labels."""
        if self.text is None:
            raise InputError(f"{self.path} is not a text file")
        cells = {row: self._cell(label) for row, label in labels.items()}
        return edited(self.text, drop, cells, 0, header=self.header)

    def _cell(self, label: str) -> bytes:
        if self.text is not None and self.text.quotes:
            return quoted(label, self.text.delimiter)
        if not label or "\n" in label or "\r" in label:
            raise InputError(f"the new label {label!r} does not fit in a line of {self.path}")
        return label.encode()


def read_label_file(label: str, table: str, rows: int) -> LabelFile:
    """The labels of the `rows` rows of a table, from the file that `label` names.

    A .csv or .txt file has one label per line; if it has one line more than there are rows, the
    first is a header. Empty lines are skipped.
    """
    path = Path(label)
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        raise InputError(
            f"{table} has no labels: {option('label')} must name a file (.npy, or .csv or .txt "
            f"with one label per line), but there is no such file {label}"
        )
    with reading(path, "list of labels"):
        found = _read_array(path) if path.suffix.lower() == ".npy" else _read_text(path, rows)
        if len(found.entries) != rows:
            raise InputError(f"it has {len(found.entries)} labels but {table} has {rows} rows")
        return found


def _read_array(path: Path) -> LabelFile:
    try:
        array: Array = load_array(path)
    except ValueError as refused:
        if "Object" not in str(refused):
            raise
        raise InputError("it has Python objects: save labels as text or integers") from None
    if array.ndim != 1:
        raise InputError(f"its array must have one dimension, got shape {array.shape}")
    return LabelFile(path, array.tolist(), array=array)


def _read_text(path: Path, rows: int) -> LabelFile:
    plain = path.suffix.lower() == ".txt"
    source = Delimited.open(path, NONE if plain else ",", quotes=not plain)
    entries = []
    for record in source.records():
        cells = source.cells(record)
        if len(cells) > 1:
            line = source.line(record.start)
            raise InputError(f"line {line} has {len(cells)} cells, but must have one label")
        entries.append(source.text(cells[0]))
    header = len(entries) == rows + 1
    return LabelFile(path, entries[1:] if header else entries, text=source, header=header)
