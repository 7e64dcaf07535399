"""Labels and owners of private points, each read for itself: None where one cannot be read."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.labels import RawLabels, is_missing, raw_labels
from thresher.privacy.rows import silence

PLAIN = {bool, bytes, float, int, str, type(None)}  # it is known what is equal to what
KNOWN = {"builtins", "datetime", "decimal", "fractions", "numpy", "uuid"}  # and here, too
INEXACT = {np.longdouble, np.clongdouble}  # but these round what they are compared with
A_DAY = {"ms": 86_400_000, "us": 86_400_000_000}  # nanoseconds never leave Python's calendar
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # the years 1 to 9999, counted from 1970
LONGEST = 999_999_999  # days of a timedelta


def read_labels(name: str, labels: Any) -> RawLabels:
    """Labels as a sequence, None where one is masked or cannot be read.

    What is refused is what labels of the same type without entries would be refused for.
    """
    if isinstance(labels, np.ma.MaskedArray):
        return _unmasked(name, labels)
    if isinstance(labels, Sequence) and not isinstance(labels, str | bytes):
        labels = list(labels)  # whatever can be cut into slices
    labels = _within_calendar(labels)
    with np.errstate(all="ignore"), silence():
        try:
            return raw_labels(name, labels)
        except Exception as refused:
            if _is_refused(name, labels):
                raise refused from None
            return [_one(name, labels[row : row + 1]) for row in range(len(labels))]


def _unmasked(name: str, labels: np.ma.MaskedArray[Any, Any]) -> RawLabels:
    """The labels of a masked array, None where one is masked, if only in part."""
    raw = read_labels(name, np.ma.getdata(labels))
    entries = raw.tolist() if isinstance(raw, np.ndarray) else list(raw)
    masked = np.ma.getmaskarray(labels)
    parts = masked.view(np.bool_).reshape(len(entries), -1) if entries else masked
    for row in np.flatnonzero(parts.any(axis=1)) if entries else ():
        entries[row] = None
    return entries


def _is_refused(name: str, labels: Any) -> bool:
    """Whether labels are refused that have no entries."""
    try:
        raw_labels(name, labels[:0])
    except Exception:  # noqa: BLE001
        return True
    return False


def _one(name: str, label: Any) -> Any:
    try:
        return next(iter(raw_labels(name, label)))
    except Exception:  # noqa: BLE001 - whatever it is, it is no label
        return None


def _within_calendar(labels: Any) -> Any:
    """Polars labels without dates that Python does not have: of those it panics, on stderr."""
    polars: Any = sys.modules.get("polars")
    if polars is None or not isinstance(labels, polars.Series):
        return labels
    kind = labels.dtype
    if kind.is_nested():
        return [None] * len(labels)  # lists are no names
    unit = 1 if kind == polars.Date else A_DAY.get(getattr(kind, "time_unit", None) or "", 0)
    if not unit:
        return labels
    first, last = (-LONGEST, LONGEST) if kind == polars.Duration else (FIRST_DAY, LAST_DAY + 1)
    if getattr(kind, "time_zone", None) is not None:
        first, last = first + 1, last - 1  # where it is another day
    low, high = max(first * unit, -(2**63)), min(last * unit, 2**63 - 1)
    known = labels.to_physical().cast(polars.Int64).is_between(low, high, closed="left")
    return labels.zip_with(known.fill_null(value=False), polars.Series([None], dtype=kind))


def declared_kind(labels: Any) -> str:
    """The kind of labels that their type tells, as NumPy abbreviates it; "" where it tells none."""
    dtype = getattr(labels, "dtype", None)
    kind = getattr(dtype, "kind", "")
    numeric = getattr(dtype, "is_numeric", None)  # of Polars
    if callable(numeric):
        return "i" if numeric() else ""
    arrow = str(getattr(labels, "type", "")) if dtype is None else ""
    if arrow.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        return "i"
    return "U" if arrow in {"string", "large_string", "string_view"} else kind


def read_owners(owners: Any) -> tuple[Any, ...] | None:
    """The owner of each point, None where it is missing or could not be told from others."""
    if owners is None:
        return None
    raw = read_labels("owners", owners)
    entries = raw.tolist() if isinstance(raw, np.ndarray) else raw
    with silence():
        return tuple(owner if _is_name(owner) else None for owner in entries)


def _is_name(owner: Any) -> bool:
    try:
        return not is_missing(owner) and hash(owner) is not None and bool(owner == owner)  # noqa: PLR0124
    except Exception:  # noqa: BLE001 - whatever it is, it is no name
        return False


def number_owners(owners: tuple[Any, ...]) -> NDArray[np.int64]:
    """A number for each owner, the same for the same owner; None has one, too.

    Which owners are the same is a question of those two alone: where a comparison fails they are
    not.
    """
    numbers: dict[Hashable, int] = {}
    names = owners if PLAIN.issuperset(map(type, owners)) else map(_Name, owners)
    with silence():
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


class _Name:
    """An owner of any type; one of a type that is not known equals none of another type."""

    __slots__ = ("kind", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner, self.kind = owner, type(owner)
        if self.kind.__module__ in KNOWN and self.kind not in INEXACT:
            self.kind = object

    def __hash__(self) -> int:
        try:
            return hash(self.owner)
        except Exception:  # noqa: BLE001 - it could be hashed before
            return 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Name):
            return NotImplemented
        try:
            return self.kind is other.kind and bool(self.owner == other.owner)
        except Exception:  # noqa: BLE001 - who cannot be compared is not the same
            return False
