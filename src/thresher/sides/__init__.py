"""The public side of a valuation: who judges the points, and what near means."""
