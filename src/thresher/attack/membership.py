"""Membership inference from values: find out if a server holds a point.

The attacker submits a copy of a point and learns what the copy is worth. If the point is already
there, the copy has a twin and is worth less (or is less negative). Shadow sets, drawn from points
like the members, show what value is usual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from thresher.array_types import Flags, Floats, Integers
from thresher.attack.area import Roc
from thresher.attack.attacked_methods import TKNN, Data, Target
from thresher.attack.oracles import Oracle
from thresher.errors import InputError, either, option
from thresher.inputs.checks import check_count
from thresher.inputs.labels import check_labels
from thresher.progress import Advance, progress_bar

SHARED = 4  # shadow sets that all candidates share, for each that one candidate would have alone
FLOOR = 1e-9  # of variances, as a part of their mean: equal values say nothing


@dataclass(frozen=True, eq=False)
class Attack:
    """The result of a membership attack: scores and ROC curves.

    Parameters
    ----------
    scores
        For each attack, one number per candidate: the logarithm of the likelihood ratio, high for
        members. "paper" sees the value of a copy of each candidate; "strong" crafts points, and
        sees what they are worth to each validation point (see `membership_attack`).
    is_member
        The truth, in the order of `candidates`.
    candidates
        Rows of X.
    rocs
        The ROC curve of each attack: `.auroc` with its `.standard_error`, `.fpr`, `.tpr`, and
        `.tpr_at(fpr)`.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> rng = np.random.default_rng(0)
    >>> X, V = rng.normal(size=(160, 2)), rng.normal(size=(40, 2))
    >>> attack = th.membership_attack(
    ...     X, X[:, 0] > 0, V, V[:, 0] > 0, members=40, nonmembers=40, shadow=80
    ... )
    >>> attack
    Attack(paper AUROC 0.551, strong AUROC 0.938, 40 members, 40 non-members)
    """

    scores: Mapping[str, Floats]
    is_member: Flags
    candidates: Integers
    rocs: Mapping[str, Roc] = field(init=False)

    def __post_init__(self) -> None:
        inside = self.is_member
        rocs = {name: Roc.of(s[inside], s[~inside]) for name, s in self.scores.items()}
        object.__setattr__(self, "rocs", MappingProxyType(rocs))
        object.__setattr__(self, "scores", MappingProxyType(dict(self.scores)))

    def __repr__(self) -> str:
        found = ", ".join(f"{name} AUROC {roc.auroc:.3f}" for name, roc in self.rocs.items())
        members = int(self.is_member.sum())
        others = len(self.is_member) - members
        return f"Attack({found}, {members} members, {others} non-members)"

    def summary(self) -> dict[str, dict[str, float]]:
        """AUROC, standard error, and share of members found at 1 % false alarms, by attack."""
        return {
            name: {
                "auroc": roc.auroc,
                "standard_error": roc.standard_error,
                "tpr_at_1_percent": roc.tpr_at(0.01),
            }
            for name, roc in self.rocs.items()
        }


def membership_attack(
    X: Any, y: Any, X_val: Any, y_val: Any, *, against: Target | None = None, members: int = 200,
    nonmembers: int = 200, shadow: int = 400, shadow_sets: int = 32, classes: Any = None,
    seed: int = 0, progress: bool = False,
) -> Attack:  # fmt: skip
    """The paper's membership inference attack on data values, and a stronger one.

    Parameters
    ----------
    X, y
        Points like those that a server holds. Members, non-members and the attacker's own points
        for shadow sets are drawn from them without replacement.
    X_val, y_val, classes
        The public validation set, as in `tknn_shapley`.
    against
        The target: `thresher.attack.TKNN(radius, metric, semivalue)` (the default), `KNN(k, metric,
        utility)`, `DPTKNN(epsilon, delta, mechanism, radius, metric)`, or `Recomputed(function)`
        for any other valuation, which is slow.
    members, nonmembers, shadow
        How many points of each kind; the paper has 200, 200 and 400.
    shadow_sets
        How often the attacker draws a set as large as the server's from the shadow points.
    seed
        The seed of the split, the shadow sets and the noise of private targets.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    Attack
        Scores and ROC curves.

    Notes
    -----
    "paper": for each candidate, a copy is valued next to each shadow set with (IN) and without
    (OUT) the candidate. Two normal distributions are fitted to these values, and the value that the
    server returns is scored by the logarithm of their ratio. (The paper's listing adds OUT values
    to the IN set; that error is corrected here.) A private target is released once for each of 4
    `shadow_sets` sets, half shadow points and half candidates, so that IN and OUT values come from
    whole releases.

    "strong" knows what a point is worth to each validation point, from crafted points or a
    published price list. For threshold values, that is the table of counts, exact or noisy. The
    table gives linear equations in who is a member. An attacker with a list of all possible members
    solves them for the most likely answer, knowing the noise (`oracles.list_scores`). For
    nearest-neighbor values, the attacker places two points of another label just to either side of
    the candidate. Their values differ only if some point lies between them. They do differ if that
    point is beyond rank k for some validation point of one of the two labels.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X = np.random.default_rng(0).normal(size=(250, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> attack = th.membership_attack(
    ...     X[:200], y[:200], X[200:], y[200:],
    ...     members=40, nonmembers=40, shadow=100, shadow_sets=8)
    >>> sorted(attack.rocs), attack.rocs["strong"].auroc > attack.rocs["paper"].auroc
    (['paper', 'strong'], True)
    """
    sizes = {"members": members, "nonmembers": nonmembers, "shadow": shadow}
    members, nonmembers, shadow, shadow_sets = (
        check_count(option(name), given, least=2)
        for name, given in (sizes | {"shadow_sets": shadow_sets}).items()
    )
    seed = check_count(option("seed"), seed, least=0)
    if shadow < members:
        raise InputError(
            f"{option('shadow')} must be at least {option('members')}, as sets of that size are "
            f"drawn from it, got {shadow} and {members}"
        )
    if against is not None and not hasattr(against, "oracle"):
        raise InputError(
            "against must be one of thresher.attack.TKNN(...), KNN(...), DPTKNN(...), "
            f"Recomputed(...), got {against!r}"
        )
    total, needed = len(check_labels("y", y)), members + nonmembers + shadow
    if total < needed:
        raise InputError(
            f"{either('X has', 'there are')} {total} rows, but {option('members')} + "
            f"{option('nonmembers')} + {option('shadow')} is {needed}: ask for fewer"
        )
    rng = np.random.default_rng(seed)
    rows = np.split(rng.permutation(total)[:needed], [members, members + nonmembers])
    inside, outside, pool = (np.sort(part) for part in rows)
    oracle = (against or TKNN()).oracle(Data(X, y, X_val, y_val, classes), seed)
    candidates = np.concatenate([inside, outside])
    with progress_bar("attack", shadow_sets, show=progress, unit="sets") as advance:
        paper = _paper_scores(oracle, inside, candidates, pool, shadow_sets, rng, advance)
    strong = oracle.strong_scores(inside, candidates)
    scores = {"paper": paper} | ({} if strong is None else {"strong": strong})
    return Attack(scores, np.isin(candidates, inside), candidates)


def _paper_scores(
    oracle: Oracle, held: Integers, candidates: Integers, pool: Integers, sets: int,
    rng: np.random.Generator, advance: Advance | None,
) -> Floats:  # fmt: skip
    def values(rows: Integers, *, twin: bool = False) -> Floats:
        return oracle.values(rows, candidates, twin=twin).sum(axis=1)

    score, seen, inside, size = values(held), [], [], len(held)  # what the server says
    for turn in range(sets if oracle.exact else SHARED * sets):
        if oracle.exact:  # the paper's protocol: IN and OUT values beside every shadow set
            drawn = np.sort(rng.choice(pool, size, replace=False))
            seen += [values(drawn, twin=twin) for twin in (False, True)]
            inside += [np.full(len(candidates), twin) for twin in (False, True)]
        else:  # whole releases of sets that are half candidates, half shadow points
            some = rng.permutation(len(candidates))[: size // 2]
            others = rng.choice(pool, size - size // 2, replace=False)
            seen.append(values(np.sort(np.concatenate([candidates[some], others]))))
            inside.append(np.isin(np.arange(len(candidates)), some))
        if advance is not None and (oracle.exact or turn % SHARED == 0):
            advance(1)
    return normal_ratios(score, np.array(seen), np.array(inside))


def normal_ratios(score: Floats, seen: Floats, inside: Flags) -> Floats:
    """The log of N(score; IN) / N(score; OUT) for each candidate, fitted to samples of both.

    `score` is what the server returned. `seen` has a row for each turn and a column for each
    candidate, and `inside` says whether that candidate was in.
    """
    sides = np.stack([~inside, inside])
    count, total, squares = ((sides * seen**power).sum(axis=1) for power in (0, 1, 2))
    mean = total / np.maximum(count, 1)
    spread = np.maximum(squares - count * mean**2, 0.0) / np.maximum(count - 1, 1)
    spread += FLOOR * max(float(spread.mean()), float((mean**2).mean()), 1e-150)
    density = -0.5 * (np.log(spread) + (score - mean) ** 2 / spread)
    return density[1] - density[0]
