"""The files of a store: what survives crashes, damage, forks and full disks."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from stores import check_same, create, fill

import thresher as th
from thresher.live import folder as live_folder
from thresher.live import journal as live_journal

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
    assert sorted(p.name for p in (tmp_path / "shop").iterdir()) == [
        "journal",
        "lock",
        "snapshot.npz",
    ]


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
    create(tmp_path / "n", public).close()  # what was broken off is no hindrance
    (tmp_path / "n" / "journal").unlink()
    with pytest.raises(th.InputError, match="journal is missing"):
        th.LiveCounts.open(tmp_path / "n")


def test_a_second_writer_is_refused(public, tmp_path):
    code = "import sys, thresher as th; th.LiveCounts.open(sys.argv[1])"
    with create(tmp_path / "s", public) as live:
        with pytest.raises(th.InputError, match="is in use"):
            th.LiveCounts.open(tmp_path / "s")
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, str(tmp_path / "s")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert "is in use: only one may write to it at a time" in done.stderr
        points = fill(live)
    with th.LiveCounts.open(tmp_path / "s") as live:
        assert live.ids == tuple(points)


def history(folder, public):
    """A store with updates one by one, committed after the fourth; the states, and where they end."""
    states, ends = [()], [live_journal.START]
    live = create(folder, public)
    steps = [
        lambda: live.add("a", [1.0, 2.0, 3.0], 1),
        lambda: live.add(7, [1.5, 2.0, 3.0], 2),
        lambda: live.relabel("a", 0),
        lambda: live.add("c", [1.0, -2.0, 3.0], 1),
        live.commit,
        lambda: live.remove(7),
        lambda: live.add("dé", [0.0, -2.0, 3.0], 1),
        lambda: live.relabel("c", 2),
    ]
    for step in steps:
        step()
        live._journal._write()
        states.append(state_of(live))
        ends.append((folder / "journal").stat().st_size)
    live._journal.close()
    live._file_lock.close()
    return states, ends


def state_of(live):
    X, y = live.points()
    return tuple(zip(live.ids, map(tuple, X.tolist()), y.tolist()))


def opened(folder):
    """The state after opening, and whether something was said to be cut off."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with th.LiveCounts.open(folder) as live:
            live.verify()
            state = state_of(live)
    cuts = [w for w in caught if "a crash cut off" in str(w.message)]
    assert all(w.filename == __file__ for w in cuts)
    return state, bool(cuts)


def test_a_torn_end_is_cut_off_at_whatever_byte_and_said(public, tmp_path):
    states, ends = history(tmp_path / "s", public)
    whole = (tmp_path / "s" / "journal").read_bytes()
    assert ends[-1] == len(whole)
    for size in range(live_journal.START, len(whole) + 1):
        for tail in (b"", bytes(9), b"\x0e\x00\x00\x00"):
            torn = whole[:size] + tail
            (tmp_path / "s" / "journal").write_bytes(torn)
            same = [ours == theirs for ours, theirs in zip(torn, whole)]
            agreed = len(same) if all(same) else same.index(False)  # zeros may be what was to come
            done = max(k for k, end in enumerate(ends) if end <= agreed)
            assert opened(tmp_path / "s") == (states[done], len(torn) > ends[done])
            again = opened(tmp_path / "s")  # cut once and for all
            assert again == (states[done], False)
            if size % 9:
                break
    for size in range(live_journal.START):
        (tmp_path / "s" / "journal").write_bytes(whole[:size])
        with pytest.raises(th.InputError, match="damaged at its beginning"):
            th.LiveCounts.open(tmp_path / "s")


@pytest.mark.parametrize("bit", [0, 5])
def test_a_flipped_bit_is_refused_where_it_was_committed_and_cut_off_where_not(
    bit, public, tmp_path
):
    states, ends = history(tmp_path / "s", public)
    whole = (tmp_path / "s" / "journal").read_bytes()
    committed = ends[5]  # the mark of the commit ends here
    refused = 0
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 1 << bit
        (tmp_path / "s" / "journal").write_bytes(broken)
        if place < ends[4]:  # before the mark
            with pytest.raises(th.InputError, match=r"damaged|not the journal of this store"):
                th.LiveCounts.open(tmp_path / "s")
            refused += 1
            assert (tmp_path / "s" / "journal").read_bytes() == broken  # left alone
        else:
            done = max(k for k, end in enumerate(ends) if end <= place)
            assert opened(tmp_path / "s") == (states[done], True)
    assert refused == ends[4] < committed < len(whole)


def test_a_damaged_snapshot_is_refused(public, tmp_path):
    with create(tmp_path / "s", public) as live:
        fill(live)
        live.snapshot()
        want = state_of(live)
    path = tmp_path / "s" / "snapshot.npz"
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 13):
        broken = bytearray(whole)
        broken[place] ^= 16
        path.write_bytes(broken)
        try:
            assert opened(tmp_path / "s") == (want, False)  # nothing but a date in the file
        except th.InputError:
            refused += 1
    assert refused > 0.6 * len(whole) / 13
    path.write_bytes(whole[:-100])
    with pytest.raises(th.InputError, match="snapshot of live counts"):
        th.LiveCounts.open(tmp_path / "s")


def test_what_counts_is_on_the_disk_before_anything_relies_on_it(public, tmp_path, monkeypatch):
    folder, events = tmp_path / "s", []
    live = create(folder, public)
    fill(live)
    journal = folder / "journal"
    for module, name in [(live_journal, "sync"), (live_folder, "sync"), (live_journal, "sync_folder"),
                         (live_folder, "sync_folder")]:  # fmt: skip
        real = getattr(module, name)

        def noted(what, name=name, real=real):
            size = journal.stat().st_size
            events.append((name, size, sorted(path.name[:5] for path in folder.iterdir())))
            real(what)

        monkeypatch.setattr(module, name, noted)
    live.commit()
    [(name, size, _)] = events
    assert name == "sync"  # once, after all records and before the mark
    assert journal.stat().st_size == size + live_journal.LEAD.size + live_journal.BODY.size
    size = journal.stat().st_size
    live.commit()
    assert len(events) == 1  # there was nothing to commit
    events.clear()
    live.snapshot()
    there = ["journ", "lock", "snaps"]
    assert events == [
        ("sync", size, [".thre", *there]),  # the draft of the snapshot
        ("sync_folder", size, there),
        ("sync", size, [".thre", *there]),  # the draft of the new journal
        ("sync_folder", live_journal.START, there),
    ]
    live.close()


def test_files_of_different_stores_or_times_do_not_go_together(public, tmp_path):
    for name in "st":
        with create(tmp_path / name, public) as live:
            fill(live)
            shutil.copytree(tmp_path / name, tmp_path / f"{name} before")
            live.snapshot()
            live.add("later", [1.0, 2.0, 1.0], 1)
    journal = (tmp_path / "s" / "journal").read_bytes()
    (tmp_path / "t" / "journal").write_bytes(journal)
    with pytest.raises(th.InputError, match="not the journal of this store"):
        th.LiveCounts.open(tmp_path / "t")
    (tmp_path / "s before" / "journal").write_bytes(journal)
    with pytest.raises(th.InputError, match="newer than the snapshot"):
        th.LiveCounts.open(tmp_path / "s before")


@pytest.mark.parametrize("lost", [0, 1, 22])  # bytes of the mark that a power cut may take along
def test_a_crash_between_snapshot_and_journal_loses_and_doubles_nothing(lost, public, tmp_path):
    folder = tmp_path / "s"
    with create(folder, public) as live:
        points = fill(live)
        live.commit()
        old = (folder / "journal").read_bytes()
        live.snapshot()
    (folder / "journal").write_bytes(old[: len(old) - lost])
    (folder / ".thresher-draft").write_bytes(b"half a snapshot")
    with th.LiveCounts.open(folder) as live:
        check_same(live, points, *public, radius=0.3)
        live.add("more", [1.0, 2.0, 1.0], 1)
        points["more"] = ([1.0, 2.0, 1.0], 1)
    assert not (folder / ".thresher-draft").exists()
    with th.LiveCounts.open(folder) as live:
        check_same(live, points, *public, radius=0.3)


@pytest.mark.parametrize("where", ["before", "snapshot", "journal"])
def test_a_snapshot_that_breaks_off_anywhere_leaves_the_store_whole(
    where, public, tmp_path, monkeypatch
):
    folder = tmp_path / "s"
    live = create(folder, public)
    points = fill(live)

    def dies(*_, **__):
        raise KeyboardInterrupt

    module, name = {
        "before": (live_folder.np, "savez"),
        "snapshot": (live_folder, "sync_folder"),
        "journal": (live_journal, "write_whole"),
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(module, name, dies)
        with pytest.raises(KeyboardInterrupt):
            live.snapshot()
    live.close()
    with th.LiveCounts.open(folder) as live:
        check_same(live, points, *public, radius=0.3)
        live.add("more", [1.0, 2.0, 1.0], 1)
    with th.LiveCounts.open(folder) as live:
        assert live.ids == (*points, "more")
        live.verify()


def test_after_a_failed_write_only_opening_anew_goes_on(public, tmp_path, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    live = create(tmp_path / "s", public)
    points = fill(live)
    live.commit()
    live.add("lost", [1.0, 2.0, 1.0], 1)
    live._journal.close()
    monkeypatch.setattr(live._journal, "_file", Full())
    with pytest.raises(th.InputError, match="cannot be written: No space left on device"):
        live.commit()
    with pytest.raises(th.InputError, match="because an update broke off: use LiveCounts.open"):
        live.remove("p0")
    for read in (lambda: live.ids, lambda: live.counts, live.points, live.values, live.price_list):
        with pytest.raises(th.InputError, match="broke off"):
            read()
    live.close()
    with th.LiveCounts.open(tmp_path / "s") as live:
        check_same(live, points, *public, radius=0.3)


def test_an_interrupted_update_is_no_half_update(public, tmp_path, monkeypatch):
    live = create(tmp_path / "s", public)
    points = fill(live)
    live.commit()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(live._points, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        live.add("half", [1.0, 2.0, 1.0], 1)
    with pytest.raises(th.InputError, match="broke off"):
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
    os.read(held, 1)  # alive until the parent is through
    os._exit(refused)
live.add("second", [0.6], "a")
live.commit()
if sys.argv[2] == "close":
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


@pytest.mark.parametrize("child", ["close", "stay"])
def test_a_forked_process_changes_nothing(child, tmp_path):
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", FORKED, tmp_path / "s", child],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_commit_after_opening_waits_for_what_was_never_on_the_disk(public, tmp_path, monkeypatch):
    live = create(tmp_path / "s", public)
    points = fill(live)
    live._journal._write()  # by the system, not on the disk: as a killed process leaves it
    live._journal.close()
    live._file_lock.close()
    synced = []
    monkeypatch.setattr(live_journal, "sync", synced.append)
    again = th.LiveCounts.open(tmp_path / "s")
    assert again.ids == tuple(points)
    again.commit()
    again.commit()
    assert len(synced) == 1
    again.close()
    with th.LiveCounts.open(tmp_path / "s") as once_more:
        once_more.commit()
    assert len(synced) == 1


@pytest.mark.parametrize("error", [errno.EIO, errno.EINVAL])
def test_a_folder_that_the_disk_refuses_is_no_folder(error, public, tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr("thresher.files.os.fsync", refuse)
    monkeypatch.setattr("thresher.live.folder.sync", lambda _: None)
    monkeypatch.setattr(live_journal, "sync", lambda _: None)
    if error == errno.EINVAL:  # a system that cannot
        create(tmp_path / "s", public).close()
        return
    with pytest.raises(th.InputError, match="Input/output error"):
        create(tmp_path / "s", public)


UPDATES = '''
import json, os, random, signal, sys, time
import numpy as np
import thresher as th
from thresher.live import journal

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

def work(folder, pipe, every, buffer):
    journal.BUFFER = buffer
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
    every, buffer, target = rng.choice([3, 40]), rng.choice([100, 1 << 18]), rng.randrange(60)
    child = os.fork()
    if child == 0:
        try:
            work(folder, theirs, every, buffer)
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
    return int(said.split(b"\\n")[-2])

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


@pytest.mark.filterwarnings("ignore::thresher.errors.ThresherWarning")
def test_killed_processes_leave_a_prefix_with_all_that_was_committed(tmp_path):
    (tmp_path / "updates.py").write_text(UPDATES)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", str(tmp_path / "updates.py"), str(tmp_path), "30"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    names = {"__name__": "updates"}
    exec(compile(UPDATES, "updates", "exec"), names)  # noqa: S102
    states, updates = [{}], names["updates"]()
    while len(states) < max(told.values()) + 2000:
        states.append(dict(next(updates)[3]))
    row = names["row"]
    for folder, committed in told.items():
        with th.LiveCounts.open(folder) as live:
            X, y = live.points()
            found = dict(zip(live.ids, y.tolist()))
            live.verify()
        assert any(list(found.items()) == list(state.items()) for state in states[committed:]), (
            folder
        )
        np.testing.assert_array_equal(
            X.reshape(-1, 5), np.array([row(name) for name in found]).reshape(-1, 5)
        )
    assert max(told.values()) > 18  # snapshots were among it
    assert len(set(told.values())) > 5
