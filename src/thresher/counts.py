"""NeighborCounts: the two integers per validation point through which everything passes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_radius, rows_text
from thresher.errors import InputError
from thresher.files import check_sealed, portable, reading, sealed, write_whole
from thresher.inputs import (
    Points,
    Validation,
    check_points,
    check_validation,
    kept,
    row_fingerprints,
    warn_of_twins,
)
from thresher.metrics import Rows
from thresher.near import Distances, Groups
from thresher.neighbors import Exact, check_neighbors, search
from thresher.price_list import PriceList, stored_validation
from thresher.prices import Semivalue, utility

FORMAT = "thresher.counts/1"


class NeighborCounts:
    """For each validation point, the near points that carry its label and those that do not.

    Counts add up: parts of the data may be counted in any order, at any time, on any machine, and
    merged. Adding and removing the same points leaves no trace.

    Parameters
    ----------
    X_val, y_val
        The validation set.
    radius
        Distance up to which a point is near, inclusive.
    metric
        "cosine", "euclidean" or "precomputed" (X_val is None, and X holds distances).
    classes
        All classes; without it, those of `y_val`.
    neighbors
        How near pairs are found, "auto", "all" or "tree", as in `tknn_shapley`; no count depends on
        it, and a saved file does not keep it.

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
        self,
        X_val: object,
        y_val: object,
        *,
        radius: float = 0.5,
        metric: str = "cosine",
        classes: object = None,
        neighbors: Exact = "auto",
    ) -> None:
        self._neighbors: Exact = check_neighbors(neighbors, exact=True)
        validation = check_validation(X_val, y_val, metric=metric, classes=classes)
        self._start(kept(validation), check_radius(radius))

    def _start(self, validation: Validation, radius: float) -> None:
        self._validation = validation
        self._radius = radius
        self._counts = np.zeros((2, len(validation)), np.int64)
        self._present: Counter[int] = Counter()
        self._arrived: list[NDArray[np.uint64]] = []  # fingerprints not yet in `_present`
        self._points = 0

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
        return deepcopy(self)

    def __len__(self) -> int:
        """The number of points counted."""
        return self._points

    def __repr__(self) -> str:
        sizes = f"{len(self)} points, {len(self.validation)} validation points"
        return f"NeighborCounts({sizes}, {self.validation.metric} radius {self.radius:g})"

    def add(self, X: object, y: object) -> NeighborCounts:
        """Count these points in, of which there may be none; returns itself."""
        if _is_empty(X, y):
            return self
        points = check_points(X, y, self.validation)
        warn_of_twins(points, self.validation, stacklevel=3)
        counts, prints = self._count(points)
        self._counts += counts
        self._arrived.append(prints)
        self._points += len(prints)
        return self

    def remove(self, X: object, y: object) -> NeighborCounts:
        """Count these points out, each of which was counted in; returns itself.

        If one was not, nothing changes and the error names the rows.
        """
        counts, prints = self._count(check_points(X, y, self.validation))
        present = self._settled()
        leaving = Counter(prints.tolist())
        unknown = {key for key, times in leaving.items() if present[key] < times}
        if unknown:
            rows = [row for row, key in enumerate(prints.tolist()) if key in unknown]
            raise InputError(
                f"X has {rows_text(rows)} that cannot be removed: not counted in under this label, "
                "or not as often"
            )
        present.subtract(leaving)
        for key in [key for key in leaving if not present[key]]:
            del present[key]
        self._counts -= counts
        self._points -= len(prints)
        return self

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
        groups = Groups.of(points.codes, len(self.validation.classes))
        counts = np.zeros_like(self._counts)
        way = search(
            points.rows, self.validation.rows,
            metric=self.validation.metric, radius=self.radius, neighbors=self._neighbors,
        )  # fmt: skip
        for block in way.blocks(groups):
            codes = self.validation.codes[block.columns]
            segments = groups.segments(np.unique(codes))
            counts[0, block.columns], counts[1, block.columns] = block.own_counts(segments, codes)
        return counts, _fingerprints(points)

    def _settled(self) -> Counter[int]:
        """The fingerprints of all points counted, and how often each was."""
        for prints in self._arrived:
            self._present.update(prints.tolist())
        self._arrived.clear()
        return self._present

    def save(self, path: str | Path) -> None:
        """Write one file (NumPy's .npz, nothing pickled); an existing file is replaced."""
        about = {
            "format": FORMAT,
            "radius": self.radius,
            "metric": self.validation.metric,
            "columns": self.validation.columns,
            "classes": portable("label", self.validation.classes.labels),
        }
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
        with reading(path, "table of counts") as found, found.open("rb") as stream:
            with np.load(stream) as stored:  # each array has a checksum of its own
                arrays = {name: stored[name] for name in stored.files}
            about = json.loads(str(arrays.get("about", "{}")))
            check_sealed(about, FORMAT)
            validation = stored_validation(about, arrays.get("features"), arrays["labels"])
            counts = cls.__new__(cls)
            counts._neighbors = "auto"
            counts._start(validation, check_radius(about["radius"]))
            counts._counts[:] = arrays["counts"]
            times = dict(zip(arrays["prints"].tolist(), arrays["times"].tolist(), strict=True))
            counts._present = Counter(times)
            counts._points = int(arrays["times"].sum())
            return counts


def _fingerprints(points: Points) -> NDArray[np.uint64]:
    rows = points.rows
    if isinstance(rows, Distances):
        if not isinstance(rows.source, np.ndarray):
            raise InputError(
                "X must be one array of distances here: add the points in parts instead"
            )
        rows = Rows(rows.source, np.empty(len(rows)))
    return row_fingerprints(rows, np.arange(len(rows)), points.codes.astype(np.int64))


def _snapshot(array: NDArray[np.int64]) -> NDArray[np.int64]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _is_empty(X: Any, y: Any) -> bool:
    return hasattr(X, "__len__") and hasattr(y, "__len__") and len(X) == len(y) == 0
