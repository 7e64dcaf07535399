"""What a user should know about the data before trusting their values."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.coded import Coded
from thresher.errors import option
from thresher.runs.settings import AUTO, Settings
from thresher.spelling import NO_LABEL, look_alikes, named, spelled, split_by_spelling
from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder
from thresher.tables.feature import Feature
from thresher.tables.tree_encoder import TreeEncoder
from thresher.threads import in_order

APART = 100.0  # the most by which deviations of columns may differ without a word
MANY_COPIES = 0.2  # of the rows: beyond, those without copies may be odd
LOOKED = 1 << 16  # rows that ids are looked for in
LEAST_IDS = 20  # rows; fewer may well have different numbers
DISTINCT = 0.95  # share of ids that are different, though rows may have copies
DENSE = 2.0  # ids of n rows are numbers from a range of at most so many times n
ID_NAME = re.compile(r"(?i:(?:.*[\W_])?(?:id|ids|uuid|key|idx|index|row))|.*[a-z](?:Id|ID)", re.S)
RULING = 0.5  # share of the variance

Numbers = NDArray[np.float64]
AnyEncoder = Encoder | TreeEncoder


def run_hints(
    settings: Settings, encoder: AnyEncoder, X: Numbers, labels: Sequence[Hashable],
    validation: Columns, *, radius: float, reached: bool, record: Mapping[str, Any],
) -> list[str]:  # fmt: skip
    """What would have made for better values; `X` are rows of the points, maybe the first only."""
    found = label_hints(labels, validation.labels, keep_na=settings.keep_na)
    if settings.method == "forest":
        found += id_hints(X, encoder, settings).values()
    else:
        found += row_hints(X, encoder, settings) or reach_hints(radius, settings, reached=reached)
    copies = record["validation"].get("rows_with_copies", 0)
    rows = record["points"]["rows"]
    if copies > MANY_COPIES * rows:
        found.append(
            f"{copies} of {rows} rows have copies, and none of these was held out: the rows held "
            f"out may be odd ones; drop the copies, or use {option('validation')}"
        )
    for name, count in encoder.unseen(validation).items():
        have = "validation point has" if count == 1 else "validation points have"
        instead = "counts as missing" if settings.method == "forest" else "is all zeros"
        found.append(f"{count} {have} a {name!r} that no point has: it {instead}")
    return found


def label_hints(
    points: Sequence[Hashable], validation: Sequence[Hashable], *, keep_na: bool = False
) -> list[str]:
    """What is odd about the labels.

    Examples
    --------
    >>> label_hints(["cat", "dog"], ["cat", "dog"])
    []
    >>> label_hints(["cat", "Cat "], ["Cat ", "cat"])
    ["labels that differ only in how they are written are different classes: 'cat', 'Cat '"]
    """
    ours, theirs = (dict.fromkeys(Coded.of(each).distinct) for each in (points, validation))
    found = doubtful_labels(ours, theirs, keep_na=keep_na)
    sides = ((ours, theirs, "validation point"), (theirs, ours, "point")) if theirs else ()
    for mine, other, who in sides:
        lacking = [label for label in mine if label not in other]
        if lacking:
            found.append(f"no {who} has the label{'s' * (len(lacking) > 1)} {named(lacking)}")
    if len({**ours, **theirs}) == 1:
        found.append("there is one class only, so that no label can be wrong and no value tells")
    return found


def doubtful_labels(
    points: Iterable[Hashable], validation: Iterable[Hashable], *, keep_na: bool = False
) -> list[str]:
    """Labels that may not be the classes that were meant."""
    points, validation = Coded.of(points).distinct, Coded.of(validation).distinct
    found, split = [], split_by_spelling(points, validation)
    if split:
        shown = "; ".join(named(pair) for pair in split[:3])
        found.append(
            "labels of points and of validation points differ only in how they are written, and "
            f"so are different classes: {shown}: write them alike"
        )
    alike = [label for same in look_alikes([*points, *validation]) for label in same]
    if alike and not split:
        found.append(
            f"labels that differ only in how they are written are different classes: {named(alike)}"
        )
    words = dict.fromkeys(
        x for x in (*points, *validation) if isinstance(x, str) and spelled(x) in NO_LABEL
    )
    if words and not keep_na:
        found.append(
            f"a class is made of each of these labels: {named(words)}; fill in or drop the rows "
            "where they mean that the label is missing, or confirm them as classes by "
            f"{option('keep_na', value=True)}"
        )
    return found


def row_hints(X: Numbers, encoder: AnyEncoder, settings: Settings) -> list[str]:
    """What is odd about the features."""
    if X.shape[1] == 1 and settings.metric == "cosine":
        return [f"one feature has two directions only: use {option('metric', 'euclidean')}"]
    found = id_hints(X, encoder, settings)
    others = [place for place in range(len(encoder.names)) if place not in found]
    unlike = None if settings.standardize else _unlike_columns(X, others)
    if unlike is None:
        return [*found.values()]
    low, high = (encoder.names[place] for place in unlike)
    return [
        *found.values(),
        f"columns differ in scale, from {low!r} to {high!r}: a few of them make up all distances; "
        f"{option('standardize', value=True)} brings them to one scale",
    ]


def id_hints(X: Numbers, encoder: AnyEncoder, settings: Settings) -> dict[int, str]:
    """The features that look like ids, by column, with the way out."""
    X = X[:LOOKED]
    spread = X.var(axis=0)
    total = float(spread.sum())
    found, place = {}, 0
    for feature in encoder.features:
        if feature.kind == "number":
            column = X[:, place]
            if isinstance(feature, Feature) and feature.means:  # as it was before it was scaled
                column = column * feature.deviations[0] + feature.means[0]
            share = float(spread[place]) / total if total and settings.method != "forest" else 0.0
            if why := _why_ids(feature.name, column):
                found[place] = _id_hint(feature.name, why, share, settings)
        place += feature.width
    return found


def _id_hint(name: str, why: str, share: float, settings: Settings) -> str:
    rules = f" and makes up {100 * share:.0f} % of the variance" if share > RULING else ""
    named_so = "" if settings.id else f"name it by {option('id', name)}, or "
    return (
        f"column {name!r} looks like an id ({why}), yet it is a feature{rules}: {named_so}leave it "
        f"out by {option('ignore', [name])}"
    )


def _why_ids(name: str, column: Numbers) -> str:
    """Why a column of numbers looks like ids; empty where it does not."""
    rows, whole = len(column), np.rint(column)
    if rows < LEAST_IDS or not np.allclose(column, whole, rtol=1e-13, atol=1e-6):
        return ""
    distinct = len(np.unique(whole))
    if distinct < DISTINCT * rows:
        return ""
    different = f"{'all' if distinct == rows else 'nearly all'} of them different"
    if (np.diff(whole) >= 0).all() or (np.diff(whole) <= 0).all():
        return f"whole numbers in order, {different}"
    dense = float(np.ptp(whole)) < DENSE * rows
    return f"whole numbers, {different}" if dense or ID_NAME.fullmatch(name) else ""


def reach_hints(radius: float, settings: Settings, *, reached: bool) -> list[str]:
    """The way out where no point is near any validation point."""
    if reached:
        return []
    if settings.radius == AUTO:
        return [
            f"radius {radius:.4g} is right for the validation set and reaches no point: are both "
            "from one source, and in the same units?"
        ]
    return [f"radius {radius:.4g} reaches no point: use a larger {option('radius')}, or auto"]


def _unlike_columns(X: Numbers, places: list[int]) -> tuple[int, int] | None:
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
