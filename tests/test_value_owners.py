"""`thresher value --players owners`: from files to a value for each owner."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tabular import thresher

import thresher as th
from thresher.runs.inspection import inspect_files
from thresher.runs.settings import Settings

NEAR = "--radius 1.5 --metric euclidean --standardize --scaling plain"


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """points.parquet of four clinics, the same rows in two files, and val.parquet."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(200, 3)), rng.normal(size=(50, 3))
    found = []
    for rows in (X, X_val):
        labels = np.where(rows[:, 0] > 0, "dog", "cat")
        found.append(pa.table({f"x{j}": rows[:, j] for j in range(3)} | {"y": labels}))
    clinics = [f"clinic {i}" for i in rng.integers(0, 4, 200)]
    points = found[0].append_column("clinic", pa.array(clinics))
    pq.write_table(points, "points.parquet")
    (tmp_path / "parts").mkdir()
    pq.write_table(points.slice(0, 90), "parts/a.parquet")
    pq.write_table(points.slice(90), "parts/b.parquet")
    pq.write_table(found[1], "val.parquet")
    return clinics


def value(file, *more):
    words = f"value {file} --validation val.parquet --owner clinic --players owners {NEAR}"
    return thresher(*words.split(), *more)


def test_each_owner_has_one_row_and_the_file_loads(data):
    done = value("points.parquet", "--out", "owners.parquet", "--report", "owners.html")
    assert done.returncode == 0, done.stderr
    found = th.OwnerValuation.load("owners.parquet")
    assert found.owners == tuple(dict.fromkeys(data))
    assert abs(found.efficiency_gap()) < 1e-12
    table = pq.read_table("owners.parquet")
    assert table.column_names == ["owner", "rank", "points", "value"]
    assert dict(zip(table["owner"].to_pylist(), table["points"].to_pylist())) == {
        name: data.count(name) for name in dict.fromkeys(data)
    }
    about = json.loads(table.schema.metadata[b"thresher"])
    assert "--players owners" in about["command"]
    assert about["params"]["players"] == "owners"
    assert "What owners are worth" in Path("owners.html").read_text()
    assert "valued 4 owners of 200 points by 50 validation points" in done.stderr


def test_parts_and_memory_give_the_same_values():
    value("points.parquet", "--out", "owners.parquet")
    done = value("parts/*.parquet", "--out", "parts.parquet", "--memory", "64GB")
    assert done.returncode == 0, done.stderr
    one, other = (th.OwnerValuation.load(f"{name}.parquet") for name in ("owners", "parts"))
    assert one.owners == other.owners
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12)


def test_a_cluster_gives_the_same_values():
    pytest.importorskip("distributed")
    value("points.parquet", "--out", "owners.parquet")
    done = value("parts/*.parquet", "--out", "there.parquet", "--engine", "dask")
    assert done.returncode == 0, done.stderr
    one, other = (th.OwnerValuation.load(f"{name}.parquet") for name in ("owners", "there"))
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12)


def test_a_forest_values_owners_too():
    words = "value points.parquet --owner clinic --players owners --method forest --trees 8"
    done = thresher(*words.split(), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["owners"]) == 4
    gain = found["utility_all"] - found["utility_none"]
    assert sum(found["owners"].values()) == pytest.approx(gain)


def test_a_kernel_and_numbers_are_heeded(data):
    """Read in memory; the same as from Python."""
    from thresher.runs.owner_run import value_owners
    from thresher.runs.settings import Settings

    common = {
        "file": "points.parquet", "validation": "val.parquet", "owner": "clinic",
        "players": "owners", "radius": 1.5, "metric": "euclidean",
    }  # fmt: skip
    box = value_owners(Settings(method="tknn", **common)).valuation
    rings = value_owners(Settings(method="tknn", kernel="gaussian", **common)).valuation
    assert rings.params["kernel"] == "gaussian"
    assert not np.allclose(box.values, rings.values)
    numbers = common | {"label": "x0", "ignore": ("y",), "task": "regression"}
    leaves = {k: entry for k, entry in numbers.items() if k not in {"radius", "metric"}}
    for some in (numbers | {"method": "tknn"}, leaves | {"method": "forest", "trees": 4}):
        found = value_owners(Settings(**some)).valuation
        assert found.params["task"] == "regression"
        assert abs(found.efficiency_gap()) < 1e-9


def test_a_table_of_text_goes_to_standard_output():
    done = value("points.parquet")
    assert done.stdout.splitlines()[0].replace('"', "") == "owner,rank,points,value"
    assert len(done.stdout.splitlines()) == 5


def check_refused(done, words):
    assert done.returncode == 1
    assert words in done.stderr


def test_what_does_not_go_together_is_refused():
    words = "value points.parquet --validation val.parquet --players owners"
    check_refused(thresher(*words.split()), "--players owners needs --owner, the column of owners")
    done = value("points.parquet", "--checkpoint", "run", "--out", "a.parquet")
    check_refused(done, "--checkpoint needs --memory")
    words = "value points.parquet --owner clinic --players owners --method knn"
    check_refused(thresher(*words.split()), "--players needs --method forest or tknn")


def test_players_without_a_name_are_a_problem_that_no_line_solves(data):
    table = pq.read_table("points.parquet").drop_columns(["clinic"])
    pq.write_table(table.append_column("clinic", pa.array([None, *data[1:]])), "gap.parquet")
    found = inspect_files(Settings("gap.parquet", owner="clinic", players="owners"))
    assert found.problems == (
        "gap.parquet column 'clinic' has missing owners in row 0: drop or fill those rows",
    )
    assert "--ignore" not in found.command
    assert not found.solved
