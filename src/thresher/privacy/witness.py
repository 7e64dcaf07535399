"""The witness file beside a chain of entries: how many there were, and the hash of the last.

The witness only ever moves forward, from one state of the chain to a later one, and a writer draws
no noise before the witness vouches for its entry. Writers normally take turns, by SQLite's lock. On
some file systems locks do not work, so the step itself also allows only one winner. The writer that
creates the file `<witness>.<n>` decides what follows the state of n entries. Only one writer can
create that file, and a rename makes it the witness. A writer that finds the file finishes that step
instead of its own, so a step that a crash interrupted blocks nobody.

A chain whose witness is missing may be an older copy, so nothing can be appended to it. There are
two exceptions. A new chain gets its witness in a last step, which is prepared before the chain
appears. So the next writer finishes a creation that a crash interrupted. And somebody may adopt a
chain, which its entries record.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from thresher.errors import InputError, either
from thresher.files import sync_folder
from thresher.privacy.entries import Entry

SUFFIX, FIRST = ".witness", "new-"  # what names end with, and how the first step's begins
LOOKS = 20  # at a step whose file has no content yet, 10 ms apart


@dataclass(frozen=True, slots=True)
class Witness:
    """A state of a chain: its length and its last hash."""

    entries: int
    head: str

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Witness:
        """The state of a chain with these entries."""
        return cls(len(entries), entries[-1].hash)

    @classmethod
    def parse(cls, content: bytes) -> Witness:
        """Parse a witness; raise a `ValueError` unless `content` is one, byte for byte."""
        kept = json.loads(content)
        if not isinstance(kept, dict) or set(kept) != {"entries", "head"}:
            raise ValueError("not a witness")
        found = cls(**kept)
        if type(found.entries) is not int or found.content != content:
            raise ValueError("not a witness")
        return found

    @property
    def content(self) -> bytes:
        """The content of its file."""
        return json.dumps(asdict(self)).encode("ascii")

    def vouches_for(self, entries: Sequence[Entry]) -> bool:
        """Whether the entries are this state of the chain, or a later one."""
        if not 0 < self.entries <= len(entries):
            return False
        return entries[self.entries - 1].hash == self.head


class WitnessFile:
    """The witness of the chain at `ledger`, in a file beside it."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self.path = ledger.with_name(f"{ledger.name}{SUFFIX}")

    def load(self) -> Witness | None:
        """The witness, or None if there is no file."""
        try:
            return Witness.parse(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, RecursionError, ValueError) as broken:
            raise InputError(f"{self.path} is damaged: put back a copy of it") from broken

    def check_step(self) -> None:
        """Raise if the next step cannot be made, as far as that shows in advance."""
        longest = self.path.with_name(f"{self.path.name}-{2**63}")
        try:
            longest.touch()
            longest.unlink(missing_ok=True)
            folder, ours = self.path.parent.stat(), os.geteuid() if hasattr(os, "geteuid") else 0
            sticky = folder.st_mode & stat.S_ISVTX and ours not in {0, folder.st_uid}
            if sticky and self.path.exists() and self.path.stat().st_uid != ours:
                raise PermissionError(errno.EPERM, "another user owns it, in a sticky folder")
        except OSError as refused:
            raise InputError(
                f"the witness {self.path.name} could not be renewed ({refused.strerror}): nothing "
                "was spent; make sure that files can be created and replaced in its folder, or "
                "give the ledger a shorter name"
            ) from None

    def steps(self) -> list[Path]:
        """The files of steps that were begun but not finished.

        The first step of a creation is not among them: nothing was ever charged before it.
        """
        found = self.path.parent.glob(f"{glob.escape(self.path.name)}.*")
        return sorted(each for each in found if not each.suffix.startswith(f".{FIRST}"))

    @contextlib.contextmanager
    def prepared(self, first: Entry) -> Iterator[None]:
        """Prepare the first step of a chain with this entry; undo it if the chain does not appear.

        A crash may leave its file behind. It fits no other chain, so it does no harm.
        """
        step = self._first_step(first)
        try:
            _create(step, Witness.of([first]), like=self._ledger)
            _finished(step)
            sync_folder(step.parent)
            yield
        except Exception:  # after a kill or an interrupt, the chain may have appeared
            step.unlink(missing_ok=True)
            raise

    def begin(self, entries: Sequence[Entry]) -> Witness:
        """Finish the first step of a chain that was just created; raise if it is another chain."""
        step = self._first_step(entries[0])
        if len(entries) > 1 or not step.exists():
            raise self.missing()
        with contextlib.suppress(FileNotFoundError):  # somebody else has finished it
            step.replace(self.path)
        sync_folder(self.path.parent)
        return Witness.of(entries)

    def missing(self) -> InputError:
        """The error for a chain that has to be charged and has no witness."""
        ledger = self.path.name.removesuffix(SUFFIX)
        adopt = either("Ledger.adopt", "thresher ledger verify --adopt")
        return InputError(
            f"the ledger {ledger} has no witness {self.path.name}, so it may be an older copy, and "
            "nothing was charged: put the newest ledger and its witness back. If this is the "
            f"newest ledger and the witness is lost, {adopt} makes a new one, and records that"
        )

    def _first_step(self, first: Entry) -> Path:
        return self.path.with_name(f"{self.path.name}.{FIRST}{first.hash[:15]}")

    def advance(self, known: Witness | None, entries: Sequence[Entry]) -> None:
        """Replace the state `known` by that of `entries`, or finish the step another writer began.

        The caller looks at the witness afterwards to see which state came next.
        """
        if self.load() != known:
            return
        step = self.path.with_name(f"{self.path.name}.{known.entries if known else 0}")
        _create(step, Witness.of(entries), like=self._ledger)
        begun = _finished(step)
        if self.load() != known:  # the step was made meanwhile: a file for it came too late
            step.unlink(missing_ok=True)
        elif begun is not None:
            if not begun.vouches_for(entries):
                raise InputError(
                    f"two processes wrote entry {begun.entries - 1} at the same time, so locks do "
                    f"not work in {self.path.parent}: no noise was drawn; move the ledger and its "
                    "witness to a local disk"
                )
            with contextlib.suppress(FileNotFoundError):  # somebody else has finished it
                step.replace(self.path)
            sync_folder(self.path.parent)


def _create(step: Path, witness: Witness, *, like: Path) -> None:
    """Create the file of a step unless it exists, for those who can read the ledger, its `like`."""
    try:
        with step.open("xb") as file:
            file.write(witness.content)
        with contextlib.suppress(FileNotFoundError):  # no ledger yet, or others finished the step
            step.chmod(like.stat().st_mode & 0o666)
    except FileExistsError:
        return
    except OSError:
        step.unlink(missing_ok=True)
        raise


def _finished(step: Path) -> Witness | None:
    """The witness that a step leads to, safe on disk; None if the step is done or was given up."""
    for _ in range(LOOKS):
        try:
            with step.open("r+b" if os.name == "nt" else "rb") as file:
                found = Witness.parse(file.read())
                os.fsync(file.fileno())
                return found
        except FileNotFoundError:
            return None
        except ValueError:
            time.sleep(0.01)
    step.unlink(missing_ok=True)  # whoever began it is gone, or sees that the witness is another
    return None
