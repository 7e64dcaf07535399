"""How good findings are, now that it is known which labels are wrong."""

from __future__ import annotations

import numpy as np
from finders import Found
from messy_tables import Messy, linear_array, tree_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score


def judge(found: Found, noisy: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """Figures about one method on one table; NaN where it does not say."""
    wrong = noisy != right
    told = {
        "AUROC": roc_auc_score(wrong, -found.score),
        "AP": average_precision_score(wrong, -found.score),
        "errors": int(wrong.sum()),
        "seconds": found.seconds,
    }
    if found.values is not None:
        told["AUROC of values"] = roc_auc_score(wrong, -found.values)
        told["AP of values"] = average_precision_score(wrong, -found.values)
    if found.relabel is not None:
        told |= _of_marks(found.relabel, wrong)
        changed = found.relabel & wrong
        told["new labels right"] = _share(found.new[changed] == right[changed])
        told["reviewed"] = int(found.review.sum())
        told["reviewed wrong"] = int(wrong[found.review].sum())
    if np.isfinite(found.expected):
        told |= {"expected": float(found.expected), "poor": bool(found.poor)}
    return told


def _of_marks(marked: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    hits, both = int((marked & wrong).sum()), int(marked.sum() + wrong.sum())
    return {
        "marked": int(marked.sum()),
        "precision": _share(wrong[marked]),
        "recall": hits / int(wrong.sum()),
        "F1": 2 * hits / both,
    }


def _share(flags: np.ndarray) -> float:
    return float(flags.mean()) if len(flags) else float("nan")


def accuracies(table: Messy, ways: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, dict]:
    """Test accuracy of two models after each way to clean: labels and weights of the points."""
    trees, linear = tree_array(table.frame), linear_array(table.frame)
    return {
        way: {
            "linear": _accuracy(LogisticRegression(max_iter=100), linear, table, *cleaned),
            "forest": _accuracy(_forest(), trees, table, *cleaned),
        }
        for way, cleaned in ways.items()
    }


def _forest() -> RandomForestClassifier:
    return RandomForestClassifier(50, random_state=0, n_jobs=2)


def _accuracy(model, X, table: Messy, y: np.ndarray, weights: np.ndarray) -> float:
    kept = weights > 0
    model.fit(X[table.points][kept], y[kept], sample_weight=weights[kept])
    return float((model.predict(X[table.test]) == table.labels[table.test]).mean())


def cleanings(y: np.ndarray, right: np.ndarray, ours: Found, theirs: Found) -> dict:
    """Ways to clean the labels: what each makes of labels and weights."""
    one = np.ones(len(y))
    return {
        "as they are": (y, one),
        "drop `relabel`": (y, one * ~ours.relabel),
        "take the new labels": (np.where(ours.relabel, ours.new, y), one),
        "drop negative values": (y, one * (ours.values >= 0)),
        "weight by value": (y, np.clip(ours.values / np.median(ours.values), 0, 1)),
        "weight by score": (y, np.clip(2 * ours.score, 0, 1)),
        "cleanlab's drop": (y, one * ~theirs.relabel),
        "all labels right": (right, one),
    }
