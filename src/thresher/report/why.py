"""Why each listed row is on the list: what speaks for and against its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError
from thresher.findings.label_findings import Findings, Worth
from thresher.findings.target_findings import TargetFindings
from thresher.forest import FOREST
from thresher.games.semivalues import check_semivalue
from thresher.inputs.checked_inputs import Points, Validation
from thresher.inputs.checks import check_metric
from thresher.inputs.labels import Classes
from thresher.neighbors.closest import closest
from thresher.neighbors.parallel_rows import tie_directions
from thresher.price_list import PriceList
from thresher.progress import Advance
from thresher.report.leaf_witnesses import shared_leaves
from thresher.report.near_pairs import NearPairs
from thresher.report.phrases import brief, short
from thresher.report.pictures import Pictures
from thresher.report.subject import Subject
from thresher.report.unlike import unlike_columns

AGAINST, FOR, COPIES = 4, 3, 6  # rows that are named
NEAREST = 64  # validation points that are looked at, by a radius
BARS = 6  # labels that have a bar
LONGEST = 1200  # characters of a text that is shown

Ranked = list[Integers]  # for each listed row the others, numbered on through both sides
Entry = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Details:
    """What else is known about the rows, and how they were judged; all of it may be missing."""

    # all columns by name: floats, or entries of any kind, which are categories
    columns: Mapping[str, Any] = field(default_factory=dict)
    # rows_val, ids_val: row numbers and ids of the validation points; `beside` if they are rows
    # of the same table
    rows_val: Sequence[int] | Integers | None = None
    ids_val: Sequence[Any] | None = None
    beside: bool = False
    text: Sequence[Any] | None = None  # a text for each row, which is shown as such
    images: Pictures | None = None  # the picture of each row
    command: str = ""  # the command that applies saved decisions


def explain_rows(
    subject: Subject, findings: Findings | None, listed: Integers, pairs: NearPairs | None,
    details: Details, advance: Advance | None = None,
) -> list[Entry]:  # fmt: skip
    """What the page's script shows about each listed row."""
    if findings is None or subject.codes is None or not len(listed):
        return []
    try:
        ranked, bars, kind = _evidence(subject, findings, listed, pairs, advance)
    except InputError:  # there are no features
        ranked, bars, kind = [], None, ""
    besides = [_beside(subject, details, row) for row in listed.tolist()]
    if isinstance(findings, TargetFindings):
        evidence = _about_targets(subject, findings, listed, ranked, details)
        return [beside | about for beside, about in zip(besides, evidence, strict=True)]
    found: list[Entry] = [{} for _ in listed]
    codes = _both(subject)
    for place, order in enumerate(ranked):
        own = codes[order] == codes[listed[place]]
        found[place]["against"] = _named(subject, details, order[~own][:AGAINST])
        found[place]["for"] = _named(subject, details, order[own][:FOR])
    if bars is not None:
        for place, row in enumerate(listed.tolist()):
            found[place]["bars"] = _bars(subject, findings, row, bars[place])
            found[place]["kind"] = kind
    best = findings.best_codes[listed].astype(np.int64)
    columns = details.columns or _numeric(subject.shown)
    said = unlike_columns(columns, subject.codes, subject.classes, listed, best)
    unlike = [{"unlike": each} if each else {} for each in said]
    return [one | two | three for one, two, three in zip(found, unlike, besides, strict=True)]


def _about_targets(
    subject: Subject, findings: TargetFindings, listed: Integers, ranked: Ranked, details: Details
) -> list[Entry]:
    """Which others there are, what they expect, and how far off targets usually are."""
    found: list[Entry] = [{} for _ in listed]
    for place, row in enumerate(listed.tolist()):
        if not np.isnan(findings.expected[row]):
            targets = (findings.expected[row], findings.usual[row])
            near = short(round(float(findings.near[row])))
            found[place]["targets"] = [near, *(short(round(float(each), 12)) for each in targets)]
        if ranked:
            order = ranked[place][: AGAINST + FOR]
            found[place]["like"] = _named(subject, details, order)
    return found


def _evidence(
    subject: Subject, findings: Findings, listed: Integers, pairs: NearPairs | None,
    advance: Advance | None,
) -> tuple[Ranked, Floats | None, str]:  # fmt: skip
    """The rows most like each listed row, the most alike first; and a number for each label."""
    if subject.valuation.method == FOREST:
        if findings.forest is None:
            raise InputError("the findings were saved without their forest")
        leaves = shared_leaves(
            findings.forest, *subject.data.splits, listed, _both(subject), len(subject.classes),
            subject.seed, advance,
        )  # fmt: skip
        return *leaves, "share"
    ranked = _nearest(subject, findings, listed)
    if pairs is None:
        return ranked, _votes(subject, listed, ranked), "share"
    return ranked, _values(subject, listed, pairs), "value"


def _nearest(subject: Subject, findings: Findings, listed: Integers) -> Ranked:
    """The nearest validation points of each listed row, as many as vote."""
    data = subject.data
    cells = len(data.codes_val)
    classes = Classes(tuple(range(len(subject.classes))))
    metric = check_metric(subject.metric)
    if cells < 2:
        return [np.full(cells, len(subject)) for _ in listed]
    asking = Validation(data.rows.some(listed), data.codes[listed], classes, metric)
    kept = min(NEAREST, cells - 1)
    judges = tie_directions(Points(data.rows_val, data.codes_val), metric)
    keys = closest(judges, asking, kept, "float64", None)
    near = findings.near[listed]
    return [
        (each >> np.uint64(1)).astype(np.int64)[: int(near[place])] + len(subject)
        for place, each in enumerate(keys)
    ]


def _votes(subject: Subject, listed: Integers, ranked: Ranked) -> Floats:
    codes, shares = _both(subject), np.zeros((len(listed), len(subject.classes)))
    for place, order in enumerate(ranked):
        shares[place] = np.bincount(codes[order], minlength=shares.shape[1]) / max(len(order), 1)
    return shares


def _values(subject: Subject, listed: Integers, pairs: NearPairs) -> Floats:
    """What each listed row would be worth under each label."""
    data, about = subject.data, subject.valuation.params
    classes = Classes(tuple(range(len(subject.classes))))
    validation = Validation(data.rows_val, data.codes_val, classes, check_metric(subject.metric))
    semivalue = check_semivalue(about.get("semivalue", "shapley"), calibrated=True)
    prices = PriceList.of_counts(
        validation, subject.radius, pairs.counts, semivalue, subject.kernel
    )
    scale = len(validation) if about.get("mean") else 1
    return Worth.of(prices, Points(data.rows.some(listed), data.codes[listed])).values / scale


def _bars(subject: Subject, findings: Findings, row: int, numbers: Floats) -> list[Any]:
    """The labels with the highest numbers, the row's own always among them."""
    own = int(subject.codes[row]) if subject.codes is not None else 0
    numbers = numbers.copy()
    if findings.best_share is not None:  # as the list has them
        numbers[own], best = findings.agree[row], int(findings.best_codes[row])
        numbers[best] = findings.best_share[row]
    order = [own, *(code for code in np.argsort(-numbers, kind="stable").tolist() if code != own)]
    return [[code, float(f"{numbers[code]:.3g}")] for code in order[:BARS]]


def _both(subject: Subject) -> Integers:
    """The codes of the points, followed by those of the validation points."""
    codes_val = () if subject.given is None else subject.given.codes_val
    return np.concatenate([subject.codes, codes_val]).astype(np.int64)


def _named(subject: Subject, details: Details, rows: Integers) -> list[Any]:
    """Rows of either side by name, each with the number of its label, or its target as text."""
    names = [_name(subject, details, row) for row in rows.tolist()]
    cells: list[Any] = _both(subject)[rows].tolist()
    if subject.targets is not None:
        more = () if subject.targets_val is None else subject.targets_val
        cells = list(map(short, np.concatenate([subject.targets, more])[rows].tolist()))
    return [[name, each] for name, each in zip(names, cells, strict=True)]


def _name(subject: Subject, details: Details, row: int) -> str:
    """What the page calls a row of either side."""
    side, number, name = "", 0, ""
    if row < len(subject):
        number, name = subject.number(row), subject.name(row)
    else:
        row -= len(subject)
        side = "" if details.beside else "validation "
        number = row if details.rows_val is None else int(details.rows_val[row])
        name = "" if details.ids_val is None else brief(details.ids_val[row])
    return f"{side}row {number}" + (f" ({name})" if name else "")


def _beside(subject: Subject, details: Details, row: int) -> Entry:
    """Copies of a row, its text and its picture."""
    found: Entry = {}
    if subject.copies is not None:
        group = np.flatnonzero(subject.copies.near == subject.copies.near[row])
        others = group[group != row]
        if len(others):
            found["copies"] = _named(subject, details, others[:COPIES])
            found["copied"] = len(others)
    if details.text is not None and details.text[row] is not None:
        found["text"] = str(details.text[row])[:LONGEST]
    image = None if details.images is None else details.images.address(row)
    return found | ({"image": image} if image else {})


def _numeric(shown: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Columns of numbers as floats, others as they are."""
    found: dict[str, Any] = {}
    for name, column in shown.items():
        plain = [np.nan if cell is None else cell for cell in column]
        numeric = all(isinstance(cell, int | float | np.number) for cell in plain)
        found[name] = np.array(plain, np.float64) if numeric else column
    return found
