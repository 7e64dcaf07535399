"""The results of suggestions.py as a Markdown page."""

from __future__ import annotations

import numpy as np
from messy_tables import NOISES
from table_sources import CHOOSING, HELD_OUT

OURS, THEIRS = "Thresher", "cleanlab, forest"
COMPARED = "Thresher AUROC", "cleanlab AUROC", "Thresher F1", "cleanlab F1"
ABOUT = (
    "Real and generated tables were made messy, and some of their labels wrong. The tables show how "
    "well each method finds the wrong labels. The page on findings (`docs/findings.md`) explains the "
    "methods, the kinds of wrong labels and the measures. *By value* ranks rows by their values "
    "instead of their scores, and *by margin* by another score of cleanlab."
)
GOOD = 0.5  # a forecast is good if it is off by this share of the truth at most


def render(result: dict) -> str:
    held_out = {name: told for name, told in result.items() if name in HELD_OUT}
    chosen = {name: told for name, told in result.items() if name in CHOOSING}
    lines = ["# Suggestions: wrong labels in messy tables", "", ABOUT, ""]
    if held_out:
        lines += [f"## Summary: {len(held_out)} tables that were not used to choose the rule", ""]
        lines += [*_by_method(held_out), "", *_against(held_out), "", *_accuracies(held_out), ""]
        lines += [*_forecasts(held_out), "", _times(held_out), ""]
    for title, tables in (("not used to choose", held_out), ("used to choose", chosen)):
        if tables:
            lines += [f"## {len(tables)} tables that were {title} the rule", ""]
            lines += _figures(tables)
    lines += ["## Every table, means over the kinds of wrong labels", "", *_by_table(result)]
    return "\n".join(lines) + "\n"


def _by_method(tables: dict) -> list[str]:
    """Means over tables and kinds of noise, by each score that a method has."""
    ranked, marked = ("AUROC", "AP"), ("precision", "recall", "F1")
    rows = []
    for method in _methods(tables):
        for suffix, figures in (("", (*ranked, *marked)), (" of values", ranked)):
            means = [
                np.mean([_mean(tables, kind, method, f"{name}{suffix}") for kind in NOISES])
                for name in figures
            ]
            if np.isfinite(means[0]):
                cells = [f"{mean:.3f}" if np.isfinite(mean) else "" for mean in means]
                cells += [""] * (len(marked) if suffix else 0)
                rows.append((_title(method, suffix), *cells))
    return _table(("method", *ranked, *marked), rows)


def _against(tables: dict) -> list[str]:
    """Ours beside cleanlab's forest, by kind of noise."""
    columns = ("wrong labels", *COMPARED)
    rows = [
        (kind, *(_mean(tables, kind, method, figure)
                 for figure in ("AUROC", "F1") for method in (OURS, THEIRS)))
        for kind in NOISES
    ]  # fmt: skip
    means = [float(np.mean([row[place] for row in rows])) for place in range(1, len(columns))]
    return _table(columns, [*rows, ("mean", *means)])


def _figures(tables: dict) -> list[str]:
    lines = []
    for figure in ("AUROC", "AP", "F1"):
        lines += [f"{figure}, mean over tables:", "", *_by_noise(tables, figure), ""]
    lines += [
        "Rows that are marked `relabel` (by cleanlab: as an issue), and rows that are listed for review. "
        "Figures are means over tables and kinds of wrong labels:", "", *_marks(tables), "",
    ]  # fmt: skip
    lines += ["Test accuracy after cleaning, mean over tables:", "", *_accuracies(tables), ""]
    return [
        *lines,
        "How close the expected number of wrong labels is:",
        "",
        *_forecasts(tables),
        "",
    ]


def _by_noise(tables: dict, figure: str) -> list[str]:
    rows = []
    for method in _methods(tables):
        for source in (figure, f"{figure} of values"):
            means = [_mean(tables, kind, method, source) for kind in NOISES]
            if np.isfinite(means).all():
                rows.append((_title(method, source), *means, np.mean(means)))
    return _table(("method", *NOISES, "mean"), rows)


def _title(method: str, source: str) -> str:
    if "values" not in source:
        return method
    return f"{method}, {'by margin' if 'cleanlab' in method else 'by value'}"


def _marks(tables: dict) -> list[str]:
    names = ("precision", "recall", "F1", "new labels right")
    rows = []
    for method in _methods(tables):
        means = [np.mean([_mean(tables, kind, method, name) for kind in NOISES]) for name in names]
        if np.isfinite(means[2]):
            listed, wrong = (
                sum(
                    told["found"][kind][method][name] for told in tables.values() for kind in NOISES
                )
                for name in ("reviewed", "reviewed wrong")
            )
            points = sum(told["about"]["points"] for told in tables.values()) * len(NOISES)
            rows.append((method, *means, listed / points, wrong / max(listed, 1)))
    return _table(("method", *names, "listed, of all rows", "listed and wrong"), rows)


def _accuracies(tables: dict) -> list[str]:
    first = next(iter(tables.values()))["accuracy"]
    columns = [(kind, model) for kind in first for model in ("linear", "forest")]
    rows = [
        (way, *(np.mean([told["accuracy"][kind][way][model] for told in tables.values()])
                for kind, model in columns))
        for way in next(iter(first.values()))
    ]  # fmt: skip
    return _table(("labels", *(f"{model}, {kind}" for kind, model in columns)), rows)


def _forecasts(tables: dict) -> list[str]:
    """How often the expected number of errors is near the truth."""
    told = [told["found"][kind] for told in tables.values() for kind in NOISES]
    rows = []
    for method in (OURS, THEIRS):
        known = [each[method] for each in told if "expected" in each[method]]
        for title, kept in (
            ("all", known),
            ("not called poor", [each for each in known if not each["poor"]]),
            ("called poor", [each for each in known if each["poor"]]),
        ):
            if kept:
                ratios = np.array([each["expected"] / each["errors"] for each in kept])
                near = np.mean(abs(ratios - 1) <= GOOD)
                rows.append((method, title, str(len(kept)), near, float(np.median(ratios))))
    columns = ("method", "forecasts", "tables", "within 50 %", "median of expected / true")
    return _table(columns, rows)


def _times(tables: dict) -> str:
    """How long cleanlab took, in times as long as Thresher, in the middle of all tables."""
    found = [told["found"][kind] for told in tables.values() for kind in NOISES]
    ratios = [each[THEIRS]["seconds"] / each[OURS]["seconds"] for each in found]
    return (
        f"cleanlab with its forests took {np.median(ratios):.1f} times as long as Thresher in the "
        "median of these tables."
    )


def _by_table(result: dict) -> list[str]:
    columns = ("table", "points", "classes", *COMPARED)
    rows = []
    for name in (*HELD_OUT, *CHOOSING):
        if name in result:
            told, about = {name: result[name]}, result[name]["about"]
            means = [
                np.mean([_mean(told, kind, method, figure) for kind in NOISES])
                for figure in ("AUROC", "F1") for method in (OURS, THEIRS)
            ]  # fmt: skip
            rows.append((name, str(about["points"]), str(about["classes"]), *means))
    return _table(columns, rows)


def _methods(tables: dict) -> list[str]:
    return list(next(iter(tables.values()))["found"][NOISES[0]])


def _mean(tables: dict, kind: str, method: str, figure: str) -> float:
    found = [told["found"][kind][method].get(figure, np.nan) for told in tables.values()]
    if figure in {"precision", "new labels right"}:  # of tables where something is marked
        found = [each for each in found if np.isfinite(each)]
    return float(np.mean(found)) if found else float("nan")


def _table(columns: tuple[str, ...], rows: list[tuple]) -> list[str]:
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    for row in rows:
        cells = [cell if isinstance(cell, str) else f"{cell:.3f}" for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
