"""Standard input and output in place of files, and the options that every command has."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import waits
from tabular import check_refused, put

import thresher as th
from thresher.cli import HELP
from thresher.inputs.spelling import missing, nearest
from thresher.tables.paths import find_files

COMMAND = [sys.executable, "-m", "thresher"]


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    random = np.random.default_rng(0)
    for name, rows in (("p", 80), ("v", 40)):
        codes = random.integers(0, 2, rows)
        X = random.normal(size=(rows, 3)) + 2 * codes[:, None]
        y = ["cat", "dog"]
        labels = [y[code if i % 9 else 1 - code] for i, code in enumerate(codes)]
        columns = {f"x{j}": X[:, j].tolist() for j in range(3)} | {"y": labels}
        lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        put(f"{name}.csv", "\n".join([",".join(columns), *lines]) + "\n")
        pq.write_table(pa.table(columns), f"{name}.parquet")


def run(*arguments, stdin=None):
    given = Path(stdin).read_bytes() if stdin else None
    source = {"input": given} if stdin else {"stdin": subprocess.DEVNULL}
    done = waits.run([*COMMAND, *map(str, arguments)], text=False, **source)
    assert not list(Path(os.environ["TMPDIR"]).iterdir())
    return done.returncode, done.stdout, done.stderr.decode()


def test_a_stream_is_valued_as_the_file_is():
    code, wanted, said = run("value", "p.csv", "--validation", "v.csv")
    assert code == 0, said
    for spec, source in (("-", "p.csv"), ("/dev/stdin", "p.csv"), ("-", "p.parquet")):
        code, found, said = run("value", spec, "--validation", "v.csv", "-o", "-", stdin=source)
        assert code == 0, said
        assert found == wanted
        assert "thresher-" not in said
        assert "valued 80 points" in said


def test_a_named_pipe_is_read_once_and_the_record_has_the_name_that_was_typed():
    os.mkfifo("pipe")
    with waits.started(["/bin/sh", "-c", "cat p.csv > pipe"]):
        code, _, said = run("value", "pipe", "--validation", "v.csv", "-o", "o.csv")
    assert code == 0, said
    record = json.loads(Path("o.csv.record.json").read_text())
    assert record["points"]["files"] == ["pipe"]
    assert record["command"] == "thresher value pipe --validation v.csv"
    assert ".thresher-" not in json.dumps(record)
    done = run("clean", "p.csv", "--values", "o.csv", "--relabel", "relabel", "-o", "c.csv")
    assert done[0] == 0, done  # values of the stream are values of the file: the digest says so


def test_a_stream_is_cleaned_and_printed_byte_for_byte():
    options = ("--drop", "rows:0,3", "--relabel", "rows:1=cow")
    assert run("clean", "p.csv", *options, "-o", "c.csv")[0] == 0
    for source in ("p.csv", "-"):
        code, out, said = run("clean", source, *options, "--out", "-", stdin="p.csv")
        assert code == 0, said
        assert out == Path("c.csv").read_bytes()
        assert "wrote standard output" in said


def test_a_stream_is_appraised():
    rows = [line.split(",") for line in Path("v.csv").read_text().splitlines()[1:]]
    X, y = [[float(cell) for cell in row[:3]] for row in rows], [row[3] for row in rows]
    th.NeighborCounts(X, y, radius=0.5).price_list().save("prices.json")
    code, wanted, said = run("appraise", "p.csv", "--prices", "prices.json")
    assert code == 0, said
    code, found, said = run("appraise", "-", "--prices", "prices.json", "-o", "-", stdin="p.csv")
    assert (code, found) == (0, wanted), said


def test_a_stream_is_released():
    pytest.importorskip("opendp")
    make = ("ledger", "create", "l.db", "--epsilon", 2, "--delta", 1e-6)
    assert run(*make)[0] == 0
    options = ("--validation", "v.csv", "--epsilon", 1, "--delta", 1e-6, "--ledger", "l.db")
    code, _, said = run("release", "-", *options, "--out-prices", "a.json", stdin="p.csv")
    if "--anyway" in said:  # so few points are foretold to be noise
        again = (*options, "--anyway", "--out-prices", "a.json")
        code, _, said = run("release", "-", *again, stdin="p.csv")
    assert code == 0, said
    assert th.PriceList.load("a.json").classes == ["cat", "dog"]


def test_what_a_killed_run_read_from_a_stream_is_removed_by_the_next_one():
    reader, writer = os.pipe()
    command, folder = [*COMMAND, "value", "-", "--validation", "v.csv"], Path(os.environ["TMPDIR"])
    with waits.started(command, stdin=reader, stderr=subprocess.DEVNULL):
        os.close(reader)
        os.write(writer, Path("p.csv").read_bytes())
        waits.until(lambda: list(folder.rglob("stream*")), "a copy of the stream")
    os.close(writer)
    assert list(folder.rglob("stream*"))
    assert (
        run("value", "-", "--validation", "v.csv", stdin="p.csv")[0] == 0
    )  # sees that all is gone


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("value", "-", "--validation", "-"), "- can be read only once"),
     (("value", "-"), "standard input is empty"),
     (("value", "-", "--validation", "v.csv", "--memory", "64GB", "-o", "o.csv"), "save it"),
     (("value", "p.csv", "-o", "-.parquet"), "standard output takes only .csv"),
     (("value", "p.csv", "-o", "-", "--json"), "choose one"),
     (("clean", "p.parquet", "--drop", "rows:1", "-o", "-"), "tables of text")],
)  # fmt: skip
def test_what_streams_cannot_do_is_refused(arguments, words):
    code, out, said = run(*arguments)
    assert (code, out) == (1, b"")
    assert words in said
    assert said.count("\n") == 1


def test_standard_input_that_is_closed_is_refused():
    done = waits.run(
        ["/bin/sh", "-c", '"$@" <&-', "sh", *COMMAND, "value", "-"],
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        1,
        "thresher: standard input is closed: name a file\n",
    )


def test_the_version_is_told():
    code, told, words = run("--version")
    assert (code, words) == (0, "")
    assert told.decode().splitlines()[0] == f"thresher {th.__version__}"
    assert f"numpy {np.__version__}" in told.decode().splitlines()


@pytest.mark.parametrize("verb", ["value", "clean", "appraise", "embed", "reproduce"])
def test_every_output_has_a_short_option(verb):
    shown = run(verb, "--help")[1].decode()
    assert "--out" in shown
    assert "-o" in shown.split()


def test_exit_codes_are_documented_wherever_they_are_looked_for():
    root = Path(__file__).parent.parent
    texts = [(root / name).read_text() for name in ("README.md", "docs/command.md")]
    texts.append(run("--help")[1].decode())
    told = " ".join(HELP.split("Exit codes: ")[1].split())
    assert "4 an audited claim is violated" in told
    for text in texts:
        assert told in re.sub(r" \(`[^`]*`\)", "", " ".join(text.split()))
    assert "least 4,000" in " ".join(
        run("reproduce", "--help")[1].decode().replace("│", "").split()
    )


def test_the_extra_all_has_all_extras():
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]

    def members(name):
        found = {name}
        for entry in extras[name]:
            if entry.startswith("thresher["):
                inner = entry.removeprefix("thresher[").rstrip("]").split(",")
                found |= set().union(*map(members, inner))
        return found

    assert members("all") == set(extras)


def test_no_hint_repeats_the_name_that_was_given():
    assert nearest("y", ["y", "Y", "x"]) == ["Y"]
    said = str(missing("a.csv", "column", "caf\u00e9", ["cafe\u0301"]))
    assert r"did you mean 'cafe\u0301', which only looks the same?" in said
    Path("gone.csv").symlink_to("nowhere.csv")
    said = check_refused(lambda: find_files("gone.csv"), "is a link to nowhere.csv")
    assert "did you mean" not in said
    put("cafe\u0301.csv", "x,y\n1,2\n")
    check_refused(
        lambda: find_files("caf\u00e9.csv"), r"'cafe\u0301.csv', which only looks the same"
    )


def test_a_terminal_is_shown_how_far_the_report_is():
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    options = ("--validation", "v.csv", "-o", "o.csv", "--report", "r.html")
    always = {**os.environ, "TQDM_MININTERVAL": "0"}
    command = [*COMMAND, "value", "p.csv", *options]
    with waits.started(command, stderr=slave, env=always) as done:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # so Linux says that there is no more
            while some := os.read(master, 1 << 16):
                shown += some
        done.wait()
    os.close(master)
    assert done.returncode == 0, shown.decode()
    seen = {float(done) for done in re.findall(r"([\d.]+)/276\b", shown.decode())}
    assert max(seen) == 276  # 200 trees, 71 models, and 5 parts more
    assert len(seen) > 10  # it moves on with every model
