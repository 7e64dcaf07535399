"""Labels and owners of any hashable kind, turned into small integers.

A class list fixes the number C of classes and gives each label its code. It is given by the
caller, or read off the data: sorted if the labels can be sorted, else in order of appearance.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, either, option, quoted
from thresher.inputs.checks import check_ordered, rows_text
from thresher.inputs.coded import Coded, object_array
from thresher.inputs.time_labels import arrow_entries, is_time, plain_time, plain_times
from thresher.kernels.codes import codes_of_integers, present_integers

Codes = NDArray[np.int32]

TABLE_SIZE = 1 << 16  # integer labels within such a range are coded by a table
MANY_NUMBERS = 20  # distinct numbers that are not whole, beyond which they are no classes
RawLabels = NDArray[Any] | list[Any] | Coded


@dataclass(frozen=True)
class Classes:
    """The list of classes, in a fixed order, and the code of each label.

    Examples
    --------
    >>> classes = Classes(("cat", "dog"))
    >>> classes.encode("y", ["dog", "cat", "dog"]).tolist()
    [1, 0, 1]
    """

    labels: tuple[Hashable, ...]
    _codes: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        native = tuple(_native(label) for label in self.labels)
        object.__setattr__(self, "labels", native)
        codes = {label: code for code, label in enumerate(native)}
        if len(codes) < len(self.labels):
            raise InputError(f"classes must be distinct, got {quoted(list(self.labels))}")
        if not codes:
            raise InputError("classes is empty: at least one class is needed")
        object.__setattr__(self, "_codes", codes)

    def __len__(self) -> int:
        return len(self.labels)

    def encode(self, name: str, raw: RawLabels, *, first: int = 0) -> Codes:
        """The code of every label; an error names the first rows whose label is not a class.

        Rows are numbered from `first`.
        """
        codes = self.known_codes(raw)
        if codes.min(initial=0) < 0:
            rows = np.flatnonzero(codes < 0)
            label = _as_list(raw[rows[0] : rows[0] + 1])[0]
            raise InputError(
                f"{name} has labels not in classes in {rows_text(rows + first)} (the first is "
                f"{label!r}): add them to classes=, which now is {self._shown()}"
            )
        return codes

    def known_codes(self, raw: RawLabels) -> Codes:
        """The code of every label, -1 where a label is not a class."""
        if isinstance(raw, Coded):
            return self.known_codes(list(raw.distinct))[raw.codes]
        codes = self._encode_integers(raw) if _is_integer_array(raw) else None
        if codes is None:
            codes = np.array([self._codes.get(label, -1) for label in _as_list(raw)], np.int32)
        return codes

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The labels with these codes."""
        return label_array(self.labels)[codes]

    @property
    def code_range(self) -> tuple[int, int]:
        """The lowest and the highest code."""
        return 0, len(self.labels) - 1

    @property
    def code_dtype(self) -> Any:
        """The dtype of codes."""
        return np.int32

    def code(self, name: str, label: object) -> int:
        """The code of one label."""
        return int(self.encode(name, check_labels(name, [label]))[0])

    def find(self, label: Any) -> int:
        """The code of one label, or -1 if it is not a class; a faster `code`."""
        try:
            return self._codes.get(label, -1)
        except TypeError:  # not hashable
            return -1

    def _encode_integers(self, raw: Any) -> Codes | None:
        """The codes of integers by a lookup table; None if such a table will not do."""
        known = [x for x in self.labels if isinstance(x, int)]
        if len(known) < len(self.labels):
            return None
        low, high = int(min(known)), int(max(known))
        if high - low >= TABLE_SIZE or not -(2**62) < low <= high < 2**62:
            return None
        table = np.full(high - low + 1, -1, np.int32)
        table[[x - low for x in known]] = np.arange(len(known), dtype=np.int32)
        codes = np.empty(len(raw), np.int32)
        codes_of_integers(_native_integers(raw), low, table, codes)
        return codes

    def _shown(self) -> str:
        text = ", ".join(repr(label) for label in self.labels[:8])
        return f"[{text}{', ...' if len(self.labels) > 8 else ''}]"


def check_labels(
    name: str, labels: object, count: int | None = None, *, first: int = 0
) -> RawLabels:
    """Labels as a one-dimensional sequence with none missing and all hashable.

    Integer arrays and coded columns are kept as they are; everything else becomes a list of Python
    objects. Messages number rows from `first`.
    """
    raw = raw_labels(name, labels, first=first)
    if count is not None and len(raw) != count:
        raise InputError(f"{name} has {len(raw)} labels but there are {count} rows")
    if isinstance(raw, Coded) and not any(map(is_missing, raw.distinct)):
        return raw
    return raw if _is_integer_array(raw) else _usable(name, _as_list(raw), first)


def class_list(classes: object, *found: RawLabels) -> Classes:
    """The given `classes`, or those that occur in the labels `found`."""
    if classes is not None:
        return _given_classes(classes)
    distinct: dict[Hashable, None] = {}
    for raw in found:
        distinct.update(dict.fromkeys(_distinct(raw)))
    _refuse_targets(distinct)
    try:
        return Classes(tuple(sorted(distinct)))  # type: ignore[type-var]
    except (ArithmeticError, TypeError):  # labels of mixed types have no order of their own
        return Classes(tuple(distinct))


def _refuse_targets(distinct: dict[Hashable, None]) -> None:
    """Refuse labels that look like numbers to predict: the caller must say what the task is."""
    broken = [label for label in distinct if isinstance(label, float) and not label.is_integer()]
    if len(broken) > MANY_NUMBERS:
        raise InputError(
            f"labels are {len(distinct)} distinct real numbers, such as {broken[0]!r}, which look "
            f"like targets. Pass {option('task', 'regression')} if the "
            + either("function takes it, or classes= if each number is a class", "command takes it")
        )


def _given_classes(classes: object) -> Classes:
    if isinstance(classes, Classes):
        return classes
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise InputError(f"classes must be a list of labels, got {quoted(classes)}")
    if isinstance(classes, set | frozenset):  # whose order may be another one tomorrow
        try:
            classes = sorted(classes)
        except TypeError:
            raise InputError(
                "classes must be a list, because these labels have no natural order, got "
                f"{classes!r}"
            ) from None
    check_ordered("classes", classes)
    if not hasattr(classes, "__getitem__"):
        classes = list(classes)
    return Classes(tuple(_as_list(check_labels("classes", classes))))


def label_array(labels: tuple[Any, ...]) -> NDArray[Any]:
    """Labels of one plain type as an array of it, all others as objects."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {bool, float, int, str}:
        found = np.array(labels)
        # NumPy drops zeros at the end of a text, and turns long integers into floats
        if found.tolist() == list(labels) and {type(label) for label in found.tolist()} == kinds:
            return found
    return object_array(labels)


def kept_text(labels: Any) -> Any:
    """The same labels, as objects if they are texts of which NumPy would drop zeros at the end."""
    listed = isinstance(labels, list | tuple)
    if listed and any(isinstance(label, str) and label.endswith("\0") for label in labels):
        return object_array(labels)
    return labels


def check_owners(owners: object, count: int) -> tuple[Hashable, ...] | None:
    """One owner for each of `count` points, or None."""
    if owners is None:
        return None
    raw = _as_list(raw_labels("owners", owners))
    if len(raw) != count:
        raise InputError(f"owners has {len(raw)} entries but there are {count} points")
    return tuple(_usable("owners", raw))


def is_missing(label: object) -> bool:
    """Whether a label stands for "no label": None, NaN, NaT, NA."""
    if label is None or type(label).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(label, Decimal):
        return label.is_nan()
    return isinstance(label, float | complex | np.inexact) and bool(label != label)  # noqa: PLR0124


def raw_labels(name: str, labels: object, *, first: int = 0) -> RawLabels:
    """Labels of any kind as a one-dimensional sequence; objects get types of Python."""
    check_ordered(name, labels)
    if isinstance(labels, Coded):
        return labels
    if isinstance(labels, np.ndarray):
        if isinstance(labels, np.ma.MaskedArray) and np.ma.is_masked(labels):
            rows = np.flatnonzero(np.ma.getmaskarray(labels))
            raise InputError(f"{name} has missing labels in {rows_text(rows + first)}")
        return _check_label_array(name, np.asarray(labels))
    if isinstance(labels, list | tuple | range):
        return _natives(list(labels))
    if isinstance(labels, str | bytes) or not hasattr(labels, "__len__"):
        hint = ": use a list" if isinstance(labels, Iterable) else ""
        kind = type(labels).__name__
        raise InputError(f"{name} must be a sequence of labels, got {kind}{hint}")
    found = _read_column(name, labels)
    return _natives(found) if isinstance(found, list) else _check_label_array(name, found)


def _check_label_array(name: str, array: NDArray[Any]) -> RawLabels:
    if array.ndim != 1:
        hint = f": use {name}.ravel()" if array.ndim == 2 and 1 in array.shape else ""
        raise InputError(f"{name} must have one dimension, got shape {array.shape}{hint}")
    if array.dtype.kind == "O":
        return _natives(array.tolist())
    if array.dtype.kind in "mM":
        return plain_times(array)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise InputError(f"{name} has dtype {array.dtype}: use float64 or integers as labels")
    if array.dtype == np.uint64 and len(array) and int(array.max()) >= 2**63:
        return array.tolist()
    return array


def _read_column(name: str, labels: Any) -> NDArray[Any] | list[Any]:
    """One column of pandas, polars or Arrow, or anything else that has entries in an order."""
    package = type(labels).__module__.split(".")[0]
    if package == "pyarrow" and hasattr(labels, "to_pylist") and not hasattr(labels, "schema"):
        return arrow_entries(labels)  # nulls stay None
    if package in {"pandas", "modin", "cudf"} and hasattr(type(labels), "array"):
        if "[ns" in str(getattr(labels.dtype, "pyarrow_dtype", "")):
            return arrow_entries(labels.array.__arrow_array__())
        return np.asarray(labels.to_numpy())
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(labels, polars.Series):
        if labels.dtype.is_temporal():  # polars itself cuts nanoseconds and panics at far years
            return arrow_entries(labels.to_arrow())
        whole = labels.dtype.is_integer() and str(labels.dtype) not in {"Int128", "UInt128"}
        integers = whole and labels.null_count() == 0
        return np.asarray(labels.to_numpy()) if integers else list(labels.to_list())
    if hasattr(labels, "columns") or hasattr(labels, "schema"):
        raise InputError(f"{name} is a table: pass one column of it")
    return np.asarray(labels) if hasattr(labels, "__array__") else list(labels)


def _is_integer_array(raw: RawLabels) -> bool:
    return isinstance(raw, np.ndarray) and raw.dtype.kind in "iub"


def _native_integers(raw: NDArray[Any]) -> NDArray[Any]:
    if raw.dtype.kind == "b":
        return raw.view(np.uint8)
    return raw if raw.dtype.isnative else raw.astype(raw.dtype.newbyteorder("="))


def _as_list(raw: RawLabels) -> list[Any]:
    return raw if isinstance(raw, list) else raw.tolist()


def _distinct(raw: RawLabels) -> Iterable[Hashable]:
    if isinstance(raw, Coded):
        return raw.distinct
    if not _is_integer_array(raw):
        return dict.fromkeys(_as_list(raw))
    array: NDArray[Any] = raw  # type: ignore[assignment]
    if not len(array):
        return ()
    low, high = int(array.min()), int(array.max())
    if high - low >= TABLE_SIZE or high >= 2**62:
        return list(np.unique(array).tolist())
    seen = np.zeros(high - low + 1, np.bool_)
    present_integers(_native_integers(array), low, seen)
    found = (np.flatnonzero(seen) + low).tolist()
    return [bool(x) for x in found] if array.dtype.kind == "b" else list(found)


def _usable(name: str, raw: list[Any], first: int = 0) -> list[Any]:
    """The labels as Python objects, if all are hashable and none is missing."""
    word = "labels" if name != "owners" else "owners"
    try:
        distinct = dict.fromkeys(raw)
    except TypeError:
        rows = [row for row, label in enumerate(raw, first) if not _hashable(label)]
        kind = type(raw[rows[0] - first]).__name__
        raise InputError(
            f"{name} has {word} that are not hashable in {rows_text(rows)} (the first is a {kind})"
        ) from None
    if any(is_missing(label) for label in distinct):
        rows = [row for row, label in enumerate(raw, first) if is_missing(label)]
        raise InputError(f"{name} has missing {word} in {rows_text(rows)}: drop or fill those rows")
    return raw


def _natives(labels: list[Any]) -> list[Any]:
    """Labels as objects of Python, where those can hold them."""
    try:
        kinds: Iterable[type] = set(map(type, labels))
    except Exception:  # noqa: BLE001 - types may have a hash of their own, which fails
        kinds = map(type, labels)
    if any(is_time(kind) or issubclass(kind, np.generic) for kind in kinds):
        return [_native(label) for label in labels]
    return labels


def _native(label: Any) -> Any:
    if is_time(type(label)):
        return plain_time(label)
    return label.item() if isinstance(label, np.generic) else label


def _hashable(label: object) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True
