"""One file of results, made in bounded memory by a run that can be interrupted.

The passes are: fit the encoder if it needs all rows, count, value and judge. What the last pass
finds is kept in pieces on disk. In the end ranks are computed from these, and all become one file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from thresher.drafts import draft_folder
from thresher.errors import InputError, option
from thresher.files import portable, record_path, resolved, sealed_stream
from thresher.findings.label_findings import judge
from thresher.inputs.checked_inputs import Points
from thresher.inputs.checks import rows_text
from thresher.neighbors.ball import Neighbors
from thresher.passes.checkpoint import Checkpoint, Chunk
from thresher.passes.in_parts import Run
from thresher.passes.memory import check_memory, in_use
from thresher.passes.parts import Part
from thresher.passes.problem import Priced
from thresher.progress import progress_bar
from thresher.runs.file_run import FileRun
from thresher.runs.ranks import find_repeats, rank_values
from thresher.runs.results import (
    about_cells,
    judged_columns,
    result_table,
    target_columns,
    write_tables,
)
from thresher.runs.settings import Settings
from thresher.runs.summary import Highlights, Summary
from thresher.valuation import Valuation

JUDGED = 64  # bytes that judging a row takes for each class
COLUMNS = 400  # and bytes of its columns
CHUNK = 1 << 22  # bytes of a piece that are written together
ROWS = 1 << 16  # rows of a group in the file at most, however pieces were cut
GROUP = 1 << 24  # bytes of a group, where rows have long ids
ORDER = ("row", "id", "label", "value", "rank", "percentile", "near", "agree", "best_label",
         "best_value", "suggestion", "owner")  # fmt: skip


def value_to_file(
    settings: Settings, out: Path, *, checkpoint: str | None = None, force: bool = False,
    progress: bool = False,
) -> Summary:  # fmt: skip
    """Value the points of files that may exceed memory, and write the table of results.

    An interrupted run continues from its `checkpoint`. Without one, pieces are in a folder beside
    `out`.
    """
    targets = [resolved(out), resolved(record_path(out))]
    if checkpoint is not None and resolved(Path(checkpoint)) in targets:
        raise InputError(
            f"{option('out', str(out))} would write to {option('checkpoint', checkpoint)}, which "
            "is removed at the end: choose another name"
        )
    run = FileRun.of(settings, stored=("id", "owner", "label"))
    memory = None if settings.memory is None else check_memory(settings.memory)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(draft_folder(resolved(out).parent))
        kept = stack.enter_context(Checkpoint(checkpoint or folder / "pieces", run.identity()))
        passes = 2 + int(run.fits)
        bar = progress_bar("value", passes * (run.source.count or 0), show=progress, unit="rows")
        advance = stack.enter_context(bar)
        run = run.fit(kept, advance)
        parts = Run(run.problem, run.source, kept, memory)
        priced = parts.count(advance)
        run.check(priced)
        if advance is not None:
            advance(0, total=passes * priced.rows)
        row_bytes = JUDGED * len(priced.prices.classes) + COLUMNS
        pieces = parts.value(priced, partial(_judge, priced), advance, row_bytes=row_bytes)
        stack.enter_context(contextlib.closing(pieces))
        for _ in pieces:
            pass
        how = {"streamed": {"memory": memory, "passes": passes + int(priced.again)}}
        record = run.record(priced.rows, run.guessed(priced), how)
        room = max(0, (memory or 4 << 30) - in_use()) // 2
        table = TableFile(folder, _kept_pieces(kept), priced.rows, room)
        wrote = table.write(out, priced.valuation(), record, force=force)
        hints = _id_hints(run.settings.id, table.repeats)
        found = run.summary(priced, table.highlights, record, wrote, hints)
        kept.finish()
    return found


def _judge(priced: Priced, part: Part, points: Points, way: Neighbors) -> Iterator[Chunk]:
    """What is found of a part, as bytes."""
    if priced.numbers:
        columns = target_columns(part.y, priced.values(points, way))
    else:
        judged = judge(priced.prices, points, priced.problem.divisor, way)
        columns = judged_columns(points.codes, judged, priced.prices.classes)
    table = result_table(part, columns)
    step = max(1, CHUNK * len(table) // max(table.nbytes, 1))
    for lo in range(0, len(table), step):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(lo, step))
        yield sink.getvalue()


def _kept_pieces(kept: Checkpoint) -> Iterator[Iterable[Chunk]]:
    row = 0
    while (found := kept.load(f"values-{row}")) is not None:
        entry, chunks = found
        yield chunks
        row = entry["after"][0]


def _id_hints(name: str | None, repeats: Mapping[Any, list[int]]) -> list[str]:
    if not repeats:
        return []
    shown = "; ".join(f"{entry!r} in {rows_text(rows)}" for entry, rows in [*repeats.items()][:3])
    return [f"column {name!r} has ids that are not distinct: {shown}"]


class TableFile:
    """Makes one file with ranks from the pieces of results, in the order of their rows.

    A chunk of a piece is a table as Arrow writes it to a stream. Ranking may use `room` bytes, and
    keeps its files in `folder`.
    """

    def __init__(
        self, folder: Path, pieces: Iterable[Iterable[Chunk]], rows: int, room: int
    ) -> None:
        self.pieces, self.rows = list(pieces), rows
        self.highlights = Highlights()
        self.values = np.memmap(folder / "values.f64", "<f8", "w+", shape=(rows,))
        row = size = 0
        for chunk in chain.from_iterable(self.pieces):
            values = _read(chunk).column("value").to_numpy()
            self.values[row : row + len(values)] = values
            row, size = row + len(values), size + len(chunk)
        self.group = min(ROWS, 1 << max(6, (GROUP // max(size // rows, 1)).bit_length() - 1))
        named = "id" in next(self._tables()).column_names
        self.repeats = find_repeats(self._ids, rows, folder, room=room) if named else {}
        self.rank, self.below = rank_values(self.values, folder, room=room)

    def write(
        self, out: Path, valuation: Valuation, record: Mapping[str, Any], *, force: bool
    ) -> list[Path]:
        """Write the file, and collect what is worth saying on the way."""
        values = (self.values[lo : lo + ROWS].tobytes() for lo in range(0, self.rows, ROWS))
        about = sealed_stream(
            valuation.about({**record, **about_cells(out)}), chain(values, self._owner_bytes())
        )
        schema = next(self._blocks()).schema
        return write_tables(out, schema, self._noted(), about, force=force)

    def _noted(self) -> Iterator[pa.Table]:
        for block in self._blocks():
            self.highlights.add(block)
            yield block

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
        table = table.combine_chunks()  # pages of the file do not depend on how pieces were cut
        columns = {name: table.column(name) for name in table.column_names}
        columns |= {
            "row": pa.array(np.arange(rows.start, rows.stop)),
            "rank": pa.array(np.array(self.rank[rows])),
            "percentile": pa.array(100.0 * self.below[rows] / self.rows),
        }
        names = [name for name in ORDER if name in columns]
        return pa.table({name: columns[name] for name in names})

    def _tables(self) -> Iterator[pa.Table]:
        return map(_read, chain.from_iterable(self.pieces))

    def _ids(self) -> Iterator[list[Any]]:
        for table in self._tables():
            for lo in range(0, len(table), self.group):
                yield table.column("id").slice(lo, self.group).to_pylist()

    def _owner_bytes(self) -> Iterator[bytes]:
        """The owners as `repr` of a tuple writes them."""
        first = next(self._tables())
        if "owner" not in first.column_names:
            yield b"None"
            return
        before = b"("
        for table in self._tables():
            owners = portable("owner", table.column("owner").to_pylist())
            yield before + ", ".join(map(repr, owners)).encode()
            before = b", "
        yield b",)" if self.rows == 1 else b")"


def _read(chunk: Chunk) -> pa.Table:
    return pa.ipc.open_stream(chunk).read_all()
