"""Private rows of any kind: what one holds changes no other, raises nothing, and warns of nothing."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_rows import (
    ENTRIES,
    FEW,
    HUGE,
    KINDS,
    NO_OWNERS,
    ROWS,
    Deprecated,
    Nothing,
    Warner,
    check_same,
    raising,
    replay,
    with_label,
    with_row,
)
from releases import X_VAL, Y_VAL

import thresher as th
from thresher.errors import InputError
from thresher.inputs.checked_inputs import check_validation
from thresher.privacy.names import number_owners, read_labels, read_owners
from thresher.privacy.private_points import read_points


def test_a_long_integer_in_a_record_batch_changes_nothing_else():
    pa = pytest.importorskip("pyarrow")
    columns = {f"x{j}": pa.array([int(x) for x in FEW[:, j] * 1000]) for j in range(FEW.shape[1])}
    table = pa.table(columns)
    long = table.set_column(0, "x0", pa.array([2**60 + 1, *table.column(0).to_pylist()[1:]]))
    for each in (table, long):
        (batch,) = each.to_batches()
        assert replay(batch)[1] == replay(each)[1]


@pytest.mark.parametrize("kind", ["Int128", "Int64"])
def test_the_width_of_integers_is_not_told_by_a_missing_one(kind):
    polars = pytest.importorskip("polars")
    codes = [1 if label == KINDS[0] else 0 for label in KINDS]
    found = []
    for labels in (codes, [None, *codes[1:]]):
        series = polars.Series(labels, dtype=getattr(polars, kind))
        found.append(list(read_labels("y", series)))
    assert found == [codes, [None, *codes[1:]]]


def test_labels_without_slices_are_read_one_by_one():
    odd = datetime.datetime(
        9999, 12, 31, 23, 59, tzinfo=datetime.timezone(datetime.timedelta(hours=-5)), fold=1
    )
    places = pytest.importorskip("pandas").Series(["a", odd, "b"], [0.0, 0.1, 0.2], dtype=object)
    for labels in (collections.deque(["a", odd, "b"]), places):
        assert [read_labels("y", labels)[i] for i in (0, 2)] == ["a", "b"]


def test_masked_labels_are_those_of_the_array_but_for_masked_ones():
    times = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[ns]")
    masked = np.ma.array(times, mask=[False, True, False])
    plain = list(read_labels("y", times))
    assert read_labels("y", masked) == [plain[0], None, plain[2]]
    parts = np.ma.array([(1, 2), (3, 4)], dtype="i4,i4", mask=[(False, True), (False, False)])
    assert read_labels("y", parts)[0] is None


@pytest.mark.parametrize("name", [name for name in ENTRIES if name != "warning"])
def test_an_entry_that_is_no_number_changes_nothing(name):
    entry = ENTRIES[name]()
    row = np.empty(3, object)
    row[:] = [1.0, None, 2.0]
    row[1] = entry
    check_same(with_row(list(row)), with_label("up"))
    array = np.array(with_row([1.0, 1.0, 1.0]), object)
    array[3] = row
    check_same(array, with_label("up"))
    check_same(np.ma.MaskedArray(array, mask=np.zeros(array.shape, bool)), with_label("up"))


def test_a_number_that_warns_is_a_number():
    rows, labels = with_row([Warner(), Deprecated(), 1]), with_label("up")
    assert replay(rows, labels)[1] == replay(with_row([1.0, 1.0, 1.0]), labels)[1]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_is_none_changes_nothing(name):
    row = ROWS[name]()
    check_same(with_row(row), with_label("up"))
    check_same(collections.deque(with_row(row)), with_label("up"))


@pytest.mark.parametrize("name", ENTRIES)
def test_a_label_that_is_no_class_changes_nothing(name):
    label = ENTRIES[name]()
    check_same(with_row([1.0, 2.0, 3.0]), with_label(label))
    array = np.empty(31, object)
    array[:] = with_label(None)
    array[3] = label
    check_same(with_row([1.0, 2.0, 3.0]), array)


@pytest.mark.parametrize("name", NO_OWNERS)
@pytest.mark.parametrize("at", [0, 3])
def test_an_owner_that_is_no_name_changes_nothing(name, at):
    """Objects may share a hash with a name, and must not be taken for it nor keep it out."""
    owner, names = ENTRIES[name](), [f"o{i // 3}" for i in range(30)]
    owners = [*names[:at], owner, *names[at:]]
    values, published = replay(
        with_row([1.0, 2.0, 3.0], at), with_label("up", at), owners, points_per_owner=3
    )
    _, want = replay(FEW, KINDS, names, points_per_owner=3)
    if read_owners([owner]) == (None,):
        assert published == want
        assert values[at] == 0
    else:  # an owner like any other: one point more, and nothing else
        moved = np.array(published[0]) - np.array(want[0])
        assert (moved**2).sum() <= published[1]["bound"] * published[1]["scale"] ** 2
        assert published[3] == want[3] == []


def test_owners_are_told_apart_by_the_two_alone():
    class Liar:
        def __init__(self, name):
            self.name = name

        def __hash__(self):
            return hash("a")

        def __eq__(self, other):
            return True if isinstance(other, str) else self.name == other.name

    found = number_owners((Liar("x"), "a", Liar("x"), "a", np.str_("a"), Liar("y"), None))
    assert found.tolist() == [0, 1, 0, 1, 1, 2, 3]
    assert number_owners((1, 1.0, True, "1", 2)).tolist() == [0, 0, 0, 1, 2]
    assert number_owners((1, 1.0, np.int64(1), decimal.Decimal(1), "1")).tolist() == [0, 0, 0, 0, 1]
    alone = number_owners((fractions.Fraction(0.1), 0.1)).tolist()
    assert number_owners((np.longdouble(0.1), fractions.Fraction(0.1), 0.1)).tolist()[1:] == [
        1 + number for number in alone
    ]


def test_the_holder_of_the_points_is_told_what_is_wrong():
    points, labels = with_row([1.0, math.nan, 1.0]), with_label("sideways")
    found = th.dp_tknn_shapley(
        points, labels, X_VAL, Y_VAL, epsilon=1, delta=1e-4, seed=0,
        owners=[*["o"] * 3, None, *["o"] * 27], points_per_owner=30,
    )  # fmt: skip
    assert list(found.unusable) == [3]
    assert found.unusable[3].count(";") == 2
    assert "unusable" not in found.to_json()


@pytest.mark.parametrize("method", ["cells", th.privacy.Paper(rate=0.5), "knn"], ids=str)
def test_every_mechanism_replays_without_the_row(method):
    points, labels = with_row(["x", HUGE, Nothing()]), with_label(raising("__eq__"))
    if method == "knn":
        both = [
            th.dp_knn_shapley(rows, some, X_VAL, Y_VAL, epsilon=1, delta=1e-4, seed=1)
            for rows, some in ((points, labels), (FEW, KINDS))
        ]
        np.testing.assert_array_equal(np.delete(both[0].values, 3), both[1].values)
        assert dict(both[0].record) == dict(both[1].record)
        assert list(both[0].unusable) == [3]
    else:
        pytest.importorskip("dp_accounting")
        check_same(points, labels, mechanism=method)


@pytest.mark.parametrize(
    ("kind", "hidden"),
    [("f8", 1.0), ("f4", 1.0), ("g", 1.0), ("g", HUGE), ("O", 1.0), ("O", "x"), ("O", raising("__eq__"))],
    ids=lambda each: str(each)[:5],
)  # fmt: skip
def test_a_masked_feature_is_missing_whatever_is_behind_the_mask(kind, hidden):
    rows = np.array(with_row([1.0, 1.0, 1.0])).astype(kind)
    rows[3, 1] = hidden
    mask = np.zeros(rows.shape, bool)
    mask[3, 1] = True
    want = replay(FEW.astype(kind))[1]
    values, published = replay(np.ma.MaskedArray(rows, mask), with_label("up"))
    assert (published, values[3]) == (want, 0)


def test_a_long_double_that_no_float_holds_is_not_warned_of():
    wide = np.insert(FEW.astype(np.longdouble), 3, [1, HUGE, 1], axis=0)
    check_same(wide, with_label("up"))
    masked = np.ma.MaskedArray(wide, mask=False)
    check_same(masked, with_label("up"))


def test_dates_that_python_does_not_have_are_the_labels_that_numpy_makes_of_them(capfd):
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    day = datetime.date(2020, 1, 2)
    known = (day - datetime.date(1970, 1, 1)).days
    far = np.datetime64(10**9, "D")
    for labels in (
        arrow.array([known, 10**9], arrow.date32()),
        polars.Series([known, 10**9]).cast(polars.Date),
    ):
        assert list(read_labels("y", labels)) == [day, far]
    moment = polars.Series([0, 2**62]).cast(polars.Datetime("us"))
    assert list(read_labels("y", moment))[1] == np.datetime64(2**62, "us")
    length = polars.Series([1, 2**62]).cast(polars.Duration("ms"))
    assert list(read_labels("y", length))[1] == np.timedelta64(2**62, "ms")
    zoned = polars.Series([0, 2**62]).cast(polars.Datetime("us", "Asia/Tokyo"))
    assert list(read_labels("y", zoned))[1] == np.datetime64(2**62, "us")
    assert read_labels("y", polars.Series([[1], [2]])) == [None, None]
    assert capfd.readouterr() == ("", "")


def test_labels_that_are_not_utf8_are_no_labels():
    arrow = pytest.importorskip("pyarrow")
    ends, text = np.arange(4, dtype=np.int32), b"a\xffb"
    labels = arrow.Array.from_buffers(
        arrow.string(), 3, [None, arrow.py_buffer(ends), arrow.py_buffer(text)]
    )
    assert list(read_labels("y", labels)) == ["a", None, "b"]


@pytest.mark.parametrize("odd", [None, 2])
def test_the_kind_of_labels_is_told_by_their_type_and_not_by_a_missing_one(odd):
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    validation = check_validation(X_VAL, Y_VAL, metric="cosine", classes=None)
    arrow = pytest.importorskip("pyarrow")
    for labels in (
        polars.Series([0, 1, odd]),
        pandas.array([0, 1, odd], dtype="Int64"),
        arrow.array([0, 1, odd]),
    ):
        with pytest.raises(
            InputError, match="y holds numbers, judging by its type, but classes are like 'd"
        ):
            read_points(FEW[:3], labels, validation)
    wanted = check_validation(X_VAL, [1] * 100, metric="cosine", classes=None)
    for text in (
        np.array(["up", "down", "a much longer one"]),
        arrow.array(["up", odd and "x", None]),
    ):
        with pytest.raises(InputError, match="y holds text, judging by its type") as told:
            read_points(FEW[:3], text, wanted)
        assert "17" not in str(told.value)  # the length of the longest


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
    | st.binary(max_size=3) | st.complex_numbers() | st.decimals() | st.dates()
    | st.sampled_from(sorted(ENTRIES.keys() - {"class"})).map(lambda name: ENTRIES[name]()),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner, inner),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=60)
@given(row=anything, label=anything | st.just("up"))
def test_whatever_a_row_is_only_that_row_is_affected(row, label):
    validation = check_validation(X_VAL, Y_VAL, metric="cosine", classes=None)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = read_points(with_row(row), with_label(label), validation)
    others = np.delete(np.arange(31), 3)
    assert np.isin(others, found.where).all()
    kept = found.where != 3
    np.testing.assert_array_equal(found.points.rows.array[kept], FEW)
    codes = read_points(FEW, KINDS, validation).points.codes
    np.testing.assert_array_equal(found.points.codes[kept], codes)
    assert said == []


@pytest.mark.parametrize(
    ("metric", "why"), [("cosine", ["it has no direction"]), ("euclidean", [])]
)
def test_a_row_of_zeros_is_told_from_one_that_cannot_be_read(metric, why):
    rows = np.array([X_VAL[0], np.zeros_like(X_VAL[0]), np.full_like(X_VAL[0], np.nan)])
    validation = check_validation(X_VAL, Y_VAL, metric=metric, classes=None)
    found = read_points(rows, [Y_VAL[0]] * 3, validation).unusable()
    assert found.pop(2) == "a feature is missing, not a number or out of range"
    assert [reason.split(":")[0] for reason in found.values()] == why
