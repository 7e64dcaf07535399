"""The table of results as a file that records how it was made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, ipc, parquet

from thresher.errors import InputError, option, printing
from thresher.files import (
    KEY,
    arrow_table,
    check_apart,
    check_free,
    portable,
    portable_column,
    record_path,
    write_text,
    write_whole,
)
from thresher.findings.advice import SUGGESTIONS
from thresher.findings.label_findings import Judged
from thresher.inputs.checks import rows_text
from thresher.inputs.coded import Coded
from thresher.inputs.labels import is_missing
from thresher.passes.parts import Part
from thresher.runs.memory_run import MemoryRun
from thresher.tables.columns import Columns
from thresher.tables.formulas import RULE, harmless

SUFFIXES = (".parquet", ".csv", ".tsv", ".arrow", ".feather")
TEXT = {".csv": ",", ".tsv": "\t"}


def check_results(path: Path, inputs: Iterable[Path], *, force: bool = False) -> None:
    """Raise unless results can be written to `path`, before they are computed."""
    if path.suffix.lower() not in SUFFIXES:
        *most, last = SUFFIXES
        raise InputError(f"{option('out')} must be a {', '.join(most)} or {last} file, got {path}")
    check_apart(path, inputs)
    check_free(path, force=force)
    if path.suffix.lower() in TEXT:
        check_free(record_path(path), force=force)


def check_columns(points: Columns, path: Path | None, *, json: bool = False) -> None:
    """Raise unless labels, ids and owners can be saved, before anything is computed.

    If `path` is None, they will be printed, as .csv or as JSON.
    """
    for what, entries in (("owner", points.owners), ("id", points.ids)):
        if entries is not None:
            portable_column(what, entries)
    if path is None and json:
        return
    labels = list(Coded.of(points.labels).distinct)
    table = arrow_table({"label": labels, "best_label": labels[::-1]})
    if path is None or path.suffix.lower() in TEXT:
        harmless(table)


def write_results(path: Path | None, run: MemoryRun, *, force: bool = False) -> list[Path]:
    """Write the table, as .csv to standard output if `path` is None; the files that were written.

    A .parquet file is also one that `Valuation.load` reads.
    """
    record = {**run.record, **about_cells(path)}
    columns, about = run.valuation.stored(run.columns(), record)
    return write_columns(path, columns, about, force=force)


def about_cells(path: Path | None) -> dict[str, str]:
    """What a record says about how the cells of a text file are written."""
    return {"cells": RULE} if path is not None and path.suffix.lower() in TEXT else {}


def write_columns(
    path: Path | None, columns: Mapping[str, Any], about: Mapping[str, Any], *, force: bool
) -> list[Path]:
    """Write a table and its record `about`, to standard output if `path` is None; files written."""
    table = arrow_table(columns)
    if path is not None:
        return write_tables(path, table.schema, [table], about, force=force)
    sink = pa.BufferOutputStream()
    csv.write_csv(harmless(table), sink, csv.WriteOptions(quoting_style="needed"))
    with printing() as out:
        out.write(sink.getvalue().to_pybytes().decode())
    return []


def write_tables(
    path: Path, schema: pa.Schema, tables: Iterable[pa.Table], about: Mapping[str, Any], *,
    force: bool,
) -> list[Path]:  # fmt: skip
    """Write a table that comes part by part, as `write_columns` does; a part is a group of rows.

    Parquet and Arrow files hold the record in their metadata; text has no room for one, so it is a
    .json file beside it. Text is written so that no spreadsheet computes it.
    """
    suffix = path.suffix.lower()
    text = suffix in TEXT
    if not text:
        schema = schema.with_metadata({KEY: json.dumps(about).encode()})

    def opened(target: str) -> Any:
        if text:
            options = csv.WriteOptions(delimiter=TEXT[suffix], quoting_style="needed")
            plain = harmless(schema.empty_table()).schema
            return csv.CSVWriter(target, plain, write_options=options)
        return (parquet.ParquetWriter if suffix == ".parquet" else ipc.new_file)(target, schema)

    def write(temporary: Path) -> None:
        with opened(str(temporary)) as writer:
            for table in tables:
                plain = table.cast(schema)
                writer.write_table(harmless(plain) if text else plain)

    write_whole(path, write, replace=force)
    if not text:
        return [path]
    beside, record = record_path(path), json.dumps(about, indent=1) + "\n"
    write_text(beside, record, replace=force)
    return [path, beside]


def result_table(part: Part, columns: Mapping[str, Any]) -> pa.Table:
    """The table of results of one part, without ranks."""
    roles = [role for role in ("id", "owner") if role in part.beside]
    return pa.table({**{role: _present(part, role) for role in roles}, **columns})


def judged_columns(codes: NDArray[Any], judged: Judged, classes: list[Any]) -> dict[str, Any]:
    """The columns of results of points with classes."""
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
    """The columns of results of points with numbers; what others expect needs all rows together."""
    return {"label": pa.array(np.asarray(targets, np.float64)), "value": values}


def _present(part: Part, role: str) -> pa.Array:
    entries = part.beside[role]
    empty = [part.inside + row for row, entry in enumerate(entries) if is_missing(entry)]
    if empty:
        raise InputError(
            f"{part.name} has missing {role}s in {rows_text(empty)}: drop or fill those rows"
        )
    return pa.array(portable(role, entries))
