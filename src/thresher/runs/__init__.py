"""From files to values: read, hold out, encode, value, explain, write.

`settings` says what is wanted, `sources` reads the points and the validation set, `methods` calls
the valuation, `valued` puts it together, and `results` writes a table that tells how it was made.
`appraisal` values points by a price list. For points that exceed memory, `opened` names their files
and columns, `streamed` runs the passes, and `gathered` makes one file of the pieces; `clustered`
lets a cluster do it.
"""

from __future__ import annotations

from thresher.runs.appraisal import Appraisal, appraise_files
from thresher.runs.clustered import Clustered, cluster_files
from thresher.runs.results import check_columns, check_results, write_results
from thresher.runs.settings import Settings
from thresher.runs.streamed import Streamed, stream_files
from thresher.runs.valued import Valued, value_files

__all__ = [
    "Appraisal", "Clustered", "Settings", "Streamed", "Valued", "appraise_files", "check_columns",
    "check_results", "cluster_files", "stream_files", "value_files", "write_results",
]  # fmt: skip
