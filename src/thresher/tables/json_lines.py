"""Tables in files of JSON lines: one object a line, whose keys are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.errors import InputError
from thresher.tables.mixed_cells import cell_table


def read(path: Path) -> pa.Table:
    """The table in a file; a column of cells of several types is text."""
    names: dict[str, None] = {}
    rows = []
    for number, line in _lines(path):
        names.update(dict.fromkeys(row := _row(path, number, line)))
        rows.append(row)
    return cell_table({name: [row.get(name) for row in rows] for name in names})


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
    """The lines that say something, with their numbers from 1."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except ValueError as wrong:
        raise InputError(f"{path} is no JSON in line {number}: {wrong}") from None
    if not isinstance(found, dict):
        raise InputError(
            f"{path} has no object in line {number}: JSON lines have one object a line, such as "
            '{"x": 1.5, "y": "cat"}'
        )
    return found
