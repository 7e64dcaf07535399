"""Kernels in rings: near points weigh by their distance, in a few steps."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, ThresherWarning, either, option, quoted
from thresher.inputs.checks import check_count, check_radius

BOX = "box"
MOST_RINGS = 254  # a pair's ring is one byte
USUAL_RADIUS = 0.5  # what a radius is where none is named
USUAL_RINGS = 16, 4  # how many rings there are where no number is named; the last is private
LARGEST_RADIUS = 1e150  # of named kernels: squares are float64 numbers


@dataclass(frozen=True)
class Kernel:
    """Rings around a validation point: a point has the weight of the ring that it is in."""

    # the outer edge of each ring, ascending; the last is the radius, and belongs to it
    edges: tuple[float, ...]
    weights: tuple[float, ...]  # the weight of each ring
    name: str = ""  # what the weights follow, if they do; with rings of equal width

    @property
    def radius(self) -> float:
        """The distance up to which a point counts, inclusive."""
        return self.edges[-1]

    def __str__(self) -> str:
        return f"{self.name or 'kernel'} in {len(self.edges)} rings"

    def record(self) -> dict[str, Any]:
        """What results and files say about it, besides the radius."""
        pairs = [list(pair) for pair in zip(self.edges, self.weights, strict=True)]
        return {"kernel": self.name or pairs, "rings": len(self.edges)}

    @classmethod
    def recorded(cls, about: Mapping[str, Any]) -> Kernel | None:
        """The kernel that a record describes; None if it is the box."""
        kernel = about.get("kernel", BOX)
        return check_kernel(kernel, about.get("rings", 16), about.get("radius"), warn=False)[1]


def _gaussian(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-4.5 * x**2)  # the radius is three standard deviations


SHAPES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "gaussian": _gaussian,
    "triangular": lambda x: 1 - x,
    "epanechnikov": lambda x: 1 - x**2,
}


def check_kernel(
    kernel: object, rings: object, radius: object, *, warn: bool = True
) -> tuple[float, Kernel | None]:
    """The radius and the kernel, which is None for the box.

    Examples
    --------
    >>> radius, kernel = check_kernel("triangular", 4, 0.8)
    >>> kernel.edges, kernel.weights
    ((0.2, 0.4, 0.6000000000000001, 0.8), (0.875, 0.625, 0.375, 0.125))
    """
    count = check_count("rings", rings)
    if isinstance(kernel, str):
        if kernel == BOX:
            _check_unused(count, 1, "the box has no rings")
            return check_radius(radius), None
        if kernel not in SHAPES:
            raise InputError(f"{option('kernel')} must be {_wanted()}, got {quoted(kernel)}")
        return _named(kernel, count, check_radius(radius))
    edges, weights = _pairs(kernel)
    if radius not in {None, USUAL_RADIUS, edges[-1]}:
        raise InputError(
            f"radius={quoted(radius)} contradicts the kernel, whose last ring ends at "
            f"{edges[-1]:g}: leave radius out"
        )
    _check_unused(count, len(edges), f"the kernel has {len(edges)} of its own")
    if warn and any(a < b for a, b in itertools.pairwise(weights)):
        warnings.warn(
            "kernel has weights that increase outward: points farther away count more",
            ThresherWarning,
            stacklevel=3,
        )
    return edges[-1], Kernel(edges, weights)


def _check_unused(rings: int, right: int, why: str) -> None:
    """Refuse a number of rings that would not be used."""
    if rings not in {*USUAL_RINGS, right}:
        raise InputError(
            f"{option('rings')}={quoted(rings)} needs {option('kernel')} with a name, such as "
            f"'gaussian': {why}. Leave rings out"
        )


def _wanted() -> str:
    names = ", ".join(repr(name) for name in (BOX, *SHAPES))
    return f"{either('', 'one of ')}{names}{either(' or a sequence of (radius, weight)', '')}"


def _named(name: str, rings: int, radius: float) -> tuple[float, Kernel]:
    """Rings of equal width, each with the kernel's weight at its middle."""
    if rings > MOST_RINGS:
        raise InputError(f"{option('rings')} must be at most {MOST_RINGS}, got {quoted(rings)}")
    if not 0 < radius < math.inf:
        raise InputError(
            f"{option('radius')} must be positive and finite with {option('kernel', name)}, got "
            f"{radius:g}: rings have a width. {option('kernel', BOX)} takes any radius"
        )
    if radius > LARGEST_RADIUS:
        raise InputError(
            f"{option('radius')}={radius:g} is too large for rings: rescale the points"
        )
    places = np.arange(rings)
    edges = (*tuple((radius * (places + 1) / rings).tolist()[:-1]), radius)
    weights = SHAPES[name]((places + 0.5) / rings)
    if len(set(edges)) < rings:
        raise InputError(
            f"{option('radius')}={radius:g} is too small for {rings} rings: use a larger radius or "
            "fewer rings"
        )
    return radius, Kernel(edges, tuple(weights.tolist()), name)


def _pairs(kernel: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The edges and weights of a sequence of (radius, weight)."""
    try:
        found = np.array([tuple(pair) for pair in kernel], np.float64)
    except (OverflowError, TypeError, ValueError):
        found = np.zeros(0)
    if found.ndim != 2 or found.shape[1] != 2 or not 1 <= len(found) <= MOST_RINGS:
        raise InputError(f"kernel must be {_wanted()}, got {quoted(kernel)}")
    edges, weights = found.T
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise InputError(f"kernel must have positive, finite weights, got {weights.tolist()}")
    if not (np.diff(edges, prepend=0.0) > 0).all() or not np.isfinite(edges).all():
        raise InputError(
            f"kernel must have finite radii that are above 0 and increase, got {edges.tolist()}"
        )
    if weights.min() < weights.max() * 1e-12:
        raise InputError("kernel must have weights within a factor of 1e12 of each other")
    return tuple(check_radius(edge) for edge in edges.tolist()), tuple(weights.tolist())
