"""A hash of the code that a function depends on, without comments, docstrings and file names.

A module counts as the syntax tree of its code, without docstrings and imports. So explaining it
better or moving it elsewhere changes nothing. What it imports from this library counts as well,
even imports inside a function. Modules that are only named in a text do not count: they show
results or run elsewhere. Of the experiments in this package, only the definitions that a cell needs
count, because hours of computing must not be lost when a title changes.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = __name__.partition(".")[0]
EXPERIMENTS = f"{__package__}."
ROOT = Path(__file__).parents[1]
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def code_digest(run: Callable[..., Any], uses: tuple[Callable[..., Any], ...] | None) -> str:
    """A hash of the definitions behind `run`, and of the modules of the functions that it uses.

    Without `uses`, the modules are that of `run` and everything that it imports.
    """
    starts = (run,) if uses is None else uses
    modules = reachable(frozenset(each.__module__ for each in starts))
    codes = sorted({*map(module_code, modules), *definitions(run.__module__, run.__name__)})
    return hashlib.sha256("".join(codes).encode()).hexdigest()


def definitions(module: str, name: str) -> set[str]:
    """The code of a function of an experiment, and of everything in this package that it names."""
    found: dict[tuple[str, str], str] = {}
    waiting = {(module, name)}
    while waiting:
        place = waiting.pop()
        own, others = _names(place[0])
        if place in found or place[1] not in own:
            continue
        node = own[place[1]]
        named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        waiting |= {(place[0], each) for each in named & own.keys()}
        waiting |= {others[each] for each in named & others.keys()}
        found[place] = _plain_code(ast.Module([node], []))
    return set(found.values())


def _names(module: str) -> tuple[dict[str, ast.stmt], dict[str, tuple[str, str]]]:
    """The definitions of a module, and the names it takes from other experiments."""
    own: dict[str, ast.stmt] = {}
    others: dict[str, tuple[str, str]] = {}
    for node in ast.parse(_source(module)).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(EXPERIMENTS):
            others |= {alias.name: (str(node.module), alias.name) for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            own[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own |= {each.id: node for each in targets if isinstance(each, ast.Name)}
    return own, others


@functools.cache
def reachable(modules: frozenset[str]) -> frozenset[str]:
    """These modules and every module of this library that they import, directly or not."""
    found: set[str] = set()
    waiting = set(modules)
    while waiting:
        found |= waiting
        waiting = {name for module in waiting for name in imported(module)} - found
    return frozenset(found)


@functools.cache
def imported(module: str) -> frozenset[str]:
    """The modules of this library that a module imports, including lazy imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(name for name in names if name.startswith(f"{PACKAGE}.") and _files(name))


@functools.cache
def module_code(module: str) -> str:
    """The code of a module, as text."""
    return _plain_code(ast.parse(_source(module)))


def _files(module: str) -> list[Path]:
    """The file of a module of this library; none if the name is not a module."""
    path = ROOT.joinpath(*module.split(".")[1:])
    return [file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()]


def _source(module: str) -> str:
    return _files(module)[0].read_text(encoding="utf-8")


def _plain_code(tree: ast.Module) -> str:
    """The tree as text, without docstrings and imports."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if hasattr(node, "body") and isinstance(node.body, list):
            node.body = [x for x in node.body if not isinstance(x, ast.Import | ast.ImportFrom)]
    return ast.dump(tree)
