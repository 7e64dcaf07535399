"""`thresher serve` and `thresher market`: whole stories from a terminal, against a real server."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
from types import SimpleNamespace

import pytest
import waits
from market_cases import made_up
from market_faults import answers, free_port
from market_forks import wait_until
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.market.client import Client, MarketError
from thresher.market.market import Market
from thresher.market.receipts import check_receipt, commitment_of

OWNERS, ROWS = ("North", "South", "Süd & Söhne", "West"), 40
NEAR = {"a radius": ["--radius", 1], "a kernel": ["--kernel", "gaussian"], "leaves": ["--trees", 4]}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A market that `thresher serve` runs in a process of its own, and its first token."""
    folder, port = tmp_path_factory.mktemp("served"), free_port()
    told = [
        sys.executable, "-m", "thresher", "serve", "--data", folder / "market", "--port", port,
        "--cap-epsilon", 100,
    ]  # fmt: skip
    log = folder / "log"
    with log.open("w") as written:
        server = subprocess.Popen(  # noqa: S603
            [str(each) for each in told], stdout=written, stderr=written
        )
    try:
        wait_until(lambda: answers(port), "the server answers")
        (token,) = re.findall(r"thresher-\w+-\w+", log.read_text())
        yield SimpleNamespace(
            folder=folder, url=f"http://127.0.0.1:{port}", operator=token, log=log
        )
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def call(served, token, *words, ok=True):
    """What a verb prints, read as JSON if it is JSON."""
    given = {"THRESHER_URL": served.url, "THRESHER_TOKEN": token or ""}
    done = CliRunner().invoke(app, ["market", *map(str, words)], env=given)
    assert (done.exit_code == 0) is ok, (words, done.output, done.exception)
    return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.output


def draft(served, buyer, *more):
    """A draft of a task by a verb: its id, and the plan that is printed with it."""
    validation = served.folder / "validation.csv"
    validation.write_bytes(made_up(60, 1))
    made = call(
        served, buyer, "draft", validation, "--title", "Sick or well?", "--label", "diagnosis",
        "--pot-cents", 100_000, "--epsilon", 40, "--delta", 1e-6, "--rows-per-owner", ROWS,
        "--owners", len(OWNERS), "--closes", "2927-02-01T12:00Z", *more,
    )  # fmt: skip
    return made["task"], made["plan"]


@pytest.fixture(scope="module")
def members(served):
    """The buyer's and the auditor's token, and those of owners by name."""
    added = {
        role: call(served, served.operator, "add", role, role)["token"]
        for role in ("buyer", "auditor")
    }
    owners = {name: call(served, served.operator, "add", "owner", name)["token"] for name in OWNERS}
    return SimpleNamespace(**added, owners=owners)


def submit(served, members, task, number, name):
    """An owner's part: join, submit, submit again instead, and keep the receipt."""
    token, rows = members.owners[name], served.folder / f"{number}.csv"
    call(served, token, "join", call(served, members.buyer, "invite", task)["code"])
    rows.write_bytes(made_up(3, 99))
    receipts = [served.folder / f"{task}-{number}-{each}.json" for each in "ab"]
    first = call_upload(served, token, task, rows, receipts[0])
    rows.write_bytes(made_up(ROWS, 20 + number))
    second = call_upload(served, token, task, rows, receipts[1], "--replaces", first["upload"])
    key = Client(served.url).key()
    check_receipt({part: second[part] for part in second if part != "salt"}, key)
    assert commitment_of(bytes.fromhex(second["salt"]), rows.read_bytes()) == second["commitment"]
    listed = call(served, token, "uploads", task)
    assert [each["withdrawn"] for each in listed] == [True, False]
    mine = served.folder / f"{task}-{number}-mine.csv"
    call(served, token, "download", task, second["upload"], "--out", mine)
    assert mine.read_bytes() == rows.read_bytes()
    call(served, token, "download", task, first["upload"], "--out", "nowhere", ok=False)
    return rows


def submit_at_once(served, members, task, number, name):
    """The same in Python, for the other owners."""
    owner, rows = Client(served.url, members.owners[name]), served.folder / f"{number}.csv"
    owner.join(Client(served.url, members.buyer).invite(task))
    rows.write_bytes(made_up(ROWS, 20 + number))
    owner.upload(task, rows, salt=b"s" * 32)
    return rows


def call_upload(served, token, task, rows, receipt, *more):
    call(served, token, "upload", task, rows, "--receipt", receipt, *more)
    assert receipt.stat().st_mode & 0o077 == 0, "others could read the salt"
    return json.loads(receipt.read_text())


@pytest.mark.parametrize("near", NEAR)
def test_from_a_draft_to_pay_that_its_owner_verifies(served, members, near, tmp_path):
    task, planned = draft(served, members.buyer, *NEAR[near])
    assert planned == call(served, members.buyer, "plan", task)
    assert 0 < planned["relative_error"] < 5
    assert 0 < planned["reserve_cents"] < 100_000
    assert call(served, members.buyer, "publish", task)["state"] == "open"
    files = [submit(served, members, task, 0, OWNERS[0])]
    files += [submit_at_once(served, members, task, *each) for each in enumerate(OWNERS) if each[0]]
    call(served, members.owners["North"], "statement", task)
    call(served, members.buyer, "close", task)
    wait_until(lambda: settled(served, members, task) == "paid", "the task is paid")
    assert task in {each["id"] for each in call(served, members.buyer, "tasks")}
    paid = call(served, served.operator, "payments", task)
    assert paid["paid_cents"] == sum(each["cents"] for each in paid["payments"]) > 0
    assert paid["reserve_cents"] == 100_000 - paid["paid_cents"]
    assert [each["name"] for each in paid["payments"]] == [*OWNERS]
    for token in (members.buyer, members.auditor, members.owners["North"]):
        call(served, token, "payments", task, ok=False)
    check_published(served, members, task, tmp_path)
    check_pay(served, members, task, files, tmp_path)
    assert call(served, members.owners["North"], "delete", task) == {"deleted": 1}
    assert call(served, members.owners["North"], "statement", task)["line"]["cents"] >= 0


def settled(served, members, task):
    found = Client(served.url, members.buyer).task(task)
    assert found["state"] in {"closing", "paid"}, found["reason"]
    return found["state"]


def check_published(served, members, task, folder):
    """What the buyer gets: prices, error, report page, and two ends of all pay."""
    call(served, members.buyer, "result", task, folder / "published")
    told = {path.name: path.read_text() for path in (folder / "published").iterdir()}
    assert told.keys() == {"payout.json", "release.json", "report.html"}
    payout = json.loads(told["payout.json"])
    assert 0 <= payout["paid_low"] < payout["paid_high"]  # noise is drawn here, so no more is sure
    release = json.loads(told["release.json"])
    assert {"prices", "relative_error"} <= release.keys()
    assert "<html" in told["report.html"]
    newcomer = served.folder / "newcomer.csv"
    newcomer.write_bytes(made_up(5, 77))
    done = CliRunner().invoke(
        app, ["appraise", str(newcomer), "--label", "diagnosis", "--prices",
              str(folder / "published" / "release.json")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    public = folder / "val.csv"
    call(served, members.auditor, "validation", task, "--out", public)
    assert public.read_bytes() == made_up(60, 1)


def check_pay(served, members, task, files, folder):
    """The auditor's export checks, and each owner's pay follows from it and the owner's rows."""
    exported = folder / "market.json"
    call(served, members.auditor, "export", exported)
    assert f"task {task}: charge, table, prices and rate of pay are right" in call(
        served, None, "verify", exported
    )
    for name, rows in list(zip(OWNERS, files, strict=True))[:2]:
        stated = call(served, members.owners[name], "statement", task)
        found = call(
            served, None, "verify-pay", exported, rows, "--task", task, "--owner", stated["owner"]
        )
        assert found == stated["line"]
    spoiled = json.loads(exported.read_text())
    next(each for each in spoiled["tasks"] if each["id"] == task)["payout"]["paid_high"] += 1.0
    exported.write_text(json.dumps(spoiled))
    call(served, None, "verify", exported, ok=False)


def test_an_operator_gives_new_tokens_ends_others_and_suspends(served):
    made = call(served, served.operator, "add", "buyer", "Forgetful")
    lost = Client(served.url, made["token"])
    other = lost.new_token()["token"]
    call(served, other, "token", made["member"], ok=False)
    new = call(served, served.operator, "token", made["member"])["token"]
    for ended in (lost.token, other):
        with pytest.raises(MarketError, match="not valid") as refused:
            Client(served.url, ended).me()
        assert refused.value.status == 401
    assert Client(served.url, new).me()["name"] == "Forgetful"
    mine = call(served, new, "token")["token"]
    call(served, new, "revoke", mine)
    call(served, mine, "tasks", ok=False)
    call(served, new, "revoke", served.operator, ok=False)
    call(served, served.operator, "suspend", made["member"])
    call(served, new, "tasks", ok=False)
    call(served, served.operator, "suspend", made["member"], "--undo")
    assert Client(served.url, new).me()["suspended"] is False
    assert "Forgetful" in {each["name"] for each in call(served, served.operator, "members")}


def test_a_draft_is_wholly_chosen_from_a_terminal(served, members):
    task, _ = draft(
        served, members.buyer, "--trees", 3, "--leaves", 8, "--classes", "sick,well,dead",
        "--no-standardize", "--basis", "total", "--most-rows", 50, "--opens", "2926-01-01T00:00Z",
    )  # fmt: skip
    terms = Client(served.url, members.buyer).task(task)["terms"]
    wanted = {
        "trees": 3, "leaves": 8, "classes": ["sick", "well", "dead"], "standardize": False,
        "basis": "total", "most_rows": 50,
    }  # fmt: skip
    assert {name: terms[name] for name in wanted} == wanted


def test_health_and_metrics(served, members):
    draft(served, members.buyer)
    assert json.loads(Client(served.url)._send("GET", "/health")) == {"status": "ok"}
    told = Client(served.url, served.operator)._send("GET", "/metrics").decode()
    assert re.search(r'^thresher_market_tasks\{state="\w+"\} \d+$', told, re.MULTILINE)
    assert re.search(r"^thresher_market_jobs_waiting 0$", told, re.MULTILINE)
    left = float(re.search(r"^thresher_market_epsilon_left (\S+)$", told, re.MULTILINE)[1])
    assert 0 <= left <= 100


def test_withdrawn_rows_leave_the_files_of_a_market_that_runs(served, members, tmp_path):
    """The server goes on, and other programs keep the database open."""
    folder = served.folder / "market"
    task, _ = draft(served, members.buyer, *NEAR["leaves"])
    call(served, members.buyer, "publish", task)
    owner, rows = Client(served.url, members.owners["West"]), tmp_path / "rows.csv"
    owner.join(Client(served.url, members.buyer).invite(task))
    rows.write_bytes(made_up(ROWS, 4711))
    wanted = rows.read_bytes().splitlines()[1:]

    def left():
        files = [path for path in folder.iterdir() if path.is_file()]
        assert not any(path.stat().st_mode & 0o077 for path in (folder, *files))
        return {path.name for path in files if any(row in path.read_bytes() for row in wanted)}

    with sqlite3.connect(folder / "market.db") as reader:
        reader.execute("select count(*) from uploads").fetchone()
        uploaded = [owner.upload(task, rows, salt=bytes([i]) * 32)["id"] for i in range(3)]
        assert left() & {"market.db", "market.db-wal"}
        for upload in uploaded:
            owner.withdraw(task, upload)
        assert left() == set()
    reader.close()


def test_a_backup_of_a_market_that_runs_is_a_market(served, members, tmp_path):
    copy = tmp_path / "copy"
    call(served, None, "backup", copy, "--data", served.folder / "market")
    assert copy.stat().st_mode & 0o077 == 0
    with sqlite3.connect(copy / "market.db") as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    with th.Ledger.open(copy / "ledger.db") as ledger:
        ledger.verify()
    opened = Market.open(copy)
    assert opened.first_operator() is None
    with opened.database.reading() as session:
        from thresher.market.members import authenticate

        assert authenticate(session, members.buyer).role == "buyer"
    opened.close()
    call(served, None, "backup", copy, "--data", served.folder / "market", ok=False)
    call(served, None, "backup", tmp_path / "other", "--data", tmp_path / "none", ok=False)


def test_logs_tell_nothing_private(served, members):
    """After all that was done here: no token, no row, no pay."""
    log = served.log.read_text().replace(served.operator, "", 1)
    rows = [line for number in range(4) for line in made_up(ROWS, 20 + number).decode().split()[1:]]
    for secret in (served.operator, members.buyer, *members.owners.values(), *rows):
        assert secret not in log


def test_the_demonstration_plays_the_whole_story(tmp_path):
    done = waits.run(
        [sys.executable, "-m", "thresher", "market", "demo", "--data", str(tmp_path / "demo"),
         "--port", str(free_port()), "--stop"],
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "the task is paid" in said
    assert re.search(r"a careful hospital is paid [\d,.]+", said)
    assert re.search(r'"operator": "thresher-\w+-\w+"', said)


@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--data", "new"],
        ["verify", "market.json"],
        ["verify-pay", "market.json", "mine.csv", "--task", "1", "--owner", "2"],
        ["upload", "1", "mine.csv", "--receipt", "receipt.json"],
    ],
)
def test_without_the_extra_the_error_names_it(words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for package in ("fastapi", "cryptography", "sqlalchemy"):
        monkeypatch.setitem(sys.modules, package, None)
    done = CliRunner().invoke(app, ["market", *words])
    assert isinstance(done.exception, th.ExtraError)
    assert "install the extra 'serve' " in str(done.exception)
    assert not list(tmp_path.iterdir())
