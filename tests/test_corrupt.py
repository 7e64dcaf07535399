from __future__ import annotations

import numpy as np
import pytest

import thresher as th


@pytest.mark.parametrize(
    "labels",
    [np.arange(200) % 3, np.array(["a", "b"] * 100), [True, False] * 100, [("x", 1), 2] * 100],
)
def test_flipped_labels_change_where_the_mask_says_and_only_there(labels):
    flipped, mask = th.flip_labels(labels, fraction=0.1, seed=3)
    assert mask.sum() == 20
    changed = np.array([a != b for a, b in zip(flipped.tolist(), list(labels), strict=True)])
    np.testing.assert_array_equal(changed, mask)
    assert set(flipped.tolist()) <= set(labels if isinstance(labels, list) else labels.tolist())
    again, _ = th.flip_labels(labels, fraction=0.1, seed=3)
    assert again.tolist() == flipped.tolist()
    assert th.flip_labels(labels, fraction=0.1, seed=4)[1].tolist() != mask.tolist()
    if isinstance(labels, np.ndarray):
        assert flipped.dtype == labels.dtype
    assert flipped.dtype.kind == {int: "i", str: "U", bool: "b"}.get(type(flipped.tolist()[0]), "O")


def test_new_labels_are_drawn_from_all_other_classes():
    flipped, _ = th.flip_labels([0] * 3000, fraction=1.0, seed=0, classes=[0, 1, 2, 3])
    counts = np.bincount(flipped.astype(int), minlength=4)
    assert counts[0] == 0
    # 3000 even draws of 3: each within 5 standard deviations (26) of 1000; false alarm below 2e-6
    assert (abs(counts[1:] - 1000) < 130).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_has_the_columns_norm_as_its_deviation(dtype, rng):
    X = (rng.standard_normal((2000, 3)) * [1, 10, 0]).astype(dtype)
    noised, mask = th.add_feature_noise(X, fraction=0.5, seed=1)
    assert noised.dtype == dtype
    assert mask.sum() == 1000
    np.testing.assert_array_equal(noised[~mask], X[~mask])
    deviation = (noised - X)[mask].std(axis=0) / np.sqrt(
        (X.astype(float) ** 2).sum(axis=0).clip(1e-30)
    )
    # 1000 normal draws: the deviation is within 11 % (5 standard errors); false alarm below 2e-6
    assert (abs(deviation[:2] - 1) < 0.11).all()
    assert deviation[2] == 0


def test_wrong_settings_are_refused():
    with pytest.raises(th.InputError, match="y has one class"):
        th.flip_labels([1, 1], fraction=0.5, seed=0)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(th.InputError, match="fraction must be a number between 0 and 1"):
            th.flip_labels([0, 1], fraction=wrong, seed=0)
    with pytest.raises(th.InputError, match="scale must be a number >= 0"):
        th.add_feature_noise([[1.0]], fraction=0.5, seed=0, scale=-1)
    with pytest.raises(th.InputError, match="beyond the range of float16"):
        th.add_feature_noise(np.full((9, 2), 6e4, np.float16), fraction=1.0, seed=0)
    with pytest.raises(th.InputError, match="fraction must be a number"):
        th.add_feature_noise([[1.0]], fraction="half", seed=0)
    with pytest.raises(th.InputError, match="NaN or infinite"):
        th.add_feature_noise([[float("nan")]], fraction=0.5, seed=0)
