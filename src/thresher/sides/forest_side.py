"""The forest: near means in the same leaf of a tree, and a leaf's judges set its prices.

Judges are the points of a validation set, in all trees. Without one, the points judge each other,
each in the trees that did not see it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers, LongWords
from thresher.errors import InputError, either, option
from thresher.files import portable
from thresher.games.classes import ClassCounts
from thresher.games.forest_vote import ForestVote, LabelVote, MemberVote, OtherVote, judge_weights
from thresher.games.owner_counts import leaf_games, mutual_leaf_games
from thresher.games.owner_values import OwnerGames
from thresher.games.semivalues import Semivalue, weight_table
from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import check_both, check_columns
from thresher.inputs.labels import Classes, Codes, RawLabels, check_labels, class_list
from thresher.metrics import Rows, squared_lengths
from thresher.neighbors.ball import Neighbors
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX
from thresher.neighbors.leaves import Leaves
from thresher.neighbors.single_rows import LeafMover, plain_row
from thresher.neighbors.tree_columns import Features, as_floats
from thresher.neighbors.trees import ForestRows, row_prints
from thresher.sides.label_kinds import ClassSide
from thresher.sides.protocol import Footprint, Who
from thresher.threads import thread_count

BLOCK_BYTES = 16 << 20  # of nodes and counts that go to workers at a time
FOREST = either("forest", option("trees"))  # what messages call it
POINTS, VALIDATION = "points", "validation"  # who judges
PREFIX = "forest_"  # of the names of its arrays in a file


@dataclass(frozen=True)
class ForestPoints:
    """Points in the trees that they may fill, and their classes."""

    rows: ForestRows
    codes: Codes

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class ForestSide(ClassSide):
    """A forest and its judges; each leaf is a cell, which counts the points of each class."""

    # forest, classes: the structure of the trees, and the classes
    forest: Forest
    classes: Classes
    # features, codes: the validation set as numbers, and its classes; None and no classes where
    # points judge each other
    features: Features | None
    codes: Codes
    # whether points may have labels that are no class: they are counted together
    strangers: bool = False
    kind: ClassVar[str] = "forest"
    method: ClassVar[str] = "forest-shapley"
    dtype: ClassVar[Any] = np.int32

    @property
    def width(self) -> int:
        """The number of features of a point."""
        assert self.forest.columns is not None  # noqa: S101 - grow_forest knows them
        return self.forest.columns.width

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of counts: a number for each class and leaf."""
        return len(self.classes) + self.strangers, int(self.forest.starts[-1])

    @property
    def holds_points(self) -> bool:
        """Whether points judge each other."""
        return self.features is None

    @property
    def validation(self) -> Validation:
        """The validation set as numbers; trees see them in single precision."""
        assert self.forest.columns is not None  # noqa: S101 - grow_forest knows them
        features = np.zeros((0, self.width)) if self.features is None else self.features
        array = features.astype(np.float64)
        rows = Rows(array, squared_lengths(array))
        return Validation(rows, self.codes, self.classes, "euclidean", self.forest.columns.names)

    def __str__(self) -> str:
        judges = "judged by the points" if self.holds_points else f"{len(self)} validation points"
        return f"{len(self.forest.trees)} trees, {judges}"

    def judges(self, points: int) -> int:
        """How many judge."""
        return points if self.holds_points else len(self)

    def check_points(
        self, X: Any, y: Any, labels: RawLabels | None = None, *, strangers: bool = False,
        first: int = 0, name: str = "X",
    ) -> ForestPoints:  # fmt: skip
        """Points that match the forest in their columns."""
        features = self.forest.encode(name, X)
        found = check_labels("y", y if labels is None else labels, len(features), first=first)
        rows = self.forest.rows(features)
        if strangers and self.strangers:
            codes = self.classes.known_codes(found)
            return ForestPoints(rows, np.where(codes < 0, np.int32(len(self.classes)), codes))
        holder = "y" if name == "X" else name
        return ForestPoints(rows, self.classes.encode(holder, found, first=first))

    def plain_row(self, X: Any) -> Floats | None:
        """The row of a plain array that has one, as trees see it; None for any other X."""
        assert self.forest.columns is not None  # noqa: S101 - grow_forest knows them
        row = None if self.forest.columns.texts else plain_row(X, self.width)
        return None if row is None else as_floats(row).astype(np.float64)

    def stored_points(self, rows: Array, codes: Codes) -> ForestPoints:
        """Points whose features a store has kept."""
        return ForestPoints(self.forest.rows(rows.astype(np.float32)), codes)

    def prints(self, rows: ForestRows, salt: Integers) -> LongWords:
        """A fingerprint of each row and of its integer in `salt`."""
        return row_prints(rows.array, salt)

    def twins(self, points: ForestPoints) -> Flags:  # noqa: ARG002
        """No twins are looked for: if points judge each other, all of them are twins."""
        return np.zeros(len(self), np.bool_)

    def warn_of_reach(self, *, stacklevel: int) -> None:
        """Nothing to warn of: every point is in some leaf."""

    def mover(self) -> LeafMover:
        """What counts single rows."""
        return LeafMover.of(self.forest)

    def near(self, neighbors: Neighbors = "auto") -> Leaves:
        """The leaves."""
        del neighbors
        return Leaves(self.forest.starts)

    def counting(self) -> ClassCounts:
        """What a point adds: one more of its class."""
        return ClassCounts(self.shape[0])

    @property
    def owner_tables(self) -> int:
        """Counts by class."""
        return 1

    def owner_counting(self, owners: int) -> Any:
        """What a point adds: one more of its owner and class."""
        return ClassCounts(owners * (len(self.classes) + 1))

    def owner_games(self, sums: Array, columns: slice, owners: int) -> Iterable[OwnerGames]:
        """One game for each leaf of a tree, or several if points judge each other."""
        counts = sums.reshape(owners, len(self.classes) + 1, -1)[:, :-1].astype(np.int64)
        if self.holds_points:
            return mutual_leaf_games(counts, 1 / self.forest.trees_each)
        return leaf_games(counts, self._judges(columns, counts.sum(axis=0)))

    def owner_cells(self) -> list[slice]:
        """The leaves of each tree."""
        return self._trees()

    def utility(self, counts: Array) -> float:
        """The utility of all points that were counted."""
        vote = self._vote(ForestVote, counts, "shapley")
        trees = self._trees()
        return float(sum(vote.utility(counts[:, each].astype(np.int64), each) for each in trees))

    def prices(self, counts: Array, semivalue: Semivalue) -> Array:
        """The class counts of leaves that have judges; those of other leaves are set to zero."""
        del semivalue
        table = np.array(counts[: len(self.classes)], np.int32)
        if self.holds_points:
            return table
        for columns in self._trees():
            table[:, columns] *= self._judges(columns, table[:, columns]).any(axis=0)
        return table

    def check_prices(self, table: Any) -> Array:
        """`table`, if it can be a table of class counts."""
        found, shape = np.array(table), (len(self.classes), self.shape[1])
        if found.shape != shape or found.dtype.kind not in "iu" or (found < 0).any():
            raise InputError(f"table must hold {shape[0]} x {shape[1]} class counts")
        return found.astype(np.int32)

    def payment(
        self, table: Array, semivalue: Semivalue, who: Who, label: int | None = None
    ) -> tuple[ForestVote, Array]:
        """The game that pays points by class counts, and these counts."""
        if who == "members" and label is None:
            return self._vote(MemberVote, table, semivalue), table
        more = {"member": who == "members", "label": label}
        return self._vote(OtherVote, table, semivalue, **more), table

    def member_prices(self, table: Array, semivalue: Semivalue) -> Floats:
        """What each leaf pays to a member of each class, by class counts."""
        vote = self._vote(ForestVote, table, semivalue)
        trees = self._trees()
        each = [vote.prices(table[:, tree].astype(np.int64), tree)[0] for tree in trees]
        return np.concatenate(each, axis=1)

    def label_payment(self, table: Array, semivalue: Semivalue, who: Who) -> tuple[Any, Array]:
        """What `payment` returns, for every label at once."""
        return self._vote(LabelVote, table, semivalue, member=who == "members"), table

    def _vote(self, kind: Any, counts: Array, semivalue: Semivalue, **more: Any) -> Any:
        """A game of leaves with these counts."""
        most = max((int(counts[:, c].sum(axis=0).max(initial=0)) for c in self._trees()), default=0)
        own = 1 / self.forest.trees_each if self.holds_points else None
        weights = weight_table(semivalue, most + 2)
        return kind(len(self.classes), self._judges, weights, own, **more)

    def _judges(self, columns: slice, sums: Array) -> Floats:
        """The weight of the judges of each class in each leaf of a tree."""
        if self.features is None:
            return np.asarray(sums / self.forest.trees_each, np.float64)
        leaves = self.forest.rows(self.features, everywhere=True).leaves(self.near().tree(columns))
        shape = len(self.classes), columns.stop - columns.start
        return judge_weights(leaves, self.codes, shape) / self.forest.size

    def _trees(self) -> list[slice]:
        """The leaves of each tree."""
        ends = self.forest.starts.tolist()
        return [slice(lo, hi) for lo, hi in pairwise(ends)]

    def params(self, semivalue: str, *, mean: bool) -> dict[str, Any]:
        """What the record of a valuation says about the side."""
        forest = self.forest
        about = {"folds": forest.folds, "seed": forest.seed} if forest.folds else {"folds": None}
        return {
            "forest": forest.name,
            **about,
            "trees": forest.size,
            "semivalue": semivalue,
            **self.task_record(),
            "judges": POINTS if self.holds_points else VALIDATION,
            "validation_points": len(self),
            "mean": mean,
        }

    def named(self, names: tuple[str, ...] | None) -> Self:
        """The same side, if the columns of the points may have these names."""
        assert self.forest.columns is not None  # noqa: S101 - grow_forest knows them
        check_columns("X", names, "the forest", self.forest.columns.names)
        return self

    def with_classes(
        self, classes: Classes, labels: Sequence[Hashable], *, strangers: bool = False
    ) -> Self:
        """The same side with other classes, and these labels of the validation points."""
        codes = classes.encode("y_val", list(labels))
        return dataclasses.replace(self, classes=classes, codes=codes, strangers=strangers)

    def settled(
        self, counts: Array, before: Self, meaning: Mapping[Hashable, Hashable]
    ) -> Array | None:
        """Counts by the classes of this side; None if strangers turn out to differ in class."""
        was = before.classes.known_codes(list(meaning)).tolist()
        now = self.classes.known_codes(list(meaning.values())).tolist()
        moved: dict[int, int] = {}
        for code, target in zip(was, now, strict=True):
            if moved.setdefault(code, target) != target:
                return None
        if all(code == target for code, target in moved.items()):
            return counts[: len(self.classes)]
        found = np.zeros(self.shape, self.dtype)
        for code, target in moved.items():
            found[target] += counts[code]  # strangers, whose code is -1, are in the last row
        return found

    def identity(self) -> dict[str, Any]:
        """What tells this side from others."""
        labels = [self.classes.labels[code] for code in self.codes.tolist()]
        return {
            "forest": self.forest.digest(),
            "validation": validation_digest(self.features, labels),
        }

    def describe(self) -> dict[str, Any]:
        """What a file says about it, besides its arrays."""
        return {
            "forest": self.forest.describe(),
            "judges": POINTS if self.holds_points else VALIDATION,
            "holds_points": self.holds_points,
            "classes": portable("label", self.classes.labels),
        }

    def arrays(self) -> dict[str, Array]:
        """The nodes of the trees, and the validation set if there is one."""
        found = {f"{PREFIX}{name}": array for name, array in self.forest.nodes.items()}
        features = np.zeros((0, self.width), np.float32) if self.features is None else self.features
        return {"labels": self.codes, "features": features, **found}

    def ranges(self) -> list[slice]:
        """The leaves of some trees."""
        per_leaf = 2 * 13 + self.dtype().itemsize * self.shape[0]
        found, lo = [], 0
        for columns in self._trees():
            if (columns.stop - lo) * per_leaf > BLOCK_BYTES and columns.start > lo:
                found.append(slice(lo, columns.start))
                lo = columns.start
        return [*found, slice(lo, self.shape[1])]

    def some(self, block: slice) -> Self:
        """The side of some trees."""
        lo, hi = np.searchsorted(self.forest.starts, [block.start, block.stop]).tolist()
        return dataclasses.replace(self, forest=self.forest.some(lo, hi))

    def footprint(self) -> Footprint:
        """Rows as numbers, their folds and leaves; tables of counts, and one tree at a time."""
        splits = 1 + max(tree.split for tree in self.forest.trees)
        row = (8 + 4) * self.width + 8 * splits + 8 * (thread_count() + 2)
        entries, cells = self.shape
        largest = max(tree.size for tree in self.forest.trees)
        return Footprint(self.width, row, entries * (3 * 4 * cells + 12 * 8 * largest))


def validation_digest(features: Features | None, labels: list[Hashable]) -> str | None:
    """A SHA-256 of a validation set, if there is one."""
    if features is None:
        return None
    state = hashlib.sha256(repr(labels).encode())
    state.update(features.tobytes())
    return state.hexdigest()


def check_leaves_alone(radius: Any, metric: Any, kernel: Any) -> None:
    """Refuse arguments that say what near means: leaves say that already."""
    if (radius, metric, kernel) != (0.5, "cosine", BOX):
        raise InputError(
            f"{option('radius')}, {option('metric')} and {option('kernel')} cannot be used with "
            f"{FOREST}: near means in the same leaf"
        )


def check_forest(forest: Any) -> Forest:
    """`forest`, if it is a `Forest`."""
    if isinstance(forest, Forest):
        return forest
    raise InputError(
        f"forest must be a Forest, as grow_forest makes it, got {type(forest).__name__}"
    )


def forest_side(forest: Any, X_val: Any, y_val: Any, classes: Any) -> ForestSide:
    """The side of a forest and a validation set; without a set, the points judge each other."""
    forest = check_forest(forest)
    check_both(X_val, y_val)
    features, labels = None, check_labels("y_val", [])
    if X_val is not None:
        features = forest.encode("X_val", X_val)
        labels = check_labels("y_val", y_val, len(features))
    found = class_list(classes, list(forest.classes), labels)
    return ForestSide(forest, found, features, found.encode("y_val", labels))
