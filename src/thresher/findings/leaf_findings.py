"""forest_findings: values of a forest together with what its leaves say about each row.

The evidence about a row is the label shares of the others in its leaves, over the trees that did
not see the row. The others are all other points, including those that a tree was grown from, and
the validation points if there are any. One walk over the trees finds values and shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.findings.advice import (
    CALLED_WRONG,
    LEAST_ROWS,
    SUGGESTIONS,
    suggest_by_shares,
)
from thresher.findings.forecast import Forecast, forecast_errors
from thresher.findings.label_findings import Findings
from thresher.findings.stability import Stability
from thresher.findings.target_findings import forest_target_findings
from thresher.forest import FOREST, check_no_empty, forest_votes
from thresher.games.classes import ClassCounts
from thresher.games.label_shares import LabelShares, ShareSums, ShareWatch
from thresher.games.semivalues import Semivalue
from thresher.growth import check_growth
from thresher.inputs.coded import Coded
from thresher.neighbors.groups import Groups
from thresher.passes.votes import Votes
from thresher.passes.walk import visit
from thresher.regression import CLASSES, REGRESSION, check_no_classes, check_task
from thresher.threads import cut
from thresher.valuation import Valuation

NUMBERS = 1 << 26  # points times classes whose shares are held at once


def forest_findings(
    X: Any,
    y: Any,
    X_val: Any = None,
    y_val: Any = None,
    *,
    forest: Any = None,
    trees: int = 200,
    folds: int = 2,
    seed: int = 0,
    semivalue: Semivalue = "shapley",
    classes: Any = None,
    owners: Any = None,
    mean: bool = False,
    progress: bool = False,
    task: str = CLASSES,
    empty: float | None = None,
) -> tuple[Valuation, Findings]:
    """The values of `forest_shapley` and the findings of `explain`, from one forest in one pass.

    Parameters
    ----------
    X, y, X_val, y_val, forest, trees, folds, seed, semivalue, classes, owners, mean, progress
        As in `forest_shapley`.
    task, empty
        As in `forest_shapley`; for regression the findings are `TargetFindings`.

    Returns
    -------
    Valuation
        The one that `forest_shapley` returns.
    Findings
        What the others in each point's leaves say about its label.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y, wrong = th.flip_labels((X[:, 0] > 0).astype(int), fraction=0.05, seed=0)
    >>> valuation, findings = th.forest_findings(X, y, trees=40)
    >>> findings
    Findings(200 points: 189 keep, 11 relabel)
    >>> round(findings.forecast.wrong), findings.forecast.poor
    (11, False)
    >>> [findings.suggestion[row] for row in np.flatnonzero(wrong)[:3]]
    ['relabel', 'relabel', 'relabel']
    """
    check_growth(trees, folds, seed, forest)
    if check_task(task) == REGRESSION:
        check_no_classes(classes)
        return forest_target_findings(
            X, y, X_val, y_val, forest=forest, trees=trees, folds=folds, seed=seed,
            semivalue=semivalue, owners=owners, mean=mean, progress=progress, empty=empty,
        )  # fmt: skip
    check_no_empty(empty)
    votes, about = forest_votes(
        X, y, X_val, y_val, forest=forest, trees=trees, folds=folds, seed=seed, classes=classes,
        progress=progress,
    )  # fmt: skip
    return explain_votes(
        votes, FOREST, about, semivalue, owners=owners, mean=mean, progress=progress
    )


def explain_votes(
    votes: Votes, method: str, about: dict[str, Any], semivalue: Semivalue, *, owners: Any = None,
    mean: bool = False, progress: bool = False,
) -> tuple[Valuation, Findings]:  # fmt: skip
    """The values of points in leaves, and what the others in them say."""
    groups = Groups.of(votes.codes, len(votes.classes))
    first, *more = cut(0, len(votes.codes), max(1, NUMBERS // len(votes.classes)))
    watch = _watch(votes, first)
    valuation = votes.valuation(
        method, about, semivalue, owners=owners, mean=mean, progress=progress, watch=watch
    )
    paid, shares = watch.paid_first, [_means(watch, groups)]
    del watch
    shares.extend(_means(_walk(votes, groups, piece), groups) for piece in more)
    joined = map(LabelShares.joined, zip(*shares, strict=True))
    whole, *halves = (each.take(groups.positions) for each in joined)
    stability = None
    if paid is not None:
        early = groups.in_input_order(paid, votes.judges if mean else 1)
        advice = [(_suggestions(votes, half)[0], half.best) for half in halves]
        stability = Stability.of((early, valuation.values - early), (advice[0], advice[1]))
    return valuation, _findings(votes, valuation, whole, stability)


def _watch(votes: Votes, piece: tuple[int, int]) -> ShareWatch:
    middle = int(votes.near.starts[votes.middle]) if votes.middle else -1
    sums = ShareSums.none(*piece, len(votes.classes))
    return ShareWatch(sums, votes.counts_beside, middle)


def _walk(votes: Votes, groups: Groups, piece: tuple[int, int]) -> ShareWatch:
    """The label shares of some more points."""
    watch, game = _watch(votes, piece), ClassCounts(len(votes.classes))
    visit(
        votes, votes.near, groups,
        lambda block: watch.counted(block, groups, game.sums(block, groups)),
    )  # fmt: skip
    return watch


def _means(watch: ShareWatch, groups: Groups) -> tuple[LabelShares, ...]:
    """Label shares over all trees, and over the trees of each half if there are two halves."""
    if watch.first is None:
        return (watch.sums.means(groups),)
    halves = watch.first, watch.sums.minus(watch.first)
    return (watch.sums.means(groups), *(half.means(groups) for half in halves))


def _findings(
    votes: Votes, valuation: Valuation, shares: LabelShares, stability: Stability | None
) -> Findings:
    labels = votes.classes.labels
    suggestions, forecast = _suggestions(votes, shares)
    wrong = np.isin(suggestions, [SUGGESTIONS.index(word) for word in CALLED_WRONG])
    return Findings(
        Coded.numbered(votes.codes, labels),
        valuation.values,
        valuation.ranks(),
        valuation.percentiles(),
        shares.near,
        shares.own,
        Coded.numbered(shares.best, labels),
        None,
        Coded.numbered(suggestions, SUGGESTIONS),
        shares.best,
        shares.other,
        shares.score,
        stability,
        forecast.with_marks(shares.score, wrong) if _rows(votes) >= LEAST_ROWS else None,
        votes.forest,
    )


def _suggestions(votes: Votes, shares: LabelShares) -> tuple[NDArray[np.int64], Forecast]:
    forecast = forecast_errors(shares, votes.codes, len(votes.classes))
    return suggest_by_shares(shares, votes.codes, forecast, _rows(votes)), forecast


def _rows(votes: Votes) -> int:
    """How many rows there are, points and validation points; none if all have the same label."""
    beside = votes.codes[:0] if votes.codes_val is None else votes.codes_val
    codes = np.concatenate([votes.codes, beside])
    return 0 if (codes == codes[0]).all() else len(codes)
