"""A run over files that may exceed memory: what it reads, counts, judges and records.

The points are never held as a whole. Where the table of results goes is up to `table_file`, which
writes one file, and `table_folder`, which lets the workers of a cluster write many.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.files import portable
from thresher.findings.advice import SUGGESTIONS
from thresher.findings.label_findings import Judged
from thresher.games.semivalues import check_semivalue
from thresher.inputs.checks import rows_text
from thresher.inputs.labels import is_missing
from thresher.neighbors.kernel import check_kernel
from thresher.neighbors.tree_columns import TreeColumns
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.forest_passes import forest_problem
from thresher.passes.memory import check_memory
from thresher.passes.parts import Part, Place
from thresher.passes.problem import Priced, Problem, TargetProblem
from thresher.passes.target_growth import TargetGrowth
from thresher.passes.target_span import span_of_parts, with_bounds
from thresher.progress import Advance
from thresher.runs.choice import as_asked, choose_method
from thresher.runs.chosen_method import radius_of
from thresher.runs.guessed import told_guesses
from thresher.runs.hints import run_hints
from thresher.runs.point_files import PointFiles
from thresher.runs.settings import Settings
from thresher.runs.sources import check_lengths, check_shared, describe_files, read_validation
from thresher.runs.summary import Highlights, Summary
from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder
from thresher.tables.file_parts import FileParts
from thresher.tables.tree_encoder import TreeEncoder

FIRST = 1 << 10  # rows that hints look at
NOWHERE = Checkpoint(None, {})  # of a run that cannot be continued


@dataclass(frozen=True, eq=False)
class FileRun:
    """One run."""

    settings: Settings  # what is wanted
    points: PointFiles  # the files of points
    # validation, validation_files: the validation set, and its files for the record
    validation: Columns
    validation_files: Mapping[str, Any]
    encoder: Encoder | TreeEncoder  # what makes numbers of features, once it is fitted
    chosen: Mapping[str, Any]  # the method and, where nobody asked for one, why
    kept: Checkpoint = NOWHERE

    @classmethod
    def of(cls, points: PointFiles) -> FileRun:
        """With the validation set that the settings name."""
        table = points.table if points.settings.numbers else None
        settings, chosen = choose_method(points.settings, table, points.first_rows())
        public: Any = points.columns, {"rows": 0}  # they judge each other
        if settings.validation is not None or settings.method != "forest":
            public = read_validation(settings, points.columns)
        points = dataclasses.replace(points, settings=settings)
        validation, files = public
        return cls(settings, points, validation, files, Encoder(()), chosen)

    def fit(self, checkpoint: Checkpoint = NOWHERE, advance: Advance | None = None) -> FileRun:
        """The same run with an encoder."""
        encoder = self.points.fit(checkpoint, advance)
        return dataclasses.replace(self, encoder=encoder, kept=checkpoint)

    def identity(self) -> dict[str, Any]:
        """What tells it from other runs."""
        return {
            "settings": dataclasses.asdict(dataclasses.replace(self.settings, memory=None)),
            "points": self.source.identity(),
            "validation": self.validation_files.get("digest"),
        }

    @cached_property
    def source(self) -> FileParts:
        """The points."""
        return self.points.source(self.encoder, written=self.validation.written)

    @cached_property
    def problem(self) -> Problem:
        """What they are valued by."""
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
            "semivalue": check_semivalue(settings.semivalue, calibrated=True),
        }  # fmt: skip
        if settings.numbers:
            given = {"empty": settings.empty, "bounds": None}
            targets = with_bounds(given, y_val, lambda: span_of_parts(self.source, memory))
            return TargetProblem.of(X_val, y_val, radius=radius, **targets, **about)
        radius, kernel = check_kernel(settings.weighing, settings.rings, radius)
        return Problem.check(X_val, y_val, radius=radius, kernel=kernel, **about)

    def _growth(self, X_val: Any, y_val: Any) -> TargetGrowth:
        """How the forest comes about."""
        settings, judges = self.settings, None if y_val is None else np.array(y_val, np.float64)
        empty = settings.empty
        if empty is None and judges is not None:
            empty = float(judges.mean())
        return TargetGrowth(
            None, (settings.trees, settings.folds, settings.seed), X_val, judges,
            check_semivalue(settings.semivalue), None, settings.mean, empty=empty,
        )  # fmt: skip

    def check(self, priced: Priced) -> None:
        """Say what is to be said once all points were counted; refuse labels nobody shares."""
        if not self.settings.numbers:
            ours, theirs = tuple(priced.meaning.values()), tuple(priced.public_labels)
            check_shared(
                Columns(ours, pa.table({}), source=self.points.table.name),
                Columns(theirs, pa.table({}), source=self.validation.source),
            )
        self.guessed(priced)  # raises where labels may be amounts
        priced.warn(labels=False)

    def guessed(self, priced: Priced) -> dict[str, Any]:
        """What was guessed, for the record."""
        what = f"{self.points.table.name} column {self.settings.label!r}"
        labels = list(priced.meaning.values())
        return told_guesses(self.settings, self.points.guesses, labels, what, priced.rows)

    def record(
        self, rows: int, guessed: Mapping[str, Any], how: Mapping[str, Any]
    ) -> dict[str, Any]:
        """From what, how and by which version, as in memory."""
        points = describe_files(self.points.table, self.settings.label, rows)
        encoder = self.encoder.describe()
        encoder["fitted_on"]["rows"] = rows
        return {
            **as_asked(self.settings, self.chosen).record(),
            "input_digest": points["digest"],
            "points": points,
            "chosen": dict(self.chosen),
            "guessed": dict(guessed),
            "validation": dict(self.validation_files),
            "encoder": encoder,
            **how,
        }

    def summary(
        self, priced: Priced, told: Highlights, record: Mapping[str, Any], wrote: list[Path],
        hints: list[str],
    ) -> Summary:  # fmt: skip
        """What the run says in the end, with some more hints."""
        return Summary(
            self.settings, priced.valuation(), priced.rows, len(self.validation),
            None if self.settings.numbers else told.counts(), told.worst, told.by_owner,
            [*self._hints(priced, record), *hints], record, wrote,
        )  # fmt: skip

    def _hints(self, priced: Priced, record: Mapping[str, Any]) -> list[str]:
        validation = self.validation
        if not self.settings.numbers:
            validation = dataclasses.replace(validation, labels=tuple(priced.public_labels))
        first = next(self.source.read(Place(), FIRST))
        return run_hints(
            self.settings, self.encoder, first.X, list(priced.meaning.values()), validation,
            radius=priced.valuation().params.get("radius", 0.0),
            reached=bool(priced.tally.counts.any()), record=record,
        )  # fmt: skip


def result_table(part: Part, columns: Mapping[str, Any]) -> pa.Table:
    """What is known of a part, but for ranks."""
    roles = [role for role in ("id", "owner") if role in part.beside]
    return pa.table({**{role: _present(part, role) for role in roles}, **columns})


def judged_columns(codes: NDArray[Any], judged: Judged, classes: list[Any]) -> dict[str, Any]:
    """What is known of points with classes."""
    names = pa.array(classes)
    return {
        "label": names.take(pa.array(codes)),
        "value": judged.value,
        "near": judged.near,
        "agree": judged.agree,
        "best_label": names.take(pa.array(judged.best)),
        "best_value": judged.best_value,
        "suggestion": pa.array(SUGGESTIONS).take(pa.array(judged.suggestion)),
    }


def target_columns(targets: Any, values: NDArray[np.float64]) -> dict[str, Any]:
    """What is known of points with numbers: what others expect takes all rows together."""
    return {"label": pa.array(np.asarray(targets, np.float64)), "value": values}


def _present(part: Part, role: str) -> pa.Array:
    entries = part.beside[role]
    empty = [part.inside + row for row, entry in enumerate(entries) if is_missing(entry)]
    if empty:
        raise InputError(
            f"{part.name} has missing {role}s in {rows_text(empty)}: drop or fill those rows"
        )
    return pa.array(portable(role, entries))
