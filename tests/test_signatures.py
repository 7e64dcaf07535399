"""Public signatures: a parameter means the same everywhere, or its text says how it differs."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections import defaultdict

import pytest

import thresher as th

# what a parameter is where it is not what it is elsewhere; each text says so
DIFFERENT = {
    "X": {"add_feature_noise", "dp_tknn_shapley", "explain", "forest_shapley", "membership_attack"},
    "y": {
        "dp_tknn_shapley", "explain", "flip_labels", "forest_shapley", "leaf_shapley",
        "membership_attack",
    },
    "X_val": {"explain", "forest_shapley"},
    "y_val": {"explain", "forest_shapley", "leaf_shapley"},
    "mean": {"leaf_shapley"},
    "checkpoint": {"data_shapley"},
    "classes": {
        "NeighborCounts", "dp_tknn_shapley", "flip_labels", "grow_forest", "zero_budget_score",
    },
    "metric": {"TKNNClassifier"},
    "leaves": {"audit_mechanism"},
    "mechanism": {"audit_mechanism"},
    "owners": {"dp_tknn_shapley", "owner_shapley"},
    "points": {"plan_release"},
    "task": {"suggest_radius"},
    "points_per_owner": {"plan_release"},
    "seed": {
        "add_feature_noise", "dp_tknn_shapley", "flip_labels", "forest_shapley",
        "membership_attack",
    },
}  # fmt: skip
REQUIRED = inspect.Parameter.empty
DEFAULTS = {
    "leaves": {False: {"audit_mechanism"}},
    "rings": {4: {"dp_tknn_shapley", "plan_release"}},  # each has noise of its own
    "X_val": {
        None: {
            "NeighborCounts",
            "explain",
            "forest_findings",
            "forest_shapley",
            "knn_shapley",
            "owner_shapley",
            "tknn_shapley",
        }
    },
    "y_val": {
        None: {
            "NeighborCounts",
            "explain",
            "forest_findings",
            "forest_shapley",
            "knn_shapley",
            "leaf_shapley",
            "owner_shapley",
            "tknn_shapley",
        }
    },
    "mean": {True: {"beta_shapley", "data_banzhaf", "data_shapley", "leave_one_out"}},
    "seed": {
        None: {"audit_mechanism", "dp_knn_shapley", "dp_tknn_shapley"},
        REQUIRED: {"add_feature_noise", "flip_labels"},
    },
    "k": {None: {"audit_mechanism"}},
    "owners": {REQUIRED: {"owner_shapley"}},
    "points": {REQUIRED: {"plan_release"}},
}
CALLABLE = [name for name in th.__all__ if callable(getattr(th, name))]
FUNCTIONS = [name for name in CALLABLE if inspect.isfunction(getattr(th, name))]


def parameters(name):
    """What can be passed; results are not made by callers."""
    thing = getattr(th, name)
    if inspect.isfunction(thing) or name in {"NeighborCounts", "TKNNClassifier", "Scan"}:
        return {key: each.default for key, each in inspect.signature(thing).parameters.items()}
    return {}


def paragraphs(name):
    """The text of each parameter in a docstring."""
    doc = inspect.getdoc(getattr(th, name))
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n[A-Z][a-z]+\n---|\Z)", doc, re.DOTALL)
    found, names = defaultdict(str), []
    for line in section[1].splitlines() if section else []:
        if line and not line.startswith(" "):
            names = [each.strip() for each in line.split(",")]
        else:
            for each in names:
                found[each] = f"{found[each]} {line.strip()}".strip()
    return found


def referred(name):
    """The functions whose arguments these are, by the docstring."""
    doc = inspect.getdoc(getattr(th, name))
    return re.findall(r"arguments\s+are\s+those\s+of\s+`(\w+)`", doc)


@pytest.mark.parametrize("name", [name for name in CALLABLE if parameters(name)])
def test_every_parameter_is_documented_there_or_where_the_docstring_says(name):
    known = set(paragraphs(name)).union(*(paragraphs(other) for other in referred(name)))
    doc = inspect.getdoc(getattr(th, name))
    for parameter in parameters(name):
        assert parameter in known or f"`{parameter}`" in doc, parameter


def test_a_parameter_has_one_text_and_a_listed_one_where_it_differs():
    texts = defaultdict(lambda: defaultdict(set))
    for name in CALLABLE:
        if parameters(name):
            for parameter, text in paragraphs(name).items():
                if not re.search(r"\b[Aa]s in `\w+`", text):
                    texts[parameter][text].add(name)
    for parameter, found in texts.items():
        listed = DIFFERENT.get(parameter, set())
        assert listed <= set().union(*found.values()), parameter
        assert sum(not names <= listed for names in found.values()) <= 1, (parameter, dict(found))


def test_a_reference_leads_to_a_text():
    for name in CALLABLE:
        for parameter, text in paragraphs(name).items() if parameters(name) else ():
            for other in re.findall(r"\b[Aa]s in `(\w+)`", text):
                assert parameter in paragraphs(other), (name, parameter)


def test_a_parameter_has_one_default_and_a_listed_one_where_it_differs():
    defaults = defaultdict(lambda: defaultdict(set))
    for name in CALLABLE:
        for parameter, default in parameters(name).items():
            defaults[parameter][default].add(name)
    for parameter, found in defaults.items():
        listed = DEFAULTS.get(parameter, {})
        for default, names in listed.items():
            assert found.pop(default) == names, parameter
        assert len(found) == 1, (parameter, dict(found))


def classes_of(annotation):
    """The classes of this library in a type."""
    if isinstance(annotation, types.UnionType) or typing.get_args(annotation):
        return set().union(*(classes_of(each) for each in typing.get_args(annotation)))
    ours = isinstance(annotation, type) and annotation.__module__.startswith("thresher")
    return {annotation} if ours else set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_type_of_every_result_is_exported(name):
    hints = typing.get_type_hints(getattr(th, name))
    for found in classes_of(hints["return"]):
        assert getattr(th, found.__name__) is found
