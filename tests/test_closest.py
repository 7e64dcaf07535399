from __future__ import annotations

import os
import sys

import numpy as np
import pytest
import waits
from hypothesis import example, given, settings
from hypothesis import strategies as st

import thresher as th
from thresher import knn as nearest
from thresher.inputs.checked_inputs import check_pair
from thresher.kernels.distances import direct_keys, direct_tile
from thresher.kernels.pairs import pair_keys
from thresher.kernels.select import collect, merge, shrink, shrink_row, smallest
from thresher.neighbors import closest as closest_module
from thresher.neighbors import sorting as order_module
from thresher.neighbors.closest import closest
from thresher.neighbors.tiles import ProductTiles, tiles

BOTH = pytest.mark.parametrize("plain", [False, True], ids=["jit", "python"])
METRICS = pytest.mark.parametrize("metric", ["euclidean", "cosine"])
pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    """However few points there are, only the nearest are sorted."""
    monkeypatch.setattr(nearest, "FULL_SORT", 1)


def form(plain):
    return (lambda kernel: kernel.py_func) if plain else (lambda kernel: kernel)


def kinds(kind, width, rng, n=700, m=9):
    """Rows with many equal distances, with nearly equal ones, or with none."""
    if kind == "grid":
        X, V = (rng.integers(1, 3, (size, width)) * 1.0 for size in (n, m))
    elif kind == "twins":
        X = rng.standard_normal((n // 50, width))[rng.integers(0, n // 50, n)]
        V = rng.standard_normal((m, width))
    elif kind == "jitter":
        X = np.ones((n, width)) + rng.integers(0, 4, (n, width)) * 2.0**-52
        V = rng.standard_normal((m, width))
    else:
        X, V = (rng.standard_normal((size, width)) for size in (n, m))
    return X, rng.integers(0, 3, n), V, rng.integers(0, 3, m)


def rule(points, validation, v):
    """The numbers of the pair rule, or of the direct sum for few features, of all points."""
    X, x2, out = points.rows.array, points.rows.squares, np.empty(len(points))
    metric, v2, v = validation.metric, validation.rows.squares[v], validation.rows.array[v]
    if X.shape[1] <= 24:
        columns = np.ascontiguousarray(X.T)
        direct_keys(columns, (0,) * X.shape[1], x2, v, v2, metric == "cosine", out)
    else:
        pair_keys(X, x2, v, v2, metric == "cosine", out)
    return out


@METRICS
@pytest.mark.parametrize("kind", ["grid", "twins", "jitter", "smooth"])
@pytest.mark.parametrize("width", [3, 24, 25, 40])
@pytest.mark.parametrize("kept", [1, 2, 37, 300, 699])
def test_the_nearest_points_are_those_of_a_full_sort_by_the_pair_rule(
    metric, kind, width, kept, rng, monkeypatch
):
    """Also if products are as wrong as they may be, so that the pair rule has to decide."""
    honest = ProductTiles.fill

    def wrong(self, first, end, out):
        honest(self, first, end, out)
        most = np.array([[self.error(v)] for v in range(self.start, self.stop)])
        out += rng.uniform(-0.4, 0.4, out.shape) * most

    monkeypatch.setattr(ProductTiles, "fill", wrong)
    monkeypatch.setattr(closest_module, "TILE_POINTS", 64)
    monkeypatch.setattr(closest_module, "SPAN", 150)
    X, y, V, y_val = kinds(kind, width, rng)
    points, validation = check_pair(X, y, V, y_val, metric=metric, classes=None)
    found = list(closest(points, validation, kept, "float64", None))
    assert len(found) == len(V)
    for v, keys in enumerate(found):
        want = np.argsort(rule(points, validation, v), kind="stable")[:kept]
        got = (keys >> np.uint64(1)).astype(np.int64)
        assert sorted(got) == sorted(want)
        match = (keys & np.uint64(1)).astype(bool)
        np.testing.assert_array_equal(match, y[got] == y_val[v])
        np.testing.assert_array_equal(match, y[want] == y_val[v])
        if width <= 24:  # else equal matches in a near tie may stand in any order
            np.testing.assert_array_equal(got, want)


@METRICS
@pytest.mark.parametrize("width", [5, 40])
@pytest.mark.parametrize("kind", ["grid", "twins", "smooth"])
def test_no_bit_depends_on_threads_tiles_blocks_dtype_or_disk(
    metric, width, kind, rng, monkeypatch, tmp_path
):
    X, y, V, y_val = kinds(kind, width, rng)
    X, V = X.astype(np.float32), V.astype(np.float32)

    def values(A, error=0.02):
        return th.knn_shapley(A, y, V, y_val, metric=metric, error=error).values.tobytes()

    want, exact = values(X), values(X, 0.0)
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    for A in (on_disk, X.astype(np.float64), np.asfortranarray(X)):
        assert values(A) == want
        assert values(A, 0.0) == exact
    monkeypatch.setattr(order_module, "COPY_BYTES", 0)
    monkeypatch.setattr(order_module, "TABLE_BYTES", 0)
    assert values(on_disk, 0.0) == exact
    monkeypatch.setattr(closest_module, "PARALLEL_PAIRS", 0)
    for threads, tile, span, room in (
        ("1", 9, 50, 1),
        ("2", 64, 64, 1 << 15),
        ("5", 999, 7, 1 << 20),
    ):
        monkeypatch.setenv("THRESHER_THREADS", threads)
        monkeypatch.setattr(closest_module, "TILE_POINTS", tile)
        monkeypatch.setattr(closest_module, "SPAN", span)
        monkeypatch.setattr(closest_module, "CANDIDATE_BYTES", room)
        assert values(X) == want


@pytest.mark.parametrize("width", [5, 40])
def test_the_order_of_float32_is_that_of_the_exact_method(width, rng):
    """Far fewer features than float32 can tell apart: many ties, in which position decides."""
    X, V = (rng.integers(1, 4, (n, width)).astype(np.float32) for n in (400, 6))
    y, y_val = rng.integers(0, 2, 400), rng.integers(0, 2, 6)
    data = X, y, V, y_val
    got = th.knn_shapley(*data, metric="euclidean", precision="float32", error=0.02)
    want = th.knn_shapley(*data, metric="euclidean", error=0.02)
    assert got.params["neighbors_kept"] < 100
    assert got.values.tobytes() == want.values.tobytes()


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_precomputed_distances_whole_in_blocks_and_infinite(precision, rng):
    D = rng.integers(-5, 6, (300, 33)) / 4
    D[5:290] = np.inf
    y, y_val = rng.integers(0, 3, 300), rng.integers(0, 3, 33)
    options = {"metric": "precomputed", "precision": precision, "error": 0.03}
    exact = th.knn_shapley(D, y, None, y_val, metric="precomputed").values
    want = th.knn_shapley(D, y, None, y_val, **options)
    assert abs(want.values - exact).max() <= want.params["bound"]
    for source in (D.astype(np.float32), (D[:, lo : lo + 10] for lo in range(0, 33, 10))):
        got = th.knn_shapley(source, y, None, y_val, **options)
        assert got.values.tobytes() == want.values.tobytes()
    D[7, 2] = np.nan
    with pytest.raises(th.InputError, match="NaN as the distance in row 7, column 2"):
        th.knn_shapley(D, y, None, y_val, **options)


def test_a_progress_bar_comes_to_its_end(rng, capsys):
    X, y, V, y_val = kinds("smooth", 3, rng)
    th.knn_shapley(X, y, V, y_val, error=0.05, progress=True)
    assert "knn-shapley: 100%" in capsys.readouterr().err


@BOTH
@given(
    numbers=st.lists(st.sampled_from([-2.0, 0.0, 1.0, 1.5, np.inf]), min_size=1, max_size=40),
    kept=st.integers(1, 12),
    room=st.integers(0, 3),
    tile=st.integers(1, 15),
)
@example([1.0] * 30, 3, 0, 7)
@settings(max_examples=60)
def test_candidates_are_the_first_of_a_stable_sort(plain, numbers, kept, room, tile):
    """Without errors; tiles in turn, shrunk where there are more than kept + room."""
    f = form(plain)
    limits, counts = np.full(1, np.inf), np.zeros(1, np.int64)
    keys, points = np.empty((1, kept + room + tile)), np.empty((1, kept + room + tile), np.int64)
    state = limits, counts, keys, points
    for lo in range(0, len(numbers), tile):
        f(collect)(np.array([numbers[lo : lo + tile]]), lo, *state)
        assert f(shrink)(kept, kept + room, np.zeros(1), *state) == 0
    f(shrink)(kept, kept, np.zeros(1), *state)
    want = np.sort(np.argsort(numbers, kind="stable")[:kept])
    assert points[0, : counts[0]].tolist() == want.tolist()
    assert keys[0, : counts[0]].tolist() == np.array(numbers)[want].tolist()


@BOTH
@given(
    numbers=st.lists(st.floats(allow_nan=False), min_size=1, max_size=60),
    rank=st.integers(1, 60),
)
@example([1e308, -1e308, 0.0], 2)  # a range that overflows
@example([0.0, 5e-324], 2)
@settings(max_examples=150)
def test_the_number_of_a_rank_is_that_of_a_sort(plain, numbers, rank):
    rank = min(rank, len(numbers))
    with np.errstate(over="ignore", invalid="ignore"):
        got = form(plain)(smallest)(np.array(numbers), rank)
    assert got == sorted(numbers)[rank - 1]


@BOTH
def test_what_an_error_leaves_in_doubt_is_kept(plain):
    f = form(plain)
    keys, points = np.array([3.0, 1.0, 2.0, 2.4, 2.6, 9.0]), np.arange(6)
    assert f(shrink_row)(2, 0.5, 6, keys, points) == (3, 2.5)
    assert points[:3].tolist() == [1, 2, 3]
    state = np.full(1, np.inf), np.array([6]), np.array([[1.0] * 6]), np.arange(6)[None]
    assert f(shrink)(2, 5, np.array([0.1]), *state) == 1
    assert state[1][0] == 6


@BOTH
def test_later_candidates_are_let_in_behind_the_limit(plain):
    limits, counts = np.array([2.0, np.inf]), np.array([1, 0])
    keys, points = np.zeros((2, 4)), np.zeros((2, 4), np.int64)
    others = np.array([2, 1]), np.array([[2.0, 2.1], [7.0, 0]]), np.array([[8, 9], [5, 0]])
    form(plain)(merge)(*others, limits, counts, keys, points)
    assert counts.tolist() == [2, 1]
    assert (keys[0, 1], points[0, 1], keys[1, 0], points[1, 0]) == (2.0, 8, 7.0, 5)


@BOTH
@pytest.mark.parametrize("cosine", [False, True])
def test_a_tile_holds_the_numbers_of_its_rows_one_by_one(plain, cosine, rng):
    X, V = rng.standard_normal((40, 6)), rng.standard_normal((3, 6))
    x2, v2, got, want = (X**2).sum(axis=1), (V**2).sum(axis=1), np.empty((3, 40)), np.empty(40)
    columns, dims = np.ascontiguousarray(X.T), (0,) * 6
    form(plain)(direct_tile)(columns, dims, x2, V, v2, cosine, 0.25, got)
    for v in range(3):
        direct_keys(columns, dims, x2, V[v], v2[v], cosine, want)
        assert (got[v] * 4).tobytes() == want.tobytes()


@METRICS
@pytest.mark.parametrize("width", [20, 40])
def test_numbers_of_a_tile_are_within_half_the_error_of_the_pair_rule(metric, width, rng):
    X, y, V, y_val = kinds("smooth", width, rng)
    points, validation = check_pair(X + 3, y, V + 3, y_val, metric=metric, classes=None)
    (part,) = tiles(points, validation, "float64", 99)
    out = np.empty((9, 100))
    part.fill(50, 150, out)
    for v in range(9):
        gap = abs(out[v] - part.pair_keys(v, np.arange(50, 150))).max()
        allowed = part.error(v) / 2 if width > 24 else 1e-14 * abs(out[v]).max()
        assert gap <= allowed
        assert gap > 0


MEMORY = """
import sys, threading
import numpy as np
import thresher as th
from pathlib import Path
from thresher.neighbors import sorting as order

def anonymous():
    line = next(l for l in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in l)
    return int(line.split()[1]) * 1024

path, n, d, error = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
X = np.memmap(path, np.float64, "r", shape=(n, d))
y = np.arange(n) % 3
V, y_val = np.array(X[:4]) + 0.5, np.arange(4) % 3
whole, order.COPY_BYTES = order.COPY_BYTES, 0  # so that the same code is compiled
th.knn_shapley(np.array(X[:5000]), y[:5000], V, y_val, error=error)
order.COPY_BYTES = whole
peak, done = 0, threading.Event()
before = anonymous()

def watch():
    global peak
    while not done.wait(0.001):
        peak = max(peak, anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
th.knn_shapley(X, y, V, y_val, error=error)
done.set()
watcher.join()
print(peak - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("width", "error", "per_point"), [(20, 0.0, 160), (20, 0.01, 64),
                                                           (64, 0.0, 160), (64, 0.01, 64)])  # fmt: skip
def test_memory_beyond_a_table_on_disk_is_a_few_numbers_a_point(width, error, per_point, tmp_path):
    """Anonymous pages, which a mapped file has none of: at most so many bytes a point, and 16 MB.

    A copy of the table would take 160 or 512 bytes a point more.
    """
    n = 500_000
    rows = np.random.default_rng(0).standard_normal((5000, width))
    with (tmp_path / "X").open("wb") as file:
        for shift in range(n // 5000):
            (rows + shift).tofile(file)
    done = waits.run(
        [sys.executable, "-c", MEMORY, tmp_path / "X", str(n), str(width), str(error)], check=True, env=os.environ | {"THRESHER_THREADS": "2"},
    )  # fmt: skip
    used = int(done.stdout)
    assert 8 * n < used <= per_point * n + (16 << 20)


def test_a_bar_shows_on_a_terminal_without_a_width():
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()  # 0 columns
    code = (
        "from thresher.progress import progress_bar\n"
        "with progress_bar('counting', 10, show=True) as advance: advance(10)"
    )
    waits.run([sys.executable, "-c", code], stderr=theirs, check=True)
    os.set_blocking(ours, False)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)
    assert "counting" in shown
    assert "10.0/10.0" in shown
