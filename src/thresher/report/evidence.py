"""Evidence: everything a report shows; gather: how it is measured, section after section."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.checks import check_count
from thresher.errors import InputError
from thresher.findings import Findings
from thresher.inputs import Points, Validation
from thresher.progress import Advance, progress_bar
from thresher.report.about import About, about_release, about_subject, plain_record
from thresher.report.cautions import find_cautions, reasons_for_care
from thresher.report.coverage import Coverage, measure_coverage, radius_curve
from thresher.report.cross_check import halve_validation
from thresher.report.distribution import Distribution, measure_distribution
from thresher.report.map import Map, draw_map
from thresher.report.near_pairs import walk_near_pairs
from thresher.report.owners import Owners, share_payout
from thresher.report.private import PrivateRelease, describe_release
from thresher.report.removal import (
    LEAST_POINTS,
    STEPS,
    Removal,
    count_models,
    removal_curves,
    removal_orders,
    step_of_each,
)
from thresher.report.rows import LowestRows, lowest_rows
from thresher.report.subject import Data, Section, Subject, check_subject
from thresher.report.suggestions import Suggestions, count_suggestions, explain_subject
from thresher.report.verdict import Verdict, judge
from thresher.valuation import Valuation

PARTS = 8  # besides the models that are trained


@dataclass(frozen=True)
class Evidence:
    """Everything a report shows, as plain data: numbers, texts and tuples of them.

    Parameters
    ----------
    about
        What was computed, and how.
    verdict
        In one sentence, and what to do.
    cautions
        What speaks against taking the verdict at its word.
    missing
        The parts that are left out, and why.
    lowest, map, suggestions, distribution, removal, coverage, owners
        The sections; None where left out.
    private
        What may be shown of a private release; None for exact values.
    """

    about: About
    verdict: Verdict
    cautions: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    lowest: LowestRows | None = None
    map: Map | None = None
    suggestions: Suggestions | None = None
    distribution: Distribution | None = None
    removal: Removal | None = None
    coverage: Coverage | None = None
    owners: Owners | None = None
    private: PrivateRelease | None = None

    def sections(self) -> list[Section]:
        """The sections that are there, in the order of the page."""
        prices = None if self.private is None else self.private.prices
        found: list[Section | None] = [
            self.lowest, self.map, self.suggestions, self.distribution, self.removal, self.coverage,
            self.owners, self.private, prices, self.about,
        ]  # fmt: skip
        return [section for section in found if section is not None]

    def tiles(self) -> list[tuple[str, str, str]]:
        """The figures on top of the page: a name, a number, and what else there is to say."""
        having = self.distribution, self.suggestions, self.coverage, self.private
        return [tile for part in having if part is not None for tile in part.tiles()]


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
    checked: tuple[Points, Validation] | None = None,
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
        Columns to show beside the rows with the lowest values, one entry a point; without it the
        first four of X, where X is a data frame.
    held_out
        The validation rows were split off the same table, and nobody checked their labels: as many
        of them may be wrong, so they cannot tell how many of the suggestions are right.
    record
        How the run was made, as JSON can hold it: the page shows it as given. With a release it is
        public, so nothing that depends on the points may be in it, not even a digest of their file.
    release
        A private release instead of a valuation. Nothing but what follows from it and from public
        data is on its page, so everything else about the points is refused.
    seed
        Of random removals, of subsets, and of the points that are drawn on the map.
    findings
        What `explain` finds, where that is known already.
    checked
        The points and the validation set as the valuation checked them, instead of the four
        tables: they are not checked again.
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
    points of ten features, a few for 100,000 and more, since at most 20,000 are trained on.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [0.1], [0.2], [9.0]], ["cat", "cat", "dog", "cat"]
    >>> X_val = [*([(i + 0.5) / 40] for i in range(8)), [20.0]]
    >>> data = X, y, X_val, [*["cat"] * 8, "dog"]
    >>> evidence = gather(th.tknn_shapley(*data, radius=1, metric="euclidean"), *data)
    >>> evidence.lowest.columns[:4], evidence.lowest.rows[0][:4]
    (('row', 'label', 'suggestion', 'best label'), (2, 'dog', 'relabel', 'cat'))
    """
    seed = check_count("seed", seed, least=0)
    known = plain_record(record)
    if release is not None:
        given = (valuation, X, y, X_val, y_val, ids, rows, show, checked)
        if any(entry is not None for entry in given):
            raise InputError(
                "a report of a release takes the release alone: nothing exact may be on its page"
            )
        return _of_release(release, known)
    subject = check_subject(
        valuation, X, y, X_val, y_val, ids=ids, rows=rows, show=show, held_out=held_out,
        seed=seed, findings=findings, checked=checked,
    )  # fmt: skip
    steps = PARTS + count_models(subject)
    with progress_bar("report", steps, show=progress, unit="steps") as advance:
        found = _of_subject(subject, known, advance)
    return dataclasses.replace(found, cautions=(*cautions, *found.cautions))


def _of_release(release: Any, record: Mapping[str, Any]) -> Evidence:
    private = describe_release(release)
    return Evidence(
        about_release(release, record),
        private.verdict(),
        private.cautions(),
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
        if self.advance is not None:
            self.advance(1)
        return found


def _of_subject(subject: Subject, record: Mapping[str, Any], advance: Advance | None) -> Evidence:
    step, data, unfit = _Step(advance), subject.data, _why_unfit(subject)
    findings = step.make("suggestions", unfit["suggestions"], explain_subject, subject, data)
    suggestions = None
    if findings is not None and data is not None:
        suggestions = count_suggestions(subject, data, findings)
    removing = data is not None and not unfit["removal"]
    orders = removal_orders(subject) if removing else []
    halves = halve_validation(subject, data) if removing and data is not None else None
    steps = [step_of_each(order) for order in orders]
    pairs = step.make(
        "coverage", unfit["radius"], walk_near_pairs, subject, data, steps, STEPS, halves
    )
    radius = step.make("radius", unfit["radius"], radius_curve, subject, data)
    coverage = None
    if pairs is not None and data is not None:
        coverage = measure_coverage(subject, data, pairs, radius)
    removal = step.make(
        "removal", unfit["removal"], removal_curves, subject, data, orders, pairs, halves, advance
    )
    points_map = step.make("map", unfit["map"], draw_map, subject, data, findings)
    owners = step.make("owners", unfit["owners"], share_payout, subject.valuation)
    distribution = step.make("values", "", measure_distribution, subject)
    lowest = step.make("rows", "", lowest_rows, subject, findings)
    checked = None if removal is None else removal.cross_check
    care = reasons_for_care(subject, coverage)
    return Evidence(
        about_subject(subject, record),
        judge(distribution, suggestions, coverage, checked, care),
        find_cautions(subject, suggestions, coverage, removal),
        step.missing,
        lowest=lowest,
        map=points_map,
        suggestions=suggestions,
        distribution=distribution,
        removal=removal,
        coverage=coverage,
        owners=owners,
    )


def _why_unfit(subject: Subject) -> dict[str, str]:
    """For each part the reason why it cannot be made; empty where it can."""
    method, data = subject.valuation.method, subject.data
    without = "" if data is not None else "the report was made without X, y, X_val and y_val"
    if subject.metric == "precomputed":
        without = "distances were precomputed, so there are no features to go by"
    prices = f"suggestions come from the prices of tknn_shapley, and this is {method}"
    few = f"there are fewer than {LEAST_POINTS} points"
    return {
        "suggestions": without or ("" if method == "tknn-shapley" else prices),
        "radius": without or ("" if subject.radius is not None else f"{method} has no radius"),
        "removal": without or ("" if len(subject) >= LEAST_POINTS else few),
        "map": without or _why_no_map(data),
        "owners": "" if subject.valuation.owners is not None else "no owners were given",
    }


def _why_no_map(data: Data | None) -> str:
    needed = 1 + min(2, data.rows.width) if data is not None else 0
    enough = data is None or len(data.rows) >= needed
    return "" if enough else f"a map needs at least {needed} points"
