"""What a buyer may choose: kernels, categories and gaps are those of the library."""

from __future__ import annotations

import json

import numpy as np
import pytest
from market_cases import terms

import thresher as th
from thresher.errors import InputError
from thresher.market.export import reopened
from thresher.market.planning import plan
from thresher.market.questions import Question
from thresher.market.refusals import Refusal
from thresher.market.settlement import compute, lines_of
from thresher.market.terms import Terms
from thresher.runs.public_encoding import Preparation

CHOSEN = {
    "kernel": "gaussian", "rings": 3, "categorical": ("ward",), "fill": "median", "radius": None,
    "epsilon": 60.0, "owners": 12, "rows_per_owner": 10,
}  # fmt: skip


def patients(rows, seed):
    """Patients with a ward, some of whose sugar nobody measured."""
    rng = np.random.default_rng(seed)
    sugar, ward = rng.normal(100, 20, rows), rng.choice(["north", "south"], rows)
    sick = sugar + 10 * (ward == "north") > 105
    lines = [
        f"{'' if gap < 0.1 else f'{x:.1f}'},{place},{'sick' if ill else 'well'}"
        for x, place, ill, gap in zip(sugar, ward, sick, rng.random(rows), strict=True)
    ]
    return ("\n".join(["sugar,ward,diagnosis", *lines]) + "\n").encode()


@pytest.fixture(scope="module")
def question():
    return Question.read(terms(**CHOSEN), patients(60, 1), "csv")


def test_a_kernel_and_categories_give_what_the_library_gives(question, tmp_path):
    owned = {f"owner {i}": question.rows(patients(10, 10 + i), "csv") for i in range(12)}
    ours = compute(None, question, "task", owned, seed=5)
    assert ours.state == "paid", ours.reason
    path = tmp_path / "validation.csv"
    path.write_bytes(patients(60, 1))
    encoding = Preparation.of("validation", "median", ["ward"]).fit(path, "diagnosis", (), None)
    assert encoding.rows.shape == (60, 3), "sugar, and a column for each ward"
    weighting = {"metric": "euclidean", "kernel": "gaussian", "rings": 3}
    radius = th.suggest_radius(encoding.rows, question.y_val, **weighting).radius
    theirs = th.dp_tknn_shapley(
        np.concatenate([rows.X for rows in owned.values()]),
        [label for rows in owned.values() for label in rows.y], encoding.rows, question.y_val,
        epsilon=60.0, delta=1e-6, radius=radius, seed=5, points_per_owner=10, version="task task",
        owners=[owner for owner, rows in owned.items() for _ in rows.y], **weighting,
    )  # fmt: skip
    assert ours.release.table.tolist() == theirs.table.tolist()
    assert ours.release.record["kernel"] == "gaussian"
    published = json.loads(ours.release.to_json())
    again = reopened(question, published, {"owner 3": owned["owner 3"]})
    paid = th.private_payout(again, pot=100_000, pay="estimate", basis="gains")
    line = lines_of(ours.release, ours.payout)["owner 3"]
    assert lines_of(again, paid)["owner 3"]["cents"] == line["cents"]


def test_rows_with_gaps_and_new_categories_are_taken_and_others_refused(question):
    text = b"sugar,ward,diagnosis\n,east,sick\n,west,sick\n90,north,well\n90,south,well\n"
    rows = question.rows(text, "csv")
    assert rows.X[0].tolist() == rows.X[1].tolist(), "wards that nobody knows are all alike"
    assert len({tuple(row) for row in rows.X[1:, 1:].tolist()}) == 3
    assert np.isfinite(rows.X).all()
    with pytest.raises(Refusal, match="line 2: a feature is missing, not a number"):
        question.rows(b"sugar,ward,diagnosis\nmuch,north,sick\n", "csv")


def test_a_plan_knows_of_the_kernel(question):
    assert 0 < plan(question)["relative_error"] < 1


def test_terms_are_kept_and_old_ones_have_no_kernel():
    made = terms(**CHOSEN)
    assert Terms.of(json.loads(json.dumps(made.document()))) == made
    old = {name: entry for name, entry in terms().document().items() if name not in CHOSEN}
    kept = Terms.of(old | {"epsilon": 1.0, "owners": 3, "rows_per_owner": 2})
    assert (kept.kernel, kept.categorical, kept.fill) == ("box", (), None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kernel": "round"},
        {"rings": 0},
        {"rings": 255},
        {"categorical": ("",)},
        {"rings": 9},
        {"rings": 9, "trees": 2},
        {"leaves": 40},
    ],
)
def test_terms_that_cannot_be_used_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        terms(**wrong)
