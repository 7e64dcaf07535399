"""The ball: validation points judge, and near is whatever is within a radius of them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, ReachWarning, either, option
from thresher.files import portable
from thresher.games.classes import ClassGame, RelabelGame
from thresher.games.label_sums import LabelGame
from thresher.games.owner_counts import OwnerAgreement
from thresher.games.owner_values import OwnerGames
from thresher.games.semivalues import Semivalue, prices_between, rest_prices
from thresher.inputs.checked_inputs import (
    Points,
    Validation,
    check_points,
    find_twins,
    point_prints,
)
from thresher.inputs.checks import check_columns
from thresher.inputs.labels import Classes, Codes, RawLabels
from thresher.metrics import Rows, measure
from thresher.neighbors.ball import Ball, Neighbors
from thresher.neighbors.kernel import Kernel
from thresher.neighbors.rings import BYTES as RING_BYTES
from thresher.neighbors.single_rows import Panels, plain_row
from thresher.sides.label_kinds import ClassSide, check_table
from thresher.sides.protocol import Footprint, Who
from thresher.threads import cut

CARRIES, LACKS, NEWCOMER = 0, 1, 2  # who is priced: a member with v's label, without it, a newcomer
GAIN, LOSS = 0, 1  # the label under which it is priced: v's own, or another
BALL, RINGS = "ball", "rings"  # what files call sides
LANES = 64  # validation points whose prices are summed at a time
BLOCK_BYTES = 4 << 20  # of validation rows that go to workers at a time


@dataclass(frozen=True)
class BallSide(ClassSide):
    """A validation set and a radius, or a kernel; each validation point is a cell.

    A cell counts the near points with its label and those with another one. Prices have the shape
    (3, 2, M): for a member that carries the validation point's label, a member that lacks it, and a
    newcomer; each under that label and under another one. With a kernel, each ring has its own
    prices: their shape is (3, 2, rings, M).
    """

    validation: Validation
    radius: float
    kernel: Kernel | None = None
    method: ClassVar[str] = "tknn-shapley"
    dtype: ClassVar[Any] = np.int64
    holds_points: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        """Its name in files."""
        return BALL if self.kernel is None else RINGS

    @property
    def classes(self) -> Classes:
        """The classes."""
        return self.validation.classes

    @property
    def codes(self) -> Codes:
        """The class of each validation point."""
        return self.validation.codes

    @property
    def width(self) -> int:
        """The number of features of a point, or of distances."""
        rows = self.validation.rows
        return len(self.validation) if rows is None else rows.width

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of counts: two numbers for each ring of each validation point."""
        return self.counting().entries, len(self)

    @property
    def edges(self) -> tuple[float, ...]:
        """The outer edges of the rings; empty without a kernel."""
        return () if self.kernel is None else self.kernel.edges

    @property
    def rings(self) -> int:  # type: ignore[override]
        """The number of rings in which a cell counts its points."""
        return max(1, len(self.edges))

    @property
    def price_shape(self) -> tuple[int, ...]:
        """The shape of one kind of prices: one for each ring of each validation point."""
        return (*((len(self.edges),) if self.edges else ()), len(self))

    def __str__(self) -> str:
        about = f"{len(self)} validation points, {self.validation.metric}"
        rings = "" if self.kernel is None else f", {self.kernel}"
        return f"{about} radius {self.radius:g}{rings}"

    def judges(self, points: int) -> int:  # noqa: ARG002 - whatever the points
        """How many judge."""
        return len(self)

    def check_points(
        self, X: Any, y: Any, labels: RawLabels | None = None, *, strangers: bool = False,
        first: int = 0, name: str = "X",
    ) -> Points:  # fmt: skip
        """Points that match the validation set in width and classes."""
        return check_points(
            X, y, self.validation, labels, strangers=strangers, first=first, name=name
        )

    def plain_row(self, X: Any) -> NDArray[np.float64] | None:
        """The row of a plain array that has one, in float64; None for any other X."""
        return None if self.validation.rows is None else plain_row(X, self.width)

    def stored_points(self, rows: NDArray[Any], codes: Codes) -> Points:
        """Points whose features a store has kept."""
        return Points(measure("X", rows, cosine=self.validation.metric == "cosine"), codes)

    def prints(self, rows: Any, salt: NDArray[np.int64]) -> NDArray[np.uint64]:
        """A fingerprint of each row and of its integer in `salt`."""
        return point_prints(rows, salt)

    def twins(self, points: Points) -> NDArray[np.bool_]:
        """Which validation rows also occur among the points."""
        if isinstance(points.rows, Rows) and self.validation.rows is not None:
            return find_twins(points.rows, self.validation.rows)
        return np.zeros(len(self), np.bool_)

    def warn_of_reach(self, *, stacklevel: int) -> None:
        """Warn that no point is near."""
        whom = "another" if self.validation.mutual else "any validation point"
        warnings.warn(
            either(
                f"no point is within radius {self.radius:g} of {whom}, so every value is 0: "
                "suggest_radius finds a radius that fits the data",
                f"no point is within the radius of {whom}, so every value is 0: the "
                f"{option('radius')} is too small, or a column such as an id makes up the "
                "distances",
            ),
            ReachWarning,
            stacklevel=stacklevel,
        )

    def mover(self) -> Panels | None:
        """What counts single rows; None if distances are precomputed."""
        if self.validation.rows is None:
            return None
        return Panels.of(self.validation, self.edges or (self.radius,))

    def near(self, neighbors: Neighbors = "auto") -> Ball:
        """The points within the radius of each validation point."""
        return Ball.around(self.validation, self.radius, neighbors, self.edges)

    def counting(self, semivalue: Semivalue = "shapley") -> ClassGame:
        """What a point adds: one more with the label of a validation point, or with another one."""
        return ClassGame.of(self.validation, semivalue, self.kernel)

    @property
    def owner_tables(self) -> int:
        """Two tables: of points with the validation point's label, and of all."""
        return 2

    def owner_counting(self, owners: int) -> Any:
        """What a point adds: one more of its owner, and one of those that agree, if it does."""
        weights = () if self.kernel is None else self.kernel.weights
        return OwnerAgreement(self.codes, len(self.classes) + 1, owners, weights)

    def owner_games(self, sums: NDArray[Any], columns: slice, owners: int) -> list[OwnerGames]:
        """One game for each validation point."""
        del columns
        return [self.owner_counting(owners).games(sums, 1 / len(self.classes))]

    def owner_cells(self) -> list[slice]:
        """Groups of 64 validation points."""
        return [slice(*piece) for piece in cut(0, len(self), LANES)]

    def utility(self, counts: NDArray[Any]) -> float:
        """The utility of all points that were counted."""
        return self.counting().utility(counts)

    def prices(self, counts: NDArray[Any], semivalue: Semivalue) -> NDArray[np.float64]:
        """The prices that follow from counts; estimated counts may be fractions."""
        if self.kernel is not None:
            return self.counting(semivalue).all_prices(np.asarray(counts))
        same, other = counts
        rests = [(np.maximum(same - 1, 0), other), (same, np.maximum(other - 1, 0)), (same, other)]
        price = rest_prices if same.dtype.kind == "i" else prices_between
        return np.array([price(*rest, len(self.classes), semivalue) for rest in rests])

    def check_prices(self, table: Any) -> NDArray[np.float64]:
        """`table`, if it can be a table of prices."""
        return check_table(table, (3, 2, *self.price_shape))

    def payment(
        self, table: NDArray[Any], semivalue: Semivalue, who: Who, label: int | None = None
    ) -> tuple[ClassGame, NDArray[Any]]:
        """The game that pays points by a table of prices, and the prices that it uses."""
        if label is not None:
            about = self.codes, len(self.classes), semivalue, self.counting().weights
            game = RelabelGame(*about, label=label)
            return game, table[[CARRIES, LACKS]]
        members = np.array([table[CARRIES, GAIN], table[LACKS, LOSS]])
        return self.counting(), members if who == "members" else table[NEWCOMER]

    def label_payment(
        self, table: NDArray[Any], semivalue: Semivalue, who: Who
    ) -> tuple[LabelGame, NDArray[Any]]:
        """What `payment` returns, for every label at once."""
        del semivalue  # is in the prices
        both = [CARRIES, LACKS] if who == "members" else [NEWCOMER, NEWCOMER]
        return LabelGame(self.codes, len(self.classes)), table[both]

    def params(self, semivalue: str, *, mean: bool) -> dict[str, Any]:
        """What the record of a valuation says about the side."""
        return {
            **self._near_record(),
            "semivalue": semivalue,
            **self.task_record(),
            **self.validation.record(),
            "mean": mean,
        }

    def named(self, names: tuple[str, ...] | None) -> Self:
        """The same side, if the columns of the points may have these names."""
        known = self.validation.columns
        check_columns("X", names, "X_val", known)
        validation = dataclasses.replace(self.validation, columns=known or names)
        return dataclasses.replace(self, validation=validation)

    def with_classes(
        self, classes: Classes, labels: Sequence[Hashable], *, strangers: bool = False
    ) -> Self:
        """The same side with other classes; a stranger counts as a point with another label."""
        del strangers
        codes = classes.encode("y_val", list(labels))
        validation = dataclasses.replace(self.validation, classes=classes, codes=codes)
        return dataclasses.replace(self, validation=validation)

    def settled(
        self, counts: NDArray[Any], before: Self, meaning: Mapping[Hashable, Hashable]
    ) -> NDArray[Any] | None:
        """The counts, if the labels that agree now are exactly those that agreed when counted."""
        was = before.classes.known_codes(list(meaning))
        now = self.classes.known_codes(list(meaning.values()))
        pairs = set(zip(before.codes.tolist(), self.codes.tolist(), strict=True))
        carried, counted_as = {b for _, b in pairs}, {a for a, _ in pairs}
        if not len(counted_as) == len(carried) == len(pairs):
            return None
        found = zip(was.tolist(), now.tolist(), strict=True)
        same = all(
            pair in pairs or (pair[0] not in counted_as and pair[1] not in carried)
            for pair in found
        )
        return counts if same else None

    def identity(self) -> dict[str, Any]:
        """What tells this side from others."""
        return {
            **self._near_record(),
            "validation": self.validation.digest(),
        }

    def _near_record(self) -> dict[str, Any]:
        kernel = {} if self.kernel is None else self.kernel.record()
        return {"radius": self.radius, **kernel, "metric": self.validation.metric}

    def describe(self) -> dict[str, Any]:
        """What a file says about it, besides its rows and labels."""
        return {
            **self._near_record(),
            "columns": self.validation.columns,
            "classes": portable("label", self.classes.labels),
            **({"complete": True} if self.validation.complete else {}),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Rows, if there are any, and labels."""
        rows = self.validation.rows
        return {"labels": self.codes} | ({} if rows is None else {"features": rows.array})

    def ranges(self) -> list[slice]:
        """Ranges of validation points; all but the last consist of whole groups of 64."""
        size = max(1, BLOCK_BYTES // (8 * self.width * LANES)) * LANES
        count = len(self)
        return [slice(start, min(count, start + size)) for start in range(0, count, size)]

    def some(self, block: slice) -> Self:
        """The side of some validation points, which have features."""
        rows = self.validation.rows
        assert rows is not None  # noqa: S101 - by those who call
        some = Rows(np.ascontiguousarray(rows.array[block]), rows.squares[block].copy())
        validation = dataclasses.replace(self.validation, rows=some, codes=self.codes[block].copy())
        return dataclasses.replace(self, validation=validation)

    def footprint(self) -> Footprint:
        """What rows take in memory; a tree may search them."""
        return Footprint(self.width, standing=RING_BYTES if self.edges else 0, tree=True)


def only_ball(side: object) -> BallSide:
    """`side`, if it has a validation set and a radius."""
    if isinstance(side, BallSide):
        return side
    raise InputError(f"this works only with a validation set and a radius, not with {side}")
