"""Options that several verbs of the command share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def panel(title: str | None) -> Callable[..., Any]:
    """What declares the options of one panel of the help."""

    def option(text: str, *names: str, **more: Any) -> Any:
        return typer.Option(*names, help=text, rich_help_panel=title, **more)

    return option


def argument(text: str, **more: Any) -> Any:
    """An argument without a name."""
    return typer.Argument(help=text, **more)


given = panel(None)

Adjacency = Annotated[
    str,
    given(
        "What the budget hides: that one point or owner was added or removed (add-remove), or "
        "replaced (replace-one)."
    ),
]
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
Radius = Annotated[float, given("Distance up to which a point counts.")]
Rings = Annotated[int, given("Into how many rings a kernel is divided.")]
TableFile = Annotated[
    str, argument("The table: a file, a folder, a pattern in quotes, or - (standard input).")
]
Trees = Annotated[
    int | None, given("Count in the leaves of this many public trees, not within a radius.")
]
Leaves = Annotated[int, given("With --trees: the most leaves that such a tree has.")]
