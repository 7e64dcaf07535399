"""The documents of the HTTP interface, with examples for its documentation."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from thresher.market.examples import (
    COMMITMENT,
    DRAFT,
    LINE,
    MOMENT,
    OTHER,
    OWNER,
    PAYMENT,
    RECEIPT,
    TASK,
    TERMS,
    TOKEN,
    UPLOAD,
)  # fmt: skip
from thresher.market.terms import MOST_CENTS, MOST_LEAVES, MOST_OWNERS, MOST_ROWS, MOST_TREES

NOT_STORABLE = re.compile("[\0\ud800-\udfff]")  # the null character, and half a character
Cents = Annotated[int, Field(ge=0, le=MOST_CENTS)]
Name = Annotated[str, Field(min_length=1, max_length=100, examples=["Hospital North"])]


def example(**given: Any) -> ConfigDict:
    """The model settings that show an example in the documentation."""
    return ConfigDict(json_schema_extra={"examples": [given]})


class Strict(BaseModel):
    """A document that refuses unknown names and text that cannot be stored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def check_texts(cls, document: Any) -> Any:
        """Raise if a text anywhere has half a character or the null character."""
        left = [document]
        while left:
            part = left.pop()
            if isinstance(part, str) and NOT_STORABLE.search(part):
                raise ValueError("a text has a character that cannot be stored")
            if isinstance(part, dict):
                left += [*part, *part.values()]
            elif isinstance(part, list):
                left += part
        return document


class NewMember(Strict):
    """A new member, who gets a token."""

    model_config = example(role="buyer", name="Clinic West")

    role: Literal["operator", "buyer", "owner", "auditor"]
    name: Name


class Renewal(Strict):
    """Suspend a member, or reinstate it."""

    model_config = example(suspended=True)

    suspended: bool


class NewTask(Strict):
    """A draft of a task; its validation set follows in another request."""

    model_config = example(**DRAFT)

    title: Annotated[str, Field(min_length=1, max_length=200, examples=["Sick or well?"])]
    label: Annotated[str, Field(min_length=1, max_length=200, examples=["diagnosis"])]
    pot_cents: Annotated[Cents, Field(examples=[1_000_000])]
    epsilon: Annotated[float, Field(gt=0, examples=[2.0])]
    delta: Annotated[float, Field(gt=0, lt=1, examples=[1e-6])]
    rows_per_owner: Annotated[int, Field(ge=1, le=MOST_OWNERS, examples=[50])]
    owners: Annotated[int, Field(ge=1, le=MOST_OWNERS, examples=[100])]
    opens: Annotated[datetime, Field(examples=["2027-01-01T00:00:00Z"])]
    closes: Annotated[datetime, Field(examples=["2027-02-01T00:00:00Z"])]
    classes: Annotated[list[str], Field(min_length=2, max_length=10_000)] | None = None
    standardize: bool = True
    metric: Literal["cosine", "euclidean"] = "euclidean"
    radius: Annotated[float, Field(gt=0)] | None = None
    pay: Literal["estimate", "lower"] = "estimate"
    basis: Literal["total", "gains"] = "gains"
    most_rows: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 100_000
    kernel: Literal["box", "gaussian", "triangular", "epanechnikov"] = "box"
    rings: Annotated[int, Field(ge=1, le=254)] = 4
    categorical: Annotated[list[str], Field(max_length=1000)] = []
    fill: Annotated[str, Field(min_length=1, max_length=50, examples=["median"])] | None = None
    trees: Annotated[int, Field(ge=1, le=MOST_TREES, examples=[4])] | None = None
    leaves: Annotated[int, Field(ge=2, le=MOST_LEAVES)] = 16


class Joining(Strict):
    """An invitation, and a name if the owner has no token yet."""

    model_config = example(code=TOKEN, name="Hospital North")

    code: Annotated[str, Field(max_length=200)]
    name: Annotated[str, Field(max_length=100)] = ""


class MemberOut(BaseModel):
    """A member, as the operator sees it."""

    model_config = example(id=OWNER, role="owner", name="Hospital North", suspended=False)

    id: str
    role: str
    name: str
    suspended: bool


class TokenOut(BaseModel):
    """A token, shown only once."""

    model_config = example(member=OWNER, token=TOKEN)

    member: str
    token: str


class OwnerOut(BaseModel):
    """A place in the roster, which all members see."""

    model_config = example(id=OWNER, name="Hospital North")

    id: str
    name: str


class TaskOut(BaseModel):
    """The public facts of a task."""

    model_config = example(
        id=TASK, title="Sick or well?", state="open", reason=None, terms=TERMS,
        opens="2027-01-01T00:00:00Z", closes="2027-02-01T00:00:00Z", published=MOMENT, closed=None,
        roster=[{"id": OWNER, "name": "Hospital North"}], commitments=[COMMITMENT],
    )  # fmt: skip

    id: str
    title: str
    state: Literal["draft", "open", "closing", "paid", "unpaid", "refused"]
    reason: str | None
    terms: dict[str, Any]
    opens: datetime
    closes: datetime
    published: datetime | None
    closed: datetime | None
    roster: list[OwnerOut]
    commitments: list[dict[str, Any]]


class OtherOut(BaseModel):
    """What to expect if the terms defined near in another way."""

    model_config = example(**OTHER)

    near: str
    relative_error: float | None
    rank_correlation: float | None


class PlanOut(BaseModel):
    """What a release with these terms is expected to give, from public rows alone."""

    model_config = example(
        relative_error=0.12, rank_correlation=0.97, free_rank_correlation=0.41,
        reserve_cents=52_000, is_noise=False, others=[OTHER],
    )  # fmt: skip

    relative_error: float | None
    rank_correlation: float | None
    free_rank_correlation: float | None
    reserve_cents: int | None
    is_noise: bool
    others: list[OtherOut]


class InvitationOut(BaseModel):
    """A code for one owner, shown only once."""

    model_config = example(code=TOKEN)

    code: str


class JoinedOut(BaseModel):
    """A place in a task, and the token of an owner who had none."""

    model_config = example(task=TASK, owner=OWNER, token=TOKEN)

    task: str
    owner: str
    token: str | None


class UploadOut(BaseModel):
    """Rows that were submitted."""

    model_config = example(
        id=UPLOAD, time=MOMENT, rows=50, withdrawn=False, kept=True, receipt=RECEIPT
    )

    id: str
    time: datetime
    rows: int
    withdrawn: bool
    kept: bool
    receipt: dict[str, Any]


class LineOut(BaseModel):
    """What one owner is paid: cents, their interval, and what they follow from."""

    model_config = example(**LINE)

    cents: int
    later: int
    low: float | None
    high: float | None
    clipped: float
    value: float
    value_low: float | None = None
    value_high: float | None = None
    rows: int
    personal_epsilon: float


class StatementOut(BaseModel):
    """What one owner learns after a task has ended."""

    model_config = example(task=TASK, owner=OWNER, state="paid", line=LINE)

    task: str
    owner: str
    state: str
    line: LineOut | None


class PaymentOut(BaseModel):
    """What one owner is to be paid, for the operator."""

    model_config = example(**PAYMENT)

    owner: str
    name: str
    cents: int
    later: int


class PaymentsOut(BaseModel):
    """Everything that the operator has to pay for a task, and what stays in the reserve."""

    model_config = example(
        task=TASK, state="paid", pot_cents=1_000_000, paid_cents=14_250, reserve_cents=985_750,
        payments=[PAYMENT],
    )  # fmt: skip

    task: str
    state: str
    pot_cents: int
    paid_cents: int
    reserve_cents: int
    payments: list[PaymentOut]


class ErrorBody(BaseModel):
    """What went wrong: a word for programs, a sentence for people."""

    model_config = example(code="conflict", message="the task is closed")

    code: str
    message: str


class ErrorOut(BaseModel):
    """The one shape of every error."""

    model_config = example(error={"code": "conflict", "message": "the task is closed"})

    error: ErrorBody


class KeyOut(BaseModel):
    """The public key that checks receipts, as hexadecimal text."""

    model_config = example(key="5c" * 32)

    key: str


class DeletedOut(BaseModel):
    """How many uploads were deleted."""

    model_config = example(deleted=2)

    deleted: int


class HealthOut(BaseModel):
    """Whether all is well."""

    model_config = example(status="ok")

    status: str
