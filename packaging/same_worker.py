"""Run cases of `same.py` on the Thresher that PYTHONPATH names, and write down what came out.

    python packaging/same_worker.py PART SHARD SHARDS OUT [WORDS...]

What a case returns becomes lines of text in which every bit of a number and every word of a message
can be seen. Times, temporary folders and addresses are not compared.
"""

from __future__ import annotations

import dataclasses
import gzip
import importlib
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Mapping
from itertools import product
from pathlib import Path

PARTS = {
    "library": "same_library", "releases": "same_releases", "command": "same_command",
    "market": "same_market",
}  # fmt: skip
MASKED = [
    (re.compile(r"20(2[5-9]|[3-9]\d)-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?)?"), "<time>"),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"thresher-\w{3,}-\w{20,}"), "<token>"),
    (re.compile(r"(pid|port) \d+|(?<=127\.0\.0\.1:)\d+"), "<number>"),
]  # fmt: skip
FIELDS = {  # what is looked at of an object that is no plain data, by the name of its class
    "Valuation": "method params values utility_all utility_none owners ids standard_errors ranks() percentiles() efficiency_gap()",
    "DaskValuation": "compute()",
    "Findings": "columns() counts()",
    "TargetFindings": "columns() counts()",
    "Payout": "cents paid unpaid rule record() status() cautions()",
    "PrivatePayout": "public() cents reserve",
    "_Outcome": "record values table to_json() price_list error relative_error personal_epsilon is_noise unusable",
    "Plan": "mechanism relative_error rank_agreement zero_budget is_noise record",
    "PriceList": "document() classes gain loss noise scaled",
    "NeighborCounts": "classes table same other utility() price_list()",
    "LiveCounts": "ids points() values() price_list() journaled",
    "Forest": "describe() digest() sizes classes folds seed",
    "RadiusSuggestion": "radius radii accuracy coverage detection",
    "Attack": "scores is_member candidates summary()",
    "Audit": "to_json() verdict passed proven",
    "Ledger": "remaining() spent() entries() verify()",
    "Scan": "read()",
}  # fmt: skip


def masked(text):
    """The text without what no two runs share."""
    text = text.replace(os.path.realpath(Path.cwd()), "<folder>")
    for pattern, word in MASKED:
        text = pattern.sub(word, text)
    return text


def fields_of(thing):
    """The fields to look at, by the first of its classes that has any."""
    for kind in type(thing).__mro__:
        if kind.__name__ in FIELDS:
            return FIELDS[kind.__name__].split()
    return ()


def lines_of(thing, at="it"):
    """What a thing is, in lines: each part of it by its path."""
    if isinstance(thing, Path):
        yield from lines_of_file(thing, at)
    elif isinstance(thing, str | int | float | bytes | complex | type(None)) and not fields_of(
        thing
    ):
        yield from (
            f"{at}: {line}" for line in ("" if isinstance(thing, str) else repr(thing)).splitlines()
        )
        if isinstance(thing, str):
            yield from (f"{at}: '{line}'" for line in thing.splitlines() or [""])
    elif isinstance(thing, Mapping):
        yield f"{at}: {len(thing)} entries"
        for key, value in thing.items():
            yield from lines_of(value, f"{at}[{key!r}]")
    elif isinstance(thing, tuple | list | set | frozenset):
        yield f"{at}: {type(thing).__name__} of {len(thing)}"
        ordered = thing if isinstance(thing, tuple | list) else sorted(thing, key=repr)
        for number, value in enumerate(ordered):
            yield from lines_of(value, f"{at}[{number}]")
    else:
        yield from lines_of_object(thing, at)


def lines_of_object(thing, at):
    """What an array, a table or an object of Thresher is."""
    if hasattr(thing, "dtype") and hasattr(thing, "tolist"):
        yield f"{at}: {type(thing).__name__} {thing.dtype} {getattr(thing, 'shape', '')}"
        listed = thing.tolist()
        for number, row in enumerate(listed if isinstance(listed, list) else [listed]):
            yield f"{at}[{number}]: {row!r}"
    elif hasattr(thing, "to_pydict"):
        yield from lines_of(thing.schema.to_string(truncate_metadata=False), f"{at}.schema")
        cells = {name: list(map(repr, column)) for name, column in thing.to_pydict().items()}
        yield from lines_of(cells, at)
    elif hasattr(thing, "dtypes"):
        library, types = type(thing).__module__.split(".")[0], list(map(str, thing.dtypes))
        yield f"{at}: {library} {list(thing.columns)} {types}"
        for name in thing.columns:
            yield from lines_of(list(map(repr, thing[name].to_list())), f"{at}[{name!r}]")
    elif hasattr(thing, "__next__"):
        yield from lines_of(list(thing), at)
    else:
        yield from lines_of_fields(thing, at)


def lines_of_fields(thing, at):
    """What an object is: its text, and its fields."""
    yield f"{at}: {type(thing).__name__}"
    yield from lines_of(repr(thing), f"{at} as text")
    named = fields_of(thing)
    if not named and dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        named = [field.name for field in dataclasses.fields(thing)]
    for field in named:
        yield from outcome(lambda field=field: field_of(thing, field), f"{at}.{field}")


def field_of(thing, field):
    """The value of a field, or of a method without arguments."""
    return getattr(thing, field[:-2])() if field.endswith("()") else getattr(thing, field)


def lines_of_file(path, at):
    """What is in a file: tables by content and metadata, texts whole, the rest as bytes."""
    at = f"{at} {path.name}"
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            yield from lines_of_file(each, f"{at}/") if each.is_file() else [f"{at}/{each.name}/"]
    elif path.suffix in {".parquet", ".arrow", ".feather"}:
        from pyarrow import feather, parquet

        yield from lines_of(
            (parquet if path.suffix == ".parquet" else feather).read_table(path), at
        )
    elif path.suffix in {".npz", ".npy", ".live"}:
        import numpy

        with open(path, "rb") as file:
            found = numpy.load(file, allow_pickle=False)
            yield from lines_of(dict(found) if path.suffix == ".npz" else found, at)
    elif path.suffix == ".xlsx":
        import openpyxl

        for sheet in openpyxl.load_workbook(path):
            yield from lines_of(
                [list(map(repr, row)) for row in sheet.values], f"{at} {sheet.title}"
            )
    elif path.suffix in {".db", ".gz", ".png"}:
        yield f"{at}: a file"  # has times; what it holds is asked for by its own functions
    else:
        content = path.read_bytes()
        yield f"{at}: {oct(path.stat().st_mode)} ends {content[-1:]!r}"
        yield from lines_of(content.decode("utf-8", "backslashreplace"), at)


def told(error):
    """What an error says, with its notes; not where it was raised, which may move."""
    import thresher

    kinds = [
        kind
        for kind in type(error).__mro__
        if not kind.__module__.startswith("thresher.") or kind.__name__ in thresher.__all__
    ]
    yield f"raises {' '.join(kind.__name__ for kind in kinds)}"
    for number, text in enumerate([str(error), *getattr(error, "__notes__", ())]):
        yield from lines_of(text, "note" if number else "message")


def outcome(function, at="it"):
    """What a function returns, raises and warns of, in lines."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            yield from lines_of(function(), at)
        except Exception as error:  # noqa: BLE001 - whatever it is
            yield from told(error)
    for each in heard:
        if not issubclass(
            each.category,
            DeprecationWarning | ResourceWarning | ImportWarning | PendingDeprecationWarning,
        ):
            blamed = "the caller" if "same_" in each.filename else "another place"
            yield from lines_of(str(each.message), f"{each.category.__name__} at {blamed}")


class Cases(dict):
    """Functions without arguments by their names."""

    def add(self, name, function):
        """Add a case; its name is new."""
        assert name not in self, name
        self[name] = function

    def calls(self, name, function, /, **axes):
        """Add a call for each choice of one entry of every axis; later axes win.

        An axis is a list of values of its argument, or a dictionary of arguments by a short name.
        """
        named = [
            [(f"{axis}={value}", {axis: value}) for value in entries] if isinstance(entries, list)
            else [(f"{axis} {label}".strip(), given) for label, given in entries.items()]
            for axis, entries in axes.items()
        ]  # fmt: skip
        for picked in product(*named):
            given = {key: value for _, part in picked for key, value in part.items()}
            given = {key: value for key, value in given.items() if value is not ...}
            self.add(
                ", ".join([name, *(label for label, _ in picked)]),
                lambda given=given: function(**given),
            )


def run(function):
    """The lines of a case, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return [masked(line) for line in outcome(function)]
        finally:
            os.chdir("/")


def main():
    part, shard, *more = sys.argv[1:]
    os.umask(0o022)
    wanted = os.environ["PYTHONPATH"]
    assert importlib.import_module("thresher").__file__.startswith(wanted), (
        f"this is not the Thresher of {wanted}"
    )
    module = importlib.import_module(PARTS[part])
    cases = module.cases()
    if shard == "names":
        print(*(f"{part}: {name}" for name in cases), sep="\n")
        return
    shards, out, *words = more
    names = [
        name
        for name in list(cases)[int(shard) :: int(shards)]
        if all(word in f"{part}: {name}" for word in words)
    ]
    if len(names) > 20:  # else it takes longer than it saves
        getattr(module, "warm", lambda: None)()
    found = {name: run(cases[name]) for name in names}
    with gzip.open(out, "wt", compresslevel=1) as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
