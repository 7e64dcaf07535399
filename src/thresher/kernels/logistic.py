"""Logistic regression by Newton's method, started from the solution of a similar coalition.

The objective, with x a row (its last entry 1 where there is an intercept), is that of scikit-learn,

    sum_i loss(x_i, y_i) + sum_a penalties_a / 2 * (sum of squares of the weights of feature a),

where intercepts are not penalized. With one row of weights, this is the logistic loss
log(1 + exp(-s x.w)), with s = 1 for the second of two classes and -1 for the first. With one row
per class, it is the softmax loss -log p_y. Adding the same number to the weights of all classes
changes no probability. So at the minimum, the weights add up to zero (or may, for intercepts). Half
the squares of their sums are added to the objective, which keeps the minimum in place and makes it
unique.

Tables are transposed here, one column per row of data, so that loops run along memory.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from thresher.array_types import Floats, Integers

Table = Floats  # two-dimensional

CLOSE = 1e-9  # Newton decrement of a solution: the objective is within its square of the minimum
SAFE = 1e-3  # below this decrement full steps are safe, and the objective is flat to rounding
FAR = 0.3  # above this decrement a factor of another coalition is not trusted
MOST_STEPS = 200
MOST_HALVINGS = 40

SHIFT = 1.5 * 2.0**52  # added to a small number, leaves its nearest integer in the last bits
LOG2 = (0.693147180369123816490, 1.90821492927058770002e-10)  # of 2, in two parts
TAYLOR = tuple(1 / math.factorial(i) for i in range(13))


@njit(cache=True, nogil=True, error_model="numpy")
def exponentials(x: Floats, out: Floats) -> None:
    """Fill `out` with exp(x) for x in [-700, 700]: branch-free, so that it becomes vector code.

    exp(x) = 2^k exp(r) with k the integer nearest to x / log 2, thus |r| < 0.35: Taylor to r^12.
    """
    n = x.shape[0]
    scale = np.empty(n)
    bits = scale.view(np.int64)
    for i in range(n):
        scale[i] = x[i] * (1 / LOG2[0]) + SHIFT
    for i in range(n):
        k = scale[i] - SHIFT
        r = (x[i] - k * LOG2[0]) - k * LOG2[1]
        s = TAYLOR[12]
        for q in range(11, -1, -1):
            s = s * r + TAYLOR[q]
        out[i] = s
    for i in range(n):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(n):
        out[i] *= scale[i]


@njit(cache=True, nogil=True, error_model="numpy")
def dot(A: Table, i: int, B: Table, j: int, n: int) -> float:
    """The inner product of the first n entries of two rows, eight sums at once."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = n - n % 8
    for k in range(0, whole, 8):
        s0 += A[i, k] * B[j, k]
        s1 += A[i, k + 1] * B[j, k + 1]
        s2 += A[i, k + 2] * B[j, k + 2]
        s3 += A[i, k + 3] * B[j, k + 3]
        s4 += A[i, k + 4] * B[j, k + 4]
        s5 += A[i, k + 5] * B[j, k + 5]
        s6 += A[i, k + 6] * B[j, k + 6]
        s7 += A[i, k + 7] * B[j, k + 7]
    for k in range(whole, n):
        s0 += A[i, k] * B[j, k]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@njit(cache=True, nogil=True, error_model="numpy")
def fill_scores(A: Table, weights: Table, z: Table) -> None:
    """Z = weights A: one row per row of weights, one column per row of data."""
    z[:] = 0.0
    for k in range(weights.shape[0]):
        for a in range(weights.shape[1]):
            weight = weights[k, a]
            for j in range(A.shape[1]):
                z[k, j] += weight * A[a, j]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_probabilities(A: Table, weights: Table, p: Table) -> None:
    """Fill row k of `p` with the probabilities of class k (with two classes, of the second one)."""
    rows, n = p.shape
    fill_scores(A, weights, p)
    if rows == 1:
        tail = np.empty(n)
        for j in range(n):
            tail[j] = max(-abs(p[0, j]), -700.0)
        exponentials(tail, tail)
        for j in range(n):
            p[0, j] = (1.0 if p[0, j] > 0 else tail[j]) / (1 + tail[j])
        return
    most, total = p[0].copy(), np.zeros(n)
    for k in range(1, rows):
        for j in range(n):
            most[j] = max(most[j], p[k, j])
    for k in range(rows):
        for j in range(n):
            p[k, j] = max(p[k, j] - most[j], -700.0)
        exponentials(p[k], p[k])
        for j in range(n):
            total[j] += p[k, j]
    for k in range(rows):
        for j in range(n):
            p[k, j] /= total[j]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_gradient(
    A: Table, targets: Integers, penalties: Floats, weights: Table, p: Table, gradient: Table
) -> None:
    """The gradient at `weights`, whose probabilities are `p`."""
    rows, columns = weights.shape
    n = A.shape[1]
    residual = np.empty((1, n))
    for k in range(rows):
        code = k if rows > 1 else 1
        for j in range(n):
            residual[0, j] = p[k, j] - (1.0 if targets[j] == code else 0.0)
        for a in range(columns):
            gradient[k, a] = dot(A, a, residual, 0, n)
    for k in range(rows):
        for a in range(penalties.shape[0]):
            gradient[k, a] += penalties[a] * weights[k, a]
    if rows > 1:
        gradient += weights.sum(axis=0)


@njit(cache=True, nogil=True, error_model="numpy")
def objective(A: Table, targets: Integers, penalties: Floats, weights: Table) -> float:
    """The objective itself, for steps far from the minimum."""
    rows, n = weights.shape[0], A.shape[1]
    total = 0.0
    for a in range(penalties.shape[0]):
        total += 0.5 * penalties[a] * (weights[:, a] ** 2).sum()
    if rows > 1:
        total += 0.5 * (weights.sum(axis=0) ** 2).sum()
    z = np.empty((rows, n))
    fill_scores(A, weights, z)
    for j in range(n):
        if rows == 1:
            total += max(z[0, j], 0.0) + math.log1p(math.exp(-abs(z[0, j])))
            total -= z[0, j] if targets[j] == 1 else 0.0
        else:
            most = z[:, j].max()
            total += most + math.log(np.exp(z[:, j] - most).sum()) - z[targets[j], j]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def fill_hessian(A: Table, penalties: Floats, weights: Table, p: Table, out: Table) -> None:
    """The lower triangle of the Hessian over the flattened weights."""
    rows, columns = weights.shape
    n = A.shape[1]
    scaled = np.empty((1, n))
    for k in range(rows):
        for m in range(k + 1):
            for a in range(columns):
                for j in range(n):
                    scaled[0, j] = A[a, j] * p[k, j] * ((1.0 if k == m else 0.0) - p[m, j])
                for b in range(a + 1 if k == m else columns):
                    out[k * columns + a, m * columns + b] = dot(scaled, 0, A, b, n)
                if rows > 1:
                    out[k * columns + a, m * columns + a] += 1.0
        for a in range(penalties.shape[0]):
            out[k * columns + a, k * columns + a] += penalties[a]


@njit(cache=True, nogil=True, error_model="numpy")
def factorize(A: Table) -> bool:
    """Replace the lower triangle of `A` by its Cholesky factor; False if `A` is not positive."""
    n = A.shape[0]
    for j in range(n):
        pivot = A[j, j] - dot(A, j, A, j, j)
        if not pivot > 0.0 or not math.isfinite(pivot):
            return False
        A[j, j] = math.sqrt(pivot)
        for i in range(j + 1, n):
            A[i, j] = (A[i, j] - dot(A, i, A, j, j)) / A[j, j]
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def newton_step(factor: Table, gradient: Table, step: Table) -> float:
    """Fill `step` with the solution of factor factor' step = gradient; returns the decrement."""
    n = gradient.size
    flat = gradient.reshape(-1)
    total = 0.0
    for i in range(n):
        step[0, i] = (flat[i] - dot(factor, i, step, 0, i)) / factor[i, i]
        total += step[0, i] ** 2
    for i in range(n - 1, -1, -1):
        step[0, i] /= factor[i, i]
        for j in range(i):
            step[0, j] -= factor[i, j] * step[0, i]
    return math.sqrt(total)


@njit(cache=True, nogil=True, error_model="numpy")
def slow(size: int, decrement: float, before: float) -> bool:
    """Whether steps with the old factor would take longer than computing a new one."""
    if decrement <= CLOSE:
        return False
    if decrement > FAR or decrement >= before:
        return True
    left = math.log(decrement / CLOSE) / math.log(before / decrement)
    return left > 3 + size / 4


@njit(cache=True, nogil=True, error_model="numpy")
def step_length(
    A: Table, targets: Integers, penalties: Floats, weights: Table, step: Table, decrement: float
) -> float:
    """The step size: 1, halved until the objective falls enough."""
    value = objective(A, targets, penalties, weights)
    length = 1.0
    for _ in range(MOST_HALVINGS):
        found = objective(A, targets, penalties, weights - length * step)
        if found <= value - 0.25 * length * decrement**2:
            break
        length *= 0.5
    return length


@njit(cache=True, nogil=True, error_model="numpy")
def train(
    table: Table, codes: Integers, members: Integers, penalties: Floats, weights: Table,
    factor: Table, known: bool,
) -> bool:  # fmt: skip
    """Move `weights` to the minimum for these `members`; return False if that did not work.

    `table` has one column per point, whose class is the position of its row of weights (of two, 0
    or 1). If `known`, `factor` is a Cholesky factor of the Hessian of a similar coalition. Steps
    with it are cheap, and it is computed again if they shrink the decrement too little.
    """
    n = members.shape[0]
    A, targets = np.empty((table.shape[0], n)), np.empty(n, np.int64)
    for a in range(table.shape[0]):
        for j in range(n):
            A[a, j] = table[a, members[j]]
    for j in range(n):
        targets[j] = codes[members[j]]
    gradient, step = np.empty_like(weights), np.empty((1, weights.size))
    p = np.empty((weights.shape[0], n))
    before = np.inf
    for _ in range(MOST_STEPS):
        fill_probabilities(A, weights, p)
        fill_gradient(A, targets, penalties, weights, p, gradient)
        decrement = newton_step(factor, gradient, step) if known else np.inf
        fresh = not known or slow(step.size, decrement, before)
        if fresh:
            fill_hessian(A, penalties, weights, p, factor)
            if not factorize(factor):
                return False
            known, decrement = True, newton_step(factor, gradient, step)
        if not math.isfinite(decrement):
            return False
        if decrement <= CLOSE:
            return True
        change = step.reshape(weights.shape)
        length = 1.0
        if fresh and decrement > SAFE:
            length = step_length(A, targets, penalties, weights, change, decrement)
        weights -= length * change
        before = decrement
    return False
