"""The ledger: its terms, charges and releases, in real files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from ledgers import make, raw

from thresher.errors import BudgetError, InputError
from thresher.privacy import chain as chain_module
from thresher.privacy.accountants import Cost, gaussian_mu
from thresher.privacy.cap import Units
from thresher.privacy.chain import Chain
from thresher.privacy.ledger import Ledger, Receipt


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


# --- terms


def test_a_new_ledger_has_its_terms_and_nothing_spent(path):
    made = Ledger.create(
        path, epsilon=1, delta=1e-6, adjacency="replace-one", unit="owner", data_set="clinic"
    )
    for ledger in (made, Ledger.open(path), Ledger.open(str(path))):
        assert (ledger.epsilon, ledger.delta) == (1.0, 1e-6)
        assert (ledger.adjacency, ledger.unit, ledger.data_set) == (
            "replace-one",
            "owner",
            "clinic",
        )
        assert ledger.path == path.resolve()
        assert ledger.spent() == Cost()
        assert ledger.remaining() == 1.0
        assert len(ledger) == 0
        assert ledger  # length 0, yet there
        assert repr(ledger) == "Ledger(ledger.db, epsilon=1, delta=1e-06, replace-one, owner)"
        with pytest.raises(AttributeError):
            ledger.epsilon = 2.0
    assert {file.name for file in path.parent.iterdir()} == {"ledger.db", "ledger.db.witness"}


def test_a_ledger_is_not_called_but_opened_or_created(path):
    with pytest.raises(InputError, match=r"got 'l.db': Ledger.open\(path\) .* Ledger.create\(path"):
        Ledger("l.db")


@pytest.mark.parametrize(
    ("terms", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": -1e-9}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"adjacency": "both"}, "adjacency"),
        ({"unit": "row"}, "unit"),
        ({"data_set": 7}, "data_set"),
    ],
)
def test_terms_that_cannot_be_are_refused_by_name_and_leave_no_file(path, terms, name):
    with pytest.raises(InputError, match=f"{name} must be"):
        Ledger.create(path, **{"epsilon": 1.0, "delta": 1e-6, **terms})
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("wrong", ["", None, 7, b"ledger.db"])
def test_a_path_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match="path must be"):
        make(wrong)
    with pytest.raises(InputError, match="path must be"):
        Ledger.open(wrong)


def test_a_ledger_is_created_once(path):
    make(path).charge("a", Cost(epsilon=0.5), {})
    with pytest.raises(
        InputError, match=r"already exists, and its cap can never change: use Ledger\.open"
    ):
        make(path, epsilon=9)
    assert Ledger.open(path).spent() == Cost(epsilon=0.5)
    with pytest.raises(InputError, match="folder does not exist"):
        make(path.parent / "nowhere" / "ledger.db")


def test_a_creation_that_fails_leaves_nothing(path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(chain_module, "put", fail)
    with pytest.raises(InputError, match="cannot create .*disk full"):
        make(path)
    assert list(path.parent.iterdir()) == []


def test_a_file_system_without_links_will_do(path, monkeypatch):
    def refuse(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    make(path).charge("a", Cost(epsilon=0.5), {})
    with pytest.raises(InputError, match="already exists"):
        make(path)
    assert Ledger.open(path).verify().entries == 2


def test_what_is_no_ledger_is_not_opened_and_not_changed(path):
    with pytest.raises(InputError, match=r"there is no ledger .*: Ledger\.create makes a new one"):
        Ledger.open(path)
    for content in (b"", b"not a ledger, but long enough to be taken for a file of some kind" * 99):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not a ledger|not a database"):
            Ledger.open(path)
        assert path.read_bytes() == content
    path.unlink()
    raw(path, "PRAGMA journal_mode = WAL", "CREATE TABLE entry (seq)")
    content = path.read_bytes()
    with pytest.raises(InputError, match="is not a ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_a_ledger_of_another_format_is_not_opened(path):
    Chain.create(path, "cap", {"format": "thresher.ledger/2"})
    with pytest.raises(InputError, match="is not a ledger of the format thresher.ledger/1"):
        Ledger.open(path)


def test_a_closed_ledger_is_closed(path):
    with make(path) as ledger:
        ledger.charge("a", Cost(epsilon=0.1), {})
    with pytest.raises(InputError, match="is closed"):
        ledger.spent()
    assert repr(ledger).startswith("Ledger(ledger.db")
    ledger.close()


# --- charges and releases


def test_the_charge_is_durable_before_noise_is_drawn(path):
    ledger = make(path)

    def draw(receipt):
        other = Ledger.open(path)
        assert other.spent() == Cost(epsilon=0.25)
        assert other.stored("a") is None
        assert other.verify(head=receipt.head).head == receipt.head
        return {"seq": receipt.seq}

    assert ledger.release("a", Cost(epsilon=0.25), {"version": "1"}, draw) == ({"seq": 1}, True)


def test_a_commit_waits_for_the_disk(path):
    with make(path)._chain()._connected() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_the_same_request_gets_the_same_answer_free(path):
    ledger = make(path)
    cost, answers = Cost(epsilon=0.4), iter([{"a": (1, 2.5)}, {"a": (3, 4.5)}])
    first = ledger.release("a", cost, {}, lambda _: next(answers))
    assert first == ({"a": [1, 2.5]}, True)
    for _ in range(3):
        assert Ledger.open(path).release("a", cost, {}, lambda _: next(answers)) == (
            first[0],
            False,
        )
    assert len(ledger) == 1
    assert ledger.stored("a") == first[0]
    assert ledger.stored("b") is None
    assert ledger.release("b", cost, {}, lambda _: next(answers)) == ({"a": [3, 4.5]}, True)
    assert ledger.spent() == Cost(epsilon=0.8)


def test_what_does_not_fit_is_refused_with_the_ways_out_and_costs_nothing(path):
    ledger = make(path, data_set="clinic")
    ledger.charge("a", Cost(epsilon=0.8), {})
    before = path.read_bytes()
    drawn = []
    with pytest.raises(BudgetError) as refused:
        ledger.release("b", Cost(epsilon=0.5), {}, drawn.append)
    assert str(refused.value) == (
        "a release of epsilon=0.5 does not fit: the ledger of 'clinic' has epsilon=0.2 of 1.0 left, "
        "delta=0 of 0; ask for a smaller epsilon, or protect new data with a new ledger"
    )
    assert drawn == []
    assert path.read_bytes() == before
    ledger.charge("b", Cost(epsilon=0.2), {})
    assert ledger.remaining() == 0.0
    with pytest.raises(BudgetError, match="; the budget is spent: protect new data with a new led"):
        ledger.charge("c", Cost(epsilon=0.1), {})


def test_a_refusal_leads_with_what_was_asked_for(path):
    ledger = make(path, delta=1e-6)
    cost = Cost(mu_squared=gaussian_mu(1.0, 1e-5) ** 2)
    about = {"epsilon": 1.0, "delta": 1e-5, "mechanism": "table", "adjacency": ledger.adjacency}
    with pytest.raises(BudgetError) as refused:
        ledger.charge("a", cost, about)
    assert str(refused.value) == (
        "a release of epsilon=1 does not fit: that is at delta=1e-05, but the ledger counts at "
        "1e-06; so it counts as epsilon=1.1436, and the ledger of ledger.db has epsilon=1.0 of 1.0 "
        "left at delta=1e-06; ask for a smaller epsilon, or protect new data with a new ledger"
    )


def test_a_refusal_speaks_of_gaussian_noise_in_epsilons(path):
    ledger = make(path, delta=1e-6)
    ledger.charge("a", Cost(mu_squared=gaussian_mu(0.8, 1e-6) ** 2), {})
    left = ledger.remaining()
    with pytest.raises(
        BudgetError, match=rf"epsilon=0\.7 does not .* ledger\.db has epsilon={left} of 1\.0"
    ):
        ledger.charge("b", Cost(mu_squared=gaussian_mu(0.7, 1e-6) ** 2), {})
    with pytest.raises(BudgetError, match="sampled release does not fit .* filter='basic'"):
        ledger.charge("b", Cost(epsilon=0.5, delta=1e-6), {})
    assert len(ledger) == 1


def test_a_basic_filter_takes_no_gaussian_costs_and_adds_up_pairs(path):
    ledger = make(path, delta=1e-6, filter="basic")
    with pytest.raises(BudgetError, match="Gaussian cost does not fit .* filter='gaussian'"):
        ledger.charge("a", Cost(mu_squared=1e-9), {})
    ledger.charge("a", Cost(epsilon=0.5, delta=6e-7), {})
    with pytest.raises(BudgetError, match="epsilon=0.25 and delta=6e-07 .* delta=4e-07 of 1e-06"):
        ledger.charge("b", Cost(epsilon=0.25, delta=6e-7), {})
    ledger.charge("b", Cost(epsilon=0.5, delta=4e-7), {})
    assert ledger.remaining() == 0.0


def test_the_filter_is_fixed_at_creation(path):
    assert make(path).filter == "basic"  # its delta is 0
    assert make(path.with_name("other.db"), delta=1e-6).filter == "gaussian"
    with pytest.raises(InputError, match="filter must be 'basic' if delta is 0"):
        make(path.with_name("third.db"), filter="gaussian")
    with pytest.raises(InputError, match="filter must be one of"):
        make(path.with_name("third.db"), filter="odometer")


@pytest.mark.parametrize("part", ["mu_squared", "epsilon", "delta"])
@pytest.mark.parametrize("wrong", [-1e-9, math.nan, math.inf, "1", None])
def test_costs_that_cannot_be_are_refused(path, part, wrong):
    with pytest.raises(InputError, match=rf"cost\.{part} must be a number"):
        Units.of(Cost(**{part: wrong}))


def test_arguments_that_a_ledger_cannot_hold_are_refused(path):
    ledger, cost = make(path), Cost(epsilon=0.1)
    for request in ("", None, 7):
        with pytest.raises(InputError, match="request must be a non-empty string"):
            ledger.release(request, cost, {}, dict)
    with pytest.raises(InputError, match="surrogates not allowed"):
        ledger.charge("\ud800", cost, {})
    with pytest.raises(InputError, match="cost must be a Cost, got 1"):
        ledger.charge("a", 1, {})
    for about in ({"a": math.nan}, {"a": {1}}):
        with pytest.raises(InputError, match="a ledger holds JSON only"):
            ledger.charge("a", cost, about)
    assert len(ledger) == 0


def test_a_release_is_stored_for_its_own_charge_only(path):
    ledger, cost = make(path), Cost(epsilon=0.1)
    mine, other = ledger.charge("a", cost, {}), ledger.charge("b", cost, {})
    for receipt in (other, Receipt(mine.seq, other.head), Receipt(0, mine.head), Receipt(9, "")):
        with pytest.raises(InputError, match="does not belong to request 'a'"):
            ledger.complete("a", receipt, {})
    assert ledger.complete("a", mine, {"n": 1}) == {"n": 1}
    assert ledger.complete("a", mine, {"n": 2}) == {"n": 1}


def test_noise_that_could_not_be_drawn_is_paid_for(path):
    ledger = make(path)

    def fail(receipt):
        raise RuntimeError("out of entropy")

    for times in (1, 2):
        with pytest.raises(RuntimeError, match="entropy"):
            ledger.release("a", Cost(epsilon=0.3), {}, fail)
        assert len(ledger) == times
    assert ledger.release("a", Cost(epsilon=0.3), {}, lambda _: {"n": 1}) == ({"n": 1}, True)
    assert ledger.spent() == Cost(epsilon=0.9)


def test_entries_are_shown_in_order(path):
    ledger = make(path, data_set="clinic")
    ledger.release("a", Cost(epsilon=0.25, delta=0.0), {"sigma": 2}, lambda _: {"n": 1})
    cap, charge, release = ledger.entries()
    assert [entry["kind"] for entry in (cap, charge, release)] == ["cap", "charge", "release"]
    assert [entry["seq"] for entry in (cap, charge, release)] == [0, 1, 2]
    assert cap["about"]["format"] == "thresher.ledger/1"
    assert (charge["request"], charge["cost"], charge["about"]) == (
        "a",
        Cost(epsilon=0.25),
        {"sigma": 2},
    )
    assert (release["cost"], release["about"]["charge"]) == (None, 1)
    assert all(entry["time"].endswith("+00:00") for entry in (cap, charge, release))


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "no/folder/ledger.db"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="cannot create|path must be"):
        make(str(tmp_path / name))


@pytest.mark.parametrize("path", ["/", "/..", "//"])
def test_a_path_that_names_no_file_is_refused(path):
    for use in (Ledger.open, lambda path: Ledger.create(path, epsilon=1, delta=0)):
        with pytest.raises(InputError, match=f"path must be the name of a file, got '{path}'"):
            use(path)
