"""The key of a computed cell: everything that its outcome depends on, and nothing else."""

from __future__ import annotations

import ast
import dataclasses
import functools

import pytest

from thresher.paper import (
    EXPERIMENTS,
    dependencies,
    detection,
)
from thresher.paper.cells import Cell


def test_the_key_of_a_cell_knows_its_rows_and_its_settings():
    cell = Cell("noisy", "fraud", "paper", "knn")
    key = detection.NOISY.key
    keys = {
        key(cell, "a"),
        key(cell, "b"),
        dataclasses.replace(detection.NOISY, name="x").key(cell, "a"),
    }
    keys |= {key(dataclasses.replace(cell, **{name: entry}), "a") for name, entry in
             {"draw": 1, "step": 6.0, "set": "wind", "options": (("subsets", 3),), "fixed": True}.items()}  # fmt: skip
    assert len(keys) == 8


@functools.cache
def code_of(text):
    return dependencies._plain_code(ast.parse(text))


@pytest.fixture(autouse=True)
def each_text_parsed_once(monkeypatch):
    """In place of each module, so that an edited one is parsed again and no other."""
    monkeypatch.setattr(
        dependencies, "module_code", lambda name: code_of(dependencies._source(name))
    )
    yield
    dependencies.code_digest.cache_clear()


def keys():
    dependencies.code_digest.cache_clear()
    return {
        m: detection.NOISY.key(Cell("noisy", "fraud", "paper", m), "") for m in detection.FUNCTIONS
    }


@pytest.fixture(scope="module")
def before():
    return keys()


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        ("kernels.logistic", {"data-shapley", "leave-one-out", "data-banzhaf"}),
        ("retrain.plans", {"data-shapley", "leave-one-out", "data-banzhaf"}),
        ("tknn", {"tknn"}),
        ("knn", {"knn", "knn k=11"}),
        ("paper.draws", set(detection.FUNCTIONS)),
        ("paper.pages", set()),
        ("findings", set()),
    ],
)
def test_the_key_of_a_cell_changes_with_the_code_that_makes_it_and_no_other(
    module, changed, before, monkeypatch
):
    source = dependencies._source

    def edited(name):
        return source(name) + ("\nEDITED = True\n" if name == f"thresher.{module}" else "")

    monkeypatch.setattr(dependencies, "_source", edited)
    after = keys()
    assert {m for m in before if before[m] != after[m]} == changed


@pytest.mark.parametrize(
    ("experiment", "module", "old", "new", "same"),
    [
        ("mislabel", "detection", "roc_auc_score(problem.bad, -values)", "0.5", False),
        ("mislabel", "detection", '"k": 11}', '"k": 12}', False),
        ("privacy", "detection", "roc_auc_score(problem.bad, -values)", "0.5", False),
        ("privacy", "tradeoff", "if power else 0.0", "if power else 1.0", False),
        ("privacy", "tradeoff", "RATE = 0.01", "RATE = 0.02", False),
        ("privacy", "tradeoff", '"tables 2 and 8"', '"tables"', True),
        ("mislabel", "detection", '"tables 3 and 9"', '"tables"', True),
        ("mislabel", "printed", "16 - k", "15 - k", True),
    ],
)
def test_the_key_of_a_cell_changes_with_what_its_experiment_computes_not_with_what_it_says(
    experiment, module, old, new, same, monkeypatch
):
    cell = Cell("mislabel", "fraud", "paper", "dp-tknn" if experiment == "privacy" else "tknn")
    before, source = EXPERIMENTS[experiment].key(cell, ""), dependencies._source

    def edited(name):
        text = source(name)
        if name == f"thresher.paper.{module}":
            assert old in text
            text = text.replace(old, new)
        return text

    monkeypatch.setattr(dependencies, "_source", edited)
    dependencies.code_digest.cache_clear()
    assert (EXPERIMENTS[experiment].key(cell, "") == before) is same


def test_comments_docstrings_and_imports_are_not_code():
    def plain(text):
        return dependencies._plain_code(ast.parse(text))

    code = "def f(x):\n    return x + 1\n"
    same = 'from a import b\n"""Words."""\nimport c\ndef f(x):\n    """More."""\n    from d import e\n    # why\n    return x + 1\n'
    assert plain(same.replace("from a import b\n", "")) == plain(code) == plain('"""W."""\n' + code)
    assert plain(code.replace("1", "2")) != plain(code)
