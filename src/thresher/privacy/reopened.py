"""Open a published release again with your own points, to check the prices and your own pay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from thresher.errors import InputError
from thresher.games.semivalues import check_semivalue
from thresher.inputs.checked_inputs import check_validation, own_copy
from thresher.neighbors.kernel import Kernel
from thresher.price_list import PriceList
from thresher.privacy.accountants import Budget, check_adjacency
from thresher.privacy.names import read_owners
from thresher.privacy.release import Release, SeededRelease
from thresher.privacy.release_setting import design_release, read_contributions, side_setting
from thresher.sides.ball_side import BallSide
from thresher.sides.forest_side import ForestSide, forest_side
from thresher.sides.protocol import PublicSide


def reopen(
    published: Mapping[str, Any], X: Any, y: Any, X_val: Any, y_val: Any, *, owners: Any,
    classes: Any = None,
) -> Release | SeededRelease:  # fmt: skip
    """Open a published release with these points; no noise is drawn and nothing is charged.

    Prices, pay and values are computed from the published table, the public validation set and the
    points passed here. So owners can check their own pay with their own points.

    Parameters
    ----------
    published
        What `Release.to_json` wrote, read again: by mechanism "table" with its usual options.
    X, y, owners
        Points of some of the owners.
    X_val, y_val, classes
        The public side, as it was.

    Raises
    ------
    InputError
        If the validation set is another one, or the record does not follow from it.
    """
    record = dict(published["record"])
    setting = side_setting(
        _public_side(published, X_val, y_val, classes), unit=record["unit"],
        budget=Budget(record["epsilon"], record["delta"]),
        adjacency=check_adjacency(record["adjacency"]),
        semivalue=check_semivalue(record["semivalue"]),
        points_per_owner=record["points_per_owner"],
    )  # fmt: skip
    validation = setting.validation
    if validation.digest() != record["validation_digest"]:
        raise InputError("this is not the validation set of the release")
    design = design_release(record["mechanism"], setting)
    changed = [name for name, entry in design.record.items() if record.get(name) != entry]
    if changed:
        raise InputError(
            f"the record does not follow from the public facts: {', '.join(changed)} differ, or "
            "the mechanism had options that the record does not state"
        )
    known = read_owners(owners)
    private, contributions = read_contributions(setting, X, y, known)
    kind = SeededRelease if record["seeded"] else Release
    table = np.array(published["table"], np.int64)
    return kind(design, table, record, private, contributions, known, stored=True)


def _public_side(published: Mapping[str, Any], X_val: Any, y_val: Any, classes: Any) -> PublicSide:
    """The public side that the record describes; a forest is taken from the price list."""
    record = published["record"]
    if "forest_digest" not in record:
        validation = check_validation(
            X_val, y_val, metric=record["metric"], classes=classes, public=True
        )
        return BallSide(own_copy(validation), record["radius"], Kernel.recorded(record))
    listed = PriceList.read(published["prices"]).side
    if not isinstance(listed, ForestSide) or listed.forest.digest() != record["forest_digest"]:
        raise InputError("the forest in the price list is not that of the release")
    return forest_side(listed.forest, X_val, y_val, classes)
