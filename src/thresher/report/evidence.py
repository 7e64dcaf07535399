"""Evidence: everything a report shows; gather: how it is measured, section after section."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from thresher.array_types import Integers
from thresher.errors import InputError
from thresher.findings.label_findings import Findings, UnfitError
from thresher.findings.second_look import SecondLook, look_again
from thresher.findings.target_findings import TargetFindings
from thresher.forest import FOREST
from thresher.inputs.checked_inputs import Points, Validation
from thresher.inputs.checks import check_count
from thresher.progress import Advance, progress_bar
from thresher.report.about import About, about_release, about_subject, plain_record
from thresher.report.copied_rows import CopiedRows, describe_copies
from thresher.report.coverage import Coverage, measure_coverage, radius_curve
from thresher.report.distribution import Distribution, measure_distribution
from thresher.report.headline import Headline, describe_headline, target_headline
from thresher.report.lowest_rows import LowestRows, lowest_rows
from thresher.report.map import Map, draw_map
from thresher.report.near_pairs import Halves, NearPairs, walk_near_pairs
from thresher.report.other_rows import check_rows
from thresher.report.owner_shares import Owners, share_payout
from thresher.report.private_release import PrivateRelease, describe_release
from thresher.report.removal import (
    STEPS,
    Removal,
    count_models,
    halve_validation,
    removal_curves,
    removal_orders,
    step_of_each,
)
from thresher.report.review import Review, describe_review
from thresher.report.subject import Section, Subject, check_subject
from thresher.report.suggestions import Suggestions, count_suggestions, explain_subject
from thresher.report.target_charts import TargetCharts, chart_targets
from thresher.report.verdict import (
    Verdict,
    find_cautions,
    judge,
    judge_targets,
    leaking,
    nothing_stands_out,
    reasons_for_care,
)
from thresher.report.why import Details, explain_rows
from thresher.tables.copies import Copies
from thresher.valuation import Valuation

PARTS, NEAR_PARTS = 5, 2  # besides the models that are trained; those about near pairs

Result = TypeVar("Result")


@dataclass(frozen=True)
class Evidence:
    """Everything a report shows, as plain data; sections that are left out are None."""

    about: About
    verdict: Verdict
    cautions: tuple[str, ...] = ()  # what speaks against taking the verdict at its word
    missing: Mapping[str, str] = field(default_factory=dict)  # what is left out, and why
    lowest: LowestRows | None = None
    map: Map | None = None
    suggestions: Suggestions | None = None
    distribution: Distribution | None = None
    removal: Removal | None = None
    coverage: Coverage | None = None
    owners: Owners | None = None
    private: PrivateRelease | None = None
    copies: CopiedRows | None = None
    review: Review | None = None
    headline: Headline | None = None
    targets: TargetCharts | None = None
    leak: str = ""  # that a column repeats the label, if one does

    def sections(self) -> list[Section]:
        """The sections that are there, in the order of the page."""
        prices = None if self.private is None else self.private.prices
        found: list[Section | None] = [
            self.lowest, self.copies, self.targets, self.map, self.suggestions, self.distribution,
            self.removal, self.coverage, self.owners, self.private, prices, self.about,
        ]  # fmt: skip
        return [section for section in found if section is not None]

    def tiles(self) -> list[tuple[str, str, str]]:
        """The numbers at the top of the page: a name, a number, and what else there is to say."""
        having = self.distribution, self.suggestions, self.targets, self.coverage, self.private
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
    copies: Copies | None = None,
    cautions: Sequence[str] = (),
    details: Details | None = None,
    leak: str = "",
    progress: bool = False,
) -> Evidence:
    """Everything that a report of a valuation, or of a private release, shows.

    Parameters
    ----------
    valuation
        The values; None with `release`.
    X, y, X_val, y_val
        The data that were valued. Without them, the sections that need them are left out. Some
        methods leave out sections, too.
    ids
        A name for each point, shown beside its row number.
    rows
        The row number of each point in the table it comes from; 0, 1, 2 if not given.
    show
        Columns to show beside the rows with the lowest values, one entry per point; if not given,
        the first four columns of X, if X is a data frame.
    held_out
        The validation rows were split off the same table, and nobody checked their labels: as many
        of them may be wrong, so they cannot tell how many of the suggestions are right.
    record
        How the run was made, as JSON can hold it: the page shows it as given. With a release it is
        public, so it must not contain anything that depends on the points, not even a digest of
        their file.
    release
        A private release instead of a valuation. Its page shows only what follows from the release
        and from public data, so everything else about the points is refused.
    seed
        The seed of random removals, of subsets, and of the points that are drawn on the map.
    findings
        What `explain` finds, if that is known already.
    checked
        The points and the validation set as the valuation checked them, instead of the four
        tables: they are not checked again.
    copies
        Which rows are copies of others.
    cautions
        Sentences of warning about these data, which the page shows before its own.
    details
        What else is known about the rows, such as all of their columns.
    leak
        A few words that a column repeats the label: the page then says that nothing is known about
        wrong labels.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    Evidence
        Plain data, for `render`.

    Raises
    ------
    InputError
        If valuation and data do not fit each other.

    Notes
    -----
    Removal trains about 70 logistic regressions, which takes most of the time: a second for 2,000
    points of ten features, a few for 100,000 and more, since at most 20,000 are trained on.

    Examples
    --------
    >>> import thresher as th
    >>> from thresher.report import gather
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
        seed=seed, findings=findings, checked=checked, copies=copies,
    )  # fmt: skip
    if findings is None:
        check_rows(subject.valuation, X, y, X_val, y_val)
    forest = subject.valuation.method == FOREST
    steps = PARTS + count_models(subject)
    steps += 0 if forest else NEAR_PARTS
    steps += int(subject.valuation.params["trees"]) if forest and subject.given else 0
    with progress_bar("report", steps, show=progress, unit="steps") as advance:
        found = _of_subject(subject, known, details or Details(), advance)
    if leak:
        found = _with_leak(found, leak)
    return dataclasses.replace(found, cautions=(*cautions, *found.cautions))


def _of_release(release: Any, record: Mapping[str, Any]) -> Evidence:
    private, about = describe_release(release), about_release(release, record)
    missing = {"rows": "what a single row is worth is for its owner alone"}
    return Evidence(about, private.verdict(), private.cautions(), missing, private=private)


def _with_leak(found: Evidence, leak: str) -> Evidence:
    """What can be said while a column repeats the label: nothing about wrong labels."""
    headline, suggestions = found.headline, found.suggestions
    if headline is not None:
        headline = Headline(f"Nothing is known yet: {leak}.", "unsure", headline.numbers[:1])
    if suggestions is not None:
        suggestions = dataclasses.replace(suggestions, forecast=None)
    return dataclasses.replace(
        found, verdict=leaking(leak), headline=headline, suggestions=suggestions, leak=leak
    )


class Attempts:
    """Measures what can be measured, and keeps the reasons why the rest is missing."""

    def __init__(self, advance: Advance | None) -> None:
        self.missing: dict[str, str] = {}
        self.advance = advance or (lambda _: None)

    def make(self, name: str, measure: Callable[..., Result], *arguments: Any) -> Result | None:
        """What `measure` finds, or None if it refuses; data that were not valued are an error."""
        try:
            return measure(*arguments)
        except UnfitError:
            raise
        except InputError as refused:
            self.missing[name] = str(refused)
            return None
        finally:
            self.advance(1)


def _of_subject(
    subject: Subject, record: Mapping[str, Any], details: Details, advance: Advance | None
) -> Evidence:
    attempts = Attempts(advance)
    make, missing = attempts.make, attempts.missing
    about, findings = about_subject(subject, record), make("suggestions", explain_subject, subject)
    orders, halves = removal_orders(subject), halve_validation(subject)
    pairs, coverage = _near(subject, orders, halves, make)
    removal = make("removal", removal_curves, subject, orders, pairs, halves, advance)
    points_map = make("map", draw_map, subject, findings)
    owners = make("owners", share_payout, subject.valuation)
    distribution, lowest = measure_distribution(subject), lowest_rows(subject, findings)
    if subject.targets is not None and findings is None:
        verdict = judge(distribution, None, None, None)
        return Evidence(about, verdict, (), missing, lowest, points_map, removal=removal)
    listed = np.array(lowest.places, np.int64)
    why = make("why", explain_rows, subject, findings, listed, pairs, details, advance)
    suggestions = charts = None
    if isinstance(findings, TargetFindings):
        charts = chart_targets(subject, findings)
        verdict, headline = judge_targets(charts, removal), target_headline(charts, lowest)
    else:
        suggestions = count_suggestions(subject, findings, halves and pairs)
        checked = None if removal is None else removal.cross_check
        care, second = reasons_for_care(subject, coverage), _second(subject, suggestions)
        verdict = judge(distribution, suggestions, coverage, checked, care, second)
        headline = describe_headline(distribution, suggestions, coverage, lowest)
    copies = describe_copies(subject)
    cautions = find_cautions(subject, suggestions, coverage, removal, None if charts else copies)
    return Evidence(
        about, verdict, cautions, missing, lowest, points_map, suggestions, distribution, removal,
        coverage, owners, copies=copies,
        review=describe_review(subject, findings, lowest, record, details.command, why or []),
        headline=headline, targets=charts,
    )  # fmt: skip


def _near(
    subject: Subject, orders: list[Integers], halves: Halves | None, make: Callable[..., Any]
) -> tuple[NearPairs | None, Coverage | None]:
    """Pairs within the radius, and coverage, if the method has a radius and labels are classes."""
    if subject.valuation.method == FOREST or subject.targets is not None:
        return None, None
    steps = [step_of_each(order) for order in orders]
    pairs = make("coverage", walk_near_pairs, subject, steps, STEPS, halves)
    radius = make("radius", radius_curve, subject)
    return pairs, None if pairs is None else measure_coverage(subject, pairs, radius)


def _second(subject: Subject, suggestions: Suggestions | None) -> SecondLook | None:
    """A second look by another method, if nothing stands out and there are features."""
    if suggestions is None or subject.given is None or not nothing_stands_out(suggestions):
        return None
    data, by_trees = subject.given, subject.valuation.method == FOREST
    features = data.splits[0] if by_trees else data.rows.array
    return look_again(features, data.codes, forest=not by_trees, seed=subject.seed)
