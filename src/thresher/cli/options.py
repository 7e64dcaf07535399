"""Options that several verbs of the command share."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from thresher.errors import InputError


class OnceCommand(TyperCommand):
    """A verb whose options can be given once, but for those that take several entries."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse what is given again: only the last one would count."""
        order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        for each, times in Counter(order).items():
            if times > 1 and not (each.multiple or each.is_flag or ctx.resilient_parsing):
                raise InputError(
                    f"{each.opts[0]} must be given once, got it {times} times: keep one of them, "
                    "and put a list into it with commas"
                )
        return super().parse_args(ctx, args)


def panel(title: str | None) -> Callable[..., Any]:
    """A function that declares options in one panel of the help."""

    def option(text: str, *names: str, **more: Any) -> Any:
        return typer.Option(*names, help=text, rich_help_panel=title, **more)

    return option


def argument(text: str, **more: Any) -> Any:
    """Declare an argument that has no name and is known by its place."""
    return typer.Argument(help=text, **more)


given = panel(None)

Adjacency = Annotated[
    str,
    given(
        "What the budget hides: that one point or owner was added or removed (add-remove), or "
        "replaced (replace-one)."
    ),
]
Categorical = Annotated[str | None, given("Columns that are categories.")]
Delimiter = Annotated[
    str | None, given("What separates cells of text: a comma or a tab if not given.")
]
Encoding = Annotated[
    str | None, given("The encoding of text, such as latin-1 or utf-16; UTF-8 if not given.")
]
Force = Annotated[bool, given("Replace existing files.", "--force")]
Id = Annotated[str | None, given("The column of ids.")]
Ignore = Annotated[str | None, given("Columns to leave out.")]
Json = Annotated[bool, given("Print the outcome as JSON.", "--json")]
Label = Annotated[str, given("The column of labels.")]
Metric = Annotated[Literal["cosine", "euclidean"], given("Distance.")]
PublicValidation = Annotated[Path, given("The public validation set.")]
PublicFill = Annotated[
    str | None,
    given("How to fill missing numbers: median (of the validation set), zero or a number."),
]
Radius = Annotated[
    str, given("Distance up to which a point counts; auto finds it from the validation set.")
]
Rings = Annotated[
    int | None, given("Into how many rings a --kernel other than box is divided; 4 if not given.")
]
Standardize = Annotated[
    str | None, given("validation: scale columns by the validation set, which is public.")
]
TableFile = Annotated[
    str, argument("The table: a file, a folder, a pattern in quotes, or - (standard input).")
]
Trees = Annotated[
    int | None, given("Count in the leaves of this many public trees, not within a radius.")
]
Leaves = Annotated[
    int | None, given("With --trees: the most leaves that such a tree has; 16 if not given.")
]


def number(text: str | None) -> Any:
    """The number that was typed; text that is none stays, for a check to say so.

    Examples
    --------
    >>> number("12"), number("12.5"), number("a lot"), number(None)
    (12, 12.5, 'a lot', None)
    """
    for kind in (int, float):
        with contextlib.suppress(TypeError, ValueError):
            return kind(text)  # type: ignore[arg-type]
    return text


def check_needs(options: Mapping[str, Any], wanted: str, *, met: bool) -> None:
    """Refuse options that were given without the option that they need.

    Examples
    --------
    >>> check_needs({"leaves": 4}, "--trees", met=False)
    Traceback (most recent call last):
    thresher.errors.InputError: --leaves 4 needs --trees; without that, leave --leaves out
    """
    for name, entry in options.items():
        if not met and entry is not None and entry is not False:
            written = f"--{name.replace('_', '-')}"
            said = "" if entry is True else f" {entry}"
            raise InputError(f"{written}{said} needs {wanted}; without that, leave {written} out")


def rings_and_leaves(
    kernel: str, rings: int | None, trees: int | None, leaves: int | None
) -> tuple[int, int]:
    """How many rings and leaves to use, by default if not given; refused if nothing uses them."""
    check_needs({"leaves": leaves}, "--trees", met=trees is not None)
    check_needs({"rings": rings}, "a --kernel other than box", met=kernel != "box")
    return 4 if rings is None else rings, 16 if leaves is None else leaves
