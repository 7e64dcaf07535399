"""
Find mislabeled digits
======================

A tenth of the labels of some handwritten digits are wrong. Exact values find most of them.
"""

# %%
# Take scikit-learn's digits, keep 300 with labels that you trust, and spoil a tenth of the rest.
# Cosine distances compare directions, so center the data first.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import thresher as th

images, labels = load_digits(return_X_y=True)
X, X_val, y, y_val, shown, _ = train_test_split(
    images - images.mean(axis=0), labels, images, test_size=300, random_state=0
)
y, flipped = th.flip_labels(y, fraction=0.1, seed=0)

# %%
# The radius says how close two digits must be to count as neighbors. Thresher suggests one from
# the 300 trusted digits alone.

radius = th.suggest_radius(X_val, y_val)
valuation = th.tknn_shapley(X, y, X_val, y_val, radius=radius)
worst = valuation.suspects(0.1)
print(f"{flipped[worst].sum()} of the {len(worst)} lowest values have a wrong label")

# %%
# The values of wrong labels, in orange, lie almost entirely below zero.

span = valuation.values.min(), valuation.values.max()
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for mask, name, color in ((~flipped, "right label", "C0"), (flipped, "wrong label", "C1")):
    axis.hist(valuation.values[mask], bins=60, range=span, alpha=0.8, label=name, color=color)
axis.axvline(0, color="black", linewidth=0.8)
axis.set(xlabel="value", ylabel="digits", yscale="log", title="Wrong labels have low values")
axis.legend()

# %%
# The sixteen digits with the lowest values. Above each is the label that it came with. Orange marks
# a wrong label.

figure, axes = plt.subplots(2, 8, figsize=(8, 3), layout="constrained")
figure.suptitle("The sixteen lowest values: labels in orange are wrong")
for axis, row in zip(axes.flat, worst[:16], strict=True):
    axis.imshow(shown[row].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"“{y[row]}”", color="C1" if flipped[row] else "black")
    axis.axis("off")
