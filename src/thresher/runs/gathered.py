"""Pieces of results on disk as one file, with the ranks that only all of them can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.files import portable, sealed_stream
from thresher.findings import SUGGESTIONS
from thresher.runs.ranks import rank_values
from thresher.runs.repeats import find_repeats
from thresher.runs.results import about_cells, write_tables
from thresher.valuation import Valuation

ROWS = 1 << 16  # rows of a group in the file at most, however pieces were cut
GROUP = 1 << 24  # bytes of a group, where rows have long ids
WORST = 5  # rows that are told in words
ORDER = ("row", "id", "label", "value", "rank", "percentile", "near", "agree", "best_label",
         "best_value", "suggestion", "owner")  # fmt: skip


class Gathered:
    """Pieces with what was found, in the order of their rows.

    Parameters
    ----------
    folder, pieces
        Where files may be kept for a while, and the pieces, as Arrow files.
    rows
        How many rows they have together.
    room
        Bytes that ranking may use.
    """

    def __init__(self, folder: Path, pieces: list[Path], rows: int, room: int) -> None:
        self.pieces, self.rows = pieces, rows
        size = sum(path.stat().st_size for path in pieces) // max(rows, 1)  # of a row
        self.group = min(ROWS, 1 << max(6, (GROUP // max(size, 1)).bit_length() - 1))
        self.values = self._mapped(folder / "values.f64", "<f8")
        row = 0
        for table in self._tables(["value"]):
            self.values[row : row + len(table)] = table.column("value").to_numpy()
            row += len(table)
        self.rank = self._mapped(folder / "rank.i64", "<i8")
        self.below = self._mapped(folder / "below.i64", "<i8")
        rank_values(self.values, self.rank, self.below, room=room)
        named = pieces and "id" in next(self._tables()).column_names
        self.repeats = find_repeats(self._ids, rows, folder, room=room) if named else {}
        self.suggestions: dict[str, int] = dict.fromkeys(SUGGESTIONS, 0)
        self.worst: list[dict[str, Any]] = []
        self.by_owner: dict[Any, float] | None = None

    def write(
        self, out: Path, valuation: Valuation, record: Mapping[str, Any], *, force: bool
    ) -> list[Path]:
        """Write all of it; on the way, count suggestions and find the lowest values."""
        about = sealed_stream(
            valuation.about({**record, **about_cells(out)}),
            chain(self._value_bytes(), self._owner_bytes()),
        )
        schema = next(self._blocks()).schema
        return write_tables(out, schema, map(self._noted, self._blocks()), about, force=force)

    def _noted(self, block: pa.Table) -> pa.Table:
        """A block, counted in."""
        self.suggestions = {
            word: count + Counter(block.column("suggestion").to_pylist())[word]
            for word, count in self.suggestions.items()
        }
        low = np.flatnonzero(block.column("rank").to_numpy() <= WORST)
        self.worst = sorted(
            [*self.worst, *block.take(low).to_pylist()], key=lambda found: found["rank"]
        )
        if "owner" in block.column_names:
            sums = {} if self.by_owner is None else self.by_owner
            for owner, value in zip(
                block.column("owner").to_pylist(), block.column("value").to_pylist(), strict=True
            ):
                sums[owner] = sums.get(owner, 0.0) + value
            self.by_owner = sums
        return block

    def _blocks(self) -> Iterator[pa.Table]:
        """All columns in order, in groups of a fixed number of rows."""
        held: list[pa.Table] = []
        row, count = 0, 0
        for table in self._tables():
            held.append(table)
            count += len(table)
            while count >= self.group:
                together = pa.concat_tables(held)
                yield self._ranked(together.slice(0, self.group), row)
                row, count = row + self.group, count - self.group
                held = [together.slice(self.group)]
        if count:
            yield self._ranked(pa.concat_tables(held), row)

    def _ranked(self, table: pa.Table, row: int) -> pa.Table:
        rows = slice(row, row + len(table))
        columns = {name: table.column(name) for name in table.column_names}
        columns |= {
            "row": pa.array(np.arange(rows.start, rows.stop)),
            "rank": pa.array(np.array(self.rank[rows])),
            "percentile": pa.array(100.0 * self.below[rows] / max(self.rows, 1)),
        }
        names = [name for name in ORDER if name in columns]
        return pa.table({name: columns[name] for name in names})

    def _tables(self, wanted: list[str] | None = None) -> Iterator[pa.Table]:
        for path in self.pieces:
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_file(source).read_all()
                yield table if wanted is None else table.select(wanted)

    def _ids(self) -> Iterator[list[Any]]:
        for table in self._tables(["id"]):
            for lo in range(0, len(table), self.group):
                yield table.column("id").slice(lo, self.group).to_pylist()

    def _value_bytes(self) -> Iterator[bytes]:
        for lo in range(0, self.rows, ROWS):
            yield self.values[lo : lo + ROWS].tobytes()

    def _owner_bytes(self) -> Iterator[bytes]:
        """The owners as `repr` of a tuple writes them."""
        first = next(self._tables())
        if "owner" not in first.column_names:
            yield b"None"
            return
        before = b"("
        for table in self._tables(["owner"]):
            owners = portable("owner", table.column("owner").to_pylist())
            yield before + ", ".join(map(repr, owners)).encode()
            before = b", "
        yield b",)" if self.rows == 1 else b")"

    def _mapped(self, path: Path, dtype: str) -> NDArray[Any]:
        return np.memmap(path, dtype, "w+", shape=(self.rows,))
