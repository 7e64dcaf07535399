from __future__ import annotations

import contextlib
import copy
import datetime
import enum
import pickle
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher as th


@pytest.fixture
def valuation():
    values = np.array([0.5, -1.0, 0.25, -1.0, 0.0])
    return th.Valuation(
        values, "example", {"k": 5, "classes": ["a", "b"]}, 1.5, 2.75, (7, 8, 7, 8, 9)
    )


def test_it_is_frozen_and_keeps_its_own_copy():
    values = np.array([1.0, 2.0])
    valuation = th.Valuation(values, "m", {"a": 1}, 3.0, 0.0)
    values[0] = 9
    assert valuation.values.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        valuation.values[0] = 1
    with pytest.raises(AttributeError):
        valuation.method = "other"
    with pytest.raises(TypeError):
        valuation.params["a"] = 2


def test_reprs_say_what_it_is(valuation):
    assert repr(valuation) == "Valuation(example, 5 points, sum=-1.25)"
    html = valuation._repr_html_()
    assert "<b>example</b>: 5 points" in html
    assert "row 1<br>-1" in html
    assert "&#x27;a&#x27;" in html


@pytest.mark.parametrize("count", [0, 1, 2, 40, 5000])
def test_equal_values_are_ranked_by_position(count, rng):
    values = rng.choice([-0.0, 0.0, -1.5, 2.0, np.nan, np.inf, -np.inf], count)
    order = np.argsort(values, kind="stable")
    found = th.Valuation(values, "m", {}, 0.0, 0.0)
    np.testing.assert_array_equal(found.suspects(count) if count else [], order)
    np.testing.assert_array_equal(found.ranks()[order], np.arange(1, count + 1))
    with np.errstate(invalid="ignore"):
        below = [np.nanmean(values < v) if v == v else np.mean(~np.isnan(values)) for v in values]
    np.testing.assert_allclose(found.percentiles(), 100 * np.array(below))


def test_suspects_are_the_lowest_by_number_or_fraction(valuation):
    assert valuation.suspects(3).tolist() == [1, 3, 4]
    assert valuation.suspects(n=1).tolist() == [1]
    assert valuation.suspects(0.4).tolist() == [1, 3]
    assert valuation.suspects(fraction=0.41).tolist() == [1, 3, 4]
    assert valuation.suspects(99).tolist() == [1, 3, 4, 2, 0]
    for none in ({"n": 0}, {"n": 0.0}, {"fraction": 0}, {"fraction": 0.0}):
        assert valuation.suspects(**none).tolist() == []
    assert valuation.suspects(fraction=1e-12).tolist() == [1]
    for wrong in (-1, -0.5, 1.5, True, "3", float("nan")):
        with pytest.raises(th.InputError, match=r"^n must be an integer >= 0"):
            valuation.suspects(wrong)
    with pytest.raises(th.InputError, match=r"or a share between 0 and 1, got 2\.0$"):
        valuation.suspects(np.float64(2.0))
    with pytest.raises(th.InputError, match=r"^fraction must be a number between 0 and 1"):
        valuation.suspects(fraction=2.0)
    with pytest.raises(th.InputError, match="either n or fraction"):
        valuation.suspects()
    with pytest.raises(th.InputError, match="either n or fraction"):
        valuation.suspects(3, fraction=0.1)


def test_owners_get_the_sum_of_their_points(valuation):
    assert valuation.by_owner() == {7: 0.75, 8: -2.0, 9: 0.0}
    with pytest.raises(th.InputError, match="has no owners: value the points with owners="):
        th.Valuation(np.zeros(2), "m", {}, 0.0, 0.0).by_owner()


def test_efficiency_gap_is_the_sum_less_the_gain(valuation):
    assert valuation.efficiency_gap() == 0.0
    assert th.Valuation(np.ones(3), "m", {}, 1.0, 0.5).efficiency_gap() == 2.5


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_frames_have_row_value_rank_and_owner(valuation, library, kind):
    frame = valuation.to_frame(library)
    assert isinstance(frame, kind)
    assert list(frame.columns) == ["row", "value", "rank", "owner"]
    assert list(frame["rank"]) == [5, 1, 4, 2, 3]
    assert list(frame["owner"]) == [7, 8, 7, 8, 9]
    assert isinstance(valuation.to_frame(), pd.DataFrame)


def test_frames_need_a_frame_library(valuation, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(valuation.to_frame(), pl.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(th.ExtraError, match=r"needs polars: install the extra 'polars' "):
        valuation.to_frame()
    with pytest.raises(
        th.InputError, match="library must be one of 'pandas', 'polars', got 'dask'"
    ):
        valuation.to_frame("dask")


def test_a_saved_valuation_comes_back_equal(valuation, tmp_path):
    path = tmp_path / "values.parquet"
    valuation.save(path)
    again = th.Valuation.load(path)
    assert again == valuation
    assert again.values.tobytes() == valuation.values.tobytes()
    assert pq.read_table(path).column_names == ["value", "owner"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["values.parquet"]
    without = th.Valuation(np.array([np.pi]), "m", {}, float("nan"), 0.0)
    without.save(path)
    assert th.Valuation.load(path) == without
    assert valuation != without
    assert valuation != "valuation"


def test_it_can_be_pickled_and_copied(valuation):
    for again in (
        pickle.loads(pickle.dumps(valuation)),
        copy.copy(valuation),
        copy.deepcopy(valuation),
    ):
        assert again == valuation
        assert not again.values.flags.writeable


def test_a_changed_file_is_refused(valuation, tmp_path):
    path = tmp_path / "values.parquet"
    valuation.save(path)
    content = bytearray(path.read_bytes())
    accepted = 0
    for at in range(4, len(content) - 8, 7):
        content[at] ^= 1
        path.write_bytes(content)
        with contextlib.suppress(th.InputError):
            accepted += th.Valuation.load(path) != valuation
        content[at] ^= 1
    assert accepted == 0


def test_a_replaced_file_keeps_its_permissions_and_links_their_target(valuation, tmp_path):
    path, link = tmp_path / "values.parquet", tmp_path / "link"
    path.touch(mode=0o600)
    link.symlink_to(path)
    valuation.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert th.Valuation.load(path) == valuation
    valuation.save(tmp_path / ("x" * 250))
    for wrong, message in [
        (tmp_path, "is not a file"),
        ("", "must be the name"),
        (None, "must be the name"),
    ]:
        with pytest.raises(th.InputError, match=message):
            valuation.save(wrong)


def test_mixed_owners_fit_in_frames():
    valuation = th.Valuation(np.zeros(2), "m", {}, 0.0, 0.0, (1, "a"))
    for library in ("pandas", "polars"):
        assert list(valuation.to_frame(library)["owner"]) == [1, "a"]
    for owners in ((("a", 1), ("b", 2)), (2**70, 1)):
        with pytest.raises(th.InputError, match="the owner .* cannot be saved"):
            th.Valuation(np.zeros(2), "m", {}, 0.0, 0.0, owners).save("unused")


def test_fractions_are_exact_to_the_row():
    valuation = th.Valuation(np.arange(100.0), "m", {}, 0.0, 0.0)
    assert [len(valuation.suspects(percent / 100)) for percent in range(1, 101)] == list(
        range(1, 101)
    )


def test_settings_are_stored_as_plain_values():
    params = {"k": np.int64(3), "classes": [("a", 1), np.float32(0.5)], "none": None}
    valuation = th.Valuation(np.zeros(1), "m", params, 0.0, 0.0)
    assert dict(valuation.params) == {"k": 3, "classes": [["a", 1], 0.5], "none": None}


def test_owners_of_mixed_types_cannot_be_saved(tmp_path):
    valuation = th.Valuation(np.zeros(2), "m", {}, 0.0, 0.0, (1, "a"))
    assert valuation.by_owner() == {1: 0.0, "a": 0.0}
    with pytest.raises(
        th.InputError,
        match="owners of different types cannot be saved in one column, got int and str",
    ):
        valuation.save(tmp_path / "x")
    valuation = th.Valuation(np.zeros(2), "m", {}, 0.0, 0.0)
    with pytest.raises(th.InputError, match="the folder .* does not exist"):
        valuation.save(tmp_path / "no" / "x")
    assert list(tmp_path.iterdir()) == []


class Word(str):
    __slots__ = ()


class Odd(str):
    """A string that equals none."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Odd) and str.__eq__(self, other)

    __hash__ = str.__hash__


Color = enum.Enum("Color", {"RED": "red", "BLUE": "blue"})
Name = enum.Enum("Name", {"RED": "red", "BLUE": "blue"}, type=str)
Number = enum.IntEnum("Number", {"ONE": 1, "TWO": 2})
DAY = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
SAVED = [
    ("a", "b"), ("", "\0"), ("é", "e\u0301"), (1, -(2**63) + 1), (1.5, -0.0), (True, False),
    tuple(Name), tuple(Number), (Word("a"), "b"), tuple(np.array([1, 2])), [1, 2],
    np.array(["a", "b"]), np.array([0.1, 0.2], np.float32), tuple(np.array([True, False])),
]  # fmt: skip
UNSAVED = [
    (1, 2.5), (1, 2.0), (True, 2), (False, 2.5), (2**53 + 1, 2.5), (1, "a"), tuple(Color),
    (Odd("a"), Odd("b")), (Decimal(1), Decimal(2)), (DAY, DAY), (DAY.date(), DAY.date()),
    (DAY - DAY, DAY - DAY), (pd.Timestamp(1), pd.Timestamp(2)), (pd.Timestamp(DAY), "a"),
    tuple(np.array([1, 2], "M8[ns]")), ((1, 2), (3, 4)), (b"a", b"b"), (1.0, float("inf")),
    (float("nan"), 1.0), (None, None), (2**63, 1), ("a\ud800", "b"), (1j, 2j),
]  # fmt: skip


@pytest.mark.parametrize("role", ["owners", "ids"])
@pytest.mark.parametrize("entries", SAVED, ids=repr)
def test_what_is_saved_is_loaded_equal(role, entries, tmp_path):
    valuation = th.Valuation(np.array([0.5, 0.25]), "m", {}, 1.0, 0.0, **{role: entries})
    valuation.save(tmp_path / "values.parquet")
    again = th.Valuation.load(tmp_path / "values.parquet")
    assert again == valuation
    assert getattr(again, role) == tuple(entries)
    if role == "owners":
        assert again.by_owner() == valuation.by_owner()


@pytest.mark.parametrize("role", ["owners", "ids"])
@pytest.mark.parametrize("entries", UNSAVED, ids=repr)
def test_what_could_not_be_loaded_is_not_saved(role, entries, tmp_path, valuation):
    path = tmp_path / "values.parquet"
    valuation.save(path)
    other = th.Valuation(np.array([0.5, 0.25]), "m", {}, 1.0, 0.0, **{role: entries})
    with pytest.raises(th.InputError, match=f"{role[:-1]}.* cannot be saved"):
        other.save(path)
    assert th.Valuation.load(path) == valuation
    assert [entry.name for entry in tmp_path.iterdir()] == ["values.parquet"]


@pytest.mark.parametrize("entries", [*SAVED, *UNSAVED], ids=repr)
def test_classes_are_saved_equal_or_not_at_all(entries, tmp_path):
    """JSON has room for classes of several types, a column has not."""
    try:
        counts = th.NeighborCounts([[0.0], [1.0]], list(entries), metric="euclidean")
    except th.InputError:
        return
    for each in (counts, counts.price_list()):
        path = tmp_path / type(each).__name__
        with contextlib.suppress(th.InputError):
            each.save(path)
            assert type(each).load(path).classes == each.classes
    mixed = th.NeighborCounts([[0.0], [1.0]], [1, 2.5], metric="euclidean").price_list()
    mixed.save(tmp_path / "mixed")
    assert th.PriceList.load(tmp_path / "mixed").classes == [1, 2.5]


@pytest.mark.parametrize("name", ["owner", "standard_error"])
def test_a_column_of_the_caller_is_not_taken_for_ours(name, tmp_path):
    valuation = th.Valuation(np.array([0.5, np.nan]), "m", {}, 2**60 + 1, 0)
    with pytest.raises(th.InputError, match=f"columns must not include '{name}'"):
        valuation.save(tmp_path / "x", columns={name: [1.0, 2.0]})
    valuation.save(tmp_path / "x", columns={"id": ["a", "b"]}, record={"ids": True})
    assert th.Valuation.load(tmp_path / "x") == valuation


def test_nothing_that_the_caller_adds_is_replaced(tmp_path):
    given = {"owners": ("a", "b"), "standard_errors": np.ones(2), "ids": (1, 2)}
    valuation = th.Valuation(np.array([0.5, 0.25]), "m", {}, 0.0, 0.0, **given)
    for name in ("value", "owner", "standard_error", "id"):
        with pytest.raises(th.InputError, match=f"columns must not include '{name}'"):
            valuation.save(tmp_path / "x", columns={name: [1.0, 2.0]})
    for name in ("format", "method", "params", "utility_all", "utility_none", "seal"):
        with pytest.raises(th.InputError, match=f"record must not include '{name}'"):
            valuation.save(tmp_path / "x", record={name: "mine"})
    assert not (tmp_path / "x").exists()


def test_a_parquet_file_of_something_else_is_refused(tmp_path):
    pd.DataFrame({"value": [1.0]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(th.InputError, match="does not hold a valuation"):
        th.Valuation.load(tmp_path / "x.parquet")


def test_an_interrupted_write_leaves_the_old_file(valuation, tmp_path, monkeypatch):
    path = tmp_path / "values.parquet"
    valuation.save(path)

    def fail(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(KeyboardInterrupt):
        th.Valuation(np.zeros(1), "m", {}, 0.0, 0.0).save(path)
    assert th.Valuation.load(path) == valuation
    assert [entry.name for entry in tmp_path.iterdir()] == ["values.parquet"]


def test_wrong_shapes_are_refused():
    with pytest.raises(th.InputError, match="values must have one dimension, got 2"):
        th.Valuation(np.zeros((2, 2)), "m", {}, 0.0, 0.0)
    with pytest.raises(th.InputError, match="1 owners for 2 values"):
        th.Valuation(np.zeros(2), "m", {}, 0.0, 0.0, ("a",))
    with pytest.raises(th.InputError, match="1 ids for 2 values"):
        th.Valuation(np.zeros(2), "m", {}, 0.0, 0.0, ids=("a",))


@pytest.mark.parametrize("ids", [("a", "b"), (7, -1)])
def test_ids_go_with_the_values(ids, tmp_path):
    named = th.Valuation(np.array([0.5, 0.25]), "m", {}, 0.0, 0.0, ids=ids)
    plain = th.Valuation(np.array([0.5, 0.25]), "m", {}, 0.0, 0.0)
    assert named != plain
    assert copy.deepcopy(named).ids == pickle.loads(pickle.dumps(named)).ids == ids
    named.save(tmp_path / "named")
    assert th.Valuation.load(tmp_path / "named") == named
    plain.save(tmp_path / "plain", columns={"id": ["x", "y"]})  # a column of the caller's
    assert th.Valuation.load(tmp_path / "plain").ids is None
    for library in ("pandas", "polars"):
        assert list(named.to_frame(library).columns) == ["row", "id", "value", "rank"]
    mixed = th.Valuation(np.zeros(2), "m", {}, 0.0, 0.0, ids=("a", 1))
    assert list(mixed.to_frame("polars")["id"]) == ["a", 1]


def test_a_changed_id_is_refused(tmp_path):
    named = th.Valuation(np.array([0.5, 0.25]), "m", {}, 0.0, 0.0, ids=("a", "b"))
    named.save(tmp_path / "named")
    table = pq.read_table(tmp_path / "named")
    where = table.column_names.index("id")
    pq.write_table(table.set_column(where, "id", pa.array(["b", "a"])), tmp_path / "named")
    with pytest.raises(th.InputError, match="does not hold a valuation"):
        th.Valuation.load(tmp_path / "named")


@pytest.mark.parametrize("name", ["v.csv", "v.TSV", "v.json", "v.xlsx", "v.npz", "v.html"])
def test_a_valuation_is_saved_under_no_name_of_another_kind(name, tmp_path):
    valuation = th.Valuation(np.array([0.5]), "example", {}, 0.5, 0.0)
    with pytest.raises(th.InputError, match=r"must end in \.parquet, got .*v\."):
        valuation.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    for fine in ("v.parquet", "v", "v.values"):
        valuation.save(tmp_path / fine)
        assert th.Valuation.load(tmp_path / fine).values.tolist() == [0.5]
