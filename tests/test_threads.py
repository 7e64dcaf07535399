from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import waits
from joblib import Parallel, cpu_count, delayed
from threadpoolctl import threadpool_info

import thresher as th
from thresher.threads import in_order, one_blas_thread, run, thread_count


def blas_threads():
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


def test_the_number_of_threads_is_set_by_the_environment(monkeypatch):
    monkeypatch.setenv("THRESHER_THREADS", "7")
    assert thread_count() == 7
    monkeypatch.delenv("THRESHER_THREADS")
    assert 1 <= thread_count() <= os.cpu_count()
    for wrong in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("THRESHER_THREADS", wrong)
        with pytest.raises(th.InputError, match="THRESHER_THREADS must be an integer >= 1"):
            thread_count()


def test_workers_of_joblib_share_the_cores_among_them(monkeypatch):
    monkeypatch.delenv("THRESHER_THREADS", raising=False)
    for share in ("1", "2", "", "none", "100000"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", share)
        assert thread_count() == min(
            len(os.sched_getaffinity(0)), {"1": 1, "2": 2}.get(share, 1 << 30)
        )
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    monkeypatch.setenv("THRESHER_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.delenv("NUMBA_NUM_THREADS")
    monkeypatch.delenv("THRESHER_THREADS")
    counts = Parallel(n_jobs=2)(delayed(thread_count)() for _ in range(2))
    assert counts == [max(1, cpu_count() // 2)] * 2


@pytest.mark.parametrize("parallel", [False, True])
def test_every_piece_is_run_and_errors_come_out(parallel, monkeypatch):
    monkeypatch.setenv("THRESHER_THREADS", "2")
    done = []
    run(done.append, [(i,) for i in range(20)], parallel=parallel)
    assert sorted(done) == list(range(20))
    assert list(in_order(lambda i: i * i, [(i,) for i in range(20)], parallel=parallel)) == [
        i * i for i in range(20)
    ]

    def fail(i):
        if i == 3:
            raise InterruptedError(i)
        return i

    with pytest.raises(InterruptedError):
        run(fail, [(i,) for i in range(9)], parallel=parallel)
    with pytest.raises(InterruptedError):
        list(in_order(fail, [(i,) for i in range(9)], parallel=parallel))


def test_blas_gets_its_threads_back_however_users_overlap():
    values(3)  # loads every BLAS that is used
    before = blas_threads()
    assert set(before) != {1} or os.cpu_count() == 1

    def work(seed):
        with one_blas_thread(), one_blas_thread():
            assert set(blas_threads()) == {1}
        return values(seed)

    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(work, [3] * 8))) == 1
    assert blas_threads() == before


def values(seed):
    rng = np.random.default_rng(seed)
    X, V = rng.standard_normal((20_000, 30)), rng.standard_normal((100, 30))
    return th.tknn_shapley(
        X, rng.integers(0, 2, 20_000), V, rng.integers(0, 2, 100)
    ).values.tobytes()


def test_many_callers_at_once_get_the_same_bits():
    want = values(1)
    found = []
    waits.together(*[lambda: found.append(values(1))] * 4)
    assert found == [want] * 4


def child_blas_threads(_):
    return blas_threads()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_a_thread_is_inside_is_not_limited():
    before = blas_threads()
    inside, done = threading.Event(), threading.Event()

    def stay():
        with one_blas_thread():
            inside.set()
            done.wait(60)

    holder = threading.Thread(target=stay)
    holder.start()
    inside.wait(60)
    try:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply_async(child_blas_threads, (0,)).get(timeout=60) == before
            assert pool.apply_async(values, (2,)).get(timeout=60)
    finally:
        done.set()
        waits.join(holder)
    assert blas_threads() == before


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_makes_its_own_threads():
    want = values(2)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(values, (2,)).get(timeout=120) == want
