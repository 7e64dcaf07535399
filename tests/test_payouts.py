"""payout: whole cents that add up, statements that can be computed again."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher as th
from thresher.payouts.shared_rows import SharedRows, shared_rows
from thresher.payouts.shares import Terms, integer_weights, whole_cents

NEAR = {"radius": 1.0, "metric": "euclidean"}


def valued(owners=4, rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(rows, 2)), rng.normal(size=(60, 2))
    y, y_val = (X[:, 0] > 0).astype(int), (X_val[:, 0] > 0).astype(int)
    y[rows // 2 :] ^= rng.random(rows - rows // 2) < 0.45
    names = [f"clinic {i * owners // rows}" for i in range(rows)]
    return (X, y, X_val, y_val), names


def solved(weights, pot, floor, cap):
    """What everybody is paid before rounding, by halving the rate: slow and obvious."""
    pay = lambda rate, w: min(max(rate * w, floor), cap if w else floor)  # noqa: E731
    low, high = Fraction(0), Fraction(pot * 10**6)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(pay(middle, w) for w in weights) < pot else (low, middle)
    return [pay(high, w) for w in weights]


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=30).filter(any),
    st.integers(0, 10**9),
)
def test_cents_add_up_and_are_within_one_cent_of_the_share(values, pot):
    cents = whole_cents(integer_weights(values), Terms(pot))
    assert sum(cents) == pot
    total = sum(map(Fraction, values))
    for value, paid in zip(values, cents):
        assert abs(paid - Fraction(value) * pot / total) < 1


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any),
    st.integers(1, 500), st.integers(0, 20), st.integers(20, 200),
)  # fmt: skip
def test_floor_and_cap_are_one_rate(weights, pot, floor, cap):
    if floor * len(weights) > pot:
        with pytest.raises(th.InputError, match=f"floor must be at most {pot // len(weights)} for"):
            whole_cents(weights, Terms(pot, floor, 0, cap))
        return
    cents = whole_cents(weights, Terms(pot, floor, 0, cap))
    most = sum(cap if w else floor for w in weights)
    assert sum(cents) == min(pot, most)
    assert all(floor <= paid <= cap for paid in cents)
    for paid, wanted in zip(cents, solved(weights, min(pot, most), floor, cap)):
        assert abs(paid - wanted) < 1 + Fraction(1, 1000)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=10).filter(any), st.integers(1, 300),
    st.integers(1, 100), st.none() | st.integers(100, 200),
)  # fmt: skip
def test_the_minimum_leaves_out_the_lowest_first(weights, pot, minimum, cap):
    kept = sorted(range(len(weights)), key=lambda i: -weights[i])
    while kept:  # one at a time
        pay = solved([weights[i] for i in kept], pot, 0, cap or pot)
        if pay[-1] >= minimum - Fraction(1, 10**9) and weights[kept[-1]]:
            break
        kept.pop()
    if not kept:
        assert minimum > pot
        with pytest.raises(th.InputError, match=f"minimum must be at most {pot}, got {minimum}"):
            whole_cents(weights, Terms(pot, minimum=minimum, cap=cap))
        return
    cents = whole_cents(weights, Terms(pot, minimum=minimum, cap=cap))
    assert {i for i, paid in enumerate(cents) if paid} == set(kept)
    assert all(paid >= minimum for paid in cents if paid)


def test_ties_go_by_order_and_nothing_else():
    assert list(th.payout(dict.fromkeys("abc", 0.1), pot=100).cents.values()) == [34, 33, 33]
    assert list(th.payout(dict.fromkeys("cba", 0.1), pot=101).cents.values()) == [34, 34, 33]


def test_values_of_any_size_are_shared_exactly():
    found = th.payout({"a": 1e-320, "b": 2e-320, "c": 1e300}, pot=10**15)
    assert list(found.cents.values()) == [0, 0, 10**15]


def test_who_takes_away_is_paid_nothing_and_told_why():
    found = th.payout({"a": 2.0, "b": -1.0, "c": 0.0, "d": 0.001}, pot=1000, minimum=5)
    assert dict(found.cents) == {"a": 1000, "b": 0, "c": 0, "d": 0}
    assert found.status() == ("", "negative value", "no value", "below the minimum")
    assert found.cautions()[0].startswith("1 owner with a negative value gets nothing. An owner")
    more = th.payout({"a": 2.0, "b": -1.0, "c": -1.0}, pot=1000)
    assert more.cautions()[0].startswith("2 owners with a negative value get nothing. An owner")


def test_caps_leave_what_nobody_may_take():
    found = th.payout({"a": 2.0, "b": 1.0}, pot=1000, cap=300)
    assert dict(found.cents) == {"a": 300, "b": 300}
    assert found.unpaid == 400
    assert found.status() == ("cap", "cap")


def test_one_owner_takes_the_pot():
    assert th.payout({"only": 1e-9}, pot=7).cents == {"only": 7}


def test_results_say_which_rule_they_are():
    data, owners = valued()
    points = th.tknn_shapley(*data, owners=owners, **NEAR)
    game = th.owner_shapley(*data, owners=owners, **NEAR)
    by_points, by_game = th.payout(points, pot=10**6), th.payout(game, pot=10**6)
    assert (by_points.about["rule"], by_game.about["rule"]) == ("points", "owners")
    assert sum(by_points.cents.values()) == sum(by_game.cents.values()) == 10**6
    assert by_game.about["params"]["radius"] == 1.0
    assert list(by_game.cents) == list(game.owners)
    assert by_game.values == tuple(game.values.tolist())


def test_flooring_by_point_leaves_nothing_to_gain_by_splitting_good_rows_from_poor_ones():
    """The last owner hands in good and poor rows under two names, in one valuation."""
    data, owners = valued()
    points = th.tknn_shapley(*data, owners=owners, **NEAR)
    split = [
        f"{owner} {'good' if value > 0 else 'poor'}" if owner == "clinic 3" else owner
        for owner, value in zip(owners, points.values.tolist())
    ]
    apart = th.tknn_shapley(*data, owners=split, **NEAR)

    def gain(flooring):
        before = th.payout(points, pot=10**6, flooring=flooring).cents["clinic 3"]
        after = th.payout(apart, pot=10**6, flooring=flooring).cents
        return sum(cents for owner, cents in after.items() if owner.startswith("clinic 3")) - before

    assert gain("owner") > 10_000
    assert abs(gain("point")) <= 1


def test_a_statement_is_stored_and_computed_again(tmp_path):
    found = th.payout({"a": 2.0, "=b": 1.0}, pot=1000, minimum=1)
    for kind in (".json", ".parquet", ".csv"):
        wrote = found.save(tmp_path / f"payout{kind}")
        assert th.Payout.load(wrote[0]) == found
        with pytest.raises(th.InputError, match="already exists"):
            found.save(tmp_path / f"payout{kind}")
        found.save(tmp_path / f"payout{kind}", force=True)
    lines = (tmp_path / "payout.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "owner,value,cents,status"
    assert "'=b" in lines[2]  # no formula of a spreadsheet
    assert found.to_frame()["cents"].tolist() == [667, 333]
    with pytest.raises(th.InputError, match="library must be one of 'pandas', 'polars'"):
        found.to_frame("pandsa")


def test_a_statement_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "payout.json"
    th.payout({"a": 2.0, "b": 1.0}, pot=1000).save(path)
    text = path.read_text()
    about = json.loads(text)
    about["cents"] = [1000, 0]
    path.write_text(json.dumps(about))
    with pytest.raises(th.InputError, match="payout"):
        th.Payout.load(path)


def test_a_statement_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    found = th.payout({"a": 2.0, "b": 1.0}, pot=1000)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("thresher.payouts.statement.csv.write_csv", fail)
    with pytest.raises(th.InputError, match="No space left"):
        found.save(tmp_path / "payout.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("crash", ["record", "table"])
def test_a_table_and_the_record_of_another_statement_are_refused(tmp_path, crash):
    """As a crash between the two names leaves them, where an older statement was replaced."""
    path = tmp_path / "payout.csv"
    th.payout({"a": 2.0, "b": 1.0}, pot=1000).save(path)
    old = {each: each.read_bytes() for each in tmp_path.iterdir()}
    found = th.payout({"a": 2.0, "b": 2.0}, pot=1000)
    found.save(path, force=True)
    assert th.Payout.load(path) == found
    kept = path if crash == "record" else tmp_path / "payout.csv.record.json"
    kept.write_bytes(old[kept])
    with pytest.raises(th.InputError, match=r"it does not match payout\.csv\.record\.json"):
        th.Payout.load(path)


def test_rows_in_common_are_told_to_the_operator(tmp_path):
    pytest.importorskip("jinja2")
    data, owners = valued()
    X = data[0].copy()
    X[-5:] = X[:5]  # clinic 3 copies from clinic 0
    X[-9:-5] = X[5:9] + 1e-9
    points = th.tknn_shapley(X, *data[1:], owners=owners, **NEAR)
    found = th.payout(points, pot=10**6, rows=X, within=1e-6)
    assert found.shared == (SharedRows("clinic 0", "clinic 3", 5, 4),)
    found.report(tmp_path / "payout.html")
    page = (tmp_path / "payout.html").read_text()
    assert "Rows that several owners have" in page
    assert f"{found.cents['clinic 3'] / 100:,.2f}" in page


def test_shared_rows_equal_all_pairs():
    rng = np.random.default_rng(3)
    X, owners = rng.integers(0, 6, size=(80, 2)).astype(float), rng.integers(0, 4, 80)
    apart = np.linalg.norm(X[:, None] - X[None], axis=2)
    for each in shared_rows(X, owners, radius=1.0):
        block = apart[np.ix_(owners == each.owner, owners == each.other)]
        assert each.exact == (block == 0).any(axis=1).sum()
        assert each.exact + each.near == (block <= 1).any(axis=1).sum()


@pytest.mark.parametrize(
    ("values", "wrong", "message"),
    [
        ({"a": 1.0}, {"pot": 10.5}, "pot must be a whole number of cents, at least 0, got 10.5"),
        ({"a": 1.0}, {"pot": -1}, "pot must be a whole number of cents, at least 0, got -1"),
        ({"a": 1.0}, {"pot": True}, "pot must be a whole number"),
        ({"a": 1.0}, {"floor": 0.5}, "floor must be a whole number of cents"),
        ({"a": -1.0, "b": 0.0}, {}, "no owner has a positive value"),
        ({"a": float("nan")}, {}, "values must be finite numbers, and owner 'a'"),
        ({"a": "1"}, {}, "values must be finite numbers"),
        ({}, {}, "values has no owners"),
        ([1.0, 2.0], {}, "values must be an OwnerValuation, a Valuation with owners, or a mapping"),
        ({"a": 1.0, "b": 1.0}, {"floor": 51}, "floor must be at most 50 for 2 owners, got 51"),
        ({"a": 1.0}, {"floor": 5, "minimum": 6}, "floor cannot be used with minimum"),
        ({"a": 1.0, "b": 1.0}, {"minimum": 101}, "minimum must be at most 100, got 101"),
        ({"a": 1.0, "b": 1.0}, {"minimum": 101, "cap": 101}, "minimum must be at most 100"),
        ({"a": 1.0}, {"cap": 0}, "cap must be at least 1 cent"),
        ({"a": 1.0}, {"flooring": "point"}, "flooring='point' needs a Valuation of points"),
        ({"a": 1.0}, {"flooring": "row"}, "flooring must be"),
        ({"a": 1.0}, {"rows": [[1.0]]}, "rows needs a Valuation of points"),
    ],
)
def test_bad_arguments(values, wrong, message):
    with pytest.raises(th.InputError, match=message):
        th.payout(values, **{"pot": 100, **wrong})


def test_a_valuation_without_owners_is_refused():
    data, _ = valued()
    with pytest.raises(th.InputError, match="no owners"):
        th.payout(th.tknn_shapley(*data, **NEAR), pot=100)


def test_names_that_look_alike_are_told():
    with pytest.warns(th.LabelWarning, match="'Acme', 'acme '") as met:
        th.payout({"Acme": 1.0, "acme ": 1.0}, pot=100)
    assert met[0].filename == __file__


def test_a_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(th.InputError, match="a payout must be a .csv, .parquet or .json file"):
        th.payout({"a": 1.0}, pot=100).save(tmp_path / "payout.xlsx")


def test_very_many_owners_are_paid_in_no_time():
    values = {number: float(number % 1000) for number in range(200_000)}
    assert sum(th.payout(values, pot=10**9, minimum=3, cap=10**6).cents.values()) == 10**9


def test_the_command_reads_the_rule_from_the_values(tmp_path, monkeypatch):
    import pyarrow as pa
    from pyarrow import csv
    from tabular import thresher

    monkeypatch.chdir(tmp_path)
    (X, y, X_val, y_val), owners = valued()
    X = X.copy()
    X[-1] = X[0]
    for name, rows, labels, more in (
        ("points", X, y, {"owner": owners}), ("val", X_val, y_val, {})
    ):  # fmt: skip
        columns = {"a": rows[:, 0], "b": rows[:, 1], "y": labels, **more}
        csv.write_csv(pa.table(columns), f"{name}.csv")
    common = "value points.csv --validation val.csv --owner owner --radius 1 --metric euclidean"
    for players in ("points", "owners"):
        words = f"{common} --players {players} --out {players}.parquet"
        assert thresher(*words.split()).returncode == 0
        words = f"payout {players}.parquet --pot-cents 1000000 --out pay-{players}.csv --within 0"
        done = thresher(*words.split(), "--report", f"{players}.html")
        assert done.returncode == 0, done.stderr
        found = th.Payout.load(f"pay-{players}.csv")
        assert found.about["rule"] == players
        assert found.paid == 1_000_000
        assert "thresher value points.csv" in found.about["values"]["command"]
        assert found.shared == (SharedRows("clinic 0", "clinic 3", 1, 0),)
        assert found.cautions()[-1] == "1 pair of owners has rows in common."
        assert (tmp_path / f"{players}.html").exists()
    done = thresher(*["payout", "points.csv", "--pot-cents", "100"])
    assert done.returncode == 1
    assert "is not a .parquet file" in done.stderr
    for name in ("pot", "floor", "minimum", "cap"):
        for typed, shown in (("10000.03", "10000.03"), ("a lot", "'a lot'")):
            pot = [] if name == "pot" else ["--pot-cents", "9"]
            done = thresher("payout", "owners.parquet", *pot, f"--{name}-cents", typed)
            assert done.stderr == (
                f"thresher: --{name}-cents must be a whole number of cents, at least 0, got "
                f"{shown}: 12.50 is 1250\n"
            )
    done = thresher("payout", "owners.parquet", "--pot-cents", "10", "--floor-cents", "9")
    assert "--floor-cents must be at most 2 for 4 owners, got 9: lower it" in done.stderr
    done = thresher("payout", "owners.parquet", "--pot-cents", "-1")
    assert "--pot-cents must be a whole number of cents" in done.stderr


@pytest.mark.parametrize(
    ("within", "said"), [(None, ""), (0.0, "equal rows"), (0.01, "rows within 0.01 of each other")]
)
def test_the_command_says_if_no_rows_are_in_common(within, said, capsys):
    from thresher.cli.payout import _say

    _say(th.payout({"ann": 2.0, "bob": 1.0}, pot=100), [], within)
    told = capsys.readouterr()
    assert f"in common: no two owners have {said}" in told.out + told.err or not said
    assert ("in common" in told.out + told.err) is bool(said)


@pytest.mark.parametrize("within", [5.0, "far", -1.0])
def test_a_distance_between_rows_needs_rows(within):
    with pytest.raises(th.InputError, match="within=5.0 needs the rows|within must be a"):
        th.payout({"ann": 2.0, "bob": 1.0}, pot=100, within=within)
