"""What a task is expected to give, computed from its public rows before it is published."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from thresher.market.questions import Question, Rows
from thresher.market.settlement import compute
from thresher.market.terms import LEAVES, Terms
from thresher.neighbors.kernel import BOX
from thresher.privacy.plan import Plan, plan_release
from thresher.privacy.release_setting import RINGS

DRAWS = 5  # made-up markets, whose mean reserve is told
MOST_POINTS = 50_000  # of a made-up market
MOST_PAIRS = 2_000_000  # of rows and validation points, for which other ways are planned as well
WAYS: dict[str, dict[str, Any]] = {  # to say who is near, by what a page calls them
    "within a radius": {},
    "within a radius, weighted: gaussian": {"kernel": "gaussian"},
    "in the same leaf of 16 trees": {"trees": 16, "metric": "euclidean", "pay": "estimate"},
}
PLAIN: dict[str, Any] = {"kernel": BOX, "radius": None, "trees": None, "forest": None}


@lru_cache(maxsize=32)
def plan(question: Question) -> dict[str, Any]:
    """The expected error, the rank correlation with exact values, and the expected reserve.

    The reserve is that of made-up owners, whose rows are drawn from the validation set. A number is
    None if it cannot be predicted. `others` has what to expect from other definitions of near.
    """
    found, points = _plan(question), _points(question)
    return _known(found) | {
        "free_rank_correlation": _or_none(found.zero_budget),
        "reserve_cents": None if points > MOST_POINTS else _reserve(question),
        "is_noise": bool(found.is_noise),
        "others": [] if points * len(question.X_val) > MOST_PAIRS else _others(question),
    }


def _others(question: Question) -> list[dict[str, Any]]:
    """What other definitions of near are expected to give for the same rows and budget."""
    terms = question.terms
    mine = terms.kernel, terms.trees
    return [
        {"near": name} | _known(_plan(replace(question, terms=_in_another_way(terms, way))))
        for name, way in WAYS.items()
        if (way.get("kernel", BOX), way.get("trees")) != mine
    ]


def _in_another_way(terms: Terms, way: dict[str, Any]) -> Terms:
    """The same terms with another definition of near, without options that it does not use."""
    rings = terms.rings if "kernel" in way else RINGS
    leaves = terms.leaves if "trees" in way else LEAVES
    return replace(terms, **PLAIN | {"rings": rings, "leaves": leaves} | way)


def _plan(question: Question) -> Plan:
    (found,) = plan_release(
        question.X_val, question.y_val, points=_points(question), mechanisms=["table"],
        **question.game,
    )  # fmt: skip
    return found


def _points(question: Question) -> int:
    return question.terms.rows_per_owner * question.terms.owners


def _known(plan: Plan) -> dict[str, Any]:
    return {
        "relative_error": _or_none(plan.relative_error),
        "rank_correlation": _or_none(plan.rank_agreement),
    }


def _or_none(number: float) -> float | None:
    return None if math.isnan(number) else number


def _reserve(question: Question) -> int | None:
    """The mean reserve of made-up markets; None if one of them pays nobody."""
    left = []
    for seed in range(DRAWS):
        paid = compute(None, question, "made up", made_up(question, seed), seed=seed).payout
        if paid is None:
            return None
        left.append(paid.reserve)
    return round(sum(left) / DRAWS)


def made_up(question: Question, seed: int) -> dict[str, Rows]:
    """Made-up owners whose rows are drawn from the validation set."""
    terms, rng = question.terms, np.random.default_rng(seed)
    owned = {}
    for owner in range(terms.owners):
        drawn = rng.integers(len(question.X_val), size=terms.rows_per_owner)
        labels = tuple(question.y_val[row] for row in drawn.tolist())
        owned[f"owner {owner}"] = Rows(question.X_val[drawn], labels)
    return owned
