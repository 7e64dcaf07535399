"""Which files a path, a folder or a pattern means, and of which kind they are."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from thresher.errors import InputError, option
from thresher.inputs.spelling import MOST_NAMES, distinct_name, nearest
from thresher.tables.packing import inner_name, is_packed, is_zip

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npz": "npz",
    ".npy": "npy",
    ".xlsx": "xlsx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "txt",
}
TEXT_KINDS = {"csv": ",", "tsv": "\t", "txt": "\t"}
UNPACKED = {"npz", "npy"}  # kinds that are packed themselves, or mapped
WORDS = {"tab": "\t", "\\t": "\t"}


def find_files(spec: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files that `spec` means: one, all tables of a folder, or all that fit a pattern.

    They are of one kind and sorted by name. In a folder, hidden files, files that begin with "_"
    and files that are not tables are skipped.

    Examples
    --------
    >>> find_files("none/a.csv")
    Traceback (most recent call last):
    thresher.errors.InputError: there is no file none/a.csv: the folder none does not exist
    """
    if not isinstance(spec, str | os.PathLike) or not str(spec):
        raise InputError(f"a table must be the name of a file, a folder or a pattern, got {spec!r}")
    path = Path(spec)
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if _is_table(each))
        if not found:
            raise InputError(f"the folder {path} holds no tables ({_suffixes()})")
    elif path.is_file():
        found = [path]
    elif glob.has_magic(str(spec)):
        matches = (Path(each) for each in glob.glob(str(spec), recursive=True))  # noqa: PTH207
        found = sorted(each for each in matches if each.is_file())
        if not found:
            raise InputError(f"no file matches the pattern {spec}")
    else:
        raise InputError(_why_no_file(path))
    _check_one_kind(spec, found)
    return tuple(found)


def kind_of(path: Path) -> str:
    """The kind of table that a file holds, by its name; inside a .gz or .zip, by the name there.

    Examples
    --------
    >>> kind_of(Path("a.CSV")), kind_of(Path("b.tsv.gz")), kind_of(Path("c.feather"))
    ('csv', 'tsv', 'arrow')
    """
    kind = _kind(path)
    if kind is None:
        raise InputError(
            f"{path} must be a {_suffixes()} file, or one of them as .gz or .zip (not .npz and "
            ".npy)"
        )
    return kind


def check_delimiter(delimiter: object) -> str:
    r"""`delimiter`, if it is one plain character; "tab" and "\t" stand for a tab.

    Examples
    --------
    >>> check_delimiter(";"), check_delimiter("tab")
    (';', '\t')
    """
    found = WORDS.get(delimiter, delimiter) if isinstance(delimiter, str) else delimiter
    plain = isinstance(found, str) and len(found) == 1 and found.isascii()
    if not plain or found in '"\r\n\0':  # type: ignore[operator]
        raise InputError(
            f"{option('delimiter')} must be one character such as ; or |, or tab, got {delimiter!r}"
        )
    return found  # type: ignore[return-value]


def delimiter_of(kind: str, given: str | None = None) -> str | None:
    r"""The delimiter of a kind of file: the one that is given, else the usual one.

    Examples
    --------
    >>> delimiter_of("csv"), delimiter_of("tsv"), delimiter_of("csv", ";"), delimiter_of("parquet")
    (',', '\t', ';', None)
    """
    if kind not in TEXT_KINDS:
        return None
    return TEXT_KINDS[kind] if given is None else check_delimiter(given)


def check_text_options(
    specs: Iterable[str | os.PathLike[str] | None], *, delimiter: str | None = None,
    encoding: str | None = None,
) -> None:  # fmt: skip
    """Refuse a delimiter and an encoding if none of the files has cells of text."""
    for name, given in (("delimiter", delimiter), ("encoding", encoding)):
        if given is None:
            continue
        files = [find_files(spec)[0] for spec in specs if spec is not None]
        kinds = [kind_of(path) for path in files]
        if not {*kinds} & {*TEXT_KINDS}:
            utf8 = name == "encoding" and "jsonl" in kinds
            way_out = "convert it, JSON lines are always UTF-8" if utf8 else "leave it out"
            raise InputError(
                f"{option(name, given)} is for .csv, .tsv and .txt files, which {files[0]} is not: "
                f"{way_out}"
            )


def _check_one_kind(spec: str | os.PathLike[str], found: list[Path]) -> None:
    first: dict[str, str] = {}
    for path in found:
        first.setdefault(kind_of(path), path.name)
    if len(first) > 1:
        named = ", ".join(first.values())
        raise InputError(
            f"{spec} holds tables of different kinds, such as {named}: name one kind by a pattern, "
            f"such as '*{Path(next(iter(first.values()))).suffix}'"
        )


def _kind(path: Path) -> str | None:
    kind = KINDS.get(Path(inner_name(path)).suffix.lower())
    return None if is_packed(path) and kind in UNPACKED else kind


def _is_table(path: Path) -> bool:
    """Whether a file of a folder is a table; a .txt, which may say anything, and a .zip are not."""
    if not path.is_file() or path.name.startswith((".", "_")) or is_zip(path):
        return False
    return _kind(path) not in {None, "txt"}


def _suffixes() -> str:
    *most, last = KINDS
    return f"{', '.join(most)} or {last}"


def _why_no_file(path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return f"{path} is a link to {path.readlink()}, and there is no such file"
    if path.exists():
        return f"{path} is neither a file nor a folder"
    return f"there is no file {path}{_nearest_files(path)}"


def _nearest_files(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f": the folder {folder} does not exist"
    names = sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))
    near = nearest(path.name, names)
    if near:
        names = [distinct_name(str(folder / name), str(path), quoted=False) for name in near]
        return f": did you mean {' or '.join(names)}?"
    tables = [name for name in names if _is_table(folder / name)]
    return f": {folder} has {', '.join(tables[:MOST_NAMES])}" if tables else ""
