"""What nobody should send to a market: it is refused, on each database, and breaks nothing."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from market_cases import cluster, made_up, market, terms  # noqa: F401
from pyarrow import parquet
from test_market_api import CSV, SALT, add, bearer, new_task

from thresher.errors import InputError
from thresher.market.app import create_app
from thresher.market.guards import Limits
from thresher.market.questions import Question
from thresher.market.refusals import Refusal
from thresher.market.web import COOKIE, mark_of
from thresher.market.workers import work_once

MANY = Limits(rate=1e6, burst=10**6)
NULL, HALF = "a\0b", "a\ud800b"  # half a character, which no encoding has
AS_JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client(market):  # noqa: F811
    with TestClient(
        create_app(market, limits=MANY, working=False), raise_server_exceptions=False
    ) as made:
        yield made


@pytest.fixture
def operator(market):  # noqa: F811
    return bearer(market.first_operator())


@pytest.fixture
def buyer(client, operator):
    return add(client, operator, "buyer", "Клиника 漢字 <b>")


@pytest.mark.parametrize("text", [NULL, HALF], ids=["null", "half a character"])
def test_text_that_cannot_be_stored_is_refused_and_lists_still_work(
    client, operator, buyer, text
):  # fmt: skip
    task = client.post("/api/tasks", json=new_task(), headers=buyer).json()["id"]
    documents = [
        ("POST", "/api/members", operator, {"role": "buyer", "name": text}),
        ("POST", "/api/join", {}, {"code": f"thresher-{text}-aa", "name": "n"}),
        ("POST", "/api/join", {}, {"code": "x", "name": text}),
    ]
    documents += [
        ("POST", "/api/tasks", buyer, new_task(**changed))
        for changed in (
            {"title": text}, {"label": text}, {"classes": ["a", text]}, {"categorical": [text]},
            {"fill": text}, {text: 1},
        )
    ]  # fmt: skip
    for method, path, who, document in documents:
        content = json.dumps(document).encode()
        got = client.request(method, path, content=content, headers=who | AS_JSON)
        assert got.status_code == 422, (document, got.text)
    written = text.encode("utf-8", "surrogatepass").hex("%", 1)
    for method, path, who in (
        ("GET", "/api/tasks/%{}", buyer), ("GET", f"/api/tasks/{task}/uploads/%{{}}", buyer),
        ("DELETE", "/api/tokens/%{}", buyer), ("PATCH", "/api/members/%{}", operator),
        ("GET", f"/api/tasks/{task}/statements/%{{}}", operator),
    ):  # fmt: skip
        body = {"json": {"suspended": True}} if method == "PATCH" else {}
        got = client.request(method, path.format(written), headers=who, **body)
        assert got.status_code in {200, 404, 422}, (path, got.text)
    for form in ({"token": f"thresher-{written}-aa"}, {"token": written}):
        content = f"token=%{form['token']}".encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        assert client.post("/login", content=content, headers=kind).status_code == 401
    for who in (operator, buyer):
        assert [each["id"] for each in client.get("/api/tasks", headers=who).json()] == [task]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"closes": "9999-12-31T23:59:59-12:00"}, "closes must be in the years"),
        ({"opens": "0001-01-01T00:00:00+12:00"}, "opens must be in the years"),
        ({"closes": "2927-01-01T00:00:00"}, "closes must have a time zone"),
        ({"closes": "2001-01-01T00:00:00Z"}, "closes must be later"),
        ({"opens": "2927-01-02T00:00:00Z", "closes": "2927-01-01T23:00:00-01:00"}, "must be later"),
        ({"title": "two\u202elines"}, "title must have 1 to 200 printable"),
        ({"title": "  "}, "title must have 1 to 200 printable"),
        ({"owners": 10**9, "rows_per_owner": 10**9}, "owners x rows_per_owner"),
    ],
)
def test_times_and_terms_that_make_no_sense_are_refused(client, buyer, changed, said):
    got = client.post("/api/tasks", json=new_task(**changed), headers=buyer)
    assert (got.status_code, said in got.text) == (422, True), got.text


@pytest.mark.parametrize(
    ("changed", "status"),
    [({"pot": "inf"}, 422), ({"pot": "1e300"}, 422), ({"owners": "9" * 30}, 422),
     ({"title": NULL}, 422), ({"csrf": "é"}, 403)],
)  # fmt: skip
def test_forms_that_make_no_sense_are_refused(client, buyer, changed, status):
    token = buyer["Authorization"].removeprefix("Bearer ")
    client.cookies.set(COOKIE, token)
    form = {
        "title": "t", "label": "diagnosis", "pot": "1", "epsilon": "1", "delta": "1e-6",
        "rows_per_owner": "2", "owners": "3", "closes": "2999-01-01T00:00",
        "csrf": mark_of(token),
    }  # fmt: skip
    file = {"validation": ("../../v.csv", made_up(40, 1), "text/csv")}
    got = client.post("/new", data=form | changed, files=file, headers={"Accept": "text/html"})
    assert (got.status_code, "<main>" in got.text) == (status, True), got.text


def test_two_tokens_are_none_and_pages_and_programs_look_at_one_each(client, operator, buyer):
    both = [("Authorization", each["Authorization"]) for each in (operator, buyer)]
    assert client.get("/api/me", headers=both).status_code == 401
    assert client.post("/api/join", json={"code": "x"}, headers=both).status_code == 401
    client.cookies.set(COOKIE, operator["Authorization"].removeprefix("Bearer "))
    assert client.get("/api/me", headers=buyer).json()["role"] == "buyer"
    assert client.get("/api/me").status_code == 401
    assert "(operator)" in client.get("/", headers=buyer).text


def test_what_others_wrote_is_text_on_pages(client, market, operator, buyer):  # noqa: F811
    evil = "<script>alert(1)</script>"
    task = client.post("/api/tasks", json=new_task(title=evil), headers=buyer).json()["id"]
    path = f"/api/tasks/{task}"
    client.put(f"{path}/validation", content=made_up(40, 1), headers=buyer | CSV)
    client.post(f"{path}/publish", headers=buyer)
    code = client.post(f"{path}/invitations", headers=buyer).json()["code"]
    owner = client.post("/api/join", json={"code": code, "name": f"Klinik Süd {evil}"}).json()
    sent = client.post(
        f"{path}/uploads", content=made_up(8, 1), headers=bearer(owner["token"]) | SALT | CSV
    )
    assert sent.status_code == 201, sent.text
    client.post(f"{path}/close", headers=buyer)
    assert work_once(market, "worker")
    client.cookies.set(COOKIE, operator["Authorization"].removeprefix("Bearer "))
    for page in ("/", f"/tasks/{task}", "/members", "/audit", f"/tasks/{task}/report"):
        got = client.get(page)
        assert got.status_code == 200, page
        assert "<script>alert" not in got.text, page
    assert "Klinik Süd &lt;script&gt;" in client.get(f"/tasks/{task}").text


@pytest.mark.parametrize(
    "path",
    ["/static/..%2fbase.html.jinja", "/static/../market.css/../../app.py", "/static/%2e%2e/x",
     "/api/tasks/..%2f..%2fetc%2fpasswd", "/api/tasks/" + "a" * 5000],
)  # fmt: skip
def test_no_path_leads_to_another_file(client, operator, path):
    assert client.get(path, headers=operator).status_code == 404


def packed(**columns):
    stream = io.BytesIO()
    parquet.write_table(
        pa.table({"f1": [2.0], "f2": [3.0], "diagnosis": ["sick"]} | columns), stream
    )
    return stream.getvalue()


def objects(**changed):
    return json.dumps([{"f0": 1, "f1": 2, "f2": 3, "diagnosis": "sick"} | changed]).encode()


ROW = "f0,f1,f2,diagnosis\n1,2,3,sick\n"
TAKEN = {
    "one row": (ROW.encode(), "csv"),
    "a byte order mark": (ROW.encode("utf-8-sig"), "csv"),
    "lines of Windows": (ROW.replace("\n", "\r\n").encode(), "csv"),
    "another order": (b"diagnosis,f2,f1,f0\nsick,3,2,1\n", "csv"),
    "no last line end": (ROW.strip().encode(), "csv"),
    "parquet": (packed(f0=[1.0]), "parquet"),
    "labels by number": (
        packed(f0=[1.0], diagnosis=pa.array(["sick"]).dictionary_encode()), "parquet"
    ),
    "json": (objects(), "json"),
}  # fmt: skip
REFUSED = {
    "UTF-16": (ROW.encode("utf-16"), "csv", "not UTF-8"),
    "Latin-1": (ROW.replace("sick", "sické").encode("latin-1"), "csv", "not UTF-8"),
    "not a number": (ROW.replace("\n1,", "\nNaN,").encode(), "csv", "line 2: a feature"),
    "infinite": (ROW.replace("\n1,", "\ninf,").encode(), "csv", "line 2: a feature"),
    "a name twice": (b"f0,f1,f2,f2,diagnosis\n1,2,3,4,sick\n", "csv", "several columns"),
    "few cells": (b"f0,f1,f2,diagnosis\n1,2,3\n", "csv", "3 cells"),
    "another delimiter": (ROW.replace(",", ";").encode(), "csv", "delimiter"),
    "a huge cell": (ROW.encode() + b"1,2,3," + b"x" * 10**6 + b"\n", "csv", "not a class"),
    "an open quote": (b'f0,f1,f2,diagnosis\n1,2,3,"sick\n', "csv", "open quote"),
    "a list": (packed(f0=[[1.0]]), "parquet", "non-numeric columns: 'f0'"),
    "a structure": (packed(f0=[{"a": 1}]), "parquet", "non-numeric columns: 'f0'"),
    "labels that are lists": (packed(f0=[1.0], diagnosis=[["sick"]]), "parquet", "not a class"),
    "damaged": (packed(f0=[1.0])[:-20], "parquet", "damaged"),
    "no list": (b'{"f0": 1}', "json", "list of objects"),
    "numbers only": (b"[1, 2]", "json", "list of objects"),
    "nested": (objects(f0=[1]), "json", "non-numeric columns: 'f0'"),
    "too deep": (b"[" * 100_000, "json", "list of objects"),
    "a number too large": (objects(f0=10**400), "json", "numbers or texts"),
    "two kinds": (objects()[:-1] + b"," + objects(f0="x")[1:], "json", "numbers or texts"),
    "a column of a later row": (objects()[:-1] + b"," + objects(f9=1)[1:], "json", "must not have"),
    "half a character": (objects(diagnosis=HALF), "json", "numbers or texts"),
}


@pytest.fixture(scope="module")
def question():
    return Question.read(terms(), made_up(50, 1), "csv")


@pytest.mark.parametrize("name", TAKEN)
def test_files_that_are_fine(question, name):
    rows = question.rows(*TAKEN[name])
    assert (rows.y, len(rows.X)) == (("sick",), 1)
    assert rows.X.tolist() == question.rows(ROW.encode(), "csv").X.tolist()


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_not(question, name):
    content, kind, said = REFUSED[name]
    with pytest.raises(Refusal, match=said) as refused:
        question.rows(content, kind)
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"f0,f1,f2,f2,diagnosis\n1,2,3,4,sick\n", "csv"),
     (b'f0,f1,f2,diagnosis\n1,2,3,"si\nck"\n', "csv"),
     (packed(f0=pa.array([1], pa.decimal128(10, 2))), "parquet")],
    ids=["a name twice", "a line end in a cell", "decimals"],
)  # fmt: skip
def test_a_validation_set_is_refused_if_owners_could_not_submit_rows_like_it(content, kind):
    with pytest.raises(Refusal, match="validation set") as refused:
        Question.read(terms(), content, kind)
    assert refused.value.status == 422


@pytest.mark.parametrize(
    "wrong", [{"pot_cents": 10**15 + 1}, {"owners": 10**9 + 1}, {"most_rows": 10**7 + 1}]
)
def test_terms_have_limits_of_their_own(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        terms(**wrong)
