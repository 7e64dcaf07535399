"""How many rows a part may have, so that a run stays within a given number of bytes.

The limit is for the memory that belongs to this process alone, including the interpreter and all
packages: `RssAnon` of Linux. Pages of files, such as those of a memmap or of a library, do not
count: the system takes them back whenever it needs room. A trial run on a few rows loads everything
that a run needs. Thresher measures how much memory is in use after it, and adds what parts will
take.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

from thresher.errors import InputError, quoted
from thresher.metrics import DIRECT_WIDTH
from thresher.neighbors.blocks import BLOCK
from thresher.threads import thread_count

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
UNITS |= {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
STATUS = Path("/proc/self/status")
ASSUMED = 256 << 20  # in use by the process, where the system does not say
SPARE = 44 << 20  # what allocators hold on to
THREAD = 6 << 20  # a tile, its notes, and converted rows
FEWEST = 256  # rows of a part
LARGEST = 64 << 20  # bytes of features in a part: larger ones gain nothing

TREE_FIXED = 128 << 20  # its kernels, and the visits of a block of validation points
TREE_ROW = 64  # its order, lengths, levels and classes, besides coordinates

# a row that is computed on: bits against a block of validation points, squared norm, norm,
# position, class code, sum, value; number, salt and fingerprint
WORK = 128 + 8 + 4 + 4 + 8 + 8 + 8 + 3 * 8


def check_memory(memory: object) -> int:
    """A number of bytes, given as such or as text.

    Examples
    --------
    >>> check_memory(500_000_000), check_memory("2GB"), check_memory("1.5 GiB")
    (500000000, 2000000000, 1610612736)
    """
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", memory.lower())
        if found and found[2] in UNITS:
            return check_memory(int(float(found[1]) * UNITS[found[2]]))
    elif isinstance(memory, Integral) and not isinstance(memory, bool) and int(memory) > 0:
        return int(memory)
    raise InputError(f"memory must be bytes, such as 2000000000 or '2GB', got {quoted(memory)}")


def size_text(size: float) -> str:
    """A number of bytes as text that `check_memory` reads, rounded up.

    Examples
    --------
    >>> size_text(1_234_567_890), size_text(999)
    ('1235MB', '999B')
    """
    if size < 10**6:
        return f"{int(size)}B"
    return f"{-int(-size // 10**6)}MB"


def give_back() -> None:
    """Let the allocator return what it holds on to, where it can."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # of glibc only
        ctypes.CDLL(None).malloc_trim(0)


def in_use() -> int:
    """The bytes that belong to this process alone, now."""
    give_back()
    try:
        status = STATUS.read_text(encoding="ascii")
    except OSError:
        return ASSUMED
    found = re.search(r"RssAnon:\s+([0-9]+) kB", status)
    return ASSUMED if found is None else int(found[1]) << 10


@dataclass(frozen=True)
class Account:
    """The memory that a run takes, in bytes.

    Examples
    --------
    >>> account = Account(features=4000, labels=8, width=1000)
    >>> account.rows(10**9, used=120 << 20), account.rows(None, used=0)
    (16777, 16777)
    """

    features: int  # a row of features
    labels: int  # the label of a row, and whatever else is read with it
    width: int  # the number of features
    work: int = 0  # more for each row that is computed on, such as its worth under every label
    fixed: int = 0  # more for the whole run, such as all values, or what a reader holds
    tree: bool = False  # whether near pairs may be found by a tree

    @property
    def row(self) -> int:
        """The bytes of a row that is read, read ahead, and computed on."""
        boxes = 8 * min(self.width, DIRECT_WIDTH) + TREE_ROW if self.tree else 0
        return 2 * (self.features + self.labels) + WORK + self.work + boxes

    @property
    def standing(self) -> int:
        """The bytes held besides rows: four copies of a block of validation points, and threads."""
        block = BLOCK * self.width * (8 + 8 + 4 + 4)
        tree = TREE_FIXED if self.tree else 0
        return self.fixed + block + tree + SPARE + THREAD * thread_count()

    def rows(self, memory: int | None, used: int) -> int:
        """The rows of a part, if `used` bytes are in use already."""
        rows = self.room(memory, used)
        if memory is not None and rows < FEWEST:
            least = used + self.standing + FEWEST * self.row
            raise InputError(
                f"memory of {size_text(memory)} is too little: these data need at least "
                f"{size_text(1.1 * least)}"
            )
        return rows

    def room(self, memory: int | None, used: int) -> int:
        """How many rows there is room for, up to the number that is best."""
        best = max(FEWEST, LARGEST // max(self.features + self.work, 4 * self.width))
        return best if memory is None else min(best, (memory - used - self.standing) // self.row)
