"""Who may do what: every route, every kind of caller, every state of a task.

`DECISIONS` has a line for every route of the application, API and pages. A new route fails the
first test until somebody decides who may use it.
"""

from __future__ import annotations

import json
import re

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from market_cases import cluster  # noqa: F401
from market_world import is_api, world  # noqa: F401

from thresher.market.app import create_app
from thresher.market.guards import Limits

MEMBERS = ("operator", "buyer", "other_buyer", "owner", "other_owner", "outsider", "auditor")
STRANGERS = ("nobody", "revoked", "suspended")
ALL = "200 200 200 200 200 200 200"
OPERATOR = "403 403 403 403 403 403"
HIDDEN = "404 404 404 404 404"  # a draft of somebody else's
BARRED = "403 403 403 403 403"
# method, path, state of the task, then what each of MEMBERS is answered
DECISIONS = f"""
GET    /api/me                              -     {ALL}
GET    /api/key                             -     {ALL}
GET    /api/openapi.json                    -     {ALL}
GET    /health                              -     {ALL}
GET    /metrics                             -     200 {OPERATOR}
POST   /api/members                         -     201 {OPERATOR}
GET    /api/members                         -     200 {OPERATOR}
PATCH  /api/members/{{member}}              -     204 {OPERATOR}
POST   /api/tokens                          -     201 201 201 201 201 201 201
POST   /api/members/{{member}}/tokens       -     201 {OPERATOR}
DELETE /api/tokens/{{token}}                -     204 404 404 204 404 404 404
GET    /api/tasks                           -     {ALL}
POST   /api/tasks                           -     403 201 201 403 403 403 403
GET    /api/tasks/{{task}}                  draft 200 200 {HIDDEN}
GET    /api/tasks/{{task}}                  open  {ALL}
GET    /api/tasks/{{task}}                  paid  {ALL}
PUT    /api/tasks/{{task}}/validation       draft 200 200 {HIDDEN}
PUT    /api/tasks/{{task}}/validation       open  409 409 {BARRED}
GET    /api/tasks/{{task}}/validation       draft 200 200 {HIDDEN}
GET    /api/tasks/{{task}}/validation       open  {ALL}
GET    /api/tasks/{{task}}/plan             draft 200 200 {HIDDEN}
GET    /api/tasks/{{task}}/plan             open  200 200 {BARRED}
POST   /api/tasks/{{task}}/publish          draft 200 200 {HIDDEN}
POST   /api/tasks/{{task}}/publish          open  409 409 {BARRED}
POST   /api/tasks/{{task}}/close            draft 409 409 {HIDDEN}
POST   /api/tasks/{{task}}/close            open  200 200 {BARRED}
POST   /api/tasks/{{task}}/close            paid  200 200 {BARRED}
POST   /api/tasks/{{task}}/invitations      draft 409 409 {HIDDEN}
POST   /api/tasks/{{task}}/invitations      open  201 201 {BARRED}
POST   /api/tasks/{{task}}/invitations      paid  409 409 {BARRED}
POST   /api/join                            -     403 403 403 409 409 201 403
GET    /api/tasks/{{task}}/uploads          draft 200 200 {HIDDEN}
GET    /api/tasks/{{task}}/uploads          open  {ALL}
POST   /api/tasks/{{task}}/uploads          draft 403 403 {HIDDEN}
POST   /api/tasks/{{task}}/uploads          open  403 403 403 201 201 403 403
POST   /api/tasks/{{task}}/uploads          paid  403 403 403 409 409 403 403
GET    /api/tasks/{{task}}/uploads/{{upload}}    open  404 404 404 200 404 404 404
GET    /api/tasks/{{task}}/uploads/{{upload}}    paid  404 404 404 200 404 404 404
DELETE /api/tasks/{{task}}/uploads/{{upload}}    open  403 403 403 204 404 403 403
DELETE /api/tasks/{{task}}/uploads/{{upload}}    paid  403 403 403 409 409 403 403
DELETE /api/tasks/{{task}}/rows             draft 403 403 {HIDDEN}
DELETE /api/tasks/{{task}}/rows             open  403 403 403 409 409 409 403
DELETE /api/tasks/{{task}}/rows             paid  403 403 403 200 200 200 403
GET    /api/tasks/{{task}}/release          draft 409 409 {HIDDEN}
GET    /api/tasks/{{task}}/release          open  409 409 409 409 409 409 409
GET    /api/tasks/{{task}}/release          paid  {ALL}
GET    /api/tasks/{{task}}/payout           paid  {ALL}
GET    /api/tasks/{{task}}/report           paid  {ALL}
GET    /api/tasks/{{task}}/statement        draft 403 403 403 404 404 404 403
GET    /api/tasks/{{task}}/statement        open  403 403 403 200 200 200 403
GET    /api/tasks/{{task}}/statement        paid  403 403 403 200 200 404 403
GET    /api/tasks/{{task}}/statements/{{owner}}  open  200 {OPERATOR}
GET    /api/tasks/{{task}}/statements/{{owner}}  paid  200 {OPERATOR}
GET    /api/tasks/{{task}}/payments         draft 200 {OPERATOR}
GET    /api/tasks/{{task}}/payments         open  200 {OPERATOR}
GET    /api/tasks/{{task}}/payments         paid  200 {OPERATOR}
GET    /api/export                          -     200 403 403 403 403 403 200
GET    /static/market.css                   -     {ALL}
GET    /                                    -     {ALL}
POST   /login                               -     303 303 303 303 303 303 303
POST   /logout                              -     303 303 303 303 303 303 303
POST   /join                                -     403 403 403 409 409 303 403
GET    /new                                 -     403 200 200 403 403 403 403
POST   /new                                 -     403 303 303 403 403 403 403
GET    /tasks/{{task}}                      draft 200 200 {HIDDEN}
GET    /tasks/{{task}}                      open  {ALL}
GET    /tasks/{{task}}                      paid  {ALL}
POST   /tasks/{{task}}/uploads              draft 403 403 {HIDDEN}
POST   /tasks/{{task}}/uploads              open  403 403 403 200 200 403 403
POST   /tasks/{{task}}/uploads              paid  403 403 403 409 409 403 403
POST   /tasks/{{task}}/publish              draft 303 303 {HIDDEN}
POST   /tasks/{{task}}/publish              open  409 409 {BARRED}
POST   /tasks/{{task}}/close                open  303 303 {BARRED}
POST   /tasks/{{task}}/invitations          open  200 200 {BARRED}
POST   /tasks/{{task}}/delete               open  403 403 403 409 409 409 403
POST   /tasks/{{task}}/delete               paid  403 403 403 303 303 303 403
POST   /tasks/{{task}}/anything             open  404 404 404 404 404 404 404
POST   /tasks/{{task}}/uploads/{{upload}}/withdraw  open  403 403 403 303 404 403 403
GET    /tasks/{{task}}/uploads/{{upload}}   open  404 404 404 200 404 404 404
GET    /tasks/{{task}}/uploads/{{upload}}   paid  404 404 404 200 404 404 404
GET    /tasks/{{task}}/report               paid  {ALL}
GET    /tasks/{{task}}/release              paid  {ALL}
GET    /tasks/{{task}}/validation           draft 200 200 {HIDDEN}
GET    /tasks/{{task}}/anything             open  404 404 404 404 404 404 404
GET    /members                             -     200 {OPERATOR}
POST   /members                             -     200 {OPERATOR}
POST   /members/{{member}}                  -     303 {OPERATOR}
POST   /members/{{member}}/tokens           -     200 {OPERATOR}
GET    /audit                               -     200 403 403 403 403 403 200
GET    /export                              -     200 403 403 403 403 403 200
"""
ROWS = [line.split() for line in DECISIONS.strip().splitlines()]
OPEN = {"/api/key", "/api/openapi.json", "/health", "/static/market.css", "/"}


@pytest.fixture(scope="module")
def client(world):  # noqa: F811
    limits = Limits(body=1 << 20, rate=1e6, burst=10**6)
    with TestClient(create_app(world.market, limits=limits, working=False)) as made:
        yield made


def all_routes(routes):
    """All routes of an application, also those of routers in it."""
    for route in routes:
        inside = getattr(route, "original_router", None)
        yield from [route] if inside is None else all_routes(inside.routes)


def matches(route, method, path):
    return method in route.methods and route.path_regex.match(re.sub("[{}]", "", path))


def test_every_route_has_a_decision(client):
    decided = {(method, path) for method, path, *_ in ROWS}
    routes = list(all_routes(client.app.routes))
    reached = [
        next(route for route in routes if matches(route, method, path)) for method, path in decided
    ]
    assert [route.path for route in routes if route not in reached] == []
    assert sum(isinstance(route, APIRoute) for route in routes) > 40
    documented = client.get("/api/openapi.json").json()["paths"]
    named = {(method.upper(), path) for path in documented for method in documented[path]}
    assert named <= decided


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[:3]))
def test_members_are_answered_as_decided(world, client, row):  # noqa: F811
    method, path, state, *wanted = row
    for caller, status in zip(MEMBERS, wanted, strict=True):
        got = world.ask(client, method, path, state, caller)
        assert got.status_code == int(status), (caller, got.text)
        if caller not in {"owner", "operator"}:
            assert not [each for each in world.private if each in got.text], caller


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[:3]))
def test_strangers_read_what_is_open_and_change_nothing(world, client, row):  # noqa: F811
    method, path, state, *_ = row
    for caller in STRANGERS:
        got = world.ask(client, method, path, state, caller)
        if path in OPEN:
            wanted = {200}
        elif path in {"/login", "/join", "/api/join"}:
            takes_code = path != "/login" and (caller == "nobody" or path == "/join")
            wanted = {200, 201} if takes_code else {401, 403}
        elif is_api(path):
            wanted = {403} if caller == "suspended" else {401}
        else:
            wanted = {303} if method == "GET" else {401}
        assert got.status_code in wanted, (caller, got.text)
        assert not [each for each in world.private if each in got.text], caller


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"{", "application/json"), (b"x" * 1000, "multipart/form-data"), (b"%", "text/csv")],
)
def test_no_body_is_read_without_a_token(world, client, content, kind):  # noqa: F811
    client.cookies.clear()
    for method, path, state, *_ in ROWS:
        if method != "GET" and path not in {"/login", "/join", "/api/join"}:
            target = world.path(path, state)
            got = client.request(method, target, content=content, headers={"Content-Type": kind})
            assert got.status_code == 401, (method, path, got.text)


def test_an_invitation_and_a_token_of_one_task_open_no_other(world, client):  # noqa: F811
    """An owner's upload of one task is not found under another, and lists hold the own ones."""
    token = {"Authorization": f"Bearer {world.tokens['owner']}"}
    crossed = f"/api/tasks/{world.ids['open']}/uploads/{world.uploads['paid']}"
    assert client.get(crossed, headers=token).status_code == 404
    assert client.delete(crossed, headers=token).status_code == 404
    other = {"Authorization": f"Bearer {world.tokens['other_owner']}"}
    listed = client.get(f"/api/tasks/{world.ids['open']}/uploads", headers=other).json()
    assert len(listed) == 1
    assert world.uploads["open"] not in json.dumps(listed)
    target = f"/api/tasks/{world.ids['open']}/uploads?replaces={world.uploads['open']}"
    given = world.body("POST", "/api/tasks/{task}/uploads", "other_owner")
    given["headers"] = given["headers"] | other
    assert client.post(target, **given).status_code == 404
