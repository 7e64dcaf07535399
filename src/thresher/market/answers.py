"""The market's answers as `Client` returns them: the documents of `schemas`, read from JSON.

Times are text in ISO format, in UTC. These types need no package besides the standard library.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class Member(TypedDict):
    """A member, as the operator sees it."""

    id: str
    role: str
    name: str
    suspended: bool


class Token(TypedDict):
    """A token, shown only once."""

    member: str
    token: str


class Owner(TypedDict):
    """A place in the roster, which all members see."""

    id: str
    name: str


class Task(TypedDict):
    """The public facts of a task."""

    id: str
    title: str
    state: Literal["draft", "open", "closing", "paid", "unpaid", "refused"]
    reason: str | None
    terms: dict[str, Any]
    opens: str
    closes: str
    published: str | None
    closed: str | None
    roster: list[Owner]
    commitments: list[dict[str, Any]]


class Other(TypedDict):
    """What to expect if the terms defined near in another way."""

    near: str
    relative_error: float | None
    rank_correlation: float | None


class Plan(TypedDict):
    """What a release with these terms is expected to give."""

    relative_error: float | None
    rank_correlation: float | None
    free_rank_correlation: float | None
    reserve_cents: int | None
    is_noise: bool
    others: list[Other]


class Joined(TypedDict):
    """A place in a task, and the token of an owner who had none."""

    task: str
    owner: str
    token: str | None


class Upload(TypedDict):
    """Rows that were submitted."""

    id: str
    time: str
    rows: int
    withdrawn: bool
    kept: bool
    receipt: dict[str, Any]


class Line(TypedDict):
    """What one owner is paid: cents, their interval, and what they follow from."""

    cents: int
    later: int
    low: float | None
    high: float | None
    clipped: float
    value: float
    value_low: float | None
    value_high: float | None
    rows: int
    personal_epsilon: float


class Payment(TypedDict):
    """What one owner is to be paid, for the operator."""

    owner: str
    name: str
    cents: int
    later: int


class Payments(TypedDict):
    """Everything that the operator has to pay for a task, and what stays in the reserve."""

    task: str
    state: str
    pot_cents: int
    paid_cents: int
    reserve_cents: int
    payments: list[Payment]


class Statement(TypedDict):
    """What one owner learns after a task has ended."""

    task: str
    owner: str
    state: str
    line: Line | None
