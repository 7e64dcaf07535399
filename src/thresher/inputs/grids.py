"""Grids of targets: numbers as whole multiples of a step, so that sums of them are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.kernels.target_sums import WIDEST

COARSE = 31  # bits of a coarse grid
SIGNLESS = np.int64(2**63 - 1)


@dataclass(frozen=True)
class Grid:
    """Targets as whole multiples of a step, up to 2^92 of them.

    The code of a target is its place among all float64 numbers, in their order. Where a center is
    given, the grid is coarse, with up to 2^31 steps from that center, and codes are these steps.
    """

    step: float  # a power of two
    center: float | None = None

    @classmethod
    def over(cls, low: float, high: float) -> Grid:
        """The grid of targets from `low` to `high`.

        Examples
        --------
        >>> Grid.over(-1.0, 3.0)
        Grid(step=8.077935669463161e-28, center=None)
        """
        largest = max(abs(low), abs(high))
        return cls(math.ldexp(1.0, math.frexp(largest)[1] - WIDEST) if largest else 1.0)

    @classmethod
    def coarse(cls, low: float, high: float) -> Grid:
        """A grid with 2^31 steps on each side of the middle, such as private tables have.

        Examples
        --------
        >>> Grid.coarse(0.0, 4.0)
        Grid(step=9.313225746154785e-10, center=2.0)
        """
        center = low / 2 + high / 2
        half = max(high - center, center - low)
        return cls(float(2.0 ** (np.ceil(np.log2(half)) - COARSE)) if half > 0 else 1.0, center)

    @property
    def origin(self) -> float:
        """The target that numbers of this grid are relative to."""
        return 0.0 if self.center is None else self.center

    def rounded(self, targets: Floats) -> Floats:
        """Targets relative to the origin, rounded to the nearest step."""
        return np.rint((targets - self.origin) / self.step) * self.step

    def codes(self, targets: Floats) -> Integers:
        """The codes of targets, once they are rounded."""
        found = self.rounded(np.asarray(targets, np.float64))
        if self.center is not None:
            return (found / self.step).astype(np.int64)
        bits = found.view(np.int64)
        return np.where(bits < 0, -(bits & SIGNLESS), bits)

    def numbers(self, codes: Array) -> Floats:
        """The targets with these codes, relative to the origin."""
        if self.center is not None:
            return codes.astype(np.float64) * self.step
        found: Floats = np.abs(codes.astype(np.int64)).view(np.float64)
        return np.where(codes < 0, -found, found)

    def record(self) -> dict[str, float]:
        """What a result says about the grid."""
        center = {} if self.center is None else {"center": self.center}
        return {**center, "step": self.step}
