"""The attack sees exactly what the public functions tell, finds who is there, and privacy stops it."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve
from tabular import thresher

import thresher as th
from thresher.attack import DPTKNN, KNN, TKNN, Recomputed
from thresher.attack.area import Roc
from thresher.attack.attacked_methods import Data
from thresher.attack.curves import neighbor_effect
from thresher.attack.membership import normal_ratios
from thresher.attack.oracles import list_scores
from thresher.attack.plots import plot_effect, plot_roc, save_roc
from thresher.privacy.accountants import gaussian_mu

LABELS = [0, 1, 2]
SMALL = {"members": 60, "nonmembers": 60, "shadow": 120, "shadow_sets": 8}


def experiment(rng, n=240, m=60, width=3, classes=2):
    X, V = rng.normal(size=(n, width)), rng.normal(size=(m, width))
    cuts = [0.0] if classes == 2 else [-0.5, 0.5]
    return X, np.digitize(X[:, 0], cuts), V, np.digitize(V[:, 0], cuts)


@pytest.mark.parametrize(
    ("target", "function"),
    [
        (TKNN(0.6), functools.partial(th.tknn_shapley, radius=0.6)),
        (TKNN(1.0, "euclidean", "banzhaf"),
         functools.partial(th.tknn_shapley, radius=1.0, metric="euclidean", semivalue="banzhaf")),
        (KNN(1), functools.partial(th.knn_shapley, k=1)),
        (KNN(4), functools.partial(th.knn_shapley, k=4)),
        (KNN(99), functools.partial(th.knn_shapley, k=99)),
        (KNN(3, "euclidean", "jia2019"),
         functools.partial(th.knn_shapley, k=3, metric="euclidean", utility="jia2019")),
    ],
    ids=lambda entry: None if isinstance(entry, functools.partial) else repr(entry),
)  # fmt: skip
@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("grid", [False, True], ids=["apart", "tied"])
def test_the_attacker_sees_what_the_public_function_tells(rng, target, function, twin, grid):
    X, y, V, y_val = experiment(rng, n=40, m=9, classes=3)
    if grid:  # many equal distances; members of one label where rows are equal
        X, V = np.round(X) + 0.25, np.round(V) + 0.75
        y, y_val = (np.digitize(A[:, 0], [-0.5, 0.5]) for A in (X, V))
    held, candidates = np.arange(20), np.arange(10, 34)
    fast = target.oracle(Data(X, y, V, y_val, LABELS), 0).values(held, candidates, twin=twin)
    slow = Recomputed(functools.partial(function, classes=LABELS)).oracle(Data(X, y, V, y_val), 0)
    want = slow.values(held, candidates, twin=twin)[:, 0]
    np.testing.assert_allclose(fast.sum(axis=1), want, atol=1e-12)


def test_crafted_points_differ_only_if_somebody_is_there(rng):
    X, y, V, y_val = experiment(rng, n=80)
    held, candidates = np.arange(40), np.arange(80)
    scores = KNN(3).oracle(Data(X, y, V, y_val), 0).strong_scores(held, candidates)
    assert (scores[40:] == 0).all()
    assert (scores[:40] > 0).all()
    # the same by the public function, for a point of the other label moved by a hair
    for row, there in ((0, True), (50, False)):
        hair = 1e-7 * rng.normal(size=3)
        values = [
            th.knn_shapley(np.vstack([X[:40], X[row] + move]), np.append(y[:40], 1 - y[row]), V, y_val,
                           k=3).values[-1]
            for move in (hair, -hair)
        ]  # fmt: skip
        assert (abs(values[0] - values[1]) > 1e-9) == there


def test_up_to_rank_k_nobody_is_found(rng):
    """Values differ by rounding alone, which is not told apart from nothing."""
    data = experiment(rng, n=160)
    few = {"members": 40, "nonmembers": 40, "shadow": 80, "shadow_sets": 4}
    for utility in ("soft-label", "jia2019"):
        attack = th.membership_attack(*data, against=KNN(1000, "euclidean", utility), **few)
        assert attack.rocs["strong"].auroc == 0.5


def test_one_class_has_no_prices_to_tell_anything(rng):
    X, _, V, _ = experiment(rng)
    attack = th.membership_attack(X, [1] * len(X), V, [1] * len(V), **SMALL)
    assert attack.rocs["strong"].auroc == attack.rocs["paper"].auroc == 0.5


def test_private_targets_take_their_classes_from_the_validation_set(rng):
    X, y, V, y_val = experiment(rng)
    y[0] = 7
    with pytest.raises(th.InputError, match="y has labels not in classes in row 0"):
        th.membership_attack(X, y, V, y_val, against=DPTKNN(1, 1e-4), **SMALL)


def test_a_list_of_candidates_gives_everybody_away(rng):
    """As many independent equations as unknowns, and no noise."""
    vectors = rng.integers(0, 2, (50, 80)).astype(float)
    there = rng.random(50) < 0.5
    scores = list_scores(vectors, vectors[there].sum(axis=0), int(there.sum()), 0.0)
    np.testing.assert_allclose(scores, there, atol=1e-3)


def test_noise_is_taken_into_account(rng):
    """With noise beyond all measure nothing is known but the share of members."""
    vectors = rng.integers(0, 2, (50, 80)).astype(float)
    scores = list_scores(vectors, rng.normal(size=80) * 1e3, 25, 1e12)
    np.testing.assert_allclose(scores, 0.5, atol=1e-3)


@pytest.mark.parametrize("target", [TKNN(0.5), KNN(5)], ids=repr)
def test_exact_values_tell_who_is_there(rng, target):
    attack = th.membership_attack(*experiment(rng, m=150), against=target, **SMALL)
    assert attack.rocs["strong"].auroc > 0.95
    assert attack.rocs["strong"].auroc > attack.rocs["paper"].auroc
    assert int(attack.is_member.sum()) == 60


def test_a_twin_makes_a_copy_worth_less(rng):
    """Which is what the paper's attack lives on: IN and OUT values must not be mixed up."""
    X, y, V, y_val = experiment(rng)
    oracle = TKNN(0.5).oracle(Data(X, y, V, y_val), 0)
    held, candidates = np.arange(60), np.arange(60, 120)
    alone, beside = (oracle.values(held, candidates, twin=twin) for twin in (False, True))
    assert (np.abs(beside) <= np.abs(alone)).all()
    assert (np.abs(beside) < np.abs(alone)).any()


@pytest.mark.parametrize("mechanism", ["table", "paper", "cells"])
def test_private_values_do_not(rng, mechanism):
    """No attack on a mu-GDP release has an AUROC above Phi(mu / sqrt 2); cells are epsilon-DP, thus
    mu-GDP with a larger mu. Four standard errors of 60 + 60 points: one false alarm in 30,000."""
    target = DPTKNN(0.5, 0.0 if mechanism == "cells" else 1e-4, mechanism)
    attack = th.membership_attack(*experiment(rng, m=40), against=target, **SMALL)
    mu = (
        gaussian_mu(0.5, 1e-4)
        if mechanism != "cells"
        else 2 * norm.ppf(np.exp(0.5) / (1 + np.exp(0.5)))
    )
    for roc in attack.rocs.values():
        assert roc.auroc < norm.cdf(mu / 2**0.5) + 4 * roc.standard_error


def test_out_of_reach_nothing_is_known(rng):
    X, y, V, y_val = experiment(rng)
    attack = th.membership_attack(X, y, V, y_val, against=TKNN(1e-9, "euclidean"), **SMALL)
    assert attack.summary()["paper"]["auroc"] == 0.5
    assert attack.summary()["strong"]["auroc"] == 0.5


def test_the_same_seed_gives_the_same_attack(rng):
    data = experiment(rng)
    for target in (TKNN(), DPTKNN(1, 1e-4, "paper")):
        one, same, other = (
            th.membership_attack(*data, against=target, seed=s, **SMALL) for s in (1, 1, 2)
        )
        assert one.scores["paper"].tolist() == same.scores["paper"].tolist()
        assert one.candidates.tolist() == same.candidates.tolist()
        assert one.candidates.tolist() != other.candidates.tolist()


def test_any_function_can_be_attacked(rng):
    """Slowly, and with the scores of the fast way."""
    data = experiment(rng, n=40, m=10)
    few = {"members": 8, "nonmembers": 8, "shadow": 16, "shadow_sets": 3}
    slow = th.membership_attack(
        *data, against=Recomputed(functools.partial(th.tknn_shapley, classes=[0, 1])), **few
    )
    fast = th.membership_attack(*data, against=TKNN(), **few)
    np.testing.assert_allclose(slow.scores["paper"], fast.scores["paper"], rtol=1e-6)
    assert list(slow.scores) == ["paper"]


def test_ratios_are_those_of_two_normal_distributions(rng):
    tables, inside = rng.normal(size=(40, 5)), rng.random((40, 5)) < 0.4
    told = rng.normal(size=5)
    ratios = normal_ratios(told, tables, inside)
    for c in range(5):
        laws = [tables[inside[:, c] == side, c] for side in (True, False)]
        want = [norm.logpdf(told[c], law.mean(), law.std(ddof=1)) for law in laws]
        assert ratios[c] == pytest.approx(want[0] - want[1], rel=1e-6)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_curves_equal_those_of_scikit_learn(inside, outside):
    roc = Roc.of(np.array(inside, float), np.array(outside, float))
    truth, scores = [1] * len(inside) + [0] * len(outside), inside + outside
    assert roc.auroc == pytest.approx(roc_auc_score(truth, scores))
    fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
    np.testing.assert_allclose(roc.fpr, fpr, atol=1e-12)
    np.testing.assert_allclose(roc.tpr, tpr, atol=1e-12)
    assert roc.tpr_at(0.0) == pytest.approx(max(tpr[fpr == 0]))
    assert roc.tpr_at(1.0) == 1


def test_the_error_of_the_area_is_its_spread():
    """400 repetitions: the spread has a relative deviation of 3.5 %; beyond 20 % is one in 10^7."""
    rng = np.random.default_rng(0)
    found = [Roc.of(rng.normal(0.5, 1, 60), rng.normal(0, 1, 40)) for _ in range(400)]
    spread = np.std([roc.auroc for roc in found], ddof=1)
    assert np.mean([roc.standard_error for roc in found]) == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize("utility", ["soft-label", "jia2019"])
def test_the_effect_of_a_neighbor(rng, utility):
    X, y, V, y_val = experiment(rng, n=50, m=20)
    X[8] = X[7] + 1e-6
    effect = neighbor_effect(X, y, V, y_val, point=7, utility=utility)
    assert (effect.neighbor, effect.grid.tolist()) == (8, list(range(1, 16)))
    kept = np.delete(np.arange(50), 8)
    for k, beside, alone in zip(range(1, 16), effect.beside, effect.alone):
        assert beside == th.knn_shapley(X, y, V, y_val, k=k, utility=utility).values[7]
        assert alone == th.knn_shapley(X[kept], y[kept], V, y_val, k=k, utility=utility).values[7]
    assert (effect.beside != effect.alone).any()


def test_the_effect_of_a_neighbor_by_radius(rng):
    X, y, V, y_val = experiment(rng, n=50, m=20)
    effect = neighbor_effect(X, list(y), V, list(y_val), point=49, over="radius", grid=[0.2, 0.7])
    assert effect.beside[1] == th.tknn_shapley(X, y, V, y_val, radius=0.7).values[49]
    with pytest.raises(
        th.InputError, match="point must be a row number of X, which has 50 rows, got 50"
    ):
        neighbor_effect(X, y, V, y_val, point=50)
    with pytest.raises(th.InputError, match="k must be an integer >= 1, got 1.5"):
        neighbor_effect(X, y, V, y_val, point=1, grid=[1.5])
    pairs = [[("class", int(c)) for c in labels] for labels in (y, y_val)]
    named = neighbor_effect(X, pairs[0], V, pairs[1], point=49, over="radius", grid=[0.2, 0.7])
    assert named.alone.tolist() == effect.alone.tolist()
    with pytest.raises(th.InputError, match="over must be one of 'k', 'radius'"):
        neighbor_effect(X, y, V, y_val, point=1, over="time")


def test_figures(rng, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is installed by the extra plot")
    data = experiment(rng)
    attack = th.membership_attack(*data, **SMALL)
    lines = plot_roc(attack).get_lines()
    assert [line.get_label()[:6] for line in lines] == ["paper:", "strong", "guessi"]
    save_roc(attack, tmp_path / "roc.svg")
    assert (
        "false-positive rate" in (tmp_path / "roc.svg").read_text()
        or (tmp_path / "roc.svg").stat().st_size > 5000
    )
    effect = neighbor_effect(*data, point=3)
    assert len(plot_effect(effect).get_lines()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"members": 0}, "members must be an integer >= 2, got 0"),
        ({"members": 130}, "shadow must be at least members.*got 120 and 130"),
        ({"against": "knn"}, "against must be one of thresher.attack.TKNN.*got 'knn'"),
        ({"shadow": 900}, "X has 240 rows, but members \\+ nonmembers \\+ shadow is 1020"),
        ({"shadow_sets": 1}, "shadow_sets must be an integer >= 2, got 1"),
        ({"against": TKNN(-1)}, "radius must be a number >= 0"),
        ({"against": KNN(0)}, "k must be an integer >= 1"),
        ({"against": KNN(utility="best")}, "utility must be one of"),
        (
            {"against": Recomputed(th.tknn_shapley), "classes": [0, 1]},
            "classes cannot be used with Recomputed",
        ),
        ({"against": DPTKNN(0, 1e-4)}, "epsilon must be"),
        ({"against": DPTKNN(1, 1e-4, "tables")}, "mechanism must be one of"),
    ],
)
def test_bad_arguments_are_named(rng, arguments, message):
    with pytest.raises(th.InputError, match=message):
        th.membership_attack(*experiment(rng), **(SMALL | arguments))


def test_scores_must_be_numbers():
    with pytest.raises(th.InputError, match="scores must be finite"):
        Roc.of(np.array([np.nan]), np.array([0.0]))


def test_the_command(rng, tmp_path, run_command):
    X, y, _, _ = experiment(rng, n=400)
    np.savez(tmp_path / "points.npz", X=X, y=y)
    sizes = ["--members", "60", "--nonmembers", "60", "--shadow", "120", "--held-out", "100"]
    done = run_command(
        "attack", str(tmp_path / "points.npz"), *sizes, "--plot", str(tmp_path / "r.svg")
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["attacks"]["strong"]["auroc"] > 0.9
    assert "of members found at 1 % false alarms" in done.stderr
    assert (tmp_path / "r.svg").exists()
    refused = run_command("attack", str(tmp_path / "points.npz"), "--method", "magic")
    assert refused.returncode == 1
    assert "--method must be one of 'tknn', 'knn', 'dp-tknn', got 'magic'" in refused.stderr


@pytest.mark.parametrize("cells", [("u", "v"), ("", "1")])
def test_the_command_names_columns_without_numbers(tmp_path, run_command, cells):
    for name, column in (("odd", cells), ("even", ("0", "1"))):
        rows = [f"{i},{column[i % 2]},{i % 2}" for i in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,c,y", *rows]))
    odd, even = str(tmp_path / "odd.csv"), str(tmp_path / "even.csv")
    for done in (run_command("attack", odd), run_command("attack", even, "--validation", odd)):
        assert done.returncode == 1
        assert f"{odd} has cells in column 'c' that are missing or not numbers" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--k 5", "--k 5 needs --method knn; without that, leave --k out"),
        ("--method dp-tknn --k 1", "--k 1 needs --method knn"),
        ("--method knn --radius 0.5", "--radius 0.5 needs --method tknn or dp-tknn"),
        (
            "--method dp-tknn --mechanism cells --delta 1e-4",
            "--delta 0.0001 needs --mechanism table or paper; without that, leave --delta out",
        ),
        ("--validation p.npz --held-out 200", "--held-out cannot be used with --validation"),
    ],
)
def test_options_of_another_method_are_refused(arguments, message):
    done = thresher("attack", "p.npz", *arguments.split())
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plot", "x.xyz"], "the file of a figure must end in .svg, .png or .pdf, got x.xyz"),
        (
            ["--plot", "/nowhere/x.svg"],
            "cannot write /nowhere/x.svg: the folder /nowhere does not exist",
        ),
        (["--seed", "-1"], "--seed must be an integer >= 0, got -1"),
        (["--held-out", "500"], "--held-out must be less than the 300 rows of the table, got 500"),
        (["--epsilon", "1"], "--epsilon 1.0 needs --method dp-tknn; without that, leave --epsilon"),
        (["--metric", "precomputed"], "--metric must be one of 'cosine', 'euclidean'"),
        (["--held-out", "50", "--members", "500"], "--shadow must be at least --members, as sets"),
        (
            ["--held-out", "50"],
            "there are 250 rows, but --members + --nonmembers + --shadow is 800: ask for fewer",
        ),
    ],
)
def test_the_command_refuses_in_one_line(rng, tmp_path, run_command, arguments, message):
    X, y, _, _ = experiment(rng, n=300)
    np.savez(tmp_path / "points.npz", X=X, y=y)
    done = run_command("attack", str(tmp_path / "points.npz"), *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
