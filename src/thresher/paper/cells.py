"""Cells: the smallest pieces of a reproduction, each computed once and kept in a file.

A cell is one figure of one draw, and its settings are its name. Its result is stored under a hash
of those settings, of its rows and of the code that it depends on (`dependencies`). So an
interrupted run continues where it stopped, several processes can share a file, and nothing stale is
used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from thresher.keeper import Keeper
from thresher.paper.datasets import SETS
from thresher.paper.dependencies import code_digest
from thresher.paper.draws import PROTOCOLS

Outcome = dict[str, float]
KIND = "thresher.cells/1"
SCHEMA = (
    "CREATE TABLE cells (key TEXT PRIMARY KEY, outcome TEXT NOT NULL,"
    " seconds REAL NOT NULL, made TEXT NOT NULL)"
)
HIDDEN = "points"  # an entry of an outcome that no table shows: how many points were valued


@dataclass(frozen=True)
class Cell:
    """One figure of one draw."""

    task: str  # what is done, as it heads a table: "mislabel", "noisy", ...
    set: str  # a data set of the paper, or what stands in its place where data are made up
    protocol: str  # "paper", "clean", or "made up"
    method: str  # what is measured
    step: Any = None  # the number along an axis (epsilon, radius, k or N), if there is an axis
    draw: int = 0  # the number of the run
    replayed: bool = False  # whether the rows are the authors' own draw
    fixed: bool = False  # whether the method is not random either
    options: tuple[tuple[str, Any], ...] = ()  # whatever else changes the outcome


@dataclass(frozen=True)
class Scope:
    """How much to run: which sets and protocols, how many draws, how many models to train."""

    sets: tuple[str, ...] = SETS
    protocols: tuple[str, ...] = PROTOCOLS
    runs: int = 5
    subsets: int = 10_000
    quick: bool = False
    has_replay: Callable[[str], bool] = lambda _name: False  # a set with the authors' own draw

    def cells(
        self, task: str, name: str, protocol: str, method: str, step: float | None = None,
        *, random: bool = False, options: tuple[tuple[str, Any], ...] = (),
    ) -> list[Cell]:  # fmt: skip
        """The cells of all draws; in a replay, only methods that are random are repeated."""
        replayed = protocol == "paper" and self.has_replay(name)
        fixed = replayed and not random
        return [
            Cell(task, name, protocol, method, step, draw, replayed, fixed, options)
            for draw in range(1 if fixed else self.runs)
        ]

    def thin(self, steps: tuple[float, ...]) -> tuple[float, ...]:
        """All steps of an axis, or only a few in a quick run."""
        return (steps[0], steps[len(steps) // 2], steps[-1]) if self.quick else steps


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper: which cells it has, and how one is computed.

    `printed` gives the paper's figure for a cell and measure, and its deviation, as far as the
    paper prints them. `uses` gives the functions whose modules decide the outcome of a cell,
    besides `run` and what it names in this package. Without it, they are everything that the module
    of `run` imports.
    """

    name: str  # for the command line
    title: str
    place: str  # in the paper
    about: str  # what was done, in a few sentences
    cells: Callable[[Scope], list[Cell]]
    run: Callable[[Cell, Any], Outcome]  # of a cell and its data set, None where data are made up
    axis: str = ""  # what `Cell.step` is
    columns: str = "method"  # or "step": what runs along the columns of the table
    printed: Callable[[Cell, str], tuple[float, float | None] | None] = lambda _cell, _measure: None
    uses: Callable[[Cell], tuple[Callable[..., Any], ...]] | None = None

    def key(self, cell: Cell, rows: str) -> str:
        """The name under which the outcome of a cell is kept; `rows` is a digest of its data."""
        code = code_digest(self.run, None if self.uses is None else self.uses(cell))
        about = [self.name, asdict(cell), rows, code]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


class Store(Keeper):
    """Outcomes in an SQLite file, each with its run time and where and when it was computed.

    Examples
    --------
    >>> with Store(":memory:") as store:
    ...     store.put("a", {"AUROC": 0.5}, 1.0, "here")
    ...     store.get("a")
    ({'AUROC': 0.5}, 1.0, 'here')
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, SCHEMA, kind=KIND, what="file of outcomes", shared=True)

    def get(self, key: str) -> tuple[Outcome, float, str] | None:
        """The outcome under this key, with its seconds, and where and when it was computed."""
        statement = "SELECT outcome, seconds, made FROM cells WHERE key = ?"
        for outcome, seconds, made in self.rows(statement, key):
            return json.loads(outcome), seconds, made
        return None

    def put(self, key: str, outcome: Outcome, seconds: float, made: str) -> None:
        """Store an outcome; a second one with the same key changes nothing."""
        entry = key, json.dumps(outcome), seconds, made
        self.do("INSERT OR IGNORE INTO cells VALUES (?, ?, ?, ?)", *entry)
