"""DaskValuation: values that stay where their points are, until they are computed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError, option
from thresher.files import write_table
from thresher.valuation import Valuation

FORMAT = "thresher.partition/1"
PARTS = "part-*.parquet"


@dataclass(frozen=True, eq=False)
class DaskValuation:
    """What each point is worth, as a Dask array with one chunk per partition.

    Parameters
    ----------
    values
        One number per point, in input order; not computed yet.
    method, params, utility_all, utility_none, owners
        As in `Valuation`; these are known already.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import thresher as th
    >>> X = da.from_array(np.arange(6.0)[:, None], chunks=3)
    >>> spread = th.tknn_shapley(X, [0, 0, 0, 1, 1, 1], [[0.5], [4.5]], [0, 1], metric="euclidean")
    >>> spread
    DaskValuation(tknn-shapley, 6 points in 2 partitions)
    >>> spread.compute().values.round(2)
    array([0.25, 0.25, 0.  , 0.  , 0.25, 0.25])
    """

    values: Any
    method: str
    params: Mapping[str, Any]
    utility_all: float
    utility_none: float
    owners: tuple[Hashable, ...] | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __repr__(self) -> str:
        parts = self.values.numblocks[0]
        return f"DaskValuation({self.method}, {len(self)} points in {parts} partitions)"

    def compute(self) -> Valuation:
        """All values in this process."""
        ends = self.utility_all, self.utility_none
        return Valuation(self.values.compute(), self.method, self.params, *ends, self.owners)

    def efficiency_gap(self) -> float:
        """As in `Valuation`; all values come to this process."""
        return self.compute().efficiency_gap()

    def suspects(self, n: float | None = None, *, fraction: float | None = None) -> Integers:
        """Rows with the lowest values, as in `Valuation`; all values come to this process."""
        return self.compute().suspects(n, fraction=fraction)

    def by_owner(self) -> dict[Any, float]:
        """The value of each owner, as in `Valuation`; all values come to this process."""
        return self.compute().by_owner()

    def to_frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """A data frame, as in `Valuation`; all values come to this process."""
        return self.compute().to_frame(library)

    def save(self, path: str | Path) -> None:
        """Write one Parquet file, as in `Valuation`; with `to_parquet`, the workers write many."""
        self.compute().save(path)

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Write a page of the values alone.

        No process holds all points, so the page has no suggestions. To get suggestions, use
        `thresher value --engine dask`, or a report of `compute()` with some of the points.
        """
        self.compute().report(path, force=force)

    def to_parquet(self, folder: str | Path, *, force: bool = False) -> list[str]:
        """Let the workers write a file for each partition: columns row and value.

        All workers must see the folder. Files are written whole or not at all. If there are files
        of an earlier run, `force` removes them; without `force`, the call is refused. Returns the
        names of all files.
        """
        import dask

        target = Path(folder)
        check_parts(target, force=force)
        names = free_parts(target, self.values.numblocks[0])
        starts = np.cumsum([0, *self.values.chunks[0]]).tolist()
        tasks = self.values.to_delayed().ravel().tolist()
        about = {
            "format": FORMAT, "method": self.method, "params": dict(self.params),
            "utility_all": self.utility_all, "utility_none": self.utility_none, "rows": len(self),
        }  # fmt: skip
        write = dask.delayed(write_part, pure=False)
        each = zip(names, tasks, starts[:-1], strict=True)
        return list(dask.compute(*(write(name, task, first, about) for name, task, first in each)))


def check_parts(folder: Path, *, force: bool) -> None:
    """Refuse a folder that cannot be made, or, without `force`, one with files of partitions."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise InputError(f"cannot create {folder}: {refused.strerror}") from None
    there = sorted(folder.glob(PARTS))
    if there and not force:
        raise InputError(
            f"{there[0]} already exists: name another folder, or use {option('force', value=True)}"
        )


def free_parts(folder: Path, count: int) -> list[str]:
    """The names of files for `count` partitions; existing ones are removed.

    A folder is read as a whole, so nothing of an earlier run may stay.
    """
    for path in folder.glob(PARTS):
        path.unlink()
    return [str(folder.resolve() / f"part-{number:05d}.parquet") for number in range(count)]


def write_part(name: str, values: Floats, first: int, about: Mapping[str, Any]) -> str:
    """Write the values of one partition, whose first row has this number; the name of the file."""
    rows = np.arange(first, first + len(values))
    write_table(name, {"row": rows, "value": values}, about)
    return name
