"""A market whose servers and workers are killed loses nothing, overspends nothing, pays once."""

from __future__ import annotations

import pytest
from market_cases import cluster  # noqa: F401
from market_faults import run


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_processes_that_are_killed(kind, request, tmp_path):
    url = request.getfixturevalue("cluster") if kind == "postgresql" else None
    killed, told = run(tmp_path, url, kills=20, seed=1)
    assert killed >= 20
    assert [line for line in told if not line.endswith(", paid once")] == []
