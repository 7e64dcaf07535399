"""Points that do not fit in memory: read in parts, counted in one pass, valued in a second.

`parts` and `scan` say where rows come from, `ahead` reads one part while the one before is computed
on, `memory` says how large parts may be, `resume` keeps what a broken run goes on from, and
`stream` runs the two passes.
"""

from __future__ import annotations
