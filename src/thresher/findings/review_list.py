"""The review list: which rows to look at, in which order.

A look is worth most where a label is most probably wrong. Exact copies with different labels come
first: one of them is certainly wrong, or the columns cannot tell them apart. Then come the rows
that are called wrong (relabel, correct, drop), and then those in doubt (inspect), each by score.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from thresher.array_types import Integers
from thresher.findings.label_findings import Findings

MOST = 500  # rows that a person would read

FIRST, TURNS = 1, {"relabel": 2, "correct": 2, "drop": 2, "inspect": 3}


def review_list(findings: Findings, conflicts: Iterable[Iterable[int]] = ()) -> Integers:
    """The rows to look at, the most worthwhile first; `conflicts` are groups of exact copies.

    Examples
    --------
    >>> import thresher as th
    >>> leaves, y = [[0], [0], [0], [0], [1], [1]], ["a", "a", "a", "b", "b", "b"]
    >>> found = th.explain(th.leaf_shapley(leaves, y), leaves, y)
    >>> review_list(found).tolist(), review_list(found, [[1, 5]]).tolist()
    ([3], [1, 5, 3])
    """
    doubt = findings.values if findings.score is None else findings.score
    words = [TURNS.get(str(word), 0) for word in findings.suggestion.distinct]
    turns = np.array(words, np.int64)[findings.suggestion.codes]
    for group in conflicts:
        turns[list(group)] = FIRST
    listed = np.flatnonzero(turns)
    return listed[np.lexsort((findings.values[listed], doubt[listed], turns[listed]))]
