"""A run in parts stays within the bytes it is given."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import waits
from parted import problem, table_of
from peaks import WATCH
from tabular import check_refused

import thresher as th
from thresher.inputs.checked_inputs import check_points
from thresher.neighbors.ball import Ball
from thresher.passes.memory import check_memory, in_use
from thresher.passes.parts import ArrayParts

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5 gib", 3 << 29), ("300m", 300 << 20), (7, 7), ("12345", 12345)],
)
def test_budgets_are_read(text, size):
    assert check_memory(text) == size


@pytest.mark.parametrize("text", ["", "lots", "2XB", "-2GB", 0, -1, True, None, 2.5])
def test_budgets_that_are_none_are_refused(text):
    check_refused(lambda: check_memory(text), "memory must be bytes")


def test_a_tree_is_taken_where_memory_affords_it(monkeypatch):
    """Never at the price of small parts, nor of a refusal."""
    ways, find = set(), Ball.tree

    def told(self, points):
        ways.add(self.neighbors)
        return find(self, points)

    monkeypatch.setattr(Ball, "tree", told)
    data, used = problem(2000), in_use()
    for most, wanted in (("60GB", {"auto"}), (used + (130 << 20), {"all"})):
        ways.clear()
        th.tknn_shapley(*data, memory=most)
        assert ways - {"all"} == wanted - {"all"}, most


def test_a_budget_that_is_too_small_says_how_much_is_needed(tmp_path):
    X, y, X_val, y_val = problem(5000)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    said = check_refused(
        lambda: th.tknn_shapley(mapped, y, X_val, y_val, memory="20MB"), "20MB is too little"
    )
    least = re.search(r"need at least (\d+MB)", said)[1]
    assert check_memory(least) > in_use() / 2
    assert th.tknn_shapley(mapped, y, X_val, y_val, memory=least)


CHILD = (
    WATCH
    + """
import json
import numpy as np
import thresher as th

kind, path, labels, budget, neighbors, out = sys.argv[1:]
random = np.random.default_rng(1)
X_val, y_val = random.normal(size=(64, 100)).astype(np.float32), random.integers(0, 2, 64)
if kind == "npy":
    X, y = np.load(path, mmap_mode="r"), np.load(labels)
else:
    X, y = th.Scan(path), None
found = th.tknn_shapley(X, y, X_val, y_val, radius=0.9, memory=int(budget), neighbors=neighbors)
np.save(out, found.values)
print(json.dumps(most))
"""
)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux only")
@pytest.mark.parametrize(
    ("kind", "rows", "budget", "neighbors"),
    [
        ("npy", 1_000_000, 250, "auto"),
        ("npy", 1_100_000, 400, "tree"),
        ("parquet", 900_000, 330, "auto"),
    ],
)
def test_a_budget_is_obeyed_by_data_larger_than_it(tmp_path, kind, rows, budget, neighbors):
    """Tables of 360 to 440 MB; the peak is that of the whole process."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, rows)
    np.save(tmp_path / "y.npy", y)
    path = tmp_path / f"x.{kind}"
    step = rows // 20
    block = random.normal(size=(step, 100)).astype(np.float32)
    if kind == "npy":
        X = np.lib.format.open_memmap(path, "w+", np.float32, (rows, 100))
        for lo in range(0, rows, step):
            X[lo : lo + step] = block + np.float32(lo / rows)
        X.flush()
    else:
        path.mkdir()
        for lo in range(0, rows, 5 * step):
            large = np.concatenate([block + np.float32((lo + k * step) / rows) for k in range(5)])
            table = table_of(large, y[lo : lo + 5 * step])
            pq.write_table(table, path / f"{lo:09}.parquet", row_group_size=50_000)
    out = tmp_path / "values.npy"
    arguments = [kind, path, tmp_path / "y.npy", budget * 10**6, neighbors, out]
    done = waits.run(
        [sys.executable, "-c", CHILD, *map(str, arguments)],
    )
    assert done.returncode == 0, done.stderr
    peak = json.loads(done.stdout)
    assert peak <= budget * 10**6, f"{peak / 1e6:.0f} MB"
    random = np.random.default_rng(1)
    X_val, y_val = random.normal(size=(64, 100)).astype(np.float32), random.integers(0, 2, 64)
    some = slice(7 * step, 7 * step + 1000)
    counts = th.NeighborCounts(X_val, y_val, radius=0.9)
    for lo in range(0, rows, step):
        counts._counts += counts._count(
            check_points(block + np.float32(lo / rows), y[lo : lo + step], counts.validation)
        )[0]
    values = counts.price_list().values((block + np.float32(7 * step / rows))[:1000], y[some])
    assert np.load(out)[some].tobytes() == values.tobytes()


def test_the_least_memory_that_is_told_holds_for_both_passes(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4_000_000, 1), np.float32))
    X, y = np.load(tmp_path / "x.npy", mmap_mode="r"), np.zeros(4_000_000, np.int8)
    data = X, y, np.ones((3, 1)), [0, 0, 0]
    said = check_refused(lambda: th.tknn_shapley(*data, memory="1MB"), "is too little")
    least = re.search(r"need at least (\d+MB)", said)[1]
    assert th.tknn_shapley(*data, memory=least).values[0] == 0


def test_owners_that_do_not_fit_are_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(ArrayParts, "read", None)
    check_refused(lambda: th.tknn_shapley(*problem(600), owners=["a"], memory="64GB"), "owners")


GROWTH = """
import re, sys
import numpy as np
import thresher as th

def status(key):
    return int(re.search(key + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10

way, features = sys.argv[1], int(sys.argv[2])
random = np.random.default_rng(0)
plane = random.normal(size=(10, features)) if features > 10 else np.eye(10)
X, V = (random.normal(size=(n, 10)) @ plane for n in (50_000, 24_000))
y, y_val = (X[:, 0] > 0).astype(np.int8), (V[:, 0] > 0).astype(np.int8)
radius = float(np.quantile(np.linalg.norm(X[:1000, None] - V[:20], axis=2), 0.001))

def value(m, way):
    th.tknn_shapley(X, y, V[:m], y_val[:m], radius=radius, metric="euclidean", neighbors=way)

value(200, "all"), value(200, "tree")  # what is compiled is no memory of the work
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
value(len(V), way)
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux only")
@pytest.mark.parametrize(
    ("way", "features", "most"),
    [("all", 10, 120), ("auto", 10, 8 * 10 + 64), ("tree", 64, 8 * 16 + 64)],
)
def test_memory_does_not_grow_with_the_validation_set(way, features, most):
    """`most` bytes a point, and 30 MB for the block of validation points that a tree holds."""
    done = waits.run(
        [sys.executable, "-c", GROWTH, way, str(features)],
    )
    assert done.returncode == 0, done.stderr
    bound = 50_000 * most + 24_000 * 64 + ((4 if way == "all" else 30) << 20)
    assert int(done.stdout) <= bound
