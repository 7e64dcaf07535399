"""A private release: the budget is charged, the counts are privatized, and priced.

The order matters: the design is made from public data, the ledger is charged, noise is drawn, and
only then are the points counted. Only the noisy table leaves. Prices follow from the table, and
each owner's values from the prices and the owner's own points.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, ScaleWarning, either, option
from thresher.files import portable
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.inputs.checks import MAX_INTEGER, check_choice, check_count, check_flag, check_text
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX
from thresher.privacy.accountants import Budget, Cost, check_adjacency
from thresher.privacy.design import Design, check_points_per_owner, stated_epsilons
from thresher.privacy.ledger import Ledger, Receipt
from thresher.privacy.names import read_owners
from thresher.privacy.noise import noise_source, opendp
from thresher.privacy.plan import check_more_than_noise
from thresher.privacy.release import Release, SeededRelease
from thresher.privacy.release_setting import (
    RINGS,
    Game,
    Mechanism,
    design_release,
    read_contributions,
    release_setting,
)
from thresher.regression import CLASSES
from thresher.version import __version__

Publish = Literal["prices", "values"]
UNKNOWN_SIZE = (
    "treats each owner as one point, so the values of owners with many points are too large, "
    "though their order holds"
)


def dp_tknn_shapley(
    X: Any, y: Any, X_val: Any, y_val: Any, *, epsilon: float, delta: float, radius: float = 0.5,
    metric: str = "cosine", classes: Any = None, mechanism: str | Mechanism = "table",
    owners: Any = None, ledger: str | Path | Ledger | None = None, seed: int | None = None,
    adjacency: str = "add-remove", semivalue: Semivalue = "shapley", publish: Publish = "prices",
    version: str = "", points_per_owner: int | None = None, points: int | None = None,
    anyway: bool = False, task: str = CLASSES, bounds: tuple[float, float] | None = None,
    empty: float | None = None, kernel: Any = BOX, rings: int = RINGS,
    forest: Forest | None = None,
) -> Release | SeededRelease:  # fmt: skip
    """Private values of the points, from a noisy table of counts that anyone may see.

    Parameters
    ----------
    X, y
        The private points. A row that cannot be used (a missing number, a label not in the class
        list) counts for nothing and is worth 0: an error would reveal that it is there. The
        result's `unusable` lists such rows, for you alone. With metric="precomputed" X is one
        array.
    X_val, y_val, radius, metric
        The public side, as in `tknn_shapley`.
    epsilon, delta
        The budget. Only the mechanism "cells" accepts delta = 0.
    classes
        All classes. The default is those of `y_val`.
    mechanism
        "table" (default), "paper", "cells", or one of `thresher.privacy.Table`, `Paper`, `Cells`
        with options.
    owners
        The owner of each point. All points of an owner are then protected together.
    ledger
        A `Ledger` or its path: it is charged before noise is drawn, and refuses what does not fit.
        The same request again returns the stored release at no cost (`stored` is then True).
    seed
        For tests and experiments: the result is a `SeededRelease`, which protects nobody. Never
        pass it in production: anyone who knows the seed can remove the noise.
    adjacency
        What the budget refers to: "add-remove" or "replace-one"; the record states both.
    semivalue
        As in `tknn_shapley`.
    publish
        "prices" (the default) keeps values out of `to_json()`. "values" puts all of them in; that
        list is not covered by the guarantee.
    version
        A public name for the state of the points and owners. A request with another version is
        another request to the ledger. The ledger never looks at the points to see whether they
        changed.
    points_per_owner
        About how many points an owner has: a public number, or a guess. Without it, an owner counts
        as one point, so the values of owners with many points are too large. A `ScaleWarning` and
        the record say so, and nobody should be paid by such values.
    points
        About how many points there are: a public number, or a guess. The bound of the table then
        fits this number, and a release that would be noise is refused before it is charged. The
        points themselves are not used for that.
    anyway
        Release the table even if it would be noise.
    task
        As in `tknn_shapley`; regression needs the mechanism "table".
    bounds
        As in `tknn_shapley`, but required here. Private targets outside it are clipped without
        notice, so choose it without looking at them.
    empty
        For regression: as in `tknn_shapley`.
    kernel, rings
        As in `tknn_shapley`, but with fewer rings by default, because each ring has its own noise.
        Kernels need classes and the mechanism "table".
    forest
        Trees that were grown from public rows, such as `thresher.privacy.public_forest` grows on
        the validation set: then near means in the same leaf, as in `forest_shapley` with a
        validation set, and radius, metric and kernel are not used. A point moves the table by the
        square root of the number of trees, and nothing is clipped unless there are owners. Leaves
        need classes and the mechanism "table". The release cannot state its own error.

    Returns
    -------
    Release
        Values, prices, record and error.

    Raises
    ------
    BudgetError
        If the release does not fit what is left in the ledger. Then nothing was charged.
    InputError
        If an argument cannot be used, or the table would be noise.

    Notes
    -----
    The released table is (epsilon, delta)-DP under the stated adjacency, as a public object. So the
    guarantee covers whatever any coalition of owners learns beyond its own points.
    docs/privacy-proofs.md has the theorems. The number of points is not released.

    Examples
    --------
    >>> import numpy as np
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
        raise InputError("seed cannot be used with ledger: a seeded release protects nobody")
    check_choice("publish", publish, get_args(Publish))
    setting = release_setting(
        Game(X_val, y_val, radius, metric, classes, task, bounds, empty, kernel, rings, forest),
        budget,
        check_adjacency(adjacency), "point" if owners is None else "owner", semivalue,
        check_points_per_owner(points_per_owner, owners=owners is not None),
        None if points is None else check_count(option("points"), points, most=MAX_INTEGER),
    )  # fmt: skip
    validation, design = setting.validation, design_release(mechanism, setting)
    _check_foretold(design, anyway=anyway)
    known_owners = read_owners(owners)
    private, contributions = read_contributions(setting, X, y, known_owners)
    record = release_record(design, version, seeded=seed is not None)
    portable("label", validation.classes.labels)  # before anything is charged
    if not setting.knows_size:
        warnings.warn(
            f"a release of owners without {option('points_per_owner')} {UNKNOWN_SIZE}: before you "
            "pay anyone, pass roughly how many points each owner has (1 if each has one)",
            ScaleWarning,
            stacklevel=2,
        )

    def draw(receipt: Receipt | None) -> dict[str, Any]:
        known = design.settled(contributions, source)
        table = known.release(contributions, source)
        entry = None if receipt is None else {"entry": receipt.seq, "head": receipt.head}
        digest = {"ledger": entry, "table_digest": table_digest(table)}
        whole = record | known.record | digest
        return {"record": whole, "table": table.tolist()}

    body, new = _through(ledger, design, record, draw)
    kind = Release if seed is None else SeededRelease
    table, whole = np.array(body["table"], np.int64), body["record"] | {"published": publish}
    known = design.recorded(whole)
    return kind(known, table, whole, private, contributions, known_owners, stored=not new)


def _check_foretold(design: Design, *, anyway: object) -> None:
    """Refuse a release that would be noise, by public numbers alone."""
    anyway, points = check_flag("anyway", anyway), design.setting.points
    if anyway and points is None:
        both = f"{option('anyway')} needs {option('points')}"
        raise InputError(f"{both}: without the number of points, no release is refused as noise")
    if points is not None and not anyway:
        check_more_than_noise(design, points)


def release_record(design: Design, version: str, *, seeded: bool) -> dict[str, Any]:
    """The part of the record that is known before the points are counted; all of it is public."""
    setting = design.setting
    pure = design.record["mechanism"] == "cells"
    return {
        **design.record,
        **({} if setting.knows_size else {"caveat": UNKNOWN_SIZE}),
        "adjacency": setting.adjacency,
        "unit": setting.unit,
        "epsilon": setting.budget.epsilon,
        "delta": 0.0 if pure else setting.budget.delta,
        **stated_epsilons(design),
        "radius": setting.radius,
        "metric": setting.validation.metric,
        "semivalue": semivalue_name(setting.semivalue),
        **setting.record(),
        "validation_points": len(setting.validation),
        "validation_digest": setting.validation.digest(),
        "data_version": check_text(option("version"), version),
        "points_per_owner": setting.points_per_owner,
        "seeded": seeded,
        "version": __version__,
    }


def _through(
    ledger: str | Path | Ledger | None, design: Design, record: dict[str, Any],
    draw: Callable[[Receipt | None], dict[str, Any]],
) -> tuple[dict[str, Any], bool]:  # fmt: skip
    """The answer of `draw`, charged to the ledger if there is one, and whether it is new."""
    if ledger is None:
        return draw(None), True
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    cost = ledger_cost(book, design)
    # a name for the question; nothing private is in it: it becomes part of published hashes
    request = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    if book.stored(request) is None:
        opendp()  # before the charge: if it is missing, or a kill comes meanwhile, nothing is spent
    return book.release(request, cost, record, draw)


def ledger_cost(book: Ledger, design: Design) -> Cost:
    """What a release costs this ledger."""
    check_units(book, design)
    return design.cost(book.adjacency, book.unit, book.filter)


def check_units(book: Ledger, design: Design) -> None:
    """Raise if the ledger protects owners and the release points: nothing bounds what they add."""
    if book.unit == "owner" and design.setting.unit == "point":
        owners = either("owners=", option("owner"))
        raise InputError(f"the ledger protects owners: pass {owners}")


def table_digest(table: NDArray[np.int64]) -> str:
    """The digest of a released table, as its record states it."""
    return hashlib.sha256(repr(table.shape).encode() + table.tobytes()).hexdigest()
