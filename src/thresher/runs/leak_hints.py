"""Leaks in a table: what is said about columns that repeat the label, and the way out."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError, option
from thresher.findings.repeated_labels import LOOKED, Leak, find_leaks
from thresher.inputs.coded import Coded
from thresher.runs.roles import not_naming
from thresher.runs.settings import Settings
from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder, TreeEncoder

Leaks = Mapping[str, Leak]  # by the name of the column


def leaks_among(
    X: Floats, encoder: Encoder | TreeEncoder, labels: Sequence[Hashable], settings: Settings
) -> Leaks:
    """The leaks among columns that an encoder made numbers of."""
    features: Sequence[Any] = encoder.features
    starts = [0, *accumulate(feature.width for feature in features)]
    columns = [_column(X[:, lo:hi]) for lo, hi in pairwise(starts)]
    if not columns:
        return {}
    known = np.array(list(labels), np.float64) if settings.numbers else Coded.of(labels).codes
    found = find_leaks(np.stack(columns, axis=1), known, numbers=settings.numbers)
    return {features[leak.column].name: leak for leak in found}


def _column(part: Floats) -> Floats:
    """One column of numbers: of zeros and ones for each category, the place of the one."""
    return part[:, 0] if part.shape[1] == 1 else part.argmax(axis=1).astype(np.float64)


def leaks_of_table(points: Columns, settings: Settings) -> Leaks:
    """The leaks among the columns of a table that trees can use, by some of its rows."""
    random = np.random.default_rng(0)
    rows = np.arange(len(points))
    if len(rows) > LOOKED:
        rows = np.sort(random.choice(rows, LOOKED, replace=False))
    some, parts, features = points.take(rows), [], []
    for name in points.names:
        one = dataclasses.replace(some, features=some.features.select([name]), categorical=())
        try:
            fitted = TreeEncoder.fit(one)
            known = fitted.transform(one) if fitted.features else None  # prose has none
        except InputError:  # which is said elsewhere
            continue
        if known is not None:
            parts.append(known)
            features.append(fitted.features[0])
    if not parts:
        return {}
    encoder = TreeEncoder(tuple(features))
    return leaks_among(np.concatenate(parts, axis=1), encoder, some.labels, settings)


def leak_hints(leaks: Leaks, settings: Settings, rows: int) -> list[str]:
    """A hint for each leak, with the way out; `rows` are those of the table."""
    return [_hint(name, leak, list(leaks), settings, rows) for name, leak in leaks.items()]


def _hint(name: str, leak: Leak, names: list[str], settings: Settings, rows: int) -> str:
    what = "target" if settings.numbers else "label"
    verb = "repeats" if leak.repeats else "nearly decides"
    way_out = f"leave it out with {option('ignore', names)}"
    if not leak.repeats:
        way_out = f"if it was made from the {what}, {way_out}"
    some = f", judged by {leak.rows:,} rows" if leak.rows < rows else ""
    return (
        f"column {name!r} {verb} the {what} ({_evidence(leak, settings)}{some}), so a wrong {what} "
        f"cannot stand out: {way_out}"
    )


def _evidence(leak: Leak, settings: Settings) -> str:
    if leak.others is None:
        return "one to one"
    if settings.numbers:
        alone, others = f"a rank correlation of {leak.told:.3f}", f"{leak.others:.2f}"
    else:
        alone = f"it tells {100 * leak.told:.3g} % of all labels"
        others = f"{100 * leak.others:.3g} %"
    return f"{alone}, all other columns together {others}"


def leak_sentence(leaks: Leaks, what: str) -> str:
    """That columns repeat the label or decide it, in a few words.

    Examples
    --------
    >>> leak = Leak(0, True, 1.0, None, 100)
    >>> print(leak_sentence({"code": leak, "y.2": leak}, "label"))
    columns 'code' and 'y.2' repeat the label, so a wrong one cannot stand out
    """
    names = [repr(name) for name in leaks]
    repeats = all(leak.repeats for leak in leaks.values())
    verb = "repeat" if repeats else "nearly decide"
    one = len(names) == 1
    shown = names[0] if one else f"{', '.join(names[:-1])} and {names[-1]}"
    does = f"column {shown} {verb}s" if one else f"columns {shown} {verb}"
    return f"{does} the {what}, so a wrong one cannot stand out"


def without_leaks(settings: Settings, leaks: Leaks) -> Settings:
    """The settings that leave the leaks out."""
    found = dataclasses.replace(settings, guess=())
    for name in leaks:
        others: Any = not_naming(found, name)
        found = dataclasses.replace(found, ignore=(*found.ignore, name), **others)
    return found
