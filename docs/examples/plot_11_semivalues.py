"""
Compare ways to share the credit
================================

Shapley, Banzhaf, Beta Shapley and leave-one-out are all exact here. They differ in the size of the
coalitions that they look at.
"""

# %%
# One pass over the data is enough: the same counts give every semivalue.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import thresher as th

X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(X - X.mean(axis=0), y, test_size=300, random_state=0)
y, flipped = th.flip_labels(y, fraction=0.1, seed=0)
radius = th.suggest_radius(X_val, y_val)

counts = th.NeighborCounts(X_val, y_val, radius=radius).add(X, y)
semivalues = {
    "Shapley": "shapley",
    "Beta(4, 1)": th.Beta(4, 1),
    "Beta(1, 4)": th.Beta(1, 4),
    "Banzhaf": "banzhaf",
    "leave-one-out": "leave-one-out",
}
values = {name: counts.price_list(each).values(X, y) for name, each in semivalues.items()}

# %%
# How well does each find the flipped labels? 1 is perfect, 0.5 is chance.

for name, each in values.items():
    print(f"{name:>14}: AUROC {roc_auc_score(flipped, -each):.3f}, sum {each.sum():8.2f}")

# %%
# They agree on which points are bad, but differ in scale. So divide each curve by its largest
# absolute value. Three curves then lie on top of each other: Beta(1, 4), Banzhaf and leave-one-out.
# They look at coalitions in which a point already has many neighbors. Shapley and Beta(4, 1) also
# look at coalitions in which it has few.

figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
share = np.linspace(0, 1, len(y))
looks = [("C0-", 1.5), ("C1-", 1.5), ("C8-", 6), ("C3--", 3), ("k:", 1.5)]
for (name, each), (look, width) in zip(values.items(), looks, strict=True):
    axis.plot(share, np.sort(each) / np.abs(each).max(), look, linewidth=width, label=name)
axis.axhline(0, color="black", linewidth=0.8)
axis.set(xlabel="share of the points, lowest value first", ylabel="value, scaled")
axis.set_title("Three of the five coincide once they are scaled")
axis.legend()
