"""Links that pages get by themselves: names in code to the reference, scripts to their results.

Docstrings also get links where they name a page of docs. Base classes that say nothing to a reader
are left out.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.util.nodes import make_refnode

import thresher

NAME = re.compile(r"(?:th\.|thresher\.)?(\w+(?:\.\w+)*)(?:\(.*\))?", re.DOTALL)
SCRIPT = re.compile(r"(?:python )?benchmarks/(\w+)\.py\b.*", re.DOTALL)
PAGE = re.compile(r"docs/([\w-]+)\.md")
UNLINKED = nodes.reference, nodes.title


def link_literals(app: Any, doctree: nodes.document, here: str) -> None:
    """Make links of names and scripts in code, except in headings, and except to the same page."""
    for literal in list(doctree.findall(nodes.literal)):
        if inside(literal, UNLINKED):
            continue
        page, anchor = target_of(app.env, literal.astext())
        if page not in {None, here}:
            literal.replace_self(make_refnode(app.builder, here, page, anchor, literal.deepcopy()))


def target_of(env: Any, text: str) -> tuple[str | None, str]:
    """The page and the anchor to which code should be linked; None where there is no page."""
    if found := SCRIPT.fullmatch(text):
        name = "latest" if found[1] == "run" else found[1]
        pages = (f"results/{name}", f"results/{name.replace('_', '-')}")
        return next((page for page in pages if page in env.found_docs), None), ""
    if found := NAME.fullmatch(text):
        entry = env.domains.python_domain.objects.get(f"thresher.{found[1]}")
        return (entry.docname, entry.node_id) if entry else (None, "")
    return None, ""


def inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    """Whether a node is in one of some kinds."""
    while node := node.parent:
        if isinstance(node, kinds):
            return True
    return False


def link_pages(_: Any, *about: Any) -> None:
    """Make links of the pages that a docstring names."""
    lines = about[-1]
    lines[:] = [PAGE.sub(r":doc:`/\1`", line) for line in lines]


def drop_plain_bases(_: Any, __: str, ___: Any, ____: Any, bases: list[Any]) -> None:
    """Leave out base classes that say nothing to a reader."""
    bases[:] = [
        each
        for each in bases
        if each is not object
        and (not each.__module__.startswith("thresher") or each.__name__ in thresher.__all__)
    ]


def drop_empty_bases(_: Any, doctree: nodes.document) -> None:
    """Leave out the line of base classes where it names none."""
    for paragraph in list(doctree.findall(nodes.paragraph)):
        if paragraph.astext().strip() == "Bases:":
            paragraph.parent.remove(paragraph)


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("autodoc-process-bases", drop_plain_bases)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("doctree-read", drop_empty_bases)
    app.connect("doctree-resolved", link_literals)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
