"""The public export: whoever has it can check it, and an owner can check the own pay."""

from __future__ import annotations

import copy
import json

import pytest
from market_cases import appraised, made_up, paid_export

from thresher.errors import BudgetError, InputError
from thresher.market.export import own_line, verify


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    return paid_export(tmp_path_factory.mktemp("market"), radius=0.6)


def test_the_export_checks_and_has_no_row_and_no_pay(paid):
    found, _, lines = paid
    assert len(verify(found)) == 2
    text = json.dumps(found)
    assert "cents" not in json.dumps(found["tasks"][0]["commitments"])
    row = made_up(8, 100).decode().splitlines()[1]
    assert row not in text
    assert not any(f'"cents": {line["cents"]}' in text for line in lines if line["cents"])


def test_an_owner_can_check_the_own_pay(paid):
    found, owners, lines = paid
    task = found["tasks"][0]
    assert own_line(task, owners[3], [(made_up(8, 103), "csv")]) == lines[3]
    assert own_line(task, owners[3], [(made_up(8, 104), "csv")]) != lines[3]


def test_raw_rows_are_appraised_by_the_public_release_as_their_owner_was(paid, tmp_path):
    found, _, lines = paid
    assert appraised(found["tasks"][0], 3, tmp_path) == pytest.approx(lines[3]["value"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda found: found["ledger"][1].__setitem__(4, "{}"),
        lambda found: found["ledger"].pop(1),
        lambda found: found["tasks"][0]["release"]["table"].__setitem__(0, 10**6),
        lambda found: found["tasks"][0]["release"]["prices"]["prices"].__setitem__(0, 9.0),
        lambda found: found["tasks"][0]["release"]["prices"]["encoding"].pop("columns"),
        lambda found: found["tasks"][0]["payout"].__setitem__("rate", 1.0),
        lambda found: found["tasks"][0]["terms"].__setitem__("epsilon", 99.0),
        lambda found: found["tasks"][0].__setitem__("id", "other"),
        lambda found: found.__setitem__("format", "x"),
        lambda found: found["tasks"][0].pop("validation"),
    ],
)
def test_what_was_changed_is_found(paid, spoil):
    found = copy.deepcopy(paid[0])
    spoil(found)
    with pytest.raises((InputError, BudgetError)):
        verify(found)
