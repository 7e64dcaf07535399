"""What the protocol needs from a task: who takes part, how many must survive, how many may lie.

With n silos, k = `fewest` and t = `colluding`, the protocol needs 1 <= t < k <= n and 2 k > n + t.
A list of survivors is opened when k of them have signed it. Two lists would need 2 (k - t) honest
signatures, but there are only n - t honest silos, and each of them signs one list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from thresher.errors import InputError, option
from thresher.federate import primitives
from thresher.federate.messages import SIGNED_KEYS_BYTES, SMALLEST
from thresher.inputs.checks import check_count, check_text

MOST_SILOS = 1000
MOST_ENTRIES = 1 << 28


@dataclass(frozen=True)
class Terms:
    """The public numbers and keys of a task."""

    task: bytes  # the digest of the whole task
    coordinator: bytes
    names: tuple[str, ...]
    keys: tuple[bytes, ...]
    fewest: int
    colluding: int
    entries: int

    def __post_init__(self) -> None:
        check_numbers(len(self.names), self.fewest, self.colluding)
        check_count("entries", self.entries)
        if len(set(self.keys)) != len(self.names) or len(set(self.names)) != len(self.names):
            raise InputError("silos must have one name and one key each, no two the same")
        if self.coordinator in self.keys:
            raise InputError("coordinator must have a key of its own, got that of a silo")
        if self.entries > MOST_ENTRIES:
            raise InputError(f"entries must be at most {MOST_ENTRIES}, got {self.entries}")

    @property
    def silos(self) -> int:
        """How many silos there are."""
        return len(self.names)

    @cached_property
    def longest(self) -> int:
        """How many bytes a message of this task can have at most."""
        return SMALLEST + max(8 * self.entries + 8, 2 + self.silos * SIGNED_KEYS_BYTES)

    def number_of(self, key: bytes) -> int:
        """The number of the silo with this public key."""
        if key not in self.keys:
            raise InputError(f"the key {key.hex()} does not belong to any silo of the task")
        return self.keys.index(key)


def check_numbers(silos: int, fewest: object, colluding: object) -> tuple[int, int]:
    """Return `fewest` and `colluding` if the protocol is safe with them; raise otherwise."""
    k, t = check_count(option("fewest"), fewest), check_count(option("colluding"), colluding)
    if silos > MOST_SILOS:
        raise InputError(f"a task can have at most {MOST_SILOS} silos, got {silos}")
    least = least_survivors(silos, t)
    if not least <= k <= silos:
        raise InputError(
            f"{option('fewest')} must be between {least} and {silos} if {t} of {silos} silos may "
            f"collude (2 x fewest > silos + colluding), got {k}"
        )
    return k, t


def least_survivors(silos: int, colluding: int) -> int:
    """The smallest safe `fewest`, k: it has 2 k > n + t and k > t.

    Examples
    --------
    >>> [least_survivors(silos, 1) for silos in (3, 5, 50)]
    [3, 4, 26]
    """
    return max((silos + colluding) // 2 + 1, colluding + 1)


def terms_digest(terms: Mapping[str, Any]) -> bytes:
    """The digest of terms, which are written in canonical JSON."""
    text = json.dumps(terms, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return primitives.digest("task", text.encode())


def party_terms(
    silos: Mapping[str, str], coordinator: str, fewest: object, colluding: object, name: str
) -> dict[str, Any]:
    """The part of a task's terms that says who takes part."""
    if not isinstance(silos, Mapping) or len(silos) < 2:
        raise InputError("silos must map at least two names to public keys")
    k, t = check_numbers(len(silos), fewest, colluding)
    return {
        "name": check_text("name", name),
        "coordinator": coordinator,
        "silos": {check_text("a silo's name", who, empty=False): silos[who] for who in silos},
        "fewest": k,
        "colluding": t,
    }
