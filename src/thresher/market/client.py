"""`Client`: use a market from Python, with the standard library alone."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from thresher.errors import InputError, ThresherError
from thresher.market import answers

KINDS = {  # what a file may be, by the end of its name and as HTTP calls it
    ".csv": "text/csv", ".parquet": "application/vnd.apache.parquet", ".json": "application/json",
}  # fmt: skip
TIMEOUT = 60.0


class MarketError(ThresherError):
    """The market refused a request.

    Attributes
    ----------
    status, code
        The HTTP status of the answer (0 if there was none), and one word for the reason.

    Examples
    --------
    >>> from thresher.market import Client, MarketError
    >>> try:
    ...     Client("http://127.0.0.1:1").tasks()  # no market listens there
    ... except MarketError as refusal:
    ...     print(refusal.status, refusal.code)
    0 no_answer
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True)
class Client:
    """A member of a market that `thresher serve` runs.

    Each method sends one request. If the market refuses it, a `MarketError` says why. The word in
    parentheses says who may call a method; everybody may call the others.

    Parameters
    ----------
    url
        Where the market is, such as "http://127.0.0.1:8000".
    token
        The member's token. Without one you can still join by an invitation.
    timeout
        Seconds to wait for an answer.

    Examples
    --------
    With a market that runs, `client.tasks()` lists its tasks. docs/market.md has the whole story.

    >>> from thresher.market import Client
    >>> Client("http://127.0.0.1:8000", token="thresher-...")  # the token is never shown
    Client(url='http://127.0.0.1:8000', timeout=60.0)
    >>> Client("127.0.0.1:8000")
    Traceback (most recent call last):
    thresher.errors.InputError: url must begin with http:// or https://, got '127.0.0.1:8000'
    """

    url: str
    token: str | None = field(default=None, repr=False)
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in {"http", "https"}:
            raise InputError(f"url must begin with http:// or https://, got {self.url!r}")

    def me(self) -> answers.Member:
        """The member that this token belongs to."""
        return self._json("GET", "/api/me")

    def add_member(self, role: str, name: str) -> answers.Token:
        """Add a member, and get its token (operator)."""
        return self._json("POST", "/api/members", {"role": role, "name": name})

    def suspend(self, member: str, *, suspended: bool = True) -> None:
        """Suspend a member, or reinstate it (operator)."""
        self._send("PATCH", f"/api/members/{quote(member)}", {"suspended": suspended})

    def members(self) -> list[answers.Member]:
        """All members (operator)."""
        return self._json("GET", "/api/members")

    def new_token(self, member: str | None = None) -> answers.Token:
        """A new token for yourself or, as operator, for a member who lost theirs.

        For such a member, all old tokens are revoked.
        """
        of = "" if member is None else f"/members/{quote(member)}"
        return self._json("POST", f"/api{of}/tokens")

    def revoke(self, token: str) -> None:
        """Revoke a token, given in full or by its public name.

        The public name is the part between the two hyphens.
        """
        name = token.split("-")[1] if token.count("-") == 2 else token
        self._send("DELETE", f"/api/tokens/{quote(name)}")

    def key(self) -> str:
        """The public key that checks receipts."""
        return str(self._json("GET", "/api/key")["key"])

    def tasks(self) -> list[answers.Task]:
        """All tasks that this member can see."""
        return self._json("GET", "/api/tasks")

    def task(self, task: str) -> answers.Task:
        """One task."""
        return self._json("GET", f"/api/tasks/{quote(task)}")

    def draft(
        self, title: str, validation: str | Path, *, opens: datetime, closes: datetime, **terms: Any
    ) -> answers.Task:
        """Draft a task with its validation set (buyer).

        `terms` are the options of `thresher market draft`: label, pot_cents, epsilon, and so on.
        """
        about = {"title": title, "opens": opens.isoformat(), "closes": closes.isoformat(), **terms}
        task = self._json("POST", "/api/tasks", about)["id"]
        return self._file("PUT", f"/api/tasks/{task}/validation", validation)

    def validation(self, task: str) -> bytes:
        """The public validation set of a task, as in the buyer's file."""
        return self._send("GET", f"/api/tasks/{quote(task)}/validation")

    def plan(self, task: str) -> answers.Plan:
        """The error and the reserve to expect (buyer)."""
        return self._json("GET", f"/api/tasks/{quote(task)}/plan")

    def publish(self, task: str) -> answers.Task:
        """Open a draft to owners (buyer)."""
        return self._json("POST", f"/api/tasks/{quote(task)}/publish")

    def close(self, task: str) -> answers.Task:
        """Close a task before its time (buyer)."""
        return self._json("POST", f"/api/tasks/{quote(task)}/close")

    def invite(self, task: str) -> str:
        """Create a code that lets one owner join (buyer)."""
        return str(self._json("POST", f"/api/tasks/{quote(task)}/invitations")["code"])

    def join(self, code: str, name: str = "") -> answers.Joined:
        """Join a task by a code; a new owner gets a token."""
        return self._json("POST", "/api/join", {"code": code, "name": name})

    def upload(
        self, task: str, rows: str | Path, *, salt: bytes, replaces: str | None = None
    ) -> answers.Upload:
        """Submit rows (owner). Keep the salt: it can prove later what you submitted."""
        where = f"/api/tasks/{quote(task)}/uploads" + (
            f"?replaces={quote(replaces)}" if replaces else ""
        )
        return self._file("POST", where, rows, {"X-Salt": base64.b64encode(salt).decode()})

    def uploads(self, task: str) -> list[answers.Upload]:
        """Everything that this owner submitted."""
        return self._json("GET", f"/api/tasks/{quote(task)}/uploads")

    def download(self, task: str, upload: str) -> bytes:
        """Rows as they were submitted (owner)."""
        return self._send("GET", f"/api/tasks/{quote(task)}/uploads/{quote(upload)}")

    def withdraw(self, task: str, upload: str) -> None:
        """Withdraw rows before the task closes (owner)."""
        self._send("DELETE", f"/api/tasks/{quote(task)}/uploads/{quote(upload)}")

    def delete_rows(self, task: str) -> int:
        """Delete this owner's rows of a task that has ended."""
        return int(self._json("DELETE", f"/api/tasks/{quote(task)}/rows")["deleted"])

    def statement(self, task: str) -> answers.Statement:
        """What this owner is paid."""
        return self._json("GET", f"/api/tasks/{quote(task)}/statement")

    def release(self, task: str) -> dict[str, Any]:
        """The published release of a task."""
        return self._json("GET", f"/api/tasks/{quote(task)}/release")

    def payout(self, task: str) -> dict[str, Any]:
        """The public part of the pay: the rate, and the range where the total most likely lies."""
        return self._json("GET", f"/api/tasks/{quote(task)}/payout")

    def report(self, task: str) -> str:
        """A page that shows the release."""
        return self._send("GET", f"/api/tasks/{quote(task)}/report").decode()

    def payments(self, task: str) -> answers.Payments:
        """What everybody is paid, and the reserve (operator)."""
        return self._json("GET", f"/api/tasks/{quote(task)}/payments")

    def export(self) -> dict[str, Any]:
        """Everything public about the market (auditor)."""
        return self._json("GET", "/api/export")

    def _file(
        self, method: str, path: str, file: str | Path, headers: dict[str, str] | None = None
    ) -> Any:
        kind = KINDS.get(Path(file).suffix.lower())
        if kind is None:
            raise InputError(f"the file name must end in {' or '.join(KINDS)}, got {file}")
        more = {"Content-Type": kind} | (headers or {})
        return json.loads(self._send(method, path, Path(file).read_bytes(), more))

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self._send(method, path, body))

    def _send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> bytes:
        known = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        if body is not None and not isinstance(body, bytes):
            body, known["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = Request(  # noqa: S310 - the scheme was checked
            self.url.rstrip("/") + path, body, known | (headers or {}), method=method
        )
        try:
            with urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
                content: bytes = answer.read()
                return content
        except HTTPError as refused:
            raise _refusal(refused) from None
        except (OSError, HTTPException) as away:  # no answer, or half of one
            raise MarketError(
                0, "no_answer",
                f"{self.url} does not answer ({_reason(away)}): check the URL, or start the market "
                "with thresher serve",
            ) from None  # fmt: skip


def _reason(away: Exception) -> str:
    """Why there is no answer, without the text that Python adds."""
    cause = getattr(away, "reason", away)
    return str(getattr(cause, "strerror", None) or cause)


def _refusal(refused: HTTPError) -> MarketError:
    try:
        error = json.loads(refused.read())["error"]
        return MarketError(refused.code, error["code"], error["message"])
    except (LookupError, TypeError, ValueError, OSError, HTTPException):  # not ours, or half of it
        return MarketError(refused.code, "http", f"the market answered {refused.code}")
