"""Build Thresher as its users get it, and try it in empty environments.

    python packaging/check.py [--pythons python3.11,python3.13] [--extras all]
                              [--dependencies oldest,newest]

`python -m build` makes an sdist and a wheel. On each Python, the sdist is installed without extras
and the wheel with each extra on its own, each in a new environment, and a small program that uses
what was installed must run there. All of that happens twice: with the oldest versions that
pyproject.toml allows for each dependency it names, and with the newest. Without --pythons, the
oldest and the newest supported Python that are found are used. uv chooses the versions; it is
installed for the purpose.
"""

from __future__ import annotations

import argparse
import itertools
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


def run(*command, kernels=None, **options):
    """Run a command; uv must not see the overrides that pyproject.toml has for tests.

    `kernels` is a folder for compiled kernels. All environments are made in the same place, so one
    with the same Python and the same Numba finds there what an earlier one compiled.
    """
    settings = {**os.environ, "UV_NO_CONFIG": "1"}
    if kernels is not None:
        settings["NUMBA_CACHE_DIR"] = str(kernels)
    subprocess.run([str(word) for word in command], check=True, env=settings, **options)


def build(folder):
    """The sdist and the wheel, made by `python -m build`, and uv."""
    tools = folder / "building" / "bin"
    run(sys.executable, "-m", "venv", tools.parent)
    pip = [tools / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "build", "uv")
    dist = folder / "dist"
    run(tools / "python", "-m", "build", "--outdir", dist, ROOT, stdout=subprocess.DEVNULL)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    return sdist, wheel, tools / "uv"


def install(uv, python, package, extra, dependencies):
    """Install a package with one extra, and the oldest or the newest of what it depends on."""
    needs = Path(python).parent.parent / "needs.txt"
    resolution = "lowest-direct" if dependencies == "oldest" else "highest"
    run(
        uv, "pip", "compile", ROOT / "pyproject.toml", "--quiet", "--python", python, "--upgrade",
        "--resolution", resolution, "--only-binary", ":all:", "--no-emit-package", "thresher",
        "--output-file", needs, *(["--extra", extra] if extra else []), stdout=subprocess.DEVNULL,
    )  # fmt: skip
    run(uv, "pip", "install", "--quiet", "--python", python, "--only-binary", ":all:", "-r", needs)
    run(uv, "pip", "install", "--quiet", "--python", python, "--no-deps", package)
    run(uv, "pip", "check", "--quiet", "--python", python)


def try_out(uv, python, package, extra, dependencies, folder):
    """Whether a package with one extra can be installed and used in a new environment."""
    own = folder / "bin" / "python"
    quiet = subprocess.DEVNULL if extra == "" else None
    try:
        run(uv, "venv", "--quiet", "--python", python, folder)
        install(uv, own, package, extra, dependencies)
        kernels = folder.with_name("kernels")
        run(own, "-c", DATA + SMOKE[extra], kernels=kernels, cwd=folder, stderr=quiet)
    except subprocess.CalledProcessError:
        return False
    finally:
        shutil.rmtree(folder)
    return True


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pythons", help="between commas; the oldest and the newest if not given")
    parser.add_argument("--extras", help="between commas; each of them if not given")
    parser.add_argument("--dependencies", default="oldest,newest", help="one of them, or both")
    asked = parser.parse_args()
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(known) == set(SMOKE) - {""}, "every extra has a program that uses it"
    extras = asked.extras.split(",") if asked.extras else sorted(known)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sdist, wheel, uv = build(folder)
        pythons = asked.pythons.split(",") if asked.pythons else found_pythons()
        packages = [(sdist, ""), *((wheel, extra) for extra in extras)]
        failed = 0
        for python, age in itertools.product(pythons, asked.dependencies.split(",")):
            for package, extra in packages:
                works = try_out(uv, python, package, extra, age, folder / "environment")
                name = package.name + (f" [{extra}]" if extra else "")
                verdict = "works" if works else "FAILS"
                print(f"{python}: {name} {verdict} with the {age} dependencies", flush=True)
                failed += not works
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
