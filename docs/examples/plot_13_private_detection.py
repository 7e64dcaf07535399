"""
The paper's main claim, on a small data set
===========================================

Private values still find wrong labels. But a score that costs no privacy at all finds them too.
"""

# %%
# The paper reports how well private values find mislabeled points at several budgets. This
# example repeats that on handwritten digits. It also computes the **zero-budget score**: what a
# point would be worth alone. That score uses nobody else's data, so it reveals nothing about
# others.

import matplotlib.pyplot as plt
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import thresher as th

X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(X - X.mean(axis=0), y, test_size=200, random_state=0)
y, flipped = th.flip_labels(y, fraction=0.1, seed=0)
data = X, y, X_val, y_val
about = {"radius": float(th.suggest_radius(X_val, y_val)), "classes": range(10)}

exact = th.tknn_shapley(*data, **about).values
alone = th.zero_budget_score(*data, **about).values
budgets = [0.1, 0.3, 1, 3, 10]
mechanisms = {"ours (table)": "table", "the paper's": "paper"}
values = {name: [] for name in mechanisms}
for name, mechanism in mechanisms.items():
    for epsilon in budgets:
        private = {"epsilon": epsilon, "delta": 1e-4, "mechanism": mechanism, "seed": 0}
        values[name].append(th.dp_tknn_shapley(*data, **private, **about).values)

# %%
# The left chart shows how well each method finds wrong labels. All methods do about equally well.
# The right chart shows how well each method keeps the order of the exact values, which is what pay
# needs. There the mechanisms differ.


def detection(each):
    return roc_auc_score(flipped, -each)


def agreement(each):
    return spearmanr(exact, each).statistic


figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
for axis, measure, title in (
    (axes[0], detection, "Wrong labels: all find them"),
    (axes[1], agreement, "Order of the values: they differ"),
):
    for name, each in values.items():
        axis.semilogx(budgets, [measure(one) for one in each], marker="o", label=name)
    axis.axhline(measure(alone), color="C2", linestyle="--", label="zero-budget score")
    axis.set(xlabel="epsilon (larger is less private)", title=title)
axes[0].axhline(detection(exact), color="black", linewidth=0.8, label="exact")
axes[0].set(ylim=(0.5, 1), ylabel="AUROC")
axes[0].legend(loc="lower right")
axes[1].set_ylabel("Spearman with the exact values")
figure.tight_layout()
