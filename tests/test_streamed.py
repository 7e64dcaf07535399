"""`thresher value --memory`: the same table as in memory, from files that may be larger than it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamed_cases import ALL, data, table_of  # noqa: F401
from tabular import check_refused, put

import thresher as th
from thresher.runs import table_file
from thresher.runs.memory_run import value_files
from thresher.runs.results import write_results
from thresher.runs.settings import Settings
from thresher.runs.table_file import value_to_file
from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


def same_table(one, other):
    """Whether two files hold the same table; NaN is what it is."""
    tables = [pq.read_table(path) if isinstance(path, str) else path for path in (one, other)]
    assert tables[0].schema.equals(tables[1].schema)
    return str(tables[0].to_pydict()) == str(tables[1].to_pydict())


PLAIN = {"ignore": ("name", "from", "gap", "kind")}


def both(out="v.parquet", **about):
    """The same settings in memory and in parts: two files and what was told."""
    wanted = Settings(**about)
    valued = value_files(wanted)
    write_results(Path(f"memory-{out}"), valued)
    done = value_to_file(Settings(**about, memory="64GB"), Path(f"parts-{out}"))
    return f"memory-{out}", f"parts-{out}", valued, done


@pytest.mark.parametrize(
    "about",
    [
        {"file": "points", "validation": "val.parquet", **ALL},
        {"file": "points.csv", "validation": "val.csv", **ALL, "mean": True},
        {
            "file": "points",
            "validation": "val.csv",
            **PLAIN,
            "semivalue": "banzhaf",
            "method": "tknn",
        },
        {"file": "points.csv", "validation": "val.parquet", **PLAIN, "metric": "euclidean"},
        {
            "file": "points/*.parquet",
            "validation": "val.parquet",
            "features": ("x*",),
            "radius": 0.3,
        },
    ],
    ids=["all", "text", "mixed", "euclidean", "pattern"],
)
def test_the_table_is_that_of_the_run_in_memory(about):
    one, other, valued, done = both(**about)
    assert same_table(other, one)
    assert th.Valuation.load(other) == th.Valuation.load(one) == valued.valuation
    assert done.suggestions == valued.findings.counts()
    assert done.rows == 1500
    assert [found["row"] for found in done.worst] == valued.valuation.suspects(5).tolist()
    ours, theirs = dict(done.record), dict(valued.record)
    assert ours.pop("streamed") == {"memory": 64 * 10**9, "passes": 2 + ("categorical" in about)}
    for record in (ours, theirs):
        assert record.pop("chosen")["method"] == "tknn"  # for reasons of their own
        del record["settings"], record["command"]
    assert json.loads(json.dumps(ours)) == json.loads(json.dumps(theirs))
    if "owner" in about:
        assert done.by_owner == pytest.approx(valued.valuation.by_owner())


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "tsv"])
def test_files_are_the_same_bytes_however_pieces_are_cut(suffix, monkeypatch):
    settings = Settings("points", validation="val.parquet", **ALL, memory="64GB")
    found = []
    for chunk, rows in ((1 << 22, 1), (999, 10**6), (1, 99_999)):
        monkeypatch.setattr(table_file, "CHUNK", chunk)
        monkeypatch.setattr("thresher.passes.memory.LARGEST", rows)
        value_to_file(settings, Path(f"v.{suffix}"), force=True)
        found.append(Path(f"v.{suffix}").read_bytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "arrow"])
def test_other_kinds_of_files_are_written_alike(suffix):
    one, other, _, done = both(f"v.{suffix}", file="points", validation="val.parquet", **ALL)
    if suffix == "arrow":
        with pa.memory_map(one) as a, pa.memory_map(other) as b:
            assert same_table(pa.ipc.open_file(a).read_all(), pa.ipc.open_file(b).read_all())
        return
    assert Path(other).read_bytes() == Path(one).read_bytes()
    record = json.loads(Path(f"{other}.record.json").read_text())
    assert record["streamed"]["passes"] == 3
    assert [path.name for path in done.wrote] == [other, f"{other}.record.json"]


def test_arrays_are_mapped():
    points, validation = table_of(1500, 0), table_of(120, 1)
    for name, table in (("x", points), ("v", validation)):
        np.save(f"{name}.npy", np.column_stack([table[f"x{j}"].to_numpy() for j in range(3)]))
        np.save(f"{name}-labels.npy", table["y"].to_numpy().astype(str))
        put(f"{name}-labels.txt", "\n".join(table["y"].to_pylist()))
    for kind in ("npy", "txt"):
        about = {"file": "x.npy", "label": f"x-labels.{kind}", "standardize": True}
        about |= {"validation": "v.npy", "validation_label": f"v-labels.{kind}"}
        one, other, _, _ = both(f"{kind}.parquet", **about)
        assert same_table(other, one)
    np.save("x-labels.npy", np.zeros(3))
    about["label"] = "x-labels.npy"
    check_refused(
        lambda: value_to_file(Settings(**about, memory="64GB"), Path("o.csv")), "1500 rows"
    )


def test_words_for_missing_cells_count_in_arrays_too():
    points, validation = table_of(1500, 0), table_of(120, 1)
    for name, table in (("x", points), ("v", validation)):
        X = np.column_stack([table[f"x{j}"].to_numpy() for j in range(3)])
        np.save(f"{name}.npy", np.where(X[5, 0] == X, -999, X))
        put(f"{name}-labels.txt", "\n".join(table["y"].to_pylist()))
    about = {"file": "x.npy", "label": "x-labels.txt", "na": ("-999",), "fill": "zero"}
    about |= {"validation": "v.npy", "validation_label": "v-labels.txt"}
    one, other, _, _ = both("filled.parquet", **about)
    assert same_table(other, one)
    marked = np.where(np.arange(1500) == 7, "?", points["y"].to_numpy())
    for name, save in (("q.npy", np.save), ("q.txt", lambda name, y: put(name, "\n".join(y)))):
        save(name, marked.astype(str))
        asked = Settings(**about | {"label": name, "na": ("-999", "?"), "memory": "64GB"})
        check_refused(lambda asked=asked: value_to_file(asked, Path("o.csv")), "missing", "row 7")


def test_the_encoder_is_that_of_the_table_in_memory():
    random = np.random.default_rng(0)
    features = pa.table(
        {
            "large": random.normal(1e6, 1e-2, 9000),
            "huge": random.normal(size=9000) * 1e200,
            "same": [0.1] * 9000,
            "whole": random.integers(0, 9, 9000),
            "said": random.choice(["true", "False", ""], 9000),
            "kind": pa.array(random.choice(["b", "a", "c"], 9000), mask=random.random(9000) < 0.1),
        }
    )
    how = {"standardize": True, "scaling": "plain"}  # tests/test_scaling.py has the others
    wanted = Encoder.fit(_columns(features), fill=0, **how)
    cuts = [0, 1, 5, 2000, 8999, 9000]
    parts = [_columns(features.slice(lo, hi - lo)) for lo, hi in pairwise(cuts)]
    got = Encoder.fit_parts(iter(parts), fill=0.0, **how)
    assert got.names == wanted.names
    assert got.features == wanted.features
    for feature, name in zip(got.features, ("large", "huge")):
        wide = features[name].to_numpy().astype(np.longdouble)
        assert abs(feature.means[0] - float(wide.mean())) <= 1e-12 * float(wide.std())
        assert abs(feature.deviations[0] / float(wide.std()) - 1) <= 1e-12


def _columns(features):
    return Columns(tuple(range(len(features))), features, categorical=("kind",))


def test_values_of_scaled_columns_are_the_same_bits():
    one, other, _, _ = both(file="points.csv", validation="val.csv", standardize=True, **ALL)
    assert pq.read_table(one)["value"].equals(pq.read_table(other)["value"])
