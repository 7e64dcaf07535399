"""Names that say the same and are written differently: 1 and "1", Cat and cat, é in two forms."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal

from thresher.errors import InputError, shortened

MOST_DIGITS = 60  # of a label that is a number
NAMES = 5  # labels that are named
MOST_NAMES = 12  # names of columns or files in a message
LONGEST_LABEL = 60  # characters of one of them
MISSING = ("", "na", "n/a", "nan", "null", "none")  # how text says that a cell is missing
NO_LABEL = {*MISSING, "<na>", "#n/a", "#na", "n.a.", "nat", "nil", "?", "-", "--", "."}


def spelled(label: Hashable) -> str:
    r"""What a label says, whatever its type, Unicode form, capitals and spaces.

    Examples
    --------
    >>> spelled(1), spelled("01"), spelled(1.0), spelled("Cafe\u0301 ") == spelled("caf\u00e9")
    ('1', '1', '1', True)
    """
    number = whole_number(label)
    if number is not None:
        return str(number)
    text = unicodedata.normalize("NFKC", str(label)).casefold()
    return " ".join("".join(x for x in text if unicodedata.category(x) != "Cf").split())


def whole_number(label: Hashable) -> int | None:
    """The integer that a label is, however it is written; None if it is not one.

    Examples
    --------
    >>> whole_number("1.0"), whole_number(1e3), whole_number("1.5"), whole_number("one")
    (1, 1000, None, None)
    """
    try:
        number = Decimal(str(label).strip())
    except ArithmeticError:
        return None
    if not number.is_finite() or abs(number.adjusted()) > MOST_DIGITS:
        return None
    return int(number) if number == number.to_integral_value() else None


def look_alikes(labels: Iterable[Hashable]) -> list[list[Hashable]]:
    """Groups of different labels that say the same.

    Examples
    --------
    >>> look_alikes(["cat", "dog", "Cat ", 1, "1"])
    [['cat', 'Cat '], [1, '1']]
    """
    distinct = dict.fromkeys(labels)
    if all(type(label) is int for label in distinct):
        return []
    groups: dict[str, list[Hashable]] = {}
    for label in distinct:
        groups.setdefault(spelled(label), []).append(label)
    return [same for same in groups.values() if len(same) > 1]


def split_by_spelling(
    ours: Iterable[Hashable], theirs: Iterable[Hashable]
) -> list[tuple[Hashable, Hashable]]:
    """Labels that only one side has, each with one that says the same on the other side.

    Examples
    --------
    >>> split_by_spelling(["cat", "dog"], ["Cat", "dog"])
    [('cat', 'Cat')]
    """
    mine, others = dict.fromkeys(ours), dict.fromkeys(theirs)
    if mine.keys() == others.keys():
        return []
    found = []
    for same in look_alikes([*mine, *others]):
        pairs = [(a, b) for a in same for b in same if a in mine and b in others and a != b]
        apart = [(a, b) for a, b in pairs if a not in others or b not in mine]
        found += apart[:1]
    return found


def named(labels: Iterable[Hashable]) -> str:
    r"""A few labels for a message, so that those which look alike can be told apart.

    Examples
    --------
    >>> print(named(["cat", "caf\u00e9"]), "|", named(["caf\u00e9", "cafe\u0301"]))
    'cat', 'café' | 'caf\xe9', 'cafe\u0301'
    """
    found = list(labels)
    shown = [repr(label) for label in found[:NAMES]]
    if len({unicodedata.normalize("NFKC", text) for text in shown}) < len(shown):
        shown = [ascii(label) for label in found[:NAMES]]
    more = f" and {len(found) - NAMES} more" if len(found) > NAMES else ""
    return ", ".join(shortened(text, LONGEST_LABEL) for text in shown) + more


def missing(where: str, what: str, name: str, names: Iterable[str], role: str = "") -> InputError:
    """An error that says that there is no `name`, and lists the most similar names.

    The `role` is what the name was given for, such as an argument.

    Examples
    --------
    >>> from thresher.errors import option
    >>> print(missing("a.csv", "column", "lable", ["x", "label"], option("label")))
    a.csv has no column 'lable' (label): did you mean 'label'? It has 'x', 'label'
    """
    known = list(names)
    near = nearest(name, known)
    said = f": did you mean {distinct_name(near[0], name)}? It has " if near else ": it has "
    place = f" ({role})" if role else ""
    return InputError(f"{where} has no {what} {name!r}{place}{said}{first_names(known)}")


def first_names(names: Sequence[Hashable]) -> str:
    """The first names for a message, and how many more there are.

    Examples
    --------
    >>> print(first_names([f"x{place}" for place in range(13)]))
    'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7', 'x8', 'x9', 'x10', 'x11' and 1 more
    """
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(map(repr, names[:MOST_NAMES])) + more


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The other names most like `name`, capitals and spaces aside, best first."""
    plain: dict[str, str] = {}
    for each in names:
        if each != name:
            plain.setdefault(spelled(each), each)
    found = difflib.get_close_matches(spelled(name), list(plain), n=3)
    return [plain[each] for each in found]


def distinct_name(name: str, other: str, *, quoted: bool = True) -> str:
    r"""A name, with escapes where it would look like the other one.

    Examples
    --------
    >>> print(distinct_name("label", "lable"), distinct_name("cafe\u0301", "caf\u00e9"))
    'label' 'cafe\u0301', which only looks the same
    """
    same = unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", other)
    if same:
        return f"{name!a}, which only looks the same"
    return repr(name) if quoted else name
