"""What members of a market see of an owner, together: the noisy table, and nothing else.

Two markets differ in one thing: the rows of one owner, the victim, are there or are empty. If the
noisy table comes out the same in both, every byte that the others see must be the same. What the
table itself tells is audited against the claimed epsilon.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from fastapi.testclient import TestClient
from market_cases import made_up, terms
from market_world import World
from sqlalchemy import select
from test_market_access import ROWS

import thresher as th
from thresher.market import settlement, uploads
from thresher.market.app import create_app
from thresher.market.guards import Limits
from thresher.market.market import Market
from thresher.market.questions import Question, Rows
from thresher.market.settlement import compute, lines_of
from thresher.market.tables import Upload
from thresher.market.workers import work_once
from thresher.payouts.private import PrivatePayout
from thresher.privacy import chain, dp_tknn, entries
from thresher.privacy.table_design import TableDesign

COLLUDING = ("buyer", "owner", "other_owner", "auditor")  # everybody but victim and operator
VICTIM = "suspended"  # the third owner of `World`


class Stopped(datetime):
    """A clock that stands still, for the ledger."""

    @classmethod
    def now(cls, tz=UTC):
        return cls(2027, 1, 1, tzinfo=tz)


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A market with a closed task, before it is settled."""
    made = World(tmp_path_factory.mktemp("market"), settled=False)
    made.market.close()
    return made


def settled(world, folder, *, empty):
    """A copy of the market, settled with the victim's rows or without them."""
    shutil.copytree(world.market.folder, folder)
    market = Market.open(folder)
    if empty:
        theirs = select(Upload).where(Upload.owner == world.members[VICTIM].id)
        with market.database.writing() as session:
            for upload in session.scalars(theirs):
                upload.packed = None
    assert work_once(market, "worker")
    return market


def views(world, market):
    """All that the colluding members can read, by member and route."""
    limits, found = Limits(rate=1e6, burst=10**6), {}
    with TestClient(create_app(market, limits=limits, working=False)) as client:
        for method, path, state, *_ in ROWS:
            for caller in COLLUDING if method == "GET" else ():
                got = world.ask(client, method, path, state, caller)
                found[caller, path, state] = got.status_code, got.content
    return found


def differences(world, folder):
    """The routes that tell two markets apart although their noisy tables are the same."""
    measured, measure, source = [], TableDesign.measure, dp_tknn.noise_source

    def same_counts(self, contributions, source):
        measured.append(measure(self, contributions, source))
        return measured[0]

    found = []
    for empty in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dp_tknn, "noise_source", lambda _: source(3))
            patch.setattr(TableDesign, "measure", same_counts)
            patch.setattr(entries, "datetime", Stopped)
            patch.setattr(chain, "secrets", SimpleNamespace(token_hex=lambda size: "0" * 2 * size))
            market = settled(world, folder / str(empty), empty=empty)
        found.append(views(world, market))
        market.close()
    assert (measured[0] != measured[1]).any(), "the victim's rows count for nothing"
    one, other = found
    assert any(b"cents" in content for _, content in one.values())
    return {route for route, seen in one.items() if other[route] != seen}


def test_others_see_the_same_bytes_whether_an_owner_has_rows_or_not(closed, tmp_path):
    assert differences(closed, tmp_path) == set()


def leaky_total(monkeypatch):
    public = PrivatePayout.public
    leaky = lambda self: public(self) | {"paid owners": len(self.lines)}  # noqa: E731
    monkeypatch.setattr(PrivatePayout, "public", leaky)


def leaky_lines(monkeypatch):
    def leaky(release, paid):
        found = lines_of(release, paid)
        return {owner: line | {"later": len(release._owners)} for owner, line in found.items()}

    monkeypatch.setattr(settlement, "lines_of", leaky)


def leaky_commitments(monkeypatch):
    def leaky(session, task):
        found = session.scalars(select(Upload).where(Upload.task == task.id)).all()
        return [
            {"owner": upload.owner, "withdrawn": False, "kept": upload.packed is not None}
            for upload in found
        ]

    monkeypatch.setattr(uploads, "commitments", leaky)


LEAKS = {
    leaky_total: ("buyer", "/api/tasks/{task}/payout", "paid"),
    leaky_lines: ("owner", "/api/tasks/{task}/statement", "paid"),
    leaky_commitments: ("other_owner", "/api/tasks/{task}", "paid"),
}


def test_planted_leaks_are_found(closed, tmp_path, monkeypatch):
    for leak in LEAKS:
        leak(monkeypatch)
    assert set(LEAKS.values()) <= differences(closed, tmp_path)


# The audit. RUNS releases with the victim and as many without. Of a market that keeps its claim
# each score says otherwise with probability at most 0.001, so all of them at most 0.012.
RUNS, CONFIDENCE = 100, 0.999
OWNERS, EACH, EPSILON = 120, 4, 2.0
SCORES = (
    "table", "rate", "total", "overshoot", "least of all pay", "most of all pay", "error",
    "one owner's pay", "two owners' pay", "an interval's width", "a personal epsilon", "state",
)  # fmt: skip


class Silence:
    """A source of no noise, with which an attacker computes what to look for."""

    def gaussian(self, sigma, size):
        return np.zeros(size, np.int64)


def scores_of(settled, direction, base):
    """Numbers that colluding owners and the buyer make of all that they see."""
    table = (settled.release.table - base).ravel() @ direction.ravel()
    public = dict.fromkeys(("rate", "total", "overshoot", "paid_low", "paid_high"), 0.0)
    first = second = {"cents": 0, "low": 0.0, "high": 0.0, "personal_epsilon": 0.0}
    if settled.payout is not None:
        public = settled.payout.public()
        lines = lines_of(settled.release, settled.payout)
        first, second = lines["owner 1"], lines["owner 2"]
    return (
        table, public["rate"], public["total"], public["overshoot"], public["paid_low"],
        public["paid_high"], settled.release.relative_error or 0.0, first["cents"],
        first["cents"] + second["cents"], first["high"] - first["low"],
        first["personal_epsilon"], settled.state == "paid",
    )  # fmt: skip


@pytest.fixture(scope="module")
def audited():
    """The scores of many settlements with the victim, and of many without."""
    given = {"epsilon": EPSILON, "owners": OWNERS, "rows_per_owner": EACH, "radius": 1.0}
    question = Question.read(terms(**given), made_up(40, 1), "csv")
    rows = question.rows(made_up(OWNERS * EACH, 2), "csv")
    owned = {
        f"owner {i}": Rows(rows.X[i * EACH : (i + 1) * EACH], rows.y[i * EACH : (i + 1) * EACH])
        for i in range(OWNERS)
    }
    worlds = owned, {owner: mine for owner, mine in owned.items() if owner != "owner 0"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dp_tknn, "noise_source", lambda _: Silence())
        exact = [compute(None, question, "task", world, seed=0).release.table for world in worlds]
    direction = (exact[0] - exact[1]).astype(np.float64)
    assert direction.any()
    found = []
    for number, world in enumerate(worlds):
        runs = [compute(None, question, "task", world, seed=RUNS * number + s) for s in range(RUNS)]
        found.append(np.array([scores_of(each, direction, exact[1]) for each in runs], float))
    return found


@pytest.mark.parametrize("number", range(len(SCORES)), ids=SCORES)
def test_what_colluding_members_see_keeps_the_claimed_epsilon(audited, number):
    inside, outside = (scores[:, number] for scores in audited)
    audit = th.audit_runs(inside, outside, epsilon=EPSILON, delta=1e-6, confidence=CONFIDENCE)
    assert audit.passed, audit.verdict


def test_the_audit_finds_too_little_noise_and_a_public_number_of_rows(audited):
    """The same scores with a fiftieth of their noise, and the number of all rows."""
    inside, outside = (scores[:, 0] for scores in audited)
    quiet = [each.mean() + (each - each.mean()) / 50 for each in (inside, outside)]
    counts = np.full(RUNS, OWNERS * EACH), np.full(RUNS, (OWNERS - 1) * EACH)
    for leak in (quiet, counts):
        audit = th.audit_runs(*leak, epsilon=EPSILON, delta=1e-6, confidence=CONFIDENCE)
        assert not audit.passed
