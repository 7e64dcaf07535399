"""Cells: the smallest pieces of a reproduction, each computed once and kept in a file.

A cell is one figure of one draw: its settings are its name. What was computed is kept under a hash
of those settings, of the rows behind them and of the library's version, so that a broken run goes
on where it stopped, several processes can share one file, and nothing stale is taken for new.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from thresher.errors import InputError
from thresher.paper.datasets import SETS, DataSet
from thresher.paper.draws import PROTOCOLS

Outcome = dict[str, float]


@dataclass(frozen=True)
class Cell:
    """One figure of one draw.

    Parameters
    ----------
    task
        What is done, as it heads a table: "mislabel", "noisy", ...
    set
        A data set of the paper, or what stands in its place where data are made up.
    protocol
        "paper", "clean", or "made up".
    method
        What is measured.
    step
        The setting that runs along an axis: epsilon, radius, k or N; None where there is none.
    draw
        The number of the run.
    fixed
        Whether nothing in it is random: neither the draw of rows nor the method.
    options
        Whatever else changes the outcome.
    """

    task: str
    set: str
    protocol: str
    method: str
    step: float | None = None
    draw: int = 0
    fixed: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def key(self, experiment: str, digest: str) -> str:
        """The name under which its outcome is kept."""
        import thresher

        about = [experiment, asdict(self), digest, thresher.__version__]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Scope:
    """How much is run: which sets and protocols, how many draws, how many models to train."""

    sets: tuple[str, ...] = SETS
    protocols: tuple[str, ...] = PROTOCOLS
    runs: int = 5
    subsets: int = 10_000
    quick: bool = False
    replayed: frozenset[str] = field(default_factory=frozenset)  # sets with the authors' own draw

    def replays(self, name: str, protocol: str) -> bool:
        """Whether the authors' own draw is used."""
        return protocol == "paper" and name in self.replayed

    def cells(
        self, task: str, name: str, protocol: str, method: str, step: float | None = None
    ) -> list[Cell]:
        """The cells of all draws, for a method without noise: a replay has nothing to repeat."""
        if self.replays(name, protocol):
            return [Cell(task, name, protocol, method, step, fixed=True)]
        return [Cell(task, name, protocol, method, step, draw) for draw in range(self.runs)]

    def thin(self, steps: tuple[float, ...]) -> tuple[float, ...]:
        """All steps of an axis, or a few where it has to be quick."""
        return (steps[0], steps[len(steps) // 2], steps[-1]) if self.quick else steps


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper: which cells it has, and how one is computed.

    Parameters
    ----------
    name, title, about
        For the command line; as a heading; what was done, in a few sentences.
    cells
        The cells within a scope.
    run
        The outcome of one, given its data set if it has one: figures by name.
    axis
        What `Cell.step` is.
    columns
        "method" or "step": what runs along the columns of the table.
    printed
        The paper's figure for a cell, if it prints one, and its deviation if it tells.
    """

    name: str
    title: str
    about: str
    cells: Callable[[Scope], list[Cell]]
    run: Callable[[Cell, DataSet | None], Outcome]
    axis: str = ""
    columns: str = "method"
    printed: Callable[[Cell, str], tuple[float, float | None] | None] = lambda _cell, _measure: None


class Store:
    """Outcomes in an SQLite file.

    Examples
    --------
    >>> with Store(":memory:") as store:
    ...     store.put("a", {"AUROC": 0.5}, 1.0)
    ...     store.get("a")
    ({'AUROC': 0.5}, 1.0)
    """

    def __init__(self, path: str | Path) -> None:
        try:
            self._file = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS cells"
                " (key TEXT PRIMARY KEY, outcome TEXT NOT NULL, seconds REAL NOT NULL)"
            )
        except sqlite3.Error as refused:
            raise InputError(f"{path} cannot be used for outcomes: {refused}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def get(self, key: str) -> tuple[Outcome, float] | None:
        """What was computed under this key, and in how many seconds."""
        found = self._file.execute("SELECT outcome, seconds FROM cells WHERE key = ?", (key,))
        row = found.fetchone()
        return None if row is None else (json.loads(row[0]), row[1])

    def put(self, key: str, outcome: Outcome, seconds: float) -> None:
        """Keep an outcome; whoever comes second with the same key changes nothing."""
        entry = key, json.dumps(outcome), seconds
        self._file.execute("INSERT OR IGNORE INTO cells VALUES (?, ?, ?)", entry)
