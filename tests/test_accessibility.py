"""Reports for everybody: axe-core, run inside the browser, finds no serious fault."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from browsers import needed, resize, show, visit
from pages import blobs
from releases import release

import thresher as th
from thresher.report import gather, write_report
from thresher.tables.columns import Columns
from thresher.tables.copies import Copies

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
axe = pytest.importorskip("axe_core_python.base", reason="axe-core-python is not installed")
pytestmark = needed


def by_radius():
    X, y, X_val, y_val, _ = blobs(300, 120, flipped=0.1)
    owners = [f"owner {i % 4}" for i in range(300)]
    valuation = th.tknn_shapley(X, y, X_val, y_val, radius=1.8, metric="euclidean", owners=owners)
    record = {"command": "thresher value", "input_digest": "0" * 64}
    return gather(valuation, X, y, X_val, y_val, record=record, ids=np.arange(300))


def by_forest():
    X, y, _, _, _ = blobs(150, flipped=0.1)
    X[1], y[0], y[1] = X[0], "ant", "bee"
    columns = Columns(tuple(y), pa.table({f"x{j}": X[:, j] for j in range(4)}))
    valuation, findings = th.forest_findings(X, y, trees=20)
    return gather(valuation, X, y, findings=findings, copies=Copies.of(columns))


def of_release():
    return gather(None, release=release())


def of_values():
    return gather(th.Valuation(np.array([-0.5, 0.25, 0.5]), "example", {}, 1.0, 0.5))


PAGES = {"radius": by_radius, "forest": by_forest, "release": of_release, "values": of_values}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("axe")
    for name, make in PAGES.items():
        write_report(folder / f"{name}.html", make())
    X, y, X_val, y_val, _ = blobs(60, 30)
    owners = [f"owner {i % 4}" for i in range(60)]
    found = th.owner_shapley(X, y, X_val, y_val, owners=owners, radius=1.8, metric="euclidean")
    found.report(folder / "owners.html")
    same = X.copy()
    same[-5:] = X[:5]
    paid = th.tknn_shapley(same, y, X_val, y_val, owners=owners, radius=1.8, metric="euclidean")
    th.payout(paid, pot=10**6, rows=same).report(folder / "payout.html")
    return folder


def faults(browser):
    """What axe-core calls serious or critical on the page that is shown."""
    browser.set_script_timeout(120)
    browser.execute_script(axe.AXE_SCRIPT)
    found = browser.execute_async_script("axe.run().then(arguments[0])")
    assert found["passes"]
    return [
        (fault["id"], fault["help"], [node["html"][:120] for node in fault["nodes"][:3]])
        for fault in found["violations"]
        if fault["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("name", [*PAGES, "owners", "payout"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_no_serious_fault(browser, folder, name, width, scheme):
    visit(browser, (folder / f"{name}.html").as_uri())
    resize(browser, width, 800)
    show(browser, scheme=scheme)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    assert faults(browser) == []


def test_axe_would_find_a_fault(browser, folder):
    visit(browser, (folder / "values.html").as_uri())
    browser.execute_script(
        "document.querySelector('main, body').append(document.createElement('button'))"
    )
    assert [name for name, _, _ in faults(browser)] == ["button-name"]
