"""Games: what a point adds to the cells that it is near, and the prices that follow."""
