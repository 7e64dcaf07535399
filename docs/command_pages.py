"""The reference of the command `thresher`, made from the command itself, for docs/cli.md.

It goes where that page has the comment `<!-- all commands -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from thresher.cli import app as thresher_app

PLACE = "<!-- all commands -->"
CODE = re.compile(r"(`.+?`|\*\*.+?\*\*|(?<![\w-])--?[a-z][a-z-]*)")  # help sets code in bold


def all_commands() -> str:
    """A section for each command and each subcommand, in Markdown."""
    top = typer.main.get_command(thresher_app)
    return "\n\n".join(block for words, each in walk(top) for block in section(words, each))


def walk(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and all commands below it, in the order of its help, each with what calls it."""
    words = words or ("thresher",)
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, *words, name)


def section(words: tuple[str, ...], command: Any) -> list[str]:
    """What the help of a command says, as blocks of Markdown."""
    name, context = " ".join(words), typer.Context(command, info_name=" ".join(words))
    blocks = [f"{'#' * max(2, len(words))} {name}"]
    if len(words) > 1:  # the help of `thresher` itself is an overview of the others
        usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
        first, *more = map(paragraph, command.help.split("\n\n"))
        blocks += [first, f"```text\n{usage}\n```", *more]
    if inner := getattr(command, "commands", {}):
        blocks.append("\n".join(overview(name, inner)))
    panels: dict[str, list[str]] = {}
    for each in command.params:
        option = each.opts[0].startswith("-")
        title = each.rich_help_panel or ("Options" if option else "Arguments")
        written, text = each.get_help_record(context)
        panels.setdefault(title, []).append(f"`{written}`\n: {plain(text)}")
    return blocks + [block for title, told in panels.items() for block in (f"**{title}**", *told)]


def overview(name: str, commands: dict[str, Any]) -> Iterator[str]:
    """A row of a table for each command: a link to its section, and the first line of its help."""
    yield "| command | what it does |\n|---|---|"
    for inner, command in commands.items():
        first = " ".join(command.help.split("\n\n")[0].split())
        yield f"| [{name} {inner}](#{name.replace(' ', '-')}-{inner}) | {plain(first)} |"


def paragraph(text: str) -> str:
    """One paragraph of help; examples become lines of a terminal."""
    line = " ".join(text.split())
    if line.startswith("Example: "):
        return f"```console\n$ {line.removeprefix('Example: ')}\n```"
    return plain(line)


def plain(text: str) -> str:
    """Text in which nothing is markup, except code."""
    parts = CODE.split(text)
    return "".join(
        f"`{part.strip('`*')}`" if place % 2 else re.sub(r"([\\`*_<>\[\]|])", r"\\\1", part)
        for place, part in enumerate(parts)
    )


def fill(_: Any, __: str, source: list[str]) -> None:
    """Put the reference where a page asks for it."""
    if PLACE in source[0]:
        source[0] = source[0].replace(PLACE, all_commands())


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
