"""
Points that do not fit in memory
================================

With ``memory=``, points are read in parts. The values are the same to the last bit.
"""

# %%
# Write 200,000 points to a file and map it, as you would with a file of 200 GB.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import thresher as th

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
X = rng.standard_normal((200_000, 16), dtype=np.float32)
y = (X[:, 0] + X[:, 1] > 0).astype(int)
np.save(folder / "points.npy", X)
mapped = np.load(folder / "points.npy", mmap_mode="r")
X_val = rng.standard_normal((200, 16), dtype=np.float32)
y_val = (X_val[:, 0] + X_val[:, 1] > 0).astype(int)

# %%
# A first pass counts the near points of each validation point. A second pass pays the prices that
# follow from the counts.

parts = th.tknn_shapley(mapped, y, X_val, y_val, radius=0.4, memory="2GB")
whole = th.tknn_shapley(X, y, X_val, y_val, radius=0.4)
print("equal to the last bit:", parts.values.tobytes() == whole.values.tobytes())

# %%
# A third of the points are near no validation point, and are worth exactly nothing. Points close to
# the border between the classes have many neighbors of the other class. So the farther a point lies
# from the border, the more it is worth on average, up to a distance of about 2.

print(f"worth exactly nothing: {(parts.values == 0).mean():.0%} of the points")
distance = np.abs(X[:, 0] + X[:, 1]) / np.sqrt(2)
starts = np.arange(0, 3, 0.25)
means = [parts.values[(distance >= low) & (distance < low + 0.25)].mean() for low in starts]

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.bar(starts, means, width=0.23, align="edge")
axis.axhline(0, color="black", linewidth=0.8)
axis.set(xlabel="distance from the border between the classes", ylabel="mean value of the points")
axis.set_title("Points far from the border are worth more")
