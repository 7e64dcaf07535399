"""The exceptions and warnings of this library.

ThresherError
├── InputError   (also a ValueError)    an argument cannot be used
│   └── UndecidedError                  it has two meanings: another argument has to decide
├── BudgetError                         a private release does not fit its ledger
└── ExtraError   (also an ImportError)  an optional dependency is missing

ThresherWarning (a UserWarning)
├── FitWarning                          models failed to fit, warned, or were too few
├── LabelWarning                        labels of points and validation set do not match
├── ReachWarning                        no point is near any validation point
├── ScaleWarning                        values have the right order but the wrong size
└── TwinWarning                         a validation row is also a training row

Messages may quote files and arguments. They are read on terminals and in logs, so `plain_text`
turns each into one line without control characters that is not too long. A message names an
argument by `option`, which Python shows as `radius=0.5`, and the command as `--radius 0.5`. If the
two use different words, the message has `either`.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import re
import sys

TYPE_CHECKING = False  # without the time that it takes to import `typing`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any, TextIO

LONGEST = 1000  # characters of a message; what a longer one quotes is cut
LONGEST_QUOTE = 120
LONGEST_INTEGER = 30  # digits that are shown
LONG_QUOTES = re.compile(  # between quotes, or without a space
    rf"(?<=')[^']{{{LONGEST_QUOTE + 1},}}(?=')|(?<=\")[^\"]{{{LONGEST_QUOTE + 1},}}(?=\")"
    rf"|[^\s'\"]{{{LONGEST_QUOTE + 1},}}"
)


def shortened(text: str, most: int = LONGEST_QUOTE) -> str:
    """`text`, cut off after `most` characters, with a note of how many characters it has.

    Examples
    --------
    >>> shortened("cat", 3), shortened("c" * 5000, 3)
    ('cat', 'ccc… (5,000 characters)')
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def quoted(value: object) -> str:
    """`value` as a message quotes it: the digits of a very long integer are counted, not shown.

    Examples
    --------
    >>> quoted("a"), quoted(-3), quoted(-(10**400))
    ("'a'", '-3', 'an integer of 401 digits')
    """
    if isinstance(value, int) and abs(value) >= 10**LONGEST_INTEGER:
        digits = int((abs(value).bit_length() - 1) * math.log10(2)) + 1
        return f"an integer of {digits + (abs(value) >= 10**digits)} digits"
    try:
        return repr(value)
    except ValueError:  # Python converts no integer of more than some thousand digits
        return f"a {type(value).__name__} with an integer of thousands of digits"


def plain_text(text: str) -> str:
    r"""`text` as one line for a terminal, with control characters escaped and long quotes cut.

    All characters that `repr` escapes are escaped, such as line ends, terminal commands and marks
    that reverse the direction of writing.

    Examples
    --------
    >>> print(plain_text("no column 'a\x1b[31m\nb\u202e'"))
    no column 'a\x1b[31m\nb\u202e'
    """
    if len(text) > LONGEST:
        text = LONG_QUOTES.sub(lambda found: shortened(found[0]), text)
    if len(text) > 2 * LONGEST:
        text = f"{text[:LONGEST]} … ({len(text):,} characters) … {text[-LONGEST:]}"
    if text.isprintable():
        return text
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)


NAMED = re.compile("\ue000(\\w+)(?:\ue001([^\ue002]*))?\ue002")  # what `option` makes
EITHER = re.compile("\ue003([^\ue004]*)\ue004([^\ue005]*)\ue005")  # what `either` makes


def option(name: str, value: object = None) -> str:
    """An argument, and what to set it to, for a message that Python and the command both show.

    Examples
    --------
    >>> raise InputError(f"the file is there: pass {option('force', value=True)}")
    Traceback (most recent call last):
    thresher.errors.InputError: the file is there: pass force=True
    >>> in_options(f"use {option('metric', 'euclidean')} or another {option('points_per_owner')}")
    'use --metric euclidean or another --points-per-owner'
    >>> advice = f"leave it out with {option('ignore', ['row id'])}"
    >>> in_python(advice), in_options(advice)
    ("leave it out with ignore=['row id']", "leave it out with --ignore 'row id'")
    """
    import json

    return f"\ue000{name}{'' if value is None else chr(0xE001) + json.dumps(value)}\ue002"


def either(python: str, command: str) -> str:
    """Alternative words in a message: one for Python, and one for the command.

    Examples
    --------
    >>> in_options(f"{either('Ledger.create', 'thresher ledger create')} makes a new one")
    'thresher ledger create makes a new one'
    """
    return f"\ue003{python}\ue004{command}\ue005"


def in_python(message: str) -> str:
    """A message with its options written as Python arguments."""
    return NAMED.sub(lambda found: _argument(*found.groups()), EITHER.sub(r"\1", message))


def in_options(message: str) -> str:
    """A message with its options written as options of the command."""
    return NAMED.sub(lambda found: _switch(*found.groups()), EITHER.sub(r"\2", message))


def _argument(name: str, value: str | None) -> str:
    import json

    return name if value is None else f"{name}={json.loads(value)!r}"


def _switch(name: str, value: str | None) -> str:
    import json
    import shlex

    switch = f"--{name.replace('_', '-')}"
    if value is None or value == "true":
        return switch
    given = json.loads(value)
    return f"{switch} {shlex.quote(','.join(given) if isinstance(given, list) else str(given))}"


def message_of(error: BaseException) -> str:
    """The text of one of our errors or warnings, with its options, for use within another."""
    one_line = isinstance(error, _OneLine) and len(error.args) == 1
    return str(error.args[0]) if one_line else str(error)


class _OneLine(Exception):  # noqa: N818
    """A base for errors and warnings that print their message as `plain_text`."""

    def __str__(self) -> str:
        return plain_text(in_python(super().__str__()))


class ThresherError(_OneLine):
    """The root of every exception that this library raises on purpose: catch it to catch them all.

    Examples
    --------
    >>> import thresher as th
    >>> try:
    ...     th.tknn_shapley([[0.0]], ["cat"], [[1.0, 2.0]], ["cat"])
    ... except th.ThresherError as error:
    ...     print(error)
    X has 1 feature but X_val has 2: both must have the same columns
    """


class InputError(ThresherError, ValueError):
    """An argument cannot be used; the message says which one, why, and what to do.

    Examples
    --------
    >>> import thresher as th
    >>> try:
    ...     th.tknn_shapley([[0.0]], ["cat"], [[1.0, 2.0]], ["cat"])
    ... except th.InputError as error:
    ...     print(error)
    X has 1 feature but X_val has 2: both must have the same columns
    """


class UndecidedError(InputError):
    """The input can be understood in two ways; the message names the argument that decides."""


class BudgetError(ThresherError):
    """A private release does not fit what is left of its budget; nothing was charged.

    Examples
    --------
    >>> import tempfile
    >>> import thresher as th
    >>> ledger = th.Ledger.create(tempfile.mkdtemp() + "/ledger.db", epsilon=1, delta=1e-5)
    >>> try:
    ...     th.dp_tknn_shapley(
    ...         [[0.0]], ["cat"], [[0.1], [0.9]], ["cat", "dog"], radius=0.3, metric="euclidean",
    ...         epsilon=2, delta=1e-5, ledger=ledger)
    ... except th.BudgetError as error:
    ...     reason, advice = str(error).split("; ")
    >>> advice
    'ask for a smaller epsilon, or protect new data with a new ledger'
    >>> ledger.close()
    """


class ExtraError(ThresherError, ImportError):
    """A feature needs a package that is not installed; the message says how to install it.

    Examples
    --------
    >>> import thresher as th
    >>> issubclass(th.ExtraError, ImportError)
    True
    >>> raise th.ExtraError("the report needs jinja2: install the extra 'report'")
    Traceback (most recent call last):
    thresher.errors.ExtraError: the report needs jinja2: install the extra 'report'
    """


class ThresherWarning(_OneLine, UserWarning):
    """The root of every warning: the numbers are right, but maybe not what you wanted.

    Examples
    --------
    >>> import thresher as th
    >>> issubclass(th.TwinWarning, th.ThresherWarning), issubclass(th.ThresherWarning, UserWarning)
    (True, True)
    """


class FitWarning(ThresherWarning):
    """Some of the trained models failed or gave a warning, or there were too few of them.

    Examples
    --------
    >>> import warnings
    >>> import thresher as th
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [8.0], [9.0]], [0, 0, 1, 1]
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = th.leave_one_out(X, y, [[0.5], [8.5]], [0, 1], model=LogisticRegression(max_iter=1))
    >>> {each.category.__name__ for each in caught}
    {'FitWarning'}
    """


class LabelWarning(ThresherWarning):
    """The points and the validation set have no label in common, or write some differently.

    The message shows some of them. "cat" and "Cat" are two classes: write such labels alike, or
    pass `classes` if they are meant to differ.

    Examples
    --------
    >>> import warnings
    >>> import thresher as th
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = th.knn_shapley([[0.0], [1.0]], ["a", "b"], [[3.0]], ["c"], metric="euclidean")
    >>> [each.category.__name__ for each in caught]
    ['LabelWarning']
    """


class ReachWarning(ThresherWarning):
    """No point is within the radius of any validation point, so every value is zero.

    Use a larger radius: `suggest_radius` finds one.

    Examples
    --------
    >>> import warnings
    >>> import thresher as th
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = th.tknn_shapley([[0.0], [1.0]], [0, 1], [[9.0]], [0], radius=1, metric="euclidean")
    >>> [each.category.__name__ for each in caught]
    ['ReachWarning']
    """


class ScaleWarning(ThresherWarning):
    """Values may have the right order but the wrong size: do not pay by them.

    They come from a private release that did not know how many points an owner has, or that counted
    a sample.

    Examples
    --------
    >>> import thresher as th
    >>> issubclass(th.ScaleWarning, th.ThresherWarning)
    True
    """


class TwinWarning(ThresherWarning):
    """Some validation rows are exact copies of training rows: a leak.

    It makes the copies look better than they are. Drop them from one of the two sets.

    Examples
    --------
    >>> import warnings
    >>> import thresher as th
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = th.knn_shapley([[0.0], [1.0]], [0, 1], [[0.0], [2.0]], [0, 1], metric="euclidean")
    >>> [each.category.__name__ for each in caught]
    ['TwinWarning']
    """


@contextlib.contextmanager
def printing() -> Iterator[TextIO]:
    """Yield standard output; system errors name it."""
    try:
        yield sys.stdout
    except OSError as failed:
        failed.filename = failed.filename or "standard output"
        raise


def require(module: str, *, purpose: str, extra: str) -> ModuleType:
    """The imported `module`, or an `ExtraError` that says how to install the extra it is in."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        package, how = module.split(".", maxsplit=1)[0], installing(extra, _origin())
        message = f"{purpose} needs {package}: install the extra {extra!r}{how}"
        raise ExtraError(message) from missing


def installing(extra: str, origin: dict[str, Any]) -> str:
    """How to install an extra from where the library came from, as pip has noted it (PEP 610).

    It names no index, because none has the library.

    Examples
    --------
    >>> installing("report", {"url": "https://host/thresher-0.2.0-py3-none-any.whl"})
    " by pip install 'thresher[report] @ https://host/thresher-0.2.0-py3-none-any.whl'"
    """
    import shlex
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    url = str(origin.get("url", ""))
    path = url2pathname(urlsplit(url).path) if url.startswith("file:") else ""
    if path and Path(path).exists():
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f" by pip install {editable}{shlex.quote(f'{path}[{extra}]')}"
    if url and not path:
        version = origin.get("vcs_info")
        url = f"{version['vcs']}+{url}@{version['commit_id']}" if version else url
        return f" by pip install {shlex.quote(f'thresher[{extra}] @ {url}')}"
    return (
        f" from the folder or wheel that Thresher came from: by pip install '.[{extra}]' in the "
        f"folder, or pip install 'FILE.whl[{extra}]'"
    )


def _origin() -> dict[str, Any]:
    """What pip has noted about where this library came from; empty if nothing."""
    import json
    from importlib import metadata

    try:
        noted = metadata.distribution("thresher").read_text("direct_url.json")
        found = json.loads(noted or "{}")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
