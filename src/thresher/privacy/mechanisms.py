"""The three ways to privatize the counts behind `dp_tknn_shapley`, by name."""

from __future__ import annotations

from thresher.errors import InputError, option
from thresher.inputs.checks import check_choice
from thresher.privacy.cells_mechanism import Cells
from thresher.privacy.design import Design, Setting
from thresher.privacy.paper_mechanism import Paper
from thresher.privacy.table_mechanism import Table

Mechanism = Table | Paper | Cells
MECHANISMS: dict[str, type[Mechanism]] = {"table": Table, "paper": Paper, "cells": Cells}


def design_release(mechanism: object, setting: Setting) -> Design:
    """A mechanism, by name or with options, fitted to a setting."""
    if not isinstance(mechanism, Mechanism):
        mechanism = MECHANISMS[check_choice("mechanism", mechanism, tuple(MECHANISMS))]()
    if type(setting) is not Setting and not isinstance(mechanism, Table):
        raise InputError(
            "targets, kernels and leaves can be released only with "
            f"{option('mechanism', 'table')}, got {type(mechanism).__name__}"
        )
    return mechanism.design(setting)
