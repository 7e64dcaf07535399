"""
Values when targets are numbers
===============================

With ``task="regression"``, the value of a point is how much it lowers the squared error.
"""

# %%
# The targets say how far diabetes progressed within a year, for 442 patients. Mistype twenty of
# them: leave out their last digit.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import thresher as th

X, target = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
X, target = X[order], target[order]
X, X_val, y, y_val = X[:300], X[300:], target[:300].copy(), target[300:]
mistyped = np.zeros(300, dtype=bool)
mistyped[rng.choice(np.flatnonzero(y >= 200), 20, replace=False)] = True
y[mistyped] = np.floor(y[mistyped] / 10)

# %%
# A radius near the median distance gives every patient a fair number of neighbors.

valuation = th.tknn_shapley(X, y, X_val, y_val, metric="euclidean", radius=3.5, task="regression")
worst = valuation.suspects(40)
print(f"{mistyped[worst].sum()} of 20 mistyped targets are among the 40 lowest values")
print(f"values add up to the error saved: gap {valuation.efficiency_gap():.1e}")

# %%
# Mistyped targets, in orange, cost the most.

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
for mask, name in ((~mistyped, "right"), (mistyped, "mistyped")):
    axis.scatter(y[mask], valuation.values[mask], s=16, label=name)
axis.axhline(0, color="black", linewidth=0.8)
axis.set(xlabel="target", ylabel="value (squared error saved)", title="Mistyped targets cost most")
axis.legend()
