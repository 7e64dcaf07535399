"""stream_files: from files to a file of values in bounded memory, in passes that can be broken off.

Pass by pass: fit the encoder where it needs all rows, count, value and judge. What the last pass
finds is kept in pieces on disk; ranks are made from these, and one file of all.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.checks import check_radius, rows_text
from thresher.drafts import draft_folder
from thresher.errors import InputError
from thresher.files import portable, resolved
from thresher.findings import SUGGESTIONS, Judged, judge
from thresher.games.semivalues import check_semivalue
from thresher.inputs import Validation, check_validation, tell_of_twins
from thresher.labels import is_missing
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.memory import check_memory, in_use
from thresher.passes.parts import Part, Place
from thresher.passes.priced import Priced
from thresher.passes.result import warn_of_reach
from thresher.passes.streaming import Run
from thresher.progress import Advance, progress_bar
from thresher.radius import suggest_radius
from thresher.runs.gathered import Gathered
from thresher.runs.hints import label_hints, reach_hints, row_hints
from thresher.runs.opened import Opened, check_kept, open_points
from thresher.runs.settings import AUTO, Settings
from thresher.runs.sources import check_lengths, check_shared, describe_files, read_validation
from thresher.runs.valued import versions
from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder
from thresher.tables.reader import Table
from thresher.valuation import Valuation

JUDGED = 64  # bytes that judging a row takes for each class
COLUMNS = 400  # and bytes of its columns


@dataclass(frozen=True, eq=False)
class Streamed:
    """What came out of a run in parts; the values are in the files that were `wrote`."""

    settings: Settings
    valuation: Valuation  # without values
    rows: int
    validation_points: int
    suggestions: Mapping[str, int]
    worst: list[dict[str, Any]]
    by_owner: Mapping[Any, float] | None
    hints: list[str]
    record: Mapping[str, Any]
    wrote: list[Path]


def stream_files(
    settings: Settings, out: Path, *, checkpoint: str | None = None, force: bool = False,
    progress: bool = False,
) -> Streamed:  # fmt: skip
    """Value the points of files that may exceed memory, and write the table of results.

    Parameters
    ----------
    settings
        Files, columns and method, and the memory.
    out
        Where the table goes.
    checkpoint
        A folder that a broken run goes on from; without it, pieces are in one beside `out`.
    force
        Replace a file that is there.
    progress
        Show a progress bar on standard error.
    """
    if checkpoint is not None and resolved(Path(checkpoint)) in resolved(out).parents:
        raise InputError(
            f"--out {out} is within --checkpoint {checkpoint}, which is removed at the end: choose "
            "another place"
        )
    opened = open_points(settings)
    check_kept(opened.table, settings.label, "label", ", or leave out --memory")
    validation, beside = read_validation(settings, opened.columns)
    about = {
        "settings": dataclasses.asdict(dataclasses.replace(settings, memory=None)),
        "points": opened.source(Encoder(()), written=False).identity(),
        "validation": beside["digest"],
    }
    with contextlib.ExitStack() as stack:
        folder = (
            stack.enter_context(draft_folder(resolved(out).parent))
            if checkpoint is None
            else Path(checkpoint)
        )
        kept = stack.enter_context(Checkpoint(folder, about))
        passes, source = 2 + int(opened.fits), opened.source(Encoder(()), written=False)
        bar = progress_bar("value", passes * (source.count or 0), show=progress, unit="rows")
        advance = stack.enter_context(bar)
        encoder = opened.fit(kept, advance)
        job = _Job.of(settings, opened, validation, encoder, kept)
        priced = job.count(advance)
        if advance is not None:
            advance(0, total=passes * priced.rows)
        job.judge(priced, advance)
        record = job.record(priced, beside)
        found = job.gather(priced, record, out, force=force)
        kept.finish()
    return found


@dataclass(frozen=True, eq=False)
class _Job:
    """One run: both sides, and the passes over the points."""

    settings: Settings
    opened: Opened
    validation: Columns
    encoder: Encoder
    run: Run

    @classmethod
    def of(
        cls, settings: Settings, opened: Opened, validation: Columns, encoder: Encoder,
        kept: Checkpoint,
    ) -> _Job:  # fmt: skip
        X_val, y_val = encoder.transform(validation), list(validation.labels)
        check_lengths(validation, X_val, cosine=settings.metric == "cosine")
        public = check_validation(X_val, y_val, metric=settings.metric, classes=None)
        run = Run(
            opened.source(encoder, written=validation.written), public, y_val, None,
            settled_radius(settings, X_val, y_val), check_semivalue(settings.semivalue), kept,
            None if settings.memory is None else check_memory(settings.memory),
        )  # fmt: skip
        return cls(settings, opened, validation, encoder, run)

    def count(self, advance: Advance | None) -> Priced:
        """The pass that counts, and what is to be said after it."""
        priced = self.run.count(advance)
        final, source = priced.prices.validation, self.opened.table.name
        theirs = tuple(final.classes.labels[code] for code in dict.fromkeys(final.codes.tolist()))
        empty = pa.table({})
        check_shared(
            Columns(tuple(priced.meaning.values()), empty, source=source),
            Columns(theirs, empty, source=self.validation.source),
        )
        tell_of_twins(int(priced.tally.twins.sum()), final, stacklevel=3)
        if not priced.tally.counts.any():
            warn_of_reach(self.run.radius, stacklevel=3)
        return priced

    def judge(self, priced: Priced, advance: Advance | None) -> None:
        """The pass that values and judges: pieces that are kept, one for each part."""
        place, prints = Place(), 0
        while (found := self.run.checkpoint.load(_piece(place.row))) is not None:
            place, prints = Place(*found[0]["after"]), found[0]["prints"]
        if advance is not None:
            advance(place.row)
        classes = priced.prices.classes
        work = JUDGED * len(classes) + COLUMNS
        with closing(self.run.coded(priced, place, prints, advance, work=work)) as parts:
            for part, points, total, way in parts:
                judged = judge(priced.prices, points, self.scale, way)
                table = piece_table(part, points.codes, judged, classes)
                entry = {"after": list(part.after), "prints": total}
                self.run.checkpoint.save(_piece(part.first), entry, partial(_write, table))

    @property
    def scale(self) -> float:
        """What values are divided by."""
        return float(len(self.run.validation)) if self.settings.mean else 1.0

    def record(self, priced: Priced, beside: Mapping[str, Any]) -> dict[str, Any]:
        """From what, how and by which version, as in memory; and in how many passes."""
        table = self.opened.table
        points = describe_files(Table(pa.table({}), table.files, table.kind), self.settings.label)
        points["rows"] = priced.rows
        again = (self.run.checkpoint.load("counts-again")) is not None
        passes = 2 + int(self.opened.fits) + int(again)
        encoder = self.encoder.describe()
        encoder["fitted_on"]["rows"] = priced.rows
        return {
            **versions(),
            "command": self.settings.command(),
            "settings": dataclasses.asdict(self.settings),
            "input_digest": points["digest"],
            "points": points,
            "validation": dict(beside),
            "encoder": encoder,
            "streamed": {"memory": self.run.memory, "passes": passes},
        }

    def gather(
        self, priced: Priced, record: Mapping[str, Any], out: Path, *, force: bool
    ) -> Streamed:
        """Ranks, and one file of all pieces."""
        final = priced.prices.validation
        valuation = priced.valuation(np.zeros(0), self.run.semivalue, mean=self.settings.mean)
        folder = self.run.checkpoint.folder
        assert folder is not None  # noqa: S101
        room = max(0, (self.run.memory or 4 << 30) - in_use()) // 2
        gathered = Gathered(folder, [folder / name for name in self._pieces()], priced.rows, room)
        wrote = gathered.write(out, valuation, record, force=force)
        return Streamed(
            self.settings, valuation, priced.rows, len(final), gathered.suggestions,
            gathered.worst, gathered.by_owner,
            [*self._hints(priced, final), *self._id_hints(gathered.repeats)], record, wrote,
        )  # fmt: skip

    def _pieces(self) -> Iterator[str]:
        row = 0
        while (found := self.run.checkpoint.load(_piece(row))) is not None:
            yield _piece(row)
            row = found[0]["after"][0]

    def _id_hints(self, repeats: Mapping[Any, list[int]]) -> list[str]:
        if not repeats:
            return []
        shown = "; ".join(
            f"{entry!r} in {rows_text(rows)}" for entry, rows in [*repeats.items()][:3]
        )
        return [f"column {self.settings.id!r} has ids that are not distinct: {shown}"]

    def _hints(self, priced: Priced, final: Validation) -> list[str]:
        labels = [final.classes.labels[code] for code in final.codes.tolist()]
        found = label_hints([*priced.meaning.values()], labels, keep_na=self.settings.keep_na)
        first = next(self.run.source.read(Place(), 1 << 10))
        odd = row_hints(first.X, self.encoder, self.settings)
        reached = bool(priced.tally.counts.any())
        found += odd or reach_hints(self.run.radius, self.settings, reached=reached)
        for name, count in self.encoder.unseen(self.validation).items():
            have = "validation point has" if count == 1 else "validation points have"
            found.append(f"{count} {have} a {name!r} that no point has: it is all zeros")
        return found


def _piece(row: int) -> str:
    return f"values-{row}.arrow"


def _write(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def settled_radius(settings: Settings, X_val: Any, y_val: Any) -> float:
    """The radius of the settings, or the one that the validation set suggests."""
    if settings.radius != AUTO:
        return check_radius(settings.radius)
    if len(y_val) < 2:
        raise InputError(
            "--radius auto needs two validation points at least, there is one: give more, or a "
            "number"
        )
    return float(suggest_radius(X_val, y_val, metric=settings.metric))


def piece_table(part: Part, codes: NDArray[Any], judged: Judged, classes: list[Any]) -> pa.Table:
    """What is known of a part, but for ranks: the columns of a piece."""
    names = pa.array(classes)
    found: dict[str, Any] = {}
    for role in ("id", "owner"):
        if role in part.beside:
            found[role] = _present(part, role)
    found |= {
        "label": names.take(pa.array(codes)),
        "value": judged.value,
        "near": judged.near,
        "agree": judged.agree,
        "best_label": names.take(pa.array(judged.best)),
        "best_value": judged.best_value,
        "suggestion": pa.array(SUGGESTIONS).take(pa.array(judged.suggestion)),
    }
    return pa.table(found)


def _present(part: Part, role: str) -> pa.Array:
    entries = part.beside[role]
    empty = [part.inside + row for row, entry in enumerate(entries) if is_missing(entry)]
    if empty:
        raise InputError(
            f"{part.name} has missing {role}s in {rows_text(empty)}: drop or fill those rows"
        )
    return pa.array(portable(role, entries))
