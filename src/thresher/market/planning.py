"""What a task is expected to give, before it is published: from its public rows alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thresher.market.questions import Question, Rows
from thresher.market.settlement import compute
from thresher.privacy.plan import plan_release

DRAWS = 5  # made-up markets, whose mean reserve is told
MOST_POINTS = 50_000  # of a made-up market


def plan(question: Question) -> dict[str, Any]:
    """The expected error, the rank correlation with exact values, and the expected reserve.

    The reserve is that of made-up owners, whose rows are drawn from the validation set. None where
    nothing can be told.
    """
    terms = question.terms
    points = terms.rows_per_owner * terms.owners
    (found,) = plan_release(
        question.X_val, question.y_val, points=points, mechanisms=["table"], **question.game
    )
    told = {
        "relative_error": found.relative_error,
        "rank_correlation": found.rank_agreement,
        "free_rank_correlation": found.zero_budget,
        "reserve_cents": None if points > MOST_POINTS else _reserve(question),
        "is_noise": bool(found.is_noise),
    }
    return {
        name: None if isinstance(entry, float) and math.isnan(entry) else entry
        for name, entry in told.items()
    }


def _reserve(question: Question) -> int | None:
    """The mean of what is left of the pot in made-up markets; None if one of them pays nobody."""
    left = []
    for seed in range(DRAWS):
        paid = compute(None, question, "made up", made_up(question, seed), seed=seed).payout
        if paid is None:
            return None
        left.append(paid.reserve)
    return round(sum(left) / DRAWS)


def made_up(question: Question, seed: int) -> dict[str, Rows]:
    """Owners whose rows are drawn from the validation set."""
    terms, rng = question.terms, np.random.default_rng(seed)
    owned = {}
    for owner in range(terms.owners):
        drawn = rng.integers(len(question.X_val), size=terms.rows_per_owner)
        labels = tuple(question.y_val[row] for row in drawn.tolist())
        owned[f"owner {owner}"] = Rows(question.X_val[drawn], labels)
    return owned
