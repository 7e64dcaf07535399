"""What clipping leaves of the counts, and how sure that is, from public rows.

Clipping leaves a share of every count, `kept`. The prior divides by it, so that an error in it is
an error of all values, which no number of points makes smaller. Another sample of public rows would
give other shares: that is drawn here, and so it is told.
"""

from __future__ import annotations

import math

import numpy as np

from thresher.array_types import Floats
from thresher.privacy.entry_weights import Clipping
from thresher.privacy.public_rows import Public

DOUBT = 1.3  # how far to trust what is left of a count after clipping
LONGEST = 0.05  # of the rows: how they differ says how much longer a row may be than all of them


class ClippedPoints:
    """Units that are single points: each public row stands for one."""

    def __init__(self, public: Public, clipping: Clipping, raw: Floats, some: slice) -> None:
        rows, lengths = len(public.near), public.lengths(clipping.entries)
        self._public, self._all = public, clipping.shares(lengths, public.one)
        self.kept = public.kept(public.total(self._all), (rows - 1) * raw)
        self._raw, self._rows = raw, rows
        longest = int(lengths.argmax())
        one = slice(longest, longest + 1)
        beyond = clipping.shares(np.array([_longer(lengths)]), public.one)
        self._vectors = np.concatenate([public.vectors(some), public.vectors(one)])
        self._weights = np.concatenate([self._all[some], beyond])

    def deviations(self, vectors: Floats) -> Floats:
        """By how much the clipped vectors of rows are not the usual one."""
        return np.asarray(vectors * self._weights[:-1, None] - self._raw * self.kept)

    def shifts(self, whole: Floats) -> Floats:  # noqa: ARG002
        """How the clipped table moves with the shares of classes and of wrong labels."""
        return self._public.shifts(self._all)

    def factors(self, count: int, random: np.random.Generator) -> Floats:
        """By how much the share that clipping leaves of each count may be misjudged.

        Public rows are weighed at random (a bootstrap), so that counts that rest on the same rows
        err together; one more row stands for points that are longer than all. The prior knows more
        than one share for each count, hence the exponent: it was chosen so that errors told on
        made-up sets are the true ones.
        """
        vectors, weights = self._vectors, self._weights
        if (weights == 1).all():
            return np.ones((count, len(self.kept)))
        shape = np.full(len(vectors), self._rows / (len(vectors) - 1))  # few stand for all of them
        shape[-1] = 1.0
        chance = random.standard_gamma(shape, (count, len(vectors)))
        chance[:, :-1] /= shape[:-1]
        masses = self._public.masses
        drawn = (masses((chance * weights) @ vectors) + self.kept) / (masses(chance @ vectors) + 1)
        return np.asarray(np.clip(self.kept / np.maximum(drawn, 1e-9), 1 / 3, 3.0) ** DOUBT)


class ClippedOwners:
    """Units that are owners of `size` points each: made-up ones, drawn from the public rows.

    How much an owner loses is, by and large, linear in its squared length, and so in its points.
    So another sample of R rows, not of R / size owners, is what would change the share kept: by a
    factor that all counts have in common.
    """

    def __init__(
        self, public: Public, clipping: Clipping, raw: Floats, some: slice, size: int
    ) -> None:
        owners, entries = public.grouped(size), clipping.entries
        lengths = entries.lengths(owners)
        weights = clipping.shares(lengths, public.one)
        self.kept = public.kept(weights @ owners, owners.sum(axis=0))
        self._size, self._raw, self._rows = size, raw, len(public.near)
        slope = float(np.mean((weights - weights.mean()) * (lengths - lengths.mean())))
        slope /= max(float(lengths.var()), 1e-300)
        vectors = public.vectors(some)
        weighted = (raw.reshape(-1, len(entries.squares)) * entries.squares).ravel()
        own = entries.lengths(vectors) + 2 * (size - 1) * (vectors @ weighted)
        self._pulls = slope * (own - own.mean())  # what one such point does to its owner's weight
        self._public, self._clipping, self._lengths = public, clipping, lengths
        self._weight = float(weights.mean())
        self._doubt = size * float(own.std()) / math.sqrt(self._rows) / max(lengths.mean(), 1e-300)

    def deviations(self, vectors: Floats) -> Floats:
        """By how much the clipped vector of an owner is not the usual one if it has such a row."""
        return (vectors - self._raw) * self.kept + self._pulls[:, None] * self._size * self._raw

    def shifts(self, whole: Floats) -> Floats:
        """How the clipped table moves with the shares of classes and of wrong labels."""
        return whole * self.kept

    def factors(self, count: int, random: np.random.Generator) -> Floats:
        """By how much the share that clipping leaves of all counts may be misjudged.

        It is what clipping would leave if owners were longer or shorter.
        """
        shift = 1 + DOUBT * self._doubt * random.standard_normal(count)
        lengths = np.outer(np.maximum(shift, 0.0), self._lengths)
        weights = self._clipping.shares(lengths, self._public.one).mean(axis=1)
        return np.clip(self._weight / np.maximum(weights, 1e-9), 1 / 3, 3.0)[:, None]


def _longer(lengths: Floats) -> float:
    """How long a point may be that is longer than all these: as much as the longest differ."""
    ordered = np.sort(lengths)
    longest = ordered[-max(2, int(LONGEST * len(ordered))) :]
    return float(longest[-1] + (longest - longest[0]).mean())
