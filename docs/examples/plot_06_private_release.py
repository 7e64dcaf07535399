"""
Release values privately, and audit the claim
=============================================

A private release says what points are worth without giving away who is in the data.
"""

# %%
# First ask what a budget (epsilon) would buy. A smaller epsilon is more private and more noisy.
# Planning uses the validation set only and spends nothing.

from textwrap import fill

import matplotlib.pyplot as plt
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import thresher as th

X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(X - X.mean(axis=0), y, test_size=200, random_state=0)
radius = th.suggest_radius(X_val, y_val)
best = th.plan_release(X_val, y_val, points=len(X), epsilon=1, delta=1e-5, radius=radius)[0]
print(best)

# %%
# Release at three budgets, and compare with the exact values, which only the operator can see.
# The seed makes this page repeatable. Never pass one in production: whoever knows the seed can
# remove the noise.

exact = th.tknn_shapley(X, y, X_val, y_val, radius=radius).values
budgets = (0.3, 1, 3)
releases = [
    th.dp_tknn_shapley(X, y, X_val, y_val, radius=radius, epsilon=epsilon, delta=1e-5, seed=0)
    for epsilon in budgets
]

figure, axes = plt.subplots(1, 3, figsize=(9, 3.5), sharey=True, layout="constrained")
figure.suptitle("The larger epsilon is, the closer released values come to the exact ones")
for axis, epsilon, release in zip(axes, budgets, releases, strict=True):
    agreement = spearmanr(exact, release.values).statistic
    axis.scatter(exact, release.values, s=4)
    axis.axline((0, 0), slope=1, color="black", linewidth=0.8)
    axis.set(title=f"epsilon {epsilon}\nrank agreement {agreement:.2f}", xlabel="exact value")
axes[0].set_ylabel("released value")

# %%
# Is the claim true? An audit runs the mechanism many times with and without one point. It proves a
# lower bound on the epsilon that is really spent. If the bound is above the claim, something is
# broken.

audit = th.audit_mechanism("table", epsilon=1, delta=1e-5, runs=4000, canaries=0, seed=0)
print(f"claimed: at most {audit.epsilon}; proven: at least {audit.proven:.2f}")
print(fill(audit.verdict, 80))
