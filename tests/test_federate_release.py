"""From tasks to releases: what is agreed, charged, released, and what a liar can do."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import threading
import warnings

import numpy as np
import pytest
import waits

import thresher as th
from thresher.errors import BudgetError, InputError
from thresher.federate import primitives
from thresher.federate.round_release import Holding, exact_prices, exact_table, outcome
from thresher.privacy.accountants import gaussian_epsilon, gaussian_mu
from thresher.privacy.noise import Seeded

pytest.importorskip("cryptography")

federate = th.federate
NO_LEDGER = "ignore:no ledger was given:thresher.errors.ThresherWarning"
pytestmark = pytest.mark.filterwarnings(NO_LEDGER)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(700, 3))
Y = np.where(X[:, 0] + 0.3 * RANDOM.normal(size=700) > 0, "yes", "no")
X_VAL, Y_VAL, X, Y = X[:100], Y[:100], X[100:], Y[100:]
PARTS = np.array_split(np.arange(600), 3)
NAMES = ("north", "south", "west")
KEYS = {name: federate.Key(bytes([i + 1]) * 32) for i, name in enumerate(NAMES)}
OWN = federate.Key(b"c" * 32)
PUBLIC = {name: key.public for name, key in KEYS.items()}
TERMS = {"silos": PUBLIC, "key": OWN, "fewest": 3}


class Silence:
    """No noise at all."""

    def gaussian(self, sigma, size):
        return np.zeros(size, np.int64)


def make_task(**more):
    return federate.Task.create(X_VAL, Y_VAL, **{**TERMS, "epsilon": 1, "delta": 1e-6, **more})


@pytest.fixture(scope="module")
def task():
    return make_task()


def run(task, silos, leaving=()):
    """A round over HTTP; what the coordinator gets, and each silo, be it an error.

    Silos that are `leaving` refuse to upload: the others are then not kept waiting.
    """
    found = {}

    def keep(name, call):
        try:
            found[name] = call()
        except th.ThresherError as refused:
            found[name] = refused

    with federate.Coordinator(task, key=OWN) as c:
        calls = {name: lambda silo=silo: silo.join(c.url) for name, silo in silos.items()}
        calls["coordinator"] = c.run
        threads = {
            name: threading.Thread(target=keep, args=pair, daemon=True) for name, pair in
            ((name, (name, call)) for name, call in calls.items())
        }  # fmt: skip
        for thread in threads.values():
            thread.start()
        for name in leaving:
            threads[name].join(60)
        if leaving:
            with c._server.change:
                rest = len(silos) - len(leaving)
                c._server.change.wait_for(lambda: len(c._round.answered) == rest, 60)
                c._round.close()
                c._server.change.notify_all()
        waits.join(*threads.values())
    return found


def make_silos(task, **more):
    return {
        name: federate.Silo(
            X[part], Y[part], key=KEYS[name], approve=task, **{"ledger": None, **more}
        )
        for name, part in zip(NAMES, PARTS)
    }


@pytest.fixture(scope="module")
def plain(task):
    """A round without noise."""
    return run(task, make_silos(task, noise=Silence()))


def test_the_sum_is_the_table_of_all_points_together(task, plain):
    whole = Holding.of(task, X, Y).table(task)
    np.testing.assert_array_equal(plain["coordinator"].table, whole)
    for name in NAMES:
        np.testing.assert_array_equal(plain[name].table, whole)


def test_a_kernel_is_counted_in_rings_by_every_silo():
    about = {"kernel": "gaussian", "radius": 0.8}
    task = federate.Task.read(json.loads(json.dumps(make_task(**about).document())))
    found = run(task, make_silos(task, noise=Silence()))
    assert found["coordinator"].table.shape == (8, len(X_VAL))
    np.testing.assert_array_equal(found["coordinator"].table, Holding.of(task, X, Y).table(task))
    assert found["coordinator"].record["kernel"] == "gaussian"
    assert found["south"].price_list.kernel.name == "gaussian"
    assert task.plan(1000).rank_agreement > 0.8


def test_it_is_a_release_of_the_same_kind(task, plain, tmp_path):
    central = th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, epsilon=1, delta=1e-6, seed=0)
    release, mine = plain["coordinator"], plain["south"]
    assert isinstance(release, th.Release)
    assert set(central.record) <= set(release.record)
    assert len(release.values) == 0
    assert len(mine.values) == len(mine.error.low) == 200
    exact = th.tknn_shapley(X, Y, X_VAL, Y_VAL).values[PARTS[1]]
    assert np.corrcoef(mine.values, exact)[0, 1] > 0.98
    np.testing.assert_allclose(release.price_list.values(X[PARTS[1]], Y[PARTS[1]]), mine.values)
    release.save(tmp_path / "release.json")
    loaded = th.PriceList.load(tmp_path / "release.json")
    np.testing.assert_array_equal(loaded.gain, release.price_list.gain)
    mine.report(tmp_path / "page.html")
    assert "epsilon" in (tmp_path / "page.html").read_text()
    assert release.record["table_digest"] == mine.record["table_digest"]


def test_the_record_says_who_took_part_and_what_noise_there_is(task, plain):
    record = plain["coordinator"].record
    assert record["survivors"] == sorted(NAMES)
    assert record["task_digest"] == task.digest
    assert record["noise_excess"] == 1.5  # 3 / (3 - 1)
    assert record["sigma"] == pytest.approx(record["sigma_counted"] * math.sqrt(1.5))
    twice = gaussian_epsilon(2 * gaussian_mu(1.0, 1e-6), 1e-6)
    assert record["epsilon_two_silos"] == pytest.approx(twice, rel=1e-3)


def test_noise_is_that_of_all_survivors(task):
    """The share of each silo, three times: the variance within 5 deviations of its estimate."""
    found = [
        silo._contribution(task, silo._holding(task), bytes(32)) - silo._holding(task).table(task).ravel()
        for silo in make_silos(task, noise=Seeded(1)).values()
    ]  # fmt: skip
    noise = np.concatenate(found)
    assert abs(noise.var() / task.share_sigma**2 - 1) < 5 * math.sqrt(2 / noise.size)
    assert task.share_sigma**2 * 2 == pytest.approx(task.design.sigma**2)  # k - t = 2


def test_the_planned_error_includes_the_excess(task):
    assert task.design.excess == 1.5
    central = dataclasses.replace(task.design, excess=1.0)
    assert task.plan(600).record["sigma"] / central.record["sigma"] == pytest.approx(math.sqrt(1.5))
    assert task.plan(600).relative_error > 0


def test_each_ledger_is_charged_before_anything_is_drawn_or_counted(task, tmp_path, monkeypatch):
    order = []
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=2.0, delta=1e-6)
    charge, table = th.Ledger.charge, Holding.table

    class Drawing(Silence):
        def gaussian(self, sigma, size):
            order.append("noise")
            return super().gaussian(sigma, size)

    monkeypatch.setattr(th.Ledger, "charge", lambda *args: order.append("charge") or charge(*args))
    monkeypatch.setattr(Holding, "table", lambda *args: order.append("count") or table(*args))
    silo = federate.Silo(
        X[:50], Y[:50], key=KEYS["north"], approve=task, ledger=ledger, noise=Drawing()
    )
    silo._contribution(task, silo._holding(task), bytes(32))
    assert order == ["charge", "noise", "count"]
    assert ledger.spent().mu_squared == pytest.approx(gaussian_mu(1.0, 1e-6) ** 2, rel=1e-3)


def test_a_ledger_that_is_spent_sends_nothing_and_an_open_one_keeps_the_release(task, tmp_path):
    rich = th.Ledger.create(tmp_path / "rich.db", epsilon=3.0, delta=1e-6)
    poor = th.Ledger.create(tmp_path / "poor.db", epsilon=0.5, delta=1e-6)
    silos = make_silos(task, ledger=rich)
    silos["west"] = federate.Silo(
        X[PARTS[2]], Y[PARTS[2]], key=KEYS["west"], approve=task, ledger=poor
    )
    found = run(task, silos, leaving=["west"])
    assert isinstance(found["west"], BudgetError)
    assert "2 of 3 silos were left (upload)" in str(found["coordinator"])
    assert "nobody has learned a sum" in str(found["north"])
    assert len(poor) == 0
    assert len(rich) == 2  # charged though the round failed: a crash may waste, never leak
    solo = th.Ledger.create(tmp_path / "solo.db", epsilon=3.0, delta=1e-6)
    silos = make_silos(task) | {"north": make_silos(task, ledger=solo)["north"]}
    release = run(task, silos)["north"]
    assert release.record["ledger"]["entry"] == 1
    stored = solo.stored(f"federated round {release.record['round']}")
    assert stored["table"] == release.table.tolist()


def test_an_owners_ledger_refuses_points_and_a_silo_costs_what_its_points_do(task, tmp_path):
    owners = th.Ledger.create(tmp_path / "o.db", epsilon=9.0, delta=1e-6, unit="owner")
    silo = federate.Silo(X[:9], Y[:9], key=KEYS["north"], approve=task, ledger=owners)
    with pytest.raises(InputError, match="protects owners"):
        silo._contribution(task, silo._holding(task), bytes(32))
    whole = make_task(unit="silo", points_per_owner=200)
    silo = federate.Silo(X[:9], Y[:9], key=KEYS["north"], approve=whole, ledger=owners)
    silo._contribution(whole, silo._holding(whole), bytes(32))
    paid = whole.design.cost("add-remove", "point", "gaussian").mu_squared
    assert owners.spent().mu_squared == pytest.approx(paid)
    assert paid == pytest.approx(2 * gaussian_mu(1.0, 1e-6) ** 2, rel=1e-3)


def charged(task, folder, **terms):
    """The mu of the length that one silo's ledger of these terms is charged for."""
    ledger = th.Ledger.create(folder / "l.db", epsilon=90, delta=1e-6, **terms)
    owners = ["me"] * 9 if task.terms["unit"] == "owner" else None
    silo = federate.Silo(
        X[:9, :1], ["a"] * 9, key=KEYS["north"], approve=task, owners=owners, ledger=ledger
    )
    silo._charge(task, bytes(32))
    return math.sqrt(ledger.spent().mu_squared)


PLACES = [[0.0], [100.0], [100.0]]  # a point is near one validation point, two, or none
SOME = [(), ((0, "a"),), ((100, "a"),), ((0, "a"), (100, "b")), ((100, "a"),) * 3]
MANY = [((0, "a"),) * 1023, ((100, "a"),) * 723]
THEIRS = [((0, "a"),), ((100, "a"),), ((0, "b"), (100, "b")), *MANY]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("unit", ["owner", "silo"])
def test_a_patient_moves_the_sum_by_no_more_than_each_ledger_is_charged(unit, adjacency, tmp_path):
    """Every pair: some patient's points, in either of two silos, beside some points of others.

    A patient of one point is what a ledger of points protects. Others are one owner in each silo
    of a task that protects owners.
    """
    task = federate.Task.create(
        PLACES, ["a", "b", "a"], silos=PUBLIC, key=OWN, fewest=3, epsilon=1, delta=1e-6, unit=unit,
        metric="euclidean", radius=1.0, bound=1, points_per_owner=3, adjacency=adjacency,
    )  # fmt: skip

    def table(rows, patient):
        whose = ["other"] * len(rows) + ["patient"] * len(patient)
        places = [[float(place)] for place, _ in (*rows, *patient)] or np.empty((0, 1))
        owners = whose if unit == "owner" else None
        labels = [label for _, label in (*rows, *patient)]
        return Holding.of(task, places, labels, owners).table(task)

    mine = {(rows, who): table(rows, who) for rows in SOME for who in [(), *THEIRS]}
    moves = {"owner": [], "point": []}
    for here, there, old, new in itertools.product(SOME, SOME, THEIRS, [(), *THEIRS]):
        if (new == ()) != (adjacency == "add-remove"):
            continue
        same = mine[here, new] - mine[here, old]
        apart = mine[here, ()] - mine[here, old] + mine[there, new] - mine[there, ()]
        worst = max(float((same**2).sum()), float((apart**2).sum()))
        moves["owner"].append(worst)
        if len(old) == 1 and len(new) <= 1:
            moves["point"].append(worst)
    unclipped = task.design.scale**2 * task.design.bound
    for ledger, squares in moves.items():
        folder = tmp_path / ledger
        folder.mkdir()
        mu = charged(task, folder, unit=ledger, adjacency=adjacency)
        assert task.design.mu(math.sqrt(max(squares))) <= mu * (1 + 1e-9)
        if (unit, ledger, adjacency) == ("silo", "owner", "replace-one"):
            assert max(squares) > 7.9 * unclipped, "8 B is needed, and 6 B would be too little"
        if (unit, ledger, adjacency) == ("silo", "owner", "add-remove"):
            assert max(squares) > 1.9 * unclipped, "2 B is needed"


def test_a_task_of_silos_states_what_its_owners_lose():
    found = make_task(unit="silo", points_per_owner=200, adjacency="replace-one")
    record = found.record(found.design)
    delta, mu = 1e-6, gaussian_mu(1.0, 1e-6) / math.sqrt(2)  # of a squared length B
    for name, square in {
        "epsilon_add_remove": 1, "epsilon_replace_one": 2, "epsilon_add_remove_point": 2,
        "epsilon_replace_one_point": 6, "epsilon_add_remove_owner": 2,
        "epsilon_replace_one_owner": 8,
    }.items():  # fmt: skip
        want = gaussian_epsilon(mu * math.sqrt(square), delta)
        assert record[name] == pytest.approx(want, rel=1e-3), name
    assert record["unit"] == "silo"
    two = gaussian_epsilon(mu * math.sqrt(32), delta)  # two silos are left, and two joined
    assert found.epsilon_two_silos == pytest.approx(two, rel=1e-3)
    assert "epsilon_replace_one_owner" not in make_task().record(make_task().design)


@pytest.mark.parametrize("filter_", ["gaussian", "basic"])
def test_old_charges_of_silos_count_for_what_is_proved(filter_, tmp_path):
    """Older versions charged a ledger of owners for one replaced point of a silo, which is 6 B."""
    terms = {"unit": "owner", "adjacency": "replace-one", "filter": filter_}
    for unit, short in (("owner", False), ("silo", True)):
        task = make_task(unit=unit, points_per_owner=200)
        about = task.record(task.design) | {"unit": "owner"}
        ledger = th.Ledger.create(tmp_path / f"{unit}.db", epsilon=50, delta=1e-3, **terms)
        paid = task.design.cost("replace-one", "point" if short else "owner", filter_)
        ledger.charge("federated round 00", paid, about)
        if not short:
            assert ledger.spent() == paid
        elif filter_ == "gaussian":
            proved = task.design.cost("replace-one", "part", filter_)
            assert ledger.spent().mu_squared == pytest.approx(proved.mu_squared, rel=1e-8)
        else:
            proved = task.design.cost("replace-one", "part", filter_)
            assert ledger.spent().epsilon == pytest.approx(proved.epsilon, rel=1e-6)
            assert ledger.spent().epsilon >= proved.epsilon > paid.epsilon
    new = make_task(unit="silo", points_per_owner=200)
    ledger = th.Ledger.create(tmp_path / "new.db", epsilon=50, delta=1e-3, **terms)
    ledger.charge("x", new.design.cost("replace-one", "part", filter_), new.record(new.design))
    assert ledger.spent() == new.design.cost("replace-one", "part", filter_)


@pytest.mark.parametrize("unit", ["owner", "silo"])
def test_a_unit_is_clipped_as_a_whole(unit):
    task = make_task(unit=unit, points_per_owner=200)
    owners = None if unit == "silo" else ["me"] * 200
    holding = Holding.of(task, X[PARTS[0]], Y[PARTS[0]], owners)
    square = int((holding.table(task).astype(object) ** 2).sum())
    most = task.design.bound * task.design.scale**2
    assert 0.9 * most < square <= most
    assert "each " + unit in repr(task)


def test_a_silo_takes_part_in_the_task_it_approved_alone(task):
    other = make_task(epsilon=2)
    silo = federate.Silo(X[:9], Y[:9], key=KEYS["north"], approve=task.digest, ledger=None)
    assert silo.check(task) is task
    with pytest.raises(InputError, match="ask the other silos"):
        silo.check(other)
    owned = federate.Silo(
        X[:9], Y[:9], key=KEYS["north"], approve=task, owners=["a"] * 9, ledger=None
    )
    with pytest.raises(InputError, match="protects each point"):
        owned.check(task)


def changed(task, **more):
    document = json.loads(json.dumps(task.document()))
    document["terms"] |= more
    return document


def test_a_silo_has_a_ledger_or_says_that_it_has_none(task, tmp_path):
    own = {"key": KEYS["north"], "approve": task.digest}
    with pytest.raises(TypeError, match="ledger"):
        federate.Silo(X[:9], Y[:9], **own)
    silo = federate.Silo(X[:9], Y[:9], **own, ledger=None)
    with pytest.warns(th.errors.ThresherWarning, match="no ledger was given: nothing adds up"):
        silo.check(task)
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=3, delta=1e-6)
    exact = federate.Task.create_revealing_exact_counts(
        th.NeighborCounts(X_VAL, Y_VAL), silos=PUBLIC, key=OWN, fewest=3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert federate.Silo(X[:9], Y[:9], **own, ledger=ledger).check(task) is task
        open_ = {"key": KEYS["north"], "approve": exact, "reveal_exact_counts": True}
        assert federate.Silo(X[:9], Y[:9], **open_, ledger=None).check(exact) is exact


def test_a_changed_task_is_refused(task):
    document = json.loads(json.dumps(task.document()))
    again = federate.Task.read(document)
    assert again.digest == task.digest
    assert again.protocol == task.protocol
    for more in ({"epsilon": 9.0}, {"fewest": 2}, {"silos": {**PUBLIC, "west": OWN.public}}):
        with pytest.raises(InputError, match="signed|fewest|key"):
            federate.Task.read(changed(task, **more))
    for broken in (
        None,
        [],
        {},
        {"terms": 3},
        {**document, "signature": "00"},
        changed(task, reveals="all"),
    ):
        with pytest.raises(InputError):
            federate.Task.read(broken)
    other = make_task(radius=0.6).document()["validation"]
    assert federate.Task.read({**document, "validation": other}).digest == task.digest
    moved = federate.Task.create(-X_VAL, Y_VAL, **TERMS, epsilon=1, delta=1e-6)
    with pytest.raises(InputError, match="validation set is not the one"):
        federate.Task.read({**document, "validation": moved.document()["validation"]})


def test_a_task_that_states_less_noise_than_its_budget_needs_is_refused(task):
    terms = {**task.terms, "sigma": task.terms["sigma"] / 2}
    from thresher.federate.round_terms import terms_digest

    signature = primitives.sign(OWN.secret, b"task" + terms_digest(terms))
    with pytest.raises(InputError, match="does not have the noise that its budget needs"):
        federate.Task(terms, task.side, signature).check()


def test_names_are_numbered_alike_however_a_file_orders_them(task):
    terms = dict(task.terms) | {"silos": dict(reversed(task.terms["silos"].items()))}
    again = federate.Task(terms, task.side, task.signature)
    again.check()
    assert again.protocol == task.protocol


@pytest.mark.parametrize(
    "more",
    [{"fewest": 2}, {"colluding": 0}, {"silos": {"a": "00"}}, {"unit": "patient"},
     {"silos": {"a": OWN.public, "b": KEYS["west"].public, "c": KEYS["north"].public}}],
)  # fmt: skip
def test_a_task_that_is_unsafe_is_not_made(more):
    with pytest.raises(InputError):
        make_task(**more)


def test_exact_counts_are_revealed_only_by_name(tmp_path):
    near = th.NeighborCounts(X_VAL, Y_VAL)
    task = federate.Task.create_revealing_exact_counts(near, **TERMS)
    assert "reveals exact counts" in repr(task)
    task.save(tmp_path / "task.json")
    task = federate.Task.load(tmp_path / "task.json")
    with pytest.raises(InputError, match="everyone would learn exact counts"):
        make_silos(task)["north"].check(task)
    found = run(task, make_silos(task, reveal_exact_counts=True))
    exact = th.tknn_shapley(X, Y, X_VAL, Y_VAL).values
    for name, part in zip(NAMES, PARTS):
        np.testing.assert_allclose(found[name].values(X[part], Y[part]), exact[part], atol=1e-12)
    for flag in ("no", 1):
        with pytest.raises(InputError, match="reveal_exact_counts must be True or False, got"):
            make_silos(task, reveal_exact_counts=flag)
    ledger = th.Ledger.create(tmp_path / "l.db", epsilon=1e-3, delta=0)
    with pytest.raises(InputError, match="a ledger cannot be used with a task without noise"):
        make_silos(task, reveal_exact_counts=True, ledger=ledger)["north"].check(task)
    with pytest.raises(InputError, match="without points"):
        federate.Task.create_revealing_exact_counts(near.add(X[:3], Y[:3]), **TERMS)


def _near(kind):
    if kind == "kernel":
        return th.NeighborCounts(X_VAL, Y_VAL, radius=0.8, kernel="gaussian", rings=4)
    if kind == "leaves":
        forest = th.grow_forest(X_VAL, Y_VAL, trees=4, seed=0)
        return th.NeighborCounts(X_VAL, Y_VAL, forest=forest)
    return th.NeighborCounts(X_VAL, X_VAL[:, 0], task="regression", bounds=(-9, 9))


@pytest.mark.parametrize("kind", ["kernel", "leaves", "targets"])
def test_exact_counts_may_be_of_kernels_leaves_and_targets(kind):
    labels = X[:, 0] if kind == "targets" else Y
    task = federate.Task.create_revealing_exact_counts(_near(kind), **TERMS)
    task = federate.Task.read(json.loads(json.dumps(task.document())))
    tables = [exact_table(task, X[part], labels[part]) for part in PARTS]
    prices = exact_prices(task, sum(table.astype(np.int64) for table in tables).ravel())
    want = _near(kind).add(X, labels).price_list()
    np.testing.assert_array_equal(prices.table, want.table)
    assert task.protocol.entries == tables[0].size


def released(task, table):
    holding = Holding.none(task)
    return outcome(task, table.ravel(), [0, 1, 2], bytes(32), holding)


def test_a_large_lie_is_implausible_and_an_honest_sum_is_not(task, plain):
    honest = plain["coordinator"]
    assert federate.check_plausibility(honest, 600).is_plausible
    lie = released(task, honest.table + 64 * 1000)
    found = federate.check_plausibility(lie, 600)
    assert found.impossible == 100
    assert not found.is_plausible
    assert not federate.check_plausibility(honest, 60).is_plausible  # 600 points are not 60
    small = released(task, honest.table + 64 * 5)  # such a one is not found: stated
    assert federate.check_plausibility(small, 600).is_plausible


def test_keys_are_files_that_only_their_owner_can_read(tmp_path):
    key = federate.Key.create()
    key.save(tmp_path / "silo.key")
    assert (tmp_path / "silo.key").stat().st_mode & 0o777 == 0o600
    assert federate.Key.load(tmp_path / "silo.key") == key
    assert key.secret.hex() not in repr(key)
    with pytest.raises(InputError):
        federate.Key.create().save(tmp_path / "silo.key")  # a key is never replaced
    (tmp_path / "other").write_text("{}")
    with pytest.raises(InputError, match="format"):
        federate.Key.load(tmp_path / "other")
