"""The file of a store: the validation set, the points, and checksums that reveal damage."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.counts import NeighborCounts
from thresher.drafts import PREFIX
from thresher.errors import InputError
from thresher.files import BROKEN, sealed, sync_folder, why, write_whole, writing
from thresher.inputs.checks import check_choice
from thresher.keeper import Keeper
from thresher.live.points import PointTable, checksum
from thresher.sides.stored import stored_kind, stored_side

NAME = "live.db"
SNAPSHOT = "snapshot.npz"  # what a store of version 0.1 has instead
KIND = "thresher.live/2"
FORMATS = {
    "ball": KIND,
    "rings": "thresher.ring-live/1",
    "forest": "thresher.forest-live/1",
    "targets": "thresher.target-live/2",
    "ring-targets": "thresher.ring-target-live/2",
    "forest-targets": "thresher.forest-target-live/2",
}
SCHEMA = """
CREATE TABLE about (text TEXT NOT NULL, features BLOB NOT NULL, labels BLOB NOT NULL);
CREATE TABLE total (points INTEGER NOT NULL, checksums INTEGER NOT NULL, store TEXT NOT NULL);
CREATE TABLE point (place INTEGER PRIMARY KEY, id NOT NULL, code INTEGER NOT NULL,
    features BLOB NOT NULL, checksum INTEGER NOT NULL)
"""
SOME = 1 << 14  # points that are read at a time


class StoreFile:
    """An open file of points. What `write` puts there is kept once `commit` returns."""

    def __init__(self, path: Path, *, log: bool = True) -> None:
        self._keeper = Keeper(path, SCHEMA, kind=KIND, what="store", log=log)
        self.close = self._keeper.close
        self.compact = self._keeper.compact

    def read(self) -> tuple[NeighborCounts, PointTable]:
        """Read all points, and counts without any; raise if the file is damaged."""
        try:
            store, counts, points = self._read_about()
            self._read_points(store, points, counts.side.classes.code_range)
        except BROKEN as broken:
            name = f"store {self._keeper.path}"
            if str(broken).startswith(name):
                raise
            reason = str(broken) or type(broken).__name__
            raise InputError(f"{name} is damaged: {reason}; put back a copy of it") from broken
        return counts, points

    def write(self, points: PointTable) -> None:
        """Write the points that have changed."""
        changed, points.changed = points.changed, {}
        self._keeper.begin()
        gone = ((place,) for place, name in changed.items() if name is None)
        self._keeper.do_many("DELETE FROM point WHERE place = ?", gone)
        entries = points.entries(name for name in changed.values() if name is not None)
        self._keeper.do_many("INSERT OR REPLACE INTO point VALUES (?, ?, ?, ?, ?)", entries)

    def commit(self, points: PointTable) -> None:
        """Return when all changes are on the disk."""
        self.write(points)
        self._keeper.do("UPDATE total SET points = ?, checksums = ?", len(points), points.checksums)
        self._keeper.commit()

    def describe(self, counts: NeighborCounts, dtype: str) -> None:
        """Write the public side, which never changes."""
        side, arrays = counts.side, counts.side.arrays()
        labels, features = arrays.pop("labels"), arrays.pop("features")
        about = {
            "format": FORMATS[side.kind],
            "store": secrets.token_hex(16),
            **side.describe(),
            "dtype": dtype,
            "features": _shape(features),
        }
        if arrays:  # that follow the features in their place
            about["arrays"] = {name: _shape(array) for name, array in arrays.items()}
        together = b"".join(array.tobytes() for array in (features, *arrays.values()))
        parts = together, labels.tobytes()
        self._keeper.begin()
        self._keeper.do(
            "INSERT INTO about VALUES (?, ?, ?)", json.dumps(sealed(about, *parts)), *parts
        )
        self._keeper.do("INSERT INTO total VALUES (0, 0, ?)", about["store"])

    def _read_about(self) -> tuple[str, NeighborCounts, PointTable]:
        text, *parts = self._keeper.row("SELECT text, features, labels FROM about")
        about: Any = json.loads(text)
        kind = stored_kind(about, FORMATS, *parts)
        codes = np.int64 if "grid" in about else np.int32  # steps of targets, or classes
        arrays, start = {"labels": np.frombuffer(parts[1], codes)}, 0
        shapes = {"features": about["features"], **about.get("arrays", {})}
        for name, (dtype, *shape) in shapes.items():
            found = np.frombuffer(parts[0], dtype, math.prod(shape), start)
            arrays[name] = found.reshape(shape).copy()
            start += found.nbytes
        return about["store"], *empty_store(kind, about, arrays)

    def _read_points(self, store: str, points: PointTable, classes: tuple[int, int]) -> None:
        rows = self._keeper.rows(
            "SELECT place, id, code, features, checksum FROM point ORDER BY place"
        )
        count, last = 0, -1
        while some := list(islice(rows, SOME)):
            places, names, codes, features, checksums = zip(*some, strict=True)
            wanted = tuple(map(checksum, places, names, codes, features))
            rising = all(a < b for a, b in pairwise((last, *places)))
            low, high = classes
            if wanted != checksums or not rising or not low <= min(codes) <= max(codes) <= high:
                raise InputError("a point was changed after it was written")
            numbers = np.frombuffer(b"".join(features), points.dtype)
            points.load(names, numbers.reshape(len(some), -1), codes, places, checksums)
            count, last = count + len(some), places[-1]
        total = self._keeper.row("SELECT points, checksums, store FROM total")
        if total != (count, points.checksums, store) or len(points) != count:
            raise InputError("it lacks points, or has too many, or has the log of another store")


def empty_store(
    kind: str, about: Any, arrays: dict[str, NDArray[Any]]
) -> tuple[NeighborCounts, PointTable]:
    """A store as a file describes it, without its points."""
    side = stored_side(kind, about, arrays)
    check_choice("dtype", about["dtype"], ("float32", "float64"))
    table = PointTable(side.width, about["dtype"], side.classes.code_dtype)
    return NeighborCounts.over(side), table


def _shape(array: NDArray[Any]) -> list[Any]:
    return [array.dtype.name, *array.shape]


def create_file(folder: Path, counts: NeighborCounts, points: PointTable) -> None:
    """Write the file of a new store, completely or not at all."""

    def write(temporary: Path) -> None:
        file = StoreFile(temporary, log=False)
        with contextlib.closing(file):
            file.describe(counts, points.dtype.name)
            file.commit(points)

    write_whole(folder / NAME, write, replace=False)
    with writing(folder / NAME):
        sync_folder(folder)


def check_folder(path: object) -> Path:
    """`path` as a path."""
    if isinstance(path, str | os.PathLike) and str(path) and "\0" not in str(path):
        return Path(path)
    raise InputError(f"folder must be the name of a folder, got {path!r}")


def make_folder(path: object) -> Path:
    """A folder for a new store: a new one, or one that is empty except for traces of a crash."""
    folder = check_folder(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"folder must be a folder, got the file {folder}")
    if any((folder / name).exists() for name in (NAME, SNAPSHOT)):
        raise InputError(f"{folder} holds a store already: use LiveCounts.open")
    if folder.is_dir() and not all(each.name.startswith(PREFIX) for each in folder.iterdir()):
        raise InputError(f"{folder} is not empty: choose a new folder")
    try:
        folder.mkdir(exist_ok=True)
        sync_folder(folder.absolute().parent)
    except OSError as refused:
        raise InputError(f"cannot create {folder}: {why(refused)}") from None
    return folder
