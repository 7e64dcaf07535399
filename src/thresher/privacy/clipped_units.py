"""What share of the counts clipping leaves, and how certain that is, estimated from public rows.

Clipping leaves a share of every count, `kept`. The prior divides by it, so an error in it is an
error in all values, and no number of points makes it smaller. Another sample of public rows would
give other shares. This module draws such samples, so that the stated error includes theirs.
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
        """How far the clipped vector of each row is from the average one."""
        return np.asarray(vectors * self._weights[:-1, None] - self._raw * self.kept)

    def shifts(self, whole: Floats) -> Floats:  # noqa: ARG002
        """How the clipped table moves with the shares of classes and of wrong labels."""
        return self._public.shifts(self._all)

    def factors(self, count: int, random: np.random.Generator) -> Floats:
        """Random factors by which the share that clipping leaves of each count may be misjudged.

        Public rows get random weights (a bootstrap), so that counts that rest on the same rows err
        together. One more row stands for points that are longer than all rows. The prior knows more
        than one share for each count, hence the exponent. It was chosen so that, on made-up data
        sets, the stated errors match the true ones.
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
    """Units that are owners of `size` points each: made-up owners, drawn from the public rows.

    What an owner loses to clipping is roughly linear in its squared length, and so in its points.
    So the share kept is as uncertain as an average over R rows, not over R / size owners, and its
    error is one factor for all counts.
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
        """How far the clipped vector of an owner with each row is from the average one."""
        return (vectors - self._raw) * self.kept + self._pulls[:, None] * self._size * self._raw

    def shifts(self, whole: Floats) -> Floats:
        """How the clipped table moves with the shares of classes and of wrong labels."""
        return whole * self.kept

    def factors(self, count: int, random: np.random.Generator) -> Floats:
        """Random factors by which the share that clipping leaves of all counts may be misjudged.

        They are what clipping would leave if owners were longer or shorter.
        """
        shift = 1 + DOUBT * self._doubt * random.standard_normal(count)
        lengths = np.outer(np.maximum(shift, 0.0), self._lengths)
        weights = self._clipping.shares(lengths, self._public.one).mean(axis=1)
        return np.clip(self._weight / np.maximum(weights, 1e-9), 1 / 3, 3.0)[:, None]


def _longer(lengths: Floats) -> float:
    """A guess at a point longer than all these: as much longer as the longest ones differ."""
    ordered = np.sort(lengths)
    longest = ordered[-max(2, int(LONGEST * len(ordered))) :]
    return float(longest[-1] + (longest - longest[0]).mean())
