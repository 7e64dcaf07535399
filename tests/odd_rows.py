"""Rows, labels and owners that are none, and what a private release makes of them."""

from __future__ import annotations

import decimal
import math
import warnings

import numpy as np
from releases import X_VAL, Y_VAL, X, Y

import thresher as th

FEW, KINDS = X[:30], Y[:30].tolist()
HUGE = np.longdouble("1e400")


def raising(*names):
    """An object whose methods of these names raise."""

    def fail(*_):
        raise RuntimeError("secret")

    return type("Raising", (), dict.fromkeys(names, fail))()


class Warner:
    def __float__(self):
        warnings.warn("secret", stacklevel=1)
        return 1.0

    def __hash__(self):
        warnings.warn("secret", stacklevel=1)
        return hash("up")

    def __eq__(self, other):
        raise RuntimeError("secret")


class Nothing:
    @property
    def __class__(self):
        raise RuntimeError("secret")

    def __getattr__(self, name):
        raise RuntimeError("secret")


class RaisingType(type):
    def __hash__(cls):
        raise RuntimeError("secret")

    def __eq__(cls, other):
        raise RuntimeError("secret")


class FloatSubclass(float):
    pass


class Deprecated:
    def __float__(self):
        return FloatSubclass(1.0)  # Python warns of it


class Endless:
    def __iter__(self):
        while True:
            yield 1.0


METHODS = ["__eq__", "__hash__", "__iter__", "__float__", "__array__", "__len__", "__bool__",
           "__getitem__", "__index__", "__class__", "__repr__", "__str__"]  # fmt: skip
OBJECTS = {name: lambda name=name: raising(name) for name in METHODS} | {
    "all": lambda: raising(*METHODS), "warning": Warner, "class": Nothing, "endless": Endless,
    "metaclass": RaisingType("Odd", (), {"__module__": []}),
}  # fmt: skip
ENTRIES = OBJECTS | {
    repr(each)[:24]: lambda each=each: each
    for each in [None, "x", b"x", 1j, np.complex64(1j), math.nan, 2**2000, HUGE, np.ma.masked,
                 np.ones(1), [1], {}, decimal.Decimal("sNaN"), np.timedelta64(5, "ns")]
}  # fmt: skip
ROWS = OBJECTS | {
    repr(each)[:24]: lambda each=each: each
    for each in [7, None, "abc", b"abc", {1: 2, 2: 3, 3: 4}, {1, 2, 3}, [1, 2], [1] * 4,
                 [[1], [2], [3]], np.ones((3, 1)), np.ones((1, 3)), np.array([1, HUGE, 2]),
                 np.ma.masked_all(3), range(4), np.array(["1", "2", "3"]), np.zeros(3, [("a", float)])]
}  # fmt: skip
NO_OWNERS = [
    name
    for name in ENTRIES
    if name not in {"'x'", "b'x'", "1j", repr(2**2000)[:24], repr(HUGE)[:24]}
]


def replay(points, labels=None, owners=None, **options):
    """A seeded release, and all that was warned of."""
    labels = KINDS if labels is None else labels
    strict = {} if "mechanism" in options else {"all": "raise"}  # public accounting underflows
    with warnings.catch_warnings(record=True) as said, np.errstate(**strict):
        warnings.simplefilter("always")
        found = th.dp_tknn_shapley(
            points, labels, X_VAL, Y_VAL, epsilon=1, delta=1e-4, owners=owners, seed=1, **options
        )
        table, prices = found.table, found.price_list.document()
        return found.values, [table.tolist(), dict(found.record), prices, [str(w) for w in said]]


PLAIN = replay(FEW)


def check_same(points, labels=None, row=3, **options):
    """The release is that of the points without the row, which is worth nothing."""
    values, published = replay(points, labels, **options)
    want_values, want = PLAIN if not options else replay(FEW, **options)
    assert published == want
    assert values[row] == 0
    np.testing.assert_array_equal(np.delete(values, row), want_values)


def with_row(row, at=3):
    return [*FEW.tolist()[:at], row, *FEW.tolist()[at:]]


def with_label(label, at=3):
    return [*KINDS[:at], label, *KINDS[at:]]
