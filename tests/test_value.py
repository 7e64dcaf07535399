"""`thresher value`: from files to values, as a user runs it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather
from tabular import put, thresher
from value_cases import VALUE, WRONG, clouds, table_of, write_clouds, write_table

import thresher as th
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings
from thresher.tables.columns import choose_columns
from thresher.tables.holdout import find_twins, hold_out
from thresher.tables.reader import read_table

FINDINGS = ["row", "label", "value", "rank", "percentile", "near", "agree", "best_label",
            "best_value", "suggestion"]  # fmt: skip


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """points.csv with one wrong label and val.csv, in the working folder."""
    monkeypatch.chdir(tmp_path)
    return write_clouds()


# The table of results


def test_the_command_values_as_the_function_does(data):
    done = thresher(*VALUE, "--radius", 0.5, "--out", "v.parquet", "--report", "r.html")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    wanted = th.tknn_shapley(*data, radius=0.5)
    table = pq.read_table("v.parquet")
    assert table.column_names == FINDINGS
    assert table.column("value").to_pylist() == wanted.values.tolist()
    assert th.Valuation.load("v.parquet") == wanted
    worst = table.slice(WRONG, 1).to_pylist()[0]
    assert (worst["rank"], worst["suggestion"], worst["best_label"]) == (1, "relabel", "dog")
    assert worst["agree"] < 0.1
    assert f"row {WRONG}: " in done.stderr
    assert "relabel to dog" in done.stderr
    assert "<!doctype html>" in Path("r.html").read_text()[:20]


def test_the_record_says_enough_to_make_the_same_run_again(data):
    first = thresher("value", "points.csv", "--holdout", 0.3, "--seed", 5, "--standardize",
                     "--out", "a.parquet")  # fmt: skip
    assert first.returncode == 0, first.stderr
    about = json.loads(pq.read_schema("a.parquet").metadata[b"thresher"])
    assert about["thresher"] == th.__version__
    assert about["points"]["rows"] == 120
    assert about["encoder"]["fitted_on"]["rows"] == 84
    words = about["command"].split()
    assert words[:3] == ["thresher", "value", "points.csv"]
    again = thresher(*words[1:], "--out", "b.parquet")
    assert again.returncode == 0, again.stderr
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "arrow", "feather", "parquet"])
def test_every_kind_of_file_holds_the_same(data, suffix):
    out = f"v.{suffix}"
    done = thresher(*VALUE, "--radius", 0.5, "--out", out)
    assert done.returncode == 0, done.stderr
    if suffix in {"csv", "tsv"}:
        options = csv.ParseOptions(delimiter="," if suffix == "csv" else "\t")
        table, about = csv.read_csv(out, parse_options=options), Path(f"{out}.record.json")
        about = json.loads(about.read_text())
    else:
        table = pq.read_table(out) if suffix == "parquet" else feather.read_table(out)
        about = json.loads(table.schema.metadata[b"thresher"])
    assert table.column_names == FINDINGS
    assert table.column("value").to_pylist() == th.tknn_shapley(*data, radius=0.5).values.tolist()
    assert about["command"].startswith("thresher value points.csv")
    cleaned = thresher("clean", "points.csv", "--values", out, "--relabel", "relabel",
                       "--out", "c.csv")  # fmt: skip
    assert cleaned.returncode == 0, cleaned.stderr
    assert choose_columns(read_table("c.csv"), label="y").labels[WRONG] == "dog"


def test_without_a_file_the_table_goes_to_standard_output(data):
    done = thresher(*VALUE, "--radius", 0.5)
    table = csv.read_csv(pa.BufferReader(done.stdout.encode()))
    assert table.num_rows == 120
    document = json.loads(thresher(*VALUE, "--radius", 0.5, "--json").stdout)
    assert [row["value"] for row in document["rows"]] == table.column("value").to_pylist()
    assert document["suggestions"]["relabel"] == 1
    assert document["params"]["radius"] == 0.5


# What goes in


def write_folder(name, X, y):
    Path(name).mkdir()
    for place in range(0, len(y), 40):
        pq.write_table(table_of(X, y).slice(place, 40), f"{name}/part{place:03}.parquet")


def write_npy(name, X, y):
    np.save(f"{name}.npy", X)
    np.save(f"{name}-labels.npy", y)


TABS = csv.WriteOptions(delimiter="\t")


WRITERS = {
    "csv": lambda name, X, y: csv.write_csv(table_of(X, y), f"{name}.csv"),
    "tsv": lambda name, X, y: csv.write_csv(table_of(X, y), f"{name}.tsv", TABS),
    "parquet": lambda name, X, y: pq.write_table(table_of(X, y), f"{name}.parquet"),
    "feather": lambda name, X, y: feather.write_feather(table_of(X, y), f"{name}.feather"),
    "npz": lambda name, X, y: np.savez(f"{name}.npz", X=X, y=y),
    "npy": write_npy,
    "folder": write_folder,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_every_kind_of_table_gives_the_same_values(data, kind):
    X, y, X_val, y_val = data
    WRITERS[kind]("p", X, y)
    WRITERS[kind]("v", X_val, y_val)
    end = "" if kind == "folder" else f".{kind}"
    more = {"label": "p-labels.npy", "validation_label": "v-labels.npy"} if kind == "npy" else {}
    valued = value_files(Settings(f"p{end}", validation=f"v{end}", radius=0.5, **more))
    wanted = th.tknn_shapley(*data, radius=0.5).values
    assert valued.valuation.values.tolist() == wanted.tolist()


def test_an_npz_may_hold_its_own_validation_set(data):
    X, y, X_val, y_val = data
    np.savez("both.npz", X=X, y=y, X_val=X_val, y_val=y_val)
    valued = value_files(Settings("both.npz", radius=0.5))
    assert valued.valuation.values.tolist() == th.tknn_shapley(*data, radius=0.5).values.tolist()
    held = value_files(Settings("both.npz", radius=0.5, holdout=0.25))
    assert len(held.valuation) == 90


def test_a_radius_is_suggested_by_the_validation_set(data):
    valued = value_files(Settings("points.csv", validation="val.csv", metric="euclidean"))
    wanted = th.suggest_radius(data[2], data[3], metric="euclidean", kernel="gaussian")
    assert valued.valuation.params["radius"] == float(wanted)


def test_standardizing_is_fitted_on_the_points_alone(data):
    X, y, X_val, y_val = data
    settings = Settings("points.csv", validation="val.csv", standardize=True, radius=0.5)
    valued = value_files(settings)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    wanted = th.tknn_shapley((X - mean) / spread, y, (X_val - mean) / spread, y_val, radius=0.5)
    np.testing.assert_allclose(valued.valuation.values, wanted.values, atol=1e-9)
    assert valued.record["encoder"]["fitted_on"] == {
        "source": "points.csv", "rows": 120, "fill": None, "standardize": True,
        "scaling": "robust",
    }  # fmt: skip


def test_ids_owners_and_categories_find_their_way(data):
    X, y, X_val, y_val = data
    owners = ["ann", "bob", "cid"] * 40
    color = ["red" if label == "dog" else "blue" for label in y]
    write_table("p.csv", X, y, name=[f"n{i}" for i in range(120)], who=owners, color=color)
    write_table("w.csv", X_val, y_val, color=["red"] * 59 + ["green"])
    done = thresher("value", "p.csv", "--validation", "w.csv", "--id", "name", "--owner", "who",
                    "--categorical", "color", "--radius", 0.5, "--out", "v.parquet", "--json",
                    "--report", "r.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pq.read_table("v.parquet")
    assert table.column_names == ["row", "id", *FINDINGS[1:], "owner"]
    document = json.loads(done.stdout)
    loaded = th.Valuation.load("v.parquet")
    assert document["by_owner"] == loaded.by_owner()
    assert document["record"]["encoder"]["columns"][3]["categories"] == ["blue", "red"]
    assert "1 validation point has a 'color' that no point has" in done.stderr
    assert "ann" in Path("r.html").read_text()


@pytest.mark.parametrize(
    ("method", "function"),
    [("knn", th.knn_shapley), ("zero-budget", th.zero_budget_score),
     ("leave-one-out", th.leave_one_out), ("data-banzhaf", th.data_banzhaf)],
)  # fmt: skip
def test_other_methods_give_values_and_ranks(data, method, function):
    radius = {"radius": 0.5} if method == "zero-budget" else {}
    some = {"knn": {"error": 0.2}, "data-banzhaf": {"evaluations": 40}}.get(method, {})
    options = [f"--{name}={entry}" for name, entry in (radius | some).items()]
    done = thresher(*VALUE, "--method", method, *options, "--out", "v.parquet",
                    "--report", "r.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pq.read_table("v.parquet")
    assert table.column_names[:5] == ["row", "label", "value", "rank", "percentile"]
    wanted = function(*data, **radius, **some)
    assert table.column("value").to_pylist() == wanted.values.tolist()


@pytest.mark.parametrize("semivalue", ["banzhaf", "leave-one-out", "beta(4, 1)"])
def test_other_semivalues_price_the_best_label_too(data, semivalue):
    valued = value_files(
        Settings("points.csv", validation="val.csv", radius=0.5, semivalue=semivalue)
    )
    kind = th.Beta(4, 1) if semivalue.startswith("beta") else semivalue
    counts = th.NeighborCounts(data[2], data[3], radius=0.5).add(data[0], data[1])
    prices = counts.price_list(kind)
    other = ["cat" if label == "dog" else "dog" for label in data[1]]
    for row in (0, WRONG, 119):
        worth = prices.values(data[0][[row]], [data[1][row]], label=other[row])[0]
        assert valued.findings.best_value[row] == pytest.approx(worth, abs=1e-12)


# Rows held out


def test_a_share_of_each_class_is_held_out_and_the_seed_repeats_it():
    labels = ["a"] * 70 + ["b"] * 20 + ["c"] * 9 + ["d"]
    out = hold_out(labels, 0.2, seed=3)
    counts = {name: int(out[[label == name for label in labels]].sum()) for name in "abcd"}
    assert counts == {"a": 14, "b": 4, "c": 2, "d": 0}
    assert hold_out(labels, 0.2, seed=3).tolist() == out.tolist()
    assert hold_out(labels, 0.2, seed=4).tolist() != out.tolist()


def test_rows_with_copies_are_not_held_out():
    """Held out, such a row would be valued by itself."""
    X, y = clouds(60, 0)
    X[30:] = X[:30]
    write_table("twins.csv", np.vstack([X, clouds(60, 2)[0]]), [*y, *clouds(60, 2)[1]])
    twins = find_twins(choose_columns(read_table("twins.csv"), label="y"))
    assert twins.tolist() == [True] * 60 + [False] * 60
    for seed in range(5):
        valued = value_files(Settings("twins.csv", holdout=0.25, seed=seed, radius=0.5))
        assert set(range(60)) <= set(valued.points.rows.tolist())
        assert len(valued.validation) == 30
    assert valued.record["validation"]["rows_with_copies"] == 60


def test_copies_differ_by_any_column():
    columns = choose_columns(
        read_table(put("a.csv", "x,z,c,y\n1,,red,a\n1.0,na,red,b\n1,0,red,a\n1,,blue,a\n-0,0,,b\n0,0,,b\n")),
        label="y", categorical=["c"],
    )  # fmt: skip
    assert find_twins(columns).tolist() == [True, True, False, False, True, True]


def test_results_of_a_table_held_out_name_its_own_rows(data):
    done = thresher("value", "points.csv", "--holdout", 0.25, "--radius", 0.5,
                    "--out", "v.csv", "--report", "r.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = csv.read_csv("v.csv").column("row").to_pylist()
    assert len(rows) == 90
    assert max(rows) > 90
    labels = csv.read_csv("v.csv").column("label").to_pylist()
    assert labels == [data[1][row] for row in rows]
    cleaned = thresher("clean", "points.csv", "--values", "v.csv", "--drop", "drop",
                       "--out", "c.csv")  # fmt: skip
    assert cleaned.returncode == 0, cleaned.stderr


def test_rare_classes_are_held_out_too():
    labels = ["a"] * 60 + ["rare"] * 4 + ["b"] * 36
    out = hold_out(labels, 0.1, seed=0)
    assert int(out[60:64].sum()) == 1
    assert not hold_out(["a"] * 9 + ["only"], 0.5, seed=0)[9]


def test_a_table_of_copies_is_pointed_out(data):
    X, y, _, _ = data
    write_table("twins.csv", np.vstack([X[:60], X]), [*y[:60], *y])
    done = thresher("value", "twins.csv", "--method", "tknn", "--out", "v.csv")
    assert "120 of 180 rows have copies" in done.stderr


@pytest.mark.parametrize("held_out", [True, False])
def test_rows_that_embed_held_out_are_no_trusted_judges(data, held_out):
    X, y, X_val, y_val = data
    about = json.dumps({"held_out": 0.1} if held_out else {})
    np.savez("both.npz", X=X, y=y, X_val=X_val, y_val=y_val, about=about)
    valued = value_files(Settings("both.npz", radius=0.5))
    valued.report("r.html")
    said = "rows of the same table that nobody checked" in Path("r.html").read_text()
    assert said == held_out
    assert ("held_out" in valued.record["validation"]) == held_out


# What is refused


def test_a_file_of_labels_is_an_input_like_others(data):
    X, y, X_val, y_val = data
    write_npy("p", X, y)
    write_npy("v", X_val, y_val)
    put("lab.csv", "\n".join(y) + "\n")
    command = ("value", "p.npy", "--validation", "v.npy", "--validation-label", "v-labels.npy",
               "--radius", 0.5, "--label", "lab.csv")  # fmt: skip
    for option in ("--out", "--report"):
        done = thresher(*command, option, "lab.csv", "--force")
        assert done.returncode == 1
        assert "this run already uses that file" in done.stderr
    done = thresher(*command, "--out", "o.csv", "--report", "o.csv.record.json", "--force")
    assert "this run already uses that file" in done.stderr
    assert thresher(*command, "--out", "o.parquet").returncode == 0
    about = json.loads(pq.read_schema("o.parquet").metadata[b"thresher"])
    digest = hashlib.sha256(Path("lab.csv").read_bytes()).hexdigest()
    assert about["points"]["label_digest"] == digest
