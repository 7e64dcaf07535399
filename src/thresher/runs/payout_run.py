"""From a file of values to a statement of what each owner is paid."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import InputError, option
from thresher.files import KEY, open_parquet, reading
from thresher.owner_valuation import OwnerValuation
from thresher.payouts.payout import payout
from thresher.payouts.shared_rows import SharedRows, shared_rows
from thresher.payouts.statement import Payout
from thresher.runs.memory_run import encoded
from thresher.runs.settings import Settings
from thresher.runs.sources import read_sources
from thresher.valuation import Valuation


def pay_file(
    path: Path, *, pot: int, floor: int = 0, minimum: int = 0, cap: int | None = None,
    flooring: str = "owner", within: float | None = None,
) -> Payout:  # fmt: skip
    """The payout by the values of a .parquet file, by the rule that its record says.

    With `within`, it also lists rows of different owners that are this close. For that, the points,
    which the record names, are read again. The other arguments are those of `payout`.
    """
    about = _record(path)
    owners = about.get("format") == OwnerValuation.file_format
    valuation: Valuation = (OwnerValuation if owners else Valuation).load(path)
    if valuation.owners is None:
        raise InputError(
            f"{path} has no owners: name their column with {option('owner')} when the points are "
            "valued"
        )
    found = payout(valuation, pot=pot, floor=floor, minimum=minimum, cap=cap, flooring=flooring)
    source = {key: about[key] for key in ("command", "input_digest", "thresher") if key in about}
    found = dataclasses.replace(found, about={**found.about, "values": source})
    return found if within is None else dataclasses.replace(found, shared=_shared(about, within))


def _record(path: Path) -> Any:
    """The record in the metadata of a file of values."""
    with reading(path, "table of values") as file:
        if file.suffix.lower() != ".parquet":
            raise InputError(
                f"{file} is not a .parquet file, and other kinds of files round the values: write "
                "the values with thresher value --out values.parquet"
            )
        with open_parquet(file) as opened:
            metadata = opened.schema_arrow.metadata or {}
        if KEY not in metadata:
            raise InputError(
                f"{file} was not written by thresher value: write the values with thresher value "
                "--out values.parquet"
            )
        return json.loads(metadata[KEY])


def _shared(about: Any, within: float) -> tuple[SharedRows, ...]:
    """Rows that several owners have, in the files that the record names."""
    if "settings" not in about:
        raise InputError(
            f"{option('within')} needs values that thresher value wrote, which say where the "
            "points are: leave it out, or value the points with thresher value"
        )
    known = {each.name for each in dataclasses.fields(Settings)}
    asked: dict[str, Any] = {
        name: tuple(entry) if isinstance(entry, list) else entry
        for name, entry in about["settings"].items()
        if name in known - {"memory", "engine"}
    }
    sources = read_sources(Settings(**asked))
    if sources.about["input_digest"] != about.get("input_digest"):
        raise InputError(
            f"{asked['file']} has changed since its values were computed: run thresher value "
            "again, or restore the file"
        )
    _, data = encoded(sources.settings, sources.points, sources.validation, progress=False)
    X = np.nan_to_num(np.asarray(data[0], np.float64), nan=-1e30)
    return shared_rows(X, sources.points.owners, radius=within)
