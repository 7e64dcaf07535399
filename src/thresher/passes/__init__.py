"""Count, price, value: the walk over all points, here at once or in parts, or on Dask."""
