"""`thresher federate`: a private price list of several silos, none of which shows its points."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from thresher.cli.options import (
    Delimiter,
    Force,
    Ignore,
    Leaves,
    Rings,
    Trees,
    argument,
    given,
    rings_and_leaves,
)
from thresher.cli.words import say, show_json, split_names
from thresher.errors import InputError, printing

app = typer.Typer(
    no_args_is_help=True,
    help="Make one private price list with others: nobody sees another's points or counts.\n\n"
    "The parties that have points are called silos. A coordinator adds up what they send. First, "
    "each party makes a key (key). Then the coordinator writes the task (task) and waits for the "
    "silos (coordinate). Each silo looks at the task, and then takes part (join).",
)


@app.command("key")
def key(path: Annotated[Path, argument("Where to write the new key.", show_default=False)]) -> None:
    """Make a key, and print its public part, which goes into the task.

    Example: thresher federate key silo.key
    """
    from thresher.federate.keys import Key

    made = Key.create()
    made.save(path)
    say(f"wrote {path}: keep it secret; its public part is")
    with printing() as out:
        out.write(f"{made.public}\n")


@app.command("task")
def task(
    validation: Annotated[Path, given("The public validation set.")],
    silo: Annotated[list[str], given("A silo, as NAME=PUBLIC-KEY; give it once for each silo.")],
    out: Annotated[Path, given("Where to write the task: .json.")],
    epsilon: Annotated[
        float | None,
        given("The budget's epsilon; required unless --reveal-exact-counts is given."),
    ] = None,
    delta: Annotated[
        float | None, given("The budget's delta; required unless --reveal-exact-counts is given.")
    ] = None,
    fewest: Annotated[
        int | None,
        given("How many silos must stay until the end; the smallest safe number if not given."),
    ] = None,
    colluding: Annotated[int, given("How many silos may collude with the coordinator.")] = 1,
    key: Annotated[
        Path, given("The coordinator's key; thresher federate key coordinator.key makes one.")
    ] = Path("coordinator.key"),
    label: Annotated[str, given("The column of labels.")] = "y",
    radius: Annotated[float, given("Distance up to which a point counts.")] = 0.5,
    kernel: Annotated[str, given("How much near points count, as in thresher release.")] = "box",
    rings: Rings = None,
    metric: Annotated[Literal["cosine", "euclidean"], given("Distance.")] = "cosine",
    trees: Trees = None,
    leaves: Leaves = None,
    unit: Annotated[
        Literal["point", "owner", "silo"],
        given("What is protected: a point, an owner's points in one silo, or a silo."),
    ] = "point",
    points_per_owner: Annotated[
        int | None,
        given("If owners or silos are protected: about how many points each has; public."),
    ] = None,
    points: Annotated[
        int | None,
        given("About how many points all silos have together; prints the error to expect."),
    ] = None,
    name: Annotated[str, given("What the task is about, in words.")] = "",
    reveal_exact_counts: Annotated[
        bool, given("Add no noise: everyone learns exact sums.", "--reveal-exact-counts")
    ] = False,
    ignore: Ignore = None,
    delimiter: Delimiter = None,
    force: Force = False,
) -> None:
    """Write a task, which says what is counted, by whom, and with what budget.

    Example: thresher federate task --validation val.csv --silo north=1f0c... --silo south=9a2e...
    --silo west=77b1... --epsilon 1 --delta 1e-6 --points 3000 --out task.json
    """
    from thresher.counts import NeighborCounts
    from thresher.federate.keys import Key
    from thresher.federate.round_terms import least_survivors
    from thresher.federate.signed_task import Task
    from thresher.files import check_free
    from thresher.privacy.leaf_setting import public_forest
    from thresher.tables.labeled import columns_left_out, read_labeled, same_columns
    from thresher.tables.paths import check_text_options

    rings, leaves = rings_and_leaves(kernel, rings, trees, leaves)
    check_free(out, [validation, key], force=force)
    check_text_options([validation], delimiter=delimiter)
    X_val, y_val = read_labeled(validation, label, delimiter=delimiter)
    X_val, _ = same_columns(
        X_val, X_val, columns_left_out(split_names(ignore), X_val, roles=(label,))
    )
    silos = dict(_named(each) for each in silo)
    parties: dict[str, Any] = {
        "silos": silos, "key": Key.load(key), "colluding": colluding, "name": name,
        "fewest": least_survivors(len(silos), colluding) if fewest is None else fewest,
    }  # fmt: skip
    near: dict[str, Any] = {"radius": radius, "kernel": kernel, "rings": rings, "metric": metric}
    if trees is not None:
        near["forest"] = public_forest(X_val, y_val, trees=trees, leaves=leaves)
    if reveal_exact_counts:
        _check_exact(epsilon, delta, points_per_owner, points, unit)
        counts = NeighborCounts(X_val, y_val, **near)
        made = Task.create_revealing_exact_counts(counts, **parties)
    else:
        if epsilon is None or delta is None:
            raise InputError(
                "a task needs --epsilon and --delta, which set its noise; --reveal-exact-counts "
                "makes one without"
            )
        made = Task.create(
            X_val, y_val, epsilon=epsilon, delta=delta, unit=unit, **near,
            points_per_owner=points_per_owner, **parties,
        )  # fmt: skip
    plan = made.plan(points) if points is not None and made.is_private else None
    made.save(out)
    _describe(made)
    if plan is not None:
        say(f"expected relative error {plan.relative_error:.3g}, if all silos stay to the end")
    with printing() as stdout:
        stdout.write(f"{made.digest}\n")


@app.command("coordinate")
def coordinate(
    task: Annotated[Path, given("The file that thresher federate task wrote.")],
    key: Annotated[Path, given("The coordinator's key, with which the task was made.")] = Path(
        "coordinator.key"
    ),
    out: Annotated[Path, given("Where to write the price list.")] = Path("prices.json"),
    host: Annotated[
        str, given("The address to listen on; 0.0.0.0 for all networks.")
    ] = "127.0.0.1",
    port: Annotated[int, given("The port to listen on; 0 takes a free one.")] = 0,
    wait: Annotated[float, given("Seconds that silos have for each step.")] = 120.0,
    arrive: Annotated[float, given("Seconds that silos have to join.")] = 3600.0,
    report: Annotated[
        Path | None, given("Where to write a page about the release that may be published: .html.")
    ] = None,
    force: Force = False,
) -> None:
    """Wait for the silos of a task, add up what they send, and write the price list.

    Example: thresher federate coordinate --task task.json --key coordinator.key --port 8742
    """
    from thresher.federate.coordinator import Coordinator
    from thresher.federate.keys import Key
    from thresher.federate.signed_task import Task
    from thresher.files import check_free

    check_free(out, [task, key], force=force)
    known = Task.load(task)
    if report is not None:
        if not known.is_private:
            raise InputError("--report shows a private release, but this task has no noise")
        check_free(report, [task, key], force=force)
    _describe(known)
    more = {"host": host, "port": port, "wait": wait, "first_wait": arrive}
    with Coordinator(known, key=Key.load(key), tell=say, **more) as running:  # type: ignore[arg-type]
        say(f"listening at {running.url}")
        found = running.run()
    _write(found, out, report, force=force)


@app.command("join")
def join(
    url: Annotated[str, argument("Where the coordinator listens, such as http://host:8742.")],
    points: Annotated[Path, given("Your points, which stay here.")],
    key: Annotated[Path, given("Your key, from thresher federate key.")],
    digest: Annotated[
        str | None, given("The task's digest, after you compared it with the other silos.")
    ] = None,
    ledger: Annotated[
        Path | None,
        given("Your ledger, which is charged before anything is sent; or give --no-ledger."),
    ] = None,
    no_ledger: Annotated[
        bool, given("Take part though nothing adds up what is released.", "--no-ledger")
    ] = False,
    label: Annotated[str, given("The column of labels.")] = "y",
    owner: Annotated[str | None, given("The column of owners, if the task protects them.")] = None,
    out: Annotated[
        Path | None, given("Where to write the values of your points: .csv, private.")
    ] = None,
    out_prices: Annotated[Path | None, given("Where to write the price list.")] = None,
    reveal_exact_counts: Annotated[
        bool, given("Take part in a task without noise.", "--reveal-exact-counts")
    ] = False,
    ignore: Ignore = None,
    delimiter: Delimiter = None,
    force: Force = False,
) -> None:
    """Count your own points, send the counts masked and with noise, and value the points at home.

    First run it without --digest: it shows the task and sends nothing. Compare the task's digest
    with the other silos by telephone, because a coordinator could invent the other silos. Then run
    it again with --digest.

    Example: thresher federate join http://host:8742 --points mine.csv --key silo.key
    --digest 834cf4bf... --ledger ledger.db --out values.csv
    """
    from thresher.federate.http_client import Link, fetch_task
    from thresher.federate.keys import Key
    from thresher.federate.signed_task import Task
    from thresher.federate.silo import PATIENCE, Silo
    from thresher.files import check_free
    from thresher.tables.labeled import read_labeled, read_private
    from thresher.tables.paths import check_text_options

    check_text_options([points], delimiter=delimiter)
    for target in (out, out_prices):
        if target is not None:
            check_free(target, [points, key], force=force)
    known = Task.read(fetch_task(Link(url, PATIENCE)))
    _describe(known)
    if digest is None:
        say(f"its digest is {known.digest}")
        say("nothing was sent: compare the digest with the other silos, then add --digest")
        raise typer.Exit(2)
    if known.is_private:
        _check_ledger(ledger, no_ledger=no_ledger)
    owners = None
    if known.is_private:
        private = read_private(points, label, owner, delimiter=delimiter)
        X, y, owners = private.X, private.y, private.owners
    else:  # nobody is protected from knowing that a row cannot be read
        X, y = read_labeled(points, label, delimiter=delimiter)
    X = _like(X, known.columns, ignore, (label, owner))
    silo = Silo(
        X, y, key=Key.load(key), approve=digest, owners=owners, ledger=ledger,
        reveal_exact_counts=reveal_exact_counts,
    )  # fmt: skip
    found = silo.join(url)
    prices = getattr(found, "price_list", found)
    if out_prices is not None:
        prices.save(out_prices)
        say(f"wrote {out_prices}")
    if out is not None:
        values = found.values if prices is not found else prices.values(X, y)
        _write_values(out, values.tolist())
        say(f"wrote {out}")
    say("the round is complete")


@app.command("demo")
def demo(
    silos: Annotated[int, given("How many silos take part, each a process.")] = 5,
    out: Annotated[Path, given("Where to write the price list.")] = Path("prices.json"),
    force: Force = False,
) -> None:
    """Play a round on this machine: each silo is a process with a part of the handwritten digits.

    Example: thresher federate demo --silos 5 --out prices.json
    """
    from thresher.cli.federate_demo import play_demo
    from thresher.files import check_free

    check_free(out, [], force=force)
    _write(play_demo(silos, say), out, None, force=force)


def _check_ledger(ledger: Path | None, *, no_ledger: bool) -> None:
    """Raise unless exactly one of the two is given."""
    if ledger is None and not no_ledger:
        raise InputError(
            "--ledger is missing: it adds up what is released about your points. To take part "
            "without one, give --no-ledger"
        )
    if ledger is not None and no_ledger:
        raise InputError("--ledger cannot be used with --no-ledger: leave out one of the two")


def _describe(task: Any) -> None:
    """Print what a silo agrees to when it joins."""
    terms = task.terms
    about = f": {terms['name']}" if terms["name"] else ""
    say(f"{task!r}{about}")
    for name, public in sorted(terms["silos"].items()):
        say(f"silo {name}: {public}")
    say(f"near: {task.side}; digest {terms['public_digest']}")
    if task.is_private:
        excess = task.excess(len(terms["silos"]))
        say(f"noise: {excess:.3g} times the variance that a trusted server would need")


def _write(found: Any, out: Path, report: Path | None, *, force: bool) -> None:
    prices = getattr(found, "price_list", found)
    prices.save(out)
    say(f"wrote {out}")
    if prices is found:
        return
    if report is not None:
        found.report(report, force=force)
        say(f"wrote {report}")
    if found.relative_error is not None:
        say(f"expected relative error {found.relative_error:.3g}")
    if found.warning:
        say(found.warning)
    show_json(dict(found.record))


def _named(given_silo: str) -> tuple[str, str]:
    name, equals, public = given_silo.partition("=")
    if not equals:
        raise InputError(f"silo must be like NAME=PUBLIC-KEY, got {given_silo!r}")
    return name, public


def _check_exact(*given_for_noise: Any) -> None:
    names = ("--epsilon", "--delta", "--points-per-owner", "--points", "--unit")
    for name, entry in zip(names, given_for_noise, strict=True):
        if entry not in (None, "point"):
            raise InputError(
                f"{name} cannot be used with --reveal-exact-counts, which adds no noise: leave out "
                "one of the two"
            )


def _like(X: Any, columns: Any, ignore: str | None, roles: tuple[str | None, ...]) -> Any:
    """The columns of the points that the validation set has, in its order."""
    import pyarrow as pa

    from thresher.tables.labeled import columns_left_out, same_columns

    left_out = columns_left_out(split_names(ignore), X, roles=roles)
    if columns is None or not hasattr(X, "column_names"):
        return X
    empty = pa.table({name: pa.array([], pa.float64()) for name in columns})
    return same_columns(X, empty, [*left_out, *filter(None, roles[1:])])[0]


def _write_values(path: Path, values: list[float]) -> None:
    from thresher.files import write_whole

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            rows = [("row", "value"), *enumerate(values)]
            csv.writer(file, lineterminator="\n").writerows(rows)

    write_whole(path, write, private=True)
