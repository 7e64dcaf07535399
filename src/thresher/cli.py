"""The command `thresher`: parse, call one function, print.

Data go to stdout, words to stderr. Exit codes: 0 done, 1 refused, 2 usage, 3 budget, 4 an audited
claim is violated.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.errors import BudgetError, InputError, ThresherError

app = typer.Typer(
    no_args_is_help=True,
    help="What each training point is worth: exactly, fast, and privately.",
    pretty_exceptions_enable=False,
)
ledger_app = typer.Typer(no_args_is_help=True, help="Privacy budgets: create, show, verify.")
app.add_typer(ledger_app, name="ledger")

LedgerPath = Annotated[Path, typer.Argument(help="The ledger's file.", show_default=False)]


@ledger_app.command("create")
def create(
    path: LedgerPath,
    epsilon: Annotated[float, typer.Option(help="The cap's epsilon.")],
    delta: Annotated[float, typer.Option(help="The cap's delta; 0 for pure releases only.")],
    adjacency: Annotated[str, typer.Option(help="add-remove or replace-one.")] = "add-remove",
    unit: Annotated[str, typer.Option(help="What is protected: point or owner.")] = "point",
    data_set: Annotated[str, typer.Option(help="What it protects, in words.")] = "",
    filter_: Annotated[
        str | None, typer.Option("--filter", help="How costs add up: gaussian or basic.")
    ] = None,
) -> None:
    """Create a ledger, whose terms are fixed forever.

    Example: thresher ledger create ledger.db --epsilon 1 --delta 1e-6 --data-set "clinic 2026"
    """
    from thresher.privacy.ledger import Ledger

    terms: Any = {"adjacency": adjacency, "unit": unit, "data_set": data_set, "filter": filter_}
    with Ledger.create(path, epsilon=epsilon, delta=delta, **terms) as ledger:
        _say(f"created {ledger}")


@ledger_app.command("show")
def show(path: LedgerPath) -> None:
    """Print the cap, what is left, and every entry, as JSON.

    Example: thresher ledger show ledger.db
    """
    from thresher.privacy.ledger import Ledger

    with Ledger.open(path) as ledger:
        terms = ("epsilon", "delta", "adjacency", "unit", "data_set", "filter")
        shown = {name: getattr(ledger, name) for name in terms}
        shown |= {"remaining": ledger.remaining(), "entries": ledger.entries()}
        _print(shown)


@ledger_app.command("verify")
def verify(
    path: LedgerPath,
    head: Annotated[
        str | None, typer.Option(help="A hash that a release recorded: it must be in the ledger.")
    ] = None,
) -> None:
    """Check that no entry was changed, dropped or put in, and that the cap was kept.

    Example: thresher ledger verify ledger.db
    """
    from thresher.privacy.ledger import Ledger

    with Ledger.open(path) as ledger:
        found = ledger.verify(head=head)
        left = ledger.remaining()
    witness = "" if found.witnessed else "; its witness file was missing: it may be an older copy"
    _say(f"{found.entries} entries in order, epsilon={left:g} left{witness}")
    _print({"entries": found.entries, "head": found.head, "witnessed": found.witnessed})


@app.command("release")
def release(
    points: Annotated[Path, typer.Argument(help="Private points: .csv, .parquet or .npz.")],
    validation: Annotated[Path, typer.Option(help="The public validation set.")],
    epsilon: Annotated[float, typer.Option(help="The budget's epsilon.")],
    delta: Annotated[float, typer.Option(help="The budget's delta.")],
    ledger: Annotated[Path, typer.Option(help="The ledger that is charged.")],
    out_prices: Annotated[Path, typer.Option(help="Where the public price list is written.")],
    label: Annotated[str, typer.Option(help="The column of labels.")] = "y",
    radius: Annotated[float, typer.Option(help="Distance up to which a point counts.")] = 0.5,
    metric: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    mechanism: Annotated[str, typer.Option(help="table, cells or paper.")] = "table",
    owner: Annotated[str | None, typer.Option(help="The column of owners.")] = None,
    points_per_owner: Annotated[
        int | None, typer.Option(help="About how many points an owner has, as is public.")
    ] = None,
    version: Annotated[str, typer.Option(help="A public name for the state of the points.")] = "",
) -> None:
    """Release a private price list, charged to a ledger.

    Example: thresher release points.csv --validation val.csv --epsilon 1 --delta 1e-6
    --ledger ledger.db --out-prices prices.json
    """
    from thresher.privacy.release import dp_tknn_shapley
    from thresher.tables import read_labeled

    if not out_prices.resolve().parent.is_dir() or out_prices.is_dir():
        raise InputError(f"--out-prices {out_prices} cannot be written: nothing was charged")
    X, y, owners = read_labeled(points, label, owner)
    X_val, y_val, _ = read_labeled(validation, label)
    if owner is not None and owner in getattr(X_val, "column_names", ()):
        X_val = X_val.drop_columns([owner])
    found = dp_tknn_shapley(
        X, y, X_val, y_val, epsilon=epsilon, delta=delta, radius=radius, metric=metric,
        mechanism=mechanism, ledger=ledger, owners=owners, points_per_owner=points_per_owner,
        version=version,
    )  # fmt: skip
    found.price_list.save(out_prices)
    if found.stored:
        _say("the ledger had answered this before: nothing was charged, the points were not used")
        _say("if the points have changed, give them another --version")
    told = found.relative_error
    error = "" if told != told else f"; expected relative error {told:.3g}"  # noqa: PLR0124
    _say(f"wrote {out_prices}{error}")
    _print(dict(found.record))


@app.command("attack")
def attack(
    points: Annotated[Path, typer.Argument(help="Points to draw from: .csv, .parquet or .npz.")],
    validation: Annotated[
        Path | None, typer.Option(help="The validation set; without it, rows are held out.")
    ] = None,
    label: Annotated[str, typer.Option(help="The column of labels.")] = "y",
    method: Annotated[str, typer.Option(help="tknn, knn or dp-tknn.")] = "tknn",
    radius: Annotated[float, typer.Option(help="Distance up to which a point counts.")] = 0.5,
    k: Annotated[int, typer.Option(help="Neighbors consulted, for knn.")] = 5,
    metric: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    epsilon: Annotated[
        float | None, typer.Option(help="For dp-tknn: the budget's epsilon, 1 if not given.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="For dp-tknn: the budget's delta, 1e-5 if not given.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="For dp-tknn: table (if not given), paper or cells.")
    ] = None,
    members: Annotated[int, typer.Option(help="Points that the server holds.")] = 200,
    nonmembers: Annotated[int, typer.Option(help="Points that it does not hold.")] = 200,
    shadow: Annotated[int, typer.Option(help="Points that the attacker has.")] = 400,
    shadow_sets: Annotated[int, typer.Option(help="Sets drawn from them.")] = 32,
    held_out: Annotated[int, typer.Option(help="Validation rows, if no file is given.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the split, the sets and the noise.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Where ROC curves are drawn: .svg, .png or .pdf.")
    ] = None,
) -> None:
    """Try to find out from values who is in the data: the leak that privacy closes.

    Two attacks are run: "paper" hands in a copy of each candidate, "strong" crafts points and knows
    a list of candidates. An AUROC of 0.5 is guessing, 1 is certainty.

    Example: thresher attack points.csv --method tknn --radius 0.5 --plot roc.svg

    Example: thresher attack points.csv --method dp-tknn --epsilon 1 --delta 1e-5
    """
    from thresher.attack.membership import membership_attack
    from thresher.attack.plots import check_kind, save_roc
    from thresher.tables import read_labeled, split_rows

    private = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
    against = _target(method, radius, k, metric, private)
    if plot is not None:
        check_kind(plot)
    X, y, _ = read_labeled(points, label)
    if validation is not None:
        X_val, y_val, _ = read_labeled(validation, label)
    else:
        X, y, X_val, y_val = split_rows(X, y, held_out, seed)
    found = membership_attack(
        X, y, X_val, y_val, against=against, members=members, nonmembers=nonmembers,
        shadow=shadow, shadow_sets=shadow_sets, seed=seed, progress=sys.stderr.isatty(),
    )  # fmt: skip
    for name, roc in found.rocs.items():
        _say(f"{name}: {roc}; {roc.tpr_at(0.01):.1%} of members found at 1 % false alarms")
    _print({"against": repr(against), "seed": seed, "attacks": found.summary()})
    if plot is not None:
        save_roc(found, plot)
        _say(f"wrote {plot}")


def _target(method: str, radius: float, k: int, metric: str, private: dict[str, Any]) -> Any:
    from thresher.attack import DPTKNN, KNN, TKNN
    from thresher.checks import check_choice

    check_choice("--method", method, ("tknn", "knn", "dp-tknn"))
    check_choice("--metric", metric, ("cosine", "euclidean"))
    given = {name: entry for name, entry in private.items() if entry is not None}
    if method == "dp-tknn":
        return DPTKNN(**({"epsilon": 1.0, "delta": 1e-5} | given), radius=radius, metric=metric)
    if given:
        raise InputError(f"--{next(iter(given))} goes with --method dp-tknn, got {method}")
    return TKNN(radius, metric) if method == "tknn" else KNN(k, metric)


@app.command("audit")
def audit(
    mechanism: Annotated[str, typer.Option(help="table, paper, cells or knn.")] = "table",
    epsilon: Annotated[float, typer.Option(help="The epsilon that is claimed.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The delta that is claimed; 0 for cells.")] = 1e-5,
    adjacency: Annotated[str, typer.Option(help="add-remove or replace-one.")] = "add-remove",
    runs: Annotated[int, typer.Option(help="Releases with the canary, and without it.")] = 20_000,
    canaries: Annotated[int, typer.Option(help="In the audit of one release; 0 for none.")] = 200,
    confidence: Annotated[float, typer.Option(help="1 minus the rate of false alarms.")] = 0.999,
    k: Annotated[int | None, typer.Option(help="For knn: neighbors consulted.")] = None,
    subsample: Annotated[float | None, typer.Option(help="For knn: the sampling rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="To repeat it; without, true noise.")] = None,
) -> None:
    """Put a claimed epsilon to the test: run the mechanism often, and try to find a canary.

    A canary is a point that is in half of the releases, the easiest to find that we know of. How
    well it is found proves how much epsilon is spent at least. 20,000 runs take up to half a
    minute. Exits with 4 if the claim is violated.

    Example: thresher audit --mechanism table --epsilon 1 --delta 1e-5
    """
    from thresher.attack.audit import audit_mechanism

    found = audit_mechanism(
        mechanism, epsilon=epsilon, delta=delta, adjacency=adjacency, runs=runs,
        canaries=canaries, confidence=confidence, k=k, subsample=subsample, seed=seed,
        progress=sys.stderr.isatty(),
    )  # fmt: skip
    _say(str(found))
    _print(json.loads(found.to_json()))
    if not found.passed:
        sys.exit(4)


def main() -> None:
    """Run the command; errors of ours are one line and an exit code."""
    try:
        app()
    except BudgetError as refused:
        _say(f"thresher: {refused}")
        sys.exit(3)
    except ThresherError as refused:
        _say(f"thresher: {refused}")
        sys.exit(1)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _print(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=1, default=vars) + "\n")
