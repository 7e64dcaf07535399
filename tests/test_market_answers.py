"""The types of what the client returns say the same as the schemas of the server."""

from __future__ import annotations

import re
from typing import get_type_hints

import pytest

from thresher.market import Client, answers, schemas
from thresher.market.settlement import NOTHING

TYPED = [name for name in vars(answers) if f"{name}Out" in vars(schemas)]
UNTYPED = {"release", "payout", "export"}  # documents with a format of their own


def fields(document):
    """The fields of a document and their types as JSON: a time is text."""
    as_json = (
        (r"<class '(.*)'>", r"\1"), (r"thresher\.market\.\w+\.(\w+?)(Out)?\b", r"\1"),
        (r"datetime\.datetime", "str"),
    )  # fmt: skip
    found = {}
    for name, hint in get_type_hints(document).items():
        text = repr(hint)
        for pattern, plain in as_json:
            text = re.sub(pattern, plain, text)
        found[name] = text
    return found


@pytest.mark.parametrize("name", TYPED)
def test_an_answer_has_the_fields_of_its_schema(name):
    schema = getattr(schemas, f"{name}Out")
    expected = {key: entry for key, entry in fields(schema).items() if key in schema.model_fields}
    assert fields(getattr(answers, name)) == expected


def test_every_answer_of_the_client_has_a_type_with_a_schema():
    returned = {
        name: repr(get_type_hints(method)["return"])
        for name, method in vars(Client).items()
        if callable(method) and not name.startswith("_")
    }
    loose = {name for name, hint in returned.items() if "Any" in hint}
    assert loose == UNTYPED
    named = set(re.findall(r"answers\.(\w+)", " ".join(returned.values())))
    assert named <= {*TYPED}
    assert {*TYPED} == named | {"Owner", "Line", "Other", "Payment"}, "a type that nothing returns"


def test_an_owner_without_rows_gets_a_whole_line():
    assert NOTHING.keys() == answers.Line.__annotations__.keys()
