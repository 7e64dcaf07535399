"""The only module that draws noise.

`System` draws from the operating system's entropy, through OpenDP's exact samplers: integers, never
rounded floats. `Seeded` repeats itself, for tests and experiments, and protects nobody.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from thresher.array_types import Flags, Floats, Integers, Words
from thresher.errors import require
from thresher.inputs.checks import check_count

SAMPLE_BITS = 32  # of a uniform number that decides whether a point is in a sample
LARGE = 1e4  # where seeded noise may as well be a rounded number
TAIL = 14.0  # seeded tables reach so many sigma


class Noise(Protocol):
    """A source of noise and of random samples."""

    def gaussian(self, sigma: float, size: int) -> Integers:
        """Discrete Gaussians: P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers."""

    def laplace(self, scale: float, size: int) -> Integers:
        """Discrete Laplace: P(x) proportional to exp(-|x| / scale) on the integers."""

    def sample(self, rate: float, size: int) -> Flags:
        """Independent coins that show True with a probability of at most `rate`."""


class System:
    """Noise from the operating system's entropy."""

    def gaussian(self, sigma: float, size: int) -> Integers:
        """Discrete Gaussians."""
        return self._added("make_gaussian", "l2_distance", sigma, size)

    def laplace(self, scale: float, size: int) -> Integers:
        """Discrete Laplace numbers."""
        return self._added("make_laplace", "l1_distance", scale, size)

    def _added(self, make: str, distance: str, scale: float, size: int) -> Integers:
        dp = opendp()
        dp.enable_features("contrib")
        domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
        space = domain, getattr(dp, distance)(T=float if distance == "l2_distance" else dp.i64)
        measurement = getattr(dp.m, make)(*space, scale=scale)
        return np.array(measurement([0] * size), np.int64)

    def sample(self, rate: float, size: int) -> Flags:
        """Coins."""
        return _coins(np.frombuffer(os.urandom(4 * size), np.uint32), rate)


class Seeded:
    """Noise that a seed repeats."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.Generator(np.random.PCG64(seed))

    def gaussian(self, sigma: float, size: int) -> Integers:
        """Discrete Gaussians."""
        if sigma > LARGE:
            return np.rint(sigma * self._random.standard_normal(size)).astype(np.int64)
        reach = int(TAIL * sigma) + 2
        x = np.arange(-reach, reach + 1)
        return self._pick(x, np.exp(-0.5 * (x / sigma) ** 2), size)

    def laplace(self, scale: float, size: int) -> Integers:
        """Discrete Laplace numbers."""
        if scale > LARGE:
            return np.rint(self._random.laplace(0, scale, size)).astype(np.int64)
        reach = int(40 * scale) + 2
        x = np.arange(-reach, reach + 1)
        return self._pick(x, np.exp(-np.abs(x) / scale), size)

    def _pick(self, x: Integers, weights: Floats, size: int) -> Integers:
        below = np.cumsum(weights)
        return x[np.searchsorted(below, self._random.random(size) * below[-1], side="right")]

    def sample(self, rate: float, size: int) -> Flags:
        """Coins."""
        return _coins(self._random.integers(0, 1 << SAMPLE_BITS, size, np.uint32), rate)


class Relay:
    """Noise that comes from elsewhere; a subclass defines `draw`."""

    def __init__(self, source: Noise) -> None:
        self._source = source

    def draw(self, kind: str, number: float, size: int) -> Any:
        """Draw this many numbers of a kind, which is the name of a method."""
        return getattr(self._source, kind)(number, size)

    def gaussian(self, sigma: float, size: int) -> Integers:
        """Discrete Gaussians."""
        return self.draw("gaussian", sigma, size)

    def laplace(self, scale: float, size: int) -> Integers:
        """Discrete Laplace numbers."""
        return self.draw("laplace", scale, size)

    def sample(self, rate: float, size: int) -> Flags:
        """Coins."""
        return self.draw("sample", rate, size)


def noise_source(seed: int | None) -> Noise:
    """The noise source: the operating system's entropy, or a seeded one."""
    return System() if seed is None else Seeded(check_count("seed", seed, least=0))


def opendp() -> Any:
    """The OpenDP package, imported only when needed, which takes seconds."""
    return require("opendp.prelude", purpose="a private release", extra="private")


def _coins(uniform: Words, rate: float) -> Flags:
    return uniform < np.uint64(rate * (1 << SAMPLE_BITS))
