"""`thresher market`: everything that the pages of a market do, from a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from thresher.cli.options import Force, argument, given, number
from thresher.cli.serve import require_market, running
from thresher.cli.words import say, show_json, split_names
from thresher.errors import InputError

HELP = """Take part in a market that pays for data without revealing it.

**thresher serve** starts a market, and **thresher market demo** plays a whole one. The word in
parentheses after a command says whom it is for.

Say where the market is and who you are with --url and --token, or once for all commands:
**export THRESHER_URL=http://127.0.0.1:8000 THRESHER_TOKEN=thresher-...**
"""
app = typer.Typer(no_args_is_help=True, help=HELP, rich_markup_mode="markdown")

Address = Annotated[str, given("The address of the market.", envvar="THRESHER_URL")]
Token = Annotated[str, given("Your token.", envvar="THRESHER_TOKEN")]
TaskId = Annotated[str, argument("The id of the task.", show_default=False)]
UploadId = Annotated[str, argument("The id of the upload.")]
Rows = Annotated[Path, argument("Your rows: .csv, .parquet or .json.", show_default=False)]
Export = Annotated[
    Path, argument("The file that `thresher market export` wrote.", show_default=False)
]
URL = "http://127.0.0.1:8000"


def verb(act: Callable[..., Any]) -> None:
    """Add a verb that calls `act` with a `Client` for --url and --token, and prints the result."""

    def run(url: Address = URL, token: Token = "", **given: Any) -> None:
        from thresher.market.client import Client

        answer = act(Client(url, token or None), **given)
        if answer is not None:
            show_json(answer)

    own, shared = ([*signature(each, eval_str=True).parameters.values()] for each in (act, run))
    run.__signature__ = Signature(own[1:] + shared[:2])  # type: ignore[attr-defined]
    run.__doc__ = act.__doc__
    app.command(act.__name__)(run)


def of_task(name: str, text: str) -> None:
    """Add a verb that prints what the market answers about a task."""

    def ask(client: Any, task: TaskId) -> Any:
        return getattr(client, name)(task)

    ask.__name__ = name
    ask.__doc__ = f"{text}\n\nExample: thresher market {name} 0123456789abcdef"
    verb(ask)


@verb
def add(
    client: Any,
    role: Annotated[
        Literal["operator", "buyer", "owner", "auditor"], argument("The member's role.")
    ],
    name: Annotated[str, argument("The member's name, which others see.")],
) -> Any:
    """Add a member, and print the member's token, which is shown only once (operator).

    Example: thresher market add buyer "Clinic West"
    """
    return client.add_member(role, name)


@verb
def members(client: Any) -> Any:
    """List all members (operator).

    Example: thresher market members
    """
    return client.members()


@verb
def suspend(
    client: Any,
    member: Annotated[str, argument("The member's id.")],
    undo: Annotated[bool, given("Reinstate the member.", "--undo")] = False,
) -> None:
    """Suspend a member (operator).

    Example: thresher market suspend 0123456789abcdef
    """
    client.suspend(member, suspended=not undo)


@verb
def token(
    client: Any,
    member: Annotated[str | None, argument("The member's id; you if not given.")] = None,
) -> Any:
    """Print another token for yourself or, as operator, a new one for a member who lost theirs.

    A new token for another member ends all of that member's old tokens.

    Example: thresher market token 0123456789abcdef
    """
    return client.new_token(member)


@verb
def revoke(
    client: Any,
    ended: Annotated[
        str,
        argument(
            "The token, or its public name: the part between its two hyphens.", metavar="TOKEN"
        ),
    ],
) -> None:
    """Revoke a token: one of yours or, as operator, anybody's.

    Example: thresher market revoke 0123456789abcdef
    """
    client.revoke(ended)


@verb
def tasks(client: Any) -> Any:
    """List the tasks that you can see.

    Example: thresher market tasks
    """
    return client.tasks()


@verb
def draft(
    client: Any,
    validation: Annotated[Path, argument("The public validation set.", show_default=False)],
    title: Annotated[str, given("The title of the task.")],
    label: Annotated[str, given("The column of labels.")],
    pot_cents: Annotated[str, given("What you pay in all, in cents.", metavar="INTEGER")],
    epsilon: Annotated[
        float, given("The budget's epsilon: what the task may reveal about an owner.")
    ],
    delta: Annotated[float, given("The budget's delta.")],
    rows_per_owner: Annotated[int, given("About how many rows each owner submits.")],
    owners: Annotated[int, given("About how many owners there will be.")],
    closes: Annotated[str, given("When the task closes, such as 2027-02-01T12:00Z.")],
    opens: Annotated[
        str | None, given("When the task opens; if not given, when you publish it.")
    ] = None,
    radius: Annotated[
        float | None,
        given(
            "Distance up to which a row counts; if not given, Thresher suggests one from the "
            "validation set."
        ),
    ] = None,
    metric: Annotated[Literal["cosine", "euclidean"], given("Distance.")] = "euclidean",
    kernel: Annotated[
        Literal["box", "gaussian", "triangular", "epanechnikov"],
        given("How much near rows count; box counts them all alike."),
    ] = "box",
    rings: Annotated[int, given("Into how many rings a kernel is divided.")] = 4,
    categorical: Annotated[
        str | None, given("Columns that are categories, separated by commas.")
    ] = (None),
    fill: Annotated[
        str | None, given("How to fill missing numbers: median, zero or a number.")
    ] = None,
    pay: Annotated[
        Literal["estimate", "lower"],
        given("Pay the estimate, or the lower end of its interval now and the rest later."),
    ] = "estimate",
    basis: Annotated[
        Literal["gains", "total"],
        given("What the pot is divided by: gains stay below the pot, total may exceed it."),
    ] = "gains",
    classes: Annotated[
        str | None,
        given("All labels, separated by commas; those of the validation set if not given."),
    ] = None,
    standardize: Annotated[
        bool, given("Scale columns by the validation set.", "--standardize/--no-standardize")
    ] = True,
    trees: Annotated[
        int | None,
        given("Count rows in the leaves of this many public trees, not within a radius."),
    ] = None,
    leaves: Annotated[int, given("The most leaves that such a tree has.")] = 16,
    most_rows: Annotated[int, given("The most rows that one owner may submit.")] = 100_000,
) -> Any:
    """Draft a task, and see how good its results are expected to be (buyer).

    Example: thresher market draft val.csv --title "Sick or well?" --label diagnosis
    --pot-cents 1000000 --epsilon 2 --delta 1e-6 --rows-per-owner 50 --owners 100
    --closes 2027-02-01T12:00Z
    """
    from thresher.payouts.shares import check_cents

    pot = check_cents("pot", number(pot_cents))
    task = client.draft(
        title, validation, opens=_time("opens", opens), closes=_time("closes", closes), label=label,
        pot_cents=pot, epsilon=epsilon, delta=delta, rows_per_owner=rows_per_owner,
        owners=owners, radius=radius, metric=metric, pay=pay, basis=basis, kernel=kernel,
        rings=rings, categorical=split_names(categorical), fill=fill, trees=trees, leaves=leaves,
        classes=split_names(classes) or None, standardize=standardize, most_rows=most_rows,
    )  # fmt: skip
    return {"task": task["id"], "plan": client.plan(task["id"])}


of_task(
    "plan",
    "Print how far off a draft's values will be, and how much of the pot is left over (buyer).",
)


@verb
def validation(
    client: Any,
    task: TaskId,
    out: Annotated[Path, given("Where to write the validation set.")],
    force: Force = False,
) -> None:
    """Write the public validation set of a task to a file, as its buyer submitted it.

    Example: thresher market validation 0123456789abcdef --out val.csv
    """
    _write(out, client.validation(task), force=force)


of_task("publish", "Publish a draft, so that owners can join; after that it cannot change (buyer).")


@verb
def invite(client: Any, task: TaskId) -> Any:
    """Print a code that lets one owner join (buyer).

    Example: thresher market invite 0123456789abcdef
    """
    return {"code": client.invite(task)}


@verb
def join(
    client: Any,
    code: Annotated[str, argument("The code of the invitation.")],
    name: Annotated[str, given("Your name, if you have no token yet.")] = "",
) -> Any:
    """Join a task by an invitation, and print the token of a new owner, which is shown only once.

    Example: thresher market join thresher-... --name "Hospital North"
    """
    return client.join(code, name)


@verb
def upload(
    client: Any,
    task: TaskId,
    rows: Rows,
    receipt: Annotated[Path, given("Where to write the receipt and its salt: keep this file.")],
    replaces: Annotated[str | None, given("The id of an upload that these rows replace.")] = None,
    force: Force = False,
) -> Any:
    """Submit rows, and keep the signed receipt (owner).

    The receipt proves what you submitted. Its file also holds a secret, the salt of the commitment.
    Anyone who has the salt and guesses your rows can check the guess, so keep the file to yourself.

    Example: thresher market upload 0123456789abcdef mine.csv --receipt receipt.json
    """
    require_market()
    from thresher.files import check_free, write_text
    from thresher.market.receipts import new_salt

    check_free(receipt, force=force)
    salt = new_salt()
    made = client.upload(task, rows, salt=salt, replaces=replaces)
    text = json.dumps(made["receipt"] | {"salt": salt.hex()}, indent=1) + "\n"
    write_text(receipt, text, replace=force, private=True)
    say(f"{made['rows']} rows were accepted; the receipt is in {receipt}")
    return made


of_task("uploads", "List your uploads (owner).")


@verb
def download(
    client: Any,
    task: TaskId,
    upload: UploadId,
    out: Annotated[Path, given("Where to write the rows.")],
    force: Force = False,
) -> None:
    """Write rows to a file, as you submitted them (owner).

    Example: thresher market download 0123456789abcdef fedcba9876543210 --out mine.csv
    """
    _write(out, client.download(task, upload), force=force, private=True)


@verb
def withdraw(client: Any, task: TaskId, upload: UploadId) -> None:
    """Withdraw rows before the task closes (owner).

    Example: thresher market withdraw 0123456789abcdef fedcba9876543210
    """
    client.withdraw(task, upload)


of_task("close", "Close a task early (buyer).")
of_task("statement", "Print what you are paid (owner).")
of_task("payments", "Print what everybody is to be paid, and what stays in the reserve (operator).")


@verb
def result(
    client: Any,
    task: TaskId,
    out: Annotated[Path, argument("A new folder for what the task published.", show_default=False)],
) -> None:
    """Write what a task published: the release with its prices, the report and the rate of pay.

    Example: thresher market result 0123456789abcdef published
    """
    files = {
        "release.json": json.dumps(client.release(task)).encode() + b"\n",
        "report.html": client.report(task).encode(),
        "payout.json": json.dumps(client.payout(task), indent=1).encode() + b"\n",
    }
    if out.exists():
        raise InputError(f"{out} already exists: name another folder")
    out.mkdir(parents=True)
    for name, content in files.items():
        _write(out / name, content)


@verb
def delete(client: Any, task: TaskId) -> Any:
    """Delete your rows of a task that has ended (owner).

    Example: thresher market delete 0123456789abcdef
    """
    return {"deleted": client.delete_rows(task)}


@verb
def export(
    client: Any,
    out: Annotated[Path, argument("Where to write it: .json.", show_default=False)],
    force: Force = False,
) -> None:
    """Write everything public about the market to a file (auditor).

    Example: thresher market export market.json
    """
    text = json.dumps(client.export()) + "\n"
    _write(out, text.encode(), force=force)


@app.command()
def verify(path: Export) -> None:
    """Check an export offline: the ledger's chain, tables, prices and rates of pay.

    Example: thresher market verify market.json
    """
    require_market()
    from thresher.market.export import verify as check

    for line in check(_read(path)):
        say(line)


@app.command("verify-pay")
def verify_pay(
    path: Export,
    rows: Annotated[
        list[Path],
        argument("The files of all your rows that counted, in the order of their upload."),
    ],
    task: Annotated[str, given("The id of the task.")],
    owner: Annotated[str, given("Your id: `owner` in your receipts.")],
) -> None:
    """Compute your own pay from the public export and your own rows, offline (owner).

    Example: thresher market verify-pay market.json mine.csv --task 0123456789abcdef
    --owner fedcba9876543210
    """
    require_market()
    from thresher.market.export import own_line

    found = [each for each in _read(path)["tasks"] if each["id"] == task]
    if not found:
        raise InputError(f"there is no task {task} in {path}")
    files = [(each.read_bytes(), each.suffix.lstrip(".").lower()) for each in rows]
    show_json(own_line(found[0], owner, files))


@app.command()
def backup(
    out: Annotated[Path, argument("A new folder for the copy.", show_default=False)],
    data: Annotated[Path, given("The market's folder.")] = Path("market"),
) -> None:
    """Copy a market's folder while it runs (operator).

    A database that has its own URL is not included: copy it first, with pg_dump.

    Example: thresher market backup copy --data market
    """
    from thresher.market.backup import back_up

    for path in back_up(data, out):
        say(f"wrote {path}")


@app.command()
def demo(
    data: Annotated[Path, given("A new folder for the market.")] = Path("demo-market"),
    port: Annotated[int, given("The port to listen on.")] = 8000,
    stop: Annotated[bool, given("Stop when the story has ended.", "--stop")] = False,
) -> None:
    """Play a whole story with made-up hospitals, and leave the market running for you to explore.

    Example: thresher market demo
    """
    require_market()
    from thresher.market.demonstration import play

    if data.exists():
        raise InputError(f"{data} already exists: name another folder with --data")
    with running(data, port) as (url, token):
        found = play(url, token, say)
        show_json(found)
        if not stop:
            import threading

            say(f"open {url} and log in with one of these tokens; press Ctrl-C to stop")
            threading.Event().wait()


def _write(out: Path, content: bytes, *, force: bool = False, private: bool = False) -> None:
    from thresher.files import check_free, write_whole

    check_free(out, force=force)
    write_whole(out, lambda draft: draft.write_bytes(content), replace=force, private=private)
    say(f"wrote {out}")


def _read(path: Path) -> Any:
    from thresher.files import reading

    with reading(path, "market export") as found:
        return json.loads(found.read_text(encoding="utf-8"))


def _time(name: str, text: str | None) -> Any:
    from datetime import datetime

    from thresher.market.times import check_time, now

    if text is None:
        return now()
    try:
        return check_time(name, datetime.fromisoformat(text))
    except ValueError as wrong:
        raise InputError(f"{name} must be a time such as 2027-02-01T12:00Z: {wrong}") from None
