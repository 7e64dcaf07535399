"""The pages of a market: a whole story by forms, and what another site cannot do."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient
from market_cases import made_up

from thresher.market.app import create_app
from thresher.market.guards import Limits
from thresher.market.market import Market
from thresher.market.members import add_member
from thresher.market.tables import Outcome
from thresher.market.times import now
from thresher.market.workers import work_once
from thresher.privacy import dp_tknn

MANY = Limits(rate=1e6, burst=10**6)


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    opened = Market.open(tmp_path_factory.mktemp("market"), epsilon=100)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def operator(market):
    return market.first_operator()


def visitor(market):
    return TestClient(create_app(market, limits=MANY, working=False))


def mark(text):
    return re.search(r'name="csrf" value="(\w+)"', text)[1]


def secret(text):
    return re.search(r'id="secret">([^<]+)<', text)[1].replace("&#34;", '"')


def send(client, page, form, path, **files):
    """Send a form of a page, as a browser would."""
    data = {"csrf": mark(client.get(page).text), **form}
    return client.post(path, data=data, files=files or None)


def log_in(market, token):
    client = visitor(market)
    assert client.post("/login", data={"token": token}).url.path == "/"
    return client


def task_form(**changed):
    given = {
        "title": "Sick or well?", "label": "diagnosis", "pot": "1000", "epsilon": "90",
        "delta": "1e-6", "rows_per_owner": "40", "owners": "3",
        "closes": f"{now() + timedelta(hours=1):%Y-%m-%dT%H:%M}",
    }  # fmt: skip
    return given | changed


def test_three_people_get_from_nothing_to_a_statement(market, operator):
    boss = log_in(market, operator)
    added = send(boss, "/members", {"role": "buyer", "name": "Clinic"}, "/members")
    buyer = log_in(market, secret(added.text))
    made = send(
        buyer, "/new", task_form(), "/new", validation=("val.csv", made_up(60, 1), "text/csv")
    )
    assert made.status_code == 200, made.text
    task = made.url.path
    assert "What to expect" in made.text
    assert "Open" in send(buyer, task, {}, f"{task}/publish").text
    owners = []
    for number in range(3):
        code = secret(send(buyer, task, {}, f"{task}/invitations").text)
        owner = visitor(market)
        joined = owner.post("/join", data={"code": code, "name": f"Hospital {number}"})
        assert secret(joined.text).startswith("thresher-")
        rows = ("mine.csv", made_up(40, 100 + number), "text/csv")
        taken = send(owner, task, {}, f"{task}/uploads", rows=rows)
        assert "40 rows were accepted" in taken.text
        owners.append(owner)
    again = receipts(owner.get(task).text)[0]["upload"]
    send(owner, task, {"replaces": again}, f"{task}/uploads", rows=rows)
    first, second = receipts(owner.get(task).text)
    assert (first["upload"], second["replaces"]) == (again, again)
    assert "salt" not in first, "which the market does not keep"
    assert owner.get(task).text.count("<td>withdrawn</td>") == 1
    assert "Hospital 0 (1 submitted)" in buyer.get(task).text
    closing = send(buyer, task, {}, f"{task}/close")
    assert "Reload the page" in closing.text
    source = dp_tknn.noise_source
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dp_tknn, "noise_source", lambda _: source(0))
        assert work_once(market, "worker")
    mine = owners[0].get(task).text
    assert "Your statement" in mine
    assert "without the noise it would most likely be between" in mine
    check_ends(market, task, buyer.get(task).text, boss.get(task).text)
    report = owners[1].get(f"{task}/report")
    assert "unsafe-inline" in report.headers["content-security-policy"]
    assert boss.get("/audit").text.count("task ") >= 1
    assert boss.get("/export").json()["tasks"]


def receipts(text):
    """The receipts that an owner can save from a page."""
    return [
        json.loads(unquote(each)) for each in re.findall(r'"data:application/json,([^"]+)"', text)
    ]


def check_ends(market, task, buyers, operators):
    """The buyer sees the error and between which sums all pay lies; the operator sees all pay."""
    assert "Your statement" not in buyers
    assert "Values are expected to be off by about" in buyers
    with market.database.reading() as session:
        paid = session.get_one(Outcome, task.rsplit("/", 1)[1]).paid
    exact = f"{paid / 100:,.2f}"
    low, high = (
        float(each.replace(",", ""))
        for each in re.search(r"paid between ([\d,.]+) and ([\d,.]+) from", buyers).groups()
    )
    assert low <= paid / 100 <= high
    assert ("Payments" in buyers, exact in buyers) == (False, False)
    assert f"Pay {exact} in all" in operators
    assert "Hospital 2" in operators


def test_a_member_who_lost_a_token_gets_another_from_the_operator(market, operator):
    boss = log_in(market, operator)
    old = secret(send(boss, "/members", {"role": "buyer", "name": "Lost"}, "/members").text)
    path = re.search(
        r'action="(/members/\w+/tokens)"><[^>]+><[^>]+for Lost,', boss.get("/members").text
    )
    new = secret(send(boss, "/members", {}, path[1]).text)
    assert visitor(market).post("/login", data={"token": old}).status_code == 401
    assert "(buyer)" in log_in(market, new).get("/").text


def test_a_form_of_another_site_a_wrong_token_and_a_wrong_role_do_nothing(market, operator):
    boss = log_in(market, operator)
    assert boss.post("/members", data={"role": "buyer", "name": "x"}).status_code == 403
    assert boss.post("/logout").status_code == 403
    assert boss.get("/new").status_code == 403
    stranger = visitor(market)
    assert stranger.post("/members", data={"role": "buyer", "name": "x"}).status_code == 401
    wrong = stranger.post("/login", data={"token": "thresher-a-b"})
    assert (wrong.status_code, "not valid" in wrong.text) == (401, True)
    assert stranger.post("/join", data={"code": "x", "name": "y"}).status_code == 403
    cookie = boss.post("/login", data={"token": operator}, follow_redirects=False)
    kept = cookie.headers["set-cookie"].lower()
    assert "httponly" in kept
    assert "samesite=strict" in kept


def test_what_is_wrong_with_rows_and_drafts_is_said_on_the_page(market, operator):
    boss = log_in(market, operator)
    added = send(boss, "/members", {"role": "buyer", "name": "Other clinic"}, "/members")
    buyer = log_in(market, secret(added.text))
    file = ("val.csv", made_up(50, 1), "text/csv")
    for changed, said in (
        ({"label": "nothing"}, "nothing"), ({"epsilon": "0"}, "epsilon"),
        ({"closes": "2001-01-01T00:00"}, "closes must be later"),
        ({"trees": "4", "radius": "1"}, "trees cannot be used with"),
    ):  # fmt: skip
        got = send(buyer, "/new", task_form(**changed), "/new", validation=file)
        assert (got.status_code, said in got.text) == (422, True), got.text
        assert 'value="Sick or well?"' in got.text, "what was typed stays"
    chosen = task_form(kernel="triangular", categorical="f2, ", fill="median", radius="")
    got = send(buyer, "/new", chosen, "/new", validation=file)
    assert "weighted: triangular" in got.text
    assert "<td>f2</td>" in got.text
    more = {
        "classes": "well, sick,dead",
        "scaling": "none",
        "pay": "lower",
        "opens": "2926-01-01T09:00",
    }
    closes = {"closes": "2927-01-01T09:00"}
    got = send(buyer, "/new", task_form(**more, **closes), "/new", validation=file)
    assert "2926-01-01 09:00 UTC to 2927-01-01 09:00 UTC" in got.text
    assert "scaled by the validation set" not in got.text
    assert "<td>well, sick, dead</td>" in got.text
    assert "the lower end of the interval first" in got.text
    got = send(buyer, "/new", task_form(opens="soon"), "/new", validation=file)
    assert (got.status_code, 'value="soon"' in got.text) == (422, True)
    got = send(buyer, "/new", task_form(trees="2"), "/new", validation=file)
    assert "in the same leaf of 2 trees" in got.text
    assert "<td>within a radius</td>" in got.text, "what else could be chosen"


def test_a_draft_that_the_ledger_has_no_room_for_says_so(tmp_path):
    small = Market.open(tmp_path / "market", epsilon=2.0)
    with small.database.writing() as session:
        token = add_member(session, "buyer", "Clinic")[1]
    buyer = log_in(small, token)
    for epsilon, refused in (("1", False), ("9", True)):
        file = ("val.csv", made_up(20, 1), "text/csv")
        got = send(buyer, "/new", task_form(epsilon=epsilon, owners="1"), "/new", validation=file)
        assert "What to expect" in got.text
        assert ("will probably refuse" in got.text) is refused
    small.close()


def test_people_get_pages_and_programs_get_json_when_something_is_wrong(market):
    stranger, browser = visitor(market), {"Accept": "text/html,*/*"}
    for method, path, status in (("GET", "/nothing/here", 404), ("POST", "/login", 422)):
        got = stranger.request(method, path, headers=browser)
        assert (got.status_code, "<main>" in got.text) == (status, True)
        assert "error" in stranger.request(method, path).json()
    assert "error" in stranger.get("/api/nothing", headers=browser).json()


@pytest.mark.parametrize(
    ("limits", "body", "status", "said"),
    [
        (Limits(body=10), lambda: b"token=" + b"x" * 99, 413, "send less"),
        (Limits(body=10), lambda: iter([b"token=" + b"x" * 99]), 413, "send less"),
        (Limits(rate=0.0, burst=0), lambda: b"", 429, "wait a second and try again"),
        (MANY, lambda: b"token=thresher-a-b", 500, "something went wrong"),
    ],
    ids=["too large", "too large, which it does not say", "too often", "failed"],
)
def test_people_get_pages_when_it_is_too_much_or_fails(limits, body, status, said):
    app = create_app(None, limits=limits, working=False)  # without a market every request fails
    client = TestClient(app, raise_server_exceptions=False)
    form = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": "Bearer x"}
    program = "/api/join" if status == 413 else "/api/tasks"  # the first reads any body
    for path, accept in (("/login", "text/html"), ("/login", "*/*"), (program, "text/html")):
        got = client.post(path, content=body(), headers=form | {"Accept": accept})
        assert (got.status_code, said in got.text) == (status, True), got.text
        assert ("<main>" in got.text) is (path + accept == "/logintext/html")
        assert got.headers["x-frame-options"] == "DENY"
        assert "NoneType" not in got.text


def test_the_files_of_the_tutorial_are_paid_for_whatever_the_noise(tmp_path, monkeypatch):
    from thresher.market.questions import Question
    from thresher.market.settlement import compute
    from thresher.market.terms import Terms

    page = Path(__file__).parent.parent / "docs" / "market.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # noqa: S102
    files = {path.stem: path.read_bytes() for path in tmp_path.iterdir()}
    given = Terms("diagnosis", 100_000, 90.0, 1e-6, 40, 2)
    question = Question.read(given, files.pop("validation"), "csv")
    owned = {owner: question.rows(content, "csv") for owner, content in files.items()}
    for seed in range(10):
        paid = compute(None, question, "task", owned, seed=seed).payout
        assert min(line.cents for line in paid.lines) > 0
