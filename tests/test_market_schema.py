"""Anything may be sent to the market: schemathesis makes it up from the market's own schema."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from market_cases import cluster  # noqa: F401
from market_world import world  # noqa: F401

from thresher.market.app import create_app
from thresher.market.guards import Limits

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
CALLERS = ("nobody", "operator", "buyer", "owner", "auditor")
SOME = settings(
    max_examples=2, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
CONFORM = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "response_headers_conformance",
)  # fmt: skip


@pytest.fixture(scope="module")
def app(world):  # noqa: F811
    limits = Limits(body=1 << 20, rate=1e6, burst=10**6)
    return create_app(world.market, limits=limits, working=False)


@pytest.fixture(scope="module")
def api(app):
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


@pytest.mark.parametrize("mode", MODES, ids=["as the schema says", "against the schema"])
def test_every_answer_is_one_that_the_schema_names(api, world, mode):  # noqa: F811
    """Whoever asks for whatever, made up or really there."""
    checks = [getattr(schemathesis.checks, name) for name in CONFORM]
    there = world.ids | {"task": world.ids["open"], "upload": world.uploads["open"]}
    asked = set()

    def ask(case):
        made_up = dict(case.path_parameters or {})
        for parameters in (made_up, {name: there[name] for name in made_up}):
            case.path_parameters = parameters
            for caller in CALLERS:
                token = world.tokens[caller]
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                case.call_and_validate(headers=headers, checks=checks)
                asked.add((case.operation.label, caller))

    operations = [found.ok() for found in api.get_all_operations()]
    if mode is schemathesis.GenerationMode.NEGATIVE:  # only a document can be unlike its schema
        operations = [operation for operation in operations if operation.body]
    for operation in operations:
        SOME(given(operation.as_strategy(generation_mode=mode))(ask))()
    assert len(asked) == len(CALLERS) * len(operations) > 0


def test_every_body_and_every_answer_of_the_documentation_has_an_example(app):
    document = app.openapi()

    def has_example(media):
        schema = media.get("schema", {})
        schema = schema.get("items", schema)
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return any(word in part for part in (media, schema) for word in ("example", "examples"))

    parts = {
        (path, method, name): part
        for path, methods in document["paths"].items()
        for method, about in methods.items()
        for name, part in {"body": about.get("requestBody", {}), **about["responses"]}.items()
    }
    media = {
        (*key, kind): each
        for key, part in parts.items()
        for kind, each in part.get("content", {}).items()
    }
    assert len(media) > 50
    assert [key for key, each in media.items() if not has_example(each)] == []
