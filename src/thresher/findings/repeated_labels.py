"""Leaks: columns that repeat the label, so that a wrong label agrees with them and stays unseen.

Each column is asked which label a row has. It answers by the other rows: the most frequent label of
the same value or, where most values differ, the label of the row with the nearest number. A column
leaks if

- its values and the labels are one to one, far beyond chance; or
- it tells nearly all labels, errs at most half as often as all other columns together, and nearly
  always agrees with a label that these contradict.

A column of many different numbers must also have a narrow cluster for each label. Numbers that
thresholds cut into labels are no leak: such a column measures what the label says. Neither is a
useful column, such as the petals of an iris, which errs where the others err.

What the other columns say comes from a small forest without the column, and without the columns
that give the same answers. For regression, a column leaks if its ranks are those of the target, up
or down, and much nearer to them than what the others expect.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma, log

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers
from thresher.errors import ThresherWarning
from thresher.ranking import average_ranks

LOOKED = 1 << 12  # rows that are looked at
GLANCED = 1 << 9  # rows by which most columns are passed over
CODES = 60  # different values that are taken one by one, and not as numbers in order
ROWS_EACH = 5  # of each such value, in the mean: those of fewer rows may be names of groups
SKILL = 0.9  # of the labels that the most frequent one does not tell: the least of a leak
GLANCED_SKILL = 0.8  # the same for the first rows, which tell less
AGREE = 0.9  # of the labels that the others contradict: the least of a leak
LEAST_CONTRADICTED = 5
BETTER = 0.5  # of the others' errors: the most of a leak
APART = 3.75  # deviations between clusters: evenly spread numbers are sqrt(12) apart at most
KNOWN = 0.2  # of the cells: the fewest that say something by themselves
LEAST_KNOWN = 20
CHANCE = 1e-6  # that any column is one to one with the labels
RANKS = 0.01  # of the rows: how far the ranks of target and column are apart, at the median
RANKS_BETTER = 1 / 3  # the same, compared with what the others expect
MOST_COMPARED = 6  # columns that are compared with the others
ALIKE = 0.995  # of the answers: columns that give them say the same
TREES = 40


@dataclass(frozen=True)
class Leak:
    """A column that repeats or decides the label."""

    column: int
    repeats: bool  # whether it is one to one, at least nearly
    told: float  # the share of labels that it tells; for numbers, the correlation of ranks
    others: float | None  # the same for all other columns; None if they were not asked
    rows: int  # that were looked at


@dataclass(frozen=True, eq=False)
class Answer:
    """What one column says about the label of each row that has a cell there."""

    column: int
    known: Flags
    said: Array  # the labels; for numbers, ranks from 0 to 1
    right: Flags | None  # whether they are right; for numbers there is no right and wrong
    skill: float
    exact: bool = False  # whether the column is one to one, far beyond chance
    repeats: bool = False  # whether it has as many values as there are labels
    told: float = 1.0


Ask = Callable[[int, Floats, Array], Answer]


def find_leaks(X: Floats, labels: Array, *, numbers: bool = False, seed: int = 0) -> list[Leak]:
    """Columns of `X` that repeat the labels, which are class codes or, if `numbers`, targets.

    Missing cells are NaN. Of more than 4,096 rows, as many are drawn.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = random.integers(0, 3, 200)
    >>> X = np.column_stack([labels + random.normal(size=200), 2 - labels])
    >>> find_leaks(X, labels)
    [Leak(column=1, repeats=True, told=1.0, others=None, rows=200)]
    """
    if len(labels) > LOOKED:
        rows = np.sort(np.random.default_rng(seed).choice(len(labels), LOOKED, replace=False))
        X, labels = X[rows], labels[rows]
    answers = _candidates(X, labels, _by_rank if numbers else _by_class)
    found = [_leak(each, None, len(labels)) for each in answers if each.exact]
    for each in [answer for answer in answers if not answer.exact][:MOST_COMPARED]:
        gone = [leak.column for leak in found] + [x.column for x in answers if _alike(x, each)]
        rest = np.delete(X, gone, axis=1)
        if rest.shape[1]:
            compare = _compare_ranks if numbers else _compare_classes
            others = compare(each, X[:, each.column], rest, labels, seed)
            found += [] if others is None else [_leak(each, others, len(labels))]
    return sorted(found, key=lambda leak: leak.column)


def _leak(answer: Answer, others: float | None, rows: int) -> Leak:
    return Leak(answer.column, answer.exact or answer.repeats, answer.told, others, rows)


def _candidates(X: Floats, labels: Array, ask: Ask) -> list[Answer]:
    """The answers of columns that may be leaks, the best first."""
    step = max(1, len(labels) // GLANCED)
    some, glance = labels[::step], X[::step]
    found = []
    for place in range(X.shape[1]):
        first = ask(place, glance[:, place], some)
        if first.skill >= GLANCED_SKILL or first.exact:
            answer = ask(place, X[:, place], labels) if step > 1 else first
            found += [answer] if answer.skill >= SKILL or answer.exact else []
    return sorted(found, key=lambda answer: -answer.skill)


def _alike(one: Answer, other: Answer) -> bool:
    both = one.known & other.known
    return bool(both.any() and (one.said == other.said)[both].mean() >= ALIKE)


# labels that are classes


def _by_class(place: int, column: Floats, labels: Integers) -> Answer:
    """What a column says about classes, by all rows, or by those whose cell is not missing.

    A missing cell is a value like others, unless the column says more without it.
    """
    everywhere = np.ones(len(column), np.bool_)
    filled = ~np.isnan(column)
    sides = [_answer(place, column, labels, everywhere)]
    if not filled.all() and filled.sum() >= max(LEAST_KNOWN, KNOWN * len(column)):
        sides.append(_answer(place, column, labels, filled))
    return max(sides, key=lambda answer: (answer.exact, answer.skill))


def _answer(place: int, column: Floats, labels: Integers, known: Flags) -> Answer:
    """What the known cells of a column say."""
    classes = int(labels.max()) + 1
    own = labels[known]
    values, codes = np.unique(column[known], return_inverse=True)
    if _few(len(values), len(own), classes):
        told = _most_frequent(codes, own, (len(values), classes))
    else:
        told = _nearest(column[known], own)
    said = np.full(len(column), -1)
    said[known] = told
    times = np.bincount(own, minlength=classes)
    base, share = float(times.max() / len(own)), float((told == own).mean())
    skill = (share - base) / (1 - base) if base < 1 else 0.0
    present, pairs = np.count_nonzero(times), len(np.unique(codes * classes + own))
    repeats = bool(len(values) == present)
    exact = repeats and pairs == present and _beyond_chance(times[times > 0])
    return Answer(place, known, said, said == labels, skill, exact, repeats, share)


def _few(values: int, rows: int, classes: int) -> bool:
    """Whether a column has so few values that each is taken by itself, and not as a number."""
    return values <= min(max(CODES, 2 * classes), rows / ROWS_EACH)


def _most_frequent(codes: Integers, labels: Integers, shape: tuple[int, int]) -> Integers:
    """The most frequent label of the other rows with the same value; -1 if there is none."""
    times = np.bincount(codes * shape[1] + labels, minlength=shape[0] * shape[1]).reshape(shape)
    others = times[codes]
    others[np.arange(len(codes)), labels] -= 1
    return np.where(others.max(axis=1) > 0, others.argmax(axis=1), -1)


def _nearest(column: Floats, labels: Integers) -> Integers:
    """The label of the other row with the nearest number; missing ones are beyond all others."""
    order = np.argsort(column, kind="stable")
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.concatenate([[np.inf], np.diff(column[order]), [np.inf]])
    after = gaps[1:] < gaps[:-1]
    found = np.empty_like(labels)
    found[order] = labels[np.where(after, np.roll(order, -1), np.roll(order, 1))]
    return found


def _beyond_chance(times: Integers) -> bool:
    """Whether labels so frequent would hardly ever be in one order with a column by chance."""
    orders = lgamma(times.sum() + 1) - sum(lgamma(each + 1) for each in times.tolist())
    return bool(len(times) > 1 and orders - lgamma(len(times) + 1) > -log(CHANCE))


def _compare_classes(
    answer: Answer, column: Floats, rest: Floats, labels: Integers, seed: int
) -> float | None:
    """The share of labels that all other columns tell; None if the column is no leak."""
    from thresher.findings.leaf_findings import forest_findings

    assert answer.right is not None  # noqa: S101 - labels are classes
    if not _clustered(column[answer.known], labels[answer.known]):
        return None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThresherWarning)
        _, said = forest_findings(rest, labels, trees=TREES, seed=seed)
    assert said.best_share is not None  # noqa: S101 - a forest has shares
    against = answer.known & (said.best_share > said.agree)
    errors = int((answer.known & ~answer.right).sum())
    if against.sum() < LEAST_CONTRADICTED or errors > BETTER * against.sum():
        return None
    if answer.right[against].mean() < AGREE:
        return None
    return 1 - float(against.sum() / answer.known.sum())


def _clustered(column: Floats, labels: Integers) -> bool:
    """Whether a column has few values, or else a narrow cluster for each label."""
    if _few(len(np.unique(column)), len(column), int(labels.max()) + 1):
        return True
    present = np.unique(labels)
    groups = [column[(labels == label) & ~np.isnan(column)] for label in present]
    if any(not len(group) for group in groups):
        return False
    means, spreads = (np.array([each(group) for group in groups]) for each in (np.mean, np.std))
    widest = float(np.sqrt((spreads**2).mean()))
    return bool((np.diff(np.sort(means)) >= APART * widest).all())


# labels that are numbers


def _by_rank(place: int, column: Floats, targets: Floats) -> Answer:
    """What a column says about the ranks of targets."""
    known = ~np.isnan(column)
    nothing = Answer(place, known, np.zeros(len(column)), None, 0.0)
    if known.sum() < max(LEAST_KNOWN, KNOWN * len(column)) or len(np.unique(column[known])) < 3:
        return nothing
    ranks, wanted = _ranks(column[known]), _ranks(targets[known])
    if not np.ptp(wanted):
        return nothing
    told = float(np.corrcoef(ranks, wanted)[0, 1])
    said = np.full(len(column), np.nan)
    said[known] = ranks if told > 0 else 1 - ranks
    _, values, ties = np.unique(column[known], return_inverse=True, return_counts=True)
    within = (ties[values] - 1) / (2 * len(values))  # a rounded number is right about all of these
    distance = float(np.median(np.maximum(np.abs(said[known] - wanted) - within, 0)))
    skill = 1.0 - distance if distance <= RANKS else 0.0
    exact = bool(np.allclose(said[known], wanted, rtol=0, atol=1e-12))
    return Answer(place, known, said, None, skill, exact, exact, abs(told))


def _ranks(numbers: Floats) -> Floats:
    return np.asarray((average_ranks(numbers) - 0.5) / len(numbers), np.float64)


def _compare_ranks(
    answer: Answer, column: Floats, rest: Floats, targets: Floats, seed: int
) -> float | None:
    """How well all other columns tell targets, as a correlation; None if the column is no leak."""
    from thresher.findings.leaf_findings import forest_findings

    del column

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThresherWarning)
        _, said = forest_findings(
            rest, targets, trees=TREES, seed=seed, task="regression", empty=float(targets.mean())
        )
    known = answer.known
    expected = _ranks(getattr(said, "expected")[known])  # noqa: B009
    wanted = _ranks(targets[known])
    apart = float(np.median(np.abs(expected - wanted)))
    if 1 - answer.skill > RANKS_BETTER * apart:
        return None
    return float(np.corrcoef(expected, wanted)[0, 1])
