"""`thresher attack` and `thresher audit`: what values and releases give away."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from thresher.cli.options import Adjacency, Label, argument, check_needs, given
from thresher.cli.words import say, show_json
from thresher.errors import InputError


def attack(
    points: Annotated[
        Path,
        argument(
            "Points to draw from: .csv or .tsv (also .gz), .parquet, .arrow, .feather or .npz."
        ),
    ],
    validation: Annotated[
        Path | None, given("The validation set; without it, rows are held out.")
    ] = None,
    label: Label = "y",
    method: Annotated[str, given("Which values to attack: tknn, knn or dp-tknn.")] = "tknn",
    radius: Annotated[
        float | None,
        given("For tknn and dp-tknn: distance up to which a point counts; 0.5 if not given."),
    ] = None,
    k: Annotated[int | None, given("For knn: neighbors consulted; 5 if not given.")] = None,
    metric: Annotated[str, given("Distance: cosine or euclidean.")] = "cosine",
    epsilon: Annotated[
        float | None, given("For dp-tknn: the budget's epsilon, 1 if not given.")
    ] = None,
    delta: Annotated[
        float | None, given("For dp-tknn: the budget's delta, 1e-5 if not given.")
    ] = None,
    mechanism: Annotated[
        str | None,
        given("For dp-tknn, as in thresher release: table (if not given), paper or cells."),
    ] = None,
    kernel: Annotated[str | None, given("For dp-tknn: as in thresher release.")] = None,
    members: Annotated[int, given("How many points to put into the data.")] = 200,
    nonmembers: Annotated[int, given("How many points to leave out of the data.")] = 200,
    shadow: Annotated[int, given("How many other points the attacker has, for shadow sets.")] = 400,
    shadow_sets: Annotated[int, given("How many shadow sets to draw from them.")] = 32,
    held_out: Annotated[
        int | None, given("Without --validation: how many rows to hold out; 200 if not given.")
    ] = None,
    seed: Annotated[int, given("The seed for the split, the sets and the noise.")] = 0,
    plot: Annotated[Path | None, given("Where to draw the ROC curves: .svg, .png or .pdf.")] = None,
) -> None:
    """Try to find out from values who is in the data: the leak that privacy closes.

    There are two attacks. "paper" submits a copy of each candidate. "strong" crafts points, and
    knows a list of candidates. An AUROC of 0.5 is guessing, and 1 is certainty.

    Example: thresher attack points.csv --method tknn --radius 0.5 --plot roc.svg

    Example: thresher attack points.csv --method dp-tknn --epsilon 1 --delta 1e-5
    """
    from thresher.attack.membership import membership_attack
    from thresher.attack.plots import save_roc
    from thresher.plots import check_kind
    from thresher.tables.labeled import read_complete, split_rows

    private = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism, "kernel": kernel}
    against = _target(method, radius, k, metric, private)
    if held_out is not None and validation is not None:
        raise InputError("--held-out cannot be used with --validation: choose one of the two")
    if plot is not None:
        check_kind(plot)
    X, y = read_complete(points, label)
    if validation is not None:
        X_val, y_val = read_complete(validation, label)
    else:
        X, y, X_val, y_val = split_rows(X, y, 200 if held_out is None else held_out, seed)
    found = membership_attack(
        X, y, X_val, y_val, against=against, members=members, nonmembers=nonmembers,
        shadow=shadow, shadow_sets=shadow_sets, seed=seed, progress=sys.stderr.isatty(),
    )  # fmt: skip
    for name, roc in found.rocs.items():
        say(f"{name}: {roc}; {roc.tpr_at(0.01):.1%} of members found at 1 % false alarms")
    show_json({"against": repr(against), "seed": seed, "attacks": found.summary()})
    if plot is not None:
        save_roc(found, plot)
        say(f"wrote {plot}")


def _target(
    method: str, radius: float | None, k: int | None, metric: str, private: dict[str, Any]
) -> Any:
    from thresher.attack import DPTKNN, KNN, TKNN
    from thresher.inputs.checks import check_choice

    check_choice("--method", method, ("tknn", "knn", "dp-tknn"))
    check_choice("--metric", metric, ("cosine", "euclidean"))
    check_needs({"k": k}, "--method knn", met=method == "knn")
    check_needs({"radius": radius}, "--method tknn or dp-tknn", met=method != "knn")
    check_needs(private, "--method dp-tknn", met=method == "dp-tknn")
    uses_delta = private["mechanism"] != "cells" or private["delta"] == 0
    check_needs({"delta": private["delta"]}, "--mechanism table or paper", met=uses_delta)
    if method == "knn":
        return KNN(5 if k is None else k, metric)
    near: dict[str, Any] = {"radius": 0.5 if radius is None else radius, "metric": metric}
    if method == "tknn":
        return TKNN(**near)
    given = {name: entry for name, entry in private.items() if entry is not None}
    return DPTKNN(**({"epsilon": 1.0, "delta": 1e-5} | given), **near)


def audit(
    mechanism: Annotated[
        str,
        given("table, paper or cells, as in thresher release; or knn: nearest-neighbor values."),
    ] = "table",
    epsilon: Annotated[float, given("The epsilon that is claimed.")] = 1.0,
    delta: Annotated[float, given("The delta that is claimed; 0 for cells.")] = 1e-5,
    adjacency: Adjacency = "add-remove",
    runs: Annotated[
        int, given("How many releases to make with the canary, and how many without it.")
    ] = 20_000,
    canaries: Annotated[
        int, given("How many canaries to use in the audit of one release; 0 for none.")
    ] = 200,
    confidence: Annotated[float, given("1 minus the rate of false alarms.")] = 0.999,
    k: Annotated[int | None, given("For knn: neighbors consulted; 5 if not given.")] = None,
    subsample: Annotated[
        float | None,
        given("For knn: the sampling rate, above 0 and up to 1; all points if not given."),
    ] = None,
    kernel: Annotated[str, given("For table: as in thresher release.")] = "box",
    leaves: Annotated[
        bool, given("For table: points are counted in the leaves of trees.", "--leaves")
    ] = False,
    seed: Annotated[
        int | None, given("A seed to repeat the audit; without it, the noise is truly random.")
    ] = None,
) -> None:
    """Put a claimed epsilon to the test: run the mechanism many times, and try to find a canary.

    A canary is a made-up point that is as easy to find as possible. It is in half of the releases.
    How well it can be found proves a lower bound on the true epsilon. 20,000 runs take up to half a
    minute. The exit code is 4 if the claim is violated.

    Example: thresher audit --mechanism table --epsilon 1 --delta 1e-5
    """
    from thresher.attack.audit import audit_mechanism

    found = audit_mechanism(
        mechanism, epsilon=epsilon, delta=delta, adjacency=adjacency, runs=runs,
        canaries=canaries, confidence=confidence, k=k, subsample=subsample, seed=seed,
        kernel=kernel, leaves=leaves, progress=sys.stderr.isatty(),
    )  # fmt: skip
    for line in str(found).splitlines():
        say(line)
    show_json(json.loads(found.to_json()))
    if not found.passed:
        sys.exit(4)
