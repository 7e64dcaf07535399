"""forest_shapley of points in parts or on Dask: rows are dropped through the trees where they are.

If the structure is not given, a pass of its own grows it from a sample of the rows. Hashes of the
rows decide which ones, so the structure is the same however the rows are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from os import PathLike
from typing import Any

import numpy as np

from thresher.errors import require
from thresher.inputs.checks import is_frame
from thresher.inputs.labels import check_labels
from thresher.neighbors.forests import Forest
from thresher.neighbors.growing import GROWN_FROM, GrowingSample
from thresher.neighbors.tree_columns import TreeColumns
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.dask_valuation import DaskValuation
from thresher.passes.forest_growth import Growth
from thresher.passes.in_parts import VALUE, Run, source_of
from thresher.passes.memory import Account, check_memory, in_use
from thresher.passes.on_dask import run_on_dask
from thresher.passes.partitions import (
    Partition,
    collected,
    in_tree,
    names_of,
    outcomes,
    partitions,
)
from thresher.passes.parts import Place, PlainLabels, Source, read_ahead
from thresher.passes.problem import Problem
from thresher.valuation import Valuation

FITTING = 64 << 20  # bytes that growing takes besides its rows
PIECE = "forest"  # of a checkpoint


def forest_in_parts(
    X: Any, y: Any, growth: Growth, *, owners: Any, progress: bool, memory: int | str | None,
    checkpoint: str | PathLike[str] | None,
) -> Valuation:  # fmt: skip
    """`forest_shapley` in passes over parts."""
    most = None if memory is None else check_memory(memory)
    X, growth = _as_numbers(X, growth)
    columns = _columns_of(X)
    source = source_of(X, y, missing=True, numbers=growth.numbers)
    growth = growth.with_columns(columns)
    about = {
        "forest": growth.identity(), "validation": growth.digest(columns), "mean": growth.mean,
        "semivalue": repr(growth.semivalue), "classes": repr(growth.classes),
        "points": source.identity(),
    }  # fmt: skip
    with Checkpoint(checkpoint, about) as kept:
        problem = forest_problem(growth, source, columns, kept, most)
        problem.side.named(columns.names)
        run = Run(problem, source, kept, most, held=VALUE)
        return run.valuation(owners, progress=progress)


def forest_problem(
    growth: Growth, source: Source, columns: TreeColumns, kept: Checkpoint, memory: int | None
) -> Problem:
    """What the points of a source are valued by, once the structure is grown and saved."""
    found = (growth.forest, {}) if growth.ready else _kept_forest(kept)
    if found is None:
        sample = _sampled(source, growth.sample(), columns, memory)
        found = growth.grown(sample, columns, source), growth.learned(sample)
        _keep_forest(kept, *found)
    return growth.problem(*found)


def _as_numbers(X: Any, growth: Growth) -> tuple[Any, Growth]:
    """A data frame as numbers; a frame is in memory as a whole anyway."""
    if not is_frame(X):
        return X, growth
    given = growth.forest
    columns = given.columns if isinstance(given, Forest) else TreeColumns.of("X", X)
    assert columns is not None  # noqa: S101 - grow_forest knows them
    forest = growth.with_columns(columns).forest
    if isinstance(forest, Forest):
        forest = replace(forest, columns=TreeColumns(columns.width))
    X_val = None if growth.X_val is None else columns.encode("X_val", growth.X_val)
    return columns.encode("X", X), replace(growth, forest=forest, X_val=X_val)


def _columns_of(X: Any) -> TreeColumns:
    """The columns of numbers that a source has."""
    if hasattr(X, "source_of_parts"):
        return TreeColumns(len(X.names), X.names)
    return TreeColumns(np.shape(X)[1] if np.ndim(X) == 2 else 0)


def _sampled(
    source: Source, sample: GrowingSample, columns: TreeColumns, memory: int | None
) -> GrowingSample:
    """The rows of a source that may decide the structure."""
    features, others = source.row_bytes
    held = 2 * sample.folds * GROWN_FROM * (12 * columns.width + 40) + FITTING
    held = source.reading + (held if sample.splits else 0)
    account = Account(features, others, columns.width, 16 * columns.width, held)
    rows = account.rows(memory, in_use())
    with read_ahead(source.read(Place(), rows)) as parts:
        for part in parts:
            sample.add(columns.encode(part.name, part.X), list(part.y))
    return sample


def _keep_forest(kept: Checkpoint, forest: Forest, learned: Mapping[str, Any]) -> None:
    arrays = [[name, array.dtype.str] for name, array in forest.nodes.items()]
    entry = {"about": forest.describe(), "arrays": arrays, "learned": dict(learned)}
    kept.save(PIECE, entry, [array.tobytes() for array in forest.nodes.values()])


def _kept_forest(kept: Checkpoint) -> tuple[Forest, Mapping[str, Any]] | None:
    found = kept.load(PIECE)
    if found is None:
        return None
    entry, chunks = found
    pairs = zip(entry["arrays"], chunks, strict=True)
    arrays = {name: np.frombuffer(chunk, kind) for (name, kind), chunk in pairs}
    return Forest.stored(entry["about"], arrays), entry["learned"]


def forest_on_dask(X: Any, y: Any, growth: Growth, *, owners: Any, progress: bool) -> DaskValuation:
    """`forest_shapley` of Dask arrays and frames: counts now, computes values when asked for."""
    require("dask", purpose="forest_shapley on Dask collections", extra="dask")
    import dask

    parts = partitions(X, y)
    growth = replace(growth, X_val=collected(growth.X_val), y_val=collected(growth.y_val))
    known = isinstance(growth.forest, Forest)
    columns = growth.forest.columns if known else _dask_columns(X, parts)
    growth = growth.with_columns(columns)
    forest, learned = growth.forest, {}
    if not growth.ready:
        see = dask.delayed(_sample, pure=True)
        tasks = [see(part.X, part.y, growth.sample(), columns) for part in parts]
        sample = _merged(tasks, _merge_samples, "sample", progress=progress)
        forest, learned = growth.grown(sample, columns, PlainLabels()), growth.learned(sample)
    problem = growth.problem(forest, learned)
    problem.side.named(names_of(X))
    return run_on_dask(problem, parts, owners, progress=progress)


def _dask_columns(X: Any, parts: Sequence[Partition]) -> TreeColumns:
    """The columns of all partitions together."""
    import dask

    if hasattr(X, "chunks"):
        return TreeColumns(int(X.shape[1]))
    of = dask.delayed(TreeColumns.of, pure=True)
    tasks = [of("X", part.X) for part in parts]
    return _merged(tasks, _merge_columns, "columns", progress=False)


def _sample(X: Any, y: Any, nothing: GrowingSample, columns: TreeColumns) -> GrowingSample:
    """The rows of a partition that may decide the structure."""
    sample = replace(nothing, labels={})
    if not len(X):
        return sample
    return sample.add(columns.encode("X", X), list(check_labels("y", y, len(X))))


def _merged(tasks: list[Any], merge: Any, title: str, *, progress: bool) -> Any:
    """The sum of the results of tasks, added up in a tree, in order."""
    import dask

    root = in_tree(tasks, dask.delayed(merge, pure=True))
    return outcomes([root], tasks, title=title, progress=progress)[0]


def _merge_samples(samples: list[GrowingSample]) -> GrowingSample:
    nothing = replace(samples[0], labels={}, rows=0, features=None, codes=samples[0].codes[:0])
    return reduce(lambda before, sample: before.merge(sample), samples, nothing)


def _merge_columns(found: list[TreeColumns]) -> TreeColumns:
    return reduce(TreeColumns.merge, found)
