"""From files to values: read, hold out, encode, value, explain, write.

`settings` says what is wanted, `choice` which method that is, `sources` reads the points and the
validation set, `methods` calls the valuation, `memory_run` puts it together, and `results` writes a
table that tells how it was made. For points that may exceed memory, `point_files` names their files
and columns, `file_run` is the run, and the table of results is one file (`table_file`) or a folder
that a cluster writes (`table_folder`). `guessed` says what columns are for where nobody did,
`inspection` what is in the way of a table, and `mismatch` which columns points and validation set
do not share. `hints` and `summary` are what any of them says in the end. `appraisal` values points
by a price list, and `owner_run` values owners, wherever points are.
"""

from __future__ import annotations

from thresher.runs.appraisal import Appraisal, appraise_files
from thresher.runs.inspection import Inspection, explained, inspect_files
from thresher.runs.memory_run import MemoryRun, value_files
from thresher.runs.owner_run import OwnersValued, value_owners
from thresher.runs.results import check_columns, check_results, write_results
from thresher.runs.settings import Settings
from thresher.runs.summary import Summary
from thresher.runs.table_file import value_to_file
from thresher.runs.table_folder import value_to_folder

__all__ = [
    "Appraisal", "Inspection", "MemoryRun", "OwnersValued", "Settings", "Summary", "appraise_files",
    "check_columns", "check_results", "explained", "inspect_files", "value_files", "value_owners",
    "value_to_file",
    "value_to_folder", "write_results",
]  # fmt: skip
