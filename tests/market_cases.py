"""What tests of the market share: databases, a market in each, and a task with owners."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from thresher.market import uploads
from thresher.market.export import export
from thresher.market.market import Market
from thresher.market.members import add_member
from thresher.market.tables import Line
from thresher.market.tasks import close, draft, invite, join, publish, set_validation
from thresher.market.terms import Terms
from thresher.market.times import now
from thresher.market.workers import work_once
from thresher.runs.appraisal import appraise_files

SALT = b"s" * 32
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))  # Debian's place for them


def start_cluster(folder):
    """A PostgreSQL cluster of its own, and its URL; it listens to a socket in the folder only."""
    programs = PROGRAMS[-1]
    as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if as_user:
        shutil.chown(folder, "postgres")
    data = folder / "data"

    def call(*told):
        command = [*as_user, *map(str, told)]
        subprocess.run(  # noqa: S603
            command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/",
            timeout=90,
        )  # fmt: skip

    call(programs / "initdb", "-D", data, "-A", "trust", "-U", "market", "--no-sync")
    options = f"-c listen_addresses= -c unix_socket_directories={folder}"
    control = programs / "pg_ctl", "-D", data, "-w", "-t", 60

    def stop():
        call(*control, "-m", "immediate", "stop")

    def start():
        for _ in range(20):  # backends of before may hold its memory for a moment
            with suppress(subprocess.CalledProcessError):
                return call(*control, "-o", options, "-l", folder / "log", "start")
            time.sleep(0.5)
        raise TimeoutError(f"PostgreSQL does not start: {(folder / 'log').read_text()[-2000:]}")

    try:
        start()
    except BaseException:
        with suppress(subprocess.SubprocessError):
            stop()
        raise
    return f"postgresql://market@/postgres?host={folder}", start, stop


def made_up(rows, seed, width=3):
    """Rows of two classes as text: a file that a buyer or an owner would hand in."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=rows) > 0, "sick", "well")
    names = ",".join([f"f{j}" for j in range(width)] + ["diagnosis"])
    lines = [",".join([*(f"{x:.6g}" for x in row), label]) for row, label in zip(X, y, strict=True)]
    return ("\n".join([names, *lines]) + "\n").encode()


def terms(**changed):
    given = {
        "label": "diagnosis", "pot_cents": 100_000, "epsilon": 2.0, "delta": 1e-6,
        "rows_per_owner": 20, "owners": 30, "radius": 1.0,
    }  # fmt: skip
    return Terms(**given | changed)


def open_task(market, **changed):
    """An open task of a new buyer: the buyer and the task."""
    with market.database.writing() as session:
        buyer, _ = add_member(session, "buyer", f"buyer {now().isoformat()}")
        later = now() + timedelta(hours=1)
        task = draft(session, buyer, "a task", terms(**changed), now() - timedelta(hours=1), later)
        set_validation(session, buyer, task.id, made_up(200, 1), "csv")
        publish(session, buyer, task.id)
    return buyer, task


def hand_in(market, owner, task, content, **options):
    """Hand in rows of an owner, with a salt that is no secret."""
    return uploads.hand_in(
        market, owner, task.id, content=content, kind="csv", salt=SALT, **options
    )


def join_owners(market, buyer, task, count):
    """New owners with a place in the task."""
    owners = []
    with market.database.writing() as session:
        for number in range(count):
            code = invite(session, buyer, task.id)
            owners.append(join(session, None, code, f"owner {number} of {task.id}")[1])
    return owners


def paid_export(folder, **changed):
    """The export of a market that has paid 20 owners, who they are, and what each was told."""
    market = Market.open(folder, epsilon=100.0)
    buyer, task = open_task(market, epsilon=30.0, owners=20, rows_per_owner=8, **changed)
    owners = join_owners(market, buyer, task, 20)
    for number, owner in enumerate(owners):
        hand_in(market, owner, task, made_up(8, 100 + number))
    with market.database.writing() as session:
        close(session, buyer, task.id)
    assert work_once(market, "worker")
    with market.database.reading() as session:
        lines = [session.get_one(Line, (task.id, owner.id)).line for owner in owners]
    found = json.loads(json.dumps(export(market)))
    market.close()
    return found, [owner.id for owner in owners], lines


def appraised(task, number, folder):
    """What the public release of a task says that an owner's rows are worth."""
    rows, release = folder / "rows.csv", folder / "release.json"
    rows.write_bytes(made_up(8, 100 + number))
    release.write_text(json.dumps(task["release"]))
    return appraise_files(str(rows), release, label="diagnosis").values.sum()


@pytest.fixture(scope="module")
def cluster():
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory() as folder:  # which its own user has to reach
        Path(folder).chmod(0o755)
        url, _, stop = start_cluster(Path(folder))
        try:
            yield url
        finally:
            stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def market(request, tmp_path):
    """An open market on each kind of database."""
    url = None
    if request.param == "postgresql":
        url = request.getfixturevalue("cluster")
    opened = Market.open(tmp_path / "market", url, epsilon=100.0)
    if url is not None:
        clear(opened)
    yield opened
    opened.close()


def clear(market):
    """Empty all tables but the key's."""
    from thresher.market.tables import Base

    with market.database.writing() as session:
        for table in reversed(Base.metadata.sorted_tables):
            if table.name != "keys":
                session.execute(table.delete())
