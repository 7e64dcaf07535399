"""The outcomes of tasks, wherever the caller's Dask runs them, with a progress bar."""

from __future__ import annotations

from typing import Any

from thresher.progress import Advance, progress_bar


def outcomes(tasks: list[Any], steps: list[Any], *, title: str, progress: bool) -> list[Any]:
    """The outcomes of `tasks`; the bar counts `steps`, which are tasks on the way to them."""
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
