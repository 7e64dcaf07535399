"""Long runs: the same values whoever computes them, broken off and gone on with, two at once."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import waits
from games import eight_points
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import thresher as th
from thresher.passes.checkpoint import Checkpoint
from thresher.retrain import estimation
from thresher.retrain.engine import Journal
from thresher.retrain.utility import Outcome

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
    alone, two, three = (
        method(*data, evaluations=100, workers=workers, accelerate=accelerate)
        for workers in (1, 2, 3)
    )
    assert alone == two == three


def test_nor_does_the_size_of_blocks(data, monkeypatch):
    arguments = {"evaluations": 150, "model": GaussianNB()}
    whole = [method(*data, **arguments) for method in (th.data_shapley, th.data_banzhaf)]
    monkeypatch.setattr(estimation, "LARGEST_BLOCK", 7)
    assert whole == [method(*data, **arguments) for method in (th.data_shapley, th.data_banzhaf)]


def test_nor_do_truncated_walks_and_stable_rankings(data, monkeypatch):
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    for arguments in ({"truncation": 0.05, "evaluations": 400}, {"stability": 0.5}):
        found = [
            th.data_shapley(*data, accelerate=True, workers=workers, **arguments)
            for workers in (1, 2)
        ]
        assert found[0] == found[1]


def test_backends_of_joblib(data, monkeypatch):
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    alone = th.data_shapley(*data, evaluations=80, workers=1)
    for backend in ("threading", "multiprocessing", "sequential"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert th.data_shapley(*data, evaluations=80) == alone


def test_dask_workers(data, monkeypatch):
    """A real cluster of two processes."""
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    distributed = pytest.importorskip("distributed", reason="dask is installed by the test group")
    alone = th.data_banzhaf(*data, evaluations=200, workers=1)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
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
v = method(X, y, V, y_val, model=Slow(least=1), evaluations=int(sys.argv[4]), workers=1, checkpoint=sys.argv[1])
print(v.values.tolist())
"""


def start(path, method="data_shapley", evaluations=230):
    command = [sys.executable, "-c", SLOW, str(path), str(HERE), method, str(evaluations)]
    return waits.started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def blocks(path):
    """What a checkpoint holds, read from a copy: a run has the file to itself."""
    if not path.exists():
        return []
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, Path(folder, "copy"))
        try:
            with contextlib.closing(sqlite3.connect(copy)) as file:
                pieces = file.execute("SELECT name, content, digest FROM piece WHERE name != 'run'")
                return sorted(pieces, key=lambda piece: [int(part) for part in piece[0].split()])
        except sqlite3.DatabaseError:  # copied while it was written
            return []


def utilities(kept):
    return sum(len(json.loads(content)["entry"]["utilities"]) for _, content, _ in kept)


@pytest.mark.parametrize(
    ("method", "stop"), [("data_shapley", signal.SIGKILL), ("data_banzhaf", signal.SIGINT)]
)
def test_a_broken_run_goes_on_where_it_was(tmp_path, method, stop):
    path = tmp_path / "run.db"
    with start(path, method) as first:
        waits.until(lambda: len(blocks(path)) >= 3, "3 blocks")
        first.send_signal(stop)
        first.communicate()
    assert first.returncode != 0
    kept = blocks(path)
    assert len(kept) >= 3
    assert 3 <= utilities(kept) < 230
    with start(path, method) as again, start(tmp_path / "whole.db", method) as whole:
        found, want = again.communicate()[0], whole.communicate()[0]
    assert again.returncode == whole.returncode == 0
    assert found == want
    assert set(kept) <= set(blocks(path))  # nothing was computed twice
    assert utilities(blocks(path)) == 230


def test_two_runs_at_once_do_not_share_a_file(tmp_path, data):
    path = tmp_path / "run.db"
    with start(path, evaluations=23_000):
        waits.until(lambda: blocks(path), "a block")
        with start(path, evaluations=23_000) as second:
            _, words = second.communicate()
    assert "is in use by another process" in words


def test_a_run_that_is_through_can_be_prolonged(tmp_path, data):
    path = tmp_path / "run.db"
    short = th.data_shapley(*data, evaluations=200, checkpoint=path)
    before = blocks(path)
    assert th.data_shapley(*data, evaluations=200, checkpoint=path) == short
    assert blocks(path) == before
    long = th.data_shapley(*data, evaluations=400, checkpoint=path)
    assert set(before) < set(blocks(path))
    assert long == th.data_shapley(*data, evaluations=400)


@pytest.mark.parametrize("evaluations", [100, 130, 7])
def test_random_subsets_can_be_prolonged_from_any_number(tmp_path, data, evaluations):
    path = tmp_path / "run.db"
    th.data_banzhaf(*data, evaluations=evaluations, checkpoint=path)
    long = th.data_banzhaf(*data, evaluations=200, checkpoint=path)
    assert long == th.data_banzhaf(*data, evaluations=200)
    short = th.data_banzhaf(*data, evaluations=evaluations, checkpoint=path)
    assert short == th.data_banzhaf(*data, evaluations=evaluations)


@pytest.mark.parametrize(
    "damage",
    [
        "content = CAST(replace(content, '\"warned\": 0', '\"warned\": 1') AS BLOB)",
        "content = 'text'",
        "name = '0 1064'",
        "digest = zeroblob(16)",
    ],
)
def test_a_damaged_block_is_computed_again(tmp_path, data, damage):
    path = tmp_path / "run.db"
    want = th.data_banzhaf(*data, evaluations=400, checkpoint=path)
    whole = blocks(path)
    with contextlib.closing(sqlite3.connect(path)) as file:
        changed = file.execute(f"UPDATE piece SET {damage} WHERE name = ?", whole[1][:1])  # noqa: S608
        assert changed.rowcount == 1
        file.commit()
    assert blocks(path) != whole
    with pytest.warns(th.ThresherWarning, match="1 pieces of checkpoint.*are damaged") as caught:
        assert th.data_banzhaf(*data, evaluations=400, checkpoint=path) == want
    assert caught[0].filename == __file__
    assert set(whole) <= set(blocks(path))


def test_a_damaged_file_is_refused_or_lacks_blocks_but_never_has_others(fast_path):
    path, about = fast_path / "run.db", {"method": "banzhaf", "seed": 3}
    want = {(0, i): Outcome([i / 7, 0.5], [False, True], i, "complaint") for i in range(9)}
    with Checkpoint(path, {**about, "size": 2}) as kept:
        Journal(kept).write(want)
    whole, found = path.read_bytes(), []
    places = np.flatnonzero(np.frombuffer(whole, np.uint8)).tolist()
    flips = [whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :] for place in places]
    cuts = [whole[:size] for size in range(100, len(whole), 100)]
    for content in flips + cuts:
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", th.ThresherWarning)
            with (
                contextlib.suppress(th.InputError),
                Checkpoint(path, {**about, "size": 9}, free=("size",)) as kept,
            ):
                journal = Journal(kept)
                assert journal.size == 2
                assert journal.known.items() <= want.items()
                found.append(content)
    assert len(found) > len(flips) / 9
    assert not set(cuts) & set(found)


def test_models_are_told_apart(tmp_path, data):
    path = tmp_path / "run.db"
    states = [DecisionTreeClassifier(random_state=np.random.RandomState(i)) for i in (0, 1)]
    th.leave_one_out(*data, model=states[0], checkpoint=path)
    with pytest.raises(th.InputError, match="its model's settings is"):
        th.leave_one_out(*data, model=states[1], checkpoint=path)


def test_slow_fits_are_kept_soon(tmp_path, data):
    """Fits of half a second: nothing is lost for long, though the first coalitions cost nothing."""
    path = tmp_path / "run.db"
    code = SLOW.replace("time.sleep(0.02)", "time.sleep(0.5)")
    command = [sys.executable, "-c", code, str(path), str(HERE), "data_shapley", "690"]
    with waits.started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        waits.until(lambda: len(blocks(path)) >= 2, "2 blocks")
        known = len(blocks(path))
        assert waits.until(lambda: len(blocks(path)) > known, "the next block", limit=11)


def test_failures_are_counted_alike_by_any_number_of_workers(monkeypatch, rng):
    monkeypatch.setattr("thresher.retrain.engine.LITTLE", 0.0)
    X = rng.normal(size=(12, 2))
    y = np.arange(12) % 2
    for method, more in (
        (th.data_shapley, {"evaluations": 110}),
        (th.data_banzhaf, {"evaluations": 60}),
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
        th.data_shapley(*data, evaluations=80)
    with pytest.warns(UserWarning, match="do you hear me"):
        warnings.warn("do you hear me", UserWarning, stacklevel=1)


def test_what_a_crash_left_of_a_block_is_dropped(tmp_path, data):
    path = tmp_path / "run.db"
    want = th.data_banzhaf(*data, evaluations=200, checkpoint=path)
    whole = blocks(path)
    code = """
import os, sys
from thresher.passes.checkpoint import KIND, SCHEMA, Keeper
kept = Keeper(sys.argv[1], SCHEMA, kind=KIND, what="checkpoint")
kept.do("PRAGMA cache_size = 1")  # so that half a change is in the file
kept.begin()
kept.do("UPDATE piece SET content = zeroblob(9)")
kept.do("INSERT INTO piece VALUES ('9 9', 0, zeroblob(99999), zeroblob(16))")
os.kill(os.getpid(), 9)
"""
    done = waits.run([sys.executable, "-c", code, path])
    assert done.returncode == -signal.SIGKILL
    assert path.with_name("run.db-journal").exists()
    assert th.data_banzhaf(*data, evaluations=200, checkpoint=path) == want
    assert blocks(path) == whole


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
    path = tmp_path / "run.db"
    th.data_shapley(*data, evaluations=100, checkpoint=path)
    with pytest.raises(th.InputError, match=f"belongs to another run: its {name} is"):
        th.data_shapley(*data, evaluations=100, checkpoint=path, **change)


def test_other_data_and_other_methods_are_refused(tmp_path, data):
    path = tmp_path / "run.db"
    th.data_shapley(*data, evaluations=100, checkpoint=path)
    X, *rest = data
    with pytest.raises(th.InputError, match="its data is"):
        th.data_shapley(X + 1, *rest, evaluations=100, checkpoint=path)
    with pytest.raises(th.InputError, match="its method is 'data-shapley'"):
        th.data_banzhaf(*data, evaluations=100, checkpoint=path)


OLD = b'aec6a1c5 {"format": "thresher.retrain/2", "size": 64, "method": "leave-one-out"}\n'


@pytest.mark.parametrize("content", [b"my thesis\n", b"my thesis", OLD, OLD * 99])
def test_other_files_are_left_alone(tmp_path, data, content):
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    with pytest.raises(th.InputError, match="is another kind of file"):
        th.leave_one_out(*data, checkpoint=path)
    with pytest.raises(th.InputError, match="move it away, or choose a new name"):
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
