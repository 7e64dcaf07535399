"""Tables in files: found, read, taken apart into features and labels, and written again, cleaned.

`paths` says which files a path, a folder or a pattern means and of which kind they are. `text`,
`parquet`, `arrow` and `npz` know one kind each, and `reader` makes one table of files of any kind.
`columns` takes labels, ids, owners and features out of it, `labeled` does so for private points,
each row for itself. `encoder` turns features into numbers. `changes` says which rows to drop or to
relabel, and `clean_copy` writes the table without them and leaves everything else as it was.
"""

from __future__ import annotations

from thresher.tables.clean_copy import write_cleaned
from thresher.tables.columns import choose_columns
from thresher.tables.encoder import Encoder
from thresher.tables.holdout import hold_out
from thresher.tables.labeled import read_labeled, read_private, same_columns, split_rows
from thresher.tables.reader import read_table

__all__ = [
    "Encoder",
    "choose_columns",
    "hold_out",
    "read_labeled",
    "read_private",
    "read_table",
    "same_columns",
    "split_rows",
    "write_cleaned",
]
