"""Tasks of a market whose neighbors are rows in the same leaf of public trees."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from market_cases import appraised, made_up, open_task, paid_export, terms

import thresher as th
from thresher.errors import InputError
from thresher.market.export import own_line, question_of, verify
from thresher.market.market import Market
from thresher.market.planning import plan
from thresher.market.questions import Question
from thresher.market.tasks import draft, set_validation
from thresher.market.terms import Terms
from thresher.privacy import dp_tknn, public_forest

GIVEN = {"epsilon": 30.0, "owners": 20, "rows_per_owner": 8, "radius": None, "trees": 4}
SEED = 7


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    """As `paid_export`, by leaves of trees, with fixed noise."""
    source = dp_tknn.noise_source
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dp_tknn, "noise_source", lambda _: source(SEED))
        return paid_export(tmp_path_factory.mktemp("market"), radius=None, trees=4)


def test_release_and_pay_are_those_of_the_library(paid):
    found, owners, lines = paid
    task = found["tasks"][0]
    assert task["state"] == "paid", task["reason"]
    question = question_of(task)
    parts = [question.rows(made_up(8, 100 + number), "csv") for number in range(20)]
    theirs = th.dp_tknn_shapley(
        np.concatenate([part.X for part in parts]), sum((part.y for part in parts), ()),
        question.X_val, question.y_val, epsilon=30.0, delta=1e-6, seed=SEED,
        forest=public_forest(question.X_val, question.y_val, trees=4), points_per_owner=8,
        owners=np.repeat(owners, 8), version=f"task {task['id']}",
    )  # fmt: skip
    assert task["release"]["table"] == theirs.table.tolist()
    payout = th.private_payout(theirs, pot=100_000)
    assert task["payout"]["rate"] == payout.rate
    assert [line["cents"] for line in lines] == [line.cents for line in payout.lines]
    assert [line["low"] for line in lines] == [None] * 20, "no error is told"
    assert sum(line["cents"] for line in lines) > 50_000


def test_the_export_checks_and_owners_check_and_appraise(paid, tmp_path):
    found, owners, lines = paid
    assert len(verify(found)) == 2
    task = found["tasks"][0]
    assert own_line(task, owners[3], [(made_up(8, 103), "csv")]) == lines[3]
    assert appraised(task, 3, tmp_path) == pytest.approx(lines[3]["value"])


def flip(place, name):
    """Change one character of packed data."""
    old = place[name]
    middle = len(old) // 2
    place[name] = old[:middle] + ("A" if old[middle] != "A" else "B") + old[middle + 1 :]


def sealed(task):
    """A price list with a tree that was changed, and a seal that is right."""
    listed = th.PriceList.read(task["release"]["prices"])
    listed.side.forest.trees[0].threshold[0] += 1
    task["release"]["prices"] = listed.document()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda task: task["release"]["table"][0].__setitem__(0, task["release"]["table"][0][0] ^ 1),
        lambda task: flip(task["release"]["prices"]["prices"], "zlib"),
        lambda task: flip(task["release"]["prices"]["arrays"]["forest_threshold"], "zlib"),
        lambda task: flip(task["terms"]["forest"]["nodes"]["threshold"], "zlib"),
        lambda task: task["release"]["record"].__setitem__("forest_digest", "0" * 64),
        lambda task: task["terms"].update(forest=None, trees=3),
        lambda task: task["terms"].update(forest=None, trees=None, radius=1.0),
        lambda task: task["terms"].__setitem__("rows_per_owner", 9),
        lambda task: task["payout"].__setitem__("rate", 1.0),
        sealed,
    ],
)
def test_one_bit_that_was_changed_is_found(paid, spoil):
    found = copy.deepcopy(paid[0])
    spoil(found["tasks"][0])
    with pytest.raises(InputError):
        verify(found)


def test_the_forest_is_that_of_the_last_validation_set(tmp_path):
    market = Market.open(tmp_path, epsilon=100.0)
    buyer, task = open_task(market, **GIVEN)
    with market.database.writing() as session:
        again = draft(session, buyer, "again", terms(**GIVEN), task.opens, task.closes)
        forests = []
        for seed in (1, 2, 1):
            set_validation(session, buyer, again.id, made_up(200, seed), "csv")
            forests.append(again.terms["forest"])
    market.close()
    assert forests[0] == forests[2] == task.terms["forest"]
    assert forests[0] != forests[1]


def test_a_plan_compares_leaves_a_radius_and_a_kernel():
    known = {}
    for near in ({"trees": 16}, {}):
        asked = terms(**GIVEN | {"trees": None, "owners": 5, "rows_per_owner": 4} | near)
        told = plan(Question.read(asked, made_up(20, 1), "csv"))
        assert len(told["others"]) == 2
        known[tuple(near)] = told
    leaves = "in the same leaf of 16 trees"
    assert known[()]["others"][1]["near"] == leaves
    for name in ("relative_error", "rank_correlation"):
        assert known[()]["others"][1][name] == known["trees",][name]
        assert known["trees",]["others"][0][name] == known[()][name]


@pytest.mark.parametrize("chosen", [{"pay": "lower"}, {"metric": "cosine"}, {"basis": "total"}])
def test_a_plan_compares_whatever_else_was_chosen(chosen):
    asked = terms(owners=5, rows_per_owner=4, **chosen)
    others = plan(Question.read(asked, made_up(20, 1), "csv"))["others"]
    usual = plan(Question.read(terms(owners=5, rows_per_owner=4), made_up(20, 1), "csv"))["others"]
    assert [other["near"] for other in others] == [other["near"] for other in usual]
    assert others[1] == usual[1], "leaves know of neither"


def test_terms_are_kept_and_old_ones_have_no_trees():
    made = terms(**GIVEN)
    assert Terms.of(json.loads(json.dumps(made.document()))) == made
    old = {name: entry for name, entry in terms().document().items() if name != "trees"}
    assert Terms.of(old).trees is None


@pytest.mark.parametrize(
    "wrong",
    [{"trees": 0}, {"trees": 33}, {"leaves": 1}, {"leaves": 65}, {"radius": 1.0},
     {"kernel": "gaussian"}, {"pay": "lower"}, {"metric": "cosine"}],
)  # fmt: skip
def test_terms_that_cannot_be_used_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        terms(**GIVEN | wrong)
