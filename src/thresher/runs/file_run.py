"""A run over files that may exceed memory: what it reads, counts, judges and records.

The points are never held as a whole. Where the table of results goes is up to `table_file`, which
writes one file, and `table_folder`, which lets the workers of a cluster write many.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from thresher.errors import InputError, option
from thresher.findings.false_alarms import count_false_alarms
from thresher.games.semivalues import check_semivalue
from thresher.neighbors.kernel import check_kernel
from thresher.neighbors.tree_columns import TreeColumns
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.forest_growth import TargetGrowth
from thresher.passes.forest_passes import forest_problem
from thresher.passes.memory import check_memory
from thresher.passes.parts import Part, Place
from thresher.passes.problem import Priced, Problem
from thresher.passes.target_span import span_of_parts, with_bounds
from thresher.progress import Advance
from thresher.runs.choice import choose_method, original_settings
from thresher.runs.chosen_method import radius_of
from thresher.runs.hints import run_hints
from thresher.runs.leak_hints import Leaks, leak_hints, leaks_among
from thresher.runs.roles import Guesses, guess_record, guess_roles, with_first_rows
from thresher.runs.settings import Settings
from thresher.runs.sources import (
    check_classes_differ,
    check_date_formats,
    check_lengths,
    check_shared,
    describe_files,
    read_validation,
)
from thresher.runs.summary import Highlights, Summary
from thresher.sides.ball_side import BallSide
from thresher.tables.columns import Columns, choose_columns
from thresher.tables.encoder import Encoder, TreeEncoder
from thresher.tables.file_parts import FileParts
from thresher.tables.label_files import read_label_file
from thresher.tables.paths import find_files, kind_of
from thresher.tables.reader import Table, common_schema, read_batches, scan_table

FIRST = 1 << 10  # rows that hints look at
UNFITTED = Encoder(())
NOWHERE = Checkpoint(None, {})  # of a run that cannot be continued


@dataclass(frozen=True, eq=False)
class FileRun:
    """One run."""

    settings: Settings  # what is wanted
    # table, columns: the files of points and what their columns are for, both without rows
    table: Table
    columns: Columns
    # entries, text: labels that have a file of their own, and whether that is one of text
    entries: Any
    text: bool
    guesses: Guesses  # what columns were taken for, unasked
    # validation, validation_files: the validation set, and its files for the record
    validation: Columns
    validation_files: Mapping[str, Any]
    chosen: Mapping[str, Any]  # the method and, where nobody asked for one, why
    encoder: Encoder | TreeEncoder = UNFITTED  # what makes numbers of features
    kept: Checkpoint = NOWHERE

    @classmethod
    def of(cls, settings: Settings, stored: tuple[str, ...] = ("id", "owner")) -> FileRun:
        """A run over the files of the settings; columns of `stored` roles are kept on disk."""
        files = find_files(settings.file)
        entries, text = None, False
        guesses: Guesses = {}
        if kind_of(files[0]) == "npy":
            table, entries, text = _open_arrays(files, settings.label, settings.na)
        else:
            table = scan_table(settings.file, **settings.reading())
            some = with_first_rows(table) if settings.guess else table
            settings, guesses = guess_roles(settings, some)
        columns = choose_columns(
            table, label=settings.label, features=settings.features or None, id=settings.id,
            owner=settings.owner, categorical=settings.categorical, image=settings.image,
            ignore=settings.ignore, cells=settings.cells(), task=settings.task,
        )  # fmt: skip
        for role in stored:
            _check_kept(table, getattr(settings, role), role)
        if entries is not None:
            table = dataclasses.replace(table, kind="npy")
        settings, chosen = choose_method(settings)
        public: tuple[Columns, dict[str, Any]] = columns, {"rows": 0}  # they judge each other
        if settings.validation is not None or settings.method != "forest":
            public = read_validation(settings, columns)
        check_date_formats(columns, *([public[0]] if public[0] is not columns else []))
        return cls(settings, table, columns, entries, text, guesses, *public, chosen)

    def fit(self, checkpoint: Checkpoint = NOWHERE, advance: Advance | None = None) -> FileRun:
        """The same run with an encoder, fitted by a pass over all rows if that is needed."""
        kept, trees = checkpoint.load("encoder"), self.settings.method == "forest"
        encoder: Encoder | TreeEncoder
        if kept is not None:
            encoder = (TreeEncoder if trees else Encoder).from_record(kept[0])
        elif trees:
            encoder = TreeEncoder.fit_parts(self._tables(advance), self.table.name)
        else:
            encoder = Encoder.fit_parts(
                self._tables(advance), fill=self.settings.fill, scaling=self.settings.scaling,
                standardize=self.settings.standardize, source=self.table.name, whole=self.fits,
            )  # fmt: skip
        if kept is None:
            checkpoint.save("encoder", encoder.describe())
        return dataclasses.replace(self, encoder=encoder, kept=checkpoint)

    @property
    def fits(self) -> bool:
        """Whether something is learned from all rows."""
        settings = self.settings
        words = settings.standardize or settings.method == "forest"
        return words or bool(self.columns.categorical)

    def _tables(self, advance: Advance | None) -> Iterator[Columns]:
        """The features, a few rows at a time."""
        for path in self.table.files:
            for first, some in read_batches(self.table, path, self.columns.names):
                yield Columns(
                    tuple(range(some.num_rows)), some, categorical=self.columns.categorical,
                    source=str(path), rows=np.arange(first, first + some.num_rows),
                    cells=self.columns.cells,
                )  # fmt: skip
                if advance is not None and self.fits:
                    advance(some.num_rows)

    def identity(self) -> dict[str, Any]:
        """What tells this run from others."""
        return {
            "settings": dataclasses.asdict(
                dataclasses.replace(self.settings, memory=None, named=())
            ),
            "points": self.source.identity(),
            "validation": self.validation_files.get("digest"),
        }

    @cached_property
    def source(self) -> FileParts:
        """The points as numbers."""
        encoder, beside = self.encoder, {"id": self.settings.id, "owner": self.settings.owner}
        return FileParts(
            self.table, self.settings.label, self.columns.names, len(encoder.names),
            encoder.transform,
            plain=isinstance(encoder, Encoder)
            and all(each.kind == "number" and not each.means for each in encoder.features),
            categorical=self.columns.categorical,
            beside={role: name for role, name in beside.items() if name is not None},
            written=self.validation.written, entries=self.entries, text=self.text,
            task=self.settings.task, cells=self.columns.cells,
        )  # fmt: skip

    @cached_property
    def problem(self) -> Problem:
        """What the points are valued by."""
        settings, validation = self.settings, self.validation
        memory = None if settings.memory is None else check_memory(settings.memory)
        X_val, y_val = None, None
        if len(validation):
            X_val, y_val = self.encoder.transform(validation), list(validation.labels)
        if settings.method == "forest":
            columns = TreeColumns(self.source.width)
            growth = self._growth(X_val, y_val)
            return forest_problem(growth, self.source, columns, self.kept, memory)
        assert X_val is not None  # noqa: S101 - a ball needs a validation set
        check_lengths(validation, X_val, cosine=settings.metric == "cosine")
        radius = radius_of(settings, X_val, y_val)
        about: dict[str, Any] = {
            "metric": settings.metric, "mean": settings.mean,
            "semivalue": check_semivalue(settings.semivalue, calibrated=not settings.numbers),
        }  # fmt: skip
        if settings.numbers:
            given = {"empty": settings.empty, "bounds": None}
            targets = with_bounds(given, y_val, lambda: span_of_parts(self.source, memory))
            return Problem.check(X_val, y_val, radius=radius, targets=targets, **about)
        radius, kernel = check_kernel(settings.weighing, settings.rings, radius)
        return Problem.check(X_val, y_val, radius=radius, kernel=kernel, **about)

    def _growth(self, X_val: Any, y_val: Any) -> TargetGrowth:
        """How the forest is grown."""
        settings, judges = self.settings, None if y_val is None else np.array(y_val, np.float64)
        empty = settings.empty
        if empty is None and judges is not None:
            empty = float(judges.mean())
        return TargetGrowth(
            None, (settings.trees, settings.folds, settings.seed), X_val, judges,
            check_semivalue(settings.semivalue), None, settings.mean, empty=empty,
        )  # fmt: skip

    def check(self, priced: Priced) -> None:
        """Warn of what is known once all points were counted; refuse sides that share no label."""
        if not self.settings.numbers:
            names = self.table.name, self.validation.source
            check_shared(list(priced.meaning.values()), priced.public_labels, *names)
            both = priced.meaning.values(), priced.public_labels
            check_classes_differ(self.settings, self.table.name, *both)
        self.guessed(priced)  # raises where labels may be amounts
        priced.warn(labels=False)

    def guessed(self, priced: Priced) -> dict[str, Any]:
        """What was guessed, for the record."""
        what = f"{self.table.name} column {self.settings.label!r}"
        labels = list(priced.meaning.values())
        return guess_record(self.settings, self.guesses, labels, what, priced.rows)

    def record(
        self, rows: int, guessed: Mapping[str, Any], how: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The record of the run, as of a run in memory: its files, settings and versions."""
        points = describe_files(self.table, self.settings.label, rows)
        encoder = self.encoder.describe()
        encoder["fitted_on"]["rows"] = rows
        return {
            **original_settings(self.settings, self.chosen).record(),
            "input_digest": points["digest"],
            "points": points,
            "chosen": dict(self.chosen),
            "guessed": dict(guessed),
            "validation": dict(self.validation_files),
            "encoder": encoder,
            **how,
        }

    def summary(
        self, priced: Priced, highlights: Highlights, record: Mapping[str, Any], wrote: list[Path],
        hints: list[str],
    ) -> Summary:  # fmt: skip
        """What the run says in the end, with some more hints."""
        first = next(self.source.read(Place(), FIRST))
        leaks, found = self._leaks(first, priced), self._hints(first, priced, record)
        return Summary(
            self.settings, priced.valuation(), priced.rows, len(self.validation),
            None if self.settings.numbers else highlights.counts(),
            highlights.worst, highlights.by_owner,
            [*leak_hints(leaks, self.settings, priced.rows), *found, *hints], record, wrote,
            leaks=leaks, why_look=self._why_look(priced, highlights),
        )  # fmt: skip

    def _why_look(self, priced: Priced, highlights: Highlights) -> str:
        """Why nobody should change the marked rows without a look; empty if one may."""
        side, flagged = priced.side, highlights.called_wrong
        if not isinstance(side, BallSide) or not flagged:
            return ""
        alarms = count_false_alarms(
            side.validation, side.radius, seed=self.settings.seed, trusted=True
        )
        return "" if alarms is None else alarms.why_look(flagged, priced.rows)

    def _leaks(self, first: Part, priced: Priced) -> Leaks:
        """Columns that repeat the label, by the first rows and the validation set."""
        validation = self.validation
        labels = [priced.meaning.get(label, label) for label in list(first.y)]
        X = np.concatenate([first.X, self.encoder.transform(validation)])
        return leaks_among(X, self.encoder, [*labels, *validation.labels], self.settings)

    def _hints(self, first: Part, priced: Priced, record: Mapping[str, Any]) -> list[str]:
        validation = self.validation
        if not self.settings.numbers:
            validation = dataclasses.replace(validation, labels=tuple(priced.public_labels))
        return run_hints(
            self.settings, self.encoder, first.X, list(priced.meaning.values()), validation,
            radius=priced.valuation().params.get("radius", 0.0),
            reached=bool(priced.tally.counts.any()), record=record,
        )  # fmt: skip


def _check_kept(table: Table, name: str | None, role: str) -> None:
    """Refuse a column whose entries cannot be kept between passes, before any is read."""
    if name is None:
        return
    kind = table.data.schema.field(name).type
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = pa.types.is_temporal, pa.types.is_decimal, pa.types.is_binary, pa.types.is_large_binary
    if any(test(plain) for test in tests):
        way_out = f", or leave out {option('memory')}" if role == "label" else ""
        raise InputError(
            f"{table.name} column {name!r} of type {plain} cannot be saved: use strings or numbers "
            f"as {role}s{way_out}"
        )


def _open_arrays(
    files: tuple[Path, ...], label: str, na: tuple[str, ...]
) -> tuple[Table, Any, bool]:
    """A table of .npy files, with a column for the labels that a file of their own has."""
    schema = common_schema(files, "npy", None)
    rows = sum(len(np.load(path, mmap_mode="r")) for path in files)
    path = Path(label)
    if path.suffix.lower() == ".npy" and path.is_file():
        entries: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        text = False
        if entries.shape != (rows,):
            raise InputError(
                f"{path} has labels of shape {entries.shape} but {files[0]} has {rows} rows"
            )
    else:
        found = read_label_file(label, str(files[0]), rows)
        entries, text = found.entries, found.text is not None
    data = schema.append(pa.field(label, pa.string())).empty_table()
    return Table(data, files, "npz", na=na), entries, text
