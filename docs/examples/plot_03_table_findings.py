"""
What to do about each row of a table
====================================

A random forest needs no scaling and no validation set. It values a table and suggests an action
for each row.
"""

# %%
# Chemical measurements of 178 wines from three growers. Ten of them name the wrong grower.

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import thresher as th

data = load_wine()
names = [f"grower {number + 1}" for number in data.target]
y, wrong = th.flip_labels(names, fraction=10 / len(names), seed=1)

valuation, findings = th.forest_findings(data.data, y)
print(findings)

# %%
# Which suggestion did each row get?

for row in valuation.suspects(12):
    mark = "*" if wrong[row] else " "
    print(
        f"{mark} row {row:3d}: {y[row]}, value {valuation.values[row]:6.2f}, "
        f"{findings.suggestion[row]}: {findings.best_label[row]}"
    )

# %%
# Rows in order of their value. Wrong labels, in orange, sit at the low end.

order = valuation.values.argsort()
colors = ["C1" if wrong[row] else "C0" for row in order]
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.bar(range(len(order)), valuation.values[order], color=colors, width=1)
axis.axhline(0, color="black", linewidth=0.8)
axis.set(xlabel="rows, lowest value first", ylabel="value")
