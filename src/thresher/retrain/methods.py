"""The methods that retrain a model for every coalition: leave-one-out, Data Shapley, Beta Shapley,
Data Banzhaf. They take any scikit-learn classifier or regressor, and thousands of fits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher.games.semivalues import Beta, coalition_sizes
from thresher.inputs.checks import check_number
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
    """How much accuracy is lost if each point is left out of the training data.

    This is exact, with one fit for each point and one for all. All arguments are those of
    `data_shapley`.

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
        A scikit-learn classifier. The default is `LogisticRegression()`. It sees the labels as they
        are if NumPy can hold them (numbers of one type, or text). Otherwise it sees each class as a
        code: 0, 1, and so on.
    evaluations
        The largest number of coalitions to train on, in whole permutations of N - 1 each. The
        default is 10,000 or two permutations, whichever is more; with `stability`, as many as it
        takes.
    stability
        Stop once the ranking is this stable, between 0 and 1: the rank correlation to expect with a
        repetition of the whole estimate. It is estimated from two halves of the permutations, and
        has to hold at two checks in a row. If `evaluations` end first, there is a `FitWarning`.
    truncation
        Skip the rest of a permutation once utility is closer than this to that of all points. The
        skipped points share the remaining utility evenly. This saves fits, and biases single
        values; 0 never skips. For regression, it is a share of the gain of all points over none.
    accelerate
        Train `LogisticRegression` with Thresher's own kernel, about 20 times faster for up to about
        25 features. It trains to the optimum, while scikit-learn stops a little earlier
        (`tol=1e-4`).
    mean
        As in `tknn_shapley`, but True by default: utility is then accuracy. With False it is the
        number of right predictions.
    seed
        The same seed gives the same values, whatever the number of workers. It is also the random
        state of a model that has none (not of what draws from NumPy's global state).
    workers
        How many processes to use (with `accelerate`, threads). The default is what an active
        `joblib.parallel_config` says, and otherwise the number of cores. The backends of Ray and
        Dask work, too.
    checkpoint
        The path of a file that keeps what is done. After an interruption of any kind, call the
        function again with the same arguments to continue. The file stays after the run, so that
        more `evaluations` extend it.
    task, empty
        As in `tknn_shapley`. For regression, the model is a scikit-learn regressor, by default
        `Ridge()`. Utility is minus its mean squared error on the validation set (minus the sum of
        squares with `mean=False`). A coalition without points predicts `empty`, a coalition with a
        single target predicts that target, and if a model fails, the mean target of the coalition
        is predicted.

    Returns
    -------
    Valuation
        With `standard_errors`, which cover only the sampling of permutations.

    Raises
    ------
    InputError
        If an argument cannot be used, or the model cannot be fitted on all points.

    Notes
    -----
    value_i = E[utility(before i and i) - utility(before i)] over permutations. The estimate is
    unbiased without `truncation` and `stability`. A coalition without points has utility 1/C. A
    coalition with a single class has the accuracy of predicting that class. If a model fails, the
    coalition's most frequent class is predicted (a `FitWarning` says how often). From Ghorbani and
    Zou 2019.

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
    contributions are weighted by n times the probability of their position's coalition size, and
    positions without weight are not trained. The other arguments are those of `data_shapley`. From
    Kwon and Zou 2022.

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

    Coalitions contain every point with probability one half. A value is the mean utility of
    coalitions with the point minus the mean of those without it, so every fit informs the values of
    all points. `evaluations` is how many coalitions to train on: at least 4, and by default 10,000
    or, with `stability`, as many as it takes. `stability` compares two halves of the coalitions.
    The other arguments are those of `data_shapley`. From Wang and Jia 2023.

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
    """What truncation is a share of: 1 for accuracy, and the gain of all points for regression."""
    return 1.0 if task == CLASSES else abs(start.full - start.none)
