"""What is in a table, everything that is in the way, and one command line that solves it.

A problem is something that the run itself would refuse. All checks are made, one after the other,
each with the fixes for the problems before it. So the command at the end passes all of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from thresher.errors import InputError, in_options, message_of
from thresher.runs.leak_hints import Leaks
from thresher.runs.settings import Settings
from thresher.tables.column_profile import Profile
from thresher.tables.guesses import Guess

ROUNDS = 8  # of fixing one thing and looking again
ROW = re.compile(r"\brows? \d")  # the number of a row, in a message
COUNTED = "the first row of data is row 0"


@dataclass(frozen=True)
class Inspection:
    """What was found."""

    # source, rows: what messages call the table, and how many rows it has
    source: str
    rows: int
    profiles: tuple[Profile, ...]  # what each column is
    guesses: Mapping[str, Guess]  # the columns of labels, ids and owners, where nobody named them
    problems: tuple[str, ...]  # everything that a run would refuse, as it would say it
    command: str  # the line that solves all of them, or as many as can be
    solved: bool = True  # whether it solves all of them
    # what a run would accept, though it is probably not what was meant; the line settles it,
    # too
    hints: tuple[str, ...] = ()
    leaks: Leaks = field(default_factory=dict)  # columns that repeat the label
    leaking: bool = False  # whether the line keeps some of them

    def document(self) -> dict[str, Any]:
        """All of it for programs."""
        return {
            "file": self.source,
            "rows": self.rows,
            "columns": [dataclasses.asdict(each) for each in self.profiles],
            "guesses": {role: dataclasses.asdict(each) for role, each in self.guesses.items()},
            "problems": [in_options(each) for each in self.problems],
            "leaks": {name: dataclasses.asdict(leak) for name, leak in self.leaks.items()},
            "hints": [in_options(each) for each in self.hints],
            "command": self.command,
            "solved": self.solved,
        }

    def advice(self) -> str:
        """The line to type, and what it does."""
        if not self.problems:
            line = "this line values it all the same" if self.leaking else "ready"
            return f"{line}: {self.command}"
        if self.solved:
            return f"this line solves {'them' if len(self.problems) > 1 else 'it'}: {self.command}"
        return (
            "this line does not solve everything; fix the rest in the data or in the line: "
            f"{self.command}"
        )

    def counted(self) -> str:
        """How rows are counted, if a problem or a hint names one; else empty."""
        named = any(ROW.search(each) for each in (*self.problems, *self.hints))
        return COUNTED if named else ""

    def guessed(self) -> str:
        """What columns were taken for, in one line; empty if nothing was guessed."""
        said = [f"{role} {each.column} ({each.why})" for role, each in self.guesses.items()]
        return f"guessed: {', '.join(said)}" if said else ""

    def summary(self) -> str:
        """The columns in one line.

        Examples
        --------
        >>> columns = Profile("x", "number", 9, 1, 8), Profile("y", "category", 9, 0, 2)
        >>> Inspection("a.csv", 9, columns, {}, (), "").summary()
        'a.csv has 9 rows; 1 number (x), 1 category (y); 1 missing cell'
        """
        groups: dict[str, list[str]] = {}
        for each in self.profiles:
            groups.setdefault(each.kind, []).append(each.name or "''")
        said = []
        for kind, names in groups.items():
            shown = ", ".join(names) if len(names) <= 6 else f"{names[0]} to {names[-1]}"
            said.append(f"{len(names)} {_plural(kind, len(names))} ({shown})")
        empty = sum(each.missing for each in self.profiles)
        gaps = f"; {empty} missing cell{'s' * (empty != 1)}" if empty else ""
        return f"{self.source} has {self.rows} rows; {', '.join(said)}{gaps}"


def inspect_files(settings: Settings) -> Inspection:
    r"""Look at the points, and at the validation set if there is one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     rows = [f"{i},{i % 7},{'cat dog'.split()[i % 2]}" for i in range(30)]
    ...     _ = path.write_text("\n".join(["id,x,kind", *rows]))
    ...     found = inspect_files(Settings(str(path), guess=("label", "id", "owner")))
    >>> [each.kind for each in found.profiles], found.problems
    (['id', 'number', 'category'], ())
    >>> found.command.replace(str(path), "a.csv")
    'thresher value a.csv --label kind --id id'
    """
    from thresher.runs.problems import ProblemSearch

    search = ProblemSearch(settings)
    for _ in range(ROUNDS):
        before, found = search.settings, len(search.problems)
        search.look()
        if search.settings == before:
            break
    search.find_leaks()
    return Inspection(
        search.source, search.rows, tuple(search.known), search.guesses,
        tuple(dict.fromkeys(search.problems)), search.command(), len(search.problems) == found,
        tuple(dict.fromkeys(search.hints)), search.leaks,
        not set(search.leaks) <= set(search.settings.ignore),
    )  # fmt: skip


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else {"category": "categories"}.get(kind, f"{kind}s")


@contextlib.contextmanager
def explained(settings: Settings, **files: object) -> Iterator[None]:
    """Add to an error inside: all other problems, the columns, and the command that helps.

    `files` are options of the command that are not settings, such as `out`.
    """
    try:
        yield
    except InputError as refused:
        with contextlib.suppress(InputError, OSError):
            found = inspect_files(settings)
            given = [(f"--{name}", str(path)) for name, path in files.items() if path is not None]
            words = shlex.join(word for pair in given for word in pair)
            command = f"{found.command} {words}".rstrip()
            for note in _notes(refused, dataclasses.replace(found, command=command)):
                refused.add_note(note)
        raise


def _notes(refused: InputError, found: Inspection) -> list[str]:
    if not found.problems:
        return []
    about = message_of(refused).partition(": ")[0]  # the rows that are named may be others
    others = [each for each in found.problems if each.partition(": ")[0] != about]
    notes = [f"also: {each}" for each in others]
    notes += [f"hint: {each}" for each in found.hints]
    notes += filter(None, [found.counted(), f"columns: {found.summary()}", found.guessed()])
    return [*notes, found.advice()]
