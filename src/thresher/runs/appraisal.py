"""What an owner's own points are worth, from a published price list and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats
from thresher.errors import InputError, ScaleWarning, ThresherWarning, option
from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import rows_text
from thresher.inputs.spelling import first_names, missing
from thresher.price_list import NOISE, UNSCALED, PriceList, unknown_labels
from thresher.regression import REGRESSION, check_targets
from thresher.runs.results import about_cells, write_columns
from thresher.runs.scales import scale_mismatch
from thresher.sides.forest_side import ForestSide
from thresher.sides.target_side import TargetClasses
from thresher.tables.column_profile import profile
from thresher.tables.columns import Columns, choose_columns
from thresher.tables.encoder import Encoder
from thresher.tables.guesses import guess_id
from thresher.tables.reader import Table, input_digest, read_table

FORMAT = "thresher.appraisal/1"


@dataclass(frozen=True, eq=False)
class Appraisal:
    """The value of each point, for its owner only."""

    points: Columns
    values: Floats
    record: dict[str, Any]

    def write(self, path: Path | None, *, force: bool = False) -> list[Path]:
        """Write row, id, label and value, or print them if `path` is None; the files written."""
        record = {**self.record, **about_cells(path)}
        return write_columns(path, self.columns(), record, force=force)

    def columns(self) -> dict[str, Any]:
        """Row, id, label and value, one entry per point."""
        columns: dict[str, Any] = {"row": self.points.rows.tolist()}
        if self.points.ids is not None:
            columns["id"] = list(self.points.ids)
        return columns | {"label": list(self.points.labels), "value": self.values.tolist()}

    def rows(self) -> list[dict[str, Any]]:
        """Row, id, label and value, one dictionary per point."""
        columns = self.columns()
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


def appraise_files(
    points: str, prices: Path, *, label: str = "y", id: str | None = None,  # noqa: A002
    ignore: Sequence[str] = (), newcomer: bool = False, delimiter: str | None = None,
    fill: str | float | None = None, anyway: bool = False,
) -> Appraisal:  # fmt: skip
    r"""Value the points of a file by a price list.

    Parameters
    ----------
    points, label, id, ignore, delimiter, fill
        The file, what its columns are for, and what stands for missing numbers. Features are those
        that the list names; if it names none, all other columns.
    prices
        A file that `PriceList.save` or `thresher release` wrote.
    newcomer
        Value points that were not counted, each as if it alone were added.
    anyway
        Only warn of a price list whose values are too large, and of points that are plainly on
        another scale than its validation set; without it both are refused.

    Returns
    -------
    Appraisal
        `.values` has one value per point.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import thresher as th
    >>> from thresher.runs.appraisal import appraise_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> counts = th.NeighborCounts([[1.0, 0.0], [0.0, 1.0]], ["yes", "no"])
    >>> _ = counts.add([[0.9, 0.1], [0.2, 0.8]], ["yes", "no"])
    >>> counts.price_list().save(folder / "prices.json")
    >>> _ = (folder / "points.csv").write_text("a,b,y\n0.9,0.1,yes\n0.9,0.1,no\n")
    >>> appraise_files(str(folder / "points.csv"), folder / "prices.json").values.round(2)
    array([ 0.5, -0.5])
    """
    listed = PriceList.load(prices)
    table = read_table(points, delimiter=delimiter)
    known_as: Any = listed.side.classes
    numbers = isinstance(known_as, TargetClasses)
    about: dict[str, Any] = {"label": label, "id": id, "ignore": ignore}
    about |= {"task": REGRESSION} if numbers else {}
    columns, X = _rows(table, listed, about, fill)
    _check_width(columns, X.shape[1], listed.side.width)
    _check_scales(columns.source, X, listed, anyway=anyway)
    y = (
        _known_targets(columns.source, columns.labels, known_as.bounds)
        if numbers
        else _known_labels(columns.source, columns.labels, listed.classes)
    )
    if listed.noise:
        warnings.warn(NOISE, ThresherWarning, stacklevel=2)
    values = listed.newcomer_values(X, y) if newcomer else listed.values(X, y)
    record = {
        "format": FORMAT,
        "points": [str(path) for path in table.files],
        "prices": str(prices),
        "prices_digest": input_digest([prices]),
        "label": label,
        "newcomer": newcomer,
        "semivalue": listed.semivalue,
        **_near(listed),
    }
    return Appraisal(columns, values, record)


def _judges(listed: PriceList) -> Validation:
    """The validation set of a price list; trees have one without a radius."""
    side = listed.side
    return side.validation if isinstance(side, ForestSide) else listed.validation


def _near(listed: PriceList) -> dict[str, Any]:
    """What an appraisal says about what near means."""
    if isinstance(listed.side, ForestSide):
        return {"metric": "leaves", "trees": listed.side.forest.size}
    kernel = {} if listed.kernel is None else listed.kernel.record()
    return {"metric": listed.validation.metric, "radius": listed.radius, **kernel}


def _rows(
    table: Table, listed: PriceList, about: dict[str, Any], fill: str | float | None
) -> tuple[Columns, Array]:
    """The rows of a table as numbers, by the encoding that the price list carries if it has one."""
    encoder, known, categorical = None, _judges(listed).columns, []
    if listed.encoding is not None:
        if fill is not None:
            raise InputError(
                f"{option('fill')} cannot be used here: the price list says what replaces missing "
                "cells"
            )
        encoder = Encoder.from_record(listed.encoding)
        known = tuple(each.name for each in encoder.features)
        categorical = [each.name for each in encoder.features if each.kind == "categorical"]
    names = table.data.column_names
    for name in known or ():
        if name not in names:
            raise missing(table.name, "column", name, names, "a feature of the price list")
    columns = choose_columns(table, features=known, categorical=categorical, **about)
    encoder = Encoder.fit(columns, fill=fill) if encoder is None else encoder
    return columns, encoder.transform(columns)


def _check_width(columns: Columns, width: int, wanted: int) -> None:
    """Refuse a table whose number of features is not that of a price list that names none."""
    if width == wanted:
        return
    said = (
        f"{columns.source} has {width} columns of features ({first_names(columns.names)}), but the "
        f"price list expects {wanted}"
    )
    if width < wanted:
        raise InputError(
            f"{said}: add the columns that are missing, in the order in which the points of the "
            "list had them"
        )
    odd = guess_id(profile(name, columns.features.column(name)) for name in columns.names)
    way_out = f"leave the others out with {option('ignore')}"
    if odd is not None:
        way_out = f"{odd.column!r} looks like an id: leave it out with "
        way_out += option("ignore", [odd.column])
    raise InputError(f"{said}: {way_out}")


def _check_scales(source: str, X: Array, listed: PriceList, *, anyway: bool) -> None:
    """Refuse, or with `anyway` warn of, values that would have the wrong size."""
    if not listed.scaled and not anyway:  # with it, the list warns by itself
        raise InputError(
            f"{UNSCALED}: ask for another list, or pass {option('anyway', value=True)}"
        )
    judges = _judges(listed)
    mismatch = scale_mismatch(X, judges)
    if not mismatch:
        return
    message = f"{source} is on another scale than the price list: {mismatch}"
    if anyway:
        warnings.warn(message, ScaleWarning, stacklevel=3)
        return
    harmless = " or differ by a common factor" if judges.metric == "cosine" else ""
    raise InputError(
        f"{message}; scale its columns by the same public numbers as the validation set, or pass "
        f"{option('anyway', value=True)} if the rows are right{harmless}"
    )


def _known_targets(source: str, labels: Sequence[Hashable], bounds: tuple[float, float]) -> Floats:
    """Targets within the bounds of the list; others are moved to the nearer bound, with a warning.

    A private release counts them the same way.
    """
    targets = check_targets("y", labels)
    kept = np.clip(targets, *bounds)
    outside = np.flatnonzero(kept != targets)
    if len(outside):
        warnings.warn(
            f"{source} has targets outside the bounds of the price list, {bounds[0]:g} to "
            f"{bounds[1]:g}, in {rows_text(outside.tolist())}: each is valued as the nearer bound, "
            "as a private release counts it",
            ThresherWarning,
            stacklevel=3,
        )
    return kept


def _known_labels(
    source: str, labels: Sequence[Hashable], classes: Sequence[Hashable]
) -> list[Hashable]:
    """Labels as the list has them: text where the file has numbers, or the other way around."""
    written = {str(known): known for known in classes}
    exact = set(classes)
    found = [label if label in exact else written.get(str(label), label) for label in labels]
    strange = [row for row, label in enumerate(found) if label not in exact]
    if strange:
        raise unknown_labels(source, strange, found[strange[0]], classes)
    return found
