"""Short names for the types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LongWords = NDArray[np.uint64]
Numbers = NDArray[np.floating[Any]]
Single = NDArray[np.float32]
Words = NDArray[np.uint32]
