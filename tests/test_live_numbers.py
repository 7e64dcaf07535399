"""Live stores of numbers: the values of `tknn_shapley`, whatever came, went or changed."""

from __future__ import annotations

import numpy as np
import pytest

import thresher as th

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")

BOUNDS = (-20.0, 30.0)
ABOUT = {"metric": "euclidean", "radius": 1.2, "task": "regression", "bounds": BOUNDS}


def problem(points=30, validation=12):
    random = np.random.default_rng(5)
    X, V = random.normal(size=(points, 2)), random.normal(size=(validation, 2))
    return X, 3 * random.normal(size=points), V, 3 * random.normal(size=validation)


def check_same(live, X, y, V, y_val):
    for semivalue in ("shapley", "banzhaf"):
        wanted = th.tknn_shapley(X, y, V, y_val, semivalue=semivalue, **ABOUT)
        found = live.values(semivalue)
        np.testing.assert_array_equal(found.values, wanted.values)
        assert (found.utility_all, found.utility_none) == (wanted.utility_all, wanted.utility_none)
    live.verify()


def test_values_are_those_of_the_present_points(tmp_path):
    X, y, V, y_val = problem()
    with th.LiveCounts.create(tmp_path / "store", V, y_val, **ABOUT) as live:
        assert live.values().utility_none == pytest.approx(-((y_val - y_val.mean()) ** 2).sum())
        live.add_many([f"p{i}" for i in range(25)], X[:25], y[:25])
        for i in range(25, 30):
            live.add(f"p{i}", X[i], float(y[i]))
        check_same(live, X, y, V, y_val)
        live.remove("p3")
        live.relabel("p7", -19.5)  # a negative number of steps
        live.commit()
    kept = np.delete(np.arange(30), 3)
    moved = y.copy()
    moved[7] = -19.5
    with th.LiveCounts.open(tmp_path / "store") as live:
        check_same(live, X[kept], moved[kept], V, y_val)
        rows, targets = live.points()
        np.testing.assert_array_equal(rows, X[kept])
        np.testing.assert_allclose(targets, moved[kept], atol=1e-8)
        owners = {name: int(name[1:]) % 3 for name in live.ids}
        wanted = th.owner_shapley(
            X[kept], moved[kept], V, y_val, owners=list(owners.values()), **ABOUT
        )
        np.testing.assert_array_equal(live.owner_values(owners).values, wanted.values)
        prices = live.price_list()
        np.testing.assert_array_equal(prices.values(rows, targets), live.values().values)
        for name in live.ids:
            live.remove(name)
        assert not live.price_list().newcomer_values(V[:1] + 99, [0.0]).any()


def test_what_a_store_of_numbers_refuses(tmp_path):
    X, _, V, y_val = problem()
    with th.LiveCounts.create(tmp_path / "store", V, y_val, **ABOUT) as live:
        live.add("a", X[0], 1.0)
        for wrong, why in ((31.0, "outside the bounds"), (np.nan, "NaN"), ("cat", "one number")):
            with pytest.raises(th.InputError, match=why):
                live.add("b", X[1], wrong)
            with pytest.raises(th.InputError, match=why):
                live.relabel("a", wrong)
        check_same(live, X[:1], [1.0], V, y_val)
    with pytest.raises(th.InputError, match="need task='regression'"):
        th.LiveCounts.create(tmp_path / "other", V, [0, 1] * 6, radius=1.0, empty=1.0)
