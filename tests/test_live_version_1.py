"""Stores that version 0.1 wrote (live-0.1.zip, by its own code): they open, and are converted once."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import waits

import thresher as th
from thresher.live import version_1

ARCHIVE = Path(__file__).parent / "live-0.1.zip"
STORES = ["float32", "float64"]
SNAPSHOT = ["p0", "né", -4]
IDS = [  # after each record of the journal
    SNAPSHOT,
    [*SNAPSHOT, "late"],
    [*SNAPSHOT, "late"],  # with another label
    [*SNAPSHOT, "late", 2**62],
    [*SNAPSHOT, "late", 2**62],  # committed
    ["p0", -4, "late", 2**62],
    ["p0", -4, "late", 2**62, "last"],
    ["p0", -4, "late", 2**62, "last"],  # committed
]


@pytest.fixture
def old(fast_path):
    """A folder with both stores, and what their values were."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(fast_path)
    return fast_path, json.loads((fast_path / "want.json").read_text())


def ends(store):
    """Where the records of a journal end."""
    data = (store / "journal").read_bytes()
    width = 3 * (4 if store.name == "float32" else 8)
    found, key = [version_1.HEADER.size], data[8:24]
    while record := version_1._record(data, found[-1], version_1.zlib.crc32(key), width):
        found.append(record.end)
    assert found[-1] == len(data)
    return found


def opened(store):
    """The ids after opening, and whether something was said to be cut off."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", th.ThresherWarning)
        with th.LiveCounts.open(store) as live:
            live.verify()
            found = list(live.ids)
    cuts = [each for each in caught if "a crash cut off" in str(each.message)]
    assert all(each.filename == __file__ for each in cuts)
    return found, bool(cuts)


@pytest.mark.parametrize("name", STORES)
def test_an_old_store_has_its_points_and_values(name, old):
    folder, want = old[0] / name, old[1][name]
    (folder / ".thresher-draft").write_bytes(b"half a snapshot")
    for _ in range(2):
        with th.LiveCounts.open(folder) as live:
            X, y = live.points()
            assert list(live.ids) == want["ids"] == IDS[-1]
            assert (X.tolist(), X.dtype.name) == (want["points"], want["dtype"])
            assert y.tolist() == want["labels"]
            assert [value.hex() for value in live.values().values.tolist()] == want["values"]
        assert [path.name for path in folder.iterdir()] == ["live.db"]
    with pytest.raises(th.InputError, match="holds a store already"):
        th.LiveCounts.create(folder, [[1.0]], ["a"], radius=1)


def test_an_old_store_is_no_free_folder(old):
    with pytest.raises(th.InputError, match="holds a store already"):
        th.LiveCounts.create(old[0] / "float32", [[1.0]], ["a"], radius=1)


def readable(store):
    """The ids that reading finds, and whether something was said to be cut off."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", th.ThresherWarning)
        _, points = version_1.read(store)
    return list(points.ids), len(caught) == 1


@pytest.mark.parametrize("name", STORES)
def test_a_torn_end_is_cut_off_at_whatever_byte_and_said(name, old):
    source, store = old[0] / name, old[0] / "s"
    whole, stops = (source / "journal").read_bytes(), ends(source)
    for size in range(stops[0], len(whole) + 1):
        for tail in (b"", bytes(9), b"\x0e\x00\x00\x00"):
            torn = whole[:size] + tail
            (source / "journal").write_bytes(torn)
            same = [ours == theirs for ours, theirs in zip(torn, whole)]
            agreed = len(same) if all(same) else same.index(False)  # zeros may be what was to come
            done = max(k for k, end in enumerate(stops) if end <= agreed)
            assert readable(source) == (IDS[done], len(torn) > stops[done])
        if size % 9 == 0:
            shutil.rmtree(store, ignore_errors=True)
            shutil.copytree(source, store)
            assert opened(store) == (IDS[done], len(torn) > stops[done])
            assert opened(store) == (IDS[done], False)  # cut once and for all
    for size in range(stops[0]):
        (source / "journal").write_bytes(whole[:size])
        with pytest.raises(th.InputError, match="damaged at its beginning"):
            th.LiveCounts.open(source)


@pytest.mark.parametrize("bit", [0, 5])
def test_a_flipped_bit_is_refused_where_it_was_committed(bit, old):
    source, store = old[0] / "float32", old[0] / "s"
    whole, stops = (source / "journal").read_bytes(), ends(source)
    for place in range(len(whole)):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(source, store)
        broken = bytearray(whole)
        broken[place] ^= 1 << bit
        (store / "journal").write_bytes(broken)
        if place < stops[-2]:  # before the last mark
            with pytest.raises(th.InputError, match=r"damaged|not the journal of this store"):
                th.LiveCounts.open(store)
            assert (store / "journal").read_bytes() == broken  # left alone
            assert not (store / "live.db").exists()
        else:
            assert opened(store) == (IDS[-2], True)


def test_a_damaged_snapshot_is_refused(old):
    source, store = old[0] / "float64", old[0] / "s"
    whole, refused = (source / "snapshot.npz").read_bytes(), 0
    for place in range(0, len(whole), 13):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(source, store)
        broken = bytearray(whole)
        broken[place] ^= 16
        (store / "snapshot.npz").write_bytes(broken)
        try:
            assert opened(store) == (IDS[-1], False)  # nothing but a date in the file
        except th.InputError:
            refused += 1
    assert refused > 0.6 * len(whole) / 13
    for damage, words in (
        (lambda: (store / "snapshot.npz").write_bytes(whole[:-100]), "snapshot of live counts"),
        ((store / "journal").unlink, "journal is missing"),
        (lambda: shutil.copy(old[0] / "float32" / "journal", store), "not the journal of this"),
    ):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(source, store)
        damage()
        with pytest.raises(th.InputError, match=words):
            th.LiveCounts.open(store)


def test_a_journal_that_is_newer_than_the_snapshot_is_refused(old):
    store = old[0] / "float32"
    head = bytearray((store / "journal").read_bytes()[: version_1.HEADER.size])
    magic, key, first, _ = version_1.HEADER.unpack(head)
    head = version_1.HEADER.pack(magic, key, first + 1, 0)[:-4]
    (store / "journal").write_bytes(head + np.uint32(version_1.zlib.crc32(head)).tobytes())
    with pytest.raises(th.InputError, match="newer than the snapshot"):
        th.LiveCounts.open(store)


def test_a_store_that_version_1_has_open_is_refused(old):
    store = old[0] / "float32"
    with version_1._locked(store), pytest.raises(th.InputError, match="is in use"):
        th.LiveCounts.open(store)
    assert opened(store) == (IDS[-1], False)


KILLED = """
import os, sys
import thresher as th
from thresher.live import version_1
place, left = sys.argv[2], int(sys.argv[3])

def dies(event, arguments):
    global left
    if event == place and sys.argv[1] in str(arguments[0]):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)

sys.addaudithook(dies)
th.LiveCounts.open(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("place", "after"),
    [("open", 4), ("sqlite3.connect", 0), ("os.chmod", 0), ("os.link", 0), ("os.remove", 0),
     ("os.remove", 1), ("os.remove", 2), ("os.remove", 3)],
)  # fmt: skip
def test_a_conversion_that_is_killed_anywhere_starts_again(place, after, old):
    store = old[0] / "float64"
    command = [sys.executable, "-c", KILLED, str(store), place, str(after)]
    done = waits.run(command)
    assert done.returncode == -9, done.stderr
    assert opened(store) == (IDS[-1], False)
    assert [path.name for path in store.iterdir()] == ["live.db"]
