"""A forest for private releases: few leaves, grown on public rows alone."""

from __future__ import annotations

from typing import Any

from thresher.errors import option
from thresher.growth import MOST_TREES
from thresher.inputs.checks import check_count
from thresher.neighbors.forests import Forest
from thresher.neighbors.tree_columns import TreeColumns


def public_forest(X_val: Any, y_val: Any, *, trees: int = 16, leaves: int = 16) -> Forest:
    """A random forest in whose leaves private points can be counted, by silos too.

    Every point fills all of its trees. The same rows give the same forest: its seed is 0.

    Parameters
    ----------
    X_val, y_val
        Public rows, such as the validation set. Never grow it on private points: splits reveal
        them.
    trees, leaves
        How many trees, and how many leaves a tree has at most. Noise grows with the square root of
        the trees, and each leaf has noise of its own.

    Examples
    --------
    >>> public_forest([[0.0], [1.0], [2.0], [3.0]], list("aabb"), trees=4, leaves=2)
    Forest(RandomForestClassifier, 4 trees with 8 leaves, 1 feature)
    """
    from sklearn.ensemble import RandomForestClassifier

    count = check_count(option("trees"), trees, most=MOST_TREES)
    most = check_count(option("leaves"), leaves, least=2)
    columns = TreeColumns.of("X_val", X_val)
    grown = RandomForestClassifier(count, max_leaf_nodes=most, random_state=0)
    return Forest.as_fitted(grown.fit(columns.encode("X_val", X_val), y_val), columns)
