"""A ledger with a flipped bit is refused, or it is used and never overspent.

The suite flips one bit in 61; THRESHER_FLIP_STRIDE=1 flips all 40,960, which takes minutes.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from ledgers import make, raw

from thresher.errors import ThresherError
from thresher.privacy.accountants import Cost
from thresher.privacy.ledger import Ledger

PAGE = 512  # bytes: the least that SQLite has, so that a ledger is small
ANSWER = {"noisy": [17, 4]}
STRIDE = int(os.environ.get("THRESHER_FLIP_STRIDE", "61"))


class Copies:
    """A ledger of 0.8 of 1 spent, with one release, and its files as often as they are wanted."""

    def __init__(self, folder):
        self.path = Path(folder) / "ledger.db"
        ledger = make(self.path, data_set="ours")
        ledger.release("a", Cost(epsilon=0.4), {}, lambda _: ANSWER)
        ledger.charge("b", Cost(epsilon=0.4), {})
        raw(self.path, f"PRAGMA page_size = {PAGE}", "VACUUM")
        self.ledger = ledger
        self.witness = Path(f"{self.path}.witness")
        self.content = {file: file.read_bytes() for file in (self.path, self.witness)}

    def restore(self):
        for file in self.path.parent.iterdir():
            if file not in self.content:
                file.unlink()
        for file, content in self.content.items():
            file.write_bytes(content)

    def flip(self, file, bit):
        content = bytearray(self.content[file])
        content[bit // 8] ^= 1 << bit % 8
        self.damage(file, content)

    def damage(self, file, content):
        self.restore()
        file.write_bytes(content)


@pytest.fixture(scope="module")
def copies():
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Copies(folder)


def refuses(action):
    """Whether `action` raises an error of ours; any other fails the test."""
    with contextlib.suppress(ThresherError):
        action()
        return False
    return True


def charge(ledger, epsilon):
    return lambda: ledger.charge("new", Cost(epsilon=epsilon), {})


def check_never_overspent(copies):
    """Whether more can be spent of 0.8 of 1: never beyond it, and the answer stays the same."""
    assert refuses(charge(copies.ledger, 0.21)), "overspent by a ledger that was open"
    try:
        ledger = Ledger.open(copies.path)
        assert ledger.stored("a") == ANSWER
        assert ledger.release("a", Cost(epsilon=0.1), {}, pytest.fail) == (ANSWER, False)
    except ThresherError:
        return False
    assert refuses(charge(ledger, 0.21)), "overspent"
    spent = 0 if refuses(charge(ledger, 0.15)) else 0.15
    assert refuses(charge(ledger, 0.21 - spent)), "overspent by two"
    with contextlib.suppress(ThresherError):
        assert ledger.stored("a") == ANSWER
    return spent > 0


@contextlib.contextmanager
def naming(what):
    """Say in what the failure of a check was."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(what)
        raise


def flip_all(copies, file, stride):
    kept = 0
    bits = range(0, 8 * len(copies.content[file]), stride)
    for bit in bits:
        copies.flip(file, bit)
        with naming(f"bit {bit} of {file.name}"):
            kept += check_never_overspent(copies)
    return kept, len(bits)


def test_no_flipped_bit_of_a_ledger_gives_budget_back(copies):
    kept, flipped = flip_all(copies, copies.path, STRIDE)
    assert 0 < kept < 0.7 * flipped  # pages have room to spare, where a bit means nothing


def test_no_flipped_bit_of_a_witness_gives_budget_back(copies):
    kept, _ = flip_all(copies, copies.witness, 1)
    assert kept == 0


def test_no_lost_page_gives_budget_back(copies):
    """Every page of zeros, of ones, and in the place of every other."""
    content = copies.content[copies.path]
    pages = [content[start : start + PAGE] for start in range(0, len(content), PAGE)]
    kept = []
    for i, old in enumerate(pages):
        for j, new in enumerate([bytes(PAGE), b"\xff" * PAGE, *pages]):
            if new == old:
                continue
            copies.damage(copies.path, b"".join([*pages[:i], new, *pages[i + 1 :]]))
            with naming(f"page {i}, {j}"):
                kept += [(i, j)] if check_never_overspent(copies) else []
    assert kept == []


def test_no_ledger_that_was_cut_short_gives_budget_back(copies):
    content = copies.content[copies.path]
    for size in range(0, len(content), PAGE // 2):
        copies.damage(copies.path, content[:size])
        with naming(f"{size} bytes"):
            assert not check_never_overspent(copies)
