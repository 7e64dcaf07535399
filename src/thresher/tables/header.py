"""Names of columns: repeated names get numbers, and the schema keeps which names these were."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
REPEATED = b"repeated"  # in the metadata of a schema: names that its header has more than once


def numbered_names(names: Sequence[str]) -> list[str]:
    """Names that are all different: the second `a` is called `a.2`.

    Examples
    --------
    >>> numbered_names(["a", "b", "a", "a.2", "a"])
    ['a', 'b', 'a.3', 'a.2', 'a.4']
    """
    found: dict[str, None] = {}
    for name in names:
        number, new = 1, name
        while new in found or (number > 1 and new in names):
            number += 1
            new = f"{name}.{number}"
        found[new] = None
    return list(found)


def looks_like_data(names: Sequence[str]) -> bool:
    """Whether a header is probably a row: half of it are numbers, and these do not count up.

    Examples
    --------
    >>> looks_like_data(["5.1", "3.5", "setosa"]), looks_like_data(["0", "1", "2", "kind"])
    (True, False)
    >>> looks_like_data(["119,71", "8,2", "setosa"])
    True
    """
    numbers = [float(name.replace(",", ".")) for name in names if NUMBER.fullmatch(name)]
    counting = all(a < b for a, b in itertools.pairwise(numbers)) and len(numbers) > 1
    return 2 * len(numbers) >= len(names) and bool(numbers) and not counting


def about_names(names: Sequence[str]) -> dict[bytes, bytes] | None:
    """The metadata of a schema whose header has these names; None if they are all different."""
    several = [name for name, count in Counter(names).items() if count > 1]
    return {REPEATED: "\n".join(several).encode()} if several else None


def repeated_names(schema: pa.Schema) -> tuple[str, ...]:
    """The names that the header of a table has more than once."""
    about = schema.metadata or {}
    return tuple(about[REPEATED].decode().split("\n")) if REPEATED in about else ()
