"""Mean and deviation of columns, the same to the last bit however rows are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 1 << 12  # numbers that are summed together, wherever they come from
Wide = np.longdouble  # its range has room for squares of any float64

Ends = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass
class Moments:
    """Mean and squared deviations of numbers that come in parts (Chan, Golub, LeVeque 1979).

    Numbers are joined in steps of a fixed size, so that no bit depends on the parts.

    Examples
    --------
    >>> moments = Moments()
    >>> for part in ([1.0, 2.0], [3.0], [4.0]):
    ...     moments.add(np.array(part))
    >>> moments.ends()
    ((2.5,), (1.118033988749895,))
    """

    count: int = 0
    mean: Any = 0.0
    squares: Any = 0.0
    low: float = np.inf
    high: float = -np.inf
    waiting: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def add(self, numbers: NDArray[np.float64]) -> None:
        """Join more numbers."""
        self.low = min(self.low, float(numbers.min(initial=np.inf)))
        self.high = max(self.high, float(numbers.max(initial=-np.inf)))
        first = STEP - len(self.waiting)
        if len(numbers) < first:
            self.waiting = np.concatenate([self.waiting, numbers])
            return
        self._join(np.concatenate([self.waiting, numbers[:first]]))
        for lo in range(first, len(numbers) - STEP + 1, STEP):
            self._join(numbers[lo : lo + STEP])
        self.waiting = numbers[len(numbers) - (len(numbers) - first) % STEP :].copy()

    def _join(self, numbers: NDArray[np.float64]) -> None:
        count, wide = len(numbers), numbers.astype(Wide)
        mean = wide.mean()
        apart, both = mean - self.mean, self.count + count
        self.squares += ((wide - mean) ** 2).sum() + apart**2 * (self.count * Wide(count) / both)
        self.mean += apart * (Wide(count) / both)
        self.count = both

    def ends(self) -> Ends:
        """Mean and deviation, once all numbers are there; the latter is 0 where all are equal."""
        if self.low == self.high:
            return (self.low,), (0.0,)
        if len(self.waiting):
            self._join(self.waiting)
            self.waiting = np.empty(0)
        return (float(self.mean),), (float(np.sqrt(self.squares / self.count)),)


def moments_of_shares(times: Sequence[int], rows: int) -> Ends:
    """Means and deviations of columns of 0 and 1 that are 1 so many times.

    Examples
    --------
    >>> moments_of_shares([1, 3], 4)
    ((0.25, 0.75), (0.4330127018922193, 0.4330127018922193))
    """
    shares = tuple(count / rows for count in times)
    return shares, tuple(float(np.sqrt(share * (1 - share))) for share in shares)
