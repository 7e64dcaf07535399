"""The points of a run that may exceed memory: files and columns, named and not yet read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from thresher.errors import InputError
from thresher.passes.checkpoint import Checkpoint
from thresher.progress import Advance
from thresher.runs.choice import ARRAYS
from thresher.runs.guessed import Guesses, guess_roles, with_first_rows
from thresher.runs.settings import Settings
from thresher.tables.columns import Columns, choose_columns
from thresher.tables.encoder import Encoder
from thresher.tables.file_parts import FileParts
from thresher.tables.label_files import read_label_file
from thresher.tables.paths import find_files, kind_of
from thresher.tables.reader import Table, common_schema, read_batches, scan_table
from thresher.tables.tree_encoder import TreeEncoder


@dataclass(frozen=True, eq=False)
class PointFiles:
    """Files of points and what their columns are for; `columns` has no rows."""

    table: Table
    columns: Columns
    settings: Settings
    entries: Any = None  # labels that have a file of their own
    text: bool = False  # which may be one of text
    guesses: Guesses = field(default_factory=dict)  # what columns were taken for, unasked

    def source(self, encoder: Encoder | TreeEncoder, *, written: bool) -> FileParts:
        """The rows as numbers; `written` says whether labels of the validation set are text."""
        beside = {"id": self.settings.id, "owner": self.settings.owner}
        return FileParts(
            self.table, self.settings.label, self.columns.names, len(encoder.names),
            encoder.transform,
            plain=isinstance(encoder, Encoder)
            and all(each.kind == "number" and not each.means for each in encoder.features),
            categorical=self.columns.categorical,
            beside={role: name for role, name in beside.items() if name is not None},
            written=written, entries=self.entries, text=self.text, task=self.settings.task,
            cells=self.columns.cells,
        )  # fmt: skip

    def fit(self, checkpoint: Checkpoint, advance: Advance | None) -> Encoder | TreeEncoder:
        """The encoder: by a pass over all rows where it must be, else by the first ones."""
        kept, trees = checkpoint.load("encoder"), self.settings.method == "forest"
        if kept is not None:
            return (TreeEncoder if trees else Encoder).from_record(kept[0])
        tables, settings = self._tables(advance), self.settings
        encoder: Encoder | TreeEncoder
        if trees:
            encoder = TreeEncoder.fit_parts(tables, self.table.name)
        else:
            encoder = Encoder.fit_parts(
                tables, fill=settings.fill, standardize=settings.standardize,
                scaling=settings.scaling, source=self.table.name, whole=self.fits,
            )  # fmt: skip
        checkpoint.save("encoder", encoder.describe())
        return encoder

    @property
    def fits(self) -> bool:
        """Whether something is learned from all rows."""
        settings = self.settings
        words = settings.standardize or settings.method == "forest"
        return words or bool(self.columns.categorical)

    def first_rows(self) -> Columns:
        """The columns with their first rows, where rows tell embeddings from other tables."""
        if self.table.kind in ARRAYS or not self.settings.numbers:
            return self.columns
        some = with_first_rows(self.table).data.select(list(self.columns.names))
        return dataclasses.replace(
            self.columns, features=some, labels=(0,) * len(some), rows=np.arange(len(some))
        )

    def _tables(self, advance: Advance | None) -> Iterator[Columns]:
        """The features, a few rows at a time."""
        for path in self.table.files:
            for first, some in read_batches(self.table, path, self.columns.names):
                yield Columns(
                    tuple(range(some.num_rows)), some, categorical=self.columns.categorical,
                    source=str(path), rows=np.arange(first, first + some.num_rows),
                    cells=self.columns.cells,
                )  # fmt: skip
                if advance is not None and self.fits:
                    advance(some.num_rows)


def open_points(settings: Settings) -> PointFiles:
    """The points that the settings name."""
    files = find_files(settings.file)
    entries, text = None, False
    guesses: Guesses = {}
    if kind_of(files[0]) == "npy":
        table, entries, text = _open_arrays(files, settings.label)
    else:
        table = scan_table(settings.file, **settings.reading())
        some = with_first_rows(table) if settings.guess else table
        settings, guesses = guess_roles(settings, some)
    columns = choose_columns(
        table, label=settings.label, features=settings.features or None, id=settings.id,
        owner=settings.owner, categorical=settings.categorical, image=settings.image,
        ignore=settings.ignore, cells=settings.cells(), task=settings.task,
    )  # fmt: skip
    for role in ("id", "owner"):
        check_kept(table, getattr(settings, role), role)
    if entries is not None:
        table = dataclasses.replace(table, kind="npy")
    return PointFiles(table, columns, settings, entries, text, guesses)


def check_kept(table: Table, name: str | None, role: str, way_out: str = "") -> None:
    """Refuse a column whose entries cannot be kept between passes, before any is read."""
    if name is None or table.kind == "npy":
        return
    kind = table.data.schema.field(name).type
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = pa.types.is_temporal, pa.types.is_decimal, pa.types.is_binary, pa.types.is_large_binary
    if any(test(plain) for test in tests):
        raise InputError(
            f"{table.name} column {name!r} of type {plain} cannot be saved: use strings or numbers "
            f"as {role}s{way_out}"
        )


def _open_arrays(files: tuple[Path, ...], label: str) -> tuple[Table, Any, bool]:
    """A table of .npy files, to which the labels of a file of their own are a column."""
    schema = common_schema(files, "npy", None)
    rows = sum(len(np.load(path, mmap_mode="r")) for path in files)
    path = Path(label)
    if path.suffix.lower() == ".npy" and path.is_file():
        entries: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        text = False
        if entries.shape != (rows,):
            raise InputError(
                f"{path} has labels of shape {entries.shape} but {files[0]} has {rows} rows"
            )
    else:
        found = read_label_file(label, str(files[0]), rows)
        entries, text = found.entries, found.text is not None
    data = schema.append(pa.field(label, pa.string())).empty_table()
    return Table(data, files, "npz"), entries, text
