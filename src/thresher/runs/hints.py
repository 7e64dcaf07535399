"""What a user should know about the data before trusting their values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.errors import option
from thresher.inputs.coded import Coded
from thresher.inputs.spelling import (
    NO_LABEL,
    first_names,
    look_alikes,
    named,
    spelled,
    split_by_spelling,
)
from thresher.neighbors.kernel import BOX
from thresher.runs.settings import AUTO, Settings
from thresher.tables.column_profile import Profile, is_empty, profile, why_ids
from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder, TreeEncoder
from thresher.threads import in_order

APART = 100.0  # the most by which deviations of columns may differ without a word
MANY_COPIES = 0.2  # of the rows: beyond, those without copies may be odd
FELT = 0.6  # of a kernel's radius: a Gaussian weighs points beyond by less than a fifth
LOOKED = 1 << 16  # rows that ids are looked for in
MANY_EMPTY = 6  # columns, of which more are not listed in an option
PAIRS = 1 << 11  # of rows whose distances are looked at
RULING = 0.5  # of the way from an even share of the distances to all

AnyEncoder = Encoder | TreeEncoder


def run_hints(
    settings: Settings, encoder: AnyEncoder, X: Floats, labels: Sequence[Hashable],
    validation: Columns, *, radius: float, reached: bool, record: Mapping[str, Any],
) -> list[str]:  # fmt: skip
    """Hints on how to get better values; `X` has rows of the points, maybe only the first ones."""
    found: list[str] = []
    if not settings.numbers:
        found = label_hints(labels, validation.labels, keep_na=settings.keep_na)
    if isinstance(encoder, TreeEncoder):
        found += id_hints(X, encoder, settings).values()
    else:
        found += row_hints(X, encoder, settings) or reach_hints(radius, settings, reached=reached)
    copies = record["validation"].get("rows_with_copies", 0)
    rows = record["points"]["rows"]
    if copies > MANY_COPIES * rows:
        found.append(
            f"{copies} of {rows} rows have copies, and none of these was held out, so the rows "
            f"held out may be unusual; drop the copies, or use {option('validation')}"
        )
    for name, count in encoder.unseen(validation).items():
        have = "validation point has" if count == 1 else "validation points have"
        instead = "counts as missing" if settings.method == "forest" else "is all zeros"
        found.append(f"{count} {have} a {name!r} that no point has: it {instead}")
    return found


def label_hints(
    points: Sequence[Hashable], validation: Sequence[Hashable], *, keep_na: bool = False
) -> list[str]:
    """Hints about odd labels.

    Examples
    --------
    >>> label_hints(["cat", "dog"], ["cat", "dog"])
    []
    >>> [hint] = label_hints(["cat", "Cat "], ["Cat ", "cat"])
    >>> print(hint.removeprefix("labels that differ only in how they are written are "))
    different classes: 'cat', 'Cat '; write them alike if they mean the same
    """
    ours, theirs = (dict.fromkeys(Coded.of(each).distinct) for each in (points, validation))
    found = doubtful_labels(ours, theirs, keep_na=keep_na)
    sides = ((ours, theirs, "validation point"), (theirs, ours, "point")) if theirs else ()
    for mine, other, who in sides:
        lacking = [label for label in mine if label not in other]
        if lacking:
            found.append(f"no {who} has the label{'s' * (len(lacking) > 1)} {named(lacking)}")
    return found


def doubtful_labels(
    points: Iterable[Hashable], validation: Iterable[Hashable], *, keep_na: bool = False
) -> list[str]:
    """Hints about labels that may not be the classes that the user meant."""
    points, validation = Coded.of(points).distinct, Coded.of(validation).distinct
    found, split = [], split_by_spelling(points, validation)
    if split:
        shown = "; ".join(named(pair) for pair in split[:3])
        found.append(
            "labels of points and of validation points differ only in how they are written, and "
            f"so they count as different classes: {shown}: write them alike"
        )
    alike = [label for same in look_alikes([*points, *validation]) for label in same]
    if alike and not split:
        found.append(
            "labels that differ only in how they are written are different classes: "
            f"{named(alike)}; write them alike if they mean the same"
        )
    if not keep_na and (words := _no_labels([*points, *validation])):
        missing = option("na", list(dict.fromkeys(word.strip() for word in words)))
        found.append(
            f"{missing_labels(words)}, read them as missing with {missing}, or confirm them as "
            f"classes with {option('keep_na', value=True)}"
        )
    return found


def missing_labels(labels: Iterable[Hashable]) -> str:
    """What to do about classes whose names say that there is no label; empty if there are none.

    Examples
    --------
    >>> missing_labels(["cat", "dog"])
    ''
    """
    words = _no_labels(labels)
    advice = f"a class is made of each of these labels: {named(words)}; fill in or drop the rows "
    return f"{advice}where they mean that the label is missing" if words else ""


def _no_labels(labels: Iterable[Hashable]) -> list[str]:
    distinct = Coded.of(labels).distinct
    return [label for label in distinct if isinstance(label, str) and spelled(label) in NO_LABEL]


def row_hints(X: Floats, encoder: Encoder, settings: Settings) -> list[str]:
    """Hints about odd features."""
    if X.shape[1] == 1 and settings.metric == "cosine":
        return [f"one feature has two directions only: use {option('metric', 'euclidean')}"]
    found = id_hints(X, encoder, settings)
    others = [place for place in range(len(encoder.names)) if place not in found]
    unlike = None if settings.standardize else _unlike_columns(X, others)
    if unlike is None:
        return [*found.values(), *_ruling_hints(X, encoder, settings, known=found)]
    low, high = (encoder.names[place] for place in unlike)
    return [
        *found.values(),
        f"columns differ in scale, from {low!r} to {high!r}: a few of them dominate the "
        f"distances; {option('standardize', value=True)} brings them to one scale",
    ]


def _ruling_hints(
    X: Floats, encoder: Encoder, settings: Settings, *, known: Iterable[int]
) -> list[str]:
    """A hint about a column that rules the distances, unless it is `known`, and what to do."""
    count = len(encoder.features) + (encoder.text is not None)
    for place, feature, share in _shares(X, encoder):
        if place not in known and rules(share, count):
            more = option("scaling", "ranks" if settings.scaling == "robust" else "robust")
            way_out = more if settings.standardize else option("standardize", value=True)
            said = "" if settings.scaling == "ranks" else f"use {way_out}, or "
            return [
                f"column {feature.name!r} makes up {100 * share:.0f} % of the distances, so the "
                f"others hardly count: {said}leave it out with {option('ignore', [feature.name])}"
            ]
    return []


def id_hints(X: Floats, encoder: AnyEncoder, settings: Settings) -> dict[int, str]:
    """Hints about features that look like ids, by column, and what to do."""
    X, found = X[:LOOKED], {}
    for place, feature, share in _shares(X, encoder):
        name = feature.name
        if feature.kind == "number" and (why := why_ids(name, feature.unscaled(X[:, place]))):
            most = f" and makes up {100 * share:.0f} % of the distances" if share > RULING else ""
            named_so = "" if settings.id else f"name it with {option('id', name)}, or "
            found[place] = (
                f"column {name!r} looks like an id ({why}), but it is used as a feature{most}: "
                f"{named_so}leave it out with {option('ignore', [name])}"
            )
    return found


def _shares(X: Floats, encoder: AnyEncoder) -> Iterable[tuple[int, Any, float]]:
    """Each feature with its first column, and its share of the distances; a forest has none."""
    widths = [feature.width for feature in encoder.features]
    no_distances = isinstance(encoder, TreeEncoder)
    shares = [0.0] * len(widths) if no_distances else distance_shares(X, widths)
    return zip(accumulate(widths, initial=0), encoder.features, shares, strict=False)


def category_hints(points: Columns, encoder: AnyEncoder, settings: Settings) -> list[str]:
    """Hints about columns that a forest takes for categories, though they are numbers or dates.

    Examples
    --------
    >>> import pyarrow as pa
    >>> points = Columns((0, 1, 0), pa.table({"x": ["1,5", "2,5", "1,5"]}))
    >>> hints = category_hints(points, TreeEncoder.fit(points), Settings("a.csv"))
    >>> from thresher.errors import in_python
    >>> print(in_python(hints[0]))
    column 'x' is used as categories, but looks like numbers: read it with decimal=','
    """
    found: list[str] = []
    if not isinstance(encoder, TreeEncoder):
        return found
    for each in encoder.features:
        if each.kind == "categorical" and each.name not in settings.categorical:
            seen = profile(each.name, points.features.column(each.name), points.cells)
            if seen.fix:
                found.append(category_hint(seen))
    return found


def empty_hints(points: Columns) -> list[str]:
    """A hint about columns that say nothing at all; none if there are none."""
    names = [name for name in points.names if is_empty(points.features.column(name))]
    if not names:
        return []
    several = len(names) > 1
    way_out = f": leave {'them' if several else 'it'} out with {option('ignore', names)}"
    return [
        f"column{'s' * several} {first_names(names)} {'are' if several else 'is'} empty"
        f"{way_out if len(names) <= MANY_EMPTY else ''}"
    ]


def category_hint(column: Profile) -> str:
    """The hint that a column of categories looks like numbers or dates, and what to do."""
    options = " ".join(option(key, entry) for key, entry in column.fix.items())
    return (
        f"column {column.name!r} is used as categories, but looks like {column.kind}s: read it "
        f"with {options}"
    )


def reach_hints(radius: float, settings: Settings, *, reached: bool) -> list[str]:
    """What to do if no point is near any validation point, or if too many are."""
    if reached:
        return _wide_hints(radius, settings)
    if settings.radius == AUTO:
        return [
            f"radius {radius:.4g} fits the validation set but reaches no point: are both from one "
            "source, and in the same units?"
        ]
    return [f"radius {radius:.4g} reaches no point: use a larger {option('radius')}, or auto"]


def _wide_hints(radius: float, settings: Settings) -> list[str]:
    """What to do if the suggested cosine radius reaches rows at right angles."""
    felt = radius if settings.weighing == BOX else FELT * radius
    if settings.radius != AUTO or settings.metric != "cosine" or felt <= 1:
        return []
    way_out = (
        option("metric", "euclidean") if settings.standardize else option("standardize", value=True)
    )
    return [
        f"radius {radius:.4g} is suggested, beyond 1: even rows at right angles count as near, so "
        f"directions say little about the labels; use {way_out}, other features, or "
        f"{option('method', 'knn')}"
    ]


def _unlike_columns(X: Floats, places: list[int]) -> tuple[int, int] | None:
    """Two of these columns whose deviations are far apart, the smaller one first; else None."""
    spread = dict(
        in_order(
            lambda place: (place, float(X[:, place].std())), [(place,) for place in places],
            parallel=len(X) > LOOKED,
        )
    )  # fmt: skip
    varied = [place for place in places if spread[place] > 0]
    if len(varied) < 2:
        return None
    low, high = min(varied, key=spread.__getitem__), max(varied, key=spread.__getitem__)
    return (low, high) if spread[high] > APART * spread[low] else None


def distance_shares(X: Floats, widths: Sequence[int]) -> list[float]:
    """The share of each feature in the squared distance of two rows, as a mean over pairs.

    Each pair counts once, however far apart it is, so a few wild rows change little. `widths` says
    how many columns each feature has. Further columns belong to no feature, but take their share.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 4)) * [3, 1, 1, 1]
    >>> [round(share, 2) for share in distance_shares(X, [1, 1, 2])]
    [0.55, 0.13, 0.31]
    """
    rows = np.random.default_rng(0).permutation(len(X))[: 2 * PAIRS]
    half = len(rows) // 2
    apart = np.abs(X[rows[:half]] - X[rows[half : 2 * half]])
    largest = apart.max(axis=1, initial=0.0)
    squares = (apart[largest > 0] / largest[largest > 0, None]) ** 2  # which cannot overflow
    if not len(squares):
        return [0.0] * len(widths)
    shares = (squares / squares.sum(axis=1, keepdims=True)).mean(axis=0)
    starts = np.cumsum([0, *widths])
    return [float(shares[lo:hi].sum()) for lo, hi in pairwise(starts.tolist())]


def rules(share: float, features: int) -> bool:
    """Whether a feature with this share of the distances rules those of so many features.

    Examples
    --------
    >>> rules(0.7, 2), rules(0.7, 10), rules(1.0, 1)
    (False, True, False)
    """
    even = 1 / max(1, features)
    return share > even + RULING * (1 - even)
