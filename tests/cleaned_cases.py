"""A table cleaned and read back, for the tests of cleaning."""

from __future__ import annotations

from pathlib import Path

from thresher.tables.clean_copy import write_cleaned
from thresher.tables.reader import read_table


def cleaned(name, out, **arguments):
    log = write_cleaned(read_table(name), out, **arguments)
    return Path(out).read_bytes(), log
