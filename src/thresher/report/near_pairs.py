"""What the page needs from near pairs of points and validation points, in one walk over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.games.classes import ClassCounts, ClassGame
from thresher.games.semivalues import check_semivalue
from thresher.inputs.checked_inputs import Points
from thresher.inputs.checks import check_metric
from thresher.inputs.labels import Codes
from thresher.neighbors.ball import Ball
from thresher.neighbors.groups import Groups
from thresher.neighbors.kernel import Kernel
from thresher.passes.walk import visit
from thresher.report.subject import Subject
from thresher.threads import cut

COUNTS = 20_000_000  # numbers counted at a time

Halves = tuple[Integers, Integers]


@dataclass(frozen=True)
class NearPairs:
    """Numbers of near pairs, chances to be right after removals, and values by half the judges."""

    points: Integers  # how many are near each validation point
    validation: Integers  # how many are near each point
    right: Floats  # [order, step, validation point]: chance of the threshold classifier
    half_values: Floats  # [half, point]: values by one half of the validation points
    counts: Integers  # near each validation point: with its label, with another one


def walk_near_pairs(
    subject: Subject, orders: Sequence[Codes], steps: int, halves: Halves | None
) -> NearPairs:
    """Walk once over near pairs. Each of the `orders` has the step in which each point is removed.

    Points that are removed in the same step are a group; the later groups are what is left after a
    step. If there are many classes, they are counted at some of the validation points at a time.
    """
    data, radius, metric = subject.data, subject.radius, check_metric(subject.metric)
    cells, classes = len(data.codes_val), len(subject.classes)
    semivalue = check_semivalue(
        subject.valuation.params.get("semivalue", "shapley"), calibrated=True
    )
    edges, weights = rings_of(subject.kernel)
    kinds = steps * classes
    groups = Groups.of(data.codes, kinds)
    layouts = [Groups.of(order * np.int32(classes) + data.codes, kinds) for order in orders]
    inputs = np.empty(len(data.codes), np.int64)
    inputs[groups.positions] = np.arange(len(data.codes))
    judges = np.zeros((2, cells))  # of each half, and nobody where there are none
    for half, chosen in enumerate(halves or ()):
        judges[half, chosen] = 1.0
    both = np.zeros((2 * len(weights), cells), np.int64)
    right, sums = np.zeros((len(orders), steps, cells)), np.zeros((3, len(data.codes)))
    for lo, hi in cut(0, cells, max(64, COUNTS // (kinds * len(weights)) // 64 * 64)):
        game = ClassGame(data.codes_val[lo:hi], classes, semivalue, weights if edges else ())

        def measure(block: Any, first: int = lo, game: ClassGame = game) -> None:
            columns = slice(first + block.columns.start, first + block.columns.stop)
            found = game.sums(block, groups)
            both[:, columns] = found
            prices = game.prices(found, block.columns)
            for half in range(2 if halves else 0):
                game.pay(block, groups, prices * judges[half, columns], sums[half])
            game.pay(block, groups, np.ones_like(prices), sums[2])
            for place, layout in enumerate(layouts):
                moved = block.moved(layout.positions[inputs], layout.starts)
                counts = ClassCounts(kinds, len(edges)).sums(moved, layout)
                each = counts.reshape(steps, classes, len(weights), -1)
                left = each[::-1].cumsum(axis=0)[::-1]
                votes = np.einsum("sclv,l->scv", left, weights) if edges else left[:, :, 0]
                right[place, :, columns] = chance_right(votes, data.codes_val[columns])

        ball = Ball(data.rows_val.some(slice(lo, hi)), hi - lo, metric, radius, edges=edges)
        visit(Points(data.rows, data.codes), ball, groups, measure)
    values = np.array([groups.in_input_order(each) for each in sums])
    return NearPairs(
        both.sum(axis=0), values[2].astype(np.int64), right, values[:2], both
    )  # fmt: skip


def rings_of(kernel: Kernel | None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The edges of rings, if there are some, and their weights."""
    return ((), (1.0,)) if kernel is None else (kernel.edges, kernel.weights)


def chance_right(votes: Array, codes: Codes) -> Floats:
    """The chance to be right by a guess among the labels that lead (all labels if none are near).

    `votes` are by class and validation point, in the last two axes.

    Examples
    --------
    >>> chance_right(np.array([[2, 1, 0], [1, 1, 0]]), np.array([0, 0, 1])).tolist()
    [1.0, 0.5, 0.5]
    """
    leads = votes == votes.max(axis=-2, keepdims=True)
    return leads[..., codes, np.arange(len(codes))] / leads.sum(axis=-2)
