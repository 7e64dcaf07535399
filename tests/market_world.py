"""A market with every kind of caller and a task in each state, for tests of who may do what."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from datetime import timedelta

import pytest
from market_cases import hand_in, join_owners, made_up, open_task, terms
from sqlalchemy.orm import Session

from thresher.market import tasks
from thresher.market.database import Database
from thresher.market.market import Market
from thresher.market.members import add_member, add_token, revoke, suspend
from thresher.market.tables import Line
from thresher.market.times import now
from thresher.market.web import COOKIE, mark_of
from thresher.market.workers import work_once

VALIDATION, MINE = made_up(40, 1), made_up(8, 7)
TASK = {
    "title": "t", "label": "diagnosis", "pot_cents": 1, "epsilon": 1.0, "delta": 1e-6,
    "rows_per_owner": 2, "owners": 3, "opens": now().isoformat(),
    "closes": (now() + timedelta(hours=1)).isoformat(),
}  # fmt: skip
FORM = {"title": "t", "label": "diagnosis", "pot": "1", "epsilon": "1", "delta": "1e-6",
        "rows_per_owner": "2", "owners": "3", "closes": "2999-01-01T00:00"}  # fmt: skip


class World:
    """A market with every kind of caller, and a task in each state."""

    def __init__(self, folder, url=None, *, settled=True):
        self.market = market = Market.open(folder, url, epsilon=100.0)
        self.settled = settled
        self.tokens = {"operator": market.first_operator(), "nobody": None}
        self.members, self.ids = {}, {}
        self.make_tasks()
        with market.database.writing() as session:
            for name in ("other_buyer", "outsider", "auditor"):
                role = {"other_buyer": "buyer", "outsider": "owner"}.get(name, name)
                self.members[name] = add_member(session, role, name)[0]
            for name, member in self.members.items():
                self.tokens[name] = add_token(session, member).text
            made = add_token(session, self.members["owner"])
            revoke(session, self.members["owner"], made.id)
            self.tokens["revoked"] = made.text
            suspend(session, self.members["suspended"].id, suspended=True)
            self.code = tasks.invite(session, self.members["buyer"], self.ids["open"])
        self.ids |= {
            "member": self.members["owner"].id, "owner": self.members["owner"].id,
            "token": self.tokens["owner"].split("-")[1],
        }  # fmt: skip

    def make_tasks(self):
        """Draft, open and paid; three owners have rows in the last two."""
        market, few = self.market, {"rows_per_owner": 8, "owners": 3}
        buyer, paid = open_task(market, **few, epsilon=90.0, radius=3.0)
        names = ("owner", "other_owner", "suspended")
        owners = join_owners(market, buyer, paid, 3)
        self.members = {"buyer": buyer, **dict(zip(names, owners, strict=True))}
        with market.database.writing() as session:
            times = now() - timedelta(hours=1), now() + timedelta(hours=1)
            draft = tasks.draft(session, buyer, "draft", terms(**few), *times)
            opened = tasks.draft(session, buyer, "open", terms(**few), *times)
            for task in (draft, opened):
                tasks.set_validation(session, buyer, task.id, VALIDATION, "csv")
            tasks.publish(session, buyer, opened.id)
            for owner in owners:
                tasks.join(session, owner, tasks.invite(session, buyer, opened.id), "")
        uploads = {}
        for number, owner in reversed(list(enumerate(owners))):
            for state, task in (("paid", paid), ("open", opened)):
                uploads[state] = hand_in(market, owner, task, made_up(8, 7 + number))
        with market.database.writing() as session:
            tasks.close(session, buyer, paid.id)
        self.ids |= {"draft": draft.id, "open": opened.id, "paid": paid.id}
        self.uploads = {state: upload.id for state, upload in uploads.items()}
        rows = MINE.decode().splitlines()[1]
        receipts = [upload.receipt["signature"] for upload in uploads.values()]
        self.private = [rows, *self.uploads.values(), *receipts]
        if self.settled:
            assert work_once(market, "worker")
            with market.database.reading() as session:
                line = session.get_one(Line, (paid.id, owners[0].id)).line
            self.private.append(repr(line["value"]))

    def path(self, path, state):
        given = {"task": self.ids.get(state), "upload": self.uploads.get(state), **self.ids}
        return path.format(**given)

    def body(self, method, path, caller):
        """What a caller who means it sends to a route."""
        csv = {"Content-Type": "text/csv"}
        joining = {"code": self.code, "name": "" if caller == "outsider" else "new"}
        salt = {"X-Salt": base64.b64encode(b"s" * 32).decode()}
        api = {
            ("POST", "/api/members"): {"json": {"role": "buyer", "name": "somebody new"}},
            ("PATCH", "/api/members/{member}"): {"json": {"suspended": True}},
            ("POST", "/api/tasks"): {"json": TASK},
            ("PUT", "/api/tasks/{task}/validation"): {"content": VALIDATION, "headers": csv},
            ("POST", "/api/join"): {"json": joining},
            ("POST", "/api/tasks/{task}/uploads"): {"content": MINE, "headers": csv | salt},
        }  # fmt: skip
        files = {
            "/new": {"validation": ("v.csv", VALIDATION, "text/csv")},
            "/tasks/{task}/uploads": {"rows": ("r.csv", MINE, "text/csv")},
        }
        forms = {
            "/login": {"token": self.tokens[caller] or "x"}, "/new": FORM,
            "/join": joining,
            "/members": {"role": "buyer", "name": "somebody new"},
            "/members/{member}": {"suspended": "yes"},
        }  # fmt: skip
        if path.startswith("/api") or method != "POST":
            return api.get((method, path), {})
        mark = mark_of(self.tokens[caller] or "")
        return {"data": forms.get(path, {}) | {"csrf": mark}, "files": files.get(path)}

    def ask(self, client, method, path, state, caller):
        token = self.tokens[caller]
        given = {"headers": {}} | self.body(method, path, caller)
        if token is not None and is_api(path):
            given["headers"] = given["headers"] | {"Authorization": f"Bearer {token}"}
        client.cookies.clear()
        if token is not None and not is_api(path):
            client.cookies.set(COOKIE, token)
        return client.request(method, self.path(path, state), follow_redirects=False, **given)


def is_api(path):
    return path.startswith("/api") or path in {"/metrics", "/health"}


@contextmanager
def forgetting(self):
    """A transaction that answers as always, and is then undone."""
    with Session(self.engine.execution_options(immediate=True)) as session:
        yield session
        session.flush()
        session.expunge_all()
        session.rollback()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(request, tmp_path_factory):
    """One on each database."""
    url = request.getfixturevalue("cluster") if request.param == "postgresql" else None
    made = World(tmp_path_factory.mktemp("market"), url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "writing", forgetting)
        yield made
    made.market.close()
