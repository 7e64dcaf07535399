"""A market that pays for data without revealing it: `thresher serve`."""

from __future__ import annotations

from thresher.market.client import Client, MarketError

__all__ = ["Client", "MarketError"]
