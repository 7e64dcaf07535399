"""Scan: a table in files, named and not yet read."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from os import PathLike

import numpy as np
import pyarrow as pa

from thresher.array_types import Array
from thresher.errors import InputError, plain_text
from thresher.passes.parts import Place
from thresher.regression import REGRESSION
from thresher.tables.columns import choose_columns
from thresher.tables.encoder import Encoder
from thresher.tables.feature import Feature
from thresher.tables.file_parts import FileParts
from thresher.tables.reader import scan_table

ROWS = 1 << 16  # of a part, where all of it is read at once
SINGLE = (pa.float16(), pa.float32(), pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16())


class Scan:
    r"""A table in files that may be larger than memory; pass it as X, with y=None.

    Only the names of columns are read before it is used. Then the rows are read part by part.

    Parameters
    ----------
    path
        A .csv, .tsv, .parquet, .arrow or .feather file (text may be .gz), a folder of files of one
        kind, or a pattern such as `parts/*.parquet`. Rows come in the order of the files' names.
    label
        The column of labels. Text labels become integers if all of them are written as plain
        integers.
    features
        Names of columns, or patterns such as "x*". The default is all other columns. They must hold
        numbers.
    ignore
        Columns to leave out: names or patterns.
    delimiter
        What separates cells of a text file. The default is a comma in a .csv and a tab in a .tsv.

    Examples
    --------
    >>> import tempfile, thresher as th
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x1,x2,y\n1,0.1,cat\n0.9,0,dog\n0.1,1,dog\n")
    ...     points = th.Scan(Path(folder, "a.csv"), label="y")
    ...     valuation = th.tknn_shapley(points, None, [[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> valuation.values.round(3).tolist()
    [0.5, -0.5, 0.5]
    """

    def __init__(
        self, path: str | PathLike[str], *, label: str = "y",
        features: Sequence[str] | None = None, ignore: Sequence[str] = (),
        delimiter: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(label, str):
            raise InputError(f"label must be the name of a column, got {label!r}")
        self.table = scan_table(path, delimiter=delimiter)
        if twice := self.table.repeated:
            raise InputError(f"{path} has several columns named {twice[0]!r}: rename them")
        chosen = choose_columns(self.table, label=label, features=features, ignore=ignore)
        self.label, self.names = label, chosen.names
        types = {self.table.data.schema.field(name).type for name in self.names}
        self._dtype = np.float32 if types <= set(SINGLE) else np.float64

    def __repr__(self) -> str:
        about = f"{len(self.names)} features, label {self.label!r}"
        return plain_text(f"Scan({self.table.name}, {about})")

    def read(self) -> tuple[Array, list[Hashable]]:
        """Features and labels, all at once, for example for a validation set."""
        source = self.source_of_parts()
        parts = list(source.read(Place(), ROWS))
        if not parts:
            raise InputError(f"{self.table.name} has no rows")
        labels: list[Hashable] = [label for part in parts for label in list(part.y)]
        meaning, _ = source.settle(dict.fromkeys(labels, 0), [], len(labels))
        return np.concatenate([part.X for part in parts]), [meaning[label] for label in labels]

    def source_of_parts(self, *, missing: bool = False, numbers: bool = False) -> FileParts:
        """The rows, as both passes over them read them; cells may be `missing`, or are refused.

        Labels are `numbers`, or classes.
        """
        fill = math.nan if missing else None
        encoder = Encoder(tuple(Feature(name, "number", fill) for name in self.names))
        return FileParts(
            self.table, self.label, self.names, len(self.names), encoder.transform, plain=True,
            dtype=self._dtype, task=REGRESSION if numbers else None,
        )  # fmt: skip
