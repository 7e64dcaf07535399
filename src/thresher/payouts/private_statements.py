"""Statements of a private payout as files: for everybody, for each owner, for the operator.

An owner's file must follow from the release and that owner's own points alone, including the name
of the file. Numbers in order would show how many owners there are, so the name is a hash of the
owner's name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from thresher.drafts import draft_folder
from thresher.errors import InputError
from thresher.files import resolved, writing
from thresher.payouts.private import PrivatePayout, line_of
from thresher.payouts.shared_rows import SharedRows, shared_rows, shared_table
from thresher.payouts.shares import money
from thresher.report.owner_page import write_statement
from thresher.report.phrases import brief, count_of
from thresher.statement_page import StatementPage, Table

PUBLIC, OPERATOR, PAGE, OWNERS = "public.json", "operator.json", "operator.html", "owners"


def file_name(owner: Hashable) -> str:
    """The name of an owner's file, which reveals nothing about others.

    Examples
    --------
    >>> file_name("ann") == file_name("ann") != file_name("bob")
    True
    """
    return hashlib.sha256(repr(owner).encode()).hexdigest()[:24] + ".json"


def rows_in_common(release: Any, within: float) -> tuple[SharedRows, ...]:
    """Rows that several owners of a release have: for the operator alone."""
    rows, where = release._contributions.points.rows, release._private.where
    owners = [release._owners[row] for row in where.tolist()]
    return shared_rows(rows.as_float64(slice(None)), owners, radius=within)


def operator_part(paid: PrivatePayout, shared: tuple[SharedRows, ...] = ()) -> dict[str, Any]:
    """What the operator alone may see: all pay, the reserve, doubtful orders, rows in common."""
    ranked = sorted(paid.lines, key=lambda line: -line.cents)
    return {
        **paid.public(),
        "paid": sum(paid.cents.values()),
        "reserve": paid.reserve,
        "owners": [line_of(line) | {"file": file_name(line.owner)} for line in paid.lines],
        "order": [
            {
                "owner": one.owner, "other": other.owner,
                "wrong": paid.wrong_order(one.owner, other.owner),
            }
            for one, other in pairwise(ranked)
        ],
        "shared": [
            asdict(each) | {
                "cents": paid.cents.get(each.owner, 0), "other_cents": paid.cents.get(each.other, 0)
            }
            for each in shared
        ],
    }  # fmt: skip


def operator_page(paid: PrivatePayout, shared: tuple[SharedRows, ...] = ()) -> StatementPage:
    """The operator's page."""
    about = operator_part(paid, shared)
    ranked = sorted(paid.lines, key=lambda line: -line.cents)
    lines = [
        (brief(line.owner), money(line.cents), money(line.later),
         f"{money(line.low)} to {money(line.high)}", f"{100 * line.clipped:.0f}%")
        for line in ranked
    ]  # fmt: skip
    orders = [
        (brief(each["owner"]), brief(each["other"]), f"{100 * each['wrong']:.0f}%")
        for each in about["order"]
    ]
    columns = "owner", "paid", "may follow", "interval", "clipped"
    tables = [Table.of("Payments", columns, lines)]
    if orders:
        order = "owner", "next owner", "chance of the other order"
        tables.append(Table.of("Doubtful orders", order, orders))
    if shared:
        tables.append(shared_table(shared, paid.cents))
    lead = (
        f"{money(about['paid'])} of {money(paid.pot)} go to {count_of(len(lines), 'owner')}; the "
        f"reserve takes {money(paid.reserve)}. Pay was not scaled to fit the pot."
    )
    cautions = (
        "This page is for the operator alone: the reserve and the pay of others are exact.",
        "Before anyone was paid, the release stated an expected overshoot of "
        f"{money(paid.overshoot)} and a ceiling of {money(paid.ceiling)} for all pay.",
        "The privacy bound clips large contributions, and the clipped part is not paid. So "
        "owners gain by splitting their rows among several names: pay only owners whose "
        "identities you know.",
    )
    return StatementPage("private payout", "Who is paid what", lead, tuple(tables), cautions, about)


def write_statements(
    paid: PrivatePayout, folder: str | Path, shared: tuple[SharedRows, ...] = (), *,
    page: bool = True,
) -> Path:  # fmt: skip
    """Write all statements, or none, to a new folder that other users cannot read."""
    with writing(folder):
        target = resolved(Path(folder))
        if target.exists():
            raise InputError(f"{folder} already exists: choose a new folder for the statements")
        with draft_folder(target.parent) as draft:
            draft.chmod(0o700)
            _write(draft / PUBLIC, paid.public())
            _write(draft / OPERATOR, operator_part(paid, shared))
            (draft / OWNERS).mkdir(mode=0o700)
            for line in paid.lines:
                paid.save_line(line.owner, draft / OWNERS / file_name(line.owner))
            if page:
                write_statement(operator_page(paid, shared), draft / PAGE)
            draft.rename(target)
    return target


def _write(path: Path, about: dict[str, Any]) -> None:
    path.write_text(json.dumps(about, indent=1, default=str) + "\n", encoding="utf-8")
