"""A market over HTTP, for `same.py`: `thresher serve` on a port of this machine, and all who call.

The market draws its noise from the system, so numbers of a settled task are not compared: only
their kinds, the names of all entries, and the words around them.
"""

# fmt: off
from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from same_worker import Cases

CLOSES = "2927-02-01T12:00:00Z"
SALT = {"X-Salt": base64.b64encode(b"s" * 32).decode(), "Content-Type": "text/csv"}
CSV = {"Content-Type": "text/csv"}
TASK = {"title": "Sick or well?", "label": "diagnosis", "pot_cents": 100_000, "epsilon": 30.0, "delta": 1e-6, "rows_per_owner": 40, "owners": 3, "opens": "2020-01-01T00:00:00Z", "closes": CLOSES}
NEAR = {"radius": {"radius": 1.0}, "kernel": {"kernel": "gaussian", "radius": 1.5}, "leaves": {"trees": 4}}
NOISY = {"/", "/metrics", "/export", "/api/export", "/audit"}
WORDS = [
    (re.compile(r"thresher-\w+-\w+"), "<token>"),
    (re.compile(r"\b[0-9a-f]{32,}\b|(?<!\.)\b[0-9a-f]{16}\b"), "<id>"),
    (re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}"), "<bytes>"),
    (re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"), "<time>"),
]


def made_up(rows, seed):
    """Rows of two classes, as a file."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 3)).round(4)
    y = np.where(X[:, 0] + 0.3 * random.normal(size=rows) > 0, "sick", "well")
    return ("\n".join(["f0,f1,f2,diagnosis", *(",".join([*map(str, row), label]) for row, label in zip(X, y))]) + "\n").encode()


def kinds(document):
    """A document with the kind of each number instead of the number."""
    if isinstance(document, dict):
        return {key: kinds(value) for key, value in document.items()}
    if isinstance(document, list):
        return [kinds(document[0]), "..."] if document else []
    return document if isinstance(document, str | bool | type(None)) else type(document).__name__


def told(status, kind, text, *, noisy):
    """An answer without what is new in every market."""
    if kind.startswith("application/json"):
        text = json.dumps(kinds(json.loads(text)) if noisy else json.loads(text), indent=1)
    text = plain(text)
    if noisy and not kind.startswith("application/json"):
        text = re.sub(r"[-+]?\d[\d.,e+-]*", "#", re.sub(r"(?s)<svg.*?</svg>", "<svg>", text))
    return [status, kind, text]


def plain(text):
    """A text without tokens, ids, keys and times."""
    for pattern, word in WORDS:
        text = pattern.sub(word, text)
    return text


class Session:
    """A market that is served, and what it answered."""

    def __init__(self, url, operator):
        self.url, self.tokens, self.said = (url, {"operator": operator, "nobody": None, "stranger": "thresher-0000000000000000-x"}, {})
        self.known, self.settled = {}, False

    def ask(self, who, method, path, body=None, headers=(), note=""):
        """Ask the market as somebody; keep the answer, and return it."""
        headers = dict(headers)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()), StayHere())
        if isinstance(body, dict):
            body, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        token = self.tokens[who]
        if token and path.startswith(("/api", "/metrics", "/health")):
            headers["Authorization"] = f"Bearer {token}"
        elif token:
            headers["Cookie"] = f"thresher_token={token}"
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method=method)
        try:
            answer = opener.open(request, timeout=60)
        except urllib.error.HTTPError as refused:
            answer = refused
        text, kind = (answer.read().decode("utf-8", "backslashreplace"), answer.headers.get("Content-Type", ""))
        shown = path
        for name, key in self.known.items():
            shown = shown.replace(key, f"<{name}>")
        name = f"{who}: {method} {plain(shown)} {note}".strip()
        while name in self.said:
            name += " again"
        noisy = shown in NOISY or (self.settled and "<paid>" in shown)
        self.said[name] = told(answer.status, kind, text, noisy=noisy)
        return json.loads(text) if kind.startswith("application/json") and text else text


class StayHere(urllib.request.HTTPRedirectHandler):
    """Where a page sends its reader is part of the answer."""

    def redirect_request(self, *_):
        return None


@contextlib.contextmanager
def served():
    """The address of a new market, and its operator's token."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with open(log, "wb") as sink:
            server = subprocess.Popen([sys.executable, "-m", "thresher", "serve", "--data", f"{folder}/market", "--port", str(port), "--cap-epsilon", "100"], stdout=sink, stderr=sink, cwd=folder)
        try:
            ends = time.monotonic() + 90
            while True:
                said = log.read_text()
                url, token = (re.search(r"http://127\.0\.0\.1:\d+", said), re.search(r"thresher-\w+-\w+", said))
                with contextlib.suppress(OSError):
                    if url and token and urllib.request.urlopen(f"{url[0]}/health", timeout=5).status == 200:
                        break
                assert server.poll() is None, said
                assert time.monotonic() < ends, said
                time.sleep(0.1)
            yield url[0], token[0], said
        finally:
            server.terminate()
            server.wait(30)


def play(session):
    """Everything that members of a market do, and much that they must not."""
    ask, known, tokens = session.ask, session.known, session.tokens
    for role in ("buyer", "auditor", "owner"):
        made = ask("operator", "POST", "/api/members", {"role": role, "name": f"the {role}"})
        tokens[role], known[f"{role}'s id"] = made["token"], made["member"]
    for body in ({"role": "king", "name": "x"}, {"role": "buyer"}, {"role": "buyer", "name": ""}, {"role": "buyer", "name": "the buyer"}, {"role": "owner", "name": "a", "more": 1}, {"role": "owner", "name": "\0"}):
        ask("operator", "POST", "/api/members", body, note=json.dumps(body))
    publish(session)
    uploads = join(session)
    swap(session, uploads)
    everybody(session, "before")
    ask("owner 0", "POST", f"/api/tasks/{known['paid']}/close")
    ask("buyer", "POST", f"/api/tasks/{known['paid']}/close")
    settle(session)
    everybody(session, "after")
    for who in ("owner 0", "buyer", "nobody"):
        ask(who, "DELETE", f"/api/tasks/{known['paid']}/rows")
    owner = known["owner's id"]
    ask("operator", "PATCH", f"/api/members/{owner}", {"suspended": True})
    ask("owner", "GET", "/api/me", note="suspended")
    ask("owner 1", "POST", "/api/tokens")
    ask("owner 1", "DELETE", f"/api/tokens/{tokens['buyer'].split('-')[1]}")
    ask("operator", "POST", f"/api/members/{owner}/tokens")


def publish(session):
    """Drafts, good and bad, of a buyer."""
    ask, known = session.ask, session.known
    drafts = {name: {**TASK, **given} for name, given in NEAR.items()}
    for body in (
        {},
        {**TASK, "epsilon": -1},
        {**TASK, "epsilon": "x"},
        {**TASK, "pot_cents": 1.5},
        {**TASK, "owners": 0},
        {**TASK, "closes": "2000-01-01T00:00:00Z"},
        {**TASK, "radius": 1, "trees": 3},
        {**TASK, "kernel": "round"},
        {**TASK, "metric": "x"},
        {**TASK, "title": "t" * 300},
        {**TASK, "classes": ["a"]},
        {**TASK, "opens": CLOSES, "closes": "2926-01-01T00:00:00Z"},
    ):
        ask("buyer", "POST", "/api/tasks", body, note=json.dumps({key: entry for key, entry in body.items() if TASK.get(key) != entry})[:60])
    for name, body in drafts.items():
        task = ask("buyer", "POST", "/api/tasks", body, note=name)["id"]
        known[name] = task
        for content in (b"", b"no table", made_up(3, 1), made_up(60, 1).replace(b"diagnosis", b"other"), made_up(60, 1)):
            ask("buyer", "PUT", f"/api/tasks/{task}/validation", content, CSV)
        ask("buyer", "GET", f"/api/tasks/{task}/plan")
        ask("buyer", "GET", f"/tasks/{task}")
        ask("buyer", "POST", f"/api/tasks/{task}/publish")
        ask("buyer", "POST", f"/api/tasks/{task}/publish", note="twice")
        ask("nobody", "GET", f"/api/tasks/{task}/validation")
        ask("auditor", "GET", f"/api/tasks/{task}/validation")
    known["draft"] = ask("buyer", "POST", "/api/tasks", TASK, note="to stay a draft")["id"]
    known["paid"] = known.pop("radius")


def join(session):
    """Owners join a task and upload rows; where to."""
    ask, known, tokens = session.ask, session.known, session.tokens
    for number in range(3):
        code = ask("buyer", "POST", f"/api/tasks/{known['paid']}/invitations")["code"]
        joined = ask("nobody", "POST", "/api/join", {"code": code, "name": f"hospital {number}"}, note=str(number))
        tokens[f"owner {number}"] = joined["token"]
        ask("nobody", "POST", "/api/join", {"code": code, "name": "late"}, note="with a used code")
        made = ask(f"owner {number}", "POST", f"/api/tasks/{known['paid']}/uploads", made_up(40, 20 + number), SALT)
        known[f"upload {number}"] = made["id"]
    return f"/api/tasks/{known['paid']}/uploads"


def swap(session, uploads):
    """Uploads that are refused, and others that take the place of earlier ones."""
    ask, known = session.ask, session.known
    for content in (b"", b"a,b\n1,2\n", made_up(500, 4), made_up(4, 4).replace(b"sick", b"dead"), b"\xff\xfe\x00"):
        ask("owner 0", "POST", uploads, content, SALT, note=f"of {len(content)} bytes")
    ask("owner 0", "POST", uploads, made_up(4, 4), {**SALT, "X-Salt": "abc"}, note="with a poor salt")
    ask("owner 0", "POST", uploads, made_up(4, 4), CSV, note="without salt")
    ask("owner 0", "POST", f"{uploads}?replaces={known['upload 1']}", made_up(4, 4), SALT, note="instead of another's")
    known["upload 3"] = ask("owner 0", "POST", f"{uploads}?replaces={known['upload 0']}", made_up(38, 4), SALT)["id"]
    ask("owner 1", "GET", f"{uploads}/{known['upload 1']}")
    ask("owner 0", "GET", f"{uploads}/{known['upload 1']}")
    ask("owner 2", "DELETE", f"{uploads}/{known['upload 1']}")


def settle(session):
    """Wait until the market has paid."""
    said, session.settled, state = dict(session.said), True, "closing"
    for _ in range(300):
        if state not in {"open", "closing"}:
            break
        time.sleep(0.2)
        state = session.ask("buyer", "GET", f"/api/tasks/{session.known['paid']}")["state"]
        session.said = dict(said)  # how often is a matter of speed
    session.said["the state of a closed task"] = [state]


def everybody(session, when):
    """All that there is to read, by everybody who might; and forms without the mark of a page."""
    task, draft, leaves = session.known["paid"], session.known["draft"], session.known["leaves"]
    paths = ["/api/me", "/api/members", "/api/tasks", "/api/export", "/api/key", "/", "/members", "/audit", "/new", "/export", "/metrics", f"/tasks/{leaves}", f"/tasks/{draft}"]
    paths += [f"/api/tasks/{task}{part}" for part in ("", "/uploads", "/release", "/payout", "/report", "/statement", "/payments", "/plan", f"/uploads/{session.known['upload 3']}")]
    paths += [f"/tasks/{task}{part}" for part in ("", "/release", "/payout", "/report", "/validation", "/nonsense")] + [f"/api/tasks/{draft}"]
    for who in ("operator", "buyer", "auditor", "owner", "owner 0", "nobody", "stranger"):
        for path in paths:
            session.ask(who, "GET", path, note=when)
    for path in ("/api/openapi.json", "/health", "/api/nothing", "/nothing", "/static/market.css", "/static/nothing", "/api/tasks/none", "/tasks/none"):
        session.ask("buyer", "GET", path, note=when)
    for path in ("/login", "/logout", "/join", "/members", "/new", f"/tasks/{task}/publish", f"/tasks/{task}/uploads"):
        session.ask("buyer", "POST", path, urlencode({"token": "x", "code": "x", "name": "x", "csrf": "x"}).encode(), {"Content-Type": "application/x-www-form-urlencoded"}, note=f"without a mark, {when}")
    for method, path in (("PUT", "/api/me"), ("DELETE", "/api/tasks"), ("POST", "/api/key")):
        session.ask("operator", method, path, b"", note=when)


def cases():
    """All answers of one session; they are there before the first is asked for."""
    found = Cases()
    os.environ.pop("THRESHER_TOKEN", None)
    if sys.argv[2:3] == ["names"]:
        return found
    with served() as (url, operator, said):
        session = Session(url, operator)
        play(session)
    found.add("what the server prints", lambda: re.sub(r"/tmp/\w+|:\d+", "#", plain(said)))
    for name, answer in session.said.items():
        found.add(name, lambda answer=answer: answer)
    return found
