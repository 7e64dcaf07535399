"""Arrays of .npz and .npy files, and as JSON.

A damaged file may claim an array that no memory holds. A claim is compared with the bytes that are
there before anything is allocated.
"""

from __future__ import annotations

import base64
import json
import math
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from thresher.array_types import Array
from thresher.files import sealed, write_whole

PACKED = 1040  # bytes of which deflate makes one, at most
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def load_arrays(path: Path, names: Collection[str] | None = None) -> dict[str, Array]:
    """The arrays of an .npz file that have these names, or all; Python objects are refused."""
    with path.open("rb") as file:
        size = path.stat().st_size
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                _check_member(archive, member, size)
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            return {each: stored[each] for each in stored.files if names is None or each in names}


def save_arrays(path: str | Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a whole .npz file without Python objects, with a sealed description `about`."""
    write_arrays(path, {"about": json.dumps(sealed(about)), **arrays})


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> None:
    """Write a whole .npz file without Python objects."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:  # to a name np.savez would add .npz
            np.savez(stream, allow_pickle=False, **arrays)

    write_whole(path, write)


def load_about(arrays: Mapping[str, Array]) -> Any:
    """The description that `save_arrays` wrote; its seal is not checked yet."""
    return json.loads(str(arrays.get("about", "{}")))


def load_array(path: Path) -> Array:
    """The array of an .npy file; one of Python objects is refused."""
    with path.open("rb") as file:
        _check_claim("the array", file, path.stat().st_size)
        file.seek(0)
        return np.load(file, allow_pickle=False)


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, size: int) -> None:
    deflated = member.compress_type == zipfile.ZIP_DEFLATED
    most = (PACKED if deflated else 1) * min(member.compress_size, size)
    known = deflated or member.compress_type == zipfile.ZIP_STORED
    if known and member.file_size > most:
        raise ValueError(
            f"{member.filename!r} claims {member.file_size} bytes, but at most {most} are possible"
        )
    with archive.open(member) as stream:
        _check_claim(repr(member.filename), stream, member.file_size)


def _check_claim(name: str, stream: IO[bytes], size: int) -> None:
    version = npy.read_magic(stream)
    if version not in HEADERS:
        raise ValueError(f"{name} uses a version of NumPy's format that cannot be read: {version}")
    shape, _, dtype = HEADERS[version](stream)
    wanted, there = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if wanted > there and not dtype.hasobject:
        raise ValueError(
            f"{name} claims shape {shape}, which is {wanted} bytes, but the file has only {there}"
        )


def pack_array(array: Array, *, deflate: bool = False) -> dict[str, Any]:
    """An array as JSON: its dtype, shape and bytes (little-endian, base64); `deflate` compresses.

    Examples
    --------
    >>> packed = pack_array(np.zeros(1000), deflate=True)
    >>> len(packed["zlib"]) < 100, unpack_array(packed).shape
    (True, (1000,))
    """
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    name, content = "base64", plain.tobytes()
    if deflate:
        name, content = "zlib", zlib.compress(content)
    text = base64.b64encode(content).decode("ascii")
    return {"dtype": plain.dtype.str, "shape": list(plain.shape), name: text}


def unpack_array(packed: Mapping[str, Any]) -> Array:
    """The array that `pack_array` packed."""
    dtype = np.dtype(packed["dtype"])
    content = base64.b64decode(packed["zlib"] if "zlib" in packed else packed["base64"])
    if "zlib" in packed:
        size = math.prod(packed["shape"]) * dtype.itemsize
        if size > PACKED * len(content):
            raise ValueError(f"an array claims {size} bytes, but the file has only {len(content)}")
        try:
            content = zlib.decompress(content, bufsize=max(size, 1))
        except zlib.error:
            raise ValueError("an array was changed: it cannot be unpacked") from None
    raw = np.frombuffer(content, dtype)
    return raw.reshape(packed["shape"]).astype(dtype.newbyteorder("="))
