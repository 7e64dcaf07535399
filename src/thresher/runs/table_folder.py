"""A folder of results that the workers of a Dask cluster write.

Each file of points is a partition, so all workers must see the files and the folder. Ranks and
percentiles need all rows together, so they are left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.errors import InputError, option, require
from thresher.files import resolved, write_table, write_text
from thresher.findings.label_findings import Worth, classes_present, judge_worth
from thresher.inputs.checked_inputs import Points
from thresher.inputs.labels import Classes, check_labels
from thresher.passes.dask_valuation import FORMAT, check_parts, free_parts
from thresher.passes.on_dask import DaskRun, add_values
from thresher.passes.partitions import Partition, outcomes
from thresher.passes.parts import Part, Place
from thresher.passes.problem import Meaning, Priced, named
from thresher.price_list import PriceList
from thresher.runs.file_run import FileRun
from thresher.runs.results import judged_columns, result_table, target_columns
from thresher.runs.settings import Settings
from thresher.runs.summary import Highlights, Summary
from thresher.tables.file_parts import FileParts
from thresher.tables.paths import find_files

ROWS = 1 << 18  # of a part while a file is read
RECORD = "_record.json"


def value_to_folder(
    settings: Settings, out: Path, *, scheduler: str | None = None, force: bool = False,
    progress: bool = False,
) -> Summary:  # fmt: skip
    """Value the points of files on a cluster, and let the workers write a folder of results.

    The folder gets a Parquet file for each file of points that is not empty.
    """
    run = FileRun.of(settings)
    if out.suffix:
        raise InputError(
            f"{option('out')} must be a folder with {option('engine', 'dask')}, such as values, "
            f"got {out}"
        )
    beside = () if settings.validation is None else find_files(settings.validation)
    for path in (*run.table.files, *beside):
        if resolved(path).parent == resolved(out):
            raise InputError(f"{option('out', str(out))} is the folder of {path}: name another one")
    check_parts(out, force=force)
    run = run.fit()
    problem = run.problem
    with cluster(scheduler):
        parts = DaskRun(problem, file_partitions(run.source), run.source, progress)
        priced = parts.count()
        run.check(priced)
        record = run.record(priced.rows, run.guessed(priced), {"engine": "dask"})
        names = free_parts(out, len(parts.parts))
        highlights = _write_all(parts, priced, names, record)
    text = json.dumps(record, indent=1, default=str) + "\n"
    write_text(out / RECORD, text)
    lengths = zip(names, parts.lengths(priced), strict=True)
    wrote = [Path(name) for name, rows in lengths if rows]
    return run.summary(priced, highlights, record, wrote, [])


@contextlib.contextmanager
def cluster(scheduler: str | None) -> Iterator[Any]:
    """A client of the scheduler at this address; if None, of a cluster on this machine."""
    require("distributed", purpose=option("engine", "dask"), extra="dask")
    if scheduler == "":
        raise InputError(f"{option('scheduler')} is empty: give an address such as tcp://host:8786")
    from distributed import Client

    try:
        client = Client(scheduler, timeout=10) if scheduler else Client(dashboard_address=None)
    except (OSError, ValueError) as refused:
        raise InputError(f"{option('scheduler', scheduler)} does not answer: {refused}") from None
    with client:
        yield client


def file_partitions(source: FileParts) -> list[Partition]:
    """A partition for each file; the worker that needs it reads it."""
    import dask

    read = dask.delayed(read_file, pure=True, nout=3)
    found = []
    for number, path in enumerate(source.table.files):
        alone = dataclasses.replace(source.table, files=(path.resolve(),))  # workers are elsewhere
        one = dataclasses.replace(source, table=alone)
        X, y, beside = read(dask.delayed(one, traverse=False))
        found.append(Partition(number, X, y, beside, path.name))
    return found


def read_file(source: FileParts) -> tuple[Any, Any, Any]:
    """Features, labels and other columns of one file."""
    parts: list[Part] = list(source.read(Place(), ROWS))
    if not parts:
        return np.empty((0, source.width)), [], {role: [] for role in source.beside}
    labels = [label for part in parts for label in list(part.y)]
    beside = {role: [x for part in parts for x in part.beside[role]] for role in source.beside}
    return np.concatenate([part.X for part in parts]), labels, beside


def _write_all(
    run: DaskRun, priced: Priced, names: list[str], record: Mapping[str, Any]
) -> Highlights:
    """The second pass: value each partition, block of prices by block, and write its file."""
    import dask

    write = dask.delayed(write_partition, pure=False)
    about = {**priced.valuation().about(record), "format": FORMAT}
    terms = Terms(about=about, meaning=priced.meaning, divisor=priced.divisor)
    add: Any = partial(add_values, divisor=priced.divisor, neighbors="auto")
    if not priced.numbers:
        known = priced.side.classes, classes_present(priced.prices)
        terms, add = dataclasses.replace(terms, classes=known[0], known=known[1]), add_worth
    shared = dask.delayed(terms, traverse=False)
    starts = np.cumsum([0, *run.lengths(priced)]).tolist()
    tasks = [
        write(part.X, part.y, part.beside, worth, shared, (part.name, first, name))
        for part, worth, first, name in zip(
            run.parts, run.value(priced, add), starts[:-1], names, strict=True
        )
    ]
    highlights = Highlights()
    for each in outcomes(tasks, tasks, title="value", progress=run.progress):
        highlights.merge(each)
    return highlights


@dataclass(frozen=True)
class Terms:
    """What a worker needs to judge and to write rows, besides their values."""

    meaning: Meaning
    divisor: float
    about: Mapping[str, Any]
    classes: Classes | None = None  # none where labels are numbers
    known: NDArray[np.bool_] | None = None  # classes that validation points have


def add_worth(
    prices: PriceList, points: Points, before: Worth | None, _last: bool  # noqa: FBT001
) -> Worth:  # fmt: skip
    """Add what the points of a partition are worth to one more block of prices."""
    return Worth.of(prices, points, before)


def write_partition(
    X: Any, y: Any, beside: Mapping[str, Any], worth: Any, terms: Terms,
    where: tuple[str, int, str],
) -> Highlights:  # fmt: skip
    """Judge the rows of one file and write what was found; without rows, write nothing.

    `worth` is what they are worth to all blocks, or their values where labels are numbers.
    `where` is the name of the file, the number of its first row, and the name of what is written.
    """
    highlights = Highlights()
    if worth is None:
        return highlights
    source, first, name = where
    part = named(Part(first, X, y, Place(first + len(X)), source, 0, beside), terms.meaning)
    if terms.classes is None or terms.known is None:
        found = target_columns(y, worth)
    else:
        codes = terms.classes.encode("y", check_labels("y", part.y))
        judged = judge_worth(worth, codes, terms.known, terms.divisor)
        found = judged_columns(codes, judged, list(terms.classes.labels))
    table = result_table(part, found)
    rows = pa.array(np.arange(first, first + len(X)))
    columns = {"row": rows} | {each: table.column(each) for each in table.column_names}
    write_table(name, columns, terms.about)
    highlights.add(pa.table(columns))
    return highlights
