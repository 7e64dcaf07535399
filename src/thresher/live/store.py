"""LiveCounts: points and their counts in a folder, kept up to date point by point."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher.counts import NeighborCounts
from thresher.drafts import remove_abandoned
from thresher.errors import InputError, plain_text
from thresher.games.semivalues import Semivalue
from thresher.inputs.checks import check_choice, is_frame
from thresher.inputs.labels import raw_labels
from thresher.live.points import Id, PointTable, check_id
from thresher.live.store_file import NAME, StoreFile, check_folder, create_file, make_folder
from thresher.live.values import LiveOwners, present_values
from thresher.live.version_1 import convert
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX
from thresher.neighbors.single_rows import NOBODY
from thresher.owner_valuation import OwnerValuation
from thresher.price_list import PriceList
from thresher.regression import CLASSES
from thresher.sides.label_kinds import NumberSide
from thresher.sides.protocol import SidePoints
from thresher.valuation import Valuation

WAITING = 10_000  # changes that wait in memory before they are written


class LiveCounts:
    """Points in a folder, with the counts that price them, for data that changes all the time.

    `create` makes the folder, and `open` continues with it. Each point has an id, a string or an
    integer. Points keep the order in which they were added; a new label does not change a point's
    place.

    Updates are made in memory first. Once `commit` has returned, all updates before it survive any
    crash. A crash loses the updates after it. `snapshot` commits and makes the file as small as
    possible. One process at a time may have a store open; its threads may share it.

    Notes
    -----
    An update costs one pass over the validation set, O(M d), and memory is O((N + M)
    d). Counts are integers and every pair is decided by the same rule, so after any updates
    `values` equals `tknn_shapley` on the current points to the last bit. `open` counts all points
    again. The folder holds the points: protect it as you protect the data.

    Examples
    --------
    >>> import tempfile
    >>> import thresher as th
    >>> folder = tempfile.mkdtemp() + "/shop"
    >>> V, y_val = [[0.0], [4.0]], ["a", "b"]
    >>> with th.LiveCounts.create(folder, V, y_val, radius=1, metric="euclidean") as live:
    ...     live.add("first", [0.5], "a")
    ...     live.add("second", [0.9], "b")
    ...     live.relabel("second", "a")
    ...     live.commit()
    >>> with th.LiveCounts.open(folder) as live:
    ...     valuation = live.values()
    >>> dict(zip(valuation.ids, valuation.values.tolist()))
    {'first': 0.25, 'second': 0.25}
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, StoreFile(folder / NAME)
        try:
            self._counts, self._points = self._file.read()
            self._owners = LiveOwners(self._counts.side)
            self._counts.move(enter=self._members())
        except BaseException:
            self._file.close()
            raise
        self._journaled = 0
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = ""  # why, if it is
        self._broken = False  # memory may be ahead of the file

    @classmethod
    def create(
        cls,
        folder: str | Path,
        X_val: object = None,
        y_val: object = None,
        *,
        radius: float | None = None,
        metric: str = "cosine",
        classes: object = None,
        dtype: str = "float64",
        forest: Forest | None = None,
        kernel: object = BOX,
        rings: int = 16,
        task: str = CLASSES,
        empty: float | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> Self:
        """Create a store without points.

        Parameters
        ----------
        folder
            A new or empty folder; its parent folder must exist.
        X_val, y_val, radius, metric, classes, forest, kernel, rings
            As in `NeighborCounts`, but `radius` has no default: pass it, or a forest, or a kernel
            that is a sequence of (radius, weight). Distances cannot be precomputed.
        dtype
            "float64" can hold the features of any table. "float32" takes half the space, and
            refuses points that it would have to round. With a forest, the store always keeps
            float32: the numbers that the trees split, and a code for each category.
        task, empty, bounds
            As in `NeighborCounts`. For regression, labels are targets within the bounds, and the
            store keeps them on its grid.
        """
        check_choice("metric", metric, ("cosine", "euclidean"))
        check_choice("dtype", dtype, ("float32", "float64"))
        if forest is None and radius is None and isinstance(kernel, str):
            raise InputError("radius is missing: name a distance, or pass forest=")
        more: Any = {"kernel": kernel, "rings": rings}
        more |= {} if radius is None else {"radius": radius}
        more |= {"task": task, "empty": empty, "bounds": bounds}
        counts = NeighborCounts(X_val, y_val, metric=metric, classes=classes, forest=forest, **more)
        dtype = dtype if forest is None else "float32"
        points = PointTable(counts.side.width, dtype, counts.side.classes.code_dtype)
        place = make_folder(folder)
        create_file(place, counts, points)
        return cls(place)

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the store in a folder, in its state after the last commit.

        A damaged store, or one that is already open, is an `InputError`. A store of version 0.1 is
        converted.
        """
        place = check_folder(folder)
        convert(place)
        if not (place / NAME).is_file():
            raise InputError(f"there is no store in {place}: LiveCounts.create makes a new one")
        remove_abandoned(place)
        return cls(place)

    @property
    def folder(self) -> Path:
        """Where the store is."""
        return self._folder

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of all points, in order."""
        with self._lock:
            self._check_whole()
            return self._points.ids

    @property
    def journaled(self) -> int:
        """How many updates a crash would lose, because they were made after the last commit."""
        return self._journaled

    @property
    def counts(self) -> NeighborCounts:
        """A copy of the current counts; later updates do not change it."""
        with self._lock:
            self._check_whole()
            return copy(self._counts)

    def __len__(self) -> int:
        return len(self._points)

    def __bool__(self) -> bool:
        return True  # a store without points is a store

    def __contains__(self, id: object) -> bool:  # noqa: A002
        try:
            return check_id(id) in self._points
        except InputError:
            return False

    def __repr__(self) -> str:
        counts = repr(self._counts).removeprefix("NeighborCounts(")
        return plain_text(f"LiveCounts({self._folder.name}, {counts}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def points(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The features and the labels of all points, in order; copies."""
        with self._lock:
            self._check_whole()
            rows, codes = self._points.table()
            return rows.copy(), self._counts.side.classes.decode(codes)

    def add(self, id: Id, x: Any, label: Hashable) -> None:  # noqa: A002
        """Add a point: its id, its features as one row, its label."""
        with self._lock:
            self._check_open()
            name = check_id(id)
            if name in self._points:
                raise InputError(f"the id {id!r} already exists: remove that point first")
            row, code = self._read(x, label)
            kept = self._fitted(row)
            with _Undivided(self):
                if not self._counts.move_row(row, NOBODY, code):
                    self._enter(row, label, code)
                self._points.append(name, kept, code)
            self._note()

    def add_many(self, ids: Any, X: Any, y: Any) -> None:
        """Add a table of points, much faster than one by one.

        If one of them is refused, none is added.
        """
        with self._lock:
            self._check_open()
            names = [check_id(id) for id in raw_labels("ids", ids)]  # noqa: A001
            again = [name for name in names if name in self._points]
            again += [name for name, times in Counter(names).items() if times > 1]
            if again:
                raise InputError(f"ids must be new and distinct, got {again[0]!r} again")
            points = self._counts.side.check_points(X, y)
            if len(names) != len(points):
                raise InputError(
                    f"ids must have one entry per row of X, got {len(names)} for {len(points)} rows"
                )
            kept = self._fitted(points.rows.array)
            with _Undivided(self):
                self._counts.warn_of_twins(points, stacklevel=3)
                self._counts.move(enter=points)
                self._points.extend(names, kept, points.codes)
            self._note(len(names))

    def remove(self, id: Id) -> None:  # noqa: A002
        """Remove a point."""
        with self._lock:
            self._check_open()
            name = self._known(id)
            row, code = self._points.get(name)
            with _Undivided(self):
                self._move(row, code, None)
                self._owners.leave(name, row, code)
                self._points.remove(name)
            self._note()

    def relabel(self, id: Id, label: Hashable) -> None:  # noqa: A002
        """Change the label of a point, which keeps its place in the order."""
        with self._lock:
            self._check_open()
            name = self._known(id)
            row, old = self._points.get(name)
            code = self._code(label)
            with _Undivided(self):
                self._move(row, old, code)
                self._owners.leave(name, row, old)
                self._points.relabel(name, code)
            self._note()

    def price_list(self, semivalue: Semivalue = "shapley") -> PriceList:
        """The prices that follow from the current counts."""
        with self._lock:
            self._check_whole()
            return self._counts.price_list(semivalue)

    def values(self, semivalue: Semivalue = "shapley") -> Valuation:
        """The value of every point, in order, with `.ids`.

        They equal `tknn_shapley`, or `forest_shapley` with a forest, to the last bit.
        """
        with self._lock:
            self._check_whole()
            return present_values(self._points, self._counts, semivalue)

    def owner_values(
        self, owners: Mapping[Id, Hashable], semivalue: Semivalue = "shapley"
    ) -> OwnerValuation:
        """The value of every owner in the game among owners; `owners` maps each id to its owner.

        They equal `owner_shapley` on the current points to the last bit. The first call counts all
        points. Later calls count only points that have changed, as long as the store stays open and
        the sums of all owners take at most 256 MB.
        """
        with self._lock:
            self._check_whole()
            return self._owners.values(self._points, owners, semivalue)

    def verify(self) -> None:
        """Count all points again, and raise an error if the stored counts differ."""
        with self._lock:
            self._check_whole()
            fresh = NeighborCounts.over(self._counts.side).move(enter=self._members())
            if not np.array_equal(self._counts.table, fresh.table):
                raise InputError(
                    f"the counts of {self._folder} differ from those of its points: close the "
                    "store and open it again, which counts all points"
                )

    def commit(self) -> None:
        """Write all updates to the disk; once this returns, they survive a power cut."""
        with self._lock:
            self._check_open()
            if self._journaled or self._points.changed:
                self._save(self._file.commit)
                self._journaled = 0

    def snapshot(self) -> None:
        """Commit, and make the file as small as possible; a crash at any moment loses nothing."""
        with self._lock:
            self.commit()
            self._file.compact()

    def close(self) -> None:
        """Commit, and close the store so that others can open it. Closing it twice does no harm."""
        with self._lock:
            try:
                if self._process == os.getpid() and not self._closed:
                    self.commit()
            finally:
                self._closed = self._closed or "closed"
                self._file.close()

    def _note(self, updates: int = 1) -> None:
        """Count updates, and write them without a commit once there are many."""
        self._journaled += updates
        if len(self._points.changed) > WAITING:
            self._save(self._file.write)

    def _save(self, how: Callable[[PointTable], None]) -> None:
        try:
            how(self._points)
        except BaseException:
            self._give_up()
            raise

    def _members(self) -> SidePoints | None:
        if not len(self._points):
            return None
        return self._counts.side.stored_points(*self._points.table())

    def _read(self, x: Any, label: Any) -> tuple[NDArray[np.float64], int]:
        """One row in float64 and a class code; anything unusual is read as a table would be."""
        row, code = self._counts.side.plain_row(x), self._code(label)
        if row is None:
            table = x.reshape(1, -1) if isinstance(x, np.ndarray) and x.ndim == 1 else [x]
            table = x if is_frame(x) else table
            rows = self._counts.side.check_points(table, [label], name="x").rows
            row = rows.array[0].astype(np.float64)
        return row, code

    def _code(self, label: Any) -> int:
        classes = self._counts.side.classes
        if isinstance(self._counts.side, NumberSide):
            return classes.code("label", label)
        code = classes.find(label)
        try:
            return code if code >= 0 else classes.code("label", label)
        except InputError:
            raise InputError(
                f"label must be a class of this store, one of {list(classes.labels)[:9]}, got "
                f"{label!r}: a store keeps the classes that it was created with"
            ) from None

    def _fitted(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Features in the dtype of the store; raise if any would be rounded."""
        if rows.dtype == self._points.dtype:
            return rows
        with np.errstate(over="ignore"):
            kept = rows.astype(self._points.dtype)
        if not np.array_equal(kept, rows, equal_nan=True):
            raise InputError(
                "X has numbers that float32 cannot hold exactly: round them first, or create the "
                "store with dtype='float64'"
            )
        return kept

    def _enter(self, row: NDArray[np.float64], label: Any, code: int) -> None:
        """Count a point that the fast path left over; it may be refused or cause a warning."""
        side = self._counts.side
        known = isinstance(side, NumberSide)  # was read as a table
        points = self._one(row, code) if known else side.check_points(row[None], [label])
        self._counts.warn_of_twins(points, stacklevel=4)
        self._counts.move(enter=points)

    def _move(self, row: NDArray[np.float64], leave: int, enter: int | None) -> None:
        if isinstance(self._counts.side, NumberSide):  # single rows are counted as tables
            new = None if enter is None else self._one(row, enter)
            self._counts.move(leave=self._one(row, leave), enter=new)
            return
        code = NOBODY if enter is None else enter
        if not self._counts.move_row(row, leave, code, twins=False):
            raise RuntimeError(f"the counts of {self._folder} lack a point that the store has")

    def _one(self, row: NDArray[np.float64], code: int) -> SidePoints:
        side = self._counts.side
        return side.stored_points(row[None], np.array([code], side.classes.code_dtype))

    def _known(self, id: object) -> Id:  # noqa: A002
        name = check_id(id)
        if name not in self._points:
            raise InputError(f"there is no point with the id {id!r}")
        return name

    def _check_open(self) -> None:
        if self._closed:
            raise InputError(f"the store {self._folder} is {self._closed}: use LiveCounts.open")
        if self._process != os.getpid():
            raise InputError(
                f"the store {self._folder} belongs to the process that opened it: a forked "
                "process cannot use it"
            )

    def _check_whole(self) -> None:
        """Refuse to read the store if an interrupted update may have left it half done."""
        if self._broken:
            self._check_open()

    def _give_up(self) -> None:
        self._closed, self._broken = "closed, because an update was interrupted", True


class _Undivided:
    """Run an update as a whole; if it is interrupted, the store has to be opened again.

    After an interruption, memory may be half an update ahead of the file. A refused update changes
    nothing.
    """

    __slots__ = ("store",)

    def __init__(self, store: LiveCounts) -> None:
        self.store = store

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, InputError | Warning):
            self.store._give_up()
