"""
Find wrong topics among texts
=============================

Texts become rows of numbers (embeddings), and wrong topics get low values.
"""

# %%
# For real texts, use the embeddings of a language model: see ``thresher embed``. To stay offline,
# this example writes 600 short messages on three topics and embeds them by word frequencies.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import thresher as th

WORDS = {
    "delivery": "parcel late driver address tracking box courier arrived missing door".split(),
    "payment": "card refund charged twice invoice bank price paid total coupon".split(),
    "account": "password login email locked reset username profile code phone settings".split(),
}
FILLER = "please help I the my was is not and today again still your team thanks".split()

rng = np.random.default_rng(0)
topics = rng.choice(list(WORDS), 600)
texts = [
    " ".join(rng.permutation([*rng.choice(WORDS[t], 4), *rng.choice(FILLER, 5)])) for t in topics
]
print(texts[0], "->", topics[0])

# %%
# Reduce the word counts to twelve numbers for each text. Keep 150 texts to judge the others by.

rows = TruncatedSVD(12, random_state=0).fit_transform(TfidfVectorizer().fit_transform(texts))
X, X_val, y_val = rows[150:], rows[:150], topics[:150]
y, wrong = th.flip_labels(topics[150:], fraction=0.1, seed=0)

radius = th.suggest_radius(X_val, y_val)
valuation = th.tknn_shapley(X, y, X_val, y_val, radius=radius)
worst = valuation.suspects(int(wrong.sum()))
print(
    f"{wrong[worst].sum()} of {wrong.sum()} wrong topics are among the {len(worst)} lowest values"
)

# %%
# Which topic would suit the five lowest better? ``explain`` finds the label with the highest value
# for each.

findings = th.explain(valuation, X, y, X_val, y_val)
for row in worst[:5]:
    print(f"{y[row]:>8} -> {findings.best_label[row]:<8}  {texts[150 + row]}")

# %%
# The second and the third of the twelve numbers separate the three topics. Red texts disagree with
# the trusted texts around them. They are drawn last, on top of the others.

colors = LinearSegmentedColormap.from_list("values", ["red", "darkgray", "blue"])
limit = np.abs(valuation.values).max()
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
order = valuation.values.argsort()[::-1]
spots = axis.scatter(
    X[order, 1], X[order, 2], c=valuation.values[order], cmap=colors, vmin=-limit, vmax=limit, s=14
)
for topic in WORDS:
    middle = np.median(X[y == topic, 1:3], axis=0)
    axis.annotate(topic, middle, (0, 30), textcoords="offset points", ha="center")
axis.margins(0.15)
figure.colorbar(spots, label="value")
axis.set(xlabel="component 2", ylabel="component 3", title="Red: texts with the wrong topic")
