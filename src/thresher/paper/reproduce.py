"""Every table and figure of the paper, from one call, into a folder."""

from __future__ import annotations

import dataclasses
import os
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.checks import check_choice, check_count
from thresher.errors import InputError
from thresher.paper.ablation import RADIUS, K
from thresher.paper.cells import Cell, Experiment, Outcome, Scope, Store
from thresher.paper.consistency import CONSISTENCY
from thresher.paper.datasets import SETS, MissingSetError, Shelf
from thresher.paper.detection import MISLABEL, NOISY
from thresher.paper.draws import POINTS, PROTOCOLS
from thresher.paper.figures import draw_figures, save_figure
from thresher.paper.grids import write_records
from thresher.paper.membership import MEMBERSHIP
from thresher.paper.neighbor import NEIGHBOR
from thresher.paper.pages import write_page, write_text
from thresher.paper.records import Record, make_records
from thresher.paper.runtime import RUNTIME
from thresher.paper.tradeoff import PRIVACY
from thresher.progress import progress_bar

EXPERIMENTS = {
    each.name: each
    for each in (
        RUNTIME, MISLABEL, NOISY, PRIVACY, RADIUS, K, MEMBERSHIP, NEIGHBOR, CONSISTENCY,
    )
}  # fmt: skip
QUICK_SETS = ("2dplanes", "phoneme")
QUICK_RUNS, QUICK_SUBSETS = 1, 4000


@dataclass(frozen=True)
class Reproduction:
    """One table or figure of the paper, done again.

    Parameters
    ----------
    name
        Of the experiment.
    records
        All its figures.
    settings
        How they were made.
    missing
        Data sets that could not be had, and why.
    """

    name: str
    records: tuple[Record, ...]
    settings: dict[str, Any]
    missing: dict[str, str]

    def __repr__(self) -> str:
        beyond = sum(record.beyond for record in self.records)
        told = sum(record.paper is not None for record in self.records)
        return (
            f"Reproduction({self.name}, {len(self.records)} figures, {told} of them printed in the "
            f"paper, {beyond} beyond two standard errors)"
        )


def reproduce(
    names: str | Sequence[str],
    out: str | Path,
    *,
    data: str | Path | None = None,
    fetch: bool = True,
    sets: Sequence[str] | None = None,
    protocols: Sequence[str] | None = None,
    runs: int | None = None,
    subsets: int | None = None,
    quick: bool = False,
    progress: bool = False,
) -> list[Reproduction]:
    """Tables and figures of the paper, computed anew and written into a folder.

    Parameters
    ----------
    names
        Of experiments (the keys of `EXPERIMENTS`), or "all".
    out
        The folder; made if it is not there. For each experiment it gets NAME.md, NAME.parquet and
        figures as .svg and .png; and index.html, which shows all that the folder has. What is
        computed is kept in cells.db: a broken run goes on where it stopped.
    data, fetch
        The folder with NAME.npz (else the one that THRESHER_DATA names), and whether OpenML is
        asked for what it lacks. A set that cannot be had is reported as missing.
    sets, protocols
        Which data sets, and "paper" or "clean"; without them, all.
    runs, subsets
        Draws for each figure (5), and models to train for each retrained valuation (10,000;
        at least 4,000, two permutations of the points).
    quick
        A small version: one draw, two sets, few steps of every axis, 4,000 models.
    progress
        Show a progress bar.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reproduce("consistency", folder, quick=True)[0].name
    'consistency'
    """
    chosen = _experiments(names)
    shelf = Shelf(data, fetch=fetch)
    scope = _scope(shelf, sets, protocols, runs, subsets, quick=quick)
    folder = _folder(out)
    jobs = {each.name: each.cells(scope) for each in chosen}
    total = sum(len(cells) for cells in jobs.values())
    found = []
    with (
        Store(folder / "cells.db") as store,
        progress_bar("reproduce", total, show=progress, unit="cells") as advance,
    ):
        for experiment in chosen:
            cells = _computed(experiment, jobs[experiment.name], shelf, store)
            outcomes: list[tuple[Cell, Outcome]] = []
            gaps: list[tuple[Cell, str]] = []
            seconds = 0.0
            for cell, outcome, took in cells:
                if isinstance(outcome, str):
                    gaps.append((cell, outcome))
                else:
                    outcomes.append((cell, outcome))
                seconds += took
                if advance is not None:
                    advance(1)
            settings = _settings(scope, shelf, outcomes, seconds)
            records = make_records(experiment, outcomes, gaps)
            missing = {cell.set: reason for cell, reason in gaps}
            done = Reproduction(experiment.name, tuple(records), settings, missing)
            _write(folder, experiment, done)
            found.append(done)
    write_page(folder, EXPERIMENTS)
    return found


def _computed(
    experiment: Experiment, cells: Iterable[Cell], shelf: Shelf, store: Store
) -> Iterator[tuple[Cell, Outcome | str, float]]:
    """Each cell with its outcome and seconds, from the store if it is there; or why it is not."""
    for cell in cells:
        try:
            data = shelf.get(cell.set) if cell.set in SETS else None
        except MissingSetError as missing:
            yield cell, str(missing), 0.0
            continue
        key = cell.key(experiment.name, data.digest if data is not None else "")
        known = store.get(key)
        if known is None:
            start = time.perf_counter()
            outcome = experiment.run(cell, data)
            store.put(key, outcome, time.perf_counter() - start)
            known = outcome, time.perf_counter() - start
        yield cell, *known


def _write(folder: Path, experiment: Experiment, done: Reproduction) -> None:
    figures = draw_figures(experiment, done.records)
    for name, figure in figures.items():
        save_figure(figure, folder, name)
    about = {**done.settings, "figures": list(figures), "missing": done.missing}
    write_records(folder / f"{experiment.name}.parquet", done.records, about)
    write_text(folder / f"{experiment.name}.md", experiment, done.records, about)


def _experiments(names: str | Sequence[str]) -> list[Experiment]:
    asked = [names] if isinstance(names, str) else list(names)
    if "all" in asked:
        asked = list(EXPERIMENTS)
    for name in asked:
        check_choice("name", name, ("all", *EXPERIMENTS))
    if not asked:
        raise InputError(f"name must be all or some of {', '.join(EXPERIMENTS)}")
    return [each for name, each in EXPERIMENTS.items() if name in asked]


def _scope(
    shelf: Shelf,
    sets: Sequence[str] | None,
    protocols: Sequence[str] | None,
    runs: int | None,
    subsets: int | None,
    *,
    quick: bool,
) -> Scope:
    chosen = tuple(sets or (QUICK_SETS if quick else SETS))
    ways = tuple(protocols or PROTOCOLS)
    for name in chosen:
        check_choice("sets", name, SETS)
    for name in ways:
        check_choice("protocols", name, PROTOCOLS)
    runs = check_count("runs", (QUICK_RUNS if quick else 5) if runs is None else runs)
    models = (QUICK_SUBSETS if quick else 10_000) if subsets is None else subsets
    return Scope(
        chosen,
        ways,
        runs,
        check_count("subsets", models, least=2 * POINTS),
        quick,
        _replayed(shelf, chosen),
    )


def _replayed(shelf: Shelf, names: Iterable[str]) -> frozenset[str]:
    found = set()
    for name in names:
        try:
            if shelf.get(name).replay is not None:
                found.add(name)
        except MissingSetError:
            continue
    return frozenset(found)


def _folder(out: str | Path) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise InputError(f"out {out} cannot be made a folder: {refused.strerror}") from None
    return folder


def _settings(
    scope: Scope, shelf: Shelf, outcomes: list[tuple[Cell, Outcome]], seconds: float
) -> dict[str, Any]:
    import thresher

    used = dict.fromkeys(cell.set for cell, _ in outcomes if cell.set in SETS)
    chosen = dataclasses.asdict(scope) | {"replayed": sorted(scope.replayed)}
    return {
        **chosen,
        "sources": {name: shelf.get(name).source for name in used},
        "digests": {name: shelf.get(name).digest for name in used},
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "version": thresher.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(seconds, 1),
    }


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text().splitlines() if cpus.is_file() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
