"""Payouts under noise: who learns what, and what is paid."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from releases import X_VAL, Y_VAL, X, Y

import thresher as th
from thresher.cli.private_pay import PrivatePay
from thresher.games.owner_values import OwnerGames
from thresher.payouts.alike_owners import alike_values
from thresher.payouts.private_statements import (
    file_name,
    operator_page,
    rows_in_common,
    write_statements,
)
from thresher.payouts.shared_rows import SharedRows
from thresher.privacy import public_forest
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.names import number_owners
from thresher.privacy.private_points import read_points
from thresher.privacy.release import SeededRelease
from thresher.report.owner_page import render_statement

OWNERS = np.arange(len(X)) % 20
POT = 1_000_000


def released(rows=slice(None), owners=OWNERS, **options):
    settings = {"epsilon": 8.0, "delta": 1e-4, "seed": 0, "points_per_owner": 40} | options
    return th.dp_tknn_shapley(X[rows], Y[rows], X_VAL, Y_VAL, owners=owners[rows], **settings)


@pytest.fixture(scope="module")
def release():
    return released()


def replayed(release, rows, owners=OWNERS):
    """A release of other points that came out with the same table: the noise made up for it."""
    design = release._design
    private = read_points(X[rows], Y[rows], design.setting.validation, None)
    names = tuple(owners[rows].tolist())
    units = Units.of(number_owners(names)[private.where], len(private))
    contributions = Contributions(private.points, design.setting.side, units)
    return SeededRelease(
        design, release.table.copy(), dict(release.record), private, contributions, names
    )


@pytest.mark.parametrize("pay", ["estimate", "lower"])
@pytest.mark.parametrize("players", ["points", "owners"])
@pytest.mark.parametrize("left_out", [0, 7, 19])
def test_others_see_the_same_bits_whether_an_owner_is_there_or_not(release, left_out, players, pay):
    """A neighbor replay over whole statements: T11."""
    how = {"pot": POT, "pay": pay, "players": players}
    with_all = th.private_payout(release, **how)
    without = th.private_payout(replayed(release, left_out != OWNERS), **how)
    assert with_all.public() == without.public()
    others = [line for line in with_all.lines if line.owner != left_out]
    assert others == list(without.lines)


def test_others_see_the_same_bits_whatever_points_an_owner_has(release):
    """Owner 7 keeps half of its points."""
    rows = np.flatnonzero((OWNERS != 7) | (np.arange(len(X)) % 40 == 7))
    one, other = (th.private_payout(each, pot=POT) for each in (release, replayed(release, rows)))
    assert one.public() == other.public()
    for before, after in zip(one.lines, other.lines):
        assert (before == after) == (before.owner != 7)


def test_pay_that_is_scaled_to_the_pot_would_give_an_owner_away(release):
    """What T11 forbids: without one owner the scaled pay of another moves by thousands of cents."""
    found = th.private_payout(release, pot=POT)
    scaled = th.payout(dict(found.cents), pot=POT).cents
    rest = {owner: cents for owner, cents in found.cents.items() if owner != 7}
    assert th.payout(rest, pot=POT).cents[0] - scaled[0] > 1000


def test_the_exact_sum_would_give_an_owner_away(release):
    """Why nobody but the operator sees it: two released tables alike, and one owner's pay apart."""
    sums = [
        POT - th.private_payout(each, pot=POT).reserve
        for each in (release, replayed(release, OWNERS != 7))
    ]
    assert sums[0] - sums[1] == th.private_payout(release, pot=POT).cents[7] > 0


def test_pay_is_the_rate_times_what_is_not_clipped(release):
    found = th.private_payout(release, pot=POT)
    assert found.rate == POT / found.total
    for line in found.lines:
        value = math.fsum(release.values_of(line.owner).tolist()) * (1 - line.clipped)
        assert line.cents == math.floor(found.rate * max(value, 0.0))
        assert line.low <= line.cents + 1 <= line.high + 1
        assert 0 <= line.clipped <= 1


def test_the_reserve_takes_the_difference_and_nothing_is_scaled():
    release = released(epsilon=30.0)  # at 8 its total is refused as too uncertain
    found = th.private_payout(release, pot=POT, basis="total")
    assert found.reserve == POT - sum(found.cents.values())
    assert 0 < found.overshoot < POT / 4
    assert abs(found.reserve) < 0.3 * POT


def test_the_basis_of_gains_stays_below_the_pot_where_many_labels_are_wrong():
    """Half of the owners have random labels, so that many values are negative."""
    labels = Y.copy()
    poor = OWNERS % 2 == 0
    labels[poor] = np.random.default_rng(0).permutation(labels[poor])
    found = th.dp_tknn_shapley(
        X, labels, X_VAL, Y_VAL, owners=OWNERS, epsilon=30, delta=1e-4, seed=0,
        points_per_owner=40,
    )  # fmt: skip
    total, gains = (th.private_payout(found, pot=POT, basis=each) for each in ("total", "gains"))
    assert gains.rate < total.rate
    assert gains.reserve > 0 > total.reserve
    assert gains.public() == th.private_payout(found, pot=POT).public()  # which is what is paid by
    assert gains.ceiling == pytest.approx(POT)
    assert sum(total.cents.values()) < total.ceiling == total.public()["ceiling"]


@pytest.mark.parametrize("trees", [0, 8], ids=["radius", "leaves"])
@pytest.mark.parametrize("poor", [0, 10], ids=["right labels", "half of the owners careless"])
@pytest.mark.parametrize("basis", ["gains", "total"])
def test_all_pay_lies_between_the_public_ends(basis, poor, trees):
    """12 releases, each in one run outside with probability about 0.05: more than 4 of them with
    less than 0.001, and the seeds are fixed."""
    labels = Y.copy()
    careless = poor > OWNERS
    labels[careless] = np.random.default_rng(0).permutation(labels[careless])
    inside = []
    forest = public_forest(X_VAL, Y_VAL, trees=trees, leaves=4) if trees else None
    for seed in range(12):
        made = th.dp_tknn_shapley(
            X, labels, X_VAL, Y_VAL, owners=OWNERS, epsilon=100 if trees else 30, delta=1e-4, seed=seed,
            points_per_owner=40, forest=forest,
        )  # fmt: skip
        found = th.private_payout(made, pot=POT, basis=basis)
        public = found.public()
        inside.append(public["paid_low"] <= POT - found.reserve <= public["paid_high"])
        assert 0 <= public["paid_low"] < public["paid_high"]
        assert public["paid_high"] >= public["ceiling"]
        if trees:
            continue  # releases by leaves state no error, so the lower end cannot be paid
        later = th.private_payout(made, pot=POT, basis=basis, pay="lower")
        assert later.paid_low == 0.0, "how much is held back follows from the rows of owners"
    assert sum(inside) >= 8


def test_what_is_told_of_all_pay_is_the_table_times_prices(release):
    """The ends without noise: all owners alike, or wrong labels with owners of their own."""
    found = th.private_payout(release, pot=POT)
    design = release._design
    mean, draws = design.estimates(release.table)
    kept = design.kept_shares()
    for end, prices, side in (
        (found.paid_low, design.setting.entry_prices(release.price_list), -2),
        (found.paid_high, design.setting.gain_prices(release.price_list), 2),
    ):
        each = [math.fsum(row) for row in (draws * (prices * kept)).tolist()]
        middle = math.fsum((mean * prices * kept).tolist())
        spread = math.sqrt(math.fsum((one - middle) ** 2 for one in each) / len(each))
        assert end == pytest.approx(found.rate * max(middle + side * spread, 0.0))


@pytest.mark.parametrize("others", [1, 4, 30])
def test_the_game_among_alike_owners_is_exact(others):
    """One owner of any kind, and others who are all the same, near two validation points."""
    near, same = np.array([[7.0, 0.0]]), np.array([[5.0, 0.0]])
    table = same[0] + others * np.array([2.0, 3.0]), near[0] - same[0] + others * np.array([2, 1])
    games = OwnerGames(
        np.array([[7, *[4] * others], [0, *[4] * others]]),
        np.array([[5.0, *[2.0] * others], [0.0, *[3.0] * others]]), np.ones(2), 1 / 3,
    )  # fmt: skip
    wanted = np.zeros(others + 1)
    games.add_values("shapley", wanted)
    found = alike_values(near, same, table, others, 3)
    assert found[0] == pytest.approx(wanted[0], abs=1e-13)


def test_the_game_among_owners_is_close_to_the_exact_one_at_a_large_epsilon():
    """Owners of one size and kind: the order and the sizes of values are those of owner_shapley."""
    found = th.private_payout(released(epsilon=100.0), pot=POT, players="owners")
    exact = th.owner_shapley(X, Y, X_VAL, Y_VAL, owners=OWNERS).by_owner()
    paid = np.array([line.cents / (1 - line.clipped) for line in found.lines]) / found.rate
    wanted = np.array([exact[line.owner] for line in found.lines])
    assert np.corrcoef(paid, wanted)[0, 1] > 0.8
    assert abs(paid.sum() / wanted.sum() - 1) < 0.25


def test_the_lower_end_is_paid_now_and_the_rest_later(release):
    estimate, lower = (
        th.private_payout(release, pot=POT, pay=pay) for pay in ("estimate", "lower")
    )
    for one, other in zip(estimate.lines, lower.lines):
        assert other.cents == math.floor(other.low)
        assert other.cents + other.later == one.cents
    assert lower.reserve > estimate.reserve


def test_the_predicted_total_is_close_to_what_is_paid_for():
    release = released(epsilon=30.0)  # at 8 its total is refused as too uncertain
    found = th.private_payout(release, pot=POT, basis="total")
    paid_for = sum(
        math.fsum(release.values_of(line.owner).tolist()) * (1 - line.clipped)
        for line in found.lines
    )
    assert abs(paid_for / found.total - 1) < 0.3


def test_an_owner_whose_rows_all_count_for_nothing_is_paid_nothing():
    """The others are paid as without that owner, to the cent."""
    more = np.vstack([X, np.full((2, X.shape[1]), np.nan)])
    labels, owners = np.append(Y, Y[:2]), np.append(OWNERS, [77, 77])
    about = {"epsilon": 30, "delta": 1e-4, "seed": 0, "points_per_owner": 40}
    whole = th.dp_tknn_shapley(more, labels, X_VAL, Y_VAL, owners=owners, **about)
    paid = dict(th.private_payout(whole, pot=POT).cents)
    assert paid.pop(77) == 0
    assert paid == th.private_payout(released(epsilon=30.0), pot=POT).cents


def test_the_chance_of_a_wrong_order_is_the_operators(release):
    found = th.private_payout(release, pot=POT)
    ranked = sorted(found.lines, key=lambda line: -line.cents)
    near = found.wrong_order(ranked[0].owner, ranked[1].owner)
    far = found.wrong_order(ranked[0].owner, ranked[-1].owner)
    assert 0 <= far <= near <= 1
    assert "cents" not in found.public()
    assert "lines" not in found.public()


def test_an_owner_gets_a_file_of_its_own(release, tmp_path):
    found = th.private_payout(release, pot=POT)
    found.save_line(3, tmp_path / "three.json")
    document = json.loads((tmp_path / "three.json").read_text())
    assert document["line"]["cents"] == found.line(3).cents
    assert document["rate"] == found.rate
    assert (tmp_path / "three.json").stat().st_mode & 0o077 == 0
    text = json.dumps(document)
    assert str(found.cents[4]) not in text
    with pytest.raises(th.InputError, match="already exists"):
        found.save_line(3, tmp_path / "three.json")


def test_files_that_others_are_handed_have_the_same_bits_without_an_owner(release, tmp_path):
    """T11 over whole statements, their names included: the operator's alone differs."""
    names = np.array([f"clinic {owner}" for owner in OWNERS])
    here = replayed(release, slice(None), names)
    there = replayed(release, names != "clinic 7", names)
    for place, each in (("with", here), ("without", there)):
        paid = th.private_payout(each, pot=POT, pay="lower")
        shared = rows_in_common(each, 0.0)
        write_statements(paid, tmp_path / place, shared, page=False)
    one, other = (
        {path.relative_to(tmp_path / place): path.read_bytes()
         for path in (tmp_path / place).rglob("*.json")}
        for place in ("with", "without")
    )  # fmt: skip
    gone = {path for path in one if path not in other}
    assert [path.name for path in gone] == [file_name("clinic 7")]
    changed = {path.name for path in other if one[path] != other[path]}
    assert changed == {"operator.json"}
    assert (tmp_path / "with" / "owners").stat().st_mode & 0o077 == 0
    about = json.loads((tmp_path / "with" / "operator.json").read_text())
    assert about["reserve"] == POT - about["paid"]
    assert len(about["order"]) == 19
    assert all(0 <= pair["wrong"] <= 1 for pair in about["order"])


def test_statements_are_written_whole_or_not_at_all(release, tmp_path, monkeypatch):
    paid = th.private_payout(release, pot=POT)

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(type(paid), "save_line", fail)
        with pytest.raises(th.InputError, match="No space left"):
            write_statements(paid, tmp_path / "pay", page=False)
    assert not list(tmp_path.iterdir())
    write_statements(paid, tmp_path / "pay", page=False)
    with pytest.raises(th.InputError, match="choose a new folder"):
        write_statements(paid, tmp_path / "pay", page=False)


def test_the_command_writes_statements_and_refuses_before_it_charges(release, tmp_path, capsys):
    pytest.importorskip("jinja2")
    asked = PrivatePay(tmp_path / "pay", POT, "lower", "gains", "points", 0.0)
    asked.check("clinic", "table", plain=True)
    asked.write(release)
    words = capsys.readouterr().err
    assert f"ceiling {POT} of a pot of {POT}" in words
    assert sorted(path.name for path in (tmp_path / "pay").iterdir()) == [
        "operator.html", "operator.json", "owners", "public.json",
    ]  # fmt: skip
    assert len(list((tmp_path / "pay" / "owners").iterdir())) == 20
    with pytest.raises(th.InputError, match="choose a new folder.*nothing was charged"):
        asked.check("clinic", "table", plain=True)
    for wrong, message in (
        ({"statements": None}, "--statements and --pot-cents go together"),
        ({"pot": -5}, "at least 0, got -5"),
        ({"pot": 12.5}, "whole number of cents, .* got 12.5: 12.50 is 1250; nothing was charged"),
    ):
        with pytest.raises(th.InputError, match=message):
            replace(asked, **{"statements": tmp_path / "new"} | wrong).check(
                "clinic", "table", plain=True
            )
    with pytest.raises(th.InputError, match="needs --owner and --mechanism table"):
        replace(asked, statements=tmp_path / "new").check(None, "table", plain=True)
    game = replace(asked, statements=tmp_path / "new", players="owners")
    game.check("clinic", "table", plain=True)
    with pytest.raises(th.InputError, match="--players owners cannot be used with --kernel"):
        game.check("clinic", "table", plain=False)
    with pytest.raises(th.InputError, match="the release was written, but no statements"):
        asked.write(released(epsilon=0.01))
    nothing = PrivatePay(None, None, "estimate", "gains", "points", None)
    nothing.check(None, "paper", plain=False)
    nothing.write(None)
    for name, given in {
        "pay": "lower", "basis": "total", "players": "owners", "within": 0.0
    }.items():  # fmt: skip
        with pytest.raises(
            th.InputError, match=f"--{name} needs --statements.*nothing was charged"
        ):
            replace(nothing, **{name: given}).check("clinic", "table", plain=True)


def test_the_operators_page_shows_rows_in_common_and_what_they_were_paid(release):
    pytest.importorskip("jinja2")
    paid = th.private_payout(release, pot=POT)
    shared = (SharedRows(OWNERS[0].item(), OWNERS[1].item(), 3, 1),)
    text = render_statement(operator_page(paid, shared))
    assert "Rows that several owners have" in text
    assert f"{paid.cents[0] / 100:,.2f}" in text
    assert "chance of the other order" in text


def test_what_cannot_be_paid_by_is_refused(release):
    with pytest.raises(th.InputError, match="too uncertain to pay by"):
        th.private_payout(released(epsilon=0.01), pot=POT)
    alone = th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, epsilon=1, delta=1e-4, seed=0)
    with pytest.raises(th.InputError, match="the release has no owners"):
        th.private_payout(alone, pot=POT)
    with pytest.warns(th.ScaleWarning):
        unscaled = released(points_per_owner=None)
    with pytest.raises(th.InputError, match="too large to pay by: pass points_per_owner="):
        th.private_payout(unscaled, pot=POT)
    with pytest.raises(th.InputError, match="release must be a Release, got dict"):
        th.private_payout({}, pot=POT)
    targets = X[:, 0] + 0.1 * X[:, 1], X_VAL[:, 0] + 0.1 * X_VAL[:, 1]
    common = {"epsilon": 8, "delta": 1e-4, "seed": 0, "owners": OWNERS, "points_per_owner": 40}
    numbers = th.dp_tknn_shapley(
        X, targets[0], X_VAL, targets[1], task="regression", bounds=(-4, 4), **common
    )
    for other in (numbers, released(kernel="triangular"), released(semivalue="banzhaf")):
        with pytest.raises(th.InputError, match="players='owners' needs a release of classes"):
            th.private_payout(other, pot=POT, players="owners")
    baseline = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, epsilon=1, delta=1e-4, seed=0)
    with pytest.raises(th.InputError, match="the release has no owners"):
        th.private_payout(baseline, pot=POT)
    with pytest.raises(th.InputError, match="pay must be"):
        th.private_payout(release, pot=POT, pay="upper")
    with pytest.raises(th.InputError, match="basis must be"):
        th.private_payout(release, pot=POT, basis="most")
    with pytest.raises(th.InputError, match="pot must be an integer"):
        th.private_payout(release, pot=1.5)
    with pytest.raises(th.InputError, match="owner 99 has no points"):
        th.private_payout(release, pot=POT).line(99)
    with pytest.raises(th.InputError, match="values must be exact: pay a private release with"):
        th.payout(release, pot=POT)
