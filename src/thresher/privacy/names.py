"""Labels and owners of private points, each read on its own: None where one cannot be read."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.inputs.labels import RawLabels, is_missing, raw_labels
from thresher.privacy.rows import silence

PLAIN = {id(kind) for kind in (bool, bytes, float, int, str, type(None))}  # what equals what
KNOWN = {"builtins", "datetime", "decimal", "fractions", "numpy", "uuid"}  # is known, here, too
INEXACT = np.longdouble, np.clongdouble  # but these round what they are compared with


def read_labels(name: str, labels: Any) -> RawLabels:
    """Labels as a sequence, None where one is masked or cannot be read.

    Labels are refused only for reasons that would also apply to an empty list of the same type.
    """
    if isinstance(labels, np.ma.MaskedArray):
        return _unmasked(name, labels)
    if isinstance(labels, Sequence) and not isinstance(labels, str | bytes):
        labels = list(labels)  # whatever can be cut into slices
    if _is_nested(labels):
        return [None] * len(labels)
    with np.errstate(all="ignore"), silence():
        try:
            return raw_labels(name, labels)
        except Exception as refused:
            if _is_refused(name, labels):
                raise refused from None
            rows = getattr(labels, "iloc", labels)  # by place, whatever the index of pandas is
            return [_one(name, rows[row : row + 1]) for row in range(len(labels))]


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
    """Whether labels without entries, of this type, would be refused."""
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


def _is_nested(labels: Any) -> bool:
    """Whether these are lists or structs of Polars, which cannot be names."""
    polars: Any = sys.modules.get("polars")
    return polars is not None and isinstance(labels, polars.Series) and labels.dtype.is_nested()


def declared_kind(labels: Any) -> str:
    """The kind of labels that their type shows, as NumPy abbreviates it; "" if it shows none."""
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
    """The owner of each point; None where it is missing or cannot be told apart from others."""
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
    """A number for each point's owner, the same for the same owner; None has a number, too.

    Whether two owners are the same depends on those two alone. If comparing them fails, they are
    not.
    """
    numbers: dict[Hashable, int] = {}
    with silence():
        plain = PLAIN.issuperset(map(id, map(type, owners)))
        names = owners if plain else map(_Name, owners)
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def is_plain(name: Any) -> bool:
    """Whether a label or an owner has a built-in type; another type may have a hash that fails."""
    return id(type(name)) in PLAIN


def _is_known(kind: type) -> bool:
    try:
        return kind.__module__ in KNOWN and not any(kind is each for each in INEXACT)
    except Exception:  # noqa: BLE001 - a module that is no name
        return False


class _Name:
    """An owner of any type. If its type is not known, it equals no owner of another type."""

    __slots__ = ("kind", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner, self.kind = owner, object if _is_known(type(owner)) else type(owner)

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
