"""Partitions of Dask collections, and results of tasks, wherever the caller's Dask runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.errors import InputError
from thresher.inputs.checks import column_names, is_dask
from thresher.inputs.labels import raw_labels
from thresher.progress import Advance, progress_bar

FAN = 8  # outcomes of tasks that are added up at a time


@dataclass(frozen=True)
class Partition:
    """Some consecutive rows, not read yet: features, labels and more as tasks of Dask."""

    number: int
    X: Any
    y: Any
    beside: Any = None
    name: str = "X"  # what messages call it


def collected(table: Any) -> Any:
    """A table, brought to this process."""
    return table.compute() if is_dask(table) else table


def names_of(X: Any) -> tuple[str, ...] | None:
    """The names of columns; None for an array."""
    return None if hasattr(X, "chunks") else column_names(X._meta)


def partitions(X: Any, y: Any) -> list[Partition]:
    """The partitions of X, each with its labels."""
    features = _tasks(_in_rows(X))
    labels = _label_tasks(X, y, len(features))
    if len(features) != len(labels):
        raise InputError(
            f"X has {len(features)} partitions but y has {len(labels)}: they must be split alike, "
            "for example with y.rechunk(X.chunks[0]) or y.repartition(...)"
        )
    pairs = zip(features, labels, strict=True)
    return [Partition(number, *pair) for number, pair in enumerate(pairs)]


def _in_rows(X: Any) -> Any:
    """An array that is cut between rows only; a frame always is."""
    if not hasattr(X, "chunks"):
        return X
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions (rows, features), got {X.ndim}")
    return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X


def _tasks(collection: Any) -> list[Any]:
    """A task for each partition, as declared, even if Dask would join some of them."""
    found = np.asarray(collection.to_delayed(), object).ravel().tolist()
    if len(found) != collection.npartitions:  # narrow columns of Parquet files, say
        found = collection.to_delayed(optimize_graph=False)
    return list(found)


def _label_tasks(X: Any, y: Any, count: int) -> list[Any]:
    if is_dask(y):
        if hasattr(X, "chunks") and hasattr(y, "chunks"):
            ours, theirs = X.chunks[0], y.chunks[0]
            if ours != theirs and not _unknown(ours) and not _unknown(theirs):
                if sum(ours) != sum(theirs):
                    raise InputError(f"y has {sum(theirs)} labels but X has {sum(ours)} rows")
                return _tasks(y.rechunk((ours,)))
        return _tasks(y)
    return _cut_labels(X, y, count)


def _cut_labels(X: Any, y: Any, count: int) -> list[Any]:
    """Labels that are in this process, cut like X."""
    import dask

    labels = raw_labels("y", y)
    lengths = X.chunks[0] if hasattr(X, "chunks") else X.map_partitions(len).compute().tolist()
    if _unknown(lengths):
        lengths = dask.compute(*(dask.delayed(len)(part) for part in _tasks(_in_rows(X))))
    if sum(lengths) != len(labels):
        raise InputError(f"y has {len(labels)} labels but X has {int(sum(lengths))} rows")
    ends = np.cumsum([0, *lengths]).tolist()
    return [
        dask.delayed(labels[ends[i] : ends[i + 1]], pure=True, traverse=False) for i in range(count)
    ]


def _unknown(lengths: Any) -> bool:
    return any(length != length for length in lengths)  # noqa: PLR0124 - NaN


def in_tree(tasks: list[Any], merge: Any) -> Any:
    """One task that adds up the results of all tasks in order, a few at a time."""
    while len(tasks) > 1:
        tasks = [merge(tasks[i : i + FAN]) for i in range(0, len(tasks), FAN)]
    return tasks[0]


def outcomes(tasks: list[Any], steps: list[Any], *, title: str, progress: bool) -> list[Any]:
    """The results of `tasks`; the bar counts `steps`, which are tasks that lead to them."""
    import dask

    with progress_bar(title, len(steps), show=progress, unit="partitions") as advance:
        if advance is None:
            return list(dask.compute(*tasks))
        scheduler = dask.base.get_scheduler()
        client = getattr(scheduler, "__self__", None)  # on a cluster it is a method of the client
        if hasattr(client, "gather"):
            return _on_cluster(client, tasks, steps, advance)
        return _in_process(tasks, steps, advance)


def _on_cluster(client: Any, tasks: list[Any], steps: list[Any], advance: Advance) -> list[Any]:
    from distributed import as_completed

    futures = client.compute([*tasks, *steps])  # one graph: steps are computed once
    wanted, watched = futures[: len(tasks)], futures[len(tasks) :]
    for future in as_completed(watched):
        advance(1)
        future.release()  # who needs it on the way has it
    return list(client.gather(wanted))


def _in_process(tasks: list[Any], steps: list[Any], advance: Advance) -> list[Any]:
    import dask
    from dask.callbacks import Callback

    keys = {step.key for step in steps}

    def tell(key: Any, *_: Any) -> None:
        if key in keys:
            advance(1)

    with Callback(posttask=tell):
        return list(dask.compute(*tasks))
