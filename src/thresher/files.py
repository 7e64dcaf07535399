"""Files of results: written completely or not at all, read back exactly, refused if damaged."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np

from thresher.drafts import draft_file
from thresher.errors import InputError, option
from thresher.inputs.coded import Coded
from thresher.threads import cut

KEY = b"thresher"
PIECE = 1 << 24  # rows of a column that Arrow holds together
BROKEN = (  # what readers raise on a file that is not what it seems
    ArithmeticError,
    AttributeError,
    BadZipFile,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
    zlib.error,
)


def write_whole(
    path: str | Path,
    write: Callable[[Path], object],
    *,
    replace: bool = True,
    private: bool = False,
) -> None:
    """Let `write` fill a temporary file next to `path`, and rename it, so it is never half written.

    A replaced file keeps its permissions, and links still point to it. Without `replace`, an
    existing file is left alone, even if it appeared while this one was written. Only its owner can
    read a `private` file, even if others could read the file that it replaces.
    """
    with writing(path) as target, draft_file(target.parent) as temporary:
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {path}: it already exists, and is not a file")
        mode = target.stat().st_mode & 0o777 if target.exists() else usual_mode()
        mode = 0o600 if private else mode
        write(temporary)
        temporary.chmod(mode)
        if replace:
            temporary.replace(target)
        else:
            put(temporary, target)


def write_text(path: str | Path, text: str, *, replace: bool = True, private: bool = False) -> None:
    """Write a text file in UTF-8, as `write_whole` does."""
    write_whole(
        path, lambda draft: draft.write_text(text, encoding="utf-8"), replace=replace,
        private=private,
    )  # fmt: skip


def put(draft: Path, target: Path) -> None:
    """Give a finished file its name; raise a `FileExistsError` if the name is taken."""
    try:
        target.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: take the name first
        target.touch(exist_ok=False)
        draft.replace(target)


def check_writable(path: str | Path) -> None:
    """Raise unless a file can be written there, which is tried out."""
    with writing(path) as target:
        if target.is_dir():
            raise InputError(f"cannot write {path}: it is a folder")
        if target.exists() and not target.is_file():  # raises where no file can have such a name
            raise InputError(f"cannot write {path}: it already exists, and is not a file")
        with draft_file(target.parent):
            pass


def check_free(path: Path, inputs: Iterable[Path] = (), *, force: bool = False) -> None:
    """Raise if a file cannot be written, or if it exists and `force` is not given."""
    if path.exists() and not path.is_dir() and not force:
        same = any(each.exists() and path.samefile(each) for each in inputs)
        what = "is the input itself" if same else "already exists"
        raise InputError(
            f"{path} {what}: name another file, or replace it with {option('force', value=True)}"
        )
    check_writable(path)


def check_apart(path: Path, others: Iterable[Path]) -> None:
    """Raise if a file to be written is also used in another role."""
    for other in others:
        if resolved(path) == resolved(other):
            raise InputError(
                f"cannot write {path}: this run already uses that file; name another one"
            )


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """Yield while a file is being written; system errors inside name that file."""
    target = resolved(_path(path))
    try:
        if not target.parent.is_dir():
            raise InputError(f"cannot write {path}: the folder {target.parent} does not exist")
        yield target
    except FileExistsError:
        raise InputError(
            f"{path} already exists: it was created while this file was being written"
        ) from None
    except OSError as refused:
        raise InputError(f"cannot write {path}: {why(refused)}") from refused


def resolved(path: Path) -> Path:
    """The absolute path, without links."""
    try:
        return path.resolve()
    except FileNotFoundError:
        raise InputError(f"cannot find {path}: the working folder was removed") from None
    except (OSError, RuntimeError) as loop:  # a RuntimeError until Python 3.12
        raise InputError(f"cannot find {path}: {loop}") from None


def why(refused: OSError) -> str:
    """What the system says about a failure, in one line."""
    if refused.errno is not None:
        return os.strerror(refused.errno)
    return " ".join(str(refused).split()) or type(refused).__name__


def sync_folder(folder: Path) -> None:
    """Make a change of names durable if the system can; raise if the disk fails."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as refused:
        if refused.errno in {errno.EIO, errno.ENOSPC, errno.EDQUOT}:
            raise


def usual_mode() -> int:
    """The permissions of a new file."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _path(path: object) -> Path:
    if isinstance(path, str | os.PathLike) and str(path):
        return Path(path)
    raise InputError(f"path must be the name of a file, got {path!r}")


@contextlib.contextmanager
def reading(path: str | Path, kind: str, *, otherwise: str = "") -> Iterator[Path]:
    """Yield the path of an existing file; errors inside say that it does not hold a `kind`.

    `otherwise` is what to do if there is no such file, or text that cannot be parsed.
    """
    found = _path(path)
    if not is_file(found):
        raise InputError(f"there is no file {found}{otherwise and f': {otherwise}'}")
    try:
        yield found
    except InputError as refused:
        if str(refused).startswith(f"{found} "):  # it names the file already
            raise
        raise InputError(f"{found} does not hold a {kind}: {refused}") from None
    except BROKEN as broken:
        what = f"does not hold a {kind}, or is damaged"
        if otherwise and isinstance(broken, json.JSONDecodeError | UnicodeDecodeError):
            raise InputError(f"{found} {what}: {otherwise}") from broken
        raise damaged(found, what, broken) from broken


def is_file(path: Path) -> bool:
    """Whether there is such a file; raise if the system cannot say."""
    try:
        return path.is_file()
    except OSError as refused:
        raise InputError(f"cannot read {path}: {why(refused)}") from None


def damaged(path: Path, what: str, broken: BaseException) -> InputError:
    """An error that says `what` is wrong with a file, or that the system cannot read it."""
    if isinstance(broken, OSError) and broken.errno not in {None, errno.EINVAL}:
        return InputError(f"cannot read {path}: {why(broken)}")
    if isinstance(broken, MemoryError):
        what = "does not fit in memory, or is damaged"
    lines = str(broken).strip().splitlines() or [type(broken).__name__]
    return InputError(f"{path} {what}: {lines[0].rstrip('.')}")


def check_sealed(about: Any, wanted: str, *parts: bytes) -> None:
    """Raise unless a description has the format `wanted` and an intact seal."""
    if not isinstance(about, dict) or about.get("format") != wanted:
        raise InputError(f"its format is not {wanted}")
    if about.get("seal") != _seal(about, parts):
        raise InputError("its content was changed after it was written")


def sealed(about: Mapping[str, Any], *parts: bytes) -> dict[str, Any]:
    """`about` with a SHA-256 of itself and of the `parts` it describes."""
    return sealed_stream(about, parts)


def sealed_stream(about: Mapping[str, Any], parts: Iterable[bytes]) -> dict[str, Any]:
    """Like `sealed`, for parts that come one after the other; how they are cut does not matter."""
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
    """Write `columns` as Parquet, with `about` as JSON in the metadata."""
    import pyarrow.parquet as pq

    table = arrow_table(columns).replace_schema_metadata({KEY: json.dumps(about).encode()})
    write_whole(path, lambda temporary: pq.write_table(table, temporary), replace=replace)


def arrow_table(columns: Mapping[str, Any]) -> Any:
    """The columns as an Arrow table; raise if it cannot hold their entries unchanged."""
    import pyarrow as pa

    for name, entries in columns.items():
        some = entries.distinct if isinstance(entries, Coded) else entries
        kinds = set(map(type, some)) if isinstance(some, list | tuple) else ()
        if any(kind.__name__ == "Timestamp" for kind in kinds):  # Arrow would cut them in silence
            raise InputError(
                f"the column {name!r} cannot be saved: use strings instead of pandas timestamps"
            )
    try:
        return pa.table({name: _arrow_array(entries) for name, entries in columns.items()})
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as unfit:
        raise InputError(
            "the columns cannot be saved, because their entries are of different types "
            f"({unfit}): use strings"
        ) from None


def _arrow_array(entries: Any) -> Any:
    import pyarrow as pa

    if isinstance(entries, Coded):
        known, pieces = _arrow_array(list(entries.distinct)), cut(0, len(entries), PIECE)
        return pa.chunked_array(
            [known.take(pa.array(entries.codes[lo:hi])) for lo, hi in pieces], known.type
        )
    try:
        return pa.array(entries)
    except OverflowError:  # integers from 2**63 on, of which Arrow finds no type by itself
        return pa.array(entries, pa.uint64())


def read_table(path: Path) -> tuple[dict[str, Any], Any]:
    """The columns and the metadata that `write_table` wrote."""
    with open_parquet(path) as file:
        table = file.read()
    about = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    return {name: table.column(name) for name in table.column_names}, about


@contextlib.contextmanager
def open_parquet(path: Path, **options: Any) -> Iterator[Any]:
    """A Parquet file whose footer is consistent; a damaged one may promise rows it lacks."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, **options) as file:
        about = file.metadata
        rows = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
        if sum(rows) != about.num_rows or min(rows, default=0) < 0:
            raise InputError(f"{path} is damaged: its footer contradicts itself about its rows")
        try:
            yield file
        except UnicodeDecodeError:
            raise InputError(f"{path} is damaged: its footer has names that are not text") from None


def portable(what: str, entries: Iterable[Hashable]) -> list[Any]:
    """Labels or owners in a form that a file returns unchanged; raise if there is none.

    Examples
    --------
    >>> portable("label", [np.int64(1), np.str_("a"), 2.5])
    [1, 'a', 2.5]
    """
    found: list[Any] = list(entries)
    if not {type(entry) for entry in found} <= {bool, float, int, str}:
        found = [_plain(entry) for entry in found]
    for entry in dict.fromkeys(found):
        whole = type(entry) in {bool, int} and abs(entry) < 2**63
        finite = type(entry) is float and math.isfinite(entry)
        if not (type(entry) is str or whole or finite):
            wanted = "integers below 2**63" if type(entry) is int else "numbers"
            raise InputError(
                f"the {what} {entry!r} of type {type(entry).__name__} cannot be saved: "
                f"use strings or {wanted} as {what}s"
            )
    return found


def portable_column(what: str, entries: Iterable[Hashable]) -> list[Any]:
    """Like `portable`, for entries of one column of a file, which must have one type."""
    found = portable(what, entries)
    kinds = sorted({type(entry).__name__ for entry in found})
    if len(kinds) > 1:
        raise InputError(
            f"{what}s of different types cannot be saved in one column, got {' and '.join(kinds)}: "
            f"use one type for all {what}s"
        )
    for entry in dict.fromkeys(found) if kinds == ["str"] else ():
        try:
            entry.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"the {what} {entry!r} cannot be saved: it is not valid Unicode"
            ) from None
    return found


def _plain(entry: Any) -> Any:
    """An entry as one of the plain types if it equals one; otherwise unchanged."""
    if isinstance(entry, np.generic) and entry.dtype.kind not in "mM":
        return entry.item()
    for kind, plain in ((str, str.__str__), (int, int.__int__), (float, float.__float__)):
        if isinstance(entry, kind):
            found = plain(entry)  # type: ignore[arg-type]
            return found if found == entry and hash(found) == hash(entry) else entry
    return entry


def record_path(path: Path) -> Path:
    """The path of the record beside a text file, which has no room for a record itself.

    Examples
    --------
    >>> record_path(Path("values.csv")).name
    'values.csv.record.json'
    """
    return path.with_name(f"{path.name}.record.json")
