"""Build Thresher as its users get it, and try it in empty environments.

    python packaging/check.py [--pythons python3.11,python3.13] [--extras all]

`python -m build` makes an sdist and a wheel. On each Python, the sdist is installed without extras
and the wheel with each extra on its own, each in a new environment, and a small program that uses
what was installed must run there. Without --pythons these are the oldest and the newest supported
Python that are found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
OLDEST = (3, 11)

DATA = """
import numpy as np, thresher as th
rng = np.random.default_rng(0)
X, V = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
y, y_val = (X[:, 0] > 0).astype(int), (V[:, 0] > 0).astype(int)
valuation = th.tknn_shapley(X, y, V, y_val)
assert abs(valuation.efficiency_gap()) < 1e-9
"""
SMOKE = {  # what each extra is for
    "": """
import pathlib, subprocess, sys, tempfile
assert th.knn_shapley(X, y, V, y_val).values.shape == (60,)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "a.csv")
    path.write_text("x,z,y\\n" + "".join(f"{a},{b},{c}\\n" for (a, b, _), c in zip(X, y)))
    command = [pathlib.Path(sys.executable).parent / "thresher", "value", path, "--out", path.with_suffix(".parquet")]
    subprocess.run(command, check=True)
    assert len(th.Valuation.load(path.with_suffix(".parquet"))) > 40
""",
    "pandas": "import pandas as pd; assert len(th.tknn_shapley(pd.DataFrame(X), y, pd.DataFrame(V), y_val).to_frame()) == 60",
    "polars": "import polars as pl; assert (th.tknn_shapley(pl.DataFrame(X), y, pl.DataFrame(V), y_val).values == valuation.values).all()",
    "excel": """
import openpyxl, pathlib, tempfile
from thresher.tables.reader import read_table
book = openpyxl.Workbook()
for row in [["x", "y"], [1.5, "cat"]]:
    book.active.append(row)
path = pathlib.Path(tempfile.mkdtemp(), "a.xlsx")
book.save(path)
assert read_table(path).data.to_pydict() == {"x": [1.5], "y": ["cat"]}
""",
    "plot": "import matplotlib; matplotlib.use('Agg'); from thresher import plots; plots.plot_values(valuation)",
    "private": "assert th.dp_tknn_shapley(X, y, V, y_val, epsilon=1, delta=1e-5).values.shape == (60,)",
    "dask": "import dask.array as da; assert (th.tknn_shapley(da.from_array(X, chunks=(20, 3)), y, V, y_val).compute().values == valuation.values).all()",
    "report": "import tempfile; valuation.report(tempfile.mkdtemp() + '/report.html', X, y, V, y_val)",
    "federate": "from thresher.federate import Key; assert Key.create()",
    "serve": """
import tempfile
from thresher.market.app import create_app
from thresher.market.market import Market
market = Market.open(tempfile.mkdtemp())
assert create_app(market) and market.first_operator()
""",
    "paper": "from thresher.paper import EXPERIMENTS; assert EXPERIMENTS",
    "all": "import dask, jinja2, matplotlib, opendp, openpyxl, pandas, polars",
}


def supported(python):
    """The version of a Python that can be used, or None."""
    done = subprocess.run(
        [python, "-c", "import sys, venv; print(*sys.version_info[:2])"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = tuple(map(int, done.stdout.split())) if done.returncode == 0 else ()
    return found if found >= OLDEST else None


def found_pythons():
    """The oldest and the newest Python of this machine, those of pyenv among them."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], OLDEST[1] + 10)]
    listed = [path for name in names if (path := shutil.which(name))]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    listed += [str(path) for path in root.glob("versions/*/bin/python3")]
    versions = {version: path for path in [*listed, sys.executable] if (version := supported(path))}
    return [versions[version] for version in sorted({min(versions), max(versions)})]


def environment(python, folder):
    """A new environment: the path of its Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    return str(folder / "bin" / "python")


def install(python, *what):
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what],
        check=True,
    )


def build(folder):
    """The sdist and the wheel, made by `python -m build`."""
    python = environment(sys.executable, folder / "building")
    install(python, "build")
    subprocess.run(
        [python, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (sdist,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return sdist, wheel


def try_out(python, package, extra, folder):
    """Install a package with one extra in a new environment, and use it there."""
    own = environment(python, folder)
    install(own, f"thresher[{extra}] @ {package.as_uri()}" if extra else str(package))
    program = DATA + SMOKE[extra]
    subprocess.run(
        [own, "-c", program],
        check=True,
        cwd=folder,
        stderr=subprocess.DEVNULL if extra == "" else None,
    )
    shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pythons", help="between commas; the oldest and the newest if not given")
    parser.add_argument("--extras", help="between commas; each of them if not given")
    asked = parser.parse_args()
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(known) == set(SMOKE) - {""}, "every extra has a program that uses it"
    extras = asked.extras.split(",") if asked.extras else sorted(known)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sdist, wheel = build(folder)
        for python in asked.pythons.split(",") if asked.pythons else found_pythons():
            for package, extra in [(sdist, ""), *((wheel, extra) for extra in extras)]:
                try_out(python, package, extra, folder / "environment")
                print(f"{python}: {package.name}{f' [{extra}]' if extra else ''} works", flush=True)


if __name__ == "__main__":
    main()
