"""`python -m thresher` is the command `thresher`."""

from __future__ import annotations

from thresher.cli import main

main()
