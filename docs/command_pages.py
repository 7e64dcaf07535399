"""The reference of the command `thresher`, made from the command itself, for docs/cli.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from thresher.cli import app as thresher_app

OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")


def all_commands() -> str:
    """A section for each command and each subcommand, in Markdown."""
    top = typer.main.get_command(thresher_app)
    return "\n\n".join(block for words, each in walk(top) for block in section(words, each))


def walk(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and all commands below it, each with the words that call it."""
    words = words or ("thresher",)
    yield words, command
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from walk(inner, *words, name)


def section(words: tuple[str, ...], command: Any) -> list[str]:
    """What the help of a command says, as blocks of Markdown."""
    name, context = " ".join(words), typer.Context(command, info_name=" ".join(words))
    blocks = [f"{'#' * max(2, len(words))} {name}"]
    if len(words) > 1:  # the help of `thresher` itself is an overview of the others
        usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
        first, *more = map(paragraph, command.help.split("\n\n"))
        blocks += [first, f"```text\n{usage}\n```", *more]
    panels: dict[str, list[str]] = {}
    for each in command.params:
        option = each.opts[0].startswith("-")
        title = each.rich_help_panel or ("Options" if option else "Arguments")
        written, text = each.get_help_record(context)
        panels.setdefault(title, []).append(f"`{written}`\n: {plain(text)}")
    return blocks + [block for title, told in panels.items() for block in (f"**{title}**", *told)]


def paragraph(text: str) -> str:
    """One paragraph of help; examples become lines of a terminal."""
    line = " ".join(text.split())
    if line.startswith("Example: "):
        return f"```console\n$ {line.removeprefix('Example: ')}\n```"
    return plain(line)


def plain(text: str) -> str:
    """Text in which nothing is markup, except options, which are code."""
    parts = OPTION.split(text)
    return "".join(
        f"`{part}`" if place % 2 else re.sub(r"([\\`*_<>\[\]|])", r"\\\1", part)
        for place, part in enumerate(parts)
    )
