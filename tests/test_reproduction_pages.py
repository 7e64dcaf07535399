"""The story of the paper's reproduction, and the means over sets that pages take from its tables."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from runpy import run_path
from statistics import fmean

import pytest

ROOT = Path(__file__).parent.parent
NINE = {"2dplanes", "apsfail", "click", "cpu", "creditcard", "fraud", "phoneme", "pol", "wind"}


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


def of_nine(name, part):
    """The figures of the nine tables in one part of a page of the paper, by row and column."""
    text = (ROOT / "docs" / "reproduction" / f"{name}.md").read_text()
    body = text.split(f"\n## {part}, 5 runs, protocol clean\n")[1].split("\n## ")[0]
    head, _, *rows = ([c.strip() for c in row.split("|")[1:-1]] for row in body.split("\n") if row)
    found, last = defaultdict(list), ""
    for row in rows:
        last = row[0] or last
        for column, cell in zip(head[1:], row[1:], strict=True):
            if last in NINE and (figure := re.match(r"-?\d+(?:\.\d+)?", cell)):
                found["ours" if head[1] not in {"", "epsilon"} else row[1], column] += [
                    float(figure[0])
                ]
    return found


def cells_of(page, row):
    """The cells of a row of a page of docs, after its name."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return re.search(rf"^\| {re.escape(row)} \|(.*)\|$", text, re.MULTILINE)[1].split("|")


def is_shown(cell, figures):
    """Whether a cell has these means of figures: rounded ones, so the last digit may differ by one."""
    shown = [each.strip() for each in cell.split("/")]
    near = [
        pytest.approx(fmean(f), abs=0.75 * 10.0 ** -max(2, len(t) - 2))
        for f, t in zip(figures, shown)
    ]
    return [float(each) for each in shown] == near[: len(shown)]


MEMBERSHIP = {
    "KNN-Shapley, k = 1 to 15": "knn",
    "TKNN-Shapley, radius 0.1 to 0.9": "tknn",
    "DP-TKNN, the paper's mechanism, epsilon 1": "dp-tknn-1",
    "DP-TKNN, the paper's mechanism, epsilon 0.5": "dp-tknn-0.5",
    "DP-TKNN, our table, radius 0.5, epsilon 1": "table-1",
    "DP-TKNN, our table, radius 0.5, epsilon 0.5": "table-0.5",
}


@pytest.mark.parametrize("row", MEMBERSHIP)
def test_the_page_of_attacks_has_the_means_over_sets(row):
    wanted = [("AUROC", "ours"), ("AUROC", "paper"), ("strong AUROC", "ours")]
    for cell, (part, kind) in zip(cells_of("attacks", row), wanted, strict=True):
        found = of_nine("membership", f"{MEMBERSHIP[row]}: {part}")
        figures = [
            each for (found_kind, _), some in found.items() if found_kind == kind for each in some
        ]
        assert is_shown(cell, [figures]) if figures else not cell.strip(), cell


PRIVATE = {
    "exact (no privacy)": "exact",
    "zero-budget score (costs nothing)": "zero-budget",
    "the paper's mechanism": "dp-tknn",
    "Thresher's `table`": "table",
    "DP-KNN": "dp-knn",
    "DP-KNN with subsampling": "dp-knn-sampled",
}


@pytest.mark.parametrize("row", PRIVATE)
def test_the_page_of_the_paper_has_the_means_over_sets(row):
    parts = "AUROC", "rank correlation", "relative error, rescaled"
    for cell, part in zip(cells_of("reproduction", row), parts, strict=True):
        found = of_nine("privacy", f"mislabel: {part}")
        figures = [some for (_, column), some in found.items() if column == PRIVATE[row]]
        assert is_shown(cell, figures), cell
