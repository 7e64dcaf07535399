"""Values by a tree and by all pairs, for the tests of both."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from thresher.neighbors import ball as neighbors


@contextmanager
def by(way):
    """Let "auto" be one way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "tree_pays", lambda *_: way == "tree")
        yield
