"""What the market stores, with a class for each table of the database.

Only `Upload` holds private data: an owner's rows, which can be deleted. The record of who did what
when stays.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, DateTime, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

ID = String(32)


class UtcTime(TypeDecorator[datetime]):
    """A time in UTC, even if the database drops the offset."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: Dialect) -> datetime | None:
        """The time to store, in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _: Dialect) -> datetime | None:
        """The stored time, marked as UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """The base of all tables, with how Python's types are stored."""

    type_annotation_map: ClassVar = {
        datetime: UtcTime, dict[str, Any]: JSON, str: Text, bytes: LargeBinary,
    }  # fmt: skip


class Member(Base):
    """Somebody with a role: operator, buyer, owner or auditor."""

    __tablename__ = "members"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    role: Mapped[str]
    name: Mapped[str] = mapped_column(String(100), unique=True)
    created: Mapped[datetime]
    suspended: Mapped[bool] = mapped_column(default=False)


class Token(Base):
    """What a member uses instead of a password; only a digest of the secret is stored."""

    __tablename__ = "tokens"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    member: Mapped[str] = mapped_column(ForeignKey("members.id"), index=True)
    digest: Mapped[bytes]
    created: Mapped[datetime]
    revoked: Mapped[datetime | None]


class Task(Base):
    """A buyer's validation set and pot: draft, open, closing, then paid, unpaid or refused."""

    __tablename__ = "tasks"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    buyer: Mapped[str] = mapped_column(ForeignKey("members.id"))
    title: Mapped[str]
    state: Mapped[str] = mapped_column(String(16), index=True)
    terms: Mapped[dict[str, Any]]
    validation: Mapped[bytes | None]
    kind: Mapped[str | None]  # of the validation set's file
    opens: Mapped[datetime]
    closes: Mapped[datetime]
    created: Mapped[datetime]
    published: Mapped[datetime | None]
    closed: Mapped[datetime | None]
    reason: Mapped[str | None]  # why it was refused or nobody is paid


class Invitation(Base):
    """A code with which one owner may join a task; only its digest is stored."""

    __tablename__ = "invitations"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    task: Mapped[str] = mapped_column(ForeignKey("tasks.id"), index=True)
    digest: Mapped[bytes]
    created: Mapped[datetime]
    used: Mapped[datetime | None]


class Place(Base):
    """An owner's place in a task's roster, which all members see."""

    __tablename__ = "places"
    task: Mapped[str] = mapped_column(ForeignKey("tasks.id"), primary_key=True)
    owner: Mapped[str] = mapped_column(ForeignKey("members.id"), primary_key=True)
    joined: Mapped[datetime]


class Upload(Base):
    """Rows that an owner submitted, with the receipt; `content` is private."""

    __tablename__ = "uploads"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    task: Mapped[str] = mapped_column(ForeignKey("tasks.id"))
    owner: Mapped[str] = mapped_column(ForeignKey("members.id"))
    number: Mapped[int]  # in the order in which they were handed in, for each owner
    received: Mapped[datetime]
    rows: Mapped[int]
    content: Mapped[bytes | None]  # as it was handed in
    kind: Mapped[str]
    packed: Mapped[bytes | None]  # the same rows in the space of the task
    commitment: Mapped[str] = mapped_column(String(64))
    receipt: Mapped[dict[str, Any]]
    withdrawn: Mapped[datetime | None]
    __table_args__ = (Index("ix_uploads_of", "task", "owner", "number", unique=True),)


class Job(Base):
    """Work on a closed task, for the worker that holds the lease."""

    __tablename__ = "jobs"
    task: Mapped[str] = mapped_column(ForeignKey("tasks.id"), primary_key=True)
    created: Mapped[datetime]
    worker: Mapped[str | None]
    leased_until: Mapped[datetime | None]
    tries: Mapped[int] = mapped_column(default=0)
    done: Mapped[datetime | None]


class Outcome(Base):
    """What a closed task publishes: the release, and the public part of the pay."""

    __tablename__ = "outcomes"
    task: Mapped[str] = mapped_column(ForeignKey("tasks.id"), primary_key=True)
    release: Mapped[str]
    public: Mapped[dict[str, Any]]
    page: Mapped[str]
    paid: Mapped[int | None]  # all cents together
    created: Mapped[datetime]


class Line(Base):
    """What one owner learns; only that owner and the operator may see it."""

    __tablename__ = "lines"
    task: Mapped[str] = mapped_column(ForeignKey("tasks.id"), primary_key=True)
    owner: Mapped[str] = mapped_column(ForeignKey("members.id"), primary_key=True)
    line: Mapped[dict[str, Any]]


class Key(Base):
    """The key that signs receipts, created once."""

    __tablename__ = "keys"
    id: Mapped[int] = mapped_column(primary_key=True)
    private: Mapped[bytes]
