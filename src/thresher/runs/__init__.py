"""From files to values: read, hold out, encode, value, explain, write.

`settings` says what is wanted, `choice` which method that is, `sources` reads the points and the
validation set, `chosen_method` calls the valuation, `memory_run` puts it together, and `results`
writes a table that tells how it was made. For points that may exceed memory, `file_run` is the run,
and the table of results is one file (`table_file`) or a folder that a cluster writes
(`table_folder`). `guessed` says what columns are for where nobody did, and `inspection` what is in
the way of a table. `hints` and `summary` are what any of them says in the end. `appraisal` values
points by a price list, and `owner_run` values owners, wherever points are.
"""
