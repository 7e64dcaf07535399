"""Options that several verbs of the command share."""

from __future__ import annotations

from typing import Annotated

import typer

Delimiter = Annotated[
    str | None, typer.Option(help="Between cells of text: a comma or a tab if not given.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
Id = Annotated[str | None, typer.Option(help="The column of ids.")]
Ignore = Annotated[str | None, typer.Option(help="Columns to leave out.")]
Json = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]
