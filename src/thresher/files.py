"""Files of results: written whole or not at all, read back exactly, refused if damaged."""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError

fcntl: Any = None
with contextlib.suppress(ImportError):  # not on Windows
    import fcntl

KEY = b"thresher"
BROKEN = (  # what readers raise on a file that is not what it seems
    ArithmeticError,
    AttributeError,
    BadZipFile,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def write_whole(path: str | Path, write: Callable[[Path], object], *, replace: bool = True) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it: never half a file.

    A file that is replaced keeps its permissions, and a link goes on pointing to it. Without
    `replace` a file that is there is left alone, even if it came while this one was written.
    """
    target = _path(path).resolve()
    if target.exists() and not target.is_file():
        raise InputError(f"cannot write {path}: it is there already, and is not a file")
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    temporary = _beside(path, target)
    try:
        write(temporary)
        temporary.chmod(mode)
        if replace or not _linked(temporary, target):
            temporary.replace(target)
    except FileExistsError:
        raise InputError(f"{path} is there already: it came while this one was made") from None
    finally:
        temporary.unlink(missing_ok=True)


def _linked(temporary: Path, target: Path) -> bool:
    """Whether a file got its name by a link, which never replaces; not all file systems have it."""
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def check_writable(path: str | Path) -> None:
    """Raise unless a file can be written there, found out by trying."""
    target = _path(path).resolve()
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    _beside(path, target).unlink()


def _beside(path: str | Path, target: Path) -> Path:
    """An empty temporary file in the folder of `target`."""
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {target.parent} does not exist")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".thresher-")
    except OSError as refused:
        raise InputError(f"cannot write {path}: {refused.strerror}") from None
    os.close(handle)
    return Path(name)


def sync(handle: int) -> None:
    """Wait until all that was written to an open file is on the disk."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS, where fsync leaves it in the drive's cache
    if full is None:
        os.fsync(handle)
    else:
        fcntl.fcntl(handle, full)


def sync_folder(folder: Path) -> None:
    """Make a change of names durable, where the system can; raise where the disk fails."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as refused:
        if refused.errno in {errno.EIO, errno.ENOSPC, errno.EDQUOT}:
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _path(path: object) -> Path:
    if isinstance(path, str | os.PathLike) and str(path):
        return Path(path)
    raise InputError(f"path must be the name of a file, got {path!r}")


@contextlib.contextmanager
def reading(path: str | Path, kind: str) -> Iterator[Path]:
    """Yield the path of an existing file; whatever goes wrong inside says that it is no `kind`."""
    found = _path(path)
    if not found.is_file():
        raise InputError(f"there is no file {found}")
    try:
        yield found
    except InputError as refused:
        raise InputError(f"{found} does not hold a {kind}: {refused}") from None
    except BROKEN as broken:
        raise InputError(f"{found} does not hold a {kind}, or is damaged: {broken}") from broken


def check_sealed(about: Any, wanted: str, *parts: bytes) -> None:
    """Raise unless a description is of the format `wanted` and its seal is unbroken."""
    if not isinstance(about, dict) or about.get("format") != wanted:
        raise InputError(f"its format is not {wanted}")
    if about.get("seal") != _seal(about, parts):
        raise InputError("its content was changed after it was written")


def sealed(about: Mapping[str, Any], *parts: bytes) -> dict[str, Any]:
    """`about` with a SHA-256 of itself and of the `parts` it describes."""
    return sealed_stream(about, parts)


def sealed_stream(about: Mapping[str, Any], parts: Iterable[bytes]) -> dict[str, Any]:
    """As `sealed`, for parts that come one after the other; how they are cut does not matter."""
    return {**about, "seal": _seal(about, parts)}


def _seal(about: Mapping[str, Any], parts: Iterable[bytes]) -> str:
    plain = {key: entry for key, entry in about.items() if key != "seal"}
    state = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for part in parts:
        state.update(part)
    return state.hexdigest()


def write_table(
    path: str | Path, columns: Mapping[str, Any], about: Mapping[str, Any], *, replace: bool = True
) -> None:
    """Write `columns` as Parquet with `about` as JSON in the metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pa.table({name: pa.array(entries) for name, entries in columns.items()})
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as unfit:
        raise InputError(f"the columns cannot be saved, their entries differ: {unfit}") from None
    table = table.replace_schema_metadata({KEY: json.dumps(about).encode()})
    write_whole(path, lambda temporary: pq.write_table(table, temporary), replace=replace)


def read_table(path: Path) -> tuple[dict[str, Any], Any]:
    """The columns and the metadata that `write_table` wrote."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    about = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    return {name: table.column(name) for name in table.column_names}, about


def portable(what: str, entries: Iterable[Hashable]) -> list[Any]:
    """Labels or owners as a file can hold them and give them back; else an error that says so."""
    found = list(entries)
    for entry in dict.fromkeys(found):
        whole = isinstance(entry, int) and abs(entry) < 2**63
        finite = isinstance(entry, float) and math.isfinite(entry)
        if not (isinstance(entry, str) or whole or finite):
            raise InputError(
                f"the {what} {entry!r} of type {type(entry).__name__} cannot be saved: "
                f"use strings or numbers as {what}s"
            )
    return found


def pack_array(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: its dtype, shape and bytes (little-endian, base64)."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": plain.dtype.str,
        "shape": list(plain.shape),
        "base64": base64.b64encode(plain.tobytes()).decode("ascii"),
    }


def unpack_array(packed: Mapping[str, Any]) -> NDArray[Any]:
    """The array that `pack_array` packed."""
    dtype = np.dtype(packed["dtype"])
    raw = np.frombuffer(base64.b64decode(packed["base64"]), dtype)
    return raw.reshape(packed["shape"]).astype(dtype.newbyteorder("="))
