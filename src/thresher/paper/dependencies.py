"""The code that a function depends on, as one hash: comments, docstrings and file names aside.

A module is the tree of its code without docstrings and imports, so that explaining it better or
moving it elsewhere changes nothing. What it imports from this library counts as well, also where a
function does so late. Modules that are named by a text only, which are those that show results or
run elsewhere, do not.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_digest(run: Callable[..., Any], uses: tuple[Callable[..., Any], ...] | None) -> str:
    """A hash of the code of `run`, and of the modules behind the functions that it uses.

    Without `uses` these are its own module and everything that module imports.
    """
    starts = (run,) if uses is None else uses
    modules = reachable(frozenset(each.__module__ for each in starts))
    own = hashlib.sha256(_plain_code(ast.parse(textwrap.dedent(inspect.getsource(run)))).encode())
    digests = sorted(module_digest(name) for name in modules)
    return hashlib.sha256("".join([own.hexdigest(), *digests]).encode()).hexdigest()


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
    """The modules of this library that a module imports, also lazily."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(name for name in names if name.startswith(f"{PACKAGE}.") and _files(name))


@functools.cache
def module_digest(module: str) -> str:
    """A hash of what a module does."""
    return hashlib.sha256(_plain_code(ast.parse(_source(module))).encode()).hexdigest()


def _files(module: str) -> list[Path]:
    """The file of a module of this library; of what is no module there is none."""
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
