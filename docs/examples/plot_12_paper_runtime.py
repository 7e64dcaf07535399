"""
The paper's runtime figure, made small
======================================

TKNN-Shapley needs no sorting: for many points, its time grows in proportion to their number.
"""

# %%
# Draw points as the paper does: features are normal, and the class is the sign of the sum of the
# first two. ``thresher reproduce runtime`` makes the full figure with the paper's settings.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import thresher as th

rng = np.random.default_rng(0)


def draw(count):
    X = rng.standard_normal((count, 10), dtype=np.float32)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def seconds(function, *data, **settings):
    taken = []
    for _ in range(5):  # the first call may compile
        started = perf_counter()
        function(*data, **settings)
        taken.append(perf_counter() - started)
    return min(taken)


# %%
# There are one hundred validation points, and up to 300,000 points. The times are those of the
# machine that built this page. For few points, the fixed cost of a call takes most of the time. For
# many, TKNN-Shapley follows the dotted line, on which ten times as many points take ten times as
# long.

sizes = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000]
validation = draw(100)
times = {"KNN-Shapley": [], "TKNN-Shapley": []}
for size in sizes:
    points = draw(size)
    times["KNN-Shapley"].append(seconds(th.knn_shapley, *points, *validation, k=5))
    times["TKNN-Shapley"].append(seconds(th.tknn_shapley, *points, *validation, radius=0.5))

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, taken in times.items():
    axis.loglog(sizes, taken, marker="o", label=name)
last = times["TKNN-Shapley"][-1]
line = [last * size / sizes[-1] for size in sizes]
axis.loglog(sizes, line, color="black", linestyle=":", label="in proportion")
axis.set(xlabel="points", ylabel="seconds", title="With many points, time is in proportion")
axis.legend()
