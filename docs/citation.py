"""How to cite Thresher, as BibTeX made from CITATION.cff."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

SOURCE = Path(__file__).parent.parent / "CITATION.cff"


def bibtex() -> str:
    """Entries for the software and for the paper, as a block of code."""
    about: dict[str, Any] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    paper = about["preferred-citation"]
    entries = [
        entry(
            "software",
            "thresher",
            author=names(about),
            title=about["title"],
            version=about["version"],
        ),
        entry(
            "inproceedings",
            f"{paper['authors'][0]['family-names'].lower()}{paper['year']}",
            author=names(paper),
            title=paper["title"],
            booktitle=paper["collection-title"],
            year=paper["year"],
        ),
    ]
    return "\n".join(["```bibtex", *entries, "```"])


def names(work: dict[str, Any]) -> str:
    """Authors as BibTeX wants them: "Family, Given and Family, Given"."""
    return " and ".join(
        f"{each['family-names']}, {each['given-names']}"
        if "family-names" in each
        else f"{{{each['name']}}}"
        for each in work["authors"]
    )


def entry(kind: str, key: str, **fields: Any) -> str:
    """One entry; a title keeps its capitals."""
    lines = [f"  {name} = {{{{{text}}}}}," if name == "title" else f"  {name} = {{{text}}},"
             for name, text in fields.items()]  # fmt: skip
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
