"""Long runs: the same values whoever computes them, broken off and gone on with, two at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from games import eight_points
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import thresher as th
from thresher.retrain import estimation

HERE = Path(__file__).parent
SAMPLED = pytest.mark.parametrize("method", [th.data_shapley, th.beta_shapley, th.data_banzhaf])


@pytest.fixture
def data(rng):
    X, V = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    return X, (X[:, 0] > 0).astype(int), V, (V[:, 0] > 0).astype(int)


@SAMPLED
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_number_of_workers_changes_nothing(data, method, accelerate, monkeypatch):
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)  # processes even for little work
    found = [
        method(*data, evaluations=400, workers=workers, accelerate=accelerate)
        for workers in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]


def test_nor_does_the_size_of_blocks(data, monkeypatch):
    arguments = {"evaluations": 400, "model": GaussianNB()}
    whole = [method(*data, **arguments) for method in (th.data_shapley, th.data_banzhaf)]
    monkeypatch.setattr(estimation, "LARGEST_BLOCK", 7)
    assert whole == [method(*data, **arguments) for method in (th.data_shapley, th.data_banzhaf)]


def test_nor_do_truncated_walks_and_stable_rankings(data, monkeypatch):
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    for arguments in ({"truncation": 0.05, "evaluations": 2000}, {"stability": 0.5}):
        found = [
            th.data_shapley(*data, accelerate=True, workers=workers, **arguments)
            for workers in (1, 2)
        ]
        assert found[0] == found[1]


def test_backends_of_joblib(data, monkeypatch):
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    alone = th.data_shapley(*data, evaluations=200, workers=1)
    for backend in ("threading", "multiprocessing", "sequential"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert th.data_shapley(*data, evaluations=200) == alone


def test_dask_workers(data, monkeypatch):
    """A real cluster of two processes."""
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    distributed = pytest.importorskip("distributed", reason="dask is installed by the test group")
    alone = th.data_banzhaf(*data, evaluations=200, workers=1)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert th.data_banzhaf(*data, evaluations=200) == alone


SLOW = """
import sys, time
sys.path.insert(0, sys.argv[2])
import numpy as np
import thresher as th
from games import eight_points, Moody

class Slow(Moody):
    def fit(self, X, y):
        time.sleep(0.02)
        return super().fit(X, y)

X, y, V, y_val = eight_points()
X, y = np.tile(X, (3, 1)) + np.arange(24)[:, None] / 50, np.tile(y, 3)
print("ready", flush=True)
method = getattr(th, sys.argv[3])
v = method(X, y, V, y_val, model=Slow(least=1), evaluations=690, workers=1, checkpoint=sys.argv[1])
print(v.values.tolist())
"""


def start(path, method="data_shapley"):
    command = [sys.executable, "-c", SLOW, str(path), str(HERE), method]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603


def lines(path):
    return path.read_text().splitlines()[1:] if path.exists() else []


@pytest.mark.parametrize(
    ("method", "stop"), [("data_shapley", signal.SIGKILL), ("data_banzhaf", signal.SIGINT)]
)
def test_a_broken_run_goes_on_where_it_was(tmp_path, method, stop):
    path = tmp_path / "run.jsonl"
    first = start(path, method)
    patience = time.monotonic() + 60
    while len(lines(path)) < 3 and time.monotonic() < patience:
        time.sleep(0.05)
    first.send_signal(stop)
    first.communicate(timeout=60)
    assert first.returncode != 0
    kept = lines(path)
    assert len(kept) >= 3
    again, whole = start(path, method), start(tmp_path / "whole.jsonl", method)
    found, want = again.communicate(timeout=120)[0], whole.communicate(timeout=120)[0]
    assert again.returncode == whole.returncode == 0
    assert found == want
    assert lines(path)[: len(kept)] == kept  # nothing was computed twice
    assert sum(len(json.loads(line[9:])[2]) for line in lines(path)) == 690


def test_two_runs_at_once_do_not_share_a_file(tmp_path, data):
    path = tmp_path / "run.jsonl"
    first = start(path)
    patience = time.monotonic() + 60
    while len(lines(path)) < 1 and time.monotonic() < patience:
        time.sleep(0.05)
    second = start(path)
    _, words = second.communicate(timeout=60)
    assert "is in use by another run" in words
    first.kill()
    first.communicate()


def test_a_run_that_is_through_can_be_prolonged(tmp_path, data):
    path = tmp_path / "run.jsonl"
    short = th.data_shapley(*data, evaluations=200, checkpoint=path)
    before = path.read_text()
    assert th.data_shapley(*data, evaluations=200, checkpoint=path) == short
    assert path.read_text() == before
    long = th.data_shapley(*data, evaluations=400, checkpoint=path)
    assert path.read_text().startswith(before)
    assert long == th.data_shapley(*data, evaluations=400)


@pytest.mark.parametrize("evaluations", [100, 130, 7])
def test_random_subsets_can_be_prolonged_from_any_number(tmp_path, data, evaluations):
    path = tmp_path / "run.jsonl"
    th.data_banzhaf(*data, evaluations=evaluations, checkpoint=path)
    long = th.data_banzhaf(*data, evaluations=200, checkpoint=path)
    assert long == th.data_banzhaf(*data, evaluations=200)
    short = th.data_banzhaf(*data, evaluations=evaluations, checkpoint=path)
    assert short == th.data_banzhaf(*data, evaluations=evaluations)


def test_a_damaged_line_is_computed_again(tmp_path, data):
    path = tmp_path / "run.jsonl"
    want = th.data_banzhaf(*data, evaluations=400, checkpoint=path)
    rows = path.read_bytes().splitlines(keepends=True)
    rows[2] = b"x" + rows[2]
    path.write_bytes(b"".join(rows))
    with pytest.warns(th.ThresherWarning, match="1 lines of checkpoint.*are damaged"):
        assert th.data_banzhaf(*data, evaluations=400, checkpoint=path) == want


def test_models_are_told_apart(tmp_path, data):
    path = tmp_path / "run.jsonl"
    states = [DecisionTreeClassifier(random_state=np.random.RandomState(i)) for i in (0, 1)]
    th.leave_one_out(*data, model=states[0], checkpoint=path)
    with pytest.raises(th.InputError, match="its model's settings is"):
        th.leave_one_out(*data, model=states[1], checkpoint=path)


def test_slow_fits_are_kept_soon(tmp_path, data):
    """Fits of half a second: nothing is lost for long, though the first coalitions cost nothing."""
    path = tmp_path / "run.jsonl"
    code = SLOW.replace("time.sleep(0.02)", "time.sleep(0.5)")
    command = [sys.executable, "-c", code, str(path), str(HERE), "data_shapley"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603
        patience = time.monotonic() + 60
        while len(lines(path)) < 2 and time.monotonic() < patience:
            time.sleep(0.05)
        begin, known, gaps = time.monotonic(), len(lines(path)), []
        while time.monotonic() < begin + 12:
            time.sleep(0.05)
            if len(lines(path)) > known:
                known = len(lines(path))
                gaps.append(time.monotonic() - begin - sum(gaps))
        process.kill()
    assert len(gaps) >= 1
    assert max(gaps) < 11


def test_failures_are_counted_alike_by_any_number_of_workers(monkeypatch, rng):
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    X = rng.normal(size=(12, 2))
    y = np.arange(12) % 2
    for method, more in (
        (th.data_shapley, {"evaluations": 550}),
        (th.data_banzhaf, {"evaluations": 150}),
        (th.data_shapley, {"stability": 0.3}),
    ):
        found = []
        for workers in (1, 2, 3):
            with pytest.warns(th.FitWarning, match="failed"):
                found.append(method(X, y, X + 0.1, y, model=KNeighborsClassifier(7), workers=workers,
                                    **more))  # fmt: skip
        assert found[0] == found[1] == found[2]
        assert found[0].params["failed_fits"] > 0


def test_warnings_still_work_after_threads_have_fitted(data):
    with joblib.parallel_config(backend="threading", n_jobs=3):
        th.data_shapley(*data, evaluations=400)
    with pytest.warns(UserWarning, match="do you hear me"):
        warnings.warn("do you hear me", UserWarning, stacklevel=1)


@pytest.mark.parametrize("damage", [b"", b"0123"])
def test_what_a_crash_left_of_a_line_is_dropped(tmp_path, data, damage):
    path = tmp_path / "run.jsonl"
    want = th.data_banzhaf(*data, evaluations=200, checkpoint=path)
    whole = path.read_bytes()
    cut = whole[: len(whole) * 2 // 3] if not damage else whole[: whole.index(b"\n") + 1] + damage
    path.write_bytes(cut)
    assert th.data_banzhaf(*data, evaluations=200, checkpoint=path) == want
    kept = path.read_bytes().splitlines()
    assert set(whole.splitlines()) <= set(kept)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"seed": 1}, "seed"),
        ({"model": GaussianNB()}, "model"),
        ({"accelerate": True}, "accelerate"),
        ({"truncation": 0.1}, "truncation"),
    ],
)
def test_another_run_is_refused(tmp_path, data, change, name):
    path = tmp_path / "run.jsonl"
    th.data_shapley(*data, evaluations=100, checkpoint=path)
    with pytest.raises(th.InputError, match=f"belongs to another run: its {name} is"):
        th.data_shapley(*data, evaluations=100, checkpoint=path, **change)


def test_other_data_and_other_methods_are_refused(tmp_path, data):
    path = tmp_path / "run.jsonl"
    th.data_shapley(*data, evaluations=100, checkpoint=path)
    X, *rest = data
    with pytest.raises(th.InputError, match="its data is"):
        th.data_shapley(X + 1, *rest, evaluations=100, checkpoint=path)
    with pytest.raises(th.InputError, match="its method is 'data-shapley'"):
        th.data_banzhaf(*data, evaluations=100, checkpoint=path)


@pytest.mark.parametrize("content", [b"my thesis\n", b"my thesis", json.dumps({"a": 1}).encode()])
def test_other_files_are_left_alone(tmp_path, data, content):
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    with pytest.raises(th.InputError, match="is another kind of file"):
        th.leave_one_out(*data, checkpoint=path)
    assert path.read_bytes() == content


def test_identical_coalitions_are_fitted_once(tmp_path):
    """Eight points have 256 coalitions, however many are asked for."""
    X, y, V, y_val = eight_points()
    CountedFits.count = 0
    th.data_shapley(X, y, V, y_val, model=CountedFits(), evaluations=7000, workers=1)
    assert CountedFits.count <= 256 + 2 * estimation.LARGEST_BLOCK


class CountedFits(GaussianNB):
    count = 0

    def fit(self, X, y):
        CountedFits.count += 1
        return super().fit(X, y)


def test_a_progress_bar_tells_the_time_left(data, capsys):
    th.data_shapley(*data, evaluations=400, accelerate=True, progress=True)
    words = capsys.readouterr().err
    assert "data-shapley" in words
    assert "fits" in words
    assert "390/390" in words


def test_large_tables_are_not_sent_for_every_fit(rng, monkeypatch, tmp_path):
    """Workers of loky see memory maps of one file, not copies."""
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    X = rng.normal(size=(30, 1000))
    y = np.arange(30) % 2
    th.data_banzhaf(X, y, X[:5] + 1, y[:5], model=Mapped(), evaluations=8, workers=2)
    assert Mapped.seen() <= 2


class Mapped(GaussianNB):
    """Counts the files that workers have mapped."""

    def fit(self, X, y):
        return super().fit(X, y)

    @staticmethod
    def seen():
        return len({p.name for p in Path(os.environ["JOBLIB_TEMP_FOLDER"]).rglob("*.pkl")})
