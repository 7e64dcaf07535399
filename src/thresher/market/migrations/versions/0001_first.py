"""The first form of all tables; nothing is before it to go back to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "keys",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("private", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "members",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("suspended", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "tasks",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("buyer", sa.String(length=32), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("terms", sa.JSON(), nullable=False),
        sa.Column("validation", sa.LargeBinary(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("opens", TIME, nullable=False),
        sa.Column("closes", TIME, nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("published", TIME, nullable=True),
        sa.Column("closed", TIME, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["buyer"], ["members.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_tasks_state", "tasks", ["state"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("member", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("revoked", TIME, nullable=True),
        sa.ForeignKeyConstraint(["member"], ["members.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_tokens_member", "tokens", ["member"], unique=False)
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("used", TIME, nullable=True),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_invitations_task", "invitations", ["task"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("leased_until", TIME, nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("done", TIME, nullable=True),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"]),
        sa.PrimaryKeyConstraint("task"),
    )
    op.create_table(
        "lines",
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("line", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["owner"], ["members.id"]),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"]),
        sa.PrimaryKeyConstraint("task", "owner"),
    )
    op.create_table(
        "outcomes",
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("public", sa.JSON(), nullable=False),
        sa.Column("page", sa.Text(), nullable=False),
        sa.Column("paid", sa.Integer(), nullable=True),
        sa.Column("created", TIME, nullable=False),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"]),
        sa.PrimaryKeyConstraint("task"),
    )
    op.create_table(
        "places",
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("joined", TIME, nullable=False),
        sa.ForeignKeyConstraint(["owner"], ["members.id"]),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"]),
        sa.PrimaryKeyConstraint("task", "owner"),
    )
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("received", TIME, nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=True),
        sa.Column("commitment", sa.String(length=64), nullable=False),
        sa.Column("receipt", sa.JSON(), nullable=False),
        sa.Column("withdrawn", TIME, nullable=True),
        sa.ForeignKeyConstraint(["owner"], ["members.id"]),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_uploads_of", "uploads", ["task", "owner", "number"], unique=True)
