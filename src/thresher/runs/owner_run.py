"""A run whose players are owners: from files to a value for each owner."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import LabelWarning
from thresher.games.semivalues import check_semivalue
from thresher.owner_valuation import OwnerValuation
from thresher.owners import owner_shapley
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.in_parts import Run
from thresher.passes.memory import check_memory
from thresher.passes.owner_passes import OWNER, OwnerRun, run_owners_on_dask
from thresher.runs.choice import original_settings
from thresher.runs.chosen_method import grown, radius_of, target_data
from thresher.runs.file_run import FileRun
from thresher.runs.memory_run import encoded
from thresher.runs.results import about_cells, write_columns
from thresher.runs.roles import role_record
from thresher.runs.settings import REGRESSION, Data, Settings
from thresher.runs.sources import read_sources
from thresher.runs.table_folder import cluster, file_partitions


@dataclass(frozen=True, eq=False)
class OwnersValued:
    """What came out of a run."""

    valuation: OwnerValuation  # the values of owners
    record: Mapping[str, Any]  # from what, how and by which version
    # how many points each owner has; None where they were not counted
    points: tuple[int, ...] | None = None

    def write(self, path: Path | None, *, force: bool = False) -> list[Path]:
        """Write the table, as .csv to standard output if `path` is None; the files written.

        A .parquet file is also one that `OwnerValuation.load` reads.
        """
        columns: dict[str, Any] = {"rank": self.valuation.ranks()}
        if self.points is not None:
            columns["points"] = np.array(self.points, np.int64)
        found, about = self.valuation.stored(columns, {**self.record, **about_cells(path)})
        return write_columns(path, {"owner": found.pop("owner"), **found}, about, force=force)


def value_owners(
    settings: Settings, *, scheduler: str | None = None, checkpoint: str | None = None,
    progress: bool = False,
) -> OwnersValued:  # fmt: skip
    """Value the owners of the points of files: in memory, in parts, or on a cluster."""
    if settings.memory is None and settings.engine == "local":
        return _in_memory(settings, progress=progress)
    run = FileRun.of(settings)
    if settings.engine == "dask":
        run = run.fit()
        with cluster(scheduler):
            parts = file_partitions(run.source)
            owners = [part.beside["owner"] for part in parts]
            found = run_owners_on_dask(run.problem, parts, owners, run.source, progress=progress)
        how: dict[str, Any] = {"engine": "dask"}
    else:
        memory = check_memory(settings.memory)
        with Checkpoint(checkpoint, {**run.identity(), "players": "owners"}) as kept:
            run = run.fit(kept)
            reading = Run(run.problem, run.source, kept, memory, held=OWNER)
            found = OwnerRun(reading, progress=progress).valuation()
        how = {"streamed": {"memory": memory}}
    record = run.record(found.params["points"], role_record(run.guesses), how)
    return OwnersValued(found, record)


def _in_memory(settings: Settings, *, progress: bool) -> OwnersValued:
    sources = read_sources(settings)
    settings, points = sources.settings, sources.points
    encoder, data = encoded(settings, points, sources.validation, progress=progress)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y and y_val", LabelWarning)  # hints say it
        found = _valued(settings, data, points.owners, progress=progress)
    counts = Counter(points.owners)
    asked = original_settings(settings, sources.about["chosen"])
    record = {**asked.record(), **sources.about, "encoder": encoder.describe()}
    return OwnersValued(found, record, tuple(counts[owner] for owner in found.owners or ()))


def _valued(settings: Settings, data: Data, owners: Any, *, progress: bool) -> OwnerValuation:
    about: dict[str, Any] = {
        "owners": owners, "semivalue": check_semivalue(settings.semivalue), "mean": settings.mean,
        "progress": progress,
    }  # fmt: skip
    if settings.numbers:
        data, about["empty"] = target_data(settings, data)
        about["task"] = REGRESSION
    if settings.method == "forest":
        return owner_shapley(*data, forest=grown(settings, data, progress=False), **about)
    about |= {"metric": settings.metric, "kernel": settings.weighing, "rings": settings.rings}
    return owner_shapley(*data, radius=radius_of(settings, *data[2:]), **about)
