"""Tables in files of JSON lines: one object per line, whose keys are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.errors import InputError
from thresher.tables.mixed_cells import cell_table, common_type

ROWS = 1 << 13  # that are looked at together


def read(path: Path) -> pa.Table:
    """The table in a file; a column of cells of several types is text."""
    rows = [_row(path, number, line) for number, line in _lines(path)]
    return cell_table(_cells(rows, _ordered(rows)))


def schema(path: Path) -> pa.Schema:
    """The columns of a file; its lines are read a few at a time."""
    return _schema(path, path.stat().st_mtime_ns)


def batches(path: Path, wanted: list[str], start: int, most: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows from row `start` on, at most `most` at a time."""
    kinds = schema(path)
    for first, rows in _parts(path, most):
        if first + len(rows) > start:
            yield first, cell_table(_cells(rows, wanted), kinds)


def write(
    path: Path, drop: set[int], label: str | None, labels: Mapping[int, Any], temporary: Path
) -> None:
    """Write a file without some rows and with other labels; other lines stay byte for byte."""
    with temporary.open("wb") as out:
        for row, (number, line) in enumerate(_lines(path)):
            if row in labels:
                changed = _row(path, number, line) | {str(label): labels[row]}
                out.write(json.dumps(changed, ensure_ascii=False).encode() + b"\n")
            elif row not in drop:
                out.write(line if line.endswith(b"\n") else line + b"\n")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, with their numbers from 1."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except ValueError as wrong:
        raise InputError(f"line {number} of {path} is not JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise InputError(
            f"{path} has no object in line {number}: JSON lines have one object per line, such as "
            '{"x": 1.5, "y": "cat"}'
        )
    return found


def _ordered(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> list[str]:
    """All keys, each after the key that precedes it in the first row that has it."""
    found = list(names)
    known = set(found)
    for row in rows:
        if not known.issuperset(row):
            place = 0
            for name in row:
                if name not in known:
                    found.insert(place, name)
                    known.add(name)
                place = found.index(name) + 1
    return found


def _cells(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in names}


def _parts(path: Path, most: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Some rows at a time, with the number of the first."""
    lines, first = _lines(path), 0
    while rows := [_row(path, number, line) for number, line in islice(lines, most)]:
        yield first, rows
        first += len(rows)


@lru_cache(maxsize=64)
def _schema(path: Path, _changed: int) -> pa.Schema:
    names: list[str] = []
    kinds: dict[str, list[pa.DataType]] = {}
    for _, rows in _parts(path, ROWS):
        names = _ordered(rows, names)
        for field in cell_table(_cells(rows, names)).schema:
            kinds.setdefault(field.name, []).append(field.type)
    return pa.schema([(name, common_type(kinds[name])) for name in names])
