"""
Tune the classifier behind the values
=====================================

``TKNNClassifier`` is a scikit-learn classifier, so ``GridSearchCV`` can choose its radius.
"""

# %%
# Threshold KNN-Shapley explains this classifier: it votes among all points within the radius.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import thresher as th

X, y = load_digits(return_X_y=True)
model = make_pipeline(StandardScaler(with_std=False), th.TKNNClassifier())
radii = np.round(np.arange(0.1, 0.95, 0.1), 2)
search = GridSearchCV(model, {"tknnclassifier__radius": radii}, cv=5).fit(X[:1000], y[:1000])
best = float(search.best_params_["tknnclassifier__radius"])
print(f"best radius: {best}, accuracy {search.best_score_:.3f}")

# %%
# ``suggest_radius`` has another goal: the radius at which values tell right labels from wrong ones
# best. The black line marks it. The function also reports the accuracy, and the share of points
# that have a neighbor (coverage). A small radius leaves digits without neighbors, and a large one
# lets digits of other classes vote.

centered = X[:1000] - X[:1000].mean(axis=0)
suggestion = th.suggest_radius(centered, y[:1000])
print(suggestion)

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.plot(radii, search.cv_results_["mean_test_score"], marker="o", label="grid search")
axis.plot(suggestion.radii, suggestion.accuracy, label="suggest_radius: accuracy")
axis.plot(suggestion.radii, suggestion.coverage, ":", label="suggest_radius: coverage")
axis.axvline(float(suggestion), color="black", linewidth=0.8, label="suggested radius")
axis.set(xlabel="radius", ylabel="share of digits", xlim=(0, 1))
axis.set_title("Both ways choose a radius near 0.4")
axis.legend()
