"""The public side of a task, in its terms and in its file: who judges, and what near means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from thresher.errors import InputError
from thresher.federate import primitives
from thresher.inputs.arrays import pack_array, unpack_array
from thresher.sides.protocol import PublicSide
from thresher.sides.stored import stored_side


def side_terms(side: PublicSide) -> dict[str, Any]:
    """What the terms say of a side; its rows are in a digest."""
    return {
        "side": side.kind,
        "public": json.loads(json.dumps(side.describe())),
        "public_digest": side_digest(side),
    }


def side_digest(side: PublicSide) -> str:
    """A SHA-256 of all arrays of a side, by name."""
    parts = []
    for name, array in sorted(side.arrays().items()):
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        about = f"{name} {plain.dtype.str} {plain.shape}".encode()
        parts += [about, plain.tobytes()]
    return primitives.digest("public side", *parts).hex()


def pack_side(side: PublicSide) -> dict[str, Any]:
    """The arrays of a side as JSON."""
    arrays = side.arrays()
    if "features" not in arrays:
        raise InputError("a task needs the features of the validation set")
    return {name: pack_array(array, deflate=True) for name, array in arrays.items()}


def read_side(terms: Mapping[str, Any], packed: Mapping[str, Any]) -> PublicSide:
    """The side that terms and packed arrays describe."""
    arrays = {name: unpack_array(each) for name, each in packed.items()}
    return stored_side(terms["side"], terms["public"], arrays)
