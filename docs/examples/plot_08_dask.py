"""
On a cluster, with Dask
=======================

Partitions are counted where they lie, and the values stay there.
"""

# %%
# Pass Dask arrays or frames to the same function. Here the scheduler runs in this process. With a
# ``distributed.Client``, the same lines run on a cluster.

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import thresher as th

dask.config.set(scheduler="synchronous")
rng = np.random.default_rng(0)
X = rng.standard_normal((40_000, 8))
y = (X[:, 0] > 0).astype(int)
y[::7] = 1 - y[::7]  # every seventh label is wrong
X_val = rng.standard_normal((300, 8))
y_val = (X_val[:, 0] > 0).astype(int)

spread = th.tknn_shapley(
    da.from_array(X, chunks=5_000), da.from_array(y, chunks=5_000), X_val, y_val
)
print(spread)

# %%
# ``compute()`` brings the values to this process. They equal those of one machine to the last bit.

valuation = spread.compute()
alone = th.tknn_shapley(X, y, X_val, y_val)
print("equal to the last bit:", valuation.values.tobytes() == alone.values.tobytes())

# %%
# In every partition, right and wrong labels are clearly apart.

wrong = np.arange(len(X)) % 7 == 0
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for mask, name in ((~wrong, "right labels"), (wrong, "wrong labels")):
    means = [
        valuation.values[i : i + 5000][mask[i : i + 5000]].mean() for i in range(0, 40_000, 5000)
    ]
    axis.plot(means, marker="o", label=name)
axis.axhline(0, color="black", linewidth=0.8)
axis.set(xlabel="partition", ylabel="mean value", title="Wrong labels cost in every partition")
axis.legend()
