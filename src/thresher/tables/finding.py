"""Which files a path, a folder or a pattern means, and what to say where there are none."""

from __future__ import annotations

import difflib
import glob
import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from thresher.errors import InputError
from thresher.spelling import spelled

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npz": "npz",
    ".npy": "npy",
}
TEXT_KINDS = ("csv", "tsv")
MOST_NAMES = 12  # shown in a message


def find_files(spec: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files that `spec` means: one, all tables of a folder, or all that fit a pattern.

    They are of one kind and sorted by name. In a folder, hidden files, files that begin with "_"
    and files that are no tables are passed over.

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
            raise InputError(f"no file fits the pattern {spec}")
    else:
        raise InputError(_why_no_file(path))
    _check_one_kind(spec, found)
    return tuple(found)


def kind_of(path: Path) -> str:
    """The kind of table that a file holds, by its name; .gz of text counts as text.

    Examples
    --------
    >>> kind_of(Path("a.CSV")), kind_of(Path("b.tsv.gz")), kind_of(Path("c.feather"))
    ('csv', 'tsv', 'arrow')
    """
    kind = KINDS.get(_suffix(path), "")
    if not kind or (is_gzip(path) and kind not in TEXT_KINDS):
        raise InputError(f"{path} must be a {_suffixes()} file, or a .csv.gz or .tsv.gz")
    return kind


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return path.suffix.lower() == ".gz"


def missing(where: str, what: str, name: str, names: Iterable[str], option: str = "") -> InputError:
    """An error that says that there is no `name`, with the nearest names that there are.

    Examples
    --------
    >>> print(missing("a.csv", "column", "lable", ["x", "label"], "--label"))
    a.csv has no column 'lable' (--label): did you mean 'label'? It has 'x', 'label'
    """
    known = list(names)
    near = nearest(name, known)
    said = f": did you mean {told_apart(near[0], name)}? It has " if near else ": it has "
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    listed = ", ".join(map(repr, known[:MOST_NAMES])) + more
    place = f" ({option})" if option else ""
    return InputError(f"{where} has no {what} {name!r}{place}{said}{listed}")


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The other names most like `name`, capitals and spaces aside, best first."""
    plain: dict[str, str] = {}
    for each in names:
        if each != name:
            plain.setdefault(spelled(each), each)
    found = difflib.get_close_matches(spelled(name), list(plain), n=3)
    return [plain[each] for each in found]


def told_apart(name: str, other: str, *, quoted: bool = True) -> str:
    r"""A name, with escapes where it would look like the other one.

    Examples
    --------
    >>> print(told_apart("label", "lable"), told_apart("cafe\u0301", "caf\u00e9"))
    'label' 'cafe\u0301', which only looks the same
    """
    same = unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", other)
    if same:
        return f"{name!a}, which only looks the same"
    return repr(name) if quoted else name


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


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if is_gzip(path) else path.suffix.lower()


def _is_table(path: Path) -> bool:
    known = path.is_file() and not path.name.startswith((".", "_")) and _suffix(path) in KINDS
    return known and (not is_gzip(path) or KINDS[_suffix(path)] in TEXT_KINDS)


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
        names = [told_apart(str(folder / name), str(path), quoted=False) for name in near]
        return f": did you mean {' or '.join(names)}?"
    tables = [name for name in names if _is_table(folder / name)]
    return f": {folder} has {', '.join(tables[:MOST_NAMES])}" if tables else ""
