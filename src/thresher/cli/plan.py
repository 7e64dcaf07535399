"""`thresher plan`: what a private release would cost and how good it would be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from thresher.cli import options
from thresher.cli.options import given
from thresher.cli.release import forest_of
from thresher.cli.words import say, show_json, split_names
from thresher.errors import InputError


def plan(
    validation: options.PublicValidation,
    points: Annotated[int, given("About how many points there will be: public, or a guess.")],
    epsilon: Annotated[str, given("Budgets to compare, such as 0.5 or 0.1,0.5,1.")] = "0.1,0.5,1,4",
    delta: Annotated[
        float, given("The delta of each budget; the mechanism cells needs none.")
    ] = 1e-6,
    label: options.Label = "y",
    radius: options.Radius = "0.5",
    metric: options.Metric = "cosine",
    kernel: Annotated[
        str, given("As in thresher release; kernels other than box need --mechanisms table.")
    ] = "box",
    rings: options.Rings = None,
    trees: options.Trees = None,
    leaves: options.Leaves = None,
    mechanisms: Annotated[
        str | None,
        given(
            "Which mechanisms of thresher release to compare, separated by commas: table, cells, "
            "paper; table and cells if not given."
        ),
    ] = None,
    counted: Annotated[
        bool,
        given("Plan tables with a noisy count of the points, as in thresher release.", "--counted"),
    ] = False,
    adjacency: options.Adjacency = "add-remove",
    points_per_owner: Annotated[
        int | None, given("If owners are protected: about how many points each has.")
    ] = None,
    ignore: options.Ignore = None,
    standardize: options.Standardize = None,
    fill: options.PublicFill = None,
    categorical: options.Categorical = None,
    plot: Annotated[Path | None, given("Where to draw the curves: .svg, .png or .pdf.")] = None,
    delimiter: options.Delimiter = None,
) -> None:
    """Say what a private release would cost and how good it would be, before anything is spent.

    Thresher draws points from the public validation set, and tries each mechanism with each budget
    on them. It reads no private file. The table shows the expected error of values, and how well
    their order agrees with the exact one. (1 is perfect. Next to it is a score that costs nothing.)
    It also shows the price: epsilon if a point is added or removed, epsilon if one is replaced, and
    mu^2, the cost that a ledger with the gaussian filter adds up.

    Example: thresher plan --validation val.csv --points 20000 --epsilon 0.1,0.5,1 --plot plan.svg

    Example: thresher plan --validation val.csv --points 20000 --standardize validation
    --radius auto

    Example: thresher plan --validation val.csv --points 20000 --trees 4 --leaves 16
    """
    from thresher.privacy.plan import plan_release
    from thresher.privacy.table_mechanism import Table
    from thresher.runs.public_encoding import Preparation, read_radius
    from thresher.tables.labeled import columns_left_out, read_labeled, same_columns
    from thresher.tables.paths import check_text_options

    if plot is not None:
        from thresher.plots import check_kind

        check_kind(plot)
    rings, leaves = options.rings_and_leaves(kernel, rings, trees, leaves)
    by_radius = kernel == "box" and trees is None
    names = split_names(mechanisms) if mechanisms else ["table", *(["cells"] * by_radius)]
    options.check_needs({"counted": counted}, "--mechanisms table", met="table" in names)
    budgets = _budgets(epsilon)
    check_text_options([validation], delimiter=delimiter)
    X_val, y_val = read_labeled(validation, label, delimiter=delimiter)
    left_out = columns_left_out(split_names(ignore), X_val, roles=(label,))
    preparation = Preparation.of(standardize, fill, split_names(categorical))
    encoder = preparation and preparation.fit(validation, label, left_out, delimiter)
    X_val = encoder.rows if encoder else same_columns(X_val, X_val, left_out)[1]
    reach = read_radius(radius, X_val, y_val, metric=metric, kernel=kernel, rings=rings)
    forest = forest_of(X_val, y_val, trees, leaves)
    table = Table(bound="counted") if counted else "table"
    compared = [table if name == "table" else name for name in names]
    rows = [
        _row(budget, each)
        for budget in budgets
        for each in plan_release(
            X_val, y_val, points=points, epsilon=budget, delta=delta, radius=reach, metric=metric,
            adjacency=adjacency, mechanisms=compared,
            points_per_owner=points_per_owner, kernel=kernel, rings=rings, forest=forest,
        )
    ]  # fmt: skip
    for line in _table(rows):
        say(line)
    if forest is not None:
        say("with --trees, the release itself cannot say how far off its values are")
    show_json({"points": points, "delta": delta, "plans": rows})
    if plot is not None:
        from thresher.plots import save_plans

        save_plans(rows, plot)
        say(f"wrote {plot}")


def _budgets(text: str) -> list[float]:
    try:
        return sorted({float(each) for each in split_names(text)})
    except ValueError:
        raise InputError(f"--epsilon must be numbers such as 0.1,0.5,1, got {text!r}") from None


def _row(epsilon: float, plan: Any) -> dict[str, Any]:
    """What the plan says about one mechanism and budget; unknown numbers are None."""
    figures = {
        "relative_error": plan.relative_error,
        "rank_agreement": plan.rank_agreement,
        "zero_budget": plan.zero_budget,
    }
    known = {name: None if number != number else number for name, number in figures.items()}  # noqa: PLR0124
    price = {name: plan.record[f"epsilon_{name}"] for name in ("add_remove", "replace_one")}
    return {
        "epsilon": epsilon, "mechanism": plan.mechanism, **known, "is_noise": plan.is_noise,
        "bound": plan.record["bound"], "sigma": plan.record.get("sigma"), **price,
        "mu_squared": plan.mu_squared,
    }  # fmt: skip


def _table(rows: list[dict[str, Any]]) -> list[str]:
    names = {
        "epsilon": "epsilon", "mechanism": "mechanism", "relative_error": "error",
        "rank_agreement": "ranks", "zero_budget": "ranks, no budget", "add_remove": "add/remove",
        "replace_one": "replace", "mu_squared": "mu^2",
    }  # fmt: skip
    shown = [row | {"mu_squared": row["mu_squared"] or "none"} for row in rows]
    cells = [list(names.values()), *([_cell(row[name]) for name in names] for row in shown)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    noise = [f"{row['mechanism']} at {row['epsilon']:g}" for row in rows if row["is_noise"]]
    return [*lines, f"mere noise: {', '.join(noise)}"] if noise else lines


def _cell(entry: Any) -> str:
    if entry is None:
        return "unknown"
    return entry if isinstance(entry, str) else f"{entry:.3g}"
