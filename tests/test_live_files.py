"""The files of a store: what survives crashes, damage, forks and full disks."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import sys

import numpy as np
import pytest
import waits
from stores import check_same, create, fill

import thresher as th
from thresher.live import store_file as database

pytestmark = pytest.mark.filterwarnings("ignore::thresher.errors.TwinWarning")


def test_a_store_says_what_it_is_and_opens_again(public, tmp_path):
    with create(tmp_path / "shop", public) as live:
        points = fill(live)
        assert repr(live) == "LiveCounts(shop, 5 points, 70 validation points, cosine radius 0.3)"
        assert live.folder == tmp_path / "shop"
    live.close()
    for call in (live.commit, live.snapshot, lambda: live.add("x", [1, 2, 3], 1)):
        with pytest.raises(th.InputError, match="is closed: use LiveCounts.open"):
            call()
    with th.LiveCounts.open(str(tmp_path / "shop")) as live:
        check_same(live, points, *public, radius=0.3)
    assert [path.name for path in (tmp_path / "shop").iterdir()] == ["live.db"]


def test_only_a_free_folder_is_taken_and_only_a_store_opened(public, tmp_path):
    V, _ = public
    create(tmp_path / "s", public).close()
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("")
    for call, message in [
        (lambda: create(tmp_path / "s", public), "holds a store already"),
        (lambda: create(tmp_path / "file", public), "got the file"),
        (lambda: create(tmp_path / "full", public), "not empty"),
        (lambda: create(tmp_path / "no" / "folder", public), "cannot create"),
        (lambda: create("", public), "must be the name of a folder"),
        (lambda: create(tmp_path / "n", public, metric="precomputed"), "metric must be one of"),
        (lambda: create(tmp_path / "n", public, dtype="float16"), "dtype must be one of"),
        (lambda: create(tmp_path / "n", public, radius=-1), "radius must be"),
        (lambda: th.LiveCounts.create(tmp_path / "n", V[:2], [("a",), ("b",)], radius=1), "cannot be saved"),
        (lambda: th.LiveCounts.open(tmp_path / "n"), "there is no store in"),
        (lambda: th.LiveCounts.open(tmp_path / "full"), "there is no store in"),
    ]:  # fmt: skip
        with pytest.raises(th.InputError, match=message):
            call()
    (tmp_path / "n").mkdir(exist_ok=True)
    (tmp_path / "n" / ".thresher-0-draft").touch()
    create(tmp_path / "n", public).close()  # what was broken off is no hindrance


def test_a_second_writer_is_refused(public, tmp_path):
    code = "import sys, thresher as th; th.LiveCounts.open(sys.argv[1])"
    with create(tmp_path / "s", public) as live:
        with pytest.raises(th.InputError, match="is in use"):
            th.LiveCounts.open(tmp_path / "s")
        done = waits.run(
            [sys.executable, "-c", code, str(tmp_path / "s")],
        )  # fmt: skip
        assert done.returncode == 1
        assert "is in use by another process" in done.stderr
        points = fill(live)
    with th.LiveCounts.open(tmp_path / "s") as live:
        assert live.ids == tuple(points)


def state_of(live):
    X, y = live.points()
    return tuple(zip(live.ids, map(tuple, X.tolist()), y.tolist()))


def opened(folder):
    """The state after opening."""
    with th.LiveCounts.open(folder) as live:
        live.verify()
        return state_of(live)


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def put_back(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def small():
    """A validation set that takes little space."""
    return np.array([[1.0, 2.0, 3.0], [1.0, -2.0, 3.0], [0.5, 0.5, 1.0]]), [0, 1, 2]


def history(folder, small):
    """A store with two commits and an update after them, as a killed process leaves its files."""
    live = create(folder, small)
    live.add("a", [1.0, 2.0, 3.5], 1)
    live.add(7, [1.5, 2.0, 3.0], 2)
    live.commit()
    live.relabel("a", 0)
    live.add("dé", [1.0, -2.5, 3.0], 1)
    live.commit()
    committed = state_of(live)
    live.remove(7)
    live._file.write(live._points)  # with SQLite now, and not committed
    files = files_of(folder)
    live.close()
    return committed, state_of(live), files


def test_an_update_that_was_not_committed_is_gone_after_a_crash(small, tmp_path):
    committed, closed, files = history(tmp_path / "s", small)
    assert set(files) == {"live.db", "live.db-wal", "live.db-commits"}
    assert opened(tmp_path / "s") == closed != committed
    put_back(tmp_path / "s", files)
    assert opened(tmp_path / "s") == committed
    assert set(files_of(tmp_path / "s")) == {"live.db"}


def damages(whole):
    """A file with a flipped bit at every place that holds something, or cut off at any."""
    for place, byte in enumerate(whole):
        if byte or place % 41 == 0:
            broken = bytearray(whole)
            broken[place] ^= 1 << place % 8
            yield bytes(broken)
    for size in range(0, len(whole), 61):
        yield whole[:size]


@pytest.mark.parametrize("crashed", [False, True])
def test_damage_to_what_was_committed_is_an_error_or_has_no_effect(crashed, small, fast_path):
    folder = fast_path / "s"
    committed, closed, files = history(folder, small)
    want = committed if crashed else closed
    files = files if crashed else files_of(folder)
    for name in files:
        found = []
        for content in damages(files[name]):
            put_back(folder, {**files, name: content})
            found.append(read_or_refused(folder))
        assert set(found) <= {want, None}
        if name != "live.db-commits":
            assert found.count(None) > len(found) / 4, name


def read_or_refused(folder):
    """What a store holds, or None if that is an error."""
    try:
        with contextlib.closing(database.StoreFile(folder / "live.db")) as file:
            counts, points = file.read()
    except th.InputError:
        return None
    rows, codes = points.table()
    labels = [counts.classes[code] for code in codes]
    return tuple(zip(points.ids, map(tuple, rows.tolist()), labels))


def test_files_of_different_stores_or_times_do_not_go_together(small, tmp_path):
    _, _, files = history(tmp_path / "s", small)
    with create(tmp_path / "t", small) as live:
        for i in range(100):
            live.add(i, [1.0, 2.0, i], i % 3)
            live.commit()
        theirs = files_of(tmp_path / "t")
    for ours in (files, files_of(tmp_path / "s")):
        for names in (["live.db-wal"], ["live.db-wal", "live.db-commits"], ["live.db-commits"]):
            put_back(tmp_path / "s", {**ours, **{name: theirs[name] for name in names}})
            with pytest.raises(th.InputError, match=r"live\.db is damaged"):
                opened(tmp_path / "s")


def test_points_that_others_took_out_or_put_in_are_missed(small, tmp_path):
    import sqlite3

    _, want, _ = history(tmp_path / "s", small)
    whole = files_of(tmp_path / "s")
    for statement in (
        "DELETE FROM point WHERE id = 'a'",
        "UPDATE point SET place = 9 WHERE id = 'a'",
        "UPDATE point SET code = 2 WHERE id = 'a'",
        "UPDATE point SET id = 'b' WHERE id = 'a'",
        "UPDATE point SET id = 'a'",
        "UPDATE point SET features = zeroblob(24)",
        "UPDATE point SET checksum = checksum + 1 WHERE id = 'a'",
        "INSERT INTO point SELECT 20, 'e', code, features, checksum FROM point WHERE id = 'a'",
        "UPDATE total SET points = 3",
        "DELETE FROM total",
        "DELETE FROM about",
        "UPDATE about SET labels = zeroblob(12)",
        "UPDATE about SET text = replace(text, '0.3', '0.4')",
    ):
        put_back(tmp_path / "s", whole)
        with sqlite3.connect(tmp_path / "s" / "live.db") as file:
            file.execute(statement)
        file.close()
        with pytest.raises(th.InputError, match=r"live\.db is damaged: .*put back a copy of it"):
            opened(tmp_path / "s")
    put_back(tmp_path / "s", whole)
    assert opened(tmp_path / "s") == want


def test_nothing_is_written_where_nothing_has_changed(public, tmp_path):
    with create(tmp_path / "s", public) as live:
        fill(live)
        assert live.journaled == 8
        live.commit()
        assert live.journaled == 0
        before = files_of(tmp_path / "s")
        live.commit()
        assert files_of(tmp_path / "s") == before
        live.add("more", [1.0, 2.0, 1.0], 1)
        live.commit()
        assert files_of(tmp_path / "s") != before


def test_a_new_store_is_on_the_disk_before_it_has_its_name(public, tmp_path, monkeypatch):
    events, real = [], database.sync_folder

    def noted(folder):
        events.append((folder.name, sorted(path.name[:5] for path in (tmp_path / "s").iterdir())))
        real(folder)

    monkeypatch.setattr(database, "sync_folder", noted)
    create(tmp_path / "s", public).close()
    assert events == [(tmp_path.name, []), ("s", ["live."])]


def test_a_file_that_is_written_in_vain_leaves_no_store(public, tmp_path, monkeypatch):
    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(database.StoreFile, "commit", dies)
        with pytest.raises(KeyboardInterrupt):
            create(tmp_path / "s", public)
    assert list((tmp_path / "s").iterdir()) == []
    create(tmp_path / "s", public).close()


SNAPSHOT = """
import os, sys, threading, time
import numpy as np
import thresher as th
live = th.LiveCounts.open(sys.argv[1])
threading.Thread(target=lambda: (time.sleep(float(sys.argv[2])), os.kill(os.getpid(), 9))).start()
live.snapshot()
time.sleep(9)
"""


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.004, 0.01, 0.02, 0.04])
def test_a_snapshot_that_is_killed_loses_and_doubles_nothing(delay, rng, tmp_path):
    folder = tmp_path / "s"
    with create(folder, (rng.standard_normal((5, 30)), [0, 1, 2, 0, 1])) as live:
        live.add_many(range(3000), rng.standard_normal((3000, 30)), rng.integers(0, 3, 3000))
        live.commit()
        for i in range(0, 3000, 2):
            live.remove(i)
        want = live.ids
    (folder / ".thresher-draft").write_bytes(b"half a file")  # of nobody, and left alone
    size = (folder / "live.db").stat().st_size
    command = [sys.executable, "-c", SNAPSHOT, str(folder), str(delay)]
    assert waits.run(command).returncode == -signal.SIGKILL
    with th.LiveCounts.open(folder) as live:
        assert live.ids == want
        live.verify()
        live.snapshot()
    assert (folder / "live.db").stat().st_size < 0.6 * size
    with th.LiveCounts.open(folder) as live:
        assert live.ids == want


FULL = """
import resource, sys
import numpy as np
import thresher as th
live = th.LiveCounts.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
rng = np.random.default_rng(0)
for i in range(10_000):
    live.add(i, rng.standard_normal(3), i % 3)
    try:
        live.commit()
    except th.InputError as error:
        assert "cannot be used: " in str(error), error
        break
    print(i, flush=True)
for call in (lambda: live.remove(0), lambda: live.ids, lambda: live.counts, live.points, live.values,
             live.price_list, live.commit):
    try:
        call()
    except th.InputError as error:
        assert "because an update was interrupted: use LiveCounts.open" in str(error), error
    else:
        sys.exit("went on")
live.close()
"""


def test_after_a_failed_write_only_opening_anew_goes_on(public, tmp_path):
    """No file may grow beyond 200,000 bytes, as on a disk that is full."""
    with create(tmp_path / "s", public) as live:
        points = fill(live)
    command = [sys.executable, "-W", "ignore", "-c", FULL, str(tmp_path / "s")]
    done = waits.run(command)
    assert done.returncode == 0, done.stderr
    committed = [int(line) for line in done.stdout.split()]
    assert len(committed) > 5
    with th.LiveCounts.open(tmp_path / "s") as live:
        assert live.ids[: len(points) + len(committed)] == (*points, *committed)
        assert len(live) - len(points) - len(committed) in {0, 1}  # written, but never said to be
        live.verify()


def test_an_interrupted_update_is_no_half_update(public, tmp_path, monkeypatch):
    live = create(tmp_path / "s", public)
    points = fill(live)
    live.commit()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(live._points, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        live.add("half", [1.0, 2.0, 1.0], 1)
    with pytest.raises(th.InputError, match="was interrupted"):
        live.relabel("p0", 1)
    live.close()
    with th.LiveCounts.open(tmp_path / "s") as live:
        check_same(live, points, *public, radius=0.3)


FORKED = """
import os, sys
import thresher as th
live = th.LiveCounts.create(sys.argv[1], [[0.0], [4.0]], ["a", "b"], radius=1, metric="euclidean")
live.add("first", [0.5], "a")
live.commit()
held, free = os.pipe()
child = os.fork()
if child == 0:
    refused = 0
    for update in (live.snapshot, live.commit, lambda: live.add("x", [0.5], "a")):
        try:
            update()
        except th.InputError as error:
            refused += "belongs to the process that opened it" in str(error)
    if sys.argv[2] == "close":
        live.close()
    if sys.argv[2] == "exit":
        sys.exit(refused)
    os.read(held, 1)  # alive until the parent is through
    os._exit(refused)
live.add("second", [0.6], "a")
live.commit()
if sys.argv[2] != "stay":
    os.write(free, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
try:
    th.LiveCounts.open(sys.argv[1])
except th.InputError as error:
    assert "is in use" in str(error), error  # the child has not let go of what is not its own
else:
    sys.exit("opened twice")
live.close()
with th.LiveCounts.open(sys.argv[1]) as live:
    assert live.ids == ("first", "second")
os.write(free, b"!")
"""


@pytest.mark.parametrize("child", ["close", "exit", "stay"])
def test_a_forked_process_changes_nothing(child, tmp_path):
    done = waits.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, tmp_path / "s", child],
    )
    assert done.returncode == 0, done.stderr


def test_what_a_killed_process_left_is_on_the_disk_once_it_is_opened(small, tmp_path):
    """A commit that was written and not waited for may be read, and must not vanish later."""
    committed, _, files = history(tmp_path / "s", small)
    put_back(tmp_path / "s", files)
    live = th.LiveCounts.open(tmp_path / "s")
    assert state_of(live) == committed
    put_back(tmp_path / "t", {"live.db": files_of(tmp_path / "s")["live.db"]})  # not in the log
    assert opened(tmp_path / "t") == committed
    live.close()


@pytest.mark.parametrize("error", [errno.EIO, errno.EINVAL])
def test_a_folder_that_the_disk_refuses_is_no_folder(error, public, tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr("thresher.files.os.fsync", refuse)
    if error == errno.EINVAL:  # a system that cannot
        create(tmp_path / "s", public).close()
        return
    with pytest.raises(th.InputError, match="Input/output error"):
        create(tmp_path / "s", public)


UPDATES = '''
import json, os, random, signal, sys, time
import numpy as np
import thresher as th
from thresher.live import store

def updates():
    """The same updates every time: the names there are after each, with their labels."""
    rng, points, k = random.Random(7), {}, 0
    while True:
        k += 1
        kind = rng.choice(["add", "add", "remove", "relabel"]) if points else "add"
        name = f"p{k}" if kind == "add" else rng.choice(list(points))
        label = rng.randrange(3)
        if kind == "remove":
            del points[name]
        else:
            points[name] = label
        yield kind, name, label, points

def row(name):
    return np.random.default_rng(int(name[1:])).standard_normal(5)

def work(folder, pipe, every, waiting):
    store.WAITING = waiting
    V = np.random.default_rng(0).standard_normal((50, 5))
    live = th.LiveCounts.create(folder, V, np.arange(50) % 3, radius=0.5)
    os.write(pipe, b"0\\n")
    for k, (kind, name, label, _) in enumerate(updates(), 1):
        if kind == "add":
            live.add(name, row(name), label)
        elif kind == "remove":
            live.remove(name)
        else:
            live.relabel(name, label)
        if k % every == 0:
            live.snapshot() if k % (6 * every) == 0 else live.commit()
            os.write(pipe, b"%d\\n" % k)

def killed(folder, rng):
    """How many updates were committed before the worker was killed."""
    ours, theirs = os.pipe()
    every, waiting, target = rng.choice([3, 40]), rng.choice([1, 10_000]), rng.randrange(60)
    child = os.fork()
    if child == 0:
        try:
            work(folder, theirs, every, waiting)
        finally:
            os._exit(1)
    os.close(theirs)
    said = b""
    while not said.endswith(b"\\n") or int(said.split()[-1]) < target:
        part = os.read(ours, 1 << 16)
        if not part:
            sys.exit("the worker ended by itself")
        said += part
    time.sleep(rng.choice([0.0, rng.uniform(0, 0.003), rng.uniform(0, 0.03)]))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(ours, 1 << 16):
        said += part
    return int(said.split(b"\\n")[-2]), every

if __name__ == "__main__":
    live = th.LiveCounts.create(sys.argv[1] + "/warm", [[1.0] * 5], [0], radius=0.5)
    live.add("p", np.ones(5), 0)
    live.remove("p")
    live.close()
    rng = random.Random(0)
    told = {f"{sys.argv[1]}/{i}": None for i in range(int(sys.argv[2]))}
    for folder in told:
        told[folder] = killed(folder, rng)
    print(json.dumps(told))
'''


def test_killed_processes_leave_the_last_commit(tmp_path):
    (tmp_path / "updates.py").write_text(UPDATES)
    done = waits.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "updates.py"), str(tmp_path), "30"], check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    names = {"__name__": "updates"}
    exec(compile(UPDATES, "updates", "exec"), names)  # noqa: S102
    states, updates = [{}], names["updates"]()
    while len(states) < max(told.values())[0] + 100:
        states.append(dict(next(updates)[3]))
    row = names["row"]
    for folder, (committed, every) in told.items():
        with th.LiveCounts.open(folder) as live:
            X, y = live.points()
            found = dict(zip(live.ids, y.tolist()))
            live.verify()
        may_be = states[committed], states[committed + every]  # the next one was under way
        assert list(found.items()) in [list(state.items()) for state in may_be], folder
        np.testing.assert_array_equal(
            X.reshape(-1, 5), np.array([row(name) for name in found]).reshape(-1, 5)
        )
    assert max(told.values())[0] > 18  # snapshots were among it
    assert len({committed for committed, _ in told.values()}) > 5
