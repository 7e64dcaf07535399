"""Public weights of validation points: counts get less noise where few points are near.

A count of few points needs small noise, and a count of many points can bear more. So the counts of
validation point v get noise of sigma / s_v with s_v = (p_v + 1/R)^(-e), where p_v is the share of
the R public rows that are near v. The exponent e is 1/4 unless another is asked for. With 1/2,
values are better if noise is small, and worse if it is large (docs/privacy.md). A unit's vector is
clipped by its weighted length, with s_v in front of each entry, so the guarantee stays the same
(T15 of docs/privacy-proofs.md). The table stays whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thresher.array_types import Flags, Floats, Integers
from thresher.privacy.contributions import clipped_weights

EXPONENT = 0.25
ONE = 16  # weights s_v^2 are whole numbers of this part of one


@dataclass(frozen=True)
class EntryWeights:
    """The weights of validation points: s_v^2 = whole[v] / one, all of them positive."""

    whole: Integers
    one: int = 1

    @classmethod
    def alike(cls, validation: int) -> EntryWeights:
        """Weights of 1 for all validation points."""
        return cls(np.ones(validation, np.int64))

    @classmethod
    def by_density(cls, near: Flags, exponent: float = EXPONENT) -> EntryWeights:
        """Weights from `near` (rows x validation points): s_v = (R / (1 + rows near v))^exponent.

        Its square is rounded to a power of the root of two, so that noise has only a few widths.
        """
        steps = np.rint(4 * exponent * np.log2(len(near) / (1.0 + near.sum(axis=0))))
        return cls(np.maximum(1, np.rint(ONE * 2 ** (steps / 2))).astype(np.int64), ONE)

    @cached_property
    def squares(self) -> Floats:
        """s_v^2."""
        return self.whole / self.one

    @cached_property
    def roots(self) -> Floats:
        """s_v."""
        return np.sqrt(self.squares)

    @property
    def largest(self) -> float:
        """The largest s_v^2."""
        return float(self.squares.max(initial=0.0))

    def lengths(self, vectors: Floats) -> Floats:
        """The squared weighted lengths of vectors, one per row; a point's entries are M apart."""
        split = vectors.reshape(len(vectors), -1, len(self.whole))
        return np.asarray((split**2).sum(axis=1) @ self.squares)

    def record(self) -> dict[str, Any]:
        """What the release record says about the weights; they follow from the validation set."""
        alike = bool((self.whole == self.one).all())
        digest = hashlib.sha256(self.squares.astype("<f8").tobytes()).hexdigest()
        return {"weights": "none" if alike else "validation set", "weights_digest": digest}


@dataclass(frozen=True)
class Clipping:
    """How vectors are scaled down to a weighted length of sqrt(bound), in whole parts."""

    bound: int
    parts: int
    entries: EntryWeights

    def weights(self, squares: Integers, one: int = 1) -> Integers:
        """The whole parts kept of vectors in units of 1 / `one`, given their weighted `squares`."""
        return clipped_weights(squares, self.bound * one**2 * self.entries.one, self.parts)

    def shares(self, lengths: Floats, one: int = 1) -> Floats:
        """The shares kept of vectors with these squared weighted lengths."""
        whole = np.rint(np.minimum(lengths * one**2 * self.entries.one, 2.0**62))
        return self.weights(whole.astype(np.int64), one) / self.parts
