"""`thresher demo`: a first look."""

from __future__ import annotations


def demo() -> None:
    """Find flipped labels among handwritten digits: a first look, in a few seconds.

    Example: thresher demo
    """
    from thresher.demo import main

    main()
