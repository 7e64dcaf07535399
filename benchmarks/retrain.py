"""Values by retraining against pyDVL's estimators, for the same number of trained models.

    python benchmarks/retrain.py [--repeats 1]

Contenders take turns, two workers each, and each is given its best turn; a model that counts its own fits tells
how many each of them made. The limit is a bare loop of as many fits and predictions. Writes results/retrain.json and results/retrain.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.linear_model import LogisticRegression
from tqdm import tqdm

warnings.simplefilter("ignore")

import pydvl.valuation as pydvl  # noqa: E402

import thresher as th  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import cases  # noqa: E402
import peer_environments  # noqa: E402
from provenance import machine, measured  # noqa: E402
from report import table  # noqa: E402

HERE = Path(__file__).parent
SHAPES = [(200, 200, 10), (2_000, 200, 10)]
PEER_POINTS = 200  # with more, pyDVL's workers run ahead of its own bookkeeping without end
WALKS = 4
SUBSETS = 1_000
WORKERS = 2


class Counted(LogisticRegression):
    """Writes a byte for each fit, so that fits of all processes are counted."""

    def fit(self, X, y):
        handle = os.open(os.environ["FITS"], os.O_WRONLY | os.O_APPEND)
        os.write(handle, b".")
        os.close(handle)
        return super().fit(X, y)


def ours(name, case, **more):
    method = {"shapley": th.data_shapley, "beta": th.beta_shapley, "banzhaf": th.data_banzhaf,
              "loo": th.leave_one_out}[name]  # fmt: skip
    if name != "loo":
        more["evaluations"] = SUBSETS if name == "banzhaf" else WALKS * (len(case.X) - 1)
    arguments = case.X, case.y, case.V, case.y_val
    return method(*arguments, workers=WORKERS, **more)


def theirs(name, case):
    train, test = pydvl.Dataset(case.X, case.y), pydvl.Dataset(case.V, case.y_val)
    scorer = pydvl.SupervisedScorer("accuracy", test, default=0.5, range=(0, 1))
    utility = pydvl.ModelUtility(Counted(), scorer, show_warnings=False)
    sampler = pydvl.PermutationSampler(seed=0)
    valuation = {
        "shapley": lambda: pydvl.ShapleyValuation(utility, sampler, pydvl.MinUpdates(WALKS)),
        "beta": lambda: pydvl.BetaShapleyValuation(
            utility, sampler, pydvl.MinUpdates(WALKS), alpha=4, beta=1
        ),
        "banzhaf": lambda: pydvl.MSRBanzhafValuation(
            utility,
            is_done=pydvl.MaxUpdates(SUBSETS // 2),
            seed=0,  # it counts one side
        ),
        "loo": lambda: pydvl.LOOValuation(utility),
    }[name]()
    with parallel_config("loky", n_jobs=WORKERS):
        return valuation.fit(train).result


def bare(name, case):
    """Nothing but fits and predictions, of the coalitions that ours trains on."""
    n = len(case.X)
    count = {"loo": n, "banzhaf": SUBSETS}.get(name, WALKS * (n - 1))
    rng = np.random.default_rng(0)
    sizes = {"loo": np.full(n, n - 1), "banzhaf": np.full(SUBSETS, n // 2)}.get(
        name, np.tile(np.arange(1, n), WALKS)
    )
    cuts = np.array_split(sizes[rng.permutation(count)], 4 * WORKERS)
    Parallel(n_jobs=WORKERS)(delayed(bare_fits)(case, part, seed) for seed, part in enumerate(cuts))


def bare_fits(case, sizes, seed):
    rng = np.random.default_rng(seed)
    for size in sizes:
        rows = rng.permutation(len(case.X))[:size]
        if len(set(case.y[rows].tolist())) == 2:
            Counted().fit(case.X[rows], case.y[rows]).predict(case.V)


def peer_stops(name, case):
    """Its maximum-sample-reuse estimator made 9,326 fits for the 1,000 asked for, in 133 seconds."""
    return len(case.X) <= PEER_POINTS and name != "banzhaf"


def measure(name, shape, repeats):
    case = cases.make(*shape)
    contenders = {
        "bare fits": lambda: bare(name, case),
        **({"pydvl": lambda: theirs(name, case)} if peer_stops(name, case) else {}),
        "thresher": lambda: ours(name, case, model=Counted()),
        "thresher accelerated": lambda: ours(name, case, accelerate=True),
    }
    best, fits, results = dict.fromkeys(contenders, float("inf")), {}, {}
    for turn in range(repeats + 1):  # the first turn starts processes and compiles
        for contender, call in contenders.items():
            Path(os.environ["FITS"]).write_bytes(b"")
            start = time.perf_counter()
            results[contender] = call()
            seconds = time.perf_counter() - start
            fits[contender] = Path(os.environ["FITS"]).stat().st_size
            if turn:
                best[contender] = min(best[contender], seconds)
    fits["thresher accelerated"] = results["thresher accelerated"].params["evaluations"]
    plain, fast = (results[k].values for k in ("thresher", "thresher accelerated"))
    told = {c: {"seconds": best[c], "fits": fits[c]} for c in contenders}
    told["difference accelerated"] = float(abs(plain - fast).max())
    told["largest value"] = float(abs(plain).max())
    if name == "loo" and "pydvl" in results:
        peer = results["pydvl"].values[np.argsort(results["pydvl"].indices)]
        told["difference pydvl"] = float(abs(plain - peer).max())
    return told


def render(result):
    rows = []
    for work, told in result["work"].items():
        asked = told["thresher accelerated"]["fits"]
        for contender in ("bare fits", "pydvl", "thresher", "thresher accelerated"):
            if contender in told:
                seconds = told[contender]["seconds"]
                rows.append((work, contender, told[contender]["fits"], f"{seconds:.2f}",
                             f"{1e6 * seconds / asked:.0f}",
                             f"{told['bare fits']['seconds'] / seconds:.2g}"))  # fmt: skip
    about = result["machine"]
    head = ("work (N, M, d)", "contender", "fits made", "s", "microseconds a fit asked for",
            "times faster than bare fits")  # fmt: skip
    gaps = [
        (work, f"{told['difference accelerated']:.2g}", f"{told.get('difference pydvl', float('nan')):.2g}",
         f"{told['largest value']:.2g}")
        for work, told in result["work"].items()
    ]  # fmt: skip
    return "\n".join([
        "# What values by retraining cost", "",
        f"{measured('retrain.py', about)} All contenders train a logistic regression with {WORKERS} workers. They took turns, and the "
        "best turn counts. *bare fits* is a plain loop of as many fits and predictions. OpenDataVal: "
        f"{result['opendataval']}", "",
        *table(head, rows),
        "## Differences", "",
        "*accelerated* is the difference between accelerated values, which are trained to the optimum, and those with "
        "scikit-learn's default `tol=1e-4`. *pyDVL* is the difference between our values and those of pyDVL, where both are "
        "exact.", "",
        *table(("work", "accelerated", "pyDVL", "largest value"), gaps),
    ])  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1)
    repeats = parser.parse_args().repeats
    python, why = peer_environments.ready("opendataval")
    result = {"machine": machine(), "work": {},
              "opendataval": "installed, see run.py" if python else f"does not install: {why}"}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FITS"] = str(Path(folder) / "fits")
        for shape in tqdm(SHAPES):
            for name in ("loo", "shapley", "beta", "banzhaf"):
                result["work"][f"{name} {shape}"] = measure(name, shape, repeats)
    (HERE / "results" / "retrain.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "results" / "retrain.md").write_text(render(result))
    print(render(result))


if __name__ == "__main__":
    main()
