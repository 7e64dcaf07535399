"""The application that `thresher serve` runs, in as many processes as it is told."""

from __future__ import annotations

import os

from fastapi import FastAPI

from thresher.market.app import create_app
from thresher.market.market import Market


def app() -> FastAPI:
    """The application of the market that the environment names."""
    folder = os.environ["THRESHER_MARKET_DATA"]
    return create_app(Market.open(folder, os.environ.get("THRESHER_MARKET_DATABASE")))
