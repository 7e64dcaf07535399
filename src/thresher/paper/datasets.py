"""The thirteen data sets of the paper, from a folder of .npz files or from OpenML, if available.

A file NAME.npz holds `X` and `y`. The image and text sets also hold `X_val` and `y_val`, from their
own test split. If a file holds `paper_train_idx`, `paper_val_idx` and `paper_noise_z`, it has the
exact draw of rows and noise behind the printed figures.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, require
from thresher.files import reading
from thresher.inputs.arrays import load_arrays

OPENML = {
    "2dplanes": 727, "phoneme": 1489, "cpu": 761, "fraud": 42397, "creditcard": 42477,
    "apsfail": 41138, "click": 1218, "wind": 847, "pol": 722,
}  # fmt: skip
TABULAR = tuple(OPENML)
EMBEDDED = ("mnist", "cifar10", "agnews", "dbpedia")
SETS = TABULAR + EMBEDDED
MOST_ROWS = 10_000  # of a fetched set, as many as the authors kept; at most half of them rare
LEAST_ROWS = 200  # of each class of a tabular set: some for training, some for validation
UNKNOWN = -1000.0  # in place of a missing number, as in the authors' files


class MissingSetError(InputError):
    """The error raised if a data set is not available here; the message says why.

    Examples
    --------
    >>> import tempfile
    >>> from thresher.paper import MissingSetError, Shelf
    >>> try:
    ...     Shelf(tempfile.mkdtemp(), fetch=False).get("phoneme")
    ... except MissingSetError:
    ...     print("not in this folder")
    not in this folder
    """


class Replay(NamedTuple):
    """The authors' own draw: rows for training and validation, and standard normal noise."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    noise: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set of the paper.

    Parameters
    ----------
    name
        Its name, such as "phoneme".
    X, y
        Its rows, and their labels 0, 1, and so on.
    source
        Where it comes from, in words.
    validation
        Rows and labels of its separate part for validation, if there is one.
    replay
        The rows and the noise that the authors drew, if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.paper import DataSet
    >>> tiny = DataSet("tiny", np.eye(2), np.array([0, 1]), "made up")
    >>> tiny.X.shape, len(tiny.digest)
    ((2, 2), 16)
    """

    name: str
    X: NDArray[Any]
    y: NDArray[np.int64]
    source: str
    validation: tuple[NDArray[Any], NDArray[np.int64]] | None = None
    replay: Replay | None = None

    @cached_property
    def digest(self) -> str:
        """A hash of all arrays, so that results from other rows are not mistaken for these."""
        state = hashlib.sha256()
        for array in (self.X, self.y, *(self.validation or ()), *(self.replay or ())):
            state.update(f"{array.dtype}{array.shape}".encode())
            state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()[:16]


class Shelf:
    """The available data sets; each is loaded once.

    Parameters
    ----------
    folder
        The folder with the files NAME.npz. The default is the folder that THRESHER_DATA names.
    fetch
        Whether missing sets may be fetched from OpenML (scikit-learn keeps a cache).

    Examples
    --------
    >>> from thresher.paper import Shelf
    >>> Shelf(fetch=False).get("2dplanes").X.shape[1]
    10
    """

    def __init__(self, folder: str | Path | None = None, *, fetch: bool = True) -> None:
        folder = folder or os.environ.get("THRESHER_DATA") or None
        if folder is not None and not Path(folder).is_dir():
            raise InputError(f"the folder of data sets {folder} does not exist")
        self.folder = None if folder is None else Path(folder)
        self.fetch = fetch
        self._known: dict[str, DataSet | MissingSetError] = {}

    def get(self, name: str) -> DataSet:
        """The set of this name; raise `MissingSetError` if it is not available."""
        if name not in SETS:
            raise InputError(f"data set must be one of {', '.join(SETS)}, got {name!r}")
        if name not in self._known:
            try:
                self._known[name] = self._load(name)
            except InputError as missing:
                self._known[name] = MissingSetError(str(missing))
        found = self._known[name]
        if isinstance(found, MissingSetError):
            raise found
        return found

    def has_replay(self, name: str) -> bool:
        """Whether the set is available and contains the authors' own draw."""
        try:
            return self.get(name).replay is not None
        except MissingSetError:
            return False

    def _load(self, name: str) -> DataSet:
        if self.folder is not None and (self.folder / f"{name}.npz").is_file():
            return read_set(self.folder / f"{name}.npz")
        why = f"{name}.npz is not in a folder of data sets"
        if name in EMBEDDED:
            raise MissingSetError(f"{why}: thresher embed")
        if self.fetch:
            try:
                return fetch_set(name)
            except MissingSetError:
                raise
            except (OSError, ValueError) as refused:
                why = f"{name} cannot be fetched from OpenML: {refused}"
        if name == "2dplanes":
            return generate_2dplanes(6000, seed=OPENML[name])
        raise MissingSetError(why)


def read_set(path: Path) -> DataSet:
    """Read the set in a file NAME.npz."""
    with reading(path, "data set"):
        arrays = load_arrays(path)
        X, y = arrays["X"], arrays["y"].astype(np.int64)
        validation = replay = None
        if "X_val" in arrays:
            validation = arrays["X_val"].astype(np.float32), arrays["y_val"].astype(np.int64)
        if "paper_train_idx" in arrays:
            kinds: Any = {"train_idx": np.int64, "val_idx": np.int64, "noise_z": np.float64}
            replay = Replay(*(arrays[f"paper_{part}"].astype(kind) for part, kind in kinds.items()))
        wide = X.astype(np.float32 if validation is not None else np.float64)
        found = DataSet(path.stem, wide, y, path.name, validation, replay)
        _check(found)
    return found


def _check(data: DataSet) -> None:
    """Raise if something is wrong with a file, and say what."""
    X, y = data.X, data.y
    for rows, labels in [(X, y), *([data.validation] if data.validation is not None else [])]:
        if rows.ndim != 2 or labels.shape != (len(rows),) or rows.shape[1] != X.shape[1]:
            raise InputError("X and y do not fit together")
        if not np.isfinite(rows).all():
            raise InputError("X has NaN or infinite numbers")
    classes = np.unique(y).tolist()
    if classes != list(range(len(classes))) or len(classes) < 2:
        raise InputError(f"labels must be 0, 1, ..., got {classes[:5]}")
    if data.name in TABULAR and (len(classes) != 2 or np.bincount(y).min() < LEAST_ROWS):
        raise InputError(f"it needs two classes of {LEAST_ROWS} rows, but it has {np.bincount(y)}")
    if data.replay is not None and (
        max(data.replay.train.max(), data.replay.validation.max()) >= len(X)
        or data.replay.noise.shape[1:] != X.shape[1:]
    ):
        raise InputError("its paper_* arrays do not fit X")


def fetch_set(name: str) -> DataSet:
    """Fetch a set from OpenML, or scikit-learn's copy of it: numeric columns, two classes."""
    require("pandas", purpose="fetching from OpenML", extra="paper")
    from sklearn.datasets import fetch_openml

    number = OPENML[name]
    with warnings.catch_warnings(action="ignore"):  # that it tries again
        found = fetch_openml(data_id=number, as_frame=True, parser="auto", n_retries=2)
    X = found.data.select_dtypes("number").fillna(UNKNOWN).to_numpy(np.float64)
    classes, y = np.unique(found.target.astype(str).to_numpy(), return_inverse=True)
    if len(classes) != 2:
        raise MissingSetError(
            f"OpenML's set {number} has {len(classes)} classes, but 2 were expected"
        )
    rng = np.random.default_rng(0)
    rare, common = sorted((rng.permutation(np.flatnonzero(y == c)) for c in (0, 1)), key=len)
    rare = rare[: MOST_ROWS // 2]
    kept = np.sort(np.concatenate([rare, common[: MOST_ROWS - len(rare)]]))
    return DataSet(name, X[kept], y[kept].astype(np.int64), f"OpenML {number}")


def generate_2dplanes(count: int, *, seed: int) -> DataSet:
    """Generate rows of 2DPlanes from its definition (Breiman and others, 1984).

    x1 is -1 or 1, and the other nine columns are -1, 0 or 1, each equally likely. With e standard
    normal, the target is 3 + 3 x2 + 2 x3 + x4 + e if x1 = 1, and otherwise
    -3 + 3 x5 + 2 x6 + x7 + e. y is 1 if the target is below its mean.

    Examples
    --------
    >>> data = generate_2dplanes(500, seed=0)
    >>> data.X.shape, sorted(set(data.X[:, 1]))
    ((500, 10), [np.float64(-1.0), np.float64(0.0), np.float64(1.0)])
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, size=(count, 10)).astype(np.float64)
    X[:, 0] = rng.choice([-1.0, 1.0], size=count)
    up = 3 + X[:, 1:4] @ [3.0, 2.0, 1.0]
    down = -3 + X[:, 4:7] @ [3.0, 2.0, 1.0]
    target = np.where(X[:, 0] == 1, up, down) + rng.standard_normal(count)
    y = (target < target.mean()).astype(np.int64)
    return DataSet("2dplanes", X, y, f"generated from its definition, seed {seed}")
