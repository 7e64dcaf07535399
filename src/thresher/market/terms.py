"""The terms of a task: everything about it that is public and fixed once it is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from thresher.errors import InputError
from thresher.inputs.checks import check_choice, check_count, check_flag, check_radius, check_text
from thresher.neighbors.kernel import BOX, MOST_RINGS, SHAPES
from thresher.privacy.accountants import Budget
from thresher.privacy.release_setting import RINGS
from thresher.runs.public_encoding import Preparation

KERNELS = (BOX, *SHAPES)
LEAVES = 16  # of a tree, at most
MOST_TREES, MOST_LEAVES = 32, 64  # the terms of a task hold them all
MOST_CENTS, MOST_OWNERS, MOST_ROWS, MOST_POINTS = 10**15, 10**9, 10**7, 2**53
METRICS, PAYS, BASES = ("cosine", "euclidean"), ("estimate", "lower"), ("total", "gains")


@dataclass(frozen=True)
class Terms:
    """What a buyer asks for and pays for.

    Parameters
    ----------
    label
        The column of labels, in the validation set and in the owners' files.
    pot_cents
        The money to pay, in whole cents.
    epsilon, delta
        How much privacy the release of this task may cost each owner with all rows.
    rows_per_owner
        About how many rows an owner is expected to submit.
    owners
        About how many owners are expected.
    classes
        All labels. The default is those of the validation set.
    standardize, fill, categorical
        How columns become numbers, as in `thresher release`; this uses the validation set alone.
    metric, radius, kernel, rings
        As in `dp_tknn_shapley`. The default `radius` is the one that `suggest_radius` finds.
    trees, leaves
        With `trees`, rows are near if they are in the same leaf of a tree. There are this many
        trees with at most this many leaves each, and metric, radius and kernel are not used.
    forest
        Those trees. `public_forest` grows them as soon as the task has its validation set.
    pay, basis
        As in `private_payout`.
    most_rows
        The most rows that one owner may submit.
    """

    label: str
    pot_cents: int
    epsilon: float
    delta: float
    rows_per_owner: int
    owners: int
    classes: tuple[str, ...] | None = None
    standardize: bool = True
    metric: str = "euclidean"
    radius: float | None = None
    pay: str = "estimate"
    basis: str = "gains"
    most_rows: int = 100_000
    kernel: str = BOX
    rings: int = RINGS
    categorical: tuple[str, ...] = ()
    fill: str | None = None
    trees: int | None = None
    leaves: int = LEAVES
    forest: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_text("label", self.label, empty=False)
        check_count("pot_cents", self.pot_cents, least=0, most=MOST_CENTS)
        Budget(self.epsilon, self.delta)
        for name in ("rows_per_owner", "owners"):
            check_count(name, getattr(self, name), most=MOST_OWNERS)
        check_count("most_rows", self.most_rows, most=MOST_ROWS)
        check_count("owners x rows_per_owner", self.owners * self.rows_per_owner, most=MOST_POINTS)
        if self.radius is not None:
            check_radius(self.radius)
        check_flag("standardize", self.standardize)
        check_count("rings", self.rings, most=MOST_RINGS)
        for name in (*self.categorical, *([] if self.fill is None else [self.fill])):
            check_text("categorical and fill", name, empty=False)
        for name, choices in (("metric", METRICS), ("pay", PAYS), ("basis", BASES),
                              ("kernel", KERNELS)):  # fmt: skip
            check_choice(name, getattr(self, name), choices)
        if self.kernel == BOX and self.rings != RINGS:
            raise InputError(
                f"rings={self.rings} needs a kernel other than {BOX!r}, such as 'gaussian': leave "
                "rings out"
            )
        check_count("leaves", self.leaves, least=2, most=MOST_LEAVES)
        if self.trees is None and self.leaves != LEAVES:
            raise InputError(f"leaves={self.leaves} needs trees: pass trees, or leave leaves out")
        if self.trees is not None:
            self._check_trees()

    def _check_trees(self) -> None:
        check_count("trees", self.trees, most=MOST_TREES)
        if (self.metric, self.radius, self.kernel) != (METRICS[1], None, BOX):
            raise InputError("trees cannot be used with metric, radius or kernel: leave those out")
        if self.pay == "lower":
            raise InputError(
                "pay='lower' cannot be used with trees: such a release does not state its error"
            )

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read terms from a `document()`."""
        names = [field.name for field in fields(cls)]
        known = {name: document[name] for name in names if name in document}
        lists = {name: tuple(entry) for name, entry in known.items() if isinstance(entry, list)}
        return cls(**known | lists)

    def document(self) -> dict[str, Any]:
        """The terms as JSON."""
        known = asdict(self)
        return {
            name: list(entry) if isinstance(entry, tuple) else entry
            for name, entry in known.items()
        }

    @property
    def preparation(self) -> Preparation:
        """How the columns are prepared."""
        return Preparation(self.standardize, self.fill, self.categorical)

    @property
    def weighting(self) -> dict[str, Any]:
        """The weights of near rows, as arguments of the library."""
        rings = {} if self.kernel == BOX else {"rings": self.rings}
        return {"kernel": self.kernel, **rings}
