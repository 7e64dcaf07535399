"""Tables in files: found, read, taken apart into features and labels, and written again, cleaned.

`paths` says which files a path, a folder or a pattern means and of which kind they are. `text`,
`parquet`, `arrow` and `npz` know one kind each, and `reader` makes one table of files of any kind.
`columns` takes labels, ids, owners and features out of it, `labeled` does so for private points,
each row by itself. `encoder` turns features into numbers. `changes` says which rows to drop or to
relabel, and `clean_copy` writes the table without them and leaves everything else as it was.
"""
