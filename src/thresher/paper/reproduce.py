"""Every table and figure of the paper, from one call, into a folder."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from thresher.errors import InputError, either, option, require
from thresher.inputs.checks import check_choice, check_count
from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome, Scope, Store
from thresher.paper.consistency import CONSISTENCY
from thresher.paper.datasets import SETS, MissingSetError, Shelf
from thresher.paper.detection import MISLABEL, NOISY, RADIUS, K
from thresher.paper.draws import POINTS, PROTOCOLS
from thresher.paper.figures import draw_figures, save_figure
from thresher.paper.leaks import MEMBERSHIP, NEIGHBOR
from thresher.paper.pages import write_page, write_records, write_tables
from thresher.paper.records import Record, make_records
from thresher.paper.runtime import RUNTIME, machine
from thresher.paper.tradeoff import PRIVACY
from thresher.progress import Advance, progress_bar
from thresher.version import __version__

EXPERIMENTS = {
    each.name: each
    for each in (
        RUNTIME, MISLABEL, NOISY, PRIVACY, RADIUS, K, MEMBERSHIP, NEIGHBOR, CONSISTENCY,
    )
}  # fmt: skip
QUICK_SETS = ("2dplanes", "phoneme")
PROTOCOL = either("protocols", option("protocol"))  # an argument, for a message


@dataclass(frozen=True)
class Reproduction:
    """One table or figure of the paper, computed again.

    Parameters
    ----------
    name
        The name of the experiment.
    records
        All of its numbers.
    settings
        How they were computed.
    missing
        The data sets that were not available, and why.

    Examples
    --------
    >>> from thresher.paper import Reproduction
    >>> Reproduction("mislabel", records=(), settings={}, missing={"fraud": "not on OpenML"})
    Reproduction(mislabel, 0 figures, 0 of them printed in the paper, 0 beyond two standard errors)
    """

    name: str  # of the experiment
    records: tuple[Record, ...]  # all its figures
    settings: dict[str, Any]  # how they were made
    missing: dict[str, str]  # data sets that could not be had, and why

    def __repr__(self) -> str:
        beyond = sum(record.beyond for record in self.records)
        made = sum(record.ours is not None for record in self.records)
        printed = sum(record.paper is not None for record in self.records)
        return (
            f"Reproduction({self.name}, {made} figures, {printed} of them printed in the paper, "
            f"{beyond} beyond two standard errors)"
        )


def reproduce(
    names: str | Sequence[str], out: str | Path, *, data: str | Path | None = None,
    fetch: bool = True, sets: Sequence[str] | None = None, protocols: Sequence[str] | None = None,
    runs: int | None = None, subsets: int | None = None, quick: bool = False,
    progress: bool = False,
) -> list[Reproduction]:  # fmt: skip
    """Compute tables and figures of the paper again, and write them to a folder.

    Parameters
    ----------
    names
        The names of experiments (the keys of `EXPERIMENTS`), or "all".
    out
        The folder, created if it does not exist. For each experiment it gets NAME.md, NAME.parquet
        and figures as .svg and .png. index.html shows everything in the folder. Results are kept in
        cells.db, so an interrupted run continues where it stopped.
    data, fetch
        The folder with the files NAME.npz (by default the one that THRESHER_DATA names), and
        whether missing sets are fetched from OpenML. A set that is not available is reported as
        missing.
    sets, protocols
        Which data sets, and "paper" or "clean". The default is all.
    runs, subsets
        How many draws to make for each number (by default 5), and how many models to train for each
        retrained valuation (by default 10,000, and at least 4,000: two permutations of the points).
    quick
        A small version: one draw, two sets, few steps of every axis, 4,000 models.
    progress
        Show a progress bar.

    Examples
    --------
    >>> import tempfile
    >>> from thresher.paper import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reproduce("consistency", folder, quick=True, runs=1)[0].name
    'consistency'
    """
    chosen = _experiments(names)
    for module in ("jinja2", "matplotlib"):  # before hours of computing
        require(module, purpose="reproducing the paper", extra="paper")
    shelf = Shelf(data, fetch=fetch)
    scope = _scope(shelf, sets, protocols, runs, subsets, quick=quick)
    folder = _folder(out)
    jobs = {each: each.cells(scope) for each in chosen}
    for experiment, cells in jobs.items():
        if not cells:
            raise InputError(f"{experiment.name} does not use {', '.join(scope.sets)}")
    _check_used([*chain(*jobs.values())], sets=sets, protocols=protocols, subsets=subsets)
    total, found = sum(len(cells) for cells in jobs.values()), []
    with (
        Store(folder / "cells.db") as store,
        progress_bar("reproduce", total, show=progress, unit="cells") as advance,
    ):
        for experiment, cells in jobs.items():
            done = [_computed(experiment, cell, shelf, store, advance) for cell in cells]
            found.append(_summary(experiment, done, scope, shelf))
            _write(folder, experiment, found[-1])
    write_page(folder, EXPERIMENTS)
    return found


class _Done(NamedTuple):
    """A computed cell with its outcome, or with the reason why there is none."""

    cell: Cell
    outcome: Outcome
    seconds: float = 0.0
    made: str = ""
    reason: str = ""


def _computed(
    experiment: Experiment, cell: Cell, shelf: Shelf, store: Store, advance: Advance | None
) -> _Done:
    """Compute one cell, or take it from the store."""
    if advance is not None:
        advance(1)
    try:
        data = shelf.get(cell.set) if cell.set in SETS else None
    except MissingSetError as missing:
        return _Done(cell, {}, reason=str(missing))
    key = experiment.key(cell, data.digest if data is not None else "")
    known = store.get(key)
    if known is None:
        start = time.perf_counter()
        outcome = experiment.run(cell, data)
        seconds = time.perf_counter() - start
        known = outcome, seconds, f"{machine()}, {time.strftime('%Y-%m-%d')}"
        store.put(key, *known)
    return _Done(cell, *known)


def _summary(
    experiment: Experiment, done: Sequence[_Done], scope: Scope, shelf: Shelf
) -> Reproduction:
    made = [each for each in done if not each.reason]
    gaps = [(each.cell, each.reason) for each in done if each.reason]
    records = make_records(experiment, [(each.cell, each.outcome) for each in made], gaps)
    missing = {cell.set: reason for cell, reason in gaps}
    return Reproduction(experiment.name, tuple(records), _settings(made, scope, shelf), missing)


def _settings(made: Sequence[_Done], scope: Scope, shelf: Shelf) -> dict[str, Any]:
    """How the figures were made: everything that a reader needs to repeat them."""
    drawn = {each.cell.set for each in made}
    used = {name: shelf.get(name) for name in scope.sets if name in drawn}
    points: dict[str, dict[str, int]] = {}
    for each in made:
        if HIDDEN in each.outcome:
            counts = points.setdefault(each.cell.protocol, {})
            counts[each.cell.set] = int(each.outcome[HIDDEN])
    partial = bool(used) and (scope.sets, scope.protocols) != (SETS, PROTOCOLS)
    replayed = {each.cell.set for each in made if each.cell.replayed}
    return {
        "quick": scope.quick,
        "partial": partial and not scope.quick,
        "sets": list(used),
        "protocols": list(dict.fromkeys(each.cell.protocol for each in made)),
        "runs": scope.runs,
        "subsets": scope.subsets if used and any(each.cell.options for each in made) else None,
        "replayed": [name for name in used if name in replayed],
        "points": points,
        "sources": {name: data.source for name, data in used.items()},
        "digests": {name: data.digest for name, data in used.items()},
        "made": sorted({each.made for each in made}),
        "seconds": round(sum(each.seconds for each in made), 1),
        "python": platform.python_version(),
        "version": __version__,
    }


def _write(folder: Path, experiment: Experiment, done: Reproduction) -> None:
    figures = draw_figures(experiment, done.records)
    for name, figure in figures.items():
        save_figure(figure, folder, name)
    about = {**done.settings, "figures": list(figures), "missing": done.missing}
    write_records(folder / f"{experiment.name}.parquet", done.records, about)
    write_tables(folder / f"{experiment.name}.md", experiment, done.records, about)


def _check_used(cells: Sequence[Cell], *, sets: Any, protocols: Any, subsets: int | None) -> None:
    """Raise if an argument has no effect on the chosen experiments."""
    drawn = any(cell.set in SETS for cell in cells)
    trained = any("subsets" in dict(cell.options) for cell in cells)
    for name, given, used, what in (
        (option("sets"), sets, drawn, "uses data sets"),
        (PROTOCOL, protocols, drawn, "uses data sets"),
        (option("subsets"), subsets, trained, "trains models"),
    ):
        if given is not None and not used:
            raise InputError(f"{name} was given, but no chosen experiment {what}: leave it out")


def _experiments(names: str | Sequence[str]) -> list[Experiment]:
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        check_choice("names", name, ("all", *EXPERIMENTS))
    if not asked:
        raise InputError(f"names must be all, or one or more of {', '.join(EXPERIMENTS)}")
    return [each for name, each in EXPERIMENTS.items() if name in asked or "all" in asked]


def _scope(
    shelf: Shelf, sets: Sequence[str] | None, protocols: Sequence[str] | None, runs: int | None,
    subsets: int | None, *, quick: bool,
) -> Scope:  # fmt: skip
    usual_sets = QUICK_SETS if quick else SETS
    chosen = tuple(dict.fromkeys(usual_sets if sets is None else sets))
    ways = tuple(dict.fromkeys(PROTOCOLS if protocols is None else protocols))
    for argument, names, known in ((option("sets"), chosen, SETS), (PROTOCOL, ways, PROTOCOLS)):
        if not names:
            raise InputError(f"{argument} is empty: name one or more, or leave it out for all")
        for name in names:
            check_choice(argument, name, known)
    usual_runs, usual_models = (1, 4000) if quick else (5, 10_000)
    runs = check_count(option("runs"), usual_runs if runs is None else runs)
    models = usual_models if subsets is None else subsets
    models = check_count(option("subsets"), models, least=2 * POINTS)
    return Scope(chosen, ways, runs, models, quick, shelf.has_replay)


def _folder(out: str | Path) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise InputError(f"cannot create the folder {out}: {refused.strerror}") from None
    return folder
