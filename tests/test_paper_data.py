"""Where data sets come from, and how training and validation rows are drawn from them."""

from __future__ import annotations

import gzip
import hashlib
import json

import numpy as np
import pytest
from sklearn.datasets import fetch_openml

import thresher as th
from thresher.paper.datasets import (
    EMBEDDED,
    DataSet,
    MissingSetError,
    Replay,
    Shelf,
    fetch_set,
    generate_2dplanes,
)
from thresher.paper.draws import draw_problem, seed_of, split


@pytest.fixture
def unbalanced(rng):
    """A set with one point in ten of the rarer class, and a few equal rows."""
    X = rng.normal(size=(4000, 3))
    X[3900:] = X[:100]
    y = (np.arange(4000) % 10 == 0).astype(np.int64)
    return DataSet("fraud", X, y, "made up")


@pytest.fixture
def embedded(rng):
    X, V = (rng.normal(size=(n, 40)).astype(np.float32) for n in (300, 50))
    X[:7] = V[:7]
    y, w = np.arange(300) % 4, np.arange(50) % 4
    return DataSet("agnews", X, y, "made up", validation=(V, w))


def rows(array):
    return {row.tobytes() for row in np.ascontiguousarray(array)}


def test_a_clean_draw_shares_no_row_and_repeats_none(unbalanced):
    raw = split(unbalanced, "clean", 0)
    assert not rows(raw.X) & rows(raw.X_val)
    assert len(rows(raw.X)) == len(raw.X)
    assert np.bincount(raw.y_val).tolist() == [100, 100]
    few = np.bincount(raw.y)
    assert few[0] == few[1] < 300  # as many as the rarer class has left


def test_a_draw_of_the_paper_repeats_rows_and_shares_them(unbalanced):
    raw = split(unbalanced, "paper", 0)
    assert np.bincount(raw.y).tolist() == [1000, 1000]
    assert len(rows(raw.X)) < 1400
    assert rows(raw.X) & rows(raw.X_val)


def test_columns_are_scaled_by_the_training_rows(unbalanced):
    for task in ("mislabel", "noisy", "intact"):
        problem = draw_problem(unbalanced, task, "clean", 1)
        np.testing.assert_allclose(problem.X.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(problem.X.std(axis=0), 1)
        assert abs(problem.X_val.mean()) > 1e-4


def test_a_tenth_of_the_points_is_corrupted_and_nothing_else(unbalanced):
    intact = split(unbalanced, "paper", 3)
    for task in ("mislabel", "noisy"):
        problem = draw_problem(unbalanced, task, "paper", 3)
        assert problem.bad.sum() == 200
        assert ((problem.y != intact.y) == (problem.bad & (task == "mislabel"))).all()
    noisy = draw_problem(unbalanced, "noisy", "paper", 3)
    unscaled = noisy.X[:, 0] - noisy.X[0, 0]
    kept = ~noisy.bad
    ratio = np.ptp(unscaled[kept]) / np.ptp(intact.X[kept, 0])
    np.testing.assert_allclose(
        (unscaled - unscaled[kept][0])[kept] / ratio, intact.X[kept, 0] - intact.X[kept, 0][0], atol=1e-9
    )  # fmt: skip


def test_a_draw_is_repeated_by_its_number(unbalanced):
    one, again, other = (draw_problem(unbalanced, "noisy", "clean", n) for n in (5, 5, 6))
    np.testing.assert_array_equal(one.X, again.X)
    assert not np.array_equal(one.X, other.X)


def test_draws_and_purposes_have_seeds_of_their_own(embedded):
    masks = [
        draw_problem(embedded, "mislabel", p, n).bad for p in ("paper", "clean") for n in (0, 1)
    ]
    kept = [mask[-293:].tobytes() for mask in masks]
    assert len(set(kept)) == 4  # neither draws nor protocols repeat one another
    names = [("corrupt", "a", 0), ("corrupt", "a", 1), ("corrupt", "b", 0), ("noise", "a", 0)]
    assert len({seed_of(*name) for name in names}) == 4


def test_embeddings_are_centered_and_not_scaled(embedded):
    problem = draw_problem(embedded, "intact", "paper", 0)
    deviations = problem.X.std(axis=0)
    assert deviations[0] > 1.1 * deviations[-1]


def test_the_authors_own_draw_is_replayed(unbalanced, rng):
    replay = Replay(np.arange(2000), np.arange(2000, 2200), rng.normal(size=(200, 3)))
    data = DataSet("fraud", unbalanced.X, unbalanced.y, "made up", replay=replay)
    for number in (0, 1):
        raw = split(data, "paper", number)
        np.testing.assert_array_equal(raw.X, unbalanced.X[:2000])
        flipped = draw_problem(data, "mislabel", "paper", number)
        assert (flipped.y[:200] == 1 - raw.y[:200]).all()
        assert (flipped.y[200:] == raw.y[200:]).all()
        noisy = draw_problem(data, "noisy", "paper", number)
        want = raw.X[:200] + replay.noise * np.linalg.norm(raw.X, axis=0)
        want = (want - want.mean(axis=0)) / want.std(axis=0)
        got = noisy.X[:200]
        np.testing.assert_allclose((got - got.mean(axis=0)) / got.std(axis=0), want, atol=1e-9)
    assert not rows(split(data, "clean", 0).X) <= rows(unbalanced.X[:2000])


def test_embeddings_keep_their_validation_rows_and_lose_twins_in_clean_draws_only(embedded):
    assert len(split(embedded, "paper", 0).X) == 300
    clean = draw_problem(embedded, "mislabel", "clean", 0)
    assert len(clean.X) == 293
    assert clean.X.shape[1] == clean.X_val.shape[1] == 32
    assert clean.bad.sum() == 29
    np.testing.assert_allclose(clean.X.mean(axis=0), 0, atol=1e-5)
    assert clean.X.dtype == np.float32


def test_2dplanes_follows_its_definition():
    data = generate_2dplanes(4000, seed=1)
    assert set(np.unique(data.X[:, 0])) == {-1, 1}
    assert set(np.unique(data.X[:, 1:])) == {-1, 0, 1}
    up = data.X[:, 0] == 1
    X = data.X
    target = np.where(
        up, 3 + 3 * X[:, 1] + 2 * X[:, 2] + X[:, 3], -3 + 3 * X[:, 4] + 2 * X[:, 5] + X[:, 6]
    )
    sure = np.abs(target) > 5  # the noise has deviation 1: 5 deviations are one in 3 million
    assert sure.sum() > 500
    assert ((target[sure] < 0) == data.y[sure]).all()


def test_sets_that_cannot_be_had_are_missing_not_invented(tmp_path):
    shelf = Shelf(tmp_path, fetch=False)
    with pytest.raises(MissingSetError, match=r"phoneme\.npz is not in a folder"):
        shelf.get("phoneme")
    for name in EMBEDDED:
        with pytest.raises(MissingSetError, match="thresher embed"):
            Shelf(tmp_path).get(name)
    assert "generated" in shelf.get("2dplanes").source
    with pytest.raises(th.InputError, match="one of 2dplanes"):
        shelf.get("iris")
    with pytest.raises(th.InputError, match="does not exist"):
        Shelf(tmp_path / "nowhere")


def test_a_file_that_is_no_data_set_is_a_missing_set(tmp_path):
    (tmp_path / "phoneme.npz").write_bytes(b"PK\x03\x04 half a file")
    with pytest.raises(MissingSetError, match=r"phoneme\.npz does not hold a data set"):
        Shelf(tmp_path, fetch=False).get("phoneme")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": np.arange(500) % 3}, "two classes of 200 rows"),
        ({"y": np.arange(500) % 2 + 1}, r"labels must be 0, 1, ..., got \[1, 2\]"),
        ({"y": np.zeros(500, int)}, "labels must be"),
        ({"y": np.arange(499) % 2}, "X and y do not fit"),
        ({"X": np.full((500, 2), np.nan)}, "NaN"),
        ({"X": np.ones((300, 2)), "y": np.arange(300) % 2}, "two classes of 200 rows"),
        ({"paper_train_idx": np.array([500])}, "paper_.* do not fit X"),
        ({"paper_noise_z": np.ones((2, 3))}, "paper_.* do not fit X"),
    ],
)
def test_a_file_that_does_not_fit_says_why(arrays, words, tmp_path, rng):
    good = {"X": rng.normal(size=(500, 2)), "y": np.arange(500) % 2, "paper_train_idx": np.arange(9),
            "paper_val_idx": np.arange(9), "paper_noise_z": np.ones((2, 2))}  # fmt: skip
    np.savez(tmp_path / "wind.npz", **good)
    assert Shelf(tmp_path, fetch=False).get("wind").replay is not None
    np.savez(tmp_path / "wind.npz", **(good | arrays))
    with pytest.raises(MissingSetError, match=words):
        Shelf(tmp_path, fetch=False).get("wind")


def test_the_digest_tells_other_rows(tmp_path, unbalanced):
    np.savez(tmp_path / "fraud.npz", X=unbalanced.X, y=unbalanced.y)
    one = Shelf(tmp_path, fetch=False).get("fraud").digest
    np.savez(tmp_path / "fraud.npz", X=unbalanced.X + 1, y=unbalanced.y)
    assert Shelf(tmp_path, fetch=False).get("fraud").digest != one


@pytest.fixture
def no_net(tmp_path, monkeypatch):
    """A place for scikit-learn's cache, and a net that refuses every connection."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.delenv("THRESHER_DATA", raising=False)
    monkeypatch.setattr("urllib.request._opener", None)  # it keeps the proxies of its first use
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    return tmp_path


def openml_cache(folder, number, arff):
    """What scikit-learn keeps of a set it has fetched, so that nothing is fetched again."""
    base = folder / "openml" / "openml.org"
    features = [
        {"index": str(i), "name": n, "data_type": t, "is_target": "true" if n == "binaryClass" else "false",
         "is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
        for i, (n, t) in enumerate([("a", "numeric"), ("b", "numeric"), ("c", "nominal"), ("binaryClass", "nominal")])
    ]  # fmt: skip
    about = {"id": str(number), "name": "small", "version": "1", "format": "ARFF", "file_id": "1", "status": "active", "description": "",
             "default_target_attribute": "binaryClass", "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),  # noqa: S324
             "url": "https://www.openml.org/data/v1/download/1/small.arff"}  # fmt: skip
    files = {
        f"api/v1/json/data/{number}": {"data_set_description": about},
        f"api/v1/json/data/features/{number}": {"data_features": {"feature": features}},
        f"api/v1/json/data/qualities/{number}": {"data_qualities": {"quality": []}},
    }
    for name, content in files.items():
        path = base / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps(content).encode()))
    for name in ("data/v1/download/1/small.arff", "data/v1/download/1"):
        path = base / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(arff.encode()))


def test_a_set_comes_from_openml_through_scikit_learn(no_net):
    lines = [f"{i % 7},{i * 0.5 if i else '?'},x,{'P' if i % 3 else 'N'}" for i in range(60)]
    header = "@relation small\n@attribute a numeric\n@attribute b numeric\n@attribute c {x,y}\n@attribute binaryClass {P,N}\n@data\n"
    openml_cache(no_net, 847, header + "\n".join(lines) + "\n")
    assert fetch_openml(data_id=847, as_frame=True, parser="auto").data.shape == (60, 3)
    found = fetch_set("wind")
    assert found.X.shape == (60, 2)  # the column of names is left out
    assert found.X[0].tolist() == [0, -1000]  # a missing number
    assert found.y.tolist() == [int(i % 3 != 0) for i in range(60)]
    assert Shelf().get("wind").source == "OpenML 847"


@pytest.mark.usefixtures("no_net")
def test_no_net_is_no_set():
    with pytest.raises(MissingSetError, match="cannot be fetched from OpenML"):
        Shelf().get("wind")
    assert "generated" in Shelf().get("2dplanes").source
