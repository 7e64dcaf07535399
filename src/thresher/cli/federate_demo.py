"""A round on one machine: this process coordinates, and every silo is a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from thresher.federate.coordinator import Coordinator
from thresher.federate.keys import Key
from thresher.federate.primitives import ProtocolError
from thresher.federate.round_terms import least_survivors
from thresher.federate.signed_task import Task
from thresher.inputs.checks import check_count

EPSILON, DELTA = 4.0, 1e-6
HELD_OUT = 300


def play_demo(silos: int, tell: Callable[[str], None]) -> Any:
    """Release prices of handwritten digits that are spread over `silos` processes."""
    from sklearn.datasets import load_digits

    count = check_count("silos", silos, least=2)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    X, y = digits.data[order] - digits.data.mean(axis=0), digits.target[order]
    names = [f"silo {i}" for i in range(1, count + 1)]
    keys, own = {name: Key.create() for name in names}, Key.create()
    task = Task.create(
        X[:HELD_OUT], y[:HELD_OUT], silos={name: key.public for name, key in keys.items()},
        key=own, epsilon=EPSILON, delta=DELTA, fewest=least_survivors(count, 1), name="demo",
    )  # fmt: skip
    parts = np.array_split(np.arange(HELD_OUT, len(y)), count)
    with (
        tempfile.TemporaryDirectory() as folder,
        Coordinator(task, key=own, tell=tell, first_wait=300.0) as running,
    ):
        tell(f"{count} silos of about {len(parts[0])} digits each; listening at {running.url}")
        children = [
            _start(Path(folder), name, keys[name], X[part], y[part], running.url, task.digest)
            for name, part in zip(names, parts, strict=True)
        ]
        try:
            found = running.run()
        finally:
            ends = [_end(child) for child in children]
    if any(ends):
        raise ProtocolError(f"{sum(map(bool, ends))} silos ended with an error")
    return found


def _start(
    folder: Path, name: str, key: Key, X: Any, y: Any, url: str, digest: str
) -> subprocess.Popen[bytes]:
    place = folder / name.replace(" ", "-")
    place.mkdir()
    key.save(place / "silo.key")
    np.savez(place / "points.npz", X=X, y=y)
    command = [sys.executable, "-m", "thresher", "federate", "join", url]
    files = ["--points", place / "points.npz", "--key", place / "silo.key"]
    return subprocess.Popen(  # noqa: S603 - our own command
        [*command, *map(str, files), "--digest", digest, "--no-ledger"], stderr=subprocess.DEVNULL
    )


def _end(child: subprocess.Popen[bytes]) -> int:
    """Wait for a silo, and end it if it hangs."""
    try:
        return child.wait(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
