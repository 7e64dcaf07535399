"""cluster_files: from files to values on a cluster of Dask; workers read, count, judge and write.

Each file is a partition, so all workers must see the files and the folder of results. What only all
rows together tell, ranks and percentiles, is left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.errors import InputError, require
from thresher.files import resolved, write_table, write_whole
from thresher.findings import SUGGESTIONS, Worth, classes_present, judge_worth
from thresher.games.semivalues import check_semivalue
from thresher.labels import Classes, check_labels
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.dask_valuation import FORMAT, check_parts, free_parts
from thresher.passes.on_dask import PricedPartitions, price_partitions, same_points
from thresher.passes.partitions import Partition
from thresher.passes.parts import Part, Place
from thresher.passes.tasks import outcomes
from thresher.price_list import PriceList
from thresher.runs.hints import label_hints, row_hints
from thresher.runs.opened import open_points
from thresher.runs.settings import Settings
from thresher.runs.sources import check_lengths, describe_files, read_validation
from thresher.runs.streamed import piece_table, settled_radius
from thresher.runs.valued import versions
from thresher.tables.encoder import Encoder
from thresher.tables.file_parts import FileParts
from thresher.tables.paths import find_files
from thresher.tables.reader import Table
from thresher.valuation import Valuation

ROWS = 1 << 18  # of a part while a file is read
WORST = 5  # rows that are told in words
FIRST = 1 << 10  # rows that hints look at
RECORD = "_record.json"


@dataclass(frozen=True, eq=False)
class Clustered:
    """What came out of a run on a cluster; the values are in the files that were `wrote`."""

    valuation: Valuation  # without values
    rows: int
    suggestions: Mapping[str, int]
    worst: list[dict[str, Any]]
    hints: list[str]
    record: Mapping[str, Any]
    wrote: list[Path]


@dataclass(frozen=True)
class Written:
    """What a worker tells of the file that it wrote."""

    suggestions: Mapping[str, int]
    worst: list[dict[str, Any]]


@contextlib.contextmanager
def cluster(scheduler: str | None) -> Iterator[Any]:
    """A client of the scheduler at this address; without one, of a cluster of this machine."""
    require("distributed", purpose="--engine dask", extra="dask")
    if scheduler == "":
        raise InputError("--scheduler is empty: give an address such as tcp://host:8786")
    from distributed import Client

    try:
        client = Client(scheduler, timeout=10) if scheduler else Client(dashboard_address=None)
    except (OSError, ValueError) as refused:
        raise InputError(f"--scheduler {scheduler} does not answer: {refused}") from None
    with client:
        yield client


def cluster_files(
    settings: Settings, out: Path, *, scheduler: str | None = None, force: bool = False,
    progress: bool = False,
) -> Clustered:  # fmt: skip
    """Value the points of files on a cluster, and let the workers write a folder of results.

    Parameters
    ----------
    settings
        Files, columns and method.
    out
        The folder that gets a Parquet file for each file of points that is not empty.
    scheduler
        The address of a scheduler of Dask; without it, a cluster of this machine is made.
    force
        Replace files that are there.
    progress
        Show progress bars on standard error.
    """
    opened = open_points(settings)
    validation, beside = read_validation(settings, opened.columns)
    if out.suffix:
        raise InputError(f"--out must be a folder with --engine dask, such as values, got {out}")
    for path in (*opened.table.files, *find_files(str(settings.validation))):
        if resolved(path).parent == resolved(out):
            raise InputError(f"--out {out} is the folder of {path}: name another one")
    check_parts(out, force=force)
    encoder = opened.fit(Checkpoint(None, {}), None)
    X_val, y_val = encoder.transform(validation), list(validation.labels)
    check_lengths(validation, X_val, cosine=settings.metric == "cosine")
    source = opened.source(encoder, written=validation.written)
    with cluster(scheduler):
        priced = _priced(settings, source, X_val, y_val, progress=progress)
        scale = float(len(y_val)) if settings.mean else 1.0
        record = _record(settings, opened.table, priced, beside, encoder.describe())
        names = free_parts(out, len(priced.parts))
        told = _write_all(priced, names, scale, record, progress=progress)
    text = json.dumps(record, indent=1, default=str) + "\n"
    write_whole(out / RECORD, lambda path: path.write_text(text, encoding="utf-8"))
    counts: Counter[str] = Counter()
    for each in told:
        counts.update(each.suggestions)
    worst = sorted((row for each in told for row in each.worst), key=lambda row: row["value"])
    return Clustered(
        priced.like, sum(priced.lengths), {word: counts[word] for word in SUGGESTIONS},
        worst[:WORST], _hints(settings, source, priced, encoder), record,
        [Path(name) for name, rows in zip(names, priced.lengths, strict=True) if rows],
    )  # fmt: skip


def _hints(
    settings: Settings, source: FileParts, priced: PricedPartitions, encoder: Encoder
) -> list[str]:
    """What is odd about labels and features."""
    final = priced.priced.prices.validation
    theirs = [final.classes.labels[code] for code in np.unique(final.codes)]
    first = next(source.read(Place(), FIRST))
    found = label_hints(list(priced.priced.tally.first_rows()), theirs, keep_na=settings.keep_na)
    return found + row_hints(first.X, encoder, settings)


def _priced(
    settings: Settings, source: FileParts, X_val: Any, y_val: list[Any], *, progress: bool
) -> PricedPartitions:
    """The first pass; once more where labels of text turn out to mean others."""
    options: dict[str, Any] = {
        "radius": settled_radius(settings, X_val, y_val), "metric": settings.metric,
        "semivalue": check_semivalue(settings.semivalue), "classes": None, "mean": settings.mean,
        "progress": progress,
    }  # fmt: skip
    parts = _partitions(source, {})
    keyed = source.keyed(y_val)
    found = price_partitions(parts, X_val, keyed, **options)
    tally = found.priced.tally
    meaning, labels = source.settle(tally.first_rows(), y_val, tally.points)
    same = [*meaning.values(), *labels] == [*meaning, *keyed]
    if same and [*map(type, meaning.values())] == [*map(type, meaning)]:
        return found
    return price_partitions(_partitions(source, meaning), X_val, labels, **options)


def _partitions(source: FileParts, meaning: Mapping[Any, Any]) -> list[Partition]:
    """A partition for each file, read by whoever works on it."""
    import dask

    read = dask.delayed(read_file, pure=True, nout=3)
    found = []
    for number, path in enumerate(source.files):
        one = dataclasses.replace(
            source, files=(path.resolve(),)
        )  # workers have folders of their own
        X, y, beside = read(dask.delayed(one, traverse=False), dict(meaning))
        found.append(Partition(number, X, y, beside, path.name))
    return found


def read_file(source: FileParts, meaning: Mapping[Any, Any]) -> tuple[Any, Any, Any]:
    """Features, labels and other columns of one file."""
    parts: list[Part] = list(source.read(Place(), ROWS))
    if not parts:
        return np.empty((0, source.width)), [], {role: [] for role in source.beside}
    labels = [label for part in parts for label in list(part.y)]
    beside = {role: [x for part in parts for x in part.beside[role]] for role in source.beside}
    X = np.concatenate([part.X for part in parts])
    return X, [meaning.get(label, label) for label in labels], beside


def _write_all(
    priced: PricedPartitions,
    names: list[str],
    scale: float,
    record: Mapping[str, Any],
    *,
    progress: bool,
) -> list[Written]:  # fmt: skip
    """The second pass: what each partition is worth to block after block, then its file."""
    import dask

    add, write = dask.delayed(add_worth, pure=True), dask.delayed(write_partition, pure=False)
    listed = [dask.delayed(some, traverse=False) for some in priced.prices_by_block()]
    public = Public(
        priced.priced.prices.validation.classes, classes_present(priced.priced.prices), scale
    )
    about = dask.delayed({**priced.like.about(record), "format": FORMAT}, traverse=False)
    starts = np.cumsum([0, *priced.lengths]).tolist()
    tasks = []
    for part, name, first in zip(priced.parts, names, starts[:-1], strict=True):
        worth = None
        for some in listed:
            wanted = priced.print_of(part)
            worth = add(part.number, part.X, part.y, some, worth, wanted)
        where = (part.name, first, name)
        tasks.append(write(part.X, part.y, part.beside, worth, public, where, about))
    return outcomes(tasks, tasks, title="value", progress=progress)


@dataclass(frozen=True)
class Public:
    """What a worker needs to judge, besides sums."""

    classes: Classes
    known: NDArray[np.bool_]  # classes that validation points have
    scale: float


def add_worth(
    number: int, X: Any, y: Any, prices: PriceList, before: Worth | None, wanted: int
) -> Worth | None:
    """What the points of a partition are worth to one block more; None where there are none."""
    if not len(X):
        return None
    points = same_points(number, X, y, prices, wanted if before is None else None)
    return Worth.of(prices, points, before)


def write_partition(
    X: Any, y: Any, beside: Mapping[str, Any], worth: Worth | None, public: Public,
    where: tuple[str, int, str], about: Mapping[str, Any],
) -> Written:  # fmt: skip
    """Judge the rows of one file and write what was found, whole; of no rows, nothing.

    `where` is the name of the file, the number of its first row, and the name of what is written.
    """
    if worth is None:
        return Written({}, [])
    source, first, name = where
    codes = public.classes.encode("y", check_labels("y", y))
    judged = judge_worth(worth, codes, public.known, public.scale)
    part = Part(first, X, y, Place(first + len(X)), source, 0, beside)
    table = piece_table(part, codes, judged, list(public.classes.labels))
    rows = pa.array(np.arange(first, first + len(X)))
    columns = {"row": rows} | {each: table.column(each) for each in table.column_names}
    write_table(name, columns, about)
    low = np.argsort(judged.value, kind="stable")[:WORST]
    words = Counter(table.column("suggestion").to_pylist())
    return Written(dict(words), pa.table(columns).take(low).to_pylist())


def _record(
    settings: Settings, table: Table, priced: PricedPartitions, beside: Mapping[str, Any],
    encoder: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """From what, how and by which version."""
    points = describe_files(Table(pa.table({}), table.files, table.kind), settings.label)
    points["rows"] = sum(priced.lengths)
    encoder["fitted_on"]["rows"] = points["rows"]
    return {
        **versions(),
        "command": settings.command(),
        "settings": dataclasses.asdict(settings),
        "input_digest": points["digest"],
        "points": points,
        "validation": dict(beside),
        "encoder": encoder,
        "engine": "dask",
    }
