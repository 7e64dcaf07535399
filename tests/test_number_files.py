"""Files with targets that earlier versions wrote (numbers-1.zip, by their own code): they are read."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import thresher as th

ARCHIVE = Path(__file__).parent / "numbers-1.zip"
KINDS = ["ball", "rings", "forest", "points"]  # in the last, points judge each other


@pytest.fixture
def old(tmp_path):
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    known = json.loads((tmp_path / "known.json").read_text())
    return tmp_path, known, *(np.array(known[name]) for name in ("X", "y", "V", "y_val"))


def close(found, wanted):
    wanted = np.array(wanted)
    most = np.nanmax(np.abs(wanted))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * most)


def check_values(prices, known, X, y, V, y_val):
    close(prices.values(X, y), known["values"])
    close(prices.values(X, y, label=1.5), known["moved"])
    close(prices.newcomer_values(V, y_val), known["newcomers"])
    for found, wanted in zip(prices.best_targets(X, y), known["best"], strict=True):
        close(found, wanted)
    for found, wanted in zip(prices.best_targets(V), known["best_newcomers"], strict=True):
        close(found, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_price_lists_pay_what_they_paid(old, kind):
    folder, known, *data = old
    prices = th.PriceList.load(folder / f"{kind}.prices.json")
    check_values(prices, known[kind], *data)
    prices.save(folder / "again")
    assert th.PriceList.load(folder / "again").values(*data[:2]).tolist() == (
        prices.values(*data[:2]).tolist()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_what_they_were_and_go_on(old, kind):
    folder, known, X, y, V, y_val = old
    counts = th.NeighborCounts.load(folder / f"{kind}.counts.npz")
    assert len(counts) == len(X)
    check_values(counts.price_list(), known[kind], X, y, V, y_val)
    assert counts.utility() == pytest.approx(known[kind]["utility"], rel=1e-12)
    counts.save(folder / "again.npz")
    again = th.NeighborCounts.load(folder / "again.npz")
    assert again.table.tolist() == counts.table.tolist()
    before = again.table.copy()
    again.add(X[:3] + 0.01, y[:3]).relabel(X[:3] + 0.01, y[:3], y[3:6])
    again.remove(X[:3] + 0.01, y[3:6])
    assert again.table.tolist() == before.tolist()
    again.remove(X, y)  # points that the earlier version counted
    assert len(again) == 0
    assert not again.table.any()


@pytest.mark.parametrize("kind", KINDS)
def test_stores_open_and_go_on(old, kind):
    folder, known, X, y, *_ = old
    with th.LiveCounts.open(folder / f"{kind}.live") as live:
        close(live.values().values, known[kind]["live"])
        assert np.abs(live.points()[1] - np.delete(y, 3)).max() < 1e-7
        live.add("p3", X[3], y[3])
        live.relabel("p0", 2.0)
    with th.LiveCounts.open(folder / f"{kind}.live") as live:
        live.verify()
        live.relabel("p0", y[0])
        order = [int(name[1:]) for name in live.ids]
        close(live.values().values, np.array(known[kind]["values"])[order])
