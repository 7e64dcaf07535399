"""A run whose points fit in memory: from files to values, with what is needed to explain them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.array_types import Integers
from thresher.errors import LabelWarning, in_options
from thresher.findings.advice import CALLED_WRONG
from thresher.findings.false_alarms import UNCHECKED, count_false_alarms
from thresher.findings.label_findings import Findings
from thresher.findings.review_list import review_list
from thresher.runs.choice import original_settings
from thresher.runs.chosen_method import Checked, grown, value_data
from thresher.runs.hints import category_hints, doubtful_labels, empty_hints, id_hints, run_hints
from thresher.runs.leak_hints import Leaks, leak_hints, leak_sentence, leaks_among
from thresher.runs.next_step import DECIDED, clean_command
from thresher.runs.settings import Data, Settings
from thresher.runs.sources import check_lengths, read_sources
from thresher.runs.unlabeled import suggest_labels
from thresher.tables.columns import Columns
from thresher.tables.copies import Copies, column_numbers
from thresher.tables.encoder import Encoder, TreeEncoder
from thresher.valuation import Valuation

MOST_FEATURES = 256  # columns that are compared one by one
SHOWN = 4  # columns of the table that a report shows beside a row


@dataclass(frozen=True, eq=False)
class MemoryRun:
    """One run, done."""

    settings: Settings  # what was wanted
    # points, validation: both sides as they were read; `points.rows` are their row numbers in
    # the table. The validation set has no rows where the points judge each other.
    points: Columns
    validation: Columns
    # X, y, X_val and y_val as they were valued; the last two are None without a validation set
    data: Data
    encoder: Encoder | TreeEncoder  # how features became numbers
    valuation: Valuation  # the values
    findings: Findings | None  # what they say about each row; None for methods without a price list
    # `data` as the method checked it; None where the method does not hand it on
    checked: Checked | None
    # from what, how and by which version; enough to make the same run again
    record: Mapping[str, Any]
    # columns with a label for each row that has none, if there are such rows
    suggested: Mapping[str, Any] | None = None

    def columns(self) -> dict[str, Any]:
        """The table of results: one row per point, in the order of the input."""
        found: dict[str, Any] = {"row": self.points.rows}
        if self.points.ids is not None:
            found["id"] = list(self.points.ids)
        if self.findings is not None:
            found |= {**self.findings.columns(), "row": self.points.rows}
            found |= self._review_column()
        else:
            found |= {"label": self.points.labels, "value": self.valuation.values}
            found |= {"rank": self.valuation.ranks(), "percentile": self.valuation.percentiles()}
        return found | ({} if self.settings.method == "tknn" else self._copy_columns())

    def _review_column(self) -> dict[str, Any]:
        """The place of each row in the review list, if there are scores to sort it by."""
        if self.findings is None or self.findings.score is None:
            return {}
        places: list[int | None] = [None] * len(self.points)
        for place, row in enumerate(self.review.tolist(), 1):
            places[row] = place
        return {"review": pa.array(places, pa.int64())}

    @cached_property
    def review(self) -> Integers:
        """Rows to look at, the most worthwhile first; without findings, the lowest values."""
        if self.findings is None:
            return self.valuation.suspects(len(self.points))
        return review_list(self.findings, self.copies.conflicts())

    def _copy_columns(self) -> dict[str, Any]:
        """Columns that say which rows are copies of which, if any are."""
        copies = self.copies
        if not (copies.copy_of >= 0).any():
            return {}
        rows = self.points.rows
        of = [None if place < 0 else int(rows[place]) for place in copies.copy_of.tolist()]
        return {"copies": copies.counts, "copy_of": pa.array(of, pa.int64())}

    @cached_property
    def copies(self) -> Copies:
        """Rows that are the same; for a forest, which takes longer anyway, also nearly the same."""
        points = self.points
        if self.settings.numbers:  # measured twice, a number may well be another one
            points = replace(points, labels=(0,) * len(points))
        return Copies.of(points, near=self.settings.method == "forest")

    def hints(self) -> list[str]:
        """Hints on how to get better values."""
        reached = self.findings is None or bool(self.findings.near.any())
        found = run_hints(
            self.settings, self.encoder, self.data[0], self.points.labels, self.validation,
            radius=self.valuation.params.get("radius", 0.0), reached=reached, record=self.record,
        )  # fmt: skip
        found += category_hints(self.points, self.encoder, self.settings)
        found += empty_hints(self.points)
        return [*leak_hints(self.leaks, self.settings, len(self.points)), *found]

    @cached_property
    def leaks(self) -> Leaks:
        """Columns that repeat the label."""
        return leaks_among(self.data[0], self.encoder, self.points.labels, self.settings)

    def leak(self) -> str:
        """That columns repeat the label, if some do; else empty."""
        what = "target" if self.settings.numbers else "label"
        return leak_sentence(self.leaks, what) if self.leaks else ""

    def why_look(self) -> str:
        """Why nobody should change the marked rows without a look; empty if one may."""
        findings = self.findings
        if findings is None or self.settings.numbers:
            return ""
        if findings.forecast is not None:
            return findings.forecast.why_look()
        flagged = sum(findings.counts()[word] for word in CALLED_WRONG)
        if flagged and "held_out" in self.record["validation"]:
            return UNCHECKED
        if self.checked is None or not flagged:
            return ""
        alarms = count_false_alarms(
            self.checked[1], self.valuation.params["radius"], seed=self.settings.seed, trusted=True
        )
        return "" if alarms is None else alarms.why_look(flagged, len(findings))

    def cautions(self) -> list[str]:
        """The hints that a reader of the report should see, too."""
        labels = self.points.labels, self.validation.labels
        found = []
        if not self.settings.numbers:
            found = doubtful_labels(*labels, keep_na=self.settings.keep_na)
        found += id_hints(self.data[0], self.encoder, self.settings).values()
        found = [*leak_hints(self.leaks, self.settings, len(self.points)), *found]
        return [in_options(f"{hint[0].upper()}{hint[1:]}.") for hint in found]

    def report(self, path: str | Path, *, force: bool = False, progress: bool = False) -> None:
        """Write the page that shows the run."""
        from thresher.report import Details, Pictures, gather, write_report

        images, texts = None, None
        if self.points.images is not None:
            images = Pictures(Path(self.record["points"]["files"][0]).parent, self.points.images)
        features = self.points.features
        names = [name for name in features.column_names if name != self.points.text][:SHOWN]
        if self.points.text is not None:
            names = [self.points.text, *names][:SHOWN]
            texts = features.column(self.points.text).to_pylist()
        evidence = gather(
            self.valuation, *(self.data if self.checked is None else ()), checked=self.checked,
            ids=self.points.ids, rows=self.points.rows,
            show={name: features.column(name).to_pylist() for name in names},
            held_out="held_out" in self.record["validation"], record=self.record,
            seed=self.settings.seed, findings=self.findings, copies=self.copies,
            cautions=self.cautions(), leak=self.leak(), progress=progress,
            details=Details(
                self._feature_columns(), self.validation.rows, self.validation.ids,
                "held_out" in self.record["validation"], texts, images,
                clean_command(self.settings, self.record, DECIDED),
            ),
        )  # fmt: skip
        write_report(path, evidence, force=force)

    def _feature_columns(self) -> dict[str, Any]:
        """The columns that have a meaning of their own: numbers as floats, others as they are."""
        named = [name for name in self.points.names if name != self.points.text]
        arrays = Path(self.record["points"]["files"][0]).suffix in {".npy", ".npz"}
        if arrays or self.points.text is not None or len(named) > MOST_FEATURES:
            return {}
        found: dict[str, Any] = {}
        for name in named:
            values = column_numbers(self.points, name)
            column = self.points.features.column(name)
            found[name] = column.to_pylist() if values is None else values
        return found


def value_files(
    settings: Settings, *, progress: bool = False, check: Callable[[Columns], object] | None = None
) -> MemoryRun:
    r"""Value the points of a file, as `thresher value` does.

    Parameters
    ----------
    settings
        Files, columns and method.
    progress
        Show progress bars on standard error.
    check
        Called with the points as soon as they are read, to raise if they cannot be used.

    Returns
    -------
    MemoryRun
        `.valuation` has the values, `.findings` the suggestions if the method makes some, and
        `.points` the rows that were valued.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresher.runs.memory_run import value_files
    >>> from thresher.runs.settings import Settings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = [f"{i % 20 + i / 100},{'ab'[i % 20 > 9]}" for i in range(100)]
    ...     lines[7] = "7.07,b"
    ...     _ = Path(folder, "a.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    ...     wanted = Settings(str(Path(folder, "a.csv")), holdout=0.3, metric="euclidean")
    ...     valued = value_files(wanted)
    >>> valued.findings
    Findings(70 points: 69 keep, 1 inspect)
    >>> int(valued.points.rows[valued.valuation.suspects(1)[0]])
    7
    """
    sources = read_sources(settings)
    points, validation = sources.points, sources.validation
    if check is not None:
        check(points)
    settings = sources.settings
    encoder, data = encoded(settings, points, validation, progress=progress)
    blank, suggested, forest = sources.unlabeled, None, None
    if blank is not None:  # their labels are those that this forest suggests
        empty = encoder.transform(blank)
        by_trees = settings.method == "forest"
        forest = grown(settings, data, progress=progress) if by_trees else None
        suggested = suggest_labels(settings, blank, empty, data, forest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)  # hints say it in words of the command
        valuation, findings, checked = value_data(
            settings, data, owners=points.owners, progress=progress, forest=forest
        )
    asked = original_settings(settings, sources.about["chosen"])
    record = {**asked.record(), **sources.about, "encoder": encoder.describe()}
    return MemoryRun(
        settings, points, validation, data, encoder, valuation, findings, checked, record, suggested
    )


def encoded(
    settings: Settings, points: Columns, validation: Columns, *, progress: bool
) -> tuple[Encoder | TreeEncoder, Data]:
    """How features become numbers, and points and validation set as the method needs them."""
    if settings.method == "forest":
        trees = TreeEncoder.fit(points, model=settings.model)
        public: tuple[Any, Any] = (None, None)
        if len(validation):
            public = trees.transform(validation, progress=progress), validation.labels
        return trees, (trees.transform(points, progress=progress), points.labels, *public)
    encoder = Encoder.fit(
        points, fill=settings.fill, standardize=settings.standardize, scaling=settings.scaling,
        model=settings.model,
    )  # fmt: skip
    X_val, X = (encoder.transform(each, progress=progress) for each in (validation, points))
    check_lengths(points, X, cosine=settings.metric == "cosine")
    check_lengths(validation, X_val, cosine=settings.metric == "cosine")
    return encoder, (X, points.labels, X_val, validation.labels)
