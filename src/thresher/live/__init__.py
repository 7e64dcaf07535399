"""Counts on disk that are kept up to date point by point."""

from __future__ import annotations

from thresher.live.store import LiveCounts

__all__ = ["LiveCounts"]
