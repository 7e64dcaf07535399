"""NeighborCounts: the two integers per validation point through which everything passes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.arrays import load_arrays
from thresher.checks import check_radius, rows_text
from thresher.errors import InputError
from thresher.files import check_sealed, reading, sealed, write_whole
from thresher.games.classes import ClassGame
from thresher.games.semivalues import Semivalue, utility
from thresher.inputs import (
    Points,
    Validation,
    check_points,
    check_validation,
    kept,
    point_prints,
    warn_of_twins,
)
from thresher.kernels.pairs import fingerprint
from thresher.labels import check_labels
from thresher.neighbors.ball import Ball
from thresher.neighbors.panels import NOBODY, Panels, plain_label, plain_row
from thresher.passes.walk import count
from thresher.price_list import PriceList, described, stored_validation

FORMAT = "thresher.counts/1"
NOTHING: Any = object()  # where no labels are meant; None would be a caller's mistake


class NeighborCounts:
    """For each validation point, the near points that carry its label and those that do not.

    Counts add up: parts of the data may be counted in any order, at any time, on any machine, and
    merged. Adding and removing the same points leaves no trace.

    Parameters
    ----------
    X_val, y_val, radius, metric
        The validation set and what near means, as in `tknn_shapley`.
    classes
        All classes; without it, those of `y_val`.

    Notes
    -----
    Besides the counts a fingerprint of every point is kept (8 bytes each), so that removing what
    was never added is an error and not a wrong number. A saved file therefore says as much about
    the points as the points themselves would to someone who can guess them: keep it as you keep the
    data.

    Examples
    --------
    >>> counts = NeighborCounts([[0.0], [4.0]], ["a", "b"], radius=1, metric="euclidean")
    >>> counts.add([[0.5], [0.9], [4.5]], ["a", "b", "b"])
    NeighborCounts(3 points, 2 validation points, euclidean radius 1)
    >>> counts.same.tolist(), counts.other.tolist()
    ([1, 1], [1, 0])
    """

    def __init__(
        self, X_val: object, y_val: object, *, radius: float = 0.5, metric: str = "cosine",
        classes: object = None,
    ) -> None:  # fmt: skip
        validation = check_validation(X_val, y_val, metric=metric, classes=classes, public=True)
        self._start(kept(validation), check_radius(radius))

    def _start(self, validation: Validation, radius: float) -> None:
        self._validation = validation
        self._radius = radius
        self._counts = np.zeros((2, len(validation)), np.int64)
        self._present: Counter[int] = Counter()
        self._arrived: list[NDArray[np.uint64]] = []  # fingerprints not yet in `_present`
        self._points = 0
        self._panels: Panels | None = None  # made when the first single point comes

    @property
    def validation(self) -> Validation:
        """The validation set, the class list and the metric."""
        return self._validation

    @property
    def radius(self) -> float:
        """The distance up to which a point is near, inclusive."""
        return self._radius

    @property
    def classes(self) -> list[Hashable]:
        """The classes."""
        return list(self.validation.classes.labels)

    @property
    def same(self) -> NDArray[np.int64]:
        """Near points that carry the validation point's label, as counted up to now."""
        return _snapshot(self._counts[0])

    @property
    def other(self) -> NDArray[np.int64]:
        """Near points that carry another label, as counted up to now."""
        return _snapshot(self._counts[1])

    def __copy__(self) -> NeighborCounts:
        twin = type(self).__new__(type(self))
        twin._start(self._validation, self._radius)
        twin._counts[:] = self._counts
        twin._present = self._settled().copy()
        twin._points = self._points
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_panels": None}

    def __len__(self) -> int:
        """The number of points counted."""
        return self._points

    def __repr__(self) -> str:
        sizes = f"{len(self)} points, {len(self.validation)} validation points"
        return f"NeighborCounts({sizes}, {self.validation.metric} radius {self.radius:g})"

    def add(self, X: object, y: object) -> NeighborCounts:
        """Count these points in, of which there may be none; returns itself."""
        if self._moved(X, enter=y) or _is_empty(X, y):
            return self
        points = check_points(X, y, self.validation)
        warn_of_twins(points, self.validation, stacklevel=3)
        return self.move(enter=points)

    def remove(self, X: object, y: object) -> NeighborCounts:
        """Count these points out, each of which was counted in; returns itself.

        If one was not, nothing changes and the error names the rows.
        """
        if self._moved(X, leave=y):
            return self
        return self.move(leave=check_points(X, y, self.validation))

    def relabel(self, X: object, y: object, new: object) -> NeighborCounts:
        """Count these points, which were counted in under `y`, under the labels `new` instead.

        If one was not, nothing changes and the error names the rows. Returns itself.

        Examples
        --------
        >>> counts = NeighborCounts([[0.0], [4.0]], ["a", "b"], radius=1, metric="euclidean")
        >>> counts.add([[0.5]], ["b"]).relabel([[0.5]], ["b"], ["a"]).same.tolist()
        [1, 0]
        """
        if self._moved(X, leave=y, enter=new):
            return self
        leave = check_points(X, y, self.validation)
        labels = check_labels("new", new, len(leave))
        codes = self.validation.classes.encode("new", labels)
        return self.move(leave=leave, enter=Points(leave.rows, codes))

    def move(self, *, leave: Points | None = None, enter: Points | None = None) -> NeighborCounts:
        """Count checked points out and others in, all of them or none; returns itself."""
        entering = None if enter is None else self._count(enter)
        if leave is not None:
            counts, prints = self._count(leave)
            self._take_out(prints, "removed" if enter is None else "relabeled")
            self._counts -= counts
            self._points -= len(prints)
        if entering is not None:
            self._counts += entering[0]
            self._arrived.append(entering[1])
            self._points += len(entering[1])
        return self

    def move_row(
        self, row: NDArray[np.float64], leave: int, enter: int, *, twins: bool = True
    ) -> bool:
        """Count one row out of class `leave` and into class `enter`, where -1 is none.

        False, and nothing changes, where a table of one row would be refused or warned of.
        """
        present = self._settled() if leave >= 0 else self._present
        old = fingerprint(row, leave) if leave >= 0 else 0
        times = present.get(old, 0) if leave >= 0 else 0
        if leave >= 0 and not times:
            return False
        if self._panels is None:
            self._panels = Panels.of(self.validation, self.radius)
        if not self._panels.move(row, leave, enter, self._counts, twins=twins):
            return False
        if times > 1:
            present[old] = times - 1
        elif times:
            present.pop(old)
        if enter >= 0:
            key = fingerprint(row, enter)
            present[key] = present.get(key, 0) + 1
        self._points += (enter >= 0) - (leave >= 0)
        return True

    def _moved(self, X: object, *, leave: object = NOTHING, enter: object = NOTHING) -> bool:
        """Whether X is one row in the plainest form, now counted; else nothing has changed."""
        if self.validation.rows is None:
            return False
        row = plain_row(X, self.validation.rows.width)
        if row is None or X.ndim == 1:  # type: ignore[attr-defined]
            return False
        codes = [NOBODY, NOBODY]
        for place, labels in enumerate((leave, enter)):
            if labels is not NOTHING:
                codes[place] = self.validation.classes.find(plain_label(labels))
                if codes[place] < 0:
                    return False
        return self.move_row(row, *codes, twins=leave is NOTHING)

    def _take_out(self, prints: NDArray[np.uint64], done: str) -> None:
        """Forget these fingerprints, or raise if one is not there, or not as often."""
        present = self._settled()
        leaving = Counter(prints.tolist())
        unknown = {key for key, times in leaving.items() if present[key] < times}
        if unknown:
            rows = [row for row, key in enumerate(prints.tolist()) if key in unknown]
            raise InputError(
                f"X has {rows_text(rows)} that cannot be {done}: not counted in under this label, "
                "or not as often"
            )
        present.subtract(leaving)
        for key in [key for key in leaving if not present[key]]:
            del present[key]

    def merge(self, other: NeighborCounts) -> NeighborCounts:
        """Count in what `other` counted on the same validation set; returns itself."""
        if not isinstance(other, NeighborCounts):
            raise InputError(f"other must be a NeighborCounts, got {type(other).__name__}")
        if other is self:
            raise InputError(
                "counts cannot be merged with themselves: their points would count twice"
            )
        different = [
            f"{name} ({mine!r} and {theirs!r})" if name != "validation set" else name
            for name, mine, theirs in [
                ("radius", self.radius, other.radius),
                ("metric", self.validation.metric, other.validation.metric),
                ("classes", self.classes, other.classes),
                ("validation set", self.validation.digest(), other.validation.digest()),
            ]
            if mine != theirs
        ]
        if different:
            raise InputError(
                f"only counts over the same public side merge; different: {different[0]}"
            )
        self._counts += other._counts
        self._settled().update(other._settled())
        self._points += len(other)
        return self

    def price_list(self, semivalue: Semivalue = "shapley") -> PriceList:
        """The prices that follow from the counts; see `tknn_shapley` for the semivalues."""
        counts = (self._counts[0], self._counts[1])
        return PriceList.of_counts(self.validation, self.radius, counts, semivalue)

    def utility(self) -> float:
        """The utility of all counted points: the sum of the shares of near points that agree."""
        return utility(self._counts[0], self._counts[1], len(self.validation.classes))

    def _count(self, points: Points) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The (same, other) table of these points, and their fingerprints."""
        near, game = Ball.around(self.validation, self.radius), ClassGame.of(self.validation)
        return count(points, near, game), point_prints(points.rows, points.codes.astype(np.int64))

    def _settled(self) -> Counter[int]:
        """The fingerprints of all points counted, and how often each was."""
        for prints in self._arrived:
            self._present.update(prints.tolist())
        self._arrived.clear()
        return self._present

    @classmethod
    def over(cls, validation: Validation, radius: float) -> NeighborCounts:
        """Counts without points, over a validation set that was checked before."""
        counts = cls.__new__(cls)
        counts._start(validation, radius)
        return counts

    def save(self, path: str | Path) -> None:
        """Write one file (NumPy's .npz, nothing pickled); an existing file is replaced."""
        about = {"format": FORMAT, "radius": self.radius, **described(self.validation)}
        present, rows = self._settled(), self.validation.rows
        arrays: dict[str, Any] = {
            "about": np.array(json.dumps(sealed(about))),
            "counts": self._counts,
            "labels": self.validation.codes,
            "prints": np.fromiter(present.keys(), np.uint64, len(present)),
            "times": np.fromiter(present.values(), np.int64, len(present)),
        }
        if rows is not None:
            arrays["features"] = rows.array

        def write(temporary: Path) -> None:
            with temporary.open("wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays)

        write_whole(path, write)

    @classmethod
    def load(cls, path: str | Path) -> NeighborCounts:
        """The counts that `save` wrote."""
        with reading(path, "table of counts") as found:
            arrays = load_arrays(found)  # each has a checksum of its own
            about = json.loads(str(arrays.get("about", "{}")))
            check_sealed(about, FORMAT)
            validation = stored_validation(about, arrays.get("features"), arrays["labels"])
            counts = cls.over(validation, check_radius(about["radius"]))
            counts._counts[:] = arrays["counts"]
            times = dict(zip(arrays["prints"].tolist(), arrays["times"].tolist(), strict=True))
            counts._present = Counter(times)
            counts._points = int(arrays["times"].sum())
            return counts


def _snapshot(array: NDArray[np.int64]) -> NDArray[np.int64]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _is_empty(X: Any, y: Any) -> bool:
    return hasattr(X, "__len__") and hasattr(y, "__len__") and len(X) == len(y) == 0
