"""Findings about numbers: what the others expect of each target, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.findings.advice import NOBODY
from thresher.findings.label_findings import Findings, check_fit
from thresher.findings.target_advice import (
    NEARER,
    NORMAL,
    TARGET_SUGGESTIONS,
    TargetEvidence,
    pooled_deviation,
    suggest_by_residuals,
    tamed,
)
from thresher.forest import FOREST, LEAVES, leaf_target_votes, target_votes
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.games.target_evidence import (
    Beside,
    LeafChanges,
    NearRingTargets,
    NearTargets,
    OtherTargets,
    Paid,
    middle_of,
)
from thresher.growth import check_growth
from thresher.inputs.checked_inputs import Points
from thresher.inputs.checks import check_both, check_flag
from thresher.inputs.coded import Coded
from thresher.inputs.far_off import brought_in, far_off
from thresher.inputs.grids import Grid
from thresher.knn import knn_shapley
from thresher.metrics import Rows
from thresher.neighbors.closest import closest
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import Kernel
from thresher.neighbors.parallel_rows import tie_directions
from thresher.passes.target_span import TargetSpan
from thresher.passes.votes import Votes, leaf_regression
from thresher.passes.walk import pay_while_counting
from thresher.regression import REGRESSION, Targets, checked_points
from thresher.tknn import radius_regression
from thresher.valuation import Valuation

OTHER_FOREST = (  # where a forest was grown anew
    ". If they were valued with forest=, pass it to explain, too; for a report, pass what explain "
    "returns to thresher.report.gather as findings="
)
ROUNDS = 2  # of moving wild targets nearer to what the others expect, and asking again
VOTERS = 10  # validation points that are asked by nearest neighbors, or k if that is more


@dataclass(frozen=True, eq=False)
class TargetFindings(Findings):
    """What to do about each point whose label is a number, and the evidence for it.

    It is like `Findings`, with one entry per point, in input order.

    Parameters
    ----------
    labels, best_label
        The targets of the points, and the targets that the others expect: the mean of theirs.
    near
        How many others there are. By a radius and by nearest neighbors, these are validation
        points. By trees, they are other rows in the point's leaf, as a mean over trees.
    usual
        How far targets usually are from what is expected.
    score
        `usual / (usual + |target - expected|)`: the lower, the more probably the target is wrong.
    best_value
        What the point would be worth with the expected target if nothing else changed, if that is
        known.
    suggestion
        What to do: "keep", "correct" to the expected target, "inspect", "drop" or "outlier".

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = 10 * X[:, 0]
    >>> y[7] = 99.0  # a wrong target
    >>> data = X, y, X + 0.01, 10 * X[:, 0]
    >>> about = {"radius": 0.1, "metric": "euclidean", "task": "regression"}
    >>> found = th.explain(th.tknn_shapley(*data, **about), *data)
    >>> int(found.score.argmin())
    7
    """

    words: Sequence[str] = TARGET_SUGGESTIONS
    targets: Floats = field(default_factory=lambda: np.empty(0))
    expected: Floats = field(default_factory=lambda: np.empty(0))
    usual: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(
        cls, valuation: Valuation, targets: Floats, found: TargetEvidence, nobody: float = 0.0,
        forest: Forest | None = None,
    ) -> TargetFindings:  # fmt: skip
        """The findings that follow from evidence about valued points."""
        values = valuation.values if found.values is None else found.values
        said = suggest_by_residuals(values, targets, found, nobody)
        best = Coded.of(found.expected.tolist())
        return cls(
            Coded.of(targets.tolist()), valuation.values, valuation.ranks(),
            valuation.percentiles(), found.near, np.full(len(targets), np.nan), best,
            found.best_value, Coded.numbered(said, TARGET_SUGGESTIONS), best.codes.astype(np.int64),
            score=found.score(targets), forest=forest, targets=targets, expected=found.expected,
            usual=found.usual,
        )  # fmt: skip

    def columns(self) -> dict[str, Any]:
        """The columns of a table, one row per point."""
        instead = {"agree": ("usual", self.usual), "best_label": ("best_target", self.expected)}
        return dict(instead.get(each[0], each) for each in super().columns().items())


def radius_target_findings(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
    owners: Any = None, mean: bool = False, progress: bool = False, empty: Any = None,
    bounds: Any = None, kernel: Kernel | None = None, complete: bool = False,
) -> tuple[Valuation, TargetFindings]:  # fmt: skip
    """What `tknn_shapley` and `explain` find about numbers, in one walk over the points."""

    def paid_by(y: Any, y_val: Any, empty: Any, bounds: Any) -> tuple[Valuation, Paid]:
        seen: list[Paid] = []
        found = radius_regression(
            X, y, X_val, y_val, radius=radius, metric=metric, semivalue=semivalue, owners=owners,
            mean=mean, neighbors="auto", progress=progress, empty=empty, bounds=bounds,
            kernel=kernel, kind=NearTargets if kernel is None else NearRingTargets,
            show=seen.append, complete=complete,
        )  # fmt: skip
        return found, seen[0]

    valuation, paid = paid_by(y, y_val, empty, bounds)
    near, one, two = paid.sums[3:]
    means = np.divide(one, near, out=np.full(len(near), np.nan), where=near > 0)
    squares = np.where(near > 0, two - one * np.nan_to_num(means), 0.0)
    expected = middle_of(paid.targets.judges) + means
    found = TargetEvidence(near, expected, pooled_deviation(near, squares))

    def again(known: Targets) -> tuple[Valuation, Paid]:
        judges = None if y_val is None else known.judges
        return paid_by(known.points, judges, known.empty, None)

    found = with_values(valuation, paid, found, again)
    return valuation, TargetFindings.of(valuation, paid.targets.points, found)


def with_values(
    valuation: Valuation, paid: Paid, found: TargetEvidence,
    again: Callable[[Targets], tuple[Valuation, Paid]],
) -> TargetEvidence:  # fmt: skip
    """Evidence with what each point would be worth with the target that is expected.

    Targets that are far off would decide what all others are worth. So if there are any, others
    are valued `again`, as if those had the targets that are expected.
    """
    targets = paid.targets
    far = far_off(targets.points)
    if not far.any() and not far_off(targets.judges).any():
        return replace(found, best_value=paid.worth(found.expected))
    values, other = again(usual_targets(targets, found.expected))
    judged = np.where(far, valuation.values, values.values)
    return replace(found, best_value=other.worth(found.expected), values=judged)


def usual_targets(targets: Targets, expected: Floats) -> Targets:
    """Targets without those that are far off: with what is expected instead, or the median."""
    far, judges = far_off(targets.points), brought_in(targets.judges)
    points = np.where(far & ~np.isnan(expected), expected, brought_in(targets.points))
    for all_of, kept in ((targets.points, ~far), (targets.judges, ~far_off(targets.judges))):
        if targets.empty in {float(all_of.mean()), TargetSpan().see(all_of).mean()}:
            return Targets(points, judges, float(all_of[kept].mean()))
    return Targets(points, judges, targets.empty)


def nearest_target_findings(
    X: Any, y: Any, X_val: Any, y_val: Any, *, k: int, metric: str, utility: Any,
    valuation: Valuation | None = None, **about: Any,
) -> tuple[Valuation, TargetFindings]:  # fmt: skip
    """What `knn_shapley` and `explain` find about numbers: the nearest validation points judge."""
    if y_val is None:
        raise InputError(
            "findings by the nearest neighbors need a validation set: pass X_val and y_val"
        )
    if valuation is None:
        valuation = knn_shapley(
            X, y, X_val, y_val, k=k, metric=metric, utility=utility, task=REGRESSION, **about
        )
    points, validation, targets = checked_points(X, y, X_val, y_val, metric=metric, empty=0.0)
    voters = max(k, VOTERS)
    if not isinstance(points.rows, Rows) or validation.rows is None:
        raise InputError("findings by the nearest neighbors need features, not distances")
    asked = np.tile(targets.judges, (len(points), 1))
    if len(validation) > voters:
        judges = tie_directions(Points(validation.rows, validation.codes), validation.metric)
        asking = replace(validation, rows=points.rows, codes=points.codes)
        keys = closest(judges, asking, voters, "float64", None)
        asked = np.array([targets.judges[(each >> np.uint64(1)).astype(np.int64)] for each in keys])
    heard = np.isin(asked, targets.judges[~far_off(targets.judges)])
    near, asked = heard.sum(axis=1).astype(np.float64), np.where(heard, asked, 0.0)
    means = np.divide(asked.sum(axis=1), near, out=np.full(len(near), np.nan), where=near > 0)
    squares = np.where(heard, (asked - means[:, None]) ** 2, 0.0).sum(axis=1)
    found = TargetEvidence(near, means, pooled_deviation(near, squares))
    far = far_off(targets.points)
    if far.any() or not heard.all():
        empty = valuation.params["empty"]  # None with "jia2019"
        known = usual_targets(replace(targets, empty=np.nan if empty is None else empty), means)
        about |= {"semivalue": check_semivalue(valuation.params["semivalue"])}
        about |= {"empty": None if empty is None else known.empty}
        judged = knn_shapley(
            X, known.points, X_val, known.judges, k=k, metric=metric, utility=utility,
            task=REGRESSION, **about,
        )  # fmt: skip
        found = replace(found, values=np.where(far, valuation.values, judged.values))
    return valuation, TargetFindings.of(valuation, targets.points, found)


def forest_target_findings(
    X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, forest: Any = None, trees: int = 200,
    folds: int = 2, seed: int = 0, semivalue: Semivalue = "shapley", owners: Any = None,
    mean: bool = False, progress: bool = False, empty: Any = None,
) -> tuple[Valuation, TargetFindings]:  # fmt: skip
    """What `forest_shapley` and `explain` find about numbers, from one forest."""
    check_both(X_val, y_val)
    targets = Targets.check(y, y_val, empty)
    growth = check_growth(trees, folds, seed)
    votes, about = target_votes(X, X_val, targets, forest, growth, check_flag("progress", progress))
    return explain_target_votes(
        votes, targets, FOREST, about, check_semivalue(semivalue), owners=owners,
        mean=check_flag("mean", mean), progress=progress,
    )  # fmt: skip


def explain_targets(
    valuation: Valuation, X: Any, y: Any, X_val: Any = None, y_val: Any = None, *,
    forest: Any = None, unseen: Any = None,
) -> TargetFindings:  # fmt: skip
    """What a valuation with task="regression" says about each point; see `explain`."""
    about = valuation.params
    common = {"mean": bool(about.get("mean")), "empty": about["empty"]}
    if valuation.method not in {"tknn-shapley", FOREST, LEAVES}:
        raise InputError(f"explain does not support {valuation.method} with task='regression'")
    semivalue = check_semivalue(about["semivalue"])
    if valuation.method == "tknn-shapley":
        again, found = radius_target_findings(
            X, y, X_val, y_val, radius=about["radius"], metric=about["metric"],
            semivalue=semivalue, bounds=about["bounds"], kernel=Kernel.recorded(about),
            complete=about["metric"] == "precomputed", **common,  # it was judged when valued
        )  # fmt: skip
    elif valuation.method == FOREST:
        again, found = forest_target_findings(
            X, y, X_val, y_val, forest=forest, trees=about["trees"], folds=about["folds"] or 2,
            seed=about.get("seed", 0), semivalue=semivalue, **common,
        )  # fmt: skip
    else:
        votes, targets = leaf_target_votes(X, y, X_val, y_val, unseen, about["empty"])
        again, found = explain_target_votes(
            votes, targets, LEAVES, {}, semivalue, mean=common["mean"]
        )
    own = valuation.method == FOREST and forest is None
    check_fit(valuation.values, again.values, OTHER_FOREST if own else "")
    return found


def explain_target_votes(
    votes: Votes, targets: Targets, method: str, about: dict[str, Any], semivalue: Semivalue, *,
    owners: Any = None, mean: bool = False, progress: bool = False,
) -> tuple[Valuation, TargetFindings]:  # fmt: skip
    """The values of points in leaves, and what the others in them say."""

    def paid_by(known: Targets) -> tuple[Valuation, Paid]:
        seen: list[Paid] = []
        found = leaf_regression(
            votes, known, method, about, semivalue, owners=owners, mean=mean, progress=progress,
            kind=LeafChanges, show=seen.append,
        )  # fmt: skip
        return found, seen[0]

    valuation, paid = paid_by(targets)
    grid, judges = paid.grid, paid.grid.rounded(targets.judges)
    beside, own = _judges(votes, judges), grid.rounded(targets.points)
    now = brought_in(own)
    for _ in range(ROUNDS):
        near, means = _others(votes, now, grid, beside)
        sizes = tamed(own - means)
        _, apart = _others(votes, sizes, grid)
        usual = NORMAL * np.where(np.isnan(apart), np.median(sizes), apart)
        room, middle = NEARER * usual, np.where(np.isnan(means), own, means)
        now = np.clip(own, middle - room, middle + room)
    found = with_values(valuation, paid, TargetEvidence(near, means, usual), paid_by)
    return valuation, TargetFindings.of(valuation, targets.points, found, NOBODY, votes.forest)


def _others(
    votes: Votes, targets: Floats, grid: Grid, beside: Beside | None = None
) -> tuple[Floats, Floats]:
    """How many others share each point's leaf, and their mean, both as means over trees."""
    game = OtherTargets(targets, 0.0, grid, beside=beside)
    codes: Any = grid.codes(targets)  # what other games know as classes
    part = replace(votes, codes=codes)
    out, _ = pay_while_counting(part, votes.near, game, lambda *_: None)
    return out[0] / np.maximum(votes.trees, 1), game.means(out)


def _judges(votes: Votes, targets: Floats) -> Beside | None:
    """The validation points in the leaves of a tree: their number, and the sum of their targets."""
    if votes.rows_val is None:
        return None
    rows, heard = votes.rows_val, (~far_off(targets)).astype(np.float64)

    def beside(columns: slice) -> tuple[Floats, Floats]:
        leaves, size = rows.leaves(votes.near.tree(columns)), columns.stop - columns.start
        sums = np.bincount(leaves, np.where(heard > 0, targets, 0.0), minlength=size)
        count = np.bincount(leaves, heard, minlength=size)
        return np.asarray(count, np.float64), np.asarray(sums, np.float64)

    return beside
