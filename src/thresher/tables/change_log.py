"""The log of changes to a table: which rows were dropped or relabeled, as .csv or .json."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thresher.errors import InputError
from thresher.files import check_free, write_whole
from thresher.tables.formulas import harmless_text

COLUMNS = ("row", "id", "action", "old_label", "new_label")

Change = dict[str, Any]


def check_log(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """The path of a log of changes, if it can be written there."""
    target = Path(path)
    if target.suffix.lower() not in {".csv", ".json"}:
        raise InputError(f"a log of changes must be a .csv or .json file, got {target}")
    check_free(target, force=force)
    return target


def write_change_log(
    path: str | os.PathLike[str], log: Sequence[Change], about: Mapping[str, Any],
    *, force: bool = False,
) -> None:  # fmt: skip
    """Write the log of changes as .csv, or as .json together with how they came `about`.

    A .csv has nothing but the changes: its first line is the header, and its text is written so
    that no spreadsheet computes it.
    """
    target = check_log(path, force=force)

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            if target.suffix.lower() == ".json":
                document = {"about": dict(about), "changes": list(log)}
                file.write(json.dumps(document, indent=1, default=str) + "\n")
                return
            present = {"id"} & {key for change in log for key in change}
            names = [name for name in COLUMNS if name != "id" or present]
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {key: harmless_text(entry) for key, entry in change.items()} for change in log
            )

    write_whole(target, write, replace=force)
