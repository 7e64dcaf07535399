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
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = __name__.split(".", maxsplit=1)[0]
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
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imported(name)
    return frozenset(found)


@functools.cache
def imported(module: str) -> tuple[str, ...]:
    """The modules of this library that a module imports, also lazily."""
    return tuple(sorted(set(_imports(ast.parse(_source(module))))))


@functools.cache
def module_digest(module: str) -> str:
    """A hash of what a module does."""
    return hashlib.sha256(_plain_code(ast.parse(_source(module))).encode()).hexdigest()


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if _is_ours(name))


def _is_ours(name: str) -> bool:
    """Whether this is the name of a module of this library, below its root."""
    if not name.startswith(f"{PACKAGE}."):
        return False
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _source(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None  # noqa: S101, PT018 - `_is_ours` saw it
    return Path(spec.origin).read_text(encoding="utf-8")


def _plain_code(tree: ast.Module) -> str:
    """The tree as text, without docstrings and imports."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if hasattr(node, "body") and isinstance(node.body, list):
            node.body = [x for x in node.body if not isinstance(x, ast.Import | ast.ImportFrom)]
    return ast.dump(tree)
