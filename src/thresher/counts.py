"""`NeighborCounts`: a few integers for each cell, from which prices and values follow."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers, LongWords
from thresher.errors import InputError
from thresher.files import reading
from thresher.games.semivalues import Semivalue
from thresher.inputs.arrays import load_about, load_arrays, save_arrays
from thresher.inputs.checked_inputs import Validation, check_validation, own_copy, tell_of_twins
from thresher.inputs.checks import MAX_INTEGER, row_count, rows_text
from thresher.inputs.labels import check_labels
from thresher.inputs.precomputed import check_complete
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX, check_kernel
from thresher.neighbors.single_rows import NOBODY, plain_label
from thresher.passes.walk import count
from thresher.price_list import PriceList
from thresher.regression import CLASSES, REGRESSION, check_no_classes, check_task
from thresher.sides.ball_side import BallSide, only_ball
from thresher.sides.forest_side import check_leaves_alone, forest_side
from thresher.sides.label_kinds import NumberSide
from thresher.sides.protocol import Mover, PublicSide, SidePoints
from thresher.sides.stored import stored_kind, stored_side
from thresher.sides.target_forest_side import target_forest_side
from thresher.sides.target_side import target_side

FORMATS = {
    "ball": "thresher.counts/1",
    "rings": "thresher.ring-counts/1",
    "forest": "thresher.forest-counts/1",
    "targets": "thresher.target-counts/2",
    "ring-targets": "thresher.ring-target-counts/2",
    "forest-targets": "thresher.forest-target-counts/2",
}
DIGESTS = {"forest": "forest", "validation": "validation set"}  # whose digests say nothing
NOTHING: Any = object()  # where no labels are meant; None would be a caller's mistake


class NeighborCounts:
    """For each validation point, the near points that carry its label and those that do not.

    With a forest, it counts the points of each class in each leaf of each tree. Counts add up: you
    can count parts of the data in any order, at any time and on any machine, and merge the counts.
    Adding and removing the same points leaves no trace.

    Parameters
    ----------
    X_val, y_val, radius, metric
        The validation set and what near means, as in `tknn_shapley`.
    classes
        All classes. The default is the classes of `y_val` and those that the forest was grown from.
    forest
        The structure of trees that `grow_forest` makes. Near then means in the same leaf, as in
        `forest_shapley`, and radius and metric are not used. Without `X_val` and `y_val`, the
        points judge each other.
    kernel, rings
        As in `tknn_shapley`; there are then counts for each ring.
    task, empty
        As in `tknn_shapley`. For regression, the table has ten rows: the number of near points, the
        sum of their targets in steps of a grid, in three parts of 31 bits, and the sum of the
        squared targets, in six parts. With a forest, these are the points in each leaf; with a
        kernel, there are ten rows for each ring.
    bounds
        As in `tknn_shapley`, but the default is the range of `y_val`, extended by its width on both
        sides. Required if there is no validation set.
    complete
        As in `tknn_shapley`, but required for sparse distances: a part of them does not show
        whether all within the radius are stored.

    Notes
    -----
    Besides the counts, a fingerprint of every point is kept (8 bytes each). So removing
    a point that was never added is an error and not a wrong number. Someone who can guess a point
    can check the guess against a saved file: protect the file as you protect the data.

    Examples
    --------
    >>> import thresher as th
    >>> counts = th.NeighborCounts([[0.0], [4.0]], ["a", "b"], radius=1, metric="euclidean")
    >>> counts.add([[0.5], [0.9], [4.5]], ["a", "b", "b"])
    NeighborCounts(3 points, 2 validation points, euclidean radius 1)
    >>> counts.same.tolist(), counts.other.tolist()
    ([1, 1], [1, 0])
    >>> forest = th.grow_forest([[0.0], [1.0], [2.0], [3.0]], list("aabb"), trees=4)
    >>> th.NeighborCounts([[0.0], [4.0]], ["a", "b"], forest=forest).add([[0.5]], ["a"])
    NeighborCounts(1 points, 4 trees, 2 validation points)
    """

    def __init__(
        self, X_val: object = None, y_val: object = None, *, radius: float = 0.5,
        metric: str = "cosine", classes: object = None, forest: Forest | None = None,
        kernel: object = BOX, rings: int = 16, task: str = CLASSES, empty: float | None = None,
        bounds: tuple[float, float] | None = None, complete: bool = False,
    ) -> None:  # fmt: skip
        asked = radius, metric, kernel
        radius, shape = check_kernel(kernel, rings, radius)
        complete = check_complete(complete, metric)
        if check_task(task) == REGRESSION:
            check_no_classes(classes)
            known: Any = {"empty": empty, "bounds": bounds}
            if forest is None:
                known |= {"radius": radius, "metric": metric, "kernel": shape, "complete": complete}
                self._start(target_side(X_val, y_val, **known))
                return
            check_leaves_alone(*asked)
            self._start(target_forest_side(forest, X_val, y_val, **known))
            return
        if (empty, bounds) != (None, None):
            raise InputError("empty and bounds need task='regression'")
        if forest is not None:
            check_leaves_alone(*asked)
            self._start(forest_side(forest, X_val, y_val, classes))
            return
        validation = check_validation(
            X_val, y_val, metric=metric, classes=classes, public=True, complete=complete
        )
        self._start(BallSide(own_copy(validation), radius, shape))

    def _start(self, side: PublicSide) -> None:
        self._side = side
        self._counts = np.zeros(side.shape, side.dtype)
        self._present: Counter[int] = Counter()
        self._arrived: list[LongWords] = []  # fingerprints not yet in `_present`
        self._points = 0
        self._mover: Mover | None = None  # made when the first single point comes

    @property
    def side(self) -> PublicSide:
        """The validation set or the forest, and what near means, which are public."""
        return self._side

    @property
    def validation(self) -> Validation:
        """The validation set, the class list and the metric."""
        return only_ball(self._side).validation

    @property
    def radius(self) -> float:
        """The distance up to which a point is near, inclusive."""
        return only_ball(self._side).radius

    @property
    def classes(self) -> list[Hashable]:
        """The classes."""
        return list(self._side.classes.labels)

    @property
    def table(self) -> Integers:
        """The current counts, one column for each cell.

        A validation point has two rows, `same` and `other`, or two for each ring, the innermost
        ring first. A leaf has one row for each class. For regression there are ten rows: number,
        sum in three parts, and the sum of squares in six parts, each with a row for each ring.
        """
        return _snapshot(self._counts)

    @property
    def same(self) -> Integers:
        """How many near points carry the validation point's label, for each validation point."""
        return _snapshot(self._halves()[0])

    @property
    def other(self) -> Integers:
        """How many near points carry another label, for each validation point."""
        return _snapshot(self._halves()[1])

    def _halves(self) -> Integers:
        """Near points with the label and with another one, over all rings."""
        if isinstance(self._side, NumberSide):
            raise InputError("same and other are for classes: use table with task='regression'")
        found: Integers = self._counts.reshape(2, -1, len(only_ball(self._side)))
        return found.sum(axis=1)

    def __copy__(self) -> NeighborCounts:
        twin = type(self).__new__(type(self))
        twin._start(self._side)
        twin._counts[:] = self._counts
        twin._present = self._settled().copy()
        twin._points = self._points
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mover": None}

    def __len__(self) -> int:
        """The number of counted points."""
        return self._points

    def __repr__(self) -> str:
        return f"NeighborCounts({len(self)} points, {self._side})"

    def add(self, X: object, y: object) -> NeighborCounts:
        """Add these points to the counts (there may be none); returns itself."""
        if self._moved(X, enter=y) or _is_empty(X, y):
            return self
        points = self._side.check_points(X, y)
        self.warn_of_twins(points, stacklevel=3)
        return self.move(enter=points)

    def remove(self, X: object, y: object) -> NeighborCounts:
        """Remove points that were added before; returns itself.

        If a point was not added, nothing changes, and the error names the rows.
        """
        if self._moved(X, leave=y):
            return self
        return self.move(leave=self._side.check_points(X, y))

    def relabel(self, X: object, y: object, new: object) -> NeighborCounts:
        """Count these points under the labels `new` instead of `y`; returns itself.

        If a point was not added under `y`, nothing changes, and the error names the rows.

        Examples
        --------
        >>> import thresher as th
        >>> counts = th.NeighborCounts([[0.0], [4.0]], ["a", "b"], radius=1, metric="euclidean")
        >>> counts.add([[0.5]], ["b"]).relabel([[0.5]], ["b"], ["a"]).same.tolist()
        [1, 0]
        """
        if self._moved(X, leave=y, enter=new):
            return self
        leave: Any = self._side.check_points(X, y)
        labels = check_labels("new", new, len(leave))
        codes = self._side.classes.encode("new", labels)
        return self.move(leave=leave, enter=dataclasses.replace(leave, codes=codes))

    def warn_of_twins(self, points: SidePoints, *, stacklevel: int) -> None:
        """Warn about validation rows that are exact copies of these points."""
        twins = int(self._side.twins(points).sum())
        tell_of_twins(twins, len(self._side), stacklevel=stacklevel + 1)

    def move(
        self, *, leave: SidePoints | None = None, enter: SidePoints | None = None
    ) -> NeighborCounts:
        """Count some checked points out and others in, all of them or none; returns itself."""
        nothing: tuple[Any, LongWords] = 0, np.zeros(0, np.uint64)
        entering, arrived = nothing if enter is None else self._count(enter)
        leaving, gone = nothing if leave is None else self._count(leave)
        more = len(arrived) - len(gone)
        total = self._sum("X", entering - leaving, more)
        if leave is not None:
            self._take_out(gone, "removed" if enter is None else "relabeled")
        if enter is not None:
            self._arrived.append(arrived)
        self._counts[:] = total
        self._points += more
        return self

    def _sum(self, name: str, counts: Array, points: int) -> Array:
        """The table with the counts of more points, if it has room for them.

        All entries stay within half of what their type holds, so no sum of two is rounded or wraps.
        """
        total, most = self._counts + counts, np.iinfo(self._counts.dtype).max // 2
        if self._points + points > min(most, MAX_INTEGER) or (np.abs(total) > most).any():
            raise InputError(
                f"{name} cannot be added: with {points} more points there would be "
                f"{self._points + points}, which are more than a table of counts can hold. Keep "
                "them in counts of their own"
            )
        return total

    def move_row(self, row: Floats, leave: int, enter: int, *, twins: bool = True) -> bool:
        """Count one row out of class `leave` and into class `enter`; -1 stands for no class.

        Return False and change nothing if a table of one row would be refused or cause a warning.
        """
        if self._mover is None:
            self._mover = self._side.mover()
            if self._mover is None:
                return False
        present = self._settled() if leave >= 0 else self._present
        old = self._mover.fingerprint(row, leave) if leave >= 0 else 0
        times = present.get(old, 0) if leave >= 0 else 0
        if leave >= 0 and not times:
            return False
        if not self._mover.move(row, leave, enter, self._counts, twins=twins):
            return False
        if times > 1:
            present[old] = times - 1
        elif times:
            present.pop(old)
        if enter >= 0:
            key = self._mover.fingerprint(row, enter)
            present[key] = present.get(key, 0) + 1
        self._points += (enter >= 0) - (leave >= 0)
        return True

    def _moved(self, X: object, *, leave: object = NOTHING, enter: object = NOTHING) -> bool:
        """Count X if it is one row in the simplest form; else return False and change nothing."""
        row = self._side.plain_row(X)
        if row is None or X.ndim == 1:  # type: ignore[attr-defined]
            return False
        codes = [NOBODY, NOBODY]
        for place, labels in enumerate((leave, enter)):
            if labels is not NOTHING:
                codes[place] = self._side.classes.find(plain_label(labels))
                if codes[place] < 0:
                    return False
        return self.move_row(row, *codes, twins=leave is NOTHING)

    def _take_out(self, prints: LongWords, done: str) -> None:
        """Remove these fingerprints; raise if one is missing, or was counted fewer times."""
        present = self._settled()
        leaving = Counter(prints.tolist())
        unknown = {key for key, times in leaving.items() if present[key] < times}
        if unknown:
            rows = [row for row, key in enumerate(prints.tolist()) if key in unknown]
            raise InputError(
                f"X has {rows_text(rows)} that cannot be {done}: they were not added under this "
                "label, or not as often"
            )
        present.subtract(leaving)
        for key in [key for key in leaving if not present[key]]:
            del present[key]

    def merge(self, other: NeighborCounts) -> NeighborCounts:
        """Add the counts of `other`, made on the same validation set; returns itself."""
        if not isinstance(other, NeighborCounts):
            raise InputError(f"other must be a NeighborCounts, got {type(other).__name__}")
        if other is self:
            raise InputError(
                "counts cannot be merged with themselves: their points would count twice"
            )
        mine, theirs = (
            {**each._side.identity(), "classes": each.classes} for each in (self, other)
        )
        different = [name for name in mine | theirs if mine.get(name) != theirs.get(name)]
        if different:
            name = min(different, key=lambda each: each in DIGESTS)
            both = f"{name} ({mine.get(name)!r} and {theirs.get(name)!r})"
            shown = DIGESTS.get(name, both)
            raise InputError(f"other cannot be merged: it differs in {shown}")
        self._counts[:] = self._sum("other", other._counts, other._points)
        self._settled().update(other._settled())
        self._points += other._points
        return self

    def price_list(self, semivalue: Semivalue = "shapley") -> PriceList:
        """Compute prices from the counts; see `tknn_shapley` for the semivalues."""
        return PriceList.over(self._side, self._counts, semivalue)

    def utility(self) -> float:
        """The utility of all counted points, added up over the validation set.

        `tknn_shapley` defines it, or `leaf_shapley` if there is a forest. If the points judge each
        other, it is added up over them.
        """
        return self._side.utility(self._counts)

    def _count(self, points: SidePoints) -> tuple[Array, LongWords]:
        """What these points add to the table, and their fingerprints."""
        side = self._side
        counts = count(points, side.near(), side.counting(), dtype=side.dtype)
        return counts, side.prints(points.rows, points.codes.astype(np.int64))

    def _settled(self) -> Counter[int]:
        """The fingerprints of all counted points, and how often each was counted."""
        for prints in self._arrived:
            self._present.update(prints.tolist())
        self._arrived.clear()
        return self._present

    @classmethod
    def over(cls, side: PublicSide) -> NeighborCounts:
        """Counts without points, for a public side that was checked before."""
        counts = cls.__new__(cls)
        counts._start(side)
        return counts

    def save(self, path: str | Path) -> None:
        """Write one file (NumPy's .npz, nothing pickled); an existing file is replaced."""
        present, side = self._settled(), self._side
        arrays = {
            "counts": self._counts,
            "prints": np.fromiter(present.keys(), np.uint64, len(present)),
            "times": np.fromiter(present.values(), np.int64, len(present)),
            **side.arrays(),
        }
        save_arrays(path, {"format": FORMATS[side.kind], **side.describe()}, arrays)

    @classmethod
    def load(cls, path: str | Path) -> NeighborCounts:
        """The counts that `save` wrote."""
        with reading(path, "table of counts") as found:
            arrays = load_arrays(found)  # each has a checksum of its own
            about = load_about(arrays)
            counts = cls.over(stored_side(stored_kind(about, FORMATS), about, arrays))
            counts._counts[:] = counts._side.read_counts(arrays["counts"])
            times = dict(zip(arrays["prints"].tolist(), arrays["times"].tolist(), strict=True))
            counts._present = Counter(times)
            counts._points = int(arrays["times"].sum())
            return counts


def _snapshot(array: Integers) -> Integers:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _is_empty(X: Any, y: Any) -> bool:
    return row_count(X) == row_count(y) == 0
