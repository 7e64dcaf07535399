"""Counted: what the first pass knows after some parts, and keeps in a checkpoint."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from thresher.counts import count_points, point_prints
from thresher.engines.parts import Part, Place
from thresher.engines.resume import Checkpoint
from thresher.errors import InputError
from thresher.files import portable
from thresher.inputs import Points, Validation, find_twins
from thresher.labels import Codes
from thresher.metrics import Rows
from thresher.neighbors import Exact

MOST_CLASSES = 1 << 18  # distinct labels that are kept


@dataclass
class Counted:
    """What the first pass knows after some parts."""

    counts: NDArray[np.int64]
    twins: NDArray[np.bool_]
    place: Place = field(default_factory=Place)
    prints: int = 0
    labels: dict[Hashable, int] = field(default_factory=dict)  # and the row each was first seen in
    whole: bool = False

    @classmethod
    def start(cls, validation: Validation) -> Counted:
        """Nothing counted."""
        return cls(np.zeros((2, len(validation)), np.int64), np.zeros(len(validation), np.bool_))

    def add(
        self, part: Part, points: Points, public: Validation, radius: float, neighbors: Exact
    ) -> None:
        """Count in one part."""
        self.counts += count_points(points, public, radius, neighbors)
        if isinstance(points.rows, Rows) and public.rows is not None:
            self.twins |= find_twins(points.rows, public.rows)
        self.prints = more_prints(self.prints, points, points.codes, part.first)
        self._meet(part)
        self.place = part.after

    def _meet(self, part: Part) -> None:
        if isinstance(part.y, np.ndarray):
            found, places = np.unique(part.y, return_index=True)
            pairs = list(zip(found.tolist(), places.tolist(), strict=True))
        else:
            pairs = [(label, row) for row, label in enumerate(part.y) if label not in self.labels]
        for label, row in pairs:
            self.labels.setdefault(label, part.first + row)
        if len(self.labels) > MOST_CLASSES:
            raise InputError(
                f"y has more than {MOST_CLASSES} distinct labels: classes are needed, such as "
                "groups of them"
            )

    def save(self, checkpoint: Checkpoint, name: str) -> None:
        """Keep it."""
        if checkpoint.folder is None:
            return
        entry = {
            "place": list(self.place),
            "prints": self.prints,
            "labels": portable("label", self.labels),
            "rows": list(self.labels.values()),
            "whole": self.whole,
        }
        checkpoint.save_arrays(name, entry, counts=self.counts, twins=self.twins)

    @classmethod
    def load(cls, checkpoint: Checkpoint, name: str) -> Counted | None:
        """What was kept, if anything."""
        found = checkpoint.load_arrays(name)
        if found is None:
            return None
        entry, arrays = found
        labels = dict(zip(entry["labels"], entry["rows"], strict=True))
        place = Place(*entry["place"])
        return cls(
            arrays["counts"], arrays["twins"], place, entry["prints"], labels, entry["whole"]
        )


def more_prints(prints: int, points: Points, codes: Codes, first: int) -> int:
    """A sum of fingerprints with those of more points, numbered from `first`, of these classes."""
    found = point_prints(Points(points.rows, codes), first)
    return (prints + int(found.sum(dtype=np.uint64))) % 2**64
