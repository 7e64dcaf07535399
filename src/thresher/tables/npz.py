"""Tables in NumPy files: the arrays of an .npz, or the one array of an .npy."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from thresher.array_types import Array
from thresher.errors import InputError
from thresher.inputs.arrays import load_array, load_arrays

OF_VALIDATION = "_val"  # arrays with such names, as `thresher embed` writes them, are other rows
CLASSES = "classes"  # and this one has an entry a class

Arrays = dict[str, Array]


def schema(path: Path) -> pa.Schema:
    """The columns of an .npy file."""
    array = mapped(path)
    each = pa.from_numpy_dtype(array.dtype.newbyteorder("="))
    return pa.schema([(f"x{place}", each) for place in range(array.shape[1])])


def read(path: Path) -> pa.Table:
    """The table in a file."""
    return table_of(path, arrays_of(path))


def batches(path: Path, wanted: list[str], start: int, most: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of an .npy file from row `start` on, at most `most` at a time."""
    array, places = mapped(path), [int(name[1:]) for name in wanted]
    for lo in range(start, len(array), most):
        rows = _native(np.array(array[lo : lo + most]))
        columns = [pa.array(np.ascontiguousarray(rows[:, place])) for place in places]
        yield lo, pa.table(columns, names=wanted)


def write(files: Sequence[Path], change: Callable[[str, Array], Array], temporary: Path) -> None:
    """Write the arrays of .npz files as one file, compressed if the first one is.

    Arrays with one entry per row are joined and changed, all others kept.
    """
    parts = [arrays_of(path) for path in files]
    with zipfile.ZipFile(files[0]) as old:
        packing = {each.filename: each.compress_type for each in old.infolist()}
    with zipfile.ZipFile(temporary, "w") as file:
        for name in parts[0]:
            about = zipfile.ZipInfo(f"{name}.npy")  # dated 1980: the same bytes again
            about.compress_type = packing.get(about.filename, zipfile.ZIP_STORED)
            array = _joined(name, parts, change)
            with file.open(about, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def write_array(array: Array, temporary: Path) -> None:
    """Write an .npy file under any name."""
    with temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def arrays_of(path: Path) -> Arrays:
    """All arrays of an .npz, or the one of an .npy, as X."""
    return {"X": load_array(path)} if path.suffix.lower() == ".npy" else load_arrays(path)


def table_of(path: Path, arrays: Arrays) -> pa.Table:
    """A table of the columns of X, named x0, x1 and so on, and of arrays with one entry per row."""
    if "X" not in arrays:
        listed = ", ".join(arrays)
        raise InputError(f"{path} has no array 'X' of features: it has {listed or 'no arrays'}")
    X = arrays["X"]
    if X.ndim not in {1, 2}:
        raise InputError(
            f"{path} has features X of shape {X.shape}: it must have one row per point, for "
            "example X.reshape(len(X), -1)"
        )
    y = arrays.get("y", X)
    if len(y) != len(X):
        raise InputError(f"{path} has {len(y)} entries in y for {len(X)} rows in X")
    matrix = X if X.ndim == 2 else X[:, None]
    columns = [(f"x{j}", _column(path, "X", matrix[:, j])) for j in range(matrix.shape[1])]
    columns += [
        (name, _column(path, name, array))
        for name, array in arrays.items()
        if name != "X" and array.ndim == 1 and _is_column(name, array, len(X))
    ]
    return pa.table([column for _, column in columns], names=[name for name, _ in columns])


def mapped(path: Path) -> Array:
    """The rows of an .npy file as a memmap: they stay in the file."""
    array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} must hold rows of numbers, got {array.dtype} of shape {array.shape}"
        )
    return array


def _is_column(name: str, array: Array, rows: int) -> bool:
    """Whether an array of an .npz has one entry for each row of the table."""
    other = name == CLASSES or name.endswith(OF_VALIDATION)
    return array.ndim >= 1 and len(array) == rows and not other


def _column(path: Path, name: str, array: Array) -> pa.Array:
    if array.dtype.kind not in "biufUMm":
        raise InputError(
            f"{path} has an array {name!r} of dtype {array.dtype}: use numbers or text"
        )
    return pa.array(_native(array))


def _native(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _joined(name: str, parts: list[Arrays], change: Callable[[str, Array], Array]) -> Array:
    arrays = [part[name] for part in parts if name in part]
    if len(arrays) < len(parts):
        raise InputError(f"array {name!r} is not in all files: write them alike")
    if all(_is_column(name, part[name], len(part["X"])) for part in parts):
        return change(name, arrays[0] if len(arrays) == 1 else np.concatenate(arrays))
    if any(not np.array_equal(array, arrays[0]) for array in arrays[1:]):
        raise InputError(f"array {name!r} differs between the files: clean them one by one")
    return arrays[0]
