"""
What to do about each row of a table
====================================

A random forest needs no scaling and no validation set. It values a table and suggests an action
for each row.
"""

# %%
# The table has chemical measurements of 178 wines from three growers. Ten rows name the wrong
# grower.

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import thresher as th

data = load_wine()
names = [f"grower {number + 1}" for number in data.target]
y, wrong = th.flip_labels(names, fraction=10 / len(names), seed=1)

valuation, findings = th.forest_findings(data.data, y)
print(findings)

# %%
# Which suggestion did each of the lowest rows get? A star marks a wrong label. The grower in
# brackets is the one that fits the row best.

for row in valuation.suspects(12):
    mark = "*" if wrong[row] else " "
    action = findings.suggestion[row]
    better = f" ({findings.best_label[row]})" if action in ("relabel", "inspect") else ""
    print(f"{mark} row {row:3d}: {y[row]}, value {valuation.values[row]:5.2f}, {action}{better}")

# %%
# Put the rows in order of their value. Wrong labels, in orange, are at the low end.

place = valuation.values.argsort().argsort()
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for mask, name in ((~wrong, "right grower"), (wrong, "wrong grower")):
    axis.bar(place[mask], valuation.values[mask], width=1, label=name)
axis.axhline(0, color="black", linewidth=0.8)
axis.set(xlabel="rows, lowest value first", ylabel="value", title="Wrong labels cost the most")
axis.legend()
