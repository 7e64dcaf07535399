"""Values by retraining against pyDVL's estimators, for the same number of trained models.

    python benchmarks/retrain.py [--repeats 1]

Contenders take turns, two workers each, and each is given its best turn; a model that counts its own fits tells
how many each of them made. Writes results/retrain.json and results/retrain.md.
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
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from tqdm import tqdm

warnings.simplefilter("ignore")

import pydvl.valuation as pydvl  # noqa: E402

import thresher as th  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import cases  # noqa: E402
import peer_environments  # noqa: E402
from report import table  # noqa: E402
from run import machine  # noqa: E402

HERE = Path(__file__).parent
SHAPES = [(500, 200, 10), (2_000, 200, 10)]
WALKS = 2
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


def measure(name, shape, repeats):
    case = cases.make(*shape)
    contenders = {
        "pydvl": lambda: theirs(name, case),
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
    if name == "loo":
        peer = results["pydvl"].values[np.argsort(results["pydvl"].indices)]
        told["difference pydvl"] = float(abs(plain - peer).max())
    return told


def render(result):
    rows = []
    for work, told in result["work"].items():
        peer = told["pydvl"]["seconds"] / told["pydvl"]["fits"]
        for contender in ("pydvl", "thresher", "thresher accelerated"):
            entry = told[contender]
            each = entry["seconds"] / entry["fits"]
            rows.append((work, contender, entry["fits"], f"{entry['seconds']:.2f}", f"{1e6 * each:.0f}",
                         f"{peer / each:.1f}"))  # fmt: skip
    about = result["machine"]
    head = ("work (N, M, d)", "contender", "fits", "s", "microseconds a fit", "times faster a fit")
    gaps = [
        (work, f"{told['difference accelerated']:.2g}", f"{told.get('difference pydvl', float('nan')):.2g}",
         f"{told['largest value']:.2g}")
        for work, told in result["work"].items()
    ]  # fmt: skip
    return "\n".join([
        "# Results of `benchmarks/retrain.py`", "",
        f"{about['processor']}, {about['cores']} cores, Python {about['python']}, commit {about['commit']}, "
        f"{about['date']}. Logistic regression, {WORKERS} workers each, best of interleaved turns. OpenDataVal: "
        f"{result['opendataval']}", "",
        *table(head, rows),
        "## Differences", "",
        "Of accelerated values (trained to the optimum) from those of scikit-learn's default `tol=1e-4`, and of "
        "ours from pyDVL's where both are exact.", "",
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
