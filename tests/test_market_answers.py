"""The types of what the client returns say the same as the schemas of the server."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from thresher.market import Client, answers, schemas
from thresher.market.app import create_app
from thresher.market.settlement import NOTHING
from thresher.market.times import now

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


BESIDES = {  # routes that the client has no method for: for monitors, and what `payments` lists
    ("GET", "/health"), ("GET", "/metrics"), ("GET", "/api/tasks/{task}/statements/{owner}"),
}  # fmt: skip
NO_VERB = {"me", "key", "task", "payout", "release", "report"}  # `tasks` and `result` give them


def test_the_client_has_a_method_for_every_route_and_the_command_a_verb(tmp_path, monkeypatch):
    asked = set()

    def send(_, method, path, *__):
        asked.add((method, re.sub(r"\?.*", "", path)))
        return b'{"id": "task", "code": "", "key": "", "deleted": 0}'

    monkeypatch.setattr(Client, "_send", send)
    file = tmp_path / "rows.csv"
    file.write_text("")
    words = {"validation": file, "rows": file, "salt": b"", "opens": now(), "closes": now()}
    methods = {
        name: each for name, each in vars(Client).items() if name[0] != "_" and callable(each)
    }
    for name, method in methods.items():
        required = [
            each for each in list(inspect.signature(method).parameters.values())[1:]
            if each.default is each.empty and each.kind is not each.VAR_KEYWORD
        ]  # fmt: skip
        given = {each.name: words.get(each.name, each.name) for each in required}
        if name == "validation":
            given = {"task": "task"}
        method(Client("http://x"), **given)
    Client("http://x").new_token("member")
    routes = {
        (method.upper(), path)
        for path, about in create_app(None, working=False).openapi()["paths"].items()
        for method in about
    }
    assert {(method, re.sub("[{}]", "", path)) for method, path in routes - BESIDES} == asked
    verbs = Path(import_module("thresher.cli.market").__file__).read_text(encoding="utf-8")
    shown = {
        *re.findall(r"\bclient\.(\w+)\(", verbs),
        *re.findall(r'^of_task\("(\w+)"', verbs, re.M),
    }
    assert methods.keys() - shown <= NO_VERB
    assert {"payout", "release", "report"} <= shown


def test_an_owner_without_rows_gets_a_whole_line():
    assert NOTHING.keys() == answers.Line.__annotations__.keys()
