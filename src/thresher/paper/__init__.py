"""The paper's data sets, protocols, tables and figures, from one call."""

from __future__ import annotations

from thresher.paper.datasets import DataSet, MissingSetError, Shelf
from thresher.paper.draws import Problem, draw_problem
from thresher.paper.records import Record
from thresher.paper.reproduce import EXPERIMENTS, Reproduction, reproduce

__all__ = [
    "EXPERIMENTS", "DataSet", "MissingSetError", "Problem", "Record", "Reproduction", "Shelf",
    "draw_problem", "reproduce",
]  # fmt: skip
