"""Sparse precomputed distances: what is absent is far, what is stored may be 0."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors, kneighbors_graph, radius_neighbors_graph

import thresher as th
from thresher.inputs.precomputed import Distances, Stored

FORMATS = ["csr", "csc", "coo", "lil", "dok"]
DISTANCES = {"metric": "precomputed"}


def problem(n=60, m=70, seed=1):
    """Points with copies, labels, and validation points, some of which are copies of points."""
    rng = np.random.default_rng(seed)
    X, V = rng.integers(0, 6, (n, 2)) / 4, rng.integers(0, 6, (m, 2)) / 4
    return X, rng.integers(0, 3, n), V, rng.integers(0, 3, m)


def between(X, V):
    return np.sqrt(((X[:, None] - V) ** 2).sum(axis=2))


def stored_up_to(D, radius, form="csr", kind="array"):
    """A sparse matrix of the distances up to a radius, zeros included."""
    places = np.nonzero(radius >= D)
    return getattr(sp, f"coo_{kind}")((D[places], places), shape=D.shape).asformat(form)


def far(D, radius):
    """The same as a dense array."""
    return np.where(radius >= D, D, np.inf)


CALLS = {
    "tknn": lambda D, y, W, **o: th.tknn_shapley(D, y, None, W, radius=0.5, **o),
    "kernel": lambda D, y, W, **o: th.tknn_shapley(D, y, None, W, radius=0.5, kernel="gaussian", **o),
    "regression": lambda D, y, W, **o: th.tknn_shapley(D, 1.0 * y, None, 1.0 * W, radius=0.5, task="regression", **o),
    "ring targets": lambda D, y, W, **o: th.tknn_shapley(D, 1.0 * y, None, 1.0 * W, radius=0.5, task="regression", kernel="triangular", **o),
    "owners": lambda D, y, W, **o: th.owner_shapley(D, y, None, W, owners=np.arange(len(y)) % 7, radius=0.5, **o),
    "knn": lambda D, y, W, **o: th.knn_shapley(D, y, None, W, complete=True, **o),
    "knn regression": lambda D, y, W, **o: th.knn_shapley(D, 1.0 * y, None, 1.0 * W, complete=True, task="regression", **o),
    "knn with an error": lambda D, y, W, **o: th.knn_shapley(D, y, None, W, k=1, error=0.3, complete=True, **o),
    "alone": lambda D, y, W, **o: th.zero_budget_score(D, y, None, W, radius=0.5, complete=True, **o),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", CALLS)
def test_absent_is_infinitely_far_and_a_stored_zero_is_zero(name, form, kind):
    X, y, V, W = problem()
    D = between(X, V)
    assert (D == 0).any()
    wanted = CALLS[name](far(D, 0.5), y, W, **DISTANCES)
    assert np.ptp(wanted.values) > 0
    sparse = stored_up_to(D, 0.5, form, kind)
    assert sparse.nnz == (D <= 0.5).sum()
    found = CALLS[name](sparse, y, W, **DISTANCES)
    assert found.values.tobytes() == wanted.values.tobytes()
    if "knn" not in name:  # what is beyond the radius does not matter
        assert found.values.tobytes() == CALLS[name](D, y, W, **DISTANCES).values.tobytes()


@pytest.mark.parametrize("name", ["tknn", "owners", "knn", "kernel"])
def test_points_that_judge_each_other_need_no_distance_to_themselves(name):
    X, y, *_ = problem()
    D = between(X, X)
    wanted = CALLS[name](far(D, 0.5), y, None, **DISTANCES)
    places = np.nonzero((D <= 0.5) & ~np.eye(len(X), dtype=bool))
    sparse = sp.coo_array((D[places], places), shape=D.shape)
    found = CALLS[name](sparse, y, None, **DISTANCES)
    assert found.values.tobytes() == wanted.values.tobytes()


def test_the_radius_graph_of_scikit_learn_gives_the_values_of_features():
    X, y, V, W = problem()
    V = V + 1e-9  # near copies, but not copies
    wanted = th.tknn_shapley(X, y, V, W, radius=0.6, metric="euclidean").values
    found = NearestNeighbors(radius=0.6).fit(X).radius_neighbors_graph(V, mode="distance").T
    values = th.tknn_shapley(found, y, None, W, radius=0.6, **DISTANCES).values
    assert values.tobytes() == wanted.tobytes()
    graph = radius_neighbors_graph(X, 0.6, mode="distance")
    wanted = th.tknn_shapley(X, y, radius=0.6, metric="euclidean").values
    assert th.tknn_shapley(graph, y, radius=0.6, **DISTANCES).values.tobytes() == wanted.tobytes()


@given(
    cells=st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 4), st.sampled_from([0.0, 0.25, 0.5, 0.75, 3.0])),
        unique_by=lambda cell: cell[:2], max_size=45,
    ),
    block=st.integers(1, 5),
)  # fmt: skip
@example(cells=[], block=1)
def test_any_pattern_whole_and_in_blocks_of_columns(cells, block):
    rows, columns, data = zip(*cells, strict=True) if cells else ((), (), ())
    sparse = sp.coo_array((np.array(data, float), (rows, columns)), shape=(9, 5))
    dense = np.full((9, 5), np.inf)
    dense[list(rows), list(columns)] = data
    y, W = np.arange(9) % 2, np.arange(5) % 2
    parts = [sparse.tocsr()[:, lo : lo + block] for lo in range(0, 5, block)]
    for call in (th.tknn_shapley, th.knn_shapley):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", th.ThresherWarning)
            wanted = call(dense, y, None, W, **DISTANCES).values.tobytes()
            for X in (sparse, parts, iter(parts)):
                found = call(X, y, None, W, complete=True, **DISTANCES).values
                assert found.tobytes() == wanted


def test_counts_and_price_lists_take_sparse_distances_that_are_complete(tmp_path):
    X, y, V, W = problem(60, 70)
    D = between(X, V)
    sparse = stored_up_to(D, 0.5)
    wanted = th.NeighborCounts(None, W, radius=0.5, **DISTANCES).add(D, y)
    counts = th.NeighborCounts(None, W, radius=0.5, complete=True, **DISTANCES)
    counts.add(sparse[:20], y[:20]).add(sparse[20:], y[20:]).remove(sparse[5:9], y[5:9])
    counts.save(tmp_path / "counts.npz")
    counts = th.NeighborCounts.load(tmp_path / "counts.npz").add(sparse[5:9], y[5:9])
    assert counts.table.tolist() == wanted.table.tolist()
    counts.price_list().save(tmp_path / "prices.json")
    prices = th.PriceList.load(tmp_path / "prices.json")
    assert prices.values(sparse, y).tobytes() == wanted.price_list().values(D, y).tobytes()
    alone = prices.newcomer_values(sparse[:9], 1)  # one label for all
    assert alone.tolist() == prices.newcomer_values(D[:9], [1] * 9).tolist()
    assert prices.newcomer_values(sparse[:9], y[:9]).tolist() == (
        wanted.price_list().newcomer_values(D[:9], y[:9]).tolist()
    )


def test_a_part_does_not_show_whether_it_is_complete():
    X, y, V, W = problem()
    D = between(X, V)
    sparse = stored_up_to(D, 0.5)
    counts = th.NeighborCounts(None, W, radius=0.5, **DISTANCES).add(D, y)
    for call in (
        lambda: counts.add(sparse, y),
        lambda: counts.price_list().values(sparse, y),
        lambda: th.zero_budget_score(sparse, y, None, W, **DISTANCES),
        lambda: th.tknn_shapley([sparse], y, None, W, **DISTANCES),
        lambda: th.knn_shapley([sparse], y, None, W, **DISTANCES),
    ):
        with pytest.raises(th.InputError, match="sparse part.*complete=True.*np.inf"):
            call()
    assert len(counts) == len(y)


def test_a_graph_of_nearest_points_is_refused_for_a_radius():
    X, y, V, W = problem(300, 40, seed=3)
    X, V = X + np.arange(300)[:, None] * 1e-4, V + 1e-5
    graph = NearestNeighbors(n_neighbors=4).fit(X).kneighbors_graph(V, mode="distance").T
    refused = "looks like a graph of nearest points: each column stores 4 .*complete=True"
    kinds = {"kernel": "gaussian"}, {"task": "regression"}, {}
    for options in kinds:
        with pytest.raises(th.InputError, match=refused):
            th.tknn_shapley(graph, 1 * y, None, 1 * W, **options, **DISTANCES)
    with pytest.raises(th.InputError, match=refused):
        th.owner_shapley(graph, y, None, W, owners=y, **DISTANCES)
    found = th.tknn_shapley(graph, y, None, W, complete=True, **DISTANCES)
    dense = np.full(graph.shape, np.inf)
    dense[graph.nonzero()] = graph.tocsr()[graph.nonzero()]
    assert found == th.tknn_shapley(dense, y, None, W, **DISTANCES)
    # the fourth point of each column is beyond this radius, so nothing is missing
    radius = graph.max(axis=0).toarray().min() * 0.9
    wanted = th.tknn_shapley(X, y, V, W, metric="euclidean", radius=radius)
    found = th.tknn_shapley(graph, y, None, W, radius=radius, **DISTANCES)
    assert found.values.tobytes() == wanted.values.tobytes()
    # one column that lacks points is enough
    with pytest.raises(
        th.InputError, match=f"in column {graph.max(axis=0).toarray().argmin()} all"
    ):
        th.tknn_shapley(graph, y, None, W, radius=radius / 0.89, **DISTANCES)


@pytest.mark.parametrize("include_self", [True, False])
def test_so_is_one_of_points_that_judge_each_other_in_either_direction(include_self):
    X, y, *_ = problem(300)
    X = X + np.arange(300)[:, None] * 1e-4
    graph = kneighbors_graph(X, 5, mode="distance", include_self=include_self)
    for some, side in ((graph, "row"), (graph.T, "column")):
        with pytest.raises(th.InputError, match=f"each {side} stores {5 - include_self} distances"):
            th.tknn_shapley(some, y, **DISTANCES)
    with pytest.raises(th.InputError, match="in each row, but columns are judges.*X.T"):
        th.knn_shapley(graph, y, k=2, error=0.5, **DISTANCES)


def test_a_full_matrix_of_any_format_is_as_good_as_a_dense_one():
    X, y, V, W = problem()
    D = between(X, V) + 0.01
    for call in (th.tknn_shapley, th.knn_shapley):
        wanted = call(D, y, None, W, **DISTANCES).values.tobytes()
        assert call(sp.csr_array(D), y, None, W, **DISTANCES).values.tobytes() == wanted
    without = between(X, X) + 0.01
    np.fill_diagonal(without, 0.0)
    wanted = th.knn_shapley(without, y, **DISTANCES).values.tobytes()
    assert th.knn_shapley(sp.csr_array(without), y, **DISTANCES).values.tobytes() == wanted


@pytest.mark.parametrize("mutual", [False, True])
def test_nearest_neighbors_need_as_many_stored_as_their_error_asks_for(mutual):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(1000, 3)), rng.integers(0, 3, 1000)
    V, W = (None, None) if mutual else (rng.normal(size=(30, 3)), rng.integers(0, 3, 30))
    graph = NearestNeighbors(n_neighbors=20).fit(X).kneighbors_graph(V, mode="distance").T
    with pytest.raises(
        th.InputError, match=r"stores 20 of (999|1000).*error=0\.0\d+ needs no more"
    ):
        th.knn_shapley(graph, y, None, W, k=3, **DISTANCES)
    options = {"k": 3, "error": 0.047}
    wanted = th.knn_shapley(X, y, V, W, metric="euclidean", **options)
    assert wanted.params["neighbors_kept"] == 20
    found = th.knn_shapley(graph, y, None, W, **options, **DISTANCES)
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-13)
    assert found.params["bound"] == wanted.params["bound"] > 0
    with pytest.raises(th.InputError, match="the 25 nearest points is needed.*complete=True"):
        th.knn_shapley(graph, y, None, W, k=25, error=0.5, **DISTANCES)
    numbers = {"task": "regression", "empty": 0.0}
    with pytest.raises(th.InputError, match="the order of the .* nearest points is needed"):
        th.knn_shapley(graph, 1.0 * y, None, None if mutual else 1.0 * W, **numbers, **DISTANCES)


def test_an_error_that_a_small_graph_allows_is_kept():
    """More than one point in 32 is kept, so that all of a dense matrix would be sorted."""
    X, y, V, W = problem(40, 9, seed=2)
    D = between(X, V)
    graph = NearestNeighbors(n_neighbors=9).fit(X).kneighbors_graph(V, mode="distance").T
    found = th.knn_shapley(graph, y, None, W, k=2, error=0.15, **DISTANCES)
    exact = th.knn_shapley(D, y, None, W, k=2, **DISTANCES)
    assert found.params["neighbors_kept"] <= 9
    assert 0 < abs(found.values - exact.values).max() <= found.params["bound"]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (sp.coo_array(([1.0, 2.0], ([2, 2], [1, 1])), shape=(4, 2)), "two distances in row 2, column 1"),
        (sp.csr_array(([1.0, 2.0], [1, 1], [0, 0, 2, 2, 2]), shape=(4, 2)), "two distances in row 1, column 1"),
        (sp.csr_array(([1.0, np.nan], [0, 1], [0, 1, 1, 1, 2]), shape=(4, 2)), "NaN as the distance in row 3, column 1"),
        (sp.csr_array(([1.0, -0.5], [0, 1], [0, 1, 1, 1, 2]), shape=(4, 2)), "a negative distance in row 3, column 1"),
        (sp.bsr_array(np.eye(4)[:, :2]), "bsr array, which cannot tell a distance of 0"),
        (sp.dia_array(np.eye(4)[:, :2]), "dia array, which cannot tell"),
        (sp.csr_array(np.eye(4)[:, :2] * 1j), "must be a two-dimensional array of distances, got complex128"),
        (sp.csr_array(np.eye(4, dtype=np.int64)[:, :2] * 2**60), r"integers beyond 2\*\*53"),
        (sp.csr_array(np.eye(4)), r"distances of 4 points \(rows\) to 2 validation points.*\(4, 4\)"),
        (sp.csr_array(np.eye(2, 4)), r"got shape \(2, 4\)"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_distance_is_named(matrix, message):
    for call in (th.tknn_shapley, th.knn_shapley):
        with pytest.raises(th.InputError, match=message):
            call(matrix, [0, 1, 0, 1], None, [0, 1], **DISTANCES)


def test_complete_says_nothing_about_features_or_parts(tmp_path):
    X, y, V, W = problem()
    D = between(X, V)
    for call, message in (
        (lambda: th.tknn_shapley(X, y, V, W, complete=True), "complete=True needs metric='precomp"),
        (lambda: th.knn_shapley(X, y, V, W, complete=True), "complete=True needs metric"),
        (lambda: th.owner_shapley(X, y, V, W, owners=y, complete=True), "complete=True needs metric"),
        (lambda: th.NeighborCounts(V, W, complete=True), "complete=True needs metric"),
        (lambda: th.zero_budget_score(X, y, V, W, complete=True), "complete=True needs metric"),
        (lambda: th.tknn_shapley(D, y, None, W, complete=1, **DISTANCES), "complete must be True or False"),
        (lambda: th.tknn_shapley(D, y, None, W, complete=True, memory="9GB", **DISTANCES), "memory.*leave it out"),
        (lambda: th.tknn_shapley(stored_up_to(D, 1), y, None, W, memory="9GB", **DISTANCES), "one array of distances"),
    ):  # fmt: skip
        with pytest.raises(th.InputError, match=message):
            call()
    budget = {"epsilon": 1, "delta": 1e-5, "classes": [0, 1, 2], "seed": 1, "mechanism": "paper"}
    with pytest.raises(th.InputError, match="sparse matrix, which is not supported.*np.inf"):
        th.dp_tknn_shapley(stored_up_to(D, 1), y, None, W, **budget, **DISTANCES)


def test_regression_by_a_graph_of_nearest_points_can_be_explained():
    X, y, V, W = problem(40, 20)
    graph = NearestNeighbors(n_neighbors=5).fit(X).kneighbors_graph(V, mode="distance").T
    about = {"task": "regression", "radius": 0.6, **DISTANCES}
    valuation = th.tknn_shapley(graph, 1.0 * y, None, 1.0 * W, complete=True, **about)
    assert len(th.explain(valuation, graph, 1.0 * y, None, 1.0 * W)) == 40


def test_memory_is_that_of_what_is_stored():
    """All pairs of 200,000 points and 20,000 judges would take 32 GB."""
    rng = np.random.default_rng(0)
    n, m, nnz = 200_000, 20_000, 100_000
    places = np.unique(rng.integers(0, n * m, nnz))
    graph = sp.coo_array((rng.random(len(places)), (places // m, places % m)), shape=(n, m)).tocsc()
    table = Distances(Stored.of("X", graph), n, m, complete=True)
    tracemalloc.start()
    for columns, part in table.blocks(64):
        assert part[:1024].shape == (1024, columns.stop - columns.start)
        if columns.start > 2000:
            break
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6, peak
