"""A private release: the budget is charged, the counts are privatized, and priced.

The order is the point of it: the design is made from public data, the ledger is charged, noise is
drawn, and only then are the points counted. What leaves is the noisy table. Prices follow from it,
and each owner's values from the prices and the owner's own points.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_choice, check_count, check_radius, check_text
from thresher.errors import InputError
from thresher.files import portable, write_whole
from thresher.inputs import check_validation, kept
from thresher.prices import Semivalue, check_semivalue, semivalue_name
from thresher.privacy.accountants import Budget, check_adjacency
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Design, Setting
from thresher.privacy.ledger import Ledger, Receipt
from thresher.privacy.mechanisms import Mechanism, design_release
from thresher.privacy.noise import noise_source
from thresher.privacy.points import PrivatePoints, read_owners, read_points
from thresher.privacy.prior import Public

FORMAT = "thresher.release/1"
Publish = Literal["prices", "values"]
STEPS = 2.0  # expected errors on each side of an interval; measured to hold about 9 in 10
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Error:
    """How far off private values are, by what the release itself tells; it costs nothing.

    Parameters
    ----------
    relative
        The expected root mean square error over the root mean square value, for points like the
        validation points.
    deviation
        The expected error of each value.
    low, high
        The ends of an interval of two expected errors on each side. With epsilon up to 1 and up to
        2,000 points it held the exact value about 9 times in 10 (docs/privacy.md); where noise is
        small, what clipping and the prior get wrong is larger than told. NaN where a mechanism
        cannot tell: samples that are not rescaled, no prior, owners of unknown size.
    """

    relative: float
    deviation: Floats
    low: Floats
    high: Floats

    def __repr__(self) -> str:
        return f"Error(relative={self.relative:.3g}, {len(self.low)} intervals)"


class _Outcome:
    """What a release and its seeded double have in common."""

    stored = False
    record: Mapping[str, Any]
    price_list: Any
    values: Floats  # one a point, in input order; each is for the owner of that point alone

    def __init__(
        self,
        design: Design,
        table: NDArray[np.int64],
        record: dict[str, Any],
        private: PrivatePoints,
        contributions: Contributions,
        owners: tuple[Hashable, ...] | None,
        *,
        stored: bool = False,
    ) -> None:
        self.stored = stored
        self._design, self._private, self._contributions = design, private, contributions
        self._owners = owners
        table.flags.writeable = False
        self.table = table
        self.record = MappingProxyType(record)
        self.price_list, self._drawn = design.prices(table)
        self.values = self._frozen(contributions.values([self.price_list])[0])

    def __repr__(self) -> str:
        about = self.record
        budget = f"epsilon={about['epsilon']:g}, delta={about['delta']:g}"
        what = f"{about['mechanism']}, {budget}, {about['adjacency']}, {about['unit']}"
        return f"{type(self).__name__}({what}{', stored' if self.stored else ''})"

    @cached_property
    def personal_epsilon(self) -> Floats:
        """For every point the epsilon that holds for its owner's actual points, others' whatever.

        It is a function of the owner's own points: tell it to that owner only.
        """
        found = self._design.personal_epsilon(self._contributions)
        each = np.full(len(self._private), self.record["epsilon"])
        if found is not None:
            units = self._contributions.units
            each[units.order] = np.repeat(found, np.diff(units.starts))
        return self._frozen(each)

    @cached_property
    def error(self) -> Error:
        """The expected relative error, and an interval for every value."""
        values = self.values[self._private.where]
        drawn = self._contributions.values(self._drawn)
        deviation = self._frozen(np.sqrt(((drawn - values) ** 2).mean(axis=0)))
        if not self._design.tells_error:
            deviation = np.full(len(deviation), np.nan)
        return Error(self.relative_error, deviation, *interval(self.values, deviation))

    @cached_property
    def relative_error(self) -> float:
        """The expected relative error, for points like the validation points; NaN if unknown."""
        validation = self.price_list.validation
        public = Public.of(validation, self.price_list.radius)
        if public is None or not self._design.tells_error:
            return float("nan")
        values = public.values(self.price_list.gain, self.price_list.loss)
        gains, losses = (
            np.array([getattr(prices, side) for prices in self._drawn]).T
            for side in ("gain", "loss")
        )
        missed = public.values(gains, losses) - values[:, None]
        return float(np.sqrt((missed**2).mean() / max((values**2).mean(), 1e-300)))

    def values_of(self, owner: Hashable) -> Floats:
        """The values of one owner's points, in input order."""
        if self._owners is None:
            raise InputError("the release has no owners: pass owners= to it")
        rows = [row for row, name in enumerate(self._owners) if name == owner]
        if not rows:
            raise InputError(f"owner {owner!r} has no points")
        return self.values[rows]

    def to_json(self) -> str:
        """All that may be published, as one JSON document: record, table, prices.

        Without `publish="values"` the values are not in it: a value is computed from its owner's
        own point, exactly, so a list of everybody's values is not private.
        """
        document = {
            "format": release_format(self.record),
            "record": dict(self.record),
            "table": self.table.tolist(),
            "relative_error": None if np.isnan(self.relative_error) else self.relative_error,
            "prices": self.price_list.document(),
        }
        if self.record["published"] == "values":
            document["values"] = self.values.tolist()
        return json.dumps(document)

    def save(self, path: str | Path) -> None:
        """Write `to_json()` to a file; an existing file is replaced."""
        text = self.to_json()
        write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))

    def _frozen(self, usable: Floats) -> Floats:
        values = self._private.in_input_order(usable)
        values.flags.writeable = False
        return values


class Release(_Outcome):
    """Private values and what may be published of them.

    The noisy table of counts (`table`) is what is released. From it follow `price_list`, which is
    public too, and, with an owner's own points, that owner's `values`.

    Attributes
    ----------
    values, values_of(owner)
        One value a point, each for the eyes of its owner.
    price_list
        The public prices; anyone can value points with them.
    record
        Mechanism, adjacency, unit, epsilon under both adjacencies, delta, sigma, bound, sampling
        scheme, digests, version, ledger entry.
    error
        Expected relative error and an interval for every value, at no cost.
    personal_epsilon
        For every point the epsilon that its owner's actual points have.
    """


class SeededRelease(_Outcome):
    """What a seed repeats, for tests and experiments: it protects nobody, no ledger takes it."""


def dp_tknn_shapley(
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    epsilon: float,
    delta: float,
    radius: float = 0.5,
    metric: str = "cosine",
    classes: Any = None,
    mechanism: str | Mechanism = "table",
    owners: Any = None,
    ledger: str | Path | Ledger | None = None,
    seed: int | None = None,
    adjacency: str = "add-remove",
    semivalue: Semivalue = "shapley",
    publish: Publish = "prices",
    version: str = "",
    points_per_owner: int | None = None,
) -> Release | SeededRelease:
    """Private values of the points, from a noisy table of counts that anyone may see.

    Parameters
    ----------
    X, y
        The private points. A row that cannot be used (a missing number, a label not in the class
        list) counts for nothing and is worth 0: an error would tell that it is there. If all values
        are 0, compare the kinds of labels. With metric="precomputed" X is one array.
    X_val, y_val, radius, metric
        The public side, as in `tknn_shapley`.
    epsilon, delta
        The budget. delta may be 0 for the mechanism "cells" alone, which has none.
    classes
        All classes; without it, those of `y_val`.
    mechanism
        "table" (default), "paper", "cells", or one of `thresher.privacy.Table`, `Paper`, `Cells`
        with options.
    owners
        The owner of each point: then an owner with all its points is what is protected.
    ledger
        A `Ledger` or its path: it is charged before noise is drawn, and refuses what does not fit.
        The same request again returns the stored release at no cost (`stored` is then True).
    seed
        For tests and experiments: the result is a `SeededRelease`, which protects nobody.
    adjacency
        What the budget is about: "add-remove" or "replace-one"; the record states both.
    semivalue
        As in `tknn_shapley`.
    publish
        "values" puts all values into `to_json()`; that list is not covered by the guarantee.
    version
        A public name for the state of the points and owners. To the ledger a request with another
        version is another request; it never looks at the points to see whether they have changed.
    points_per_owner
        About how many points an owner has: a number that is public, or a guess. Without it values
        of owners with many points come out too large, since an owner is taken for one point, and
        the release does not tell its error.

    Returns
    -------
    Release
        Values, prices, record and error.

    Notes
    -----
    The released table is (epsilon, delta)-DP under the stated adjacency, as a public object; so
    whatever any coalition of owners learns beyond its own points is covered. docs/privacy.md has
    the theorems. The number of points is not released.

    Examples
    --------
    >>> import thresher as th
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = X[:, 0] > 0
    >>> release = th.dp_tknn_shapley(
    ...     X[100:], y[100:], X[:100], y[:100], epsilon=1, delta=1e-5, seed=0
    ... )
    >>> release
    SeededRelease(table, epsilon=1, delta=1e-05, add-remove, point)
    >>> exact = th.tknn_shapley(X[100:], y[100:], X[:100], y[:100])
    >>> bool(np.corrcoef(release.values, exact.values)[0, 1] > 0.98)
    True
    """
    budget, source = Budget(epsilon, delta), noise_source(seed)
    if seed is not None and ledger is not None:
        raise InputError("seed and ledger exclude each other: a seeded release protects nobody")
    check_choice("publish", publish, get_args(Publish))
    validation = kept(check_validation(X_val, y_val, metric=metric, classes=classes))
    setting = Setting(
        validation, check_radius(radius), budget, check_adjacency(adjacency),
        "point" if owners is None else "owner", check_semivalue(semivalue),
        check_points_per_owner(points_per_owner, owners=owners is not None),
    )  # fmt: skip
    design = design_release(mechanism, setting)
    known_owners = read_owners(owners)
    owned = None if known_owners is None else np.array([o is not None for o in known_owners], bool)
    private = read_points(X, y, validation, owned)
    units = Units.of(_owner_numbers(known_owners, private), len(private))
    contributions = Contributions(private.points, validation, setting.radius, units)
    record = _record(setting, design, version, seeded=seed is not None)
    portable("label", validation.classes.labels)  # before anything is charged

    def draw(receipt: Receipt | None) -> dict[str, Any]:
        noise = design.noise(source)  # before anything is counted
        table = design.measure(contributions, source) + noise
        entry = None if receipt is None else {"entry": receipt.seq, "head": receipt.head}
        whole = record | {"ledger": entry, "table_digest": _digest(table)}
        return {"record": whole, "table": table.tolist()}

    body, new = _through(ledger, setting, design, record, draw)
    kind = Release if seed is None else SeededRelease
    table, whole = np.array(body["table"], np.int64), body["record"] | {"published": publish}
    return kind(design, table, whole, private, contributions, known_owners, stored=not new)


def release_format(record: Mapping[str, Any]) -> str:
    """The format of a published release; one that protects nobody has another."""
    return f"{FORMAT} seeded: protects nobody" if record["seeded"] else FORMAT


def check_points_per_owner(number: object, *, owners: bool) -> int | None:
    """`number`, if it is a count and there are owners, or None."""
    if number is None:
        return None
    if not owners:
        raise InputError("points_per_owner goes with owners=")
    return check_count("points_per_owner", number)


def interval(values: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The ends of intervals: two expected errors on each side."""
    return values - STEPS * deviation, values + STEPS * deviation


def _owner_numbers(
    owners: tuple[Hashable, ...] | None, private: PrivatePoints
) -> NDArray[np.int64] | None:
    if owners is None:
        return None
    numbers: dict[Hashable, int] = {}
    each = [numbers.setdefault(owner, len(numbers)) for owner in owners]  # None: left out below
    return np.array(each, np.int64)[private.where]


def _record(setting: Setting, design: Design, version: str, *, seeded: bool) -> dict[str, Any]:
    """What is known before the points are counted."""
    import thresher

    pure = design.record["mechanism"] == "cells"
    return {
        **design.record,
        "adjacency": setting.adjacency,
        "unit": setting.unit,
        "epsilon": setting.budget.epsilon,
        "delta": 0.0 if pure else setting.budget.delta,
        "epsilon_add_remove": _finite(design.epsilon("add-remove")),
        "epsilon_replace_one": _finite(design.epsilon("replace-one")),
        "radius": setting.radius,
        "metric": setting.validation.metric,
        "semivalue": semivalue_name(setting.semivalue),
        "classes": len(setting.validation.classes),
        "validation_points": len(setting.validation),
        "validation_digest": setting.validation.digest(),
        "data_version": check_text("version", version),
        "points_per_owner": setting.points_per_owner,
        "seeded": seeded,
        "version": thresher.__version__,
    }


def _through(
    ledger: str | Path | Ledger | None,
    setting: Setting,
    design: Design,
    record: dict[str, Any],
    draw: Callable[[Receipt | None], dict[str, Any]],
) -> tuple[dict[str, Any], bool]:
    """What `draw` gives, charged to the ledger if there is one, and whether it is new.

    A point of an owner may turn the whole of that owner's clipped vector, so that to a ledger of
    points a release that protects owners costs what replacing an owner costs.
    """
    if ledger is None:
        return draw(None), True
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    try:
        if book.unit == "owner" and setting.unit == "point":
            raise InputError("the ledger protects owners: pass owners=")
        adjacency = book.adjacency if book.unit == setting.unit else "replace-one"
        return book.release(_request(record), design.cost(adjacency, book.filter), record, draw)
    finally:
        if book is not ledger:
            book.close()


def _request(record: dict[str, Any]) -> str:
    """A name for the question. Nothing private is in it: it becomes part of published hashes."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def _digest(table: NDArray[np.int64]) -> str:
    return hashlib.sha256(repr(table.shape).encode() + table.tobytes()).hexdigest()
