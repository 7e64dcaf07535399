"""The HTTP interface: a whole story, one error shape, and nobody sees what is not theirs."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from market_cases import cluster, made_up, market  # noqa: F401

from thresher.market.app import create_app
from thresher.market.guards import Limits
from thresher.market.times import now
from thresher.market.workers import work_once

SALT = {"X-Salt": base64.b64encode(b"s" * 32).decode()}
CSV = {"Content-Type": "text/csv"}


@pytest.fixture
def client(market):  # noqa: F811
    app = create_app(market, limits=Limits(body=1 << 20, rate=1e6, burst=10**6), working=False)
    with TestClient(app) as made:
        yield made


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def new_task(**changed):
    given = {
        "title": "Sick or well?", "label": "diagnosis", "pot_cents": 100_000, "epsilon": 30.0,
        "delta": 1e-6, "rows_per_owner": 8, "owners": 60, "radius": 0.6,
        "opens": (now() - timedelta(hours=1)).isoformat(),
        "closes": (now() + timedelta(hours=1)).isoformat(),
    }  # fmt: skip
    return given | changed


def add(client, operator, role, name):
    made = client.post("/api/members", json={"role": role, "name": name}, headers=operator)
    assert made.status_code == 201, made.text
    return bearer(made.json()["token"])


def test_from_an_empty_folder_to_a_statement(client, market):  # noqa: F811
    operator = bearer(market.first_operator())
    assert market.first_operator() is None
    buyer = add(client, operator, "buyer", "A buyer")
    task = client.post("/api/tasks", json=new_task(), headers=buyer).json()["id"]
    stranger = add(client, operator, "buyer", "Another buyer")
    assert client.get(f"/api/tasks/{task}", headers=stranger).status_code == 404
    put = client.put(f"/api/tasks/{task}/validation", content=made_up(200, 1), headers=buyer | CSV)
    assert put.status_code == 200, put.text
    assert client.post(f"/api/tasks/{task}/publish", headers=buyer).json()["state"] == "open"
    owners = []
    for number in range(60):
        code = client.post(f"/api/tasks/{task}/invitations", headers=buyer).json()["code"]
        joined = client.post("/api/join", json={"code": code, "name": f"owner {number}"})
        assert joined.status_code == 201, joined.text
        owners.append(bearer(joined.json()["token"]))
        sent = client.post(
            f"/api/tasks/{task}/uploads", content=made_up(8, 100 + number),
            headers=owners[-1] | SALT | CSV,
        )  # fmt: skip
        assert sent.status_code == 201, sent.text
    seen = client.get(f"/api/tasks/{task}", headers=stranger).json()
    assert len(seen["roster"]) == len(seen["commitments"]) == 60
    assert client.get(f"/api/tasks/{task}/release", headers=buyer).status_code == 409
    assert client.post(f"/api/tasks/{task}/close", headers=buyer).json()["state"] == "closing"
    assert work_once(market, "worker")
    ended = client.get(f"/api/tasks/{task}", headers=buyer).json()
    assert ended["state"] == "paid", ended["reason"]
    mine = client.get(f"/api/tasks/{task}/statement", headers=owners[0]).json()
    assert mine["line"]["rows"] == 8
    assert client.get(f"/api/tasks/{task}/statement", headers=buyer).status_code == 403
    of_one = f"/api/tasks/{task}/statements/{mine['owner']}"
    assert client.get(of_one, headers=operator).json() == mine
    assert client.get(of_one, headers=owners[1]).status_code == 403
    assert (
        client.get(f"/api/tasks/{task}/release", headers=buyer).json()["record"]["unit"] == "owner"
    )
    assert "<html" in client.get(f"/api/tasks/{task}/report", headers=buyer).text
    deleted = client.delete(f"/api/tasks/{task}/rows", headers=owners[0])
    assert deleted.json() == {"deleted": 1}


def test_every_error_has_one_shape_and_no_writing_route_goes_without_a_token(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method in set(methods) - {"get"}:
            if path == "/api/join":
                continue
            got = client.request(method.upper(), path.replace("{", "").replace("}", ""))
            assert got.status_code in {401, 403}, (method, path, got.text)
            assert set(got.json()["error"]) == {"code", "message"}
    for got in (
        client.get("/nowhere"), client.put("/api/me"), client.post("/api/join", content=b"{"),
        client.post("/api/join", json={"code": "thresher-a-b", "name": "x"}),
        client.post("/api/join", content=b"x" * (2 << 20)),
    ):  # fmt: skip
        assert got.status_code in {403, 404, 405, 413, 422}
        assert set(got.json()["error"]) == {"code", "message"}
        assert got.headers["X-Content-Type-Options"] == "nosniff"


def test_a_caller_that_asks_too_often_has_to_wait(market):  # noqa: F811
    app = create_app(market, limits=Limits(rate=0.001, burst=3), working=False)
    with TestClient(app) as client:
        codes = [client.get("/api/key").status_code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]


def test_made_up_tokens_do_not_let_a_caller_ask_more_often(market):  # noqa: F811
    token = market.first_operator()
    app = create_app(market, limits=Limits(rate=0.001, burst=3), working=False)

    def ask(path, token, cookie=""):
        headers = {"Authorization": f"Bearer {token}", "Cookie": cookie}
        return client.get(path, headers=headers).status_code

    with TestClient(app) as client:
        assert [ask("/api/key", f"made up {number}") for number in range(2)] == [200, 200]
        assert ask("/api/me", token) == 200, "the last that the address may ask as a stranger"
        assert [ask("/api/key", f"made up {number}") for number in range(4)] == [429] * 4
        assert [ask("/api/me", token) for _ in range(5)] == [200, 200, 200, 429, 429]
        assert ask("/api/me", token, "more=1") == 429, "another cookie is no other caller"
