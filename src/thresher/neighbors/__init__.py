"""Which points are near which: within a radius as bits of a block, or the nearest in order."""
