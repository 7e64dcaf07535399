"""What messages quote: nothing from files or arguments does something to a terminal or a page."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pages import Page
from tabular import put, thresher

import thresher as th
from thresher.errors import either, in_options, message_of, option, plain_text
from thresher.inputs.spelling import missing
from thresher.report import gather, render
from thresher.tables.reader import read_table

COLOR, TURNED, LINES = "\x1b[31mred\x1b[0m", "abc\u202edef", "two\nlines\r\x00\x07"
NASTY = [COLOR, TURNED, LINES, "\udc80", "\u2028\x9b31m"]


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def check_plain(text, most=10_000):
    assert len(text) < most
    for line in text.splitlines():
        assert line.isprintable(), ascii(line)


@given(text=st.text(max_size=300), times=st.sampled_from([1, 50]))
@example(text="'" + "a b" * 50 + "'", times=1)
@example(text="it's 'x' and \"" + "y" * 500, times=50)
def test_a_message_is_one_printable_line_of_bounded_length(text, times):
    said = plain_text(text * times)
    assert said.isprintable()
    assert len(said) <= 10 * 2100
    if text.isprintable() and len(text * times) <= 1000:
        assert said == text * times


@pytest.mark.parametrize("text", ["'{}'", '"{}"', "{}"])
@pytest.mark.parametrize("label", ["x" * 5_000_000, "x y " * 1_250_000])
def test_what_is_long_is_cut_and_the_way_out_stays(text, label):
    said = str(th.InputError(f"y has the label {text.format(label)} in row 3: drop that row"))
    assert said.startswith("y has the label ")
    assert said.endswith("in row 3: drop that row")
    assert "characters)" in said
    assert len(said) < 2200


@pytest.mark.parametrize("nasty", NASTY)
def test_errors_warnings_and_results_are_printable(nasty, tmp_path):
    check_plain(str(th.InputError(f"no file {nasty}")))
    check_plain(str(th.ExtraError(f"no file {nasty}")))
    check_plain(str(th.BudgetError(nasty)))
    check_plain(str(missing(nasty, "column", nasty, [nasty + "a"])))
    with pytest.warns(th.LabelWarning) as caught:
        warnings.warn(nasty, th.LabelWarning, stacklevel=1)
    check_plain(str(caught[0].message))
    valuation = th.Valuation(np.array([0.5]), nasty, {"classes": [nasty]}, 0.5, 0.0)
    check_plain(repr(valuation))
    check_plain(valuation._repr_html_())
    with pytest.raises(th.InputError) as refused:
        read_table(f"{nasty.replace(chr(0), '')}.csv")
    check_plain(str(refused.value))


@pytest.mark.parametrize("nasty", [COLOR, TURNED, "two\nlines"])
def test_results_that_know_files_are_printable(nasty, tmp_path):
    table = put(f"{nasty}.csv", "x,y\n1,a\n2,b\n")
    check_plain(repr(th.Scan(str(table), label="y")))
    with th.Ledger.create(tmp_path / f"{nasty}.db", epsilon=1, delta=0) as ledger:
        check_plain(repr(ledger))


@pytest.mark.parametrize(
    ("message", "python", "command"),
    [
        (option("held_out"), "held_out", "--held-out"),
        (option("radius", 0.5), "radius=0.5", "--radius 0.5"),
        (option("force", value=True), "force=True", "--force"),
        (option("metric", "euclidean"), "metric='euclidean'", "--metric euclidean"),
        (option("id", "row id"), "id='row id'", "--id 'row id'"),
        (option("ignore", ["row id", "x"]), "ignore=['row id', 'x']", "--ignore 'row id,x'"),
        (option("ignore", [""]), "ignore=['']", "--ignore ''"),
        (either("owners=", option("owner")), "owners=", "--owner"),
        (option("label", "caf\u00e9\ue002\n"), "label='caf\u00e9\\ue002\\n'", None),
    ],
)
def test_a_message_names_arguments_in_python_and_options_in_the_command(message, python, command):
    for kind in (th.InputError, th.BudgetError, th.LabelWarning):
        refused = kind(f"a.csv is there: use {message}, please")
        again = th.InputError(f"partition 3: {message_of(refused)}")
        assert str(again) == f"partition 3: a.csv is there: use {python}, please"
        if command is not None:
            shown = in_options(message_of(again))
            assert shown == f"partition 3: a.csv is there: use {command}, please"


def nasty_table(name, labels, *, header="x1,x2,y", rows=60, seed=0):
    random = np.random.default_rng(seed)
    codes = random.integers(0, len(labels), rows)
    X = random.normal(size=(rows, 2)) + 3 * np.eye(2)[codes % 2]
    lines = [f'{a},{b},"{labels[code]}"' for (a, b), code in zip(X.tolist(), codes, strict=True)]
    return put(name, "\n".join([header, *lines]) + "\n")


@pytest.mark.parametrize("labels", [[COLOR, TURNED], ["a" * 1_000_000, "two\nlines\x07"]])
def test_the_command_prints_labels_harmlessly(labels):
    nasty_table("p.csv", labels)
    nasty_table("v.csv", labels, seed=1)
    done = thresher(
        "value", "p.csv", "--validation", "v.csv", "--method", "tknn", "--out", "o.parquet"
    )
    assert done.returncode == 0, done.stderr[:1000]
    assert "lowest values (the first row of data is row 0):" in done.stderr
    check_plain(done.stderr)
    odd = thresher("value", "p.csv", "--validation", "v.csv", "--relabel", COLOR)
    assert odd.returncode == 2
    check_plain(odd.stderr)


@pytest.mark.parametrize(
    "arguments",
    [("value", f"{COLOR}.csv"), ("value", "p.csv", "--label", COLOR), ("value", f"{COLOR}*.csv"),
     ("clean", "p.csv", "--drop", f"rows:{TURNED}", "--out", "c.csv"),
     ("clean", "p.csv", "--drop", "x" * 100_000, "--out", "c.csv"),
     ("ledger", "show", f"{LINES[:9]}.db"), (COLOR,)],
)  # fmt: skip
def test_the_command_quotes_arguments_harmlessly(arguments):
    nasty_table("p.csv", ["a", "b"], header=f'"{COLOR}",x2,y')
    done = thresher(*arguments)
    assert done.returncode in {1, 2}
    assert done.stdout == ""
    check_plain(done.stderr, most=5000)


def test_the_report_shows_what_does_not_show_and_cuts_what_is_long():
    random = np.random.default_rng(0)
    labels = [f"a\x00{COLOR}", TURNED, "m" * 1_000_000, "m" * 1_000_001]
    X, X_val = random.normal(size=(120, 2)), random.normal(size=(60, 2))
    y, y_val = ([labels[i % 4] for i in range(n)] for n in (120, 60))
    ids = [f"{TURNED}{i}" for i in range(120)]
    owners = ["o" * 100_000 + str(i % 3) for i in range(120)]
    valuation = th.tknn_shapley(X, y, X_val, y_val, radius=0.5, owners=owners)
    text = render(gather(valuation, X, y, X_val, y_val, ids=ids))
    document = r'<script type="application/json" id="(\S+)">(.*?)</script>'
    documents = {name: json.loads(found) for name, found in re.findall(document, text, re.DOTALL)}
    shown = re.sub(document, "", text, flags=re.DOTALL)
    shown += json.dumps(documents["review-data"]["names"], ensure_ascii=False)
    shown += "".join(row["name"] for row in documents["review-data"]["rows"])
    for character in ("\u202e", "\x00", "\x1b"):
        assert character not in shown
    assert "\\u202e" in shown
    assert len(shown) < 1_000_000
    assert sorted(row[0][:3] for row in Page(text).table("matrix")) == ["a\\x", "abc", "mmm", "mmm"]
    assert documents["evidence"]["points"] == 120


def test_arrow_tables_of_nasty_columns_are_refused_harmlessly():
    with pytest.raises(th.InputError) as refused:
        th.tknn_shapley(pa.table({COLOR: ["a"]}), ["a"], pa.table({COLOR: ["a"]}), ["a"], radius=1)
    check_plain(str(refused.value))
