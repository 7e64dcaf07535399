"""The methods that retrain a model for every coalition: leave-one-out, Data Shapley, Beta Shapley,
Data Banzhaf. They take any scikit-learn classifier or regressor, and thousands of fits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher.checks import check_number
from thresher.games.semivalues import Beta, coalition_sizes
from thresher.regression import CLASSES
from thresher.retrain.estimation import Problem, check_limit, estimate
from thresher.retrain.plans import LeaveOneOut, RandomSubsets, Walks
from thresher.valuation import Valuation


def leave_one_out(
    X: Any, y: Any, X_val: Any, y_val: Any, *, model: Any = None, accelerate: bool = False,
    classes: Any = None, owners: Any = None, mean: bool = True, seed: int = 0,
    workers: int | None = None, checkpoint: str | Path | None = None, progress: bool = False,
    task: str = CLASSES, empty: float | None = None,
) -> Valuation:  # fmt: skip
    """The accuracy that is lost when a point is left out of the training data.

    Exact: one fit for each point and one for all. The other arguments are those of `data_shapley`.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> valuation = th.leave_one_out(X, y, [[0.6], [2.4], [1.6]], ["a", "b", "b"])
    >>> valuation.values.round(3).tolist()
    [0.0, 0.0, 0.333, 0.333]
    """
    return estimate(
        "leave-one-out", {}, LeaveOneOut,
        Problem.check(X, y, X_val, y_val, classes=classes, task=task, empty=empty), owners=owners,
        model=model, accelerate=accelerate, mean=mean, seed=seed, workers=workers,
        checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def data_shapley(
    X: Any, y: Any, X_val: Any, y_val: Any, *, model: Any = None, evaluations: int | None = None,
    stability: float | None = None, truncation: float = 0.0, accelerate: bool = False,
    classes: Any = None, owners: Any = None, mean: bool = True, seed: int = 0,
    workers: int | None = None, checkpoint: str | Path | None = None, progress: bool = False,
    task: str = CLASSES, empty: float | None = None,
) -> Valuation:  # fmt: skip
    """Shapley values of the accuracy of a retrained model, estimated by permutation sampling.

    Parameters
    ----------
    X, y, X_val, y_val, classes, owners, progress
        As in `tknn_shapley`; features are numbers.
    model
        A scikit-learn classifier; without it, `LogisticRegression()`. It sees the labels as they
        are where NumPy can hold them (numbers of one type, or text), else the numbers of classes.
    evaluations
        How many coalitions to train on at most; whole permutations, so a multiple of N - 1. Without
        it, 10,000 or two permutations, whichever is more; with `stability`, as many as that takes.
    stability
        Stop once the ranking is this stable, between 0 and 1: the rank correlation to expect with a
        repetition of the whole estimate. It is estimated from two halves of the permutations, and
        has to hold at two checks in a row.
    truncation
        Leave the rest of a permutation out where utility is less than this far from that of all
        points; they share what is missing evenly. Saves fits, and biases single values; 0 is never.
        For regression it is a share of what all points gain over none.
    accelerate
        Train `LogisticRegression` by a kernel of our own, some 20 times faster for up to about 25
        features. It goes to the optimum, where scikit-learn stops a little before (`tol=1e-4`).
    mean
        As in `tknn_shapley`, but True by default: utility is then accuracy. With False it is the
        number of right predictions.
    seed
        The same seed gives the same values, whatever the number of workers. It is also the random
        state of a model that has none (not of what draws from NumPy's global state).
    workers
        Processes (with `accelerate`, threads); without it, as an active `joblib.parallel_config`
        says, else as many as cores. The backends of Ray and Dask work too.
    checkpoint
        The path of a file that keeps what is done. After an interruption of any kind, call the
        function again with the same arguments to continue. The file stays after the run, so that
        more `evaluations` extend it.
    task, empty
        As in `tknn_shapley`. For regression the model is a scikit-learn regressor, `Ridge()` if not
        given, and utility is minus its mean squared error on the validation set (minus the sum of
        squares with `mean=False`). A coalition without points predicts `empty`, one of a single
        target that, and where a model fails the mean target of the coalition.

    Returns
    -------
    Valuation
        With `standard_errors`. They are of the sampling of permutations alone.

    Raises
    ------
    InputError
        Where an argument cannot be used, or the model cannot be fitted on all points.

    Notes
    -----
    value_i = E[utility(before i and i) - utility(before i)] over permutations. Unbiased without
    `truncation` and `stability`. A coalition without points has utility 1/C, one of a single class
    the accuracy of predicting that class, and where a model fails that of the coalition's most
    frequent class (a `FitWarning` says how often). From Ghorbani and Zou 2019.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> valuation = th.data_shapley(X, y, [[0.6], [2.4]], ["a", "b"], evaluations=3000)
    >>> valuation.values.round(1).tolist(), float(valuation.standard_errors.max().round(3))
    ([0.1, 0.1, 0.1, 0.1], 0.007)
    """
    truncation = check_number("truncation", truncation, least=0, most=1)
    limit = check_limit(evaluations, stability)
    return estimate(
        "data-shapley", {"truncation": truncation},
        lambda start: Walks(
            start, np.full(start.points, 1 / start.points), limit, truncation * _range(start, task)
        ),
        Problem.check(X, y, X_val, y_val, classes=classes, task=task, empty=empty), owners=owners,
        model=model, accelerate=accelerate, mean=mean, seed=seed, workers=workers,
        checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def beta_shapley(
    X: Any, y: Any, X_val: Any, y_val: Any, *, alpha: float = 4.0, beta: float = 1.0,
    model: Any = None, evaluations: int | None = None, stability: float | None = None,
    accelerate: bool = False, classes: Any = None, owners: Any = None, mean: bool = True,
    seed: int = 0, workers: int | None = None, checkpoint: str | Path | None = None,
    progress: bool = False, task: str = CLASSES, empty: float | None = None,
) -> Valuation:  # fmt: skip
    """Beta Shapley values of the accuracy of a retrained model, estimated by permutation sampling.

    `alpha` and `beta` are the a and b of `Beta(a, b)`: a larger `alpha` gives small coalitions more
    weight, a larger `beta` gives large ones more, and Beta(1, 1) is Data Shapley. Marginal
    contributions are weighed by n times the probability of their position's coalition size, and
    positions of no weight are not trained for. The other arguments are those of `data_shapley`.
    From Kwon and Zou 2022.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> th.beta_shapley(X, y, [[0.6], [2.4]], ["a", "b"], alpha=16, evaluations=3000)
    Valuation(beta-shapley, 4 points, sum=0.2014)
    """
    a, b = (
        check_number(name, given, least=1e-150, most=1e150)
        for name, given in (("alpha", alpha), ("beta", beta))
    )
    limit = check_limit(evaluations, stability)
    return estimate(
        "beta-shapley", {"alpha": a, "beta": b},
        lambda start: Walks(start, coalition_sizes(Beta(a, b), start.points), limit),
        Problem.check(X, y, X_val, y_val, classes=classes, task=task, empty=empty), owners=owners,
        model=model, accelerate=accelerate, mean=mean, seed=seed, workers=workers,
        checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def data_banzhaf(
    X: Any, y: Any, X_val: Any, y_val: Any, *, model: Any = None, evaluations: int | None = None,
    stability: float | None = None, accelerate: bool = False, classes: Any = None,
    owners: Any = None, mean: bool = True, seed: int = 0, workers: int | None = None,
    checkpoint: str | Path | None = None, progress: bool = False,
    task: str = CLASSES, empty: float | None = None,
) -> Valuation:  # fmt: skip
    """Banzhaf values of the accuracy of a retrained model, by maximum sample reuse.

    Coalitions take every point with probability one half; a value is the mean utility of those with
    the point minus that of those without, so every fit informs the values of all points. The other
    arguments are those of `data_shapley`. From Wang and Jia 2023.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> th.data_banzhaf(X, y, [[0.6], [2.4]], ["a", "b"], evaluations=1000).values.round(1).tolist()
    [0.2, 0.2, 0.2, 0.2]
    """
    limit = check_limit(evaluations, stability)
    return estimate(
        "data-banzhaf", {}, lambda start: RandomSubsets(start, limit),
        Problem.check(X, y, X_val, y_val, classes=classes, task=task, empty=empty), owners=owners,
        model=model, accelerate=accelerate, mean=mean, seed=seed, workers=workers,
        checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def _range(start: Any, task: str) -> float:
    """What a truncation is a share of: accuracies are from 0 to 1, squared errors are not."""
    return 1.0 if task == CLASSES else abs(start.full - start.none)
