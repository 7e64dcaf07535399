"""Hints: ids among the features, labels that may be missing, labels written in two ways."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from pages import Page
from tabular import put, thresher

import thresher as th
from thresher.errors import in_options
from thresher.runs.hints import label_hints
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings

ROWS = 60


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, *, rows=ROWS, labels=("cat", "dog"), seed=0, **columns):
    """A table of two features, labels that fit them, and more columns."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, len(labels), rows)
    X = random.normal(size=(rows, 2)) + 3 * np.eye(2)[codes % 2]
    table = {name: entries[:rows] for name, entries in columns.items()}
    table |= {"a": X[:, 0].tolist(), "b": X[:, 1].tolist(), "y": [labels[x] for x in codes]}
    lines = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    put(name, "\n".join([",".join(table), *lines]) + "\n")


def hints_of(file, **options):
    """The hints about a run, as the command says them."""
    return [in_options(hint) for hint in value_files(Settings(file, **options)).hints()]


RANDOM = np.random.default_rng(3)
IDS = {
    "counted": ("nr", list(range(1000, 1000 + ROWS))),
    "backwards": ("t", list(range(5 * ROWS, 0, -5))),
    "shuffled": ("case", RANDOM.permutation(ROWS).tolist()),
    "scattered": ("patient_id", RANDOM.choice(10**9, ROWS, replace=False).tolist()),
    "joined": ("patientid", RANDOM.choice(10**9, ROWS, replace=False).tolist()),
    "copied": ("nr", [*range(ROWS - 1), ROWS - 2]),
    "as floats": ("nr", [float(i) for i in range(ROWS)]),
}
FEATURES = {
    "counts": ("visits", RANDOM.integers(0, 30, ROWS).tolist()),
    "amounts": ("price", RANDOM.choice(10**9, ROWS, replace=False).tolist()),
    "a word": ("liquid", RANDOM.choice(10**9, ROWS, replace=False).tolist()),
    "measures": ("height", np.sort(RANDOM.normal(size=ROWS)).tolist()),
    "constant": ("one", [1] * ROWS),
}


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", IDS)
def test_a_column_of_ids_is_pointed_out_with_the_way_out(kind, standardize):
    name, ids = IDS[kind]
    write("p.csv", **{name: ids})
    write("v.csv", seed=1, **{name: [x + 10**6 for x in ids]})
    options = {"validation": "v.csv", "metric": "euclidean", "radius": 1e9}
    hints = hints_of("p.csv", standardize=standardize, **options)
    assert len(hints) == 1
    assert hints[0].startswith(f"column '{name}' looks like an id")
    assert hints[0].endswith(f"name it with --id {name}, or leave it out with --ignore {name}")
    for way in ({"id": name}, {"ignore": (name,)}):
        if kind != "copied" or "ignore" in way:  # ids are distinct
            assert not hints_of("p.csv", **options, **way)


@pytest.mark.parametrize("kind", FEATURES)
def test_features_are_not_taken_for_ids(kind):
    name, entries = FEATURES[kind]
    write("p.csv", **{name: entries})
    write("v.csv", seed=1, **{name: entries})
    settings = Settings("p.csv", validation="v.csv", metric="euclidean", radius=1e9)
    assert not any("looks like an id" in hint for hint in value_files(settings).hints())


def test_where_ids_leave_nobody_near_the_command_and_the_report_say_why():
    write("p.csv", visit=list(range(ROWS)))
    write("v.csv", seed=1, visit=list(range(5000, 5000 + ROWS)))
    run = ("value", "p.csv", "--validation", "v.csv", "--method", "tknn")
    done = thresher(*run, "--out", "o.csv", "--report", "r.html")
    assert done.returncode == 0, done.stderr
    assert f"{ROWS} outlier" in done.stderr
    assert re.search(r"makes up [89]\d % of the distances", done.stderr)
    assert "name it with --id visit, or leave it out with --ignore visit" in done.stderr
    assert "or auto" not in done.stderr  # it was auto
    assert "larger --radius" not in done.stderr
    cautions = Page(Path("r.html").read_text()).said("cautions")
    assert "Column 'visit' looks like an id" in cautions
    better = thresher(*run, "--id", "visit", "--out", "better.csv")
    assert " 0 outlier" in better.stderr
    parts = thresher(*run, "--memory", "64GB", "--out", "parts.csv")
    assert "column 'visit' looks like an id" in parts.stderr


def test_a_radius_that_reaches_nobody_is_told_by_what_was_given():
    write("p.csv")
    write("v.csv", seed=1)
    options = {"validation": "v.csv", "metric": "euclidean"}
    with pytest.warns(th.ReachWarning):
        hints = hints_of("p.csv", radius=1e-9, **options)
    assert hints == ["radius 1e-09 reaches no point: use a larger --radius, or auto"]
    lines = Path("v.csv").read_text().splitlines()
    moved = [",".join([*(str(float(x) + 1e6) for x in line.split(",")[:2]), line.split(",")[2]])
             for line in lines[1:]]  # fmt: skip
    put("far.csv", "\n".join([lines[0], *moved]) + "\n")
    with pytest.warns(th.ReachWarning):
        hints = hints_of("p.csv", **(options | {"validation": "far.csv"}))
    assert len(hints) == 1
    assert "are both from one source" in hints[0]
    assert "auto" not in hints[0]


@pytest.mark.parametrize(
    "word", ["NaN", "NA", "n/a", "NULL", "None", "<NA>", "#N/A", "-", '""', " nan ", "?"]
)
def test_a_label_that_may_be_missing_is_pointed_out_and_may_be_confirmed(word):
    write("p.csv", labels=("cat", word))
    write("v.csv", labels=("cat", word), seed=1)
    hints = hints_of("p.csv", validation="v.csv")
    assert len(hints) == 1
    assert repr(word.strip('"')) in hints[0]
    assert "fill in or drop the rows" in hints[0]
    assert "--keep-na" in hints[0]
    assert not hints_of("p.csv", validation="v.csv", keep_na=True)


def test_missing_labels_are_told_by_every_way_of_running_and_in_the_report():
    write("p.csv", labels=("cat", "dog"))
    write("v.csv", labels=("cat", "dog", "NULL"), seed=1)  # of validation points alone
    run = ("value", "p.csv", "--validation", "v.csv", "--out")
    for options in (("o.csv", "--report", "r.html"), ("parts.csv", "--memory", "64GB")):
        done = thresher(*run, *options)
        assert done.returncode == 0, done.stderr
        assert "a class is made of each of these labels: 'NULL'" in done.stderr
    assert "'NULL'" in Page(Path("r.html").read_text()).said("cautions")
    assert "'NULL';" not in thresher(*run, "k.csv", "--keep-na").stderr


@pytest.mark.parametrize("word", ["NA", "cat"])
def test_a_release_tells_of_missing_labels_of_the_public_set_alone(word):
    pytest.importorskip("opendp")
    write("p.csv", labels=("cat", "dog", "NULL"))
    write("v.csv", labels=("cat", "dog", word), seed=1)
    th.Ledger.create("l.db", epsilon=1, delta=1e-5)
    budget = ("--epsilon", 1, "--delta", 1e-5, "--ledger", "l.db", "--out-prices", "p.json")
    done = thresher("release", "p.csv", "--validation", "v.csv", *budget)
    assert done.returncode == 0, done.stderr
    told = "hint: in v.csv a class is made of each of these labels: 'NA'; fill in or drop the rows"
    assert (told in done.stderr) == (word == "NA")
    assert "NULL" not in done.stderr


PAIRS = [
    ("caf\u00e9", "cafe\u0301"), ("cat", "Cat"), ("cat", "cat "), ("1", "\uff11"), ("cat", "cat\u200b"),
    ("big cat", "big  cat"), ("01", "1"), ("1.0", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_labels_of_which_some_match_are_told_with_both_forms(one, other):
    hints = label_hints([one, "dog"], [other, "dog"])
    both = hints[0].split(": ")[1]
    assert "different classes" in hints[0]
    first, second = both.split(", ")
    assert (eval(first), eval(second)) == (one, other)  # noqa: S307
    assert first != second
    with pytest.warns(th.LabelWarning, match="write some labels differently"):
        th.tknn_shapley([[0.0], [1.0]], [one, "dog"], [[0.1], [0.9]], [other, "dog"],
                        radius=1, metric="euclidean")  # fmt: skip


@pytest.mark.parametrize(
    ("y", "y_val"),
    [([1, "2", 3], ["1", "2", 3]), ([True, "x"], ["True", "x"]), ([1.0, 2], ["1", 2])],
)
def test_labels_that_differ_in_type_are_told(y, y_val):
    X = np.arange(len(y), dtype=float)[:, None]
    by_distance, classes = {"metric": "euclidean"}, list(dict.fromkeys([*y, *y_val]))
    for function, options in (
        (th.tknn_shapley, {"radius": 1, **by_distance}),
        (th.knn_shapley, {"k": 1, **by_distance}),
        (th.zero_budget_score, {"radius": 1, **by_distance}),
        (th.forest_shapley, {"trees": 2}),
        (th.leaf_shapley, {}),
    ):
        X_val = X if function is th.leaf_shapley else X + 0.1
        with pytest.warns(th.LabelWarning, match="write some labels differently") as caught:
            function(X, y, X_val, y_val, **options)
        assert [each.filename for each in caught] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(X, y, X_val, y_val, **options, classes=classes)


def test_labels_that_both_sides_have_need_no_warning():
    X = [[0.0], [1.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = th.tknn_shapley(
            X, ["cat", "Cat"], [[0.1], [0.9]], ["Cat", "cat"], radius=1, metric="euclidean"
        )
        th.tknn_shapley(X, [1, 2], [[0.1], [0.9]], [1.0, 3.0], radius=1, metric="euclidean")
    assert len(found) == 2


def test_files_in_which_some_labels_match_are_told_once():
    write("p.csv", labels=("cat", "dog"))
    write("v.csv", labels=("cat", "Dog "), seed=1)
    done = thresher("value", "p.csv", "--validation", "v.csv", "--out", "o.csv")
    assert done.returncode == 0, done.stderr
    assert "'dog', 'Dog ': write them alike" in done.stderr
    assert done.stderr.count("'Dog '") == 2  # and that no point has it
    assert "warning" not in done.stderr
