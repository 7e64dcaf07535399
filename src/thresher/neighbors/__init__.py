"""Who is near whom: within a radius as bits of a block, or the nearest in order."""
