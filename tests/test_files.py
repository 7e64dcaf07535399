"""Files that are damaged or cannot be written, streams that are closed: one line, an exit code."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import waits
from tabular import check_refused

import thresher as th
from thresher.files import check_writable
from thresher.inputs.arrays import load_array, load_arrays
from thresher.tables.columns import choose_columns
from thresher.tables.reader import read_table

LONG = "n" * 300  # no file can have such a name
ROWS = "".join(f"{i % 7}.5,{i % 5},{'ab'[i % 2]}\n" for i in range(60))
CLEAN = ("clean", "p.csv", "--drop", "rows:1")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("u,v,y\n" + ROWS)


def run(*arguments, **options):
    command = [sys.executable, "-m", "thresher", *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return waits.run(command, **options)


def check_line(done, *words, code=1):
    """That a run ended with this code and one line that has these words."""
    said = done.stderr
    assert (done.returncode, said.count("\n")) == (code, 1), said
    assert said.startswith("thresher: ")
    for word in words:
        assert word in said


# damaged files

FLIPS = """
import sys
from pathlib import Path
import thresher as th
from thresher.passes.parts import Place

path, raw = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes()
footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
refused, rows = 0, set()
for bit in range(8 * footer, 8 * len(raw)) if sys.argv[2] == "footer" else range(8 * footer):
    damaged = bytearray(raw)
    damaged[bit >> 3] ^= 1 << bit % 8
    path.write_bytes(damaged)
    try:
        source = th.Scan(path, label="y", features=["u"]).source_of_parts()
        known = source.count, source.reading
        rows.add((known[0], sum(len(part) for part in source.read(Place(), 64))))
    except th.InputError:
        refused += 1
print(refused, sorted(rows))
"""


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("footer", {"compression": "none", "use_dictionary": False, "store_schema": False}),
        ("footer", {"store_schema": False}),
        ("pages", {"compression": "none", "data_page_version": "2.0", "write_statistics": False}),
    ],
)
def test_no_flipped_bit_in_parquet_ends_the_process_or_hides_rows(part, options):
    labels = pa.array(["a", "b", "a"] * 2)
    labels = labels if part == "footer" else labels.dictionary_encode()
    table = pa.table({"u": np.arange(6.0), "y": labels})
    pq.write_table(table, "p.parquet", row_group_size=3, **options)
    command = [sys.executable, "-c", FLIPS, "p.parquet", part]
    done = waits.run(command)
    assert done.returncode == 0, done.stderr[-500:]
    refused, rows = done.stdout.split(maxsplit=1)
    assert int(refused) > 500
    assert rows.strip() == "[(6, 6)]"  # no damage hides rows, or makes them up


def test_a_damaged_name_in_a_footer_is_one_line():
    """A file that reads well, whose columns' own paths are not UTF-8."""
    table = pa.table({"u": np.arange(6.0), "yyyy": pa.array(["a", "b", "a"] * 2)})
    pq.write_table(table, "p.parquet", store_schema=False)
    raw = bytearray(Path("p.parquet").read_bytes())
    raw[raw.rindex(b"yyyy")] = 0xFF
    Path("p.parquet").write_bytes(raw)
    assert len(read_table("p.parquet")) == 6
    done = run("clean", "p.parquet", "--drop", "rows:1", "--out", "o.parquet")
    check_line(done, "p.parquet is damaged: its footer has names that are not text")


def test_text_that_is_not_utf8_is_one_line_where_it_is_read():
    bytes_ = pa.array([b"a\xff", b"b", b"a"] * 2, pa.binary())
    note = pa.Array.from_buffers(pa.string(), 6, bytes_.buffers())
    pq.write_table(
        pa.table({"u": np.arange(6.0), "note": note, "y": ["a", "b", "a"] * 2}), "p.parquet"
    )
    table = read_table("p.parquet")
    assert choose_columns(table, label="y", ignore=["note"]).names == ("u",)
    for roles in ({"label": "note"}, {"label": "y"}, {"label": "y", "owner": "note"}):
        check_refused(lambda roles=roles: choose_columns(table, **roles), "column 'note' cannot be")
    assert len(th.Scan("p.parquet", label="y", features=["u"]).read()[0]) == 6
    check_refused(lambda: th.Scan("p.parquet", label="note", features=["u"]).read(), "p.parquet")


ARROW_FLIPS = """
import sys
from pathlib import Path
import pyarrow as pa
import thresher as th
from thresher.passes.parts import Place
from thresher.tables.reader import read_table

def keep_all(data):
    return data.filter(pa.array([True] * len(data), pa.bool_()))

path, raw = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes()
refused = 0
for bit in range(0, 8 * len(raw), 3):
    damaged = bytearray(raw)
    damaged[bit >> 3] ^= 1 << bit % 8
    path.write_bytes(damaged)
    for call in (
        lambda: keep_all(read_table(path).data),
        lambda: list(th.Scan(path, label="y", features=["u"]).source_of_parts().read(Place(), 4)),
    ):
        try:
            call()
        except th.InputError:
            refused += 1
print(refused)
"""


def test_no_flipped_bit_in_an_arrow_file_ends_the_process():
    table = pa.table({"u": np.arange(6.0), "y": pa.array(["one", "two", "three"] * 2)})
    with pa.OSFile("p.arrow", "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    command = [sys.executable, "-c", ARROW_FLIPS, "p.arrow"]
    done = waits.run(command)
    assert done.returncode == 0, done.stderr[-500:]
    assert int(done.stdout) > 100


def header(shape, dtype="<f8"):
    stream = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, about)
    return stream.getvalue()


def write_claim(name, shape, packing=zipfile.ZIP_STORED):
    with zipfile.ZipFile(name, "w", packing) as file:
        file.writestr("X.npy", header(shape) + bytes(240))
        file.writestr("y.npy", header((10,), "<i8") + bytes(80))


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_that_claims_more_than_its_file_holds_takes_no_memory(packing):
    write_claim("a.npz", (200_000_000, 100), packing)  # 149 GiB
    Path("a.npy").write_bytes(header((200_000_000, 100)) + bytes(240))
    words = "(200000000, 100)", "160000000000 bytes"
    check_refused(lambda: read_table("a.npz"), "a.npz is damaged", *words)
    check_refused(lambda: read_table("a.npy"), "a.npy is damaged", *words)
    check_refused(lambda: th.NeighborCounts.load("a.npz"), "a.npz", *words)
    check_line(run("release", "a.npz", "--validation", "a.npz", "--epsilon", 1, "--delta", 1e-6,
                   "--ledger", "l.db", "--out-prices", "p.json"), "a.npz is damaged")  # fmt: skip


def test_a_size_in_the_directory_of_an_archive_is_not_believed():
    write_claim("a.npz", (536_870_000,))
    raw = bytearray(Path("a.npz").read_bytes())
    place = raw.index(b"PK\x01\x02") + 24
    raw[place : place + 4] = struct.pack("<I", 0xFFFFFFF0)
    Path("a.npz").write_bytes(raw)
    check_refused(lambda: read_table("a.npz"), "a.npz is damaged", "4294967280 bytes")


def test_arrays_come_back_however_they_are_packed():
    arrays = {
        "X": np.zeros((1000, 30)),
        "y": np.arange(1000),
        "s": np.array(["a", "bc"]),
        "e": np.zeros((0, 4)),
    }
    np.savez("a.npz", **arrays)
    np.savez_compressed("b.npz", **arrays)  # a thousand zeros in a byte
    for name in ("a.npz", "b.npz"):
        found = load_arrays(Path(name))
        assert {key: each.tolist() for key, each in found.items()} == {
            key: each.tolist() for key, each in arrays.items()
        }
        assert list(load_arrays(Path(name), {"y"})) == ["y"]
    np.save("a.npy", arrays["X"].T)
    assert load_array(Path("a.npy")).shape == (30, 1000)


def test_what_the_system_does_not_give_is_not_called_damaged():
    code = (
        "import os, sys; from pathlib import Path; import thresher as th\n"
        "from thresher.tables.reader import read_table; from thresher.files import write_whole\n"
        "th.Valuation, th.tknn_shapley([[0.0]], [0], [[0.0]], [0], metric='euclidean')\n"
        "import pyarrow.parquet\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "for call in (lambda: read_table('locked/p.csv'), lambda: th.Valuation.load('locked/p.csv'),\n"
        "             lambda: write_whole('locked/out', lambda path: None)):\n"
        "    try: call()\n"
        "    except th.InputError as refused: print(refused)\n"
    )
    Path("locked").mkdir()
    Path("locked", "p.csv").write_text("u,y\n1,a\n")
    Path("locked", "p.csv").chmod(0)
    Path("locked").chmod(0o555)
    for folder in (Path.cwd(), *Path.cwd().parents[:3]):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o555)  # for others to pass; nothing is taken away
    done = waits.run([sys.executable, "-c", code])
    Path("locked").chmod(0o755)
    lines = done.stdout.splitlines()
    assert lines[0] == lines[1] == "cannot read locked/p.csv: Permission denied", done.stderr
    assert lines[2] == "cannot write locked/out: Permission denied"


# what cannot be written

SMALL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
from thresher.__main__ import main
main()
"""


def test_a_file_that_does_not_fit_is_one_line_and_leaves_nothing():
    before = sorted(Path.cwd().iterdir())
    for out in ("o.csv", "o.csv.gz"):
        Path("q.csv").write_text("u,y\n" + "".join(f"{np.sqrt(i)},a\n" for i in range(1, 200)))
        words = [sys.executable, "-c", SMALL, "clean", "q.csv", "--drop", "rows:1", "--out", out]
        done = waits.run(words)
        check_line(done, f"cannot write {out}: File too large")
    Path("q.csv").unlink()
    assert sorted(Path.cwd().iterdir()) == before


@pytest.fixture
def small_disk():
    """A folder on a disk with room for 64 kB."""
    Path("disk").mkdir()
    mounted = waits.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "disk"])
    if mounted.returncode:
        pytest.skip("only the administrator of a machine can make a small disk")
    yield Path("disk")
    assert waits.run(["umount", "disk"]).returncode == 0


def check_summary(done, why, report, *complete):
    """That a run printed its summary, though the report could not be written."""
    *said, last, note = done.stderr.splitlines()
    assert done.returncode == 1, done.stderr
    assert said[0].startswith("valued ")
    assert last == f"thresher: cannot write {report}: {why}"
    known = f"complete: {', '.join(complete)}; " if complete else ""
    way_out = "make room, then run the same command with --force"
    assert note == f"{known}not written: {report}; what is said above holds: {way_out}"
    assert [line for line in said if line.startswith("wrote ")] == [f"wrote {x}" for x in complete]
    assert not Path(report).exists()


VALUING = ("value", "p.csv", "--trees", "4")
PAGE = "disk/r.html"
FULL = "No space left on device"


def test_a_disk_that_is_full_keeps_the_summary_and_what_is_complete(small_disk):
    done = run(*VALUING, "--out", "disk/o.parquet", "--report", PAGE)
    check_summary(done, FULL, PAGE, "disk/o.parquet")
    assert any(line.startswith("suggestions: ") for line in done.stderr.splitlines())
    assert len(th.Valuation.load("disk/o.parquet")) == 60
    assert [path.name for path in Path("disk").iterdir()] == ["o.parquet"]
    alone = run(*VALUING, "--report", PAGE)
    check_summary(alone, FULL, PAGE)
    assert alone.stdout.count("\n") == 61  # the table
    told = run(*VALUING, "--report", PAGE, "--json")
    assert len(json.loads(told.stdout)["rows"]) == 60
    Path("disk", "rest").write_bytes(b"x" * (shutil.disk_usage("disk").free - 4096))
    owners = ("--players", "owners", "--owner", "v", "--report", PAGE)
    check_summary(
        run(*VALUING, *owners, "--out", "o.csv"), FULL, PAGE, "o.csv", "o.csv.record.json"
    )
    done = run(*VALUING, "--out", "disk/p.parquet", "--report", "r.html")
    assert "complete: r.html; not written: disk/p.parquet; " in done.stderr
    assert "--values" not in done.stderr
    assert Path("r.html").exists()


def test_a_report_that_is_too_large_keeps_the_summary():
    limited = SMALL.replace("(200, 200)", "(20_000, 20_000)")
    words = [sys.executable, "-c", limited, *VALUING, "--out", "o.csv", "--report", "r.html"]
    check_summary(waits.run(words), "File too large", "r.html", "o.csv", "o.csv.record.json")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_that_is_full_is_one_line(monkeypatch):
    with Path("/dev/full").open("w") as full:
        done = run("--help", stdout=full)
        check_line(done, "No space left on device")
        for buffered in ("", "1"):
            monkeypatch.setenv("PYTHONUNBUFFERED", buffered)
            done = run(*CLEAN, "--out", "-", stdout=full)
            last = done.stderr.splitlines()[-1]
            assert last == "thresher: standard output: No space left on device"
        done = run(*CLEAN, "--out", "a.csv", "--json", stdout=full)
    words, last = done.stderr.splitlines()
    assert (done.returncode, words[:7]) == (1, "dropped")
    assert last.startswith("thresher: ")
    assert last.endswith("standard output: No space left on device")
    check_line(run(*CLEAN, "--out", "/dev/full"), "/dev/full")


def test_standard_streams_may_be_closed():
    def shell(command):
        words = ["/bin/sh", "-c", command.replace("thresher", f"exec {sys.executable} -m thresher")]
        return waits.run(words)

    asked = "thresher clean p.csv --drop rows:1 --force --out o.csv"
    done = shell(f"{asked} --json >&-")
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        1,
        ["thresher: standard output is closed"],
    )
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&- <&-"):  # nothing is printed there
        Path("o.csv").unlink(missing_ok=True)
        done = shell(f"{asked} {closed}")
        assert done.returncode == 0, done.stderr
        assert Path("o.csv").read_text().startswith("u,v,y\n0.5,0,a\n2.5,")


def test_a_reader_that_has_read_enough_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    done = run(*CLEAN, "--out", "o.csv", "--json", stdout=writer)
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == "dropped 1 row, relabeled 0 of 60: wrote o.csv\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (*CLEAN, "--out", f"{LONG}.csv"),
        ("clean", f"{LONG}.csv", "--drop", "rows:1", "--out", "o.csv"),
        ("value", "p.csv", "--out", "o.csv", "--report", f"{LONG}.html"),
        ("value", "p.csv", "--label", LONG, "--out", "o.csv"),
        ("ledger", "create", f"{LONG}.db", "--epsilon", "1", "--delta", "1e-6"),
    ],
)
def test_a_name_that_no_file_can_have_is_one_line(arguments):
    check_line(run(*arguments), "name too long")


def test_links_that_lead_to_each_other_are_one_line():
    Path("loop.csv").symlink_to("loop.csv")
    Path("loop").symlink_to("loop")
    check_line(run(*CLEAN, "--out", "loop/o.csv"), "loop/o.csv")
    check_line(run("clean", "loop.csv", "--drop", "rows:1", "--out", "o.csv"), "loop.csv")


def test_a_folder_is_no_file_to_write_with_or_without_force():
    Path("o.csv").mkdir()
    for force in ((), ("--force",)):
        check_line(run(*CLEAN, "--out", "o.csv", *force), "cannot write o.csv: it is a folder")


def test_a_working_folder_that_was_removed_is_one_line(tmp_path):
    gone = tmp_path / "gone"
    for command in (["clean", tmp_path / "p.csv", "--drop", "rows:1", "--out", "o.csv"],
                    ["ledger", "create", "l.db", "--epsilon", "1", "--delta", "1e-6"]):  # fmt: skip
        gone.mkdir()
        words = 'cd gone; rmdir ../gone; exec "$@"'
        done = waits.run(
            ["/bin/sh", "-c", words, "sh", sys.executable, "-m", "thresher", *map(str, command)],
        )  # fmt: skip
        check_line(done, "the working folder was removed")


SHORT = """
import resource, sys
import pyarrow, thresher.runs
from thresher.cli import main
resource.setrlimit(resource.RLIMIT_AS, (1500 << 20, 1500 << 20))
main()
"""


def test_a_table_that_does_not_fit_in_memory_is_one_line():
    with Path("a.npy").open("wb") as file:  # a hole takes no room on the disk
        file.write(header((1 << 28,)))
        file.truncate(file.tell() + (1 << 31))
    np.save("y.npy", np.zeros(1))
    words = [sys.executable, "-c", SHORT, "clean", "a.npy", "--label", "y.npy", "--drop", "rows:1", "--out", "o.npy"]  # fmt: skip
    done = waits.run(words)
    check_line(done, "a.npy does not fit in memory, or is damaged")


# interruptions


def entry(code, **options):
    """The command, with something else in place of what it does."""
    words = f"import sys, thresher.cli\ndef main():\n{code}\nthresher.cli.main = main\n"
    words += "from thresher.__main__ import main\nmain()"
    command = [sys.executable, "-c", words]
    return waits.run(command, **options)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_while_importing_is_one_line(number, code):
    Path("slow").mkdir()
    Path("slow", "typer.py").write_text(
        "import sys, time\nsys.stdout.write('importing\\n')\nsys.stdout.flush()\n"
        "try:\n    time.sleep(100)\nexcept BaseException as lost:\n    raise ImportError from lost\n"
    )
    words = [sys.executable, "-m", "thresher", "demo"]
    env = {**os.environ, "PYTHONPATH": str(Path.cwd() / "slow")}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with waits.started(words, env=env, **streams) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        _, said = process.communicate()
    assert (process.returncode, said) == (
        code,
        "thresher: interrupted; no file was left half written\n",
    )


def test_an_interruption_within_exec_keeps_the_exit_code():
    Path("slow").mkdir()
    Path("slow", "typer.py").write_text(
        "import sys\ntry: exec('raise KeyboardInterrupt')\nexcept KeyboardInterrupt: sys.exit(130)\n"
    )
    done = run("demo", env={**os.environ, "PYTHONPATH": str(Path.cwd() / "slow")})
    assert (done.returncode, done.stderr) == (130, "")


def test_an_interruption_that_python_ignores_comes_again():
    done = entry(
        "    class Held:\n        def __del__(self): raise KeyboardInterrupt\n"
        "    Held()\n    import time\n    time.sleep(3)"
    )
    assert (done.returncode, done.stderr) == (
        130,
        "thresher: interrupted; no file was left half written\n",
    )


def test_an_interruption_after_all_is_done_changes_nothing():
    done = entry(
        "    import atexit, os, signal\n    atexit.register(os.kill, os.getpid(), signal.SIGINT)"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_who_ignores_interruptions_is_not_interrupted():
    done = entry(
        "    import os, signal\n    os.kill(os.getpid(), signal.SIGINT)",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_is_imported_in_no_time():
    code = "import sys, json, thresher; print(json.dumps(sorted(sys.modules)))"
    done = waits.run([sys.executable, "-c", code], check=True)
    assert not {"numpy", "numba", "pyarrow", "sklearn", "typing"} & set(json.loads(done.stdout))
    assert set(th.__all__) <= set(dir(th))


def test_what_is_no_file_is_refused_before_the_work(tmp_path):
    for path in ("/dev/null", "fifo"):
        if path == "fifo":
            os.mkfifo(path)
        with pytest.raises(th.InputError, match="already exists, and is not a file"):
            check_writable(path)
