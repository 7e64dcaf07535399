"""Files of results: written whole or not at all, read back exactly, refused if of another kind."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError

KEY = b"thresher"


def write_whole(path: str | Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it: never half a file."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_table(path: str | Path, columns: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Write `columns` as Parquet with `about` as JSON in the metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, entries in columns.items():
        try:
            arrays[name] = pa.array(entries)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as unfit:
            raise InputError(
                f"the column {name!r} cannot be saved: {unfit}; use entries of one type"
            ) from None
    table = pa.table(arrays).replace_schema_metadata({KEY: json.dumps(about).encode()})
    write_whole(path, lambda temporary: pq.write_table(table, temporary))


def read_table(path: str | Path, wanted: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns and the metadata that `write_table` wrote, if it is of the format `wanted`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(existing(path))
    except pa.ArrowInvalid as broken:
        raise InputError(f"{path} is not a Parquet file: {broken}") from None
    about = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    check_format(path, about, wanted)
    return {name: table.column(name) for name in table.column_names}, about


def existing(path: str | Path) -> Path:
    """`path`, if there is a file."""
    found = Path(path)
    if not found.is_file():
        raise InputError(f"there is no file {found}")
    return found


def check_format(path: str | Path, about: Mapping[str, Any], wanted: str) -> None:
    """Raise unless the description `about` a file is of the format `wanted`."""
    if about.get("format") != wanted:
        kind = wanted.split("/", maxsplit=1)[0].split(".")[1]
        raise InputError(f"{path} does not hold a {kind} in the format {wanted}")


def portable_labels(labels: tuple[Hashable, ...]) -> list[Any]:
    """Labels as JSON can hold them and give them back; else an error that says so."""
    for label in labels:
        plain = isinstance(label, str | bool | int) or (
            isinstance(label, float) and math.isfinite(label)
        )
        if not plain:
            raise InputError(
                f"the label {label!r} of type {type(label).__name__} cannot be saved: "
                "use strings or numbers as labels"
            )
    return list(labels)


def pack_array(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: its dtype, shape and bytes (little-endian, base64)."""
    import base64

    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": plain.dtype.str,
        "shape": list(plain.shape),
        "base64": base64.b64encode(plain.tobytes()).decode("ascii"),
    }


def unpack_array(packed: Mapping[str, Any]) -> NDArray[Any]:
    """The array that `pack_array` packed."""
    import base64

    dtype = np.dtype(packed["dtype"])
    raw = np.frombuffer(base64.b64decode(packed["base64"]), dtype)
    return raw.reshape(packed["shape"]).astype(dtype.newbyteorder("="))
