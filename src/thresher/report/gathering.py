"""How the evidence is gathered: part after part, and where one cannot be had, why not."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from thresher.checks import check_count
from thresher.errors import InputError
from thresher.findings import Findings
from thresher.progress import Advance, progress_bar
from thresher.report.cautions import find_cautions, find_private_cautions, reasons_for_care
from thresher.report.crosscheck import cross_check
from thresher.report.doubt import measure_doubt
from thresher.report.evidence import About, Evidence
from thresher.report.models import training_points
from thresher.report.payout import share_payout
from thresher.report.plane import draw_plane
from thresher.report.private import describe_release
from thresher.report.reach import measure_reach, radius_curve
from thresher.report.removal import LEAST_POINTS, count_models, removal_curves
from thresher.report.spread import spread_values
from thresher.report.subject import Data, Subject, check_subject
from thresher.report.suggested import count_suggestions, explain_subject
from thresher.report.verdict import judge, judge_release
from thresher.report.words import brief
from thresher.report.worst import worst_rows
from thresher.valuation import Valuation

PARTS = 9  # besides the models that are trained


def gather(
    valuation: Valuation | None,
    X: Any = None,
    y: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    *,
    ids: Any = None,
    rows: Any = None,
    show: Mapping[str, Any] | None = None,
    held_out: bool = False,
    record: Mapping[str, Any] | None = None,
    release: Any = None,
    seed: int = 0,
    findings: Findings | None = None,
    cautions: Sequence[str] = (),
    progress: bool = False,
) -> Evidence:
    """Everything that a report of a valuation, or of a private release, shows.

    Parameters
    ----------
    valuation
        The values; None with `release`.
    X, y, X_val, y_val
        What was valued. Without them, or with a method other than `tknn_shapley`, the parts that
        need them are left out.
    ids
        A name for each point, shown beside its row number.
    rows
        The row number of each point in the table it comes from; 0, 1, 2 if not given.
    show
        Columns to show beside the worst rows, one entry a point; without it the first four of X,
        where X is a data frame.
    held_out
        The validation rows were split off the same table, and nobody checked their labels: as many
        of them may be wrong, so they cannot tell how many of the suggestions are right.
    record
        How the run was made, as JSON can hold it: the page shows it as given. With a release it is
        public, so nothing that depends on the points may be in it, not even a digest of their file.
    release
        A private release instead of a valuation. Nothing but what follows from it and from public
        data is on its page, so everything else about the points is refused.
    findings
        What `explain` finds, where that is known already.
    seed
        Of random removals, of subsets, and of the points that are drawn on the map.
    cautions
        Sentences on what speaks against these data, which the page shows before its own.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    Evidence
        Plain data, for `render`.

    Raises
    ------
    InputError
        Where valuation and data do not fit each other.

    Notes
    -----
    Removal trains about 70 logistic regressions, which takes most of the time: a second for 2,000
    points of ten features, ten for 100,000 and more, since at most 20,000 are trained on.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [0.1], [0.2], [9.0]], ["cat", "cat", "dog", "cat"]
    >>> X_val = [*([(i + 0.5) / 40] for i in range(8)), [20.0]]
    >>> data = X, y, X_val, [*["cat"] * 8, "dog"]
    >>> evidence = gather(th.tknn_shapley(*data, radius=1, metric="euclidean"), *data)
    >>> evidence.worst.columns[:4], evidence.worst.rows[0][:4]
    (('row', 'label', 'suggestion', 'best label'), (2, 'dog', 'relabel', 'cat'))
    """
    seed = check_count("seed", seed, least=0)
    known = _plain_record(record)
    if release is not None:
        given = (valuation, X, y, X_val, y_val, ids, rows, show)
        if any(entry is not None for entry in given):
            raise InputError(
                "a report of a release takes the release alone: nothing exact may be on its page"
            )
        return _of_release(release, known)
    subject = check_subject(
        valuation, X, y, X_val, y_val, ids=ids, rows=rows, show=show, held_out=held_out,
        seed=seed, findings=findings,
    )  # fmt: skip
    steps = PARTS + count_models(subject)
    with progress_bar("report", steps, show=progress, unit="steps") as advance:
        found = _of_subject(subject, known, advance)
    return dataclasses.replace(found, cautions=(*cautions, *found.cautions))


def _of_release(release: Any, record: Mapping[str, Any]) -> Evidence:
    private = describe_release(release)
    params = _plain_record(release.record)
    prices = release.price_list
    classes = () if prices is None else tuple(map(brief, prices.validation.classes.labels))
    method = "dp-knn-shapley" if prices is None else "dp-tknn-shapley"
    return Evidence(
        About(method, params, None, params["validation_points"], classes, record=record),
        judge_release(private),
        find_private_cautions(private),
        {"rows": "what a single row is worth is for its owner alone"},
        private=private,
    )


class _Step:
    """Parts of a report, one after the other: those that cannot be made say why."""

    def __init__(self, advance: Advance | None) -> None:
        self.advance = advance
        self.missing: dict[str, str] = {}

    def make(self, name: str, why_not: str, function: Any, *arguments: Any) -> Any:
        """The part that `function` makes, or None where there is a reason why not."""
        found = None
        if why_not:
            self.missing[name] = why_not
        else:
            try:
                found = function(*arguments)
            except InputError as refused:
                self.missing[name] = str(refused)
        self.done()
        return found

    def done(self) -> None:
        """One more part is done."""
        if self.advance is not None:
            self.advance(1)


def _of_subject(subject: Subject, record: Mapping[str, Any], advance: Advance | None) -> Evidence:
    step, data, unfit = _Step(advance), subject.data, _why_unfit(subject)
    findings: Findings | None = step.make(
        "suggestions", unfit["suggestions"], explain_subject, subject, data
    )
    suggested = doubt = checked = None
    if findings is not None and data is not None:
        suggested = count_suggestions(subject, data, findings)
        doubt = measure_doubt(subject, data)
    reach = step.make("coverage", unfit["radius"], measure_reach, subject, data)
    radius = step.make("radius", unfit["radius"], radius_curve, subject, data)
    removal = step.make("removal", unfit["removal"], removal_curves, subject, data, advance)
    if removal is not None and data is not None:
        checked = cross_check(subject, data, training_points(subject, data))
    step.done()
    plane = step.make("map", unfit["map"], draw_plane, subject, data, findings)
    payout = step.make("owners", unfit["owners"], share_payout, subject.valuation)
    spread = step.make("values", "", spread_values, subject)
    worst = step.make("rows", "", worst_rows, subject, findings)
    care = reasons_for_care(subject, reach)
    return Evidence(
        _about(subject, record),
        judge(spread, suggested, reach, radius, doubt, checked, care),
        find_cautions(subject, findings, reach, radius, removal),
        step.missing,
        spread=spread,
        worst=worst,
        plane=plane,
        suggested=suggested,
        doubt=doubt,
        reach=reach,
        radius=radius,
        removal=removal,
        checked=checked,
        payout=payout,
    )


def _why_unfit(subject: Subject) -> dict[str, str]:
    """For each part the reason why it cannot be made; empty where it can."""
    method, data = subject.valuation.method, subject.data
    without = "" if data is not None else "the report was made without X, y, X_val and y_val"
    if subject.metric == "precomputed":
        without = "distances were precomputed, so there are no features to go by"
    no_radius = without or ("" if subject.radius is not None else f"{method} has no radius")
    few = f"there are fewer than {LEAST_POINTS} points"
    return {
        "suggestions": without or _why_no_prices(subject.valuation),
        "radius": no_radius,
        "removal": without or ("" if len(subject) >= LEAST_POINTS else few),
        "map": without or _why_no_map(data),
        "owners": "" if subject.valuation.owners is not None else "no owners were given",
    }


def _why_no_prices(valuation: Valuation) -> str:
    if valuation.method == "tknn-shapley":
        return ""
    return f"suggestions come from the prices of tknn_shapley, and this is {valuation.method}"


def _why_no_map(data: Data | None) -> str:
    needed = 1 + min(2, data.rows.width) if data is not None else 0
    enough = data is None or len(data.rows) >= needed
    return "" if enough else f"a map needs at least {needed} points"


def _about(subject: Subject, record: Mapping[str, Any]) -> About:
    valuation = subject.valuation
    count = valuation.params.get("validation_points")
    return About(
        valuation.method,
        dict(valuation.params),
        len(valuation),
        count if isinstance(count, int) else None,
        subject.classes,
        total=float(math.fsum(valuation.values)),
        utility_all=_known(valuation.utility_all),
        utility_none=_known(valuation.utility_none),
        record=record,
    )


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def _plain_record(record: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A record as JSON holds it; what JSON does not know becomes text."""
    if record is None:
        return {}
    if not isinstance(record, Mapping):
        raise InputError(f"record must be a dictionary, got {type(record).__name__}")
    plain: dict[str, Any] = json.loads(json.dumps(dict(record), default=_plain_entry))
    return plain


def _plain_entry(entry: Any) -> Any:
    return entry.item() if hasattr(entry, "item") and not hasattr(entry, "shape") else str(entry)
