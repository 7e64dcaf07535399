"""Files in .gz and .zip: what is inside, and its bytes, as UTF-8 where it is text."""

from __future__ import annotations

import atexit
import codecs
import contextlib
import gzip
import io
import shutil
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO

from thresher.drafts import draft_folder
from thresher.errors import InputError, option

_folders = contextlib.ExitStack()
atexit.register(_folders.close)


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return path.suffix.lower() == ".gz"


def is_zip(path: Path) -> bool:
    """Whether a file is an archive, by its name."""
    return path.suffix.lower() == ".zip"


def is_packed(path: Path) -> bool:
    """Whether a file is packed in either way."""
    return is_gzip(path) or is_zip(path)


def inner_name(path: Path) -> str:
    """The name of the file inside; for an archive that does not exist yet, its own without .zip.

    Examples
    --------
    >>> inner_name(Path("a.csv.gz")), inner_name(Path("a.csv.zip")), inner_name(Path("a.csv"))
    ('a.csv', 'a.csv', 'a.csv')
    """
    if is_zip(path) and path.is_file():
        return member_of(path)
    return path.stem if is_packed(path) else path.name


def member_of(path: Path) -> str:
    """The name of the one file in an archive; files that operating systems add do not count."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [each.filename for each in archive.infolist() if not each.is_dir()]
    except zipfile.BadZipFile:
        raise InputError(f"{path} is damaged, or is not a .zip file") from None
    found = [name for name in names if not _is_beside(name)]
    if len(found) != 1:
        listed = f": {', '.join(found[:5])}" if found else ""
        raise InputError(
            f"{path} holds {len(found)} files, and one table is needed{listed}: unpack it, and "
            "name one of them"
        )
    return found[0]


def _is_beside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return parts[0] == "__MACOSX" or parts[-1].startswith(".")


def open_bytes(path: Path, encoding: str | None = None) -> IO[bytes]:
    """A file to read from: unpacked if it is packed, and as UTF-8 if `encoding` is another one."""
    file = _opened(path)
    return file if encoding is None else io.BufferedReader(_Recoded(file, path, encoding))


def _opened(path: Path) -> IO[bytes]:
    if is_zip(path):
        with zipfile.ZipFile(path) as archive:
            return archive.open(member_of(path))
    return gzip.open(path, "rb") if is_gzip(path) else path.open("rb")  # type: ignore[return-value]


def unpacked(path: Path) -> Path:
    """A temporary file with the contents of a packed one; any other file as it is."""
    return _unpacked(path, path.stat().st_mtime_ns) if is_packed(path) else path


@lru_cache(maxsize=64)
def _unpacked(path: Path, _changed: int) -> Path:
    folder = _folders.enter_context(draft_folder(Path(tempfile.gettempdir())))
    found = folder / PurePosixPath(inner_name(path)).name
    with open_bytes(path) as source, found.open("wb") as file:
        shutil.copyfileobj(source, file)
    return found


def check_encoding(encoding: object) -> str | None:
    """`encoding`, if Python knows a text encoding of that name; None for UTF-8.

    Examples
    --------
    >>> check_encoding("Latin-1"), check_encoding("UTF-8")
    ('iso8859-1', None)
    """
    if encoding is None:
        return None
    try:
        known = codecs.lookup(str(encoding))
        "".encode(known.name)
    except (LookupError, ValueError):
        raise InputError(
            f"{option('encoding')} must be one such as latin-1, cp1252 or utf-16, got {encoding!r}"
        ) from None
    return None if known.name == "utf-8" else known.name


class _Recoded(io.RawIOBase):
    """Text of another encoding, as UTF-8."""

    def __init__(self, file: IO[bytes], path: Path, encoding: str) -> None:
        self.file, self.path, self.encoding = file, path, encoding
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.ready = b""

    def readable(self) -> bool:
        """True: it can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill a buffer; return how many bytes were read."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        last = False
        while not self.ready and not last:
            raw = self.file.read(1 << 16)
            last = not raw
            try:
                self.ready = self.decoder.decode(raw, final=last).encode()
            except UnicodeError as foreign:
                raise InputError(
                    f"{self.path} is not {self.encoding}: {foreign}; name another "
                    f"{option('encoding')}"
                ) from None
        count = min(len(view), len(self.ready))
        view[:count], self.ready = self.ready[:count], self.ready[count:]
        return count

    def close(self) -> None:
        """Close this and the file that it reads."""
        self.file.close()
        super().close()
