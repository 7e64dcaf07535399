"""Rows that several owners have: exact twins, and pairs within a small radius."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Integers
from thresher.games.owner_counts import OwnerAgreement
from thresher.inputs.checked_inputs import check_mutual
from thresher.inputs.checks import check_radius
from thresher.inputs.labels import check_owners
from thresher.neighbors.ball import Ball
from thresher.passes.owner_sums import OwnedPoints, OwnerNames
from thresher.passes.walk import show_sums
from thresher.payouts.shares import money
from thresher.report.phrases import brief
from thresher.sides.ball_side import BallSide
from thresher.statement_page import Table


@dataclass(frozen=True)
class SharedRows:
    """What one owner has in common with another."""

    # owner, other: whose rows, and in whose data they occur again
    owner: Hashable
    other: Hashable
    # exact, near: how many rows of `owner` equal a row of `other`; and how many more lie within
    # the radius of one
    exact: int
    near: int


def shared_table(shared: Sequence[SharedRows], cents: Mapping[Any, int]) -> Table:
    """A table for a page: rows in common, and what both owners are paid."""
    rows = [
        (brief(each.owner), brief(each.other), str(each.exact), str(each.near),
         money(cents.get(each.owner, 0)), money(cents.get(each.other, 0)))
        for each in shared
    ]  # fmt: skip
    columns = "owner", "other owner", "rows copied", "rows close", "paid", "other paid"
    return Table.of("Rows that several owners have", columns, rows)


def shared_rows(X: Any, owners: Any, *, radius: float = 0.0) -> tuple[SharedRows, ...]:
    """Pairs of owners with rows in common, most rows first.

    Parameters
    ----------
    X
        The rows of all owners, as numbers on one scale.
    owners
        The owner of each row.
    radius
        The Euclidean distance up to which two rows are close; 0 finds exact twins alone.

    Examples
    --------
    >>> X = [[0.0], [5.0], [0.0], [5.01], [9.0]]
    >>> shared_rows(X, ["ann", "ann", "bob", "bob", "eve"], radius=0.1)
    (SharedRows(owner='ann', other='bob', exact=1, near=1),)
    """
    radius = check_radius(radius)
    known: Any = check_owners(owners, len(X))
    names = OwnerNames()
    codes = names.codes(known)
    points, validation = check_mutual(X, [0] * len(X), metric="euclidean", classes=None)
    side = BallSide(validation, 0.0)
    owned = OwnedPoints.of(points, codes, side)
    exact, near = (
        _met(owned, Ball.around(validation, reach), side.owner_counting(len(names)), codes)
        for reach in (0.0, radius)
    )
    labels = list(names.known)
    found = [
        SharedRows(labels[one], labels[other], int(exact[one, other]), int(more))
        for one, other in np.argwhere(np.triu(near + near.T, 1))
        for more in [near[one, other] - exact[one, other]]
    ]
    return tuple(sorted(found, key=lambda each: -(each.exact + each.near)))


def _met(owned: OwnedPoints, ball: Ball, game: OwnerAgreement, codes: Any) -> Integers:
    """How many rows of each owner (row) are near a row of each other owner (column)."""
    found = np.zeros((game.owners, game.owners), np.int64)

    def see(columns: slice, sums: Integers) -> None:
        near = sums.reshape(2, game.owners, -1)[1] > 0
        np.add.at(found, codes[columns], near.T)

    show_sums(owned, ball, game, see)
    return found
