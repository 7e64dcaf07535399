"""
Data that changes all the time
==============================

A live store keeps points and their values up to date as points come and go.
"""

# %%
# Create a store in a folder. The validation set is fixed. Points come and go.

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import thresher as th

rng = np.random.default_rng(0)


def draw(count):
    X = rng.standard_normal((count, 6))
    return X, np.where(X[:, 0] > 0, "yes", "no")


X_val, y_val = draw(300)
live = th.LiveCounts.create(tempfile.mkdtemp() + "/store", X_val, y_val, radius=0.4)
live.add("first", [2, 0, 0, 0, 0, 0], "yes")

# %%
# As others arrive, the first point is worth less, because more neighbors share the credit.

sizes, worth = [1], [live.values().values[0]]
for batch in range(40):
    X, y = draw(25)
    live.add_many([f"{batch}-{i}" for i in range(25)], X, y)
    values = live.values()
    sizes.append(len(live))
    worth.append(values.values[values.ids.index("first")])

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.loglog(sizes, worth, marker=".")
axis.set(xlabel="points in the store", ylabel="value of the first point")
axis.set_title("The more points, the less the first is worth")

# %%
# Take a point out. The values of the others equal a fresh computation to the last bit.

live.remove("0-0")
X, y = live.points()
fresh = th.tknn_shapley(X, y, X_val, y_val, radius=0.4)
print("equal to the last bit:", live.values().values.tobytes() == fresh.values.tobytes())
live.close()
