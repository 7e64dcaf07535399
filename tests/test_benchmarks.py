"""Figures in the documentation are those that the benchmarks stored, and `make bench` runs them all."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from pathlib import Path
from runpy import run_path

import pytest
import waits

from thresher.cli.demo import demo

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
BY_HAND = {"profile_knn", "reproduction", "provenance"}  # a profile; hours; what is old


def test_make_bench_runs_every_benchmark():
    scripts = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if '__name__ == "__main__"' in path.read_text()
    }
    run = set(re.findall(r"python benchmarks/(\w+)\.py", (ROOT / "Makefile").read_text()))
    assert run == scripts - BY_HAND


def test_tables_about_owners_are_those_that_were_measured():
    text = " ".join((ROOT / "docs" / "payouts.md").read_text().split())
    for line in (RESULTS / "owners.md").read_text().splitlines():
        if line.startswith("| ") or "times as much" in line:
            assert " ".join(line.split()) in text, line


@pytest.mark.parametrize(("name", "count"), [("market", 3), ("federate", 12)])
def test_the_tables_of_parties_are_those_that_were_measured(name, count):
    pages = (ROOT / "docs" / f"{page}.md" for page in ("market", "federation"))
    text = "".join(page.read_text() for page in pages)
    lines = (RESULTS / f"{name}.md").read_text().splitlines()
    rows = [line for line in lines if "| " in line and not line.startswith("| silos")]
    assert len(rows) == count
    assert all(line in text for line in rows)


def results_named(text):
    """The pages of results that a page links to, or whose benchmark it names."""
    names = re.findall(r"results/([\w-]+)\.md|benchmarks/(\w+)\.py", text)
    found = {f"{one or other}.md" for one, other in names}
    found = {RESULTS / name for each in found for name in (each, each.replace("_", "-"))}
    if "thresher reproduce" in text:
        found |= set((ROOT / "docs" / "reproduction").glob("*.md"))
    return [path for path in found if path.exists()]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMPUTED = ("variance, of a central release", "before weights were added")  # no benchmark has these


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_in_tables_are_in_the_results_that_the_page_names(page):
    """Each to its own digits, or as a thousandth: results count microseconds."""
    text = page.read_text()
    measured = "".join(path.read_text() for path in results_named(text))
    stored = [float(each) for each in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", measured)]
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = "" if COMPUTED[0] in table else re.sub(rf"\|.*{COMPUTED[1]}.*", "", table)
        for figure in re.findall(r"(?<![\w.,])\d+\.\d\d+(?![\w.])", rows):
            near = f"{{:.{len(figure.split('.')[1])}f}}".format
            assert any(figure in {near(each), near(each / 1000)} for each in stored), figure


def test_the_page_of_privacy_has_what_a_budget_buys_for_targets():
    ranks, _, errors = (RESULTS / "privacy-regression.md").read_text().split("\n## ")[1:]
    rows, stated = (
        [line for line in table.splitlines() if line.startswith("| ")] for table in (ranks, errors)
    )
    text = (ROOT / "docs" / "privacy.md").read_text()
    assert all(line in text for line in [*rows, *stated])
    for line in rows[1:]:  # better than what costs nothing, at epsilon 1
        free, _, _, one, _ = (float(cell) for cell in line.strip("| ").split(" | ")[1:])
        assert one > free, line


def tables(name):
    """The tables of `results/NAME.md`, each as its rows, each as its cells."""
    text = (RESULTS / f"{name}.md").read_text()
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        yield [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]


def rows_by_name(name):
    return [{first: others for first, *others in table} for table in tables(name)]


BUDGET = {  # what the page calls the rows
    "zero-budget score (no budget)": "zero-budget score, no budget",
    "public prior (no budget)": "public prior, no budget",
    "table": "table",
    "cells": "cells (delta = 0)",
    "paper": "paper",
    "knn": "KNN, against exact KNN values",
    "knn sampled": "KNN with sampling",
}


def test_the_page_of_privacy_has_what_a_budget_buys_for_labels():
    page = (ROOT / "docs" / "privacy.md").read_text()
    ranks, errors, found, _, inside, *_ = rows_by_name("privacy")
    for name, called in BUDGET.items():
        cells = (
            " / ".join(x if float(x) < 10 else f"{float(x):.0f}" for x in table[name] if x)
            for table in (ranks, errors, found)
        )
        assert f"| {called} | {' | '.join(cells)} |" in page
    for table, called in (
        (ranks, "Spearman"),
        (errors, "relative error"),
        (found, "AUROC of flipped labels"),
        (inside, "exact values inside their intervals"),
    ):
        for name, kernel in (("table", "box"), ("table, gaussian kernel", "Gaussian kernel")):
            assert f"| {called}, {kernel} | {' | '.join(table[name])} |" in page


def test_the_page_of_privacy_has_what_leaves_buy():
    page = (ROOT / "docs" / "privacy.md").read_text()
    called = {"radius": "radius", "radius, no prior": "radius, no prior"}
    called |= {"1 grown": "1 tree", "4 grown": "4 trees", "16 grown": "16 trees"}
    for table in rows_by_name("leaf-tables"):
        for name in called:
            assert f"| {called[name]} | {' | '.join(table[name][:3])} |" in page


def test_the_page_of_privacy_has_the_errors_that_releases_state():
    page = (ROOT / "docs" / "privacy.md").read_text()
    stated, ranks = defaultdict(list), defaultdict(dict)
    for points, judges, epsilon, kind, error, said, inside, rank, of in next(
        tables("stated-errors")
    )[2:]:
        many = f" ({int(judges):,} validation rows)" if judges != "200" else ""
        some = "" if len(set(of.split(" of "))) == 1 else f" ({of})"
        figures = f"{error}, {said}, {100 * float(inside):.0f} %{some}" if said != "-" else "none"
        if kind not in {"prior", "score"}:
            stated[f"{int(points):,}, {float(epsilon):g}{many}"].append(figures)
        ranks[points, judges, float(epsilon)][kind] = f"{float(rank):.3f}"
    for setting, cells in stated.items():
        assert f"| {setting} | {' | '.join(cells)} |" in page
    for (points, judges, epsilon), row in ranks.items():
        if points == "2000" and epsilon:
            known = row | ranks[points, judges, 0.0]  # what costs nothing
            cells = " | ".join(
                known[kind] for kind in ("prior", "score", "table", "counted", "cells")
            )
            assert f"| {int(judges):,}, {epsilon:g} | {cells} |" in page


def test_the_page_of_kernels_has_what_they_find():
    text = (ROOT / "docs" / "kernels.md").read_text()
    page = (RESULTS / "kernel-detection.md").read_text()
    parts = re.findall(r"## (.*?), protocol (.*?)\n(.*?)(?=\n## |\Z)", page, re.DOTALL)
    assert len(parts) == 4
    for task, protocol, body in parts:
        for kind in ("tables", "embeddings"):
            cells = re.search(rf"\| mean of the {kind} \| (.*) \|", body)[1].split(" | ")[:5]
            assert f"| {task}, {protocol}, {kind} | {' | '.join(cells)} |" in text


def test_the_page_of_attacks_has_what_audits_catch():
    result = json.loads((RESULTS / "audit.json").read_text())
    text = (ROOT / "docs" / "attacks.md").read_text()
    for name in ("table", "cells", "paper"):
        caught = {
            (row["noise"], row["epsilon"]): round(row["any"] * row["audits"])
            for row in result["power"]
            if row["mechanism"] == name and row["audits"] == 20
        }
        less, nearly = (
            " / ".join(str(caught[noise, epsilon]) for epsilon in (0.5, 1.0, 4.0))
            for noise in (0.8, 0.95)
        )
        assert f"| {name} | {less} | {nearly} |" in text
    assert [row["rejected"] for row in result["false alarms"]] == [0, 0, 0]


def test_the_page_of_kernels_has_what_rings_cost():
    text = (ROOT / "docs" / "kernels.md").read_text()
    rows = [line for line in (RESULTS / "rings.md").read_text().splitlines() if "| " in line]
    assert len(rows) == 6
    assert all(line in text for line in rows)


def test_the_table_of_replaced_targets_is_the_one_that_was_measured():
    page = (ROOT / "docs" / "regression.md").read_text()
    assert (RESULTS / "regression.md").read_text().split("\n\n")[-1].strip() in page


def test_suggestions_are_skipped_with_a_reason_where_data_sets_are_missing():
    before = (RESULTS / "suggestions.json").read_bytes()
    environment = {key: text for key, text in os.environ.items() if key != "THRESHER_DATA"}
    done = waits.run(
        [sys.executable, str(ROOT / "benchmarks" / "suggestions.py")], env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "was skipped" in done.stdout
    assert "phoneme.npz is not in a folder of data sets" in done.stdout
    assert (RESULTS / "suggestions.json").read_bytes() == before


def test_the_page_of_findings_has_the_tables_that_were_measured():
    page = (ROOT / "docs" / "findings.md").read_text()
    summary = (RESULTS / "suggestions.md").read_text().split("\n## ")[1]
    tables = [text for text in summary.split("\n\n") if text.startswith("| ")]
    speed = (RESULTS / "forest-speed.md").read_text().split("\n\n")
    tables += [text for text in speed if text.startswith("| ")]
    assert len(tables) == 7
    for table in tables:
        assert table.strip() in page


ROWS = [
    ("`tknn_shapley`, 100,000 x 1,000 x 10", "(100000, 1000, 10)", "tknn euclidean", "product"),
    ("`tknn_shapley`, 50,000 x 1,000 x 1024", "(50000, 1000, 1024)", "tknn euclidean", "product"),
    ("`knn_shapley`, 100,000 x 1,000 x 10", "(100000, 1000, 10)", "knn soft-label euclidean", "argsort"),
    ("`knn_shapley`, 50,000 x 1,000 x 1024", "(50000, 1000, 1024)", "knn soft-label euclidean", "product"),
    ("`knn_shapley`, 50,000 x 1,000 x 1024", "(50000, 1000, 1024)", "knn float32 order euclidean", "product"),
]  # fmt: skip


@pytest.mark.parametrize(("work", "shape", "contender", "limit"), ROWS)
def test_the_readme_has_the_ratios_that_were_measured(work, shape, contender, limit):
    """Lowest and highest of five runs, in two digits."""
    shapes = json.loads((RESULTS / "latest.json").read_text())["shapes"][shape]
    ratios = shapes["ranges"][contender][limit]
    text = " to ".join(dict.fromkeys(f"{float(f'{ratio:.2g}')}" for ratio in ratios))
    row = next(line for line in (ROOT / "README.md").read_text().splitlines() if work in line)
    assert re.search(rf"(?<![\d.]){re.escape(text)} (of|with)", row), f"{text} is not in {row}"


REACHED = [
    ("`tknn_shapley`, (1,000,000, 100, 10)", "(1000000, 100, 10)", "tknn", "product"),
    ("`tknn_shapley`, (50,000, 5,000, 1024)", "(50000, 5000, 1024)", "tknn", "product"),
    ("`knn_shapley`, (100,000, 1,000, 10)", "(100000, 1000, 10)", "knn soft-label", "argsort"),
    ("`knn_shapley`, (50,000, 1,000, 1024)", "(50000, 1000, 1024)", "knn soft-label", "product"),
]


def test_the_page_of_benchmarks_has_what_was_measured():
    """Over both metrics: the lowest and the highest ratio of five runs; and the growth."""
    page = (ROOT / "benchmarks" / "README.md").read_text().splitlines()
    latest = json.loads((RESULTS / "latest.json").read_text())
    for work, shape, contender, limit in REACHED:
        ranges = latest["shapes"][shape]["ranges"]
        seen = [
            r for metric in ("euclidean", "cosine") for r in ranges[f"{contender} {metric}"][limit]
        ]
        row = next(line for line in page if work in line)
        assert f"| {min(seen):.2f} to {max(seen):.2f} |" in row
    growth = next(line for line in page if "growth from 125,000" in line)
    assert f"| {latest['growth']['knn, d=10, 8N']:.1f} |" in growth


def _means(name: str) -> dict[str, dict[str, str]]:
    """The last rows of the tables in `results/NAME.md`: the title of each, then column by column."""
    found = {}
    for head, _, *_, last in tables(name):
        found[head[0]] = dict(zip(head[1:], last[1:], strict=True))
    return found


def test_the_page_of_the_command_has_what_suggested_radii_find():
    page = (ROOT / "docs" / "command.md").read_text()
    for sets, row in (("choosing", "used for choosing"), ("held out", "held out")):
        told = _means("radius")[sets]
        shown = [told[column] for column in ("0.5", "most accurate", "suggested", "hindsight")]
        assert f"| {row} | {' | '.join(shown)} |" in page


def test_the_page_of_the_command_has_what_each_scaling_finds():
    page = (ROOT / "docs" / "command.md").read_text()
    for sets, row in (("choosing", "used for choosing"), ("held out", "held out")):
        told = _means("scaling")[f"{sets}, messy"]
        assert "| tables, method | robust | ranks | plain |" in page
        for method in ("tknn", "knn"):
            found = (told[f"{method} {scaling}"] for scaling in ("robust", "ranks", "plain"))
            assert f"| {row}, {method} | {' | '.join(found)} |" in page


def test_the_costs_on_the_page_of_scale_are_those_fitted():
    """`benchmarks/scale.py` writes both."""
    told = json.loads((RESULTS / "scale.json").read_text())["nanoseconds"]
    page = (ROOT / "docs" / "scale.md").read_text()
    for constant, each in told:
        assert f"N M ({constant:.3f} + {each:.4f} d) 1e-9" in page
    accuracy = re.compile(r"off by \S+ % to \S+ % at \d+ shapes that were not fitted")
    told_there = accuracy.findall((RESULTS / "scale.md").read_text())
    assert accuracy.findall(" ".join(page.split())) == told_there


def test_the_readme_shows_what_the_demonstration_prints(capsys):
    """All but the seconds."""
    demo()
    shown = re.search(
        r"( {4}1497 digits.*?)\n\n(?! {4})", (ROOT / "README.md").read_text(), re.DOTALL
    )
    quoted, printed = (
        re.sub(r"(tknn|knn) +\d+\.\d+", r"\1", text)
        for text in (re.sub("^ {4}", "", shown[1], flags=re.MULTILINE), capsys.readouterr().out)
    )
    assert quoted.splitlines() == printed.splitlines()


def test_the_paper_has_a_page_that_tells_and_pages_of_tables(tmp_path):
    reproduction = run_path(str(ROOT / "benchmarks" / "reproduction.py"))
    story = ROOT / "docs" / "reproduction.md"
    assert len(story.read_text().splitlines()) < 240
    assert story.read_text().endswith(reproduction["contents"](ROOT / "docs"))
    (tmp_path / "reproduction.md").write_text("# Ours\n\nA story.\n\n## Tables\n\nold tables\n")
    (tmp_path / "noisy.md").write_text("# Noise\n\n![noisy](noisy.svg)\n\n## AUROC\n")
    reproduction["write_tables"]([tmp_path], tmp_path)
    assert (tmp_path / "reproduction" / "noisy.md").read_text() == "# Noise\n\n## AUROC\n"
    text = (tmp_path / "reproduction.md").read_text()
    assert text.startswith("# Ours\n\nA story.\n\n## Tables\n\n")
    assert "- [Noise](reproduction/noisy.md)" in text
    assert "old tables" not in text


def test_figures_are_drawn_from_the_stored_results(tmp_path):
    """`python docs/figures.py` again gives the bytes that are kept."""
    drawing = run_path(str(ROOT / "docs" / "figures.py"))
    for name in ("speed", "growth", "privacy"):
        drawing["save"](drawing["FIGURES"][name](), tmp_path / f"{name}.svg")
        kept = (ROOT / "docs" / "_static" / f"{name}.svg").read_bytes()
        assert (tmp_path / f"{name}.svg").read_bytes() == kept, f"run python docs/figures.py {name}"


def test_the_figure_of_scale_is_drawn_from_the_stored_results(tmp_path):
    found = json.loads((RESULTS / "scale.json").read_text())["found"]
    scale = run_path(str(ROOT / "benchmarks" / "scale.py"))
    scale["draw"](found, tmp_path / "scale.svg")
    assert (tmp_path / "scale.svg").read_bytes() == (RESULTS / "scale.svg").read_bytes()


def test_every_page_of_results_was_measured_at_a_commit_of_this_history():
    shallow = waits.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT)
    if shallow.stdout.strip() != "false":
        pytest.skip("the whole history is not here")
    known = waits.run(["git", "log", "--format=%h"], cwd=ROOT).stdout.split()
    for page, commit in run_path(str(ROOT / "benchmarks" / "provenance.py"))["commits"]().items():
        assert any(each[:7] == commit[:7] for each in known), f"{page}: {commit}"
