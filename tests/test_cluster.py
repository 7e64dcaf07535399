"""Dask: the same bits as on one machine, on a real cluster of processes, and with one killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import waits
from tabular import thresher

import thresher as th
from thresher.passes import on_dask
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings
from thresher.runs.table_folder import value_to_folder

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")


def problem(points=3000, validation=300, width=5, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    X = random.normal(size=(points, width)).astype(dtype)
    X_val = random.normal(size=(validation, width)).astype(dtype)
    return X, random.integers(3, size=points), X_val, random.integers(3, size=validation)


@pytest.fixture(scope="module")
def client():
    """A scheduler and two workers, each a process of its own."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


# Without a cluster: threads of this process


@pytest.mark.parametrize("chunks", [(700, 2), (1, 5), (3000, 5), ((1000, 0, 1999, 1), 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_give_the_same_bits_however_they_are_cut(chunks, dtype):
    points = 60 if chunks == (1, 5) else 3000
    X, y, X_val, y_val = problem(points, dtype=dtype)
    found = th.tknn_shapley(da.from_array(X, chunks=chunks), y, X_val, y_val)
    assert found.compute() == th.tknn_shapley(X, y, X_val, y_val)


@pytest.mark.parametrize("block_bytes", [1, 64 * 5 * 8 * 2, 1 << 20])
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", th.Beta(4, 1)], ids=str)
def test_validation_sets_may_be_cut_in_blocks(block_bytes, semivalue, monkeypatch):
    monkeypatch.setattr("thresher.sides.ball_side.BLOCK_BYTES", block_bytes)
    X, y, X_val, y_val = problem(1500)
    about = {"semivalue": semivalue, "mean": True}
    found = th.tknn_shapley(da.from_array(X, chunks=400), y, X_val, y_val, **about)
    assert found.compute() == th.tknn_shapley(X, y, X_val, y_val, **about)


def test_frames_and_series_and_labels_of_text():
    X, y, X_val, y_val = problem()
    names = np.array(["ant", "bee", "cat"])
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=names[y])
    cut = dd.from_pandas(frame, npartitions=7)
    wanted = th.tknn_shapley(frame[list("abcde")], frame["label"], X_val, names[y_val])
    for labels in (cut["label"], names[y], list(names[y])):
        found = th.tknn_shapley(cut[list("abcde")], labels, X_val, names[y_val])
        assert found.compute() == wanted


def test_labels_first_seen_in_the_last_partition_are_classes():
    X, y, X_val, y_val = problem(300)
    y[-1] = 7
    found = th.tknn_shapley(da.from_array(X, chunks=100), y, X_val, y_val)
    assert found.params["classes"] == [0, 1, 2, 7]
    assert found.compute() == th.tknn_shapley(X, y, X_val, y_val)


def test_arrays_of_unknown_length_and_empty_partitions():
    X, y, X_val, y_val = problem(500)
    frame = pd.DataFrame(X).assign(y=y)
    cut = dd.from_pandas(frame, npartitions=5)
    some = cut[cut[0] > 1.0]  # partitions of any length, one of them maybe none
    kept = frame[frame[0] > 1.0]
    empty = dd.concat([some, cut[cut[0] > 99]], interleave_partitions=False)
    for each in (some, empty):
        X_some = each[[0, 1, 2, 3, 4]].to_dask_array()
        found = th.tknn_shapley(X_some, each["y"].to_dask_array(), X_val, y_val).compute()
        wanted = th.tknn_shapley(kept[[0, 1, 2, 3, 4]].to_numpy(), kept["y"], X_val, y_val)
        assert found.values.tolist() == wanted.values.tolist()


def test_what_does_not_fit_is_refused():
    X, y, X_val, y_val = problem(300)
    cut = da.from_array(X, chunks=100)
    with pytest.raises(th.InputError, match="y has 299 labels but X has 300 rows"):
        th.tknn_shapley(cut, y[:-1], X_val, y_val)
    with pytest.raises(th.InputError, match="y has 299 labels but X has 300 rows"):
        th.tknn_shapley(cut, da.from_array(y[:-1], chunks=100), X_val, y_val)
    for more in ({"memory": "64GB"}, {"checkpoint": "run"}):
        with pytest.raises(th.InputError, match="memory and checkpoint cannot be used with Dask"):
            th.tknn_shapley(cut, y, X_val, y_val, **more)
    broken = X.copy()
    broken[250, 2] = np.nan
    with pytest.raises(th.InputError, match="partition 2: X has NaN or infinite values in row 50"):
        th.tknn_shapley(da.from_array(broken, chunks=100), y, X_val, y_val)
    frame = dd.from_pandas(pd.DataFrame({"y": y}), npartitions=2)
    with pytest.raises(th.InputError, match="X has 3 partitions but y has 2"):
        th.tknn_shapley(cut, frame["y"], X_val, y_val)
    with pytest.raises(th.InputError, match="X has 5 features but X_val has 4"):
        th.tknn_shapley(cut, y, X_val[:, :4], y_val)
    with pytest.raises(th.InputError, match="two dimensions"):
        th.tknn_shapley(da.zeros(300), y, X_val, y_val)


def test_warnings_are_those_of_one_machine():
    X, y, X_val, y_val = problem(300)
    cut = da.from_array(X, chunks=100)
    with pytest.warns(th.TwinWarning, match="2 of 2 validation rows"):
        th.tknn_shapley(cut, y, X[[5, 250]], y[[5, 250]])
    with pytest.warns(th.ReachWarning):
        th.tknn_shapley(cut, y, X_val, y_val, radius=0.0)
    with pytest.warns(th.LabelWarning):
        th.tknn_shapley(cut, y, X_val, y_val + 10)


# On a cluster


def test_a_cluster_of_processes_gives_the_same_bits(client):
    X, y, X_val, y_val = problem(20_000)
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    found = th.tknn_shapley(da.from_array(X, chunks=2500), y, X_val, y_val)
    assert isinstance(found.values, da.Array)
    assert found.compute() == wanted


def test_workers_write_the_values(client, tmp_path):
    X, y, X_val, y_val = problem(5000)
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    found = th.tknn_shapley(da.from_array(X, chunks=700), y, X_val, y_val)
    names = found.to_parquet(tmp_path / "values")
    assert [Path(name).name for name in names] == [f"part-{i:05d}.parquet" for i in range(8)]
    table = pq.read_table(tmp_path / "values").sort_by("row")
    assert table.column("row").to_pylist() == list(range(5000))
    assert table.column("value").to_pylist() == wanted.values.tolist()
    with pytest.raises(th.InputError, match="already exists"):
        found.to_parquet(tmp_path / "values")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Points in several files, some of them wrongly labeled, and a validation set."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    y = random.integers(2, size=900)
    X = random.normal(size=(900, 3)) + 3 * y[:, None]
    y[::50] = 1 - y[::50]
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        y=np.where(y, "dog", "cat"), name=[f"n{i}" for i in range(900)]
    )
    Path("parts").mkdir()
    for kind in ("parquet", "csv"):
        for place, size in ((0, 300), (300, 10), (310, 390)):
            part = frame.iloc[place : place + size]
            path = f"parts/{place:03}.{kind}"
            part.to_parquet(path, index=False) if kind == "parquet" else part.to_csv(
                path, index=False
            )
    frame.iloc[700:].drop(columns="name").to_parquet("val.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_command_values_files_on_a_cluster(client, files, kind):
    address = client.scheduler.address
    common = ("value", f"parts/*.{kind}", "--validation", "val.parquet", "--id", "name",
              "--standardize")  # fmt: skip
    done = thresher(
        *common, "--engine", "dask", "--scheduler", address, "--out", "values", "--json"
    )
    assert done.returncode == 0, done.stderr
    here = thresher(*common, "--out", "values.parquet")
    assert here.returncode == 0, here.stderr
    table, wanted = pq.read_table("values").sort_by("row"), pq.read_table("values.parquet")
    assert table.num_rows == wanted.num_rows == 700
    for name in table.column_names:
        assert table.column(name).to_pylist() == wanted.column(name).to_pylist(), name
    told = json.loads(done.stdout)
    assert told["suggestions"]["relabel"] > 0
    assert json.loads(Path("values/_record.json").read_text())["engine"] == "dask"
    again = thresher(*common, "--engine", "dask", "--scheduler", address, "--out", "values")
    assert again.returncode == 1
    assert "already exists" in again.stderr


def test_hints_of_a_cluster_are_those_of_one_machine(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, X_val, y_val = problem(80, 40, width=2)
    words = np.array(["cat", "Dog", "NULL"])
    for name, rows, labels in (("p.csv", X, words[y]), ("v.csv", X_val, words[y_val])):
        lines = [f"{i},{a},{b},{x}" for i, ((a, b), x) in enumerate(zip(rows.tolist(), labels))]
        Path(name).write_text("\n".join(["nr,a,b,y", *lines]) + "\n")
    settings = Settings("p.csv", validation="v.csv", metric="euclidean", radius=30.0)
    done = value_to_folder(settings, Path("v"), scheduler=client.scheduler.address)
    assert done.hints == value_files(settings).hints()
    assert "'NULL'" in done.hints[0]
    assert "column 'nr' looks like an id" in done.hints[1]


STEPS = "wrote ", "to act", "to review", "change no row"  # with a table of its own


def test_a_cluster_tells_what_one_machine_tells(client, files):
    """Owners, utilities, and labels that are numbers of text, which are counted once."""
    frame = pd.concat([pd.read_csv(path) for path in sorted(Path("parts").glob("*.csv"))])
    frame = frame.assign(y=(frame["y"] == "dog").astype(int), name=frame["name"].str[-1])
    frame.to_csv("p.csv", index=False)
    frame.iloc[::9].drop(columns="name").to_csv("v.csv", index=False)
    common = (
        "value",
        "p.csv",
        "--validation",
        "v.csv",
        "--owner",
        "name",
        "--radius",
        0.1,
        "--json",
    )
    here = thresher(*common, "--out", "here.parquet")
    address = client.scheduler.address
    there = thresher(*common, "--engine", "dask", "--scheduler", address, "--out", "there")
    assert there.returncode == here.returncode == 0, there.stderr
    one, other = json.loads(here.stdout), json.loads(there.stdout)
    assert other.keys() == one.keys()
    for key in set(one) - {"record", "wrote", "by_owner"}:
        assert other[key] == one[key], key
    assert other["by_owner"] == pytest.approx(one["by_owner"])
    said = [line for line in there.stderr.splitlines() if not line.startswith("wrote ")]
    assert said == [x for x in here.stderr.splitlines() if not x.startswith(STEPS)]


@pytest.mark.parametrize(("ending", "times"), [("", 1), (".0", 2)])
def test_labels_of_text_are_counted_again_only_where_they_mean_others(
    client, files, monkeypatch, ending, times
):
    frame = pd.read_csv("parts/000.csv").drop(columns="name")
    numbers = (frame["y"] == "dog").astype(int)
    frame.assign(y=numbers.astype(str) + ending).to_csv("p.csv", index=False)
    frame.assign(y=numbers).to_parquet("v.parquet", index=False)
    counted, tally = [], on_dask.DaskRun._tally

    def counting(self, name, *given):
        counted.append(name)
        return tally(self, name, *given)

    monkeypatch.setattr(on_dask.DaskRun, "_tally", counting)
    settings = Settings("p.csv", validation="v.parquet", radius=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", th.TwinWarning)
        value_to_folder(settings, Path("v"), scheduler=client.scheduler.address)
        wanted = value_files(settings)
    assert len(counted) == times
    table = pq.read_table("v").sort_by("row")
    assert table.column("value").to_numpy().tobytes() == wanted.valuation.values.tobytes()
    assert table.column("label").to_pylist() == list(wanted.points.labels)


def test_labels_that_nobody_shares_are_refused_on_a_cluster(client, files):
    frame = pd.read_parquet("val.parquet")
    frame.assign(y="owl").to_parquet("v.parquet", index=False)
    done = thresher("value", "parts/*.parquet", "--validation", "v.parquet", "--ignore", "name", "--radius",
                    0.1, "--engine", "dask", "--scheduler", client.scheduler.address, "--out", "v")  # fmt: skip
    assert done.returncode == 1
    assert "no label in common" in done.stderr
    assert not [*Path("v").glob("*.parquet")]


def test_the_command_cuts_large_validation_sets(client, files, monkeypatch):
    """Blocks of 64 validation points, 200 of them: the bits are those of one machine."""
    monkeypatch.setattr("thresher.sides.ball_side.BLOCK_BYTES", 1)
    settings = Settings("parts/*.parquet", validation="val.parquet", ignore=("name",), radius=0.1)
    blocks, cut = [], on_dask.cut

    def told(prices):
        blocks.extend(cut(prices))
        return blocks

    monkeypatch.setattr(on_dask, "cut", told)
    value_to_folder(settings, Path("v"), scheduler=client.scheduler.address)
    assert len(blocks) == 4
    wanted = value_files(settings)
    table = pq.read_table("v").sort_by("row")
    assert table.column("value").to_numpy().tobytes() == wanted.valuation.values.tobytes()
    assert table.column("near").to_pylist() == wanted.findings.near.tolist()
    assert table.column("best_value").to_pylist() == wanted.findings.best_value.tolist()
    assert table.column("suggestion").to_pylist() == list(wanted.findings.suggestion)


@pytest.mark.parametrize("change", ["rows", "labels", "order"])
def test_a_partition_that_changes_between_the_passes_is_refused(change, tmp_path):
    X, y, X_val, y_val = problem(900)
    np.savez(tmp_path / "part.npz", X=X[:300], y=y[:300])

    def read(name):
        return np.load(tmp_path / "part.npz")[name]

    first = [da.from_delayed(dask.delayed(read)(name), (300, 5)[: 2 - i], np.float64)
             for i, name in enumerate("Xy")]  # fmt: skip
    rest = da.from_array(X[300:], chunks=(300, 5)), da.from_array(y[300:], chunks=300)
    found = th.tknn_shapley(*map(da.concatenate, zip(first, rest)), X_val, y_val)
    assert found.compute() == th.tknn_shapley(X, y.astype(float), X_val, y_val.astype(float))
    other = {"rows": (X[:300] + 1e-9, y[:300]), "labels": (X[:300], y[:300][::-1]),
             "order": (X[:300][::-1], y[:300][::-1])}[change]  # fmt: skip
    np.savez(tmp_path / "part.npz", X=other[0], y=other[1])
    with pytest.raises(th.InputError, match="partition 0 changed after it was counted"):
        found.compute()


def test_columns_of_parquet_files_that_dask_reads_in_fewer_partitions(tmp_path):
    """Dask joins files of which a narrow column is read: labels must stay with their rows."""
    X, y, X_val, y_val = problem(1200)
    names = list("abcde")
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    for part in range(6):
        frame.iloc[200 * part : 200 * part + 200].to_parquet(tmp_path / f"{part}.parquet")
    spread = dd.read_parquet(tmp_path)
    found = th.tknn_shapley(spread[names], spread["y"], X_val, y_val)
    assert found.compute() == th.tknn_shapley(X, y, X_val, y_val)


def test_partitions_with_columns_in_another_order_are_refused():
    X, y, X_val, y_val = problem(200)
    frames = [pd.DataFrame(X[:100], columns=list("abcde")),
              pd.DataFrame(X[100:], columns=list("abcde"))[list("bacde")]]  # fmt: skip
    spread = dd.from_map(lambda i: frames[i], [0, 1], meta=frames[0], enforce_metadata=False)
    with pytest.raises(th.InputError, match="partition 1: X has the columns .* another order"):
        th.tknn_shapley(spread, y, X_val, y_val)
    with pytest.raises(th.InputError, match="another order"):
        th.tknn_shapley(spread, y, pd.DataFrame(X_val, columns=list("edcba")), y_val)


def test_a_folder_of_results_has_nothing_of_an_earlier_run(tmp_path):
    X, y, X_val, y_val = problem(100)
    for chunks, force in ((10, False), (50, True)):
        found = th.tknn_shapley(da.from_array(X, chunks=(chunks, 5)), y, X_val, y_val)
        found.to_parquet(tmp_path / "values", force=force)
    assert pq.read_table(tmp_path / "values").num_rows == 100
    (tmp_path / "file").touch()
    with pytest.raises(th.InputError, match="cannot create"):
        found.to_parquet(tmp_path / "file")


def test_the_folder_of_the_points_is_no_place_for_results(files):
    before = Path("parts/300.parquet").read_bytes()
    done = thresher("value", "parts/*.parquet", "--validation", "val.parquet", "--ignore", "name",
                    "--engine", "dask", "--out", "parts", "--force")  # fmt: skip
    assert done.returncode == 1
    assert "--out parts is the folder of parts/000.parquet" in done.stderr
    assert Path("parts/300.parquet").read_bytes() == before


def test_empty_files_and_missing_ids_on_a_cluster(client, files):
    empty = pq.read_table("parts/300.parquet").slice(0, 0)
    pq.write_table(empty, "parts/100.parquet")
    common = ("value", "parts/*.parquet", "--validation", "val.parquet", "--id", "name", "--radius",
              0.1, "--engine", "dask", "--scheduler", client.scheduler.address, "--out", "v")  # fmt: skip
    done = thresher(*common)
    assert done.returncode == 0, done.stderr
    assert "wrote 3 files" in done.stderr
    assert pq.read_table("v").num_rows == 700
    table = pq.read_table("parts/300.parquet").to_pandas()
    table.loc[4, "name"] = None
    table.to_parquet("parts/300.parquet", index=False)
    done = thresher(*common, "--force")
    assert done.returncode == 1
    assert "300.parquet has missing ids in row 4" in done.stderr


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_progress_is_told_partition_by_partition(where, request, monkeypatch):
    told = []

    @contextlib.contextmanager
    def bar(title, total, *, show, unit):
        told.append((title, total, unit))
        yield told.append if show else None

    monkeypatch.setattr("thresher.passes.partitions.progress_bar", bar)
    if where == "cluster":
        request.getfixturevalue("client")
    X, y, X_val, y_val = problem()
    with contextlib.nullcontext() if where == "cluster" else dask.config.set(scheduler="threads"):
        found = th.tknn_shapley(da.from_array(X, chunks=(200, 5)), y, X_val, y_val, progress=True)
        assert told == [("count", 15, "partitions"), *[1] * 15]
        assert found.compute() == th.tknn_shapley(X, y, X_val, y_val)


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--out", "v"], "needs --validation"),
     (["--validation", "val.parquet"], "needs --out"),
     (["--validation", "val.parquet", "--out", "v.parquet"], "must be a folder"),
     (["--validation", "val.parquet", "--out", "v", "--memory", "64GB"], "workers have their own"),
     (["--validation", "val.parquet", "--out", "v", "--scheduler", ""], "--scheduler is empty"),
     (["--validation", "val.parquet", "--out", "v", "--scheduler", "tcp://127.0.0.1:9"],
      "does not answer")],
)  # fmt: skip
def test_what_a_cluster_cannot_do_is_refused(files, options, words):
    done = thresher("value", "parts/*.parquet", "--ignore", "name", "--engine", "dask", *options)
    assert done.returncode == 1, done.stderr
    assert words in done.stderr


def load_slowly(rows, folder, number):
    """A partition that takes a while to come, and leaves a mark when it does."""
    Path(folder, f"{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.05)
    return rows


@pytest.mark.parametrize("phase", ["count", "value"])
def test_a_worker_that_is_killed_takes_nothing_with_it(client, tmp_path, phase):
    X, y, X_val, y_val = problem(6000)
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    parts = [
        da.from_delayed(
            dask.delayed(load_slowly, pure=False)(X[i : i + 100], str(tmp_path), i),
            (100, 5),
            X.dtype,
        )
        for i in range(0, 6000, 100)
    ]
    slow = da.concatenate(parts)
    if phase == "value":
        lazy = th.tknn_shapley(slow, y, X_val, y_val)
        for mark in tmp_path.iterdir():
            mark.unlink()
    killed = []

    def kill():
        waits.until(lambda: len(list(tmp_path.iterdir())) >= 20, "20 partitions to be read")
        killed.append(next(tmp_path.iterdir()).name.split("-")[1])
        os.kill(int(killed[0]), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = (lazy if phase == "value" else th.tknn_shapley(slow, y, X_val, y_val)).compute()
    waits.join(killer)
    assert killed
    assert found == wanted
    marks = [mark.name.split("-") for mark in tmp_path.iterdir()]
    assert len(marks) > 60  # some partitions had to be read again


def test_values_on_dask_have_the_face_of_a_valuation(tmp_path):
    X, y, X_val, y_val = problem(300)
    owners = ["ann" if i % 3 else "bob" for i in range(300)]
    wanted = th.tknn_shapley(X, y, X_val, y_val, owners=owners)
    lazy = th.tknn_shapley(da.from_array(X, chunks=(100, -1)), y, X_val, y_val, owners=owners)
    assert isinstance(lazy, th.DaskValuation)
    assert lazy.suspects(7).tolist() == wanted.suspects(7).tolist()
    assert lazy.suspects(fraction=0.1).tolist() == wanted.suspects(fraction=0.1).tolist()
    assert lazy.by_owner() == wanted.by_owner()
    assert lazy.to_frame("pandas").equals(wanted.to_frame("pandas"))
    assert lazy.efficiency_gap() == wanted.efficiency_gap()
    lazy.save(tmp_path / "values.parquet")
    assert th.Valuation.load(tmp_path / "values.parquet") == wanted
    lazy.report(tmp_path / "page.html")
    assert "<!doctype html>" in (tmp_path / "page.html").read_text()
