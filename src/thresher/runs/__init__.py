"""From files to values: read, hold out, encode, value, explain, write.

`settings` says what is wanted, `choice` which method that is, `sources` reads the points and the
validation set, `chosen_method` calls the valuation, `memory_run` puts it together, and `results`
writes a table that records how it was made. For points that may exceed memory, `file_run` is the
run, and the table of results is one file (`table_file`) or a folder that a cluster writes
(`table_folder`). `roles` finds out what columns are for if the user does not say, and
`inspection` what is wrong with a table. `hints` and `summary` make the words at the end of any run.
`appraisal` values points by a price list, and `owner_run` values owners, wherever points are.
"""
