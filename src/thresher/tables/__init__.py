"""Tables in files: found, read, taken apart into features and labels, and written again, cleaned.

`finding` says which files a path, a folder or a pattern means, `delimited` where records and cells
of text are, `text` and `reading` make one Arrow table of them; `columns` takes labels, ids, owners
and features out of it, `classes` looks at the labels, `label_files` reads those that have a file of
their own, `cells` and `encoding` turn features into numbers; `changes`, `cutting` and `writing`
drop rows and change labels and leave everything else as it was. `lines` and `labeled` read private
points, each row for itself.
"""

from __future__ import annotations

from thresher.tables.labeled import read_labeled, read_private, same_columns, split_rows

__all__ = ["read_labeled", "read_private", "same_columns", "split_rows"]
