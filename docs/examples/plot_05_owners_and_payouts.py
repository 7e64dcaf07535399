"""
Pay the owners of the data
==========================

Five clinics submit patients. Each is paid for what its patients add.
"""

# %%
# West got a third of its diagnoses wrong, and Hill submitted its patients twice.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import thresher as th

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]
X, X_val, y, y_val = X[:400], X[400:], y[:400], y[400:]
clinics = np.array(["North", "South", "East", "West", "Hill"])[np.arange(400) % 5]

careless = np.flatnonzero(clinics == "West")[::3]
y[careless] = 1 - y[careless]
twice = np.flatnonzero(clinics == "Hill")
X, y = np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]])
clinics = np.concatenate([clinics, clinics[twice]])

# %%
# There are two rules. The *sum of points* adds up what each patient is worth. In the *game among
# owners*, the clinics are the players, so a copy of a clinic's own patient adds little.

radius = th.suggest_radius(X_val, y_val)
points = th.tknn_shapley(X, y, X_val, y_val, radius=radius, owners=clinics).by_owner()
players = th.owner_shapley(X, y, X_val, y_val, radius=radius, owners=clinics)
game = players.by_owner()

# %%
# Share 10,000 dollars in whole cents. The payments add up to the pot exactly.

pot = 1_000_000
pay = {
    "sum of points": th.payout(points, pot=pot).cents,
    "game among owners": th.payout(players, pot=pot).cents,
}
for rule, cents in pay.items():
    print(f"{rule}:", ", ".join(f"{name} {each / 100:,.2f}" for name, each in cents.items()))
    assert sum(cents.values()) == pot

# %%
# Under the sum of points, Hill's copies bring it far more than the others. In the game among owners
# they bring much less. West is paid nothing under both rules, because of its wrong diagnoses.

figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for shift, (rule, cents) in zip((-0.2, 0.2), pay.items(), strict=True):
    paid = [cents[name] / 100 for name in game]
    bars = axis.bar(np.arange(5) + shift, paid, width=0.4, label=rule)
    axis.bar_label(bars, fmt="{:,.0f}", fontsize=8)
axis.set(xticks=range(5), xticklabels=list(game), ylabel="pay in dollars")
axis.margins(y=0.1)
axis.set_title("Copies pay off under the sum of points")
axis.legend()
