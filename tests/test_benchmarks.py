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


PAGES = [
    *(ROOT / name for name in ("README.md", "benchmarks/README.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
UNMEASURED = {  # formulas, sums of cells, versions, and measured on a machine of before
    "docs/attacks.md": "0.05",
    "docs/concepts.md": "1.25",
    "docs/federation.md": "1.50 1.22 1.67 1.29 1.41 2.17 1.47 1.25 1.12 2.12",
    "docs/payouts.md": "2505.19013 2605.07663",
    "docs/privacy.md": "0.017 1.53",
    "docs/privacy-proofs.md": "0.03 0.97 0.14974 1.5164 0.558 7.98",
    "docs/regression.md": "0.10",
}


def figures(text):
    """Numbers with two decimals or more, outside of code and links; no versions of Python."""
    text = re.sub(r"^```.*?^```|^ {4}.*?$|`[^`]*`|\]\(.*?\)", " ", text, flags=re.M | re.S)
    return re.findall(r"(?<![\w.,/-])(?<!Python )\d+\.\d\d+(?![\w]|\.\d)", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_are_in_the_results_that_their_section_names(page):
    """Each to its own digits, or as a thousandth: results count microseconds.

    Where a section names no results, those of the whole page count.
    """
    whole, name = page.read_text(), str(page.relative_to(ROOT))
    unmeasured = UNMEASURED.get(name, "").split()
    for section in re.split(r"^(?=##? )", whole, flags=re.MULTILINE):
        named = results_named(section) or results_named(whole)
        measured = "".join(path.read_text() for path in named)
        stored = [float(each) for each in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", measured)]
        for figure in set(figures(section)) - set(unmeasured):
            near = f"{{:.{len(figure.split('.')[1])}f}}".format
            assert any(figure in {near(each), near(each / 1000)} for each in stored), figure


def test_the_table_of_silos_follows_its_formula():
    page = (ROOT / "docs" / "federation.md").read_text()
    rows = re.findall(
        r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (.*) \| (.*) \|$", page, re.MULTILINE
    )
    assert rows
    for n, t, k, out, variance, deviation in rows:
        excess = int(n) / (int(k) - int(t))
        assert (variance, deviation) == (f"{excess:.2f}", f"{excess**0.5:.2f}")
        assert int(out) == int(n) - int(k)
        assert 2 * int(k) > int(n) + int(t)


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
    """In those settings of the results that the page shows, to two digits."""
    page = (ROOT / "docs" / "privacy.md").read_text()
    stated, ranks = defaultdict(dict), defaultdict(dict)
    for points, judges, epsilon, kind, error, said, _, rank, _ in next(tables("stated-errors"))[2:]:
        pair = f"{float(error):.2g}, {float(said):.2g}" if said != "-" else "none stated"
        if judges == "200":
            stated[f"{int(points):,}, {float(epsilon):g}"][kind] = pair
        ranks[points, judges, float(epsilon)][kind] = f"{float(rank):.3f}"
    shown = re.findall(r"^\| (\d[\d,]*, [\d.]+) \| (.*(?:, |stated).*) \|$", page, re.MULTILINE)
    assert len(shown) == 6
    for setting, cells in shown:
        kinds = ("table", "fitted", "cells", "owners")
        assert cells == " | ".join(stated[setting][kind] for kind in kinds), setting
    for (points, judges, epsilon), row in ranks.items():
        if points == "2000" and epsilon:
            known = row | ranks[points, judges, 0.0]  # what costs nothing
            cells = " | ".join(
                known[kind] for kind in ("prior", "score", "table", "counted", "cells")
            )
            assert f"| {int(judges):,}, {epsilon:g} | {cells} |" in page


def test_the_page_of_privacy_has_what_single_releases_do():
    text = (ROOT / "docs" / "privacy.md").read_text()
    page = (RESULTS / "stated-errors.md").read_text().split("## Single releases")[1]
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    assert all(line in text for line in lines[:4])
    row = next(line for line in lines if line.startswith("| cells | "))
    _, _, close, inside, _ = (cell.strip() for cell in row.strip("| ").split("|")[1:])
    assert float(close) >= 0.8
    assert float(inside.split(",")[0]) >= 0.85


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


def test_pages_have_how_long_plain_numpy_takes():
    shapes = json.loads((RESULTS / "latest.json").read_text())["shapes"]
    named = shapes["(100000, 1000, 10)"], shapes["(50000, 1000, 1024)"]
    narrow, wide = (each["numpy tknn euclidean"] / each["tknn euclidean"] for each in named)
    for page in (ROOT / "README.md", ROOT / "docs" / "scale.md"):
        text = " ".join(page.read_text().split())
        shown = re.search(r"take (\d+) times as long.*? with 10 features, and (\S+) times", text)
        assert shown, page
        assert shown.groups() == (f"{narrow:.0f}", f"{wide:.1f}"), page


def test_the_readme_has_the_memory_that_was_measured():
    readme = (ROOT / "README.md").read_text()
    memory = json.loads((RESULTS / "latest.json").read_text())["memory"]
    shown = [int(each) for each in re.findall(r"(\d+) MB", readme)]
    asked = ["(100000, 1000, 10)", "(50000, 1000, 1024)", "(50000, 5000, 1024)"]
    works = [f"knn {asked[0]}", *(f"tknn {shape}" for shape in asked)]
    assert shown == [round(memory[work] / 1e6) for work in works]


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


def test_the_page_of_retraining_has_the_time_of_a_fit():
    page = (ROOT / "docs" / "retraining.md").read_text()
    (table,) = (table for table in tables("retrain") if table[0][1] == "contender")
    fits = {(row[0], row[1]): float(row[4]) / 1000 for row in table[2:]}
    works = {
        "leave-one-out": "loo",
        "Data Shapley": "shapley",
        "Beta Shapley": "beta",
        "Data Banzhaf": "banzhaf",
    }
    for called, work in works.items():
        bare, plain, fast = (
            fits[f"{work} (2000, 200, 10)", name]
            for name in ("bare fits", "thresher", "thresher accelerated")
        )
        assert (
            f"| {called}, 2,000 points | {bare:.1f} ms | {plain:.1f} ms | {fast:.2f} ms |" in page
        )


def test_the_page_of_scale_has_what_an_error_buys():
    page = (ROOT / "docs" / "scale.md").read_text()
    times, errors = (table[2:] for table in tables("knn-scale"))
    for (shape, _, _, _, exact, _), *some in zip(times[::3], times[1::3], times[2::3], errors[::2]):
        one, other, real = some
        cells = f"{exact} | {one[4]} ({one[5]}) | {other[4]} ({other[5]})"
        called = "({:,}, {:,}, {:,})".format(*map(int, re.findall(r"\d+", shape)))
        single, mean = (f"{float(real[column]):.2g}" for column in (3, 4))
        row = re.search(rf"^\| {re.escape(called)} \| (.*) \|$", page, re.MULTILINE)
        shown = row and row[1].replace(" times faster", "")
        assert shown in {None, f"{cells} | {single} | {float(mean):.5f}"}, called


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


SENTENCES = [  # what a page and a page of results say in the same words
    ("scale", "scale", r"as ([NM] to the power \S+\d)"),
    ("scale", "scale", r"off by (\S+ % to \S+ %) at (\d+) shapes that were not fitted"),
    ("scale", "neighbors", r"faster way in (\d+ of \d+ cases)"),
    ("scale", "neighbors", r"it took (\S+) times as long"),
    ("market", "market", r"(\S+) rows a second"),
]


@pytest.mark.parametrize(("page", "name", "sentence"), SENTENCES)
def test_sentences_have_the_figures_of_the_results(page, name, sentence):
    shown, stored = (
        set(re.findall(sentence, " ".join(path.read_text().split())))
        for path in (ROOT / "docs" / f"{page}.md", RESULTS / f"{name}.md")
    )
    assert shown
    assert shown <= stored


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


def test_changes_of_code_are_told_from_changes_of_words(tmp_path):
    """Only the first are named, with moves followed; a commit that git does not have is none."""
    provenance = run_path(str(ROOT / "benchmarks" / "provenance.py"))
    body = '"""Says {0}."""\n\n\ndef f(x):\n    """Says {0}."""\n    print(f"{0} {{x}}", "{0}")  # {0}\n'
    source = tmp_path / "src"
    source.mkdir()
    for name in ("same", "words", "code", "moved", "moved_code", "gone"):
        source.joinpath(f"{name}.py").write_text(body.format(name) + f"{name} = 1\n" * 9)
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "first"]):
        assert provenance["git"](*words, root=tmp_path) is not None
    source.joinpath("words.py").write_text(body.format("other words") + "words = 1\n" * 9)
    for name, new in (("code", "code"), ("moved_code", "new_code")):
        text = source.joinpath(f"{name}.py").read_text().replace("(x)", "(x, y)")
        source.joinpath(f"{name}.py").rename(source / f"{new}.py").write_text(text)
    source.joinpath("moved.py").rename(source / "new.py")
    source.joinpath("gone.py").unlink()
    source.joinpath("empty.py").write_text('"""Nothing but words."""\n')
    source.joinpath("added.py").write_text("x = 1\n")
    provenance["git"]("add", ".", root=tmp_path)
    changed = provenance["changed_since"]("HEAD", root=tmp_path)
    assert changed == [f"src/{name}.py" for name in ("added", "code", "gone", "new_code")]
    assert provenance["changed_since"]("0123456", root=tmp_path) is None
