"""Scaling: trimmed means, ranks, categories that weigh as much as one number, however rows are cut."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabular import put, thresher

from thresher.errors import InputError, in_options
from thresher.runs.hints import distance_shares, id_hints, reach_hints
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings
from thresher.tables import scaling as scaling_module
from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder
from thresher.tables.scaling import LEAST_ROWS, Sample, rank, row_marks, rows_kept, unrank

RANDOM = np.random.default_rng(5)


def columns(categorical=(), **entries):
    rows = len(next(iter(entries.values())))
    return Columns(tuple(range(rows)), pa.table(entries), categorical=categorical)


def scaled(kind, categorical=(), **entries):
    table = columns(categorical, **entries)
    encoder = Encoder.fit(table, standardize=True, scaling=kind)
    return encoder, encoder.transform(table)


def test_robust_scaling_is_by_mean_and_deviation_of_the_rest():
    x = RANDOM.normal(5, 3, 1000)
    x[::200] *= 1e6  # five of the thousand rows
    encoder, X = scaled("robust", x=x)
    rest = np.sort(x)[5:-5]
    np.testing.assert_allclose(encoder.features[0].means, rest.mean(), rtol=1e-12)
    np.testing.assert_allclose(encoder.features[0].deviations, rest.std(), rtol=1e-12)
    usual = np.abs(x) < 1e3
    assert 0.9 < X[usual, 0].std() < 1.1
    assert np.abs(X[~usual, 0]).min() > 1e3  # wild rows stay wild
    assert scaled("plain", x=x)[1][usual, 0].std() < 1e-3


def test_few_rows_are_all_taken_and_a_rare_number_is_not_trimmed_away():
    x = RANDOM.normal(size=199)
    robust, plain = (scaled(kind, x=x)[0].features[0] for kind in ("robust", "plain"))
    np.testing.assert_allclose(robust.deviations, plain.deviations, rtol=1e-12)
    rare = np.zeros(1000)
    rare[:3] = 1.0
    np.testing.assert_allclose(scaled("robust", x=rare)[1].std(), 1, rtol=1e-9)
    assert scaled("robust", x=[0.1] * 300)[1].tolist() == [[0.0]] * 300


@pytest.mark.parametrize("kind", ["robust", "ranks"])
def test_a_category_weighs_as_much_as_one_number(kind):
    city = RANDOM.choice([f"c{i}" for i in range(40)], 2000).tolist()
    _, X = scaled(kind, categorical=("city",), x=RANDOM.normal(size=2000), city=city)
    np.testing.assert_allclose(X[:, 1:].var(axis=0).sum(), 1, rtol=1e-9)
    assert 0.9 < X[:, 0].var() < 1.15
    _, plain = scaled("plain", categorical=("city",), x=RANDOM.normal(size=2000), city=city)
    np.testing.assert_allclose(plain[:, 1:].var(axis=0).sum(), 40, rtol=1e-9)


def test_ranks_depend_on_the_order_alone():
    x = RANDOM.normal(size=101)  # as many rows as knots: no rank is interpolated
    _, X = scaled("ranks", x=x)
    _, same = scaled("ranks", x=np.exp(3 * x))
    np.testing.assert_allclose(X, same, atol=1e-12)
    order = np.argsort(np.argsort(x))
    np.testing.assert_allclose(X[:, 0], (order - 50) / np.std(order), atol=1e-12)


@given(
    knots=st.lists(st.integers(-9, 9), min_size=1, max_size=9),
    numbers=st.lists(st.integers(-20, 20), max_size=9),
)
def test_ranks_rise_with_the_numbers_and_lead_back_to_them(knots, numbers):
    numbers = np.sort(np.array([*numbers, *knots], float))
    ranks = rank(numbers, sorted(knots))
    assert (np.diff(ranks) >= 0).all()
    assert ranks.min() >= 0
    assert ranks.max() <= len(knots) - 1
    inside = np.clip(numbers, min(knots), max(knots))
    np.testing.assert_allclose(unrank(ranks, sorted(knots)), inside, atol=1e-12)


@pytest.mark.parametrize("kind", scaling_module.SCALINGS)
def test_the_encoder_is_the_same_however_rows_are_cut(kind, monkeypatch):
    monkeypatch.setattr(scaling_module, "LEAST_ROWS", 512)
    monkeypatch.setattr(scaling_module, "MOST_NUMBERS", 1)
    table = pa.table(
        {
            "wild": RANDOM.standard_cauchy(9000),
            "whole": RANDOM.integers(0, 9, 9000),
            "kind": RANDOM.choice(["b", "a", "c"], 9000),
        }
    )
    whole = Columns(tuple(range(9000)), table, categorical=("kind",))
    wanted = Encoder.fit(whole, standardize=True, scaling=kind)
    for cuts in ([0, 1, 5, 2000, 8999, 9000], range(0, 9001, 300)):
        parts = [
            Columns(tuple(range(hi - lo)), table.slice(lo, hi - lo), categorical=("kind",))
            for lo, hi in pairwise(cuts)
        ]
        got = Encoder.fit_parts(iter(parts), standardize=True, scaling=kind)
        assert got.features == wanted.features
    again = Encoder.from_record(json.loads(json.dumps(wanted.describe())))
    assert again == wanted
    assert again.transform(whole).tobytes() == wanted.transform(whole).tobytes()


def test_a_sample_is_no_more_than_asked_for_and_like_all_rows():
    rows = 50_000
    sample = Sample(most=4096)
    for lo in range(0, rows, 1000):
        sample.add(np.arange(lo, lo + 1000.0), row_marks(lo, 1000))
    found = sample.sorted()
    assert 2048 < len(found) <= 4096
    shares = np.histogram(found, bins=10, range=(0, rows))[0] / len(found)
    assert np.abs(shares - 0.1).max() < 0.025  # five deviations of a share of 2,048 rows
    assert rows_kept(1) > 10**6
    assert rows_kept(10**6) == LEAST_ROWS


def test_records_say_which_and_older_ones_are_read():
    table = columns(categorical=("c",), x=[1.0, 2.0, 6.0], c=["p", "p", "q"])
    robust = Encoder.fit(table, standardize=True)
    assert robust.describe()["fitted_on"]["scaling"] == "robust"
    assert Encoder.fit(table).describe()["fitted_on"]["scaling"] is None
    assert robust.describe()["format"] == "thresher-encoder-1"
    assert not any("knots" in each for each in robust.describe()["columns"])
    ranks = Encoder.fit(table, standardize=True, scaling="ranks").describe()
    assert ranks["format"] == "thresher-encoder-2"  # which older versions refuse
    old = Encoder.fit(table, standardize=True, scaling="plain").describe()
    del old["fitted_on"]["scaling"]
    np.testing.assert_allclose(Encoder.from_record(old).transform(table).std(axis=0), 1)


@pytest.mark.parametrize("change", [{"knots": [2, 1]}, {"knots": ["a"]}, {"knots": 3}])
def test_broken_knots_are_refused(change):
    record = Encoder.fit(columns(x=[1.0, 2.0]), standardize=True, scaling="ranks").describe()
    record["columns"][0] |= change
    with pytest.raises(InputError, match="not an encoder's record"):
        Encoder.from_record(record)


def write_messy(name, rows, seed):
    """Two features that tell the label, one in other units; a useless category; wild rows."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 2, rows)
    X = random.normal(size=(rows, 2)) + 2 * codes[:, None]
    X[:3, 0] = [1e7, -1e7, 1e8]
    lines = [
        f"{a},{1000 * b},{city},{'cat' if code else 'dog'}"
        for (a, b), city, code in zip(X.tolist(), random.integers(0, 60, rows), codes, strict=True)
    ]
    put(name, "\n".join(["a,b,city,y", *lines]) + "\n")


@pytest.fixture
def messy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_messy("p.csv", 700, 0)
    write_messy("v.csv", 200, 1)


@pytest.mark.parametrize("kind", ["robust", "ranks"])
def test_the_command_takes_a_scaling_and_says_which(messy, kind):
    run = ("value", "p.csv", "--validation", "v.csv", "--categorical", "city", "--standardize")
    here = thresher(*run, "--scaling", kind, "--out", "here.csv")
    assert here.returncode == 0, here.stderr
    parts = thresher(*run, "--scaling", kind, "--memory", "64GB", "--out", "parts.csv")
    assert parts.returncode == 0, parts.stderr
    assert Path("here.csv").read_text() == Path("parts.csv").read_text()
    record = json.loads(Path("here.csv.record.json").read_text())
    assert record["settings"]["scaling"] == kind
    assert record["encoder"]["fitted_on"]["scaling"] == kind
    assert ("--scaling ranks" in record["command"]) == (kind == "ranks")


def test_robust_columns_find_what_plain_ones_lose(messy):
    options = {"validation": "v.csv", "categorical": ("city",), "standardize": True}
    gain = {}
    for kind in scaling_module.SCALINGS:
        run = value_files(Settings("p.csv", scaling=kind, radius=0.5, **options))
        gain[kind] = run.valuation.utility_all / len(run.validation)
    assert gain["plain"] < 0.75
    assert min(gain["robust"], gain["ranks"]) > 0.8


def test_a_scaling_goes_with_standardize():
    with pytest.raises(InputError, match="scaling needs standardize=True"):
        Settings("p.csv", scaling="ranks")
    with pytest.raises(InputError, match="scaling must be one of 'robust', 'plain', 'ranks'"):
        Settings("p.csv", standardize=True, scaling="odd")
    with pytest.raises(InputError, match="scaling must be one of"):
        Encoder.fit(columns(x=[1.0]), scaling="odd")
    words = Settings("p.csv", standardize=True, scaling="plain").command()
    assert words == "thresher value p.csv --standardize --scaling plain"


def rows_of(*deviations, seed=0, rows=400):
    """Normal columns, labels that fit the last one, and the hints about them."""
    X = np.random.default_rng(seed).normal(size=(rows, len(deviations)))
    names = [f"x{j}" for j in range(len(deviations))]
    lines = [",".join(map(str, [*row, "cat" if row[-1] > 0 else "dog"])) for row in X * deviations]
    return "\n".join([",".join([*names, "y"]), *lines]) + "\n"


def hints_of(**options):
    return [in_options(hint) for hint in value_files(Settings("p.csv", **options)).hints()]


def test_a_column_that_rules_the_distances_is_told_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put("p.csv", rows_of(1, 9, 1, 1))
    (hint,) = hints_of(metric="euclidean", radius=5.0)
    assert re.match(r"column 'x1' makes up 7\d % of the distances", hint)
    assert hint.endswith("use --standardize, or leave it out with --ignore x1")
    assert not hints_of(metric="euclidean", radius=5.0, standardize=True)
    put("p.csv", rows_of(1, 2, 1, 1))
    assert not hints_of(metric="euclidean", radius=5.0)


def test_a_category_that_rules_after_plain_scaling_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head, *lines = rows_of(1, 1, 1).splitlines()
    put("p.csv", "\n".join([f"{head},c", *(f"{x},c{i % 50}" for i, x in enumerate(lines))]) + "\n")
    options = {"metric": "euclidean", "radius": 50.0, "categorical": ("c",), "standardize": True}
    (hint,) = hints_of(scaling="plain", **options)
    assert re.match(r"column 'c' makes up 9\d % of the distances", hint)
    assert "use --scaling robust" in hint
    assert not hints_of(**options)


def test_a_few_wild_rows_do_not_rule_the_distances():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    X[:10, 2] = 1e9
    shares = distance_shares(X, [1, 1, 1, 1])
    assert sum(shares) == pytest.approx(1)
    assert max(shares) < 0.3
    assert distance_shares(np.ones((5, 2)), [1, 1]) == [0.0, 0.0]
    assert distance_shares(X[:1], [4]) == [0.0]
    assert distance_shares(X * 1e200, [4]) == pytest.approx([1.0])


@pytest.mark.parametrize("kind", scaling_module.SCALINGS)
def test_ids_are_seen_through_every_scaling(kind):
    ids = np.random.default_rng(1).permutation(300).astype(float)
    table = columns(n=ids, x=RANDOM.normal(size=300))
    encoder = Encoder.fit(table, standardize=True, scaling=kind)
    settings = Settings("p.csv", standardize=True, scaling=kind)
    (hint,) = id_hints(encoder.transform(table), encoder, settings).values()
    assert hint.startswith("column 'n' looks like an id")


def test_a_suggested_radius_beyond_right_angles_is_told():
    auto = Settings("p.csv", kernel="box")
    (hint,) = map(in_options, reach_hints(1.2, auto, reached=True))
    assert hint.startswith("radius 1.2 is suggested, beyond 1")
    assert "use --standardize, other features, or --method knn" in hint
    scaled_so = Settings("p.csv", standardize=True, kernel="box")
    assert "use --metric euclidean" in in_options(*reach_hints(1.2, scaled_so, reached=True))
    assert not reach_hints(1.0, auto, reached=True)
    assert not reach_hints(1.2, Settings("p.csv"), reached=True)  # few points weigh there
    assert not reach_hints(1.2, Settings("p.csv", radius=1.2), reached=True)
    assert not reach_hints(1.2, Settings("p.csv", metric="euclidean"), reached=True)
