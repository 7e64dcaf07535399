"""Texts and images as rows of numbers: components, files, files."""

from __future__ import annotations

import json

import numpy as np
import pytest

import thresher as th
from thresher import embed
from thresher.tables.labeled import read_labeled

ABOUT = {"model": "none", "components": None}


@pytest.fixture
def rows(rng):
    """Correlated columns of very different spread, far from zero."""
    turned = rng.normal(size=(60, 8)) * np.geomspace(10, 0.1, 8) @ rng.normal(size=(8, 8))
    return turned + 100 * rng.normal(size=8)


def axes_of(X, count):
    """The components themselves: where the unit vectors go."""
    return embed.leading_components(X, X.mean(axis=0) + np.eye(X.shape[1]), count)[1]


# Components


@pytest.mark.parametrize("chunk", [7, 4096])
def test_components_are_those_of_scikit_learn(rows, chunk, monkeypatch):
    from sklearn.decomposition import PCA

    monkeypatch.setattr(embed, "CHUNK", chunk)
    X, X_val = rows[:45], rows[45:]
    got, got_val = embed.leading_components(X, X_val, 5)
    pca = PCA(5, svd_solver="full").fit(X)
    want, want_val = pca.transform(X), pca.transform(X_val)
    sign = np.sign((got * want).sum(axis=0))
    assert got.dtype == got_val.dtype == np.float32
    np.testing.assert_allclose(got, want * sign, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got_val, want_val * sign, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got.var(axis=0, ddof=1), pca.explained_variance_, rtol=1e-4)


def test_the_validation_set_is_moved_by_the_mean_of_the_points_and_decides_nothing(rows):
    X, X_val = rows[:45], rows[45:] + 50
    got, got_val = embed.leading_components(X, X_val, 8)
    np.testing.assert_allclose(got.mean(axis=0), 0, atol=1e-3)
    assert np.abs(got_val.mean(axis=0)).max() > 10
    np.testing.assert_array_equal(got, embed.leading_components(X, X_val[:1] * 3, 8)[0])


def test_all_components_keep_all_distances(rows):
    X, X_val = rows[:45], rows[45:]
    got, got_val = embed.leading_components(X, X_val, 8)
    for before, after in ((X, got), (X_val, got_val)):
        want = np.linalg.norm(X[:, None] - before[None], axis=2)
        np.testing.assert_allclose(
            np.linalg.norm(got[:, None] - after[None], axis=2), want, rtol=1e-4, atol=1e-3
        )


def test_the_largest_loading_of_a_component_is_positive(rows):
    axes = axes_of(rows, 8)
    np.testing.assert_allclose(axes.T @ axes, np.eye(8), atol=1e-5)
    largest = np.abs(axes).argmax(axis=0)
    assert (axes[largest, np.arange(8)] > 0).all()
    np.testing.assert_allclose(axes_of(-rows, 8), axes, atol=1e-5)


def test_the_narrowest_tables_have_one_component():
    X, X_val = embed.leading_components([[3.0, 0.0], [1.0, 0.0]], [[7.0, 9.0]], 1)
    assert (X.tolist(), X_val.tolist()) == ([[1.0], [-1.0]], [[5.0]])


@pytest.mark.parametrize(
    ("X", "X_val", "count", "words"),
    [
        (np.eye(4), np.eye(4), 0, "count must be an integer >= 1, got 0"),
        (np.eye(4), np.eye(4), 2.0, "count must be an integer"),
        (np.eye(4), np.eye(4), 4, "count must be <= 3 for 4 rows of width 4, got 4"),
        (np.eye(9)[:, :2], np.eye(2), 3, "count must be <= 2 for 9 rows of width 2, got 3"),
        (np.eye(4), np.eye(3), 1, "X_val has 3 features but X has 4"),
        (np.eye(4), np.full((1, 4), np.nan), 1, "X_val has NaN"),
        (np.eye(4) * 1e39, np.eye(4), 1, "float32 cannot hold"),
    ],
)
def test_components_that_are_not_there_are_refused(X, X_val, count, words):
    with pytest.raises(th.InputError, match=words):
        embed.leading_components(X, X_val, count)


# Files


def test_integer_labels_stay_what_they_are(tmp_path):
    path = tmp_path / "a.npz"
    X, X_val = np.arange(6.0).reshape(3, 2), np.ones((1, 2))
    embed.write_embedded(path, X, [7, -2, 7], X_val, np.array([5], np.uint8), ABOUT)
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    assert set(arrays) == {"X", "y", "X_val", "y_val", "about"}
    assert arrays["X"].dtype == arrays["X_val"].dtype == np.float32
    assert arrays["y"].dtype == arrays["y_val"].dtype == np.int64
    np.testing.assert_array_equal(arrays["X"], X)
    np.testing.assert_array_equal(arrays["X_val"], X_val)
    assert (arrays["y"].tolist(), arrays["y_val"].tolist()) == ([7, -2, 7], [5])
    assert json.loads(str(arrays["about"])) == ABOUT


@pytest.mark.parametrize(
    ("y", "y_val", "classes"),
    [
        (["b", "a", "b"], ["c"], ["a", "b", "c"]),
        (np.array(["b", "a", "b"]), np.array(["a"]), ["a", "b"]),
        ([True, False, True], [True], [False, True]),
        ([0.5, 0.25, 0.5], [0.25], [0.25, 0.5]),
    ],
)
def test_other_labels_become_codes_of_the_classes_beside_them(tmp_path, y, y_val, classes):
    path = tmp_path / "a.npz"
    embed.write_embedded(path, np.eye(3), y, np.eye(3)[:1], y_val, ABOUT)
    with np.load(path, allow_pickle=False) as stored:
        names = stored["classes"]
        codes, codes_val = stored["y"], stored["y_val"]
    assert names.tolist() == classes
    assert codes.dtype == codes_val.dtype == np.int64
    assert names[codes].tolist() == list(y)
    assert names[codes_val].tolist() == list(y_val)


def test_what_is_written_is_a_table_of_points_and_the_same_bytes_again(tmp_path):
    X = np.eye(3, dtype=np.float16)
    for name in ("a.npz", "b.npz"):
        embed.write_embedded(tmp_path / name, X, ["x", "y", "x"], X, ["x", "x", "y"], ABOUT)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    rows, labels = read_labeled(tmp_path / "a.npz", "y")
    np.testing.assert_array_equal(rows, X)
    assert labels.tolist() == [0, 1, 0]


def test_a_file_that_is_there_is_replaced_by_force_only(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"dear")
    with pytest.raises(th.InputError, match="a.npz already exists.*force=True"):
        embed.write_embedded(path, np.eye(2), [0, 1], np.eye(2), [0, 1], ABOUT)
    assert path.read_bytes() == b"dear"
    embed.write_embedded(path, np.eye(2), [0, 1], np.eye(2), [0, 1], ABOUT, force=True)
    assert read_labeled(path, "y")[1].tolist() == [0, 1]


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", fail)
    path = tmp_path / "a.npz"
    path.write_bytes(b"dear")
    with pytest.raises(th.InputError, match="no space left"):
        embed.write_embedded(path, np.eye(2), [0, 1], np.eye(2), [0, 1], ABOUT, force=True)
    assert [each.name for each in tmp_path.iterdir()] == ["a.npz"]
    assert path.read_bytes() == b"dear"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"path": "a.csv"}, "must end in .npz, got .*a.csv"),
        ({"path": "none/a.npz"}, "the folder .* does not exist"),
        ({"y": [0]}, "y has 1 labels but there are 2 rows"),
        ({"y_val": [0, 1, 2]}, "y_val has 3 labels but there are 2 rows"),
        ({"y": [0, None]}, "y has missing labels in row 1"),
        ({"y": ["a", "b"]}, "all integers or all strings, got int, str"),
        ({"y": ["a\0", "a"], "y_val": ["a", "a"]}, "all integers or all strings"),
        ({"X_val": np.eye(3), "y_val": [0, 1, 2]}, "X_val has 3 features but X has 2"),
        ({"X": np.array([[1, np.inf], [0, 1]])}, "X has .*infinite"),
        ({"X": np.eye(2) * 1e39}, "float32 cannot hold"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_is_written(tmp_path, change, words):
    good = {"path": "a.npz", "X": np.eye(2), "y": [0, 1], "X_val": np.eye(2), "y_val": [0, 1]}
    path, *data = (good | change).values()
    with pytest.raises(th.InputError, match=words):
        embed.write_embedded(tmp_path / path, *data, ABOUT)
    assert not list(tmp_path.iterdir())
