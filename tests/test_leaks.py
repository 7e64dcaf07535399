"""A column that repeats the label is named wherever labels are judged; useful columns never are."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pages import Page
from sklearn import datasets
from tabular import thresher

from thresher.findings.repeated_labels import LOOKED, find_leaks
from thresher.report import gather

KEEP = 1500  # rows of a table
PAPER = ("2dplanes", "apsfail", "click", "cpu", "creditcard", "fraud", "phoneme", "pol", "wind")
REASSURING = (
    "nothing needs|stands out as wrong|Looks good|Nothing stands out|finds nothing|as forecast"
)
FOLDER = os.environ.get("THRESHER_DATA")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# tables without a leak


def known(name):
    found = getattr(datasets, f"load_{name}")()
    return found.data, found.target


def some_irises(first, last):
    X, y = known("iris")
    rows = (y >= first) & (y <= last)
    return X[rows], y[rows] - first


def setosa_or_not():
    """Petals decide it, both of them."""
    X, y = known("iris")
    return X, (y > 0).astype(int)


def mushrooms(rows=2000):
    """One category tells 98.5 % of the labels, and so do all others together."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, rows)
    odor = np.where(y == 1, random.integers(0, 4, rows), random.integers(4, 6, rows))
    odor[random.random(rows) < 0.03] = 6
    others = [2 * y + random.integers(0, 2, rows) for _ in range(12)]
    wild = [np.where(random.random(rows) < 0.12, random.integers(0, 5, rows), x) for x in others]
    return np.column_stack([odor, *wild]).astype(float), y


def by_threshold(wrong=0.0, sensor=False):
    """The label says whether one number is positive; another one measures it less well."""
    random = np.random.default_rng(1)
    X = random.normal(size=(500, 4))
    y = (X[:, 0] > 0).astype(int)
    if sensor:
        X[:, 1] = X[:, 0] + 0.3 * random.normal(size=500)
    return X, y ^ (random.random(500) < wrong)


def loans():
    """A grade that is cut out of a rate."""
    random = np.random.default_rng(2)
    rate = 5 + 20 * random.random(2000)
    noise = random.normal(size=(2000, 5))
    return np.column_stack([rate, rate + noise[:, 0] * 4, noise]), np.digitize(
        rate, [8, 11, 14, 18]
    )


def gaps(share=0.3):
    X, y = known("breast_cancer")
    X = X.copy()
    X[np.random.default_rng(3).random(X.shape) < share] = np.nan
    return X, y


def sparse_flags():
    """Rare flags, and a rare class that one of them hits by chance."""
    random = np.random.default_rng(4)
    X = (random.random((300, 200)) < 0.01).astype(float)
    y = np.zeros(300, int)
    y[:2] = 1
    X[:, 0] = y
    return X, y


def wide():
    random = np.random.default_rng(5)
    return random.normal(size=(60, 2000)), random.integers(0, 2, 60)


def sentinels():
    X, y = known("wine")
    X = X.copy()
    X[::7, 0], X[::11, 3] = 999999999, np.inf
    return X, y


CLEAN = {
    **{
        name: (lambda name=name: known(name))
        for name in ("iris", "wine", "breast_cancer", "digits")
    },
    "setosa": setosa_or_not,
    "two irises": lambda: some_irises(1, 2),
    "mushrooms": mushrooms,
    "threshold": by_threshold,
    "threshold, wrong labels": lambda: by_threshold(0.05),
    "threshold, second sensor": lambda: by_threshold(sensor=True),
    "loans": loans,
    "gaps": gaps,
    "sparse flags": sparse_flags,
    "wide": wide,
    "sentinels": sentinels,
    "overlapping": lambda: datasets.make_classification(1000, 20, n_informative=5, random_state=0),
    "easy": lambda: datasets.make_classification(
        1000, 20, n_informative=5, class_sep=3, random_state=0
    ),
    "moons": lambda: datasets.make_moons(500, noise=0.2, random_state=0),
    "blobs": lambda: datasets.make_blobs(500, centers=4, n_features=3, random_state=0)[:2],
}


def cut(X, y):
    """At most 1,500 rows, and labels as codes."""
    rows = np.random.default_rng(0).permutation(len(y))[:KEEP]
    return X[rows].astype(float), np.unique(np.asarray(y)[rows], return_inverse=True)[1]


def with_wrong(y, share, seed=5):
    random, classes = np.random.default_rng(seed), int(y.max()) + 1
    wrong = random.random(len(y)) < share
    return np.where(wrong, y + random.integers(1, classes, len(y)), y) % classes


@pytest.mark.parametrize("share", [0, 0.06])
@pytest.mark.parametrize("name", CLEAN)
def test_no_useful_column_is_called_a_leak(name, share):
    X, y = cut(*CLEAN[name]())
    assert find_leaks(X, with_wrong(y, share)) == []


@pytest.mark.skipif(FOLDER is None, reason="needs the data sets of the paper")
@pytest.mark.parametrize("share", [0, 0.06])
@pytest.mark.parametrize("name", PAPER)
def test_no_column_of_the_papers_sets_is_called_a_leak(name, share):
    found = np.load(Path(FOLDER, f"{name}.npz"), allow_pickle=False)
    X, y = cut(*(found[key] for key in found.files[:2]))
    assert find_leaks(X, with_wrong(y, share)) == []


# leaks


def renamed(y, random):
    return random.permutation(int(y.max()) + 1)[y].astype(float)


def spread(y, random):
    """Three values for each label, in no order."""
    classes = int(y.max()) + 1
    return random.permutation(3 * classes)[3 * y + random.integers(0, 3, len(y))].astype(float)


def copied(y, random, share=0.97):
    return np.where(random.random(len(y)) < share, y, random.integers(0, int(y.max()) + 1, len(y)))


def with_gaps(y, random, share=0.4):
    return np.where(random.random(len(y)) < share, np.nan, renamed(y, random))


LEAKS = {
    "code": renamed,
    "many to one": spread,
    "97 % copy": copied,
    "small noise": lambda y, random: y + 0.15 * random.normal(size=len(y)),
    "gaps": with_gaps,
    "only where it holds": lambda y, _: np.where(y == 0, np.nan, y).astype(float),
}


@pytest.mark.parametrize("kind", LEAKS)
@pytest.mark.parametrize(
    "name", ["iris", "wine", "breast_cancer", "digits", "overlapping", "moons"]
)
def test_a_leak_is_found_in_a_table_with_wrong_labels(name, kind):
    X, y = cut(*CLEAN[name]())
    labels = with_wrong(y, 0.06)
    leak = LEAKS[kind](labels, np.random.default_rng(1))
    found = find_leaks(np.column_stack([X, leak, X[:, 0]]), labels)
    assert [each.column for each in found] == [X.shape[1]]
    assert found[0].told > 0.9


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "breast_cancer"])
def test_a_column_of_codes_is_named_even_where_no_label_is_wrong(name):
    X, y = known(name)
    for leak in (y, renamed(y, np.random.default_rng(2))):
        found = find_leaks(np.column_stack([X, leak]), y)
        assert [(each.column, each.repeats) for each in found] == [(X.shape[1], True)]


def test_several_leaks_do_not_hide_each_other():
    X, y = known("breast_cancer")
    labels, random = with_wrong(y, 0.06), np.random.default_rng(3)
    leaks = [labels, spread(labels, random), copied(labels, random), labels + 0.1 * random.normal(size=len(y))]  # fmt: skip
    found = find_leaks(np.column_stack([*leaks, X]), labels)
    assert [each.column for each in found] == [0, 1, 2, 3]


def test_a_large_table_is_judged_by_some_of_its_rows():
    random = np.random.default_rng(4)
    X = random.normal(size=(3 * LOOKED, 5))
    y = (X[:, 0] + X[:, 1] + random.normal(size=len(X)) > 0).astype(int)
    assert find_leaks(X, y) == []
    found = find_leaks(np.column_stack([X, spread(y, random)]), y)
    assert [(each.column, each.rows) for each in found] == [(5, LOOKED)]


TARGETS = {
    "copied": lambda y, _: y,
    "scaled": lambda y, _: 32 - 1.8 * y,
    "rounded": lambda y, _: np.round(y / np.ptp(y), 1),
    "noisy": lambda y, random: y + 0.01 * y.std() * random.normal(size=len(y)),
    "logarithm": lambda y, _: np.log(y - y.min() + 1),
    "gaps": lambda y, random: np.where(random.random(len(y)) < 0.3, np.nan, y),
    "97 % copy": lambda y, random: np.where(random.random(len(y)) < 0.97, y, random.permutation(y)),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_a_copy_of_the_target_is_found(kind):
    X, y = known("diabetes")
    y = y + np.random.default_rng(0).random(len(y))
    leak = TARGETS[kind](y, np.random.default_rng(1))
    found = find_leaks(np.column_stack([X, leak]), y, numbers=True)
    assert [each.column for each in found] == [X.shape[1]]


NUMBERS = {
    "diabetes": lambda: known("diabetes"),
    "linnerud": lambda: (known("linnerud")[0], known("linnerud")[1][:, 0]),
    **{
        f"friedman{i}": (
            lambda i=i: getattr(datasets, f"make_friedman{i}")(500, random_state=0, noise=1.0)
        )
        for i in (1, 2, 3)
    },
    "linear": lambda: datasets.make_regression(400, 6, n_informative=2, noise=5, random_state=0),
    "one column": lambda: datasets.make_regression(
        400, 6, n_informative=1, noise=9, random_state=0
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_no_useful_column_of_a_regression_is_called_a_leak(name):
    assert find_leaks(*NUMBERS[name](), numbers=True) == []


# what is said


def table(leak="y_code", wrong=0.05):
    X, y = known("breast_cancer")
    y = with_wrong(y, wrong)
    columns = {f"f{place}": X[:, place] for place in range(10)}
    return columns | {leak: 1 - y, "y": np.array(["benign", "malignant"])[y]}


def write(name, columns):
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    Path(name).write_text("\n".join([",".join(columns), *lines]) + "\n")


def said_by(*words):
    done = thresher(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_inspect_value_report_and_json_name_a_leak_and_reassure_nobody():
    write("a.csv", table())
    inspected = said_by("inspect", "a.csv")
    assert "hint: column 'y_code' repeats the label (one to one)" in inspected
    assert "ready: thresher value a.csv --ignore y_code\n" in inspected
    assert list(json.loads(said_by("inspect", "a.csv", "--json"))["leaks"]) == ["y_code"]
    valued = said_by("value", "a.csv", "--out", "v.csv", "--report", "r.html")
    assert "so a wrong label cannot stand out: leave it out with --ignore y_code\n" in valued
    assert "to act on it" not in valued
    assert "wrong labels expected: unknown" in valued
    page = Path("r.html").read_text()
    for said in (inspected, valued, page):
        assert not re.search(REASSURING, said), re.search(REASSURING, said)
    shown = Page(page)
    assert "Column 'y_code' repeats the label" in shown.said("cautions")
    assert "Nothing can be said about wrong labels: column 'y_code'" in shown.said("verdict")
    assert "--ignore" in shown.said("todo")
    told = json.loads(thresher("value", "a.csv", "--json").stdout)
    assert told["leaks"]["y_code"]["repeats"]
    assert told["wrong_labels"] is None
    line = re.search("without it: (.*)\n", valued)[1]
    again = said_by(*shlex.split(line)[1:])
    assert "repeats" not in again
    assert int(re.search("expected: about (\\d+)", again)[1]) > 10


def test_a_header_with_the_label_twice_is_named():
    columns = table("y")
    header, *lines = ",".join([*(f"f{i}" for i in range(10)), "y", "y"]), *(
        ",".join(map(str, row)) for row in zip(*list(columns.values())[:10], columns["y"], columns["y"], strict=True)
    )  # fmt: skip
    Path("twice.csv").write_text("\n".join([header, *lines]) + "\n")
    for verb in ("inspect", "value"):
        said = said_by(verb, "twice.csv")
        assert "column 'y.2' repeats the label (one to one)" in said
        assert "--ignore y.2" in said
        assert not re.search(REASSURING, said)


def test_a_leak_that_may_be_a_feature_is_named_but_kept_by_inspects_line():
    columns = table()
    y, random = columns.pop("y_code"), np.random.default_rng(1)
    columns = {"grade": np.array(list("abcdef"))[spread(y, random).astype(int)], **columns}
    write("a.csv", columns)
    said = said_by("inspect", "a.csv")
    assert "column 'grade' nearly decides the label (it tells 100 % of all labels, all" in said
    assert "if it was made from the label, leave it out with --ignore grade" in said
    assert "this line values it all the same: thresher value a.csv\n" in said


def test_an_only_column_that_repeats_the_label_is_named():
    columns = table()
    write("a.csv", {name: columns[name] for name in ("y_code", "y")})
    said = said_by("value", "a.csv", "--out", "v.csv")
    assert "column 'y_code' repeats the label (one to one)" in said
    assert not re.search(REASSURING, said)
    assert "this line values it all the same" in said_by("inspect", "a.csv")


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "xlsx", "csv.gz"])
def test_leaks_are_found_in_every_kind_of_file(kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table())
    write = {"parquet": frame.to_parquet, "xlsx": frame.to_excel, "csv.gz": frame.to_csv,
             "jsonl": lambda path, **_: frame.to_json(path, orient="records", lines=True)}  # fmt: skip
    write[kind](f"a.{kind}", index=False)
    for verb in ("inspect", "value"):
        assert "column 'y_code' repeats the label" in said_by(verb, f"a.{kind}")


@pytest.mark.parametrize("method", ["tknn", "knn", "leave-one-out"])
def test_leaks_are_named_by_other_methods_too(method):
    write("a.csv", table())
    near = () if method == "leave-one-out" else ("--metric", "euclidean")
    more = () if method == "leave-one-out" else ("--standardize",)
    said = said_by("value", "a.csv", "--method", method, *near, *more, "--out", "v.csv", "--report", "r.html")  # fmt: skip
    assert "column 'y_code' repeats the label" in said
    assert not re.search(REASSURING, said)
    assert not re.search(REASSURING, Path("r.html").read_text())


def test_a_leak_in_files_larger_than_memory_is_found_by_some_rows_and_says_so():
    columns = {name: np.tile(entries, 4) for name, entries in table().items()}
    pa.parquet.write_table(pa.table(columns), "p.parquet")
    pa.parquet.write_table(
        pa.table({x: entries[:200] for x, entries in columns.items()}), "v.parquet"
    )
    files = "p.parquet", "--validation", "v.parquet", "--metric", "euclidean", "--standardize"
    said = said_by("value", *files, "--memory", "2GB", "--out", "o.parquet")
    assert "column 'y_code' repeats the label (one to one, judged by 1,224 rows)" in said
    line = re.search("without it: (.*)\n", said)[1]
    assert "repeats" not in said_by(*shlex.split(line)[1:])
    assert not re.search(REASSURING, said)


def test_a_copied_target_is_named():
    X, y = known("diabetes")
    columns = {f"f{place}": X[:, place] for place in range(4)}
    write("a.csv", columns | {"rounded": np.round(y / 10), "price": y + 0.25})
    said = said_by("value", "a.csv", "--label", "price", "--task", "regression", "--out", "v.csv",
                   "--report", "r.html")  # fmt: skip
    assert "column 'rounded' nearly decides the target (a rank correlation of 0.99" in said
    assert "leave it out with --ignore rounded" in said
    page = Page(Path("r.html").read_text())
    assert "Nothing can be said about wrong labels: column 'rounded'" in page.said("verdict")


def test_a_page_made_in_python_can_be_told_of_a_leak(rng):
    import thresher as th

    X, y = rng.normal(size=(60, 2)), ["a", "b"] * 30
    valuation, findings = th.forest_findings(X, y, trees=10)
    found = gather(valuation, X, y, findings=findings, leak="column 'z' repeats the label")
    assert found.headline.sentence == "Nothing is known yet: column 'z' repeats the label."
    assert found.suggestions.forecast is None
