"""Standard input as a file, and a file as standard output."""

from __future__ import annotations

import atexit
import contextlib
import shutil
import stat
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from thresher.drafts import draft_folder
from thresher.errors import InputError, printing

STREAM = "-"
STANDARD = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
MAGIC = {  # how files of other kinds than .csv begin
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"PK\x03\x04": ".zip",
    b"\x93NUMPY": ".npy",
    b"\x1f\x8b": ".csv.gz",
    b"{": ".jsonl",
}
_typed: dict[str, str] = {}  # what was typed, by the name of the file that stands for it
_called: dict[str, str] = {}  # what messages call it
_folders = contextlib.ExitStack()
atexit.register(_folders.close)


def spooled(spec: str, *, allowed: bool = True) -> str:
    """The name of a temporary file with everything in a stream; the name of a file is returned.

    A stream is `-`, which is standard input, or a pipe such as /dev/fd/63, or a named pipe. A
    stream that does not begin like a file of another kind is taken for a .csv.
    """
    if not _is_stream(spec):
        return spec
    if not allowed:
        raise InputError(
            f"{spec} is a stream, which cannot be used with --memory and --engine dask: save "
            "it first"
        )
    if spec in _typed.values():
        raise InputError(f"{spec} can be read only once: name a file for one of the two")
    whole = _folder() / "stream"
    try:
        with _opened(spec) as source, whole.open("wb") as file:
            shutil.copyfileobj(source, file)
        with whole.open("rb") as file:
            first = file.read(8)
    except OSError as refused:
        raise InputError(f"cannot read {spec}: {refused.strerror}") from None
    suffix = next((kind for mark, kind in MAGIC.items() if first.startswith(mark)), ".csv")
    suffix = _archive_kind(whole) if suffix == ".zip" else suffix
    found = str(whole.rename(whole.with_name(f"stream{suffix}")))
    _typed[found] = spec
    _called[found] = "standard input" if spec == STREAM else spec
    return found


def _archive_kind(path: Path) -> str:
    """The suffix of an archive: .npz (NumPy), .xlsx (Excel), or .zip for any other packed file."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return ".zip"
    if all(name.endswith(".npy") for name in names):
        return ".npz"
    return ".xlsx" if "xl/workbook.xml" in names else ".zip"


def is_standard_output(out: Path | None, *, json: bool) -> bool:
    """Whether an output is `-`; refused with --json, which goes there, too."""
    name = str(out)
    if out is not None and name.startswith("-."):
        raise InputError(
            f"standard output takes only .csv, with --out -, got {name}: name a file for "
            "other kinds"
        )
    if name != STREAM:
        return False
    if json:
        raise InputError("--out - and --json both go to standard output: choose one of the two")
    return True


def stand_in(suffix: str) -> Path:
    """The name of a temporary file to write, which `put_out` then prints."""
    found = _folder() / f"stream{suffix}"
    _typed[str(found)] = STREAM
    _called[str(found)] = "standard output"
    return found


def put_out(path: Path) -> None:
    """Print the bytes of a file."""
    with path.open("rb") as file, printing() as out:
        out.flush()
        shutil.copyfileobj(file, out.buffer)


def as_typed(value: Any) -> Any:
    """A record in which temporary files have the names of streams that the user typed."""
    if isinstance(value, str):
        return _renamed(value, _typed)
    if isinstance(value, dict):
        return {key: as_typed(entry) for key, entry in value.items()}
    return [as_typed(entry) for entry in value] if isinstance(value, list | tuple) else value


def as_given(line: str) -> str:
    """A message that says "standard input" or the like in place of the name of a temporary file."""
    return _renamed(line, _called)


def _renamed(text: str, names: dict[str, str]) -> str:
    for path, name in names.items():
        text = text.replace(path, name)
    return text


def _folder() -> Path:
    """A temporary folder, removed at the end; removes those that killed processes left, too."""
    return _folders.enter_context(draft_folder(Path(tempfile.gettempdir())))


def _opened(spec: str) -> Any:
    if spec != STREAM:
        return Path(spec).open("rb")
    if sys.stdin is None:
        raise InputError("standard input is closed: name a file")
    return sys.stdin.buffer


def _is_stream(spec: str) -> bool:
    if spec == STREAM or spec.startswith(STANDARD):
        return True
    try:
        return stat.S_ISFIFO(Path(spec).stat().st_mode)
    except (OSError, ValueError):
        return False
