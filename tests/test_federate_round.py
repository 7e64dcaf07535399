"""The protocol in memory: sums, dropouts, and what a coordinator or a stranger may try."""

from __future__ import annotations

import numpy as np
import pytest
from federation import (
    COORDINATOR_SECRET,
    ENTRIES,
    SECRETS,
    Play,
    make_terms,
    some_tables,
    tape,
)

from thresher.errors import InputError
from thresher.federate import messages, primitives
from thresher.federate.coordinator_round import STEPS, CoordinatorRound
from thresher.federate.messages import Kind
from thresher.federate.primitives import ProtocolError
from thresher.federate.silo_round import SiloRound

TERMS = make_terms()
TABLES = some_tables()


def sign_as_coordinator(play, kind, body, transcript):
    return messages.write(
        kind, body, round=play.coordinator.round, transcript=transcript,
        sender=messages.COORDINATOR, secret=COORDINATOR_SECRET,
    )  # fmt: skip


@pytest.mark.parametrize(("n", "k", "t"), [(2, 2, 1), (3, 3, 1), (5, 4, 1), (8, 6, 3)])
def test_the_sum_is_the_plain_sum(n, k, t):
    tables = some_tables(n)
    play = Play(make_terms(n, k, t), tables).run()
    np.testing.assert_array_equal(play.coordinator.result, tables.sum(axis=0))
    for silo in play.silos:
        np.testing.assert_array_equal(silo.result, tables.sum(axis=0))


@pytest.mark.parametrize("table", [[-(2**62), 2**62 - 1, -1, 0, 1, 5, -5]])
def test_sums_of_either_sign_survive_the_modulus(table):
    tables = np.array([table] + [[0, 0, -1, -1, 2**60, 0, 0]] * 4)
    play = Play(TERMS, tables).run()
    np.testing.assert_array_equal(play.coordinator.result, tables.sum(axis=0))


@pytest.mark.parametrize("stage", range(6))
def test_one_silo_may_die_at_every_step(stage):
    play = Play(TERMS, TABLES)
    while play.stage < stage:
        play.step()
    play.step(lost=[2])
    play.run()
    survivors = [0, 1, 2, 3, 4] if stage >= 3 else [0, 1, 3, 4]  # its upload was there
    assert play.coordinator.survivors == survivors
    np.testing.assert_array_equal(play.coordinator.result, TABLES[survivors].sum(axis=0))


@pytest.mark.parametrize("stage", range(5))
def test_with_fewer_than_k_nothing_is_opened(stage):
    play = Play(TERMS, TABLES)
    while play.stage < stage:
        play.step()
    play.step(lost=[0, 1])
    assert "3 of 5 silos" in play.coordinator.failure
    assert play.coordinator.result is None
    with pytest.raises(ProtocolError, match="nobody has learned a sum"):
        play.coordinator.outgoing(play.stage, 3)
    dead = play.silos[0]
    answer = dead.receive(play.coordinator.outgoing(stage, 0)) if stage else dead.first
    with pytest.raises(ProtocolError, match="is over"):
        play.coordinator.receive(answer)
    play.coordinator.close()
    assert play.coordinator.step == stage


def test_silos_may_die_at_different_steps():
    tables = some_tables(10)
    play = Play(make_terms(10, 6, 1), tables)
    for lost in range(4):
        play.step(lost=[lost])
    play.run()
    np.testing.assert_array_equal(play.coordinator.result, tables[3:].sum(axis=0))


def test_a_late_upload_stays_masked():
    play = Play(TERMS, TABLES).run(until=1)
    late_upload = play.step(late=[2])[2]
    with pytest.raises(ProtocolError, match="late"):
        play.coordinator.receive(late_upload)
    play.run()
    assert play.coordinator.survivors == [0, 1, 3, 4]
    np.testing.assert_array_equal(play.coordinator.result, TABLES[[0, 1, 3, 4]].sum(axis=0))
    with pytest.raises(ProtocolError, match="the round went on without it"):
        play.coordinator.outgoing(play.stage - 1, 2)
    # with all pairwise masks of silo 2 known, its upload is still table + self mask
    silo = Play(TERMS, TABLES, seed="play")  # the same entropy: the same masks
    silo.run(until=2)
    body = np.frombuffer(late_upload[messages.HEAD.size : -64], "<u8")
    mask = _self_mask(silo, 2)
    pairs = _pair_masks(silo, 2)
    np.testing.assert_array_equal((body - pairs - mask).view(np.int64), TABLES[2])
    assert ((body - pairs).view(np.int64) != TABLES[2]).all()


def _self_mask(play, i):
    from thresher.federate.pair_masks import self_mask

    seed = _seeds(i)[2]
    salt = play.silos[i]._salt
    return self_mask(seed, i, ENTRIES, salt=salt, stream=primitives.stream)


def _pair_masks(play, i):
    from thresher.federate.pair_masks import pair_masks

    others = [(j, play.silos[i]._keys[j][0]) for j in range(5) if j != i]
    return pair_masks(_seeds(i)[0], i, others, ENTRIES, salt=play.silos[i]._salt)


def _seeds(i):
    entropy = tape(("play", i))
    return [entropy(32) for _ in range(3)]


def test_a_coordinator_that_shows_two_lists_opens_neither():
    play = Play(TERMS, TABLES).run(until=2)
    transcript = play.coordinator._transcript
    first = play.coordinator.outgoing(3, 0)
    other = sign_as_coordinator(
        play, Kind.SURVIVORS, messages.write_list([0, 1, 2, 3]),
        messages.next_transcript(play.silos[0]._salt, "senders", messages.write_list(range(5))),
    )  # fmt: skip
    signed = {i: play.silos[i].receive(first if i in {0, 1, 4} else other) for i in range(5)}
    assert messages.HEAD.unpack_from(signed[0])[4] == transcript
    mixed = sign_as_coordinator(play, Kind.AGREEMENTS, b"".join(signed.values()), transcript)
    with pytest.raises(ProtocolError, match="signed a different list"):
        play.silos[0].receive(mixed)
    few = sign_as_coordinator(play, Kind.AGREEMENTS, signed[0] + signed[1] + signed[4], transcript)
    with pytest.raises(ProtocolError, match="3 survivors signed the list, but 4 are needed"):
        play.silos[1].receive(few)
    repeated = sign_as_coordinator(play, Kind.AGREEMENTS, 4 * signed[4], transcript)
    with pytest.raises(ProtocolError, match="1 survivors signed"):
        play.silos[4].receive(repeated)


def test_a_silo_signs_one_list_and_leaves_when_shown_another():
    play = Play(TERMS, TABLES).run(until=2)
    before = play.silos[0]._transcript
    play.silos[0].receive(play.coordinator.outgoing(3, 0))
    other = sign_as_coordinator(play, Kind.SURVIVORS, messages.write_list([0, 1, 2, 3]), before)
    with pytest.raises(ProtocolError, match="two messages of kind SURVIVORS"):
        play.silos[0].receive(other)
    with pytest.raises(ProtocolError, match="has left the round"):
        play.silos[0].receive(play.coordinator.outgoing(3, 0))
    assert not play.silos[0]._held
    assert play.silos[0]._self_seed == b""


def test_no_silo_ever_sends_both_shares_of_one_silo():
    play = Play(TERMS, TABLES).run(until=1)
    play.step(lost=[2])
    play.step()
    held = {i: dict(play.silos[i]._held) for i in play.alive}
    for i, sent in play.step().items():
        body = sent[messages.HEAD.size : -64]
        shares = messages.pieces(body, 33, 5)
        for j in range(5):
            own, pair = held[i][j]
            assert shares[j] == (pair if j == 2 else own)
            assert (own if j == 2 else pair) not in body
    asked = play.coordinator.outgoing(4, 0)
    first = play.silos[0].receive(asked)
    assert play.silos[0].receive(asked) == first  # again the same, never the other kind


@pytest.mark.parametrize(
    "listed",
    [[1, 2, 3, 4], [0, 1, 2], [0, 1, 2, 3, 4, 5], [0, 2, 1, 3], [0, 0, 1, 2, 3]],
    ids=["without me", "too few", "a stranger", "unsorted", "one twice"],
)
def test_a_silo_signs_no_list_that_is_not_one(listed):
    import struct

    play = Play(TERMS, TABLES).run(until=2)
    body = struct.pack(f">{len(listed) + 1}H", len(listed), *listed)
    message = sign_as_coordinator(play, Kind.SURVIVORS, body, play.silos[0]._transcript)
    with pytest.raises(ProtocolError):
        play.silos[0].receive(message)
    with pytest.raises(ProtocolError, match="left the round"):
        play.silos[0].receive(play.coordinator.outgoing(3, 0))


def roster_of(play, *, change):
    body = play.coordinator.outgoing(1, 0)[messages.HEAD.size : -64]
    raws = messages.pieces(body, messages.SIGNED_KEYS_BYTES, 5)
    return sign_as_coordinator(play, Kind.ROSTER, b"".join(change(raws)), play.coordinator.round)


def own_keys(play, number, secret):
    silo = Play(TERMS, TABLES, seed="another").silos[number]
    body = silo.first[messages.HEAD.size : -64]
    return messages.write(
        Kind.KEYS, body, round=play.coordinator.round, transcript=play.coordinator.round,
        sender=number, secret=secret,
    )  # fmt: skip


def test_a_changed_roster_is_refused():
    changes = {
        "another silo's keys, signed by the coordinator": lambda play: (
            lambda raws: [*raws[:2], own_keys(play, 2, COORDINATOR_SECRET), *raws[3:]]
        ),
        "my keys, exchanged": lambda play: lambda raws: [own_keys(play, 0, SECRETS[0]), *raws[1:]],
        "too few": lambda play: lambda raws: raws[:3],
        "one twice": lambda play: lambda raws: [raws[0], raws[0], *raws[2:]],
        "without me": lambda play: lambda raws: raws[1:],
        "cut off": lambda play: lambda raws: [*raws, b"x"],
    }
    for name, change in changes.items():
        play = Play(TERMS, TABLES).run(until=0)
        with pytest.raises(ProtocolError):
            play.silos[0].receive(roster_of(play, change=change(play)))
        assert play.silos[0]._failure, name


def test_two_rosters_end_in_shares_that_cannot_be_read():
    play = Play(TERMS, TABLES).run(until=0)
    smaller = roster_of(play, change=lambda raws: raws[:4])
    play.silos[0].receive(smaller)
    for i in (1, 2, 3, 4):
        play.silos[i].receive(play.coordinator.outgoing(1, i))
    answers = {i: play.silos[i]._answers[Kind.ROSTER][1] for i in range(5)}
    with pytest.raises(ProtocolError, match="a different history"):
        play.coordinator.receive(answers[0])
    parcels = [messages.pieces(answers[i][messages.HEAD.size : -64], 82, 4) for i in range(1, 5)]
    for_silo_0 = messages.write_list(range(4)) + b"".join(each[0] for each in parcels[:3])
    forged = sign_as_coordinator(play, Kind.PARCELS, for_silo_0, play.silos[0]._transcript)
    with pytest.raises(ProtocolError, match="changed, or belongs to another round"):
        play.silos[0].receive(forged)
    assert play.contributed == []


def test_a_changed_task_is_refused_before_anything_is_sent():
    other = make_terms(task=b"u" * 32)
    opening = CoordinatorRound(other, COORDINATOR_SECRET).opening
    with pytest.raises(ProtocolError, match="a task that this silo has not approved"):
        SiloRound(TERMS, SECRETS[0], opening, lambda _: TABLES[0])
    good = CoordinatorRound(TERMS, COORDINATOR_SECRET).opening
    with pytest.raises(ProtocolError, match="not signed"):
        SiloRound(TERMS, SECRETS[0], good[:-1] + bytes([good[-1] ^ 1]), lambda _: TABLES[0])
    with pytest.raises(InputError, match="does not belong to any silo"):
        SiloRound(TERMS, SECRETS[9], good, lambda _: TABLES[0])
    with pytest.raises(ProtocolError, match="not that of the task's coordinator"):
        CoordinatorRound(TERMS, SECRETS[0])


def test_a_tampered_bit_is_refused_by_either_side():
    play = Play(TERMS, TABLES).run(until=0)
    message, answer = play.coordinator.outgoing(1, 0), play.silos[1].first
    for at in range(0, len(answer), 3):
        for raw, receiver in ((message, play.silos[0]), (answer, play.coordinator)):
            with pytest.raises(ProtocolError):
                receiver.receive(raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :])
    assert play.silos[0].receive(message)  # nothing was lost by it
    np.testing.assert_array_equal(play.run().coordinator.result, TABLES.sum(axis=0))


@pytest.mark.parametrize("size", [0, 1, 137, 139, 10**6])
def test_messages_of_a_wrong_length_are_refused(size):
    play = Play(TERMS, TABLES)
    raw = (play.silos[0].first * 5000)[:size]
    for receiver in (play.coordinator, play.silos[1]):
        with pytest.raises(ProtocolError, match="bytes|length"):
            receiver.receive(raw)


def test_repeated_messages_change_nothing_and_others_are_refused():
    play, again = Play(TERMS, TABLES), Play(TERMS, TABLES, seed="again")
    sent = [play.step() for _ in range(2)]
    for answers in sent:
        for raw in answers.values():
            play.coordinator.receive(raw)
    with pytest.raises(ProtocolError, match="another round"):
        play.coordinator.receive(again.silos[0].first)  # replayed from another round
    with pytest.raises(ProtocolError, match="another round"):
        play.silos[0].receive(again.run(until=0).coordinator.outgoing(1, 0))
    forged = own_keys(play, 1, SECRETS[1])
    with pytest.raises(ProtocolError, match="two messages of kind KEYS"):
        play.coordinator.receive(forged)
    np.testing.assert_array_equal(play.run().coordinator.result, TABLES.sum(axis=0))
    assert sorted(play.contributed) == list(range(5))  # counted, and charged, once


def test_messages_out_of_order_are_refused_and_lose_nothing():
    whole = Play(TERMS, TABLES).run()
    play = Play(TERMS, TABLES).run(until=0)  # the same entropy: messages fit both
    for stage in (2, 3, 4, 5):
        with pytest.raises(ProtocolError, match="out of order"):
            play.silos[0].receive(whole.coordinator.outgoing(stage, 0))
    for sent in whole.sent[10:25]:
        with pytest.raises(ProtocolError, match="out of order"):
            play.coordinator.receive(sent)
    np.testing.assert_array_equal(play.run().coordinator.result, TABLES.sum(axis=0))


def test_a_message_in_anothers_name_is_refused():
    play = Play(TERMS, TABLES)
    body = play.silos[1].first[messages.HEAD.size : -64]
    about = {"round": play.coordinator.round, "transcript": play.coordinator.round}
    for sender, secret in ((1, SECRETS[0]), (1, COORDINATOR_SECRET), (7, SECRETS[7])):
        forged = messages.write(Kind.KEYS, body, sender=sender, secret=secret, **about)
        with pytest.raises(ProtocolError, match="not signed|cannot come"):
            play.coordinator.receive(forged)
    forged = messages.write(
        Kind.ROSTER, body, sender=messages.COORDINATOR, secret=SECRETS[1], **about
    )
    with pytest.raises(ProtocolError, match="not signed"):
        play.silos[0].receive(forged)


def test_wrong_shares_of_a_silo_show():
    play = Play(TERMS, TABLES).run(until=3)
    answers = play.answers()
    body = bytearray(answers[0][messages.HEAD.size : -64])
    body[40] ^= 1
    changed = messages.write(
        Kind.SEEDS, bytes(body), round=play.coordinator.round,
        transcript=play.silos[0]._transcript, sender=0, secret=SECRETS[0],
    )  # fmt: skip
    for raw in (changed, *(answers[i] for i in range(1, 5))):
        play.coordinator.receive(raw)
    assert "do not fit" in play.coordinator.failure or "one secret" in play.coordinator.failure
    assert play.coordinator.result is None


def test_a_failing_contribution_sends_nothing():
    play = Play(TERMS, TABLES).run(until=1)
    play.silos[0]._contribute = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        play.silos[0].receive(play.coordinator.outgoing(2, 0))
    with pytest.raises(ProtocolError, match="left the round"):
        play.silos[0].receive(play.coordinator.outgoing(2, 0))


@pytest.mark.parametrize(("n", "k", "t"), [(5, 3, 1), (4, 3, 2), (5, 6, 1), (5, 4, 0), (50, 26, 2)])
def test_unsafe_numbers_are_refused(n, k, t):
    with pytest.raises(InputError, match="fewest|colluding"):
        Play(make_terms(min(n, 12), k, t) if n < 50 else many(n, k, t), TABLES)


def many(n, k, t):
    from thresher.federate.round_terms import check_numbers

    return check_numbers(n, k, t)


def test_the_steps_are_those_of_the_page():
    assert [step.name for step in STEPS] == ["KEYS", "SHARES", "UPLOAD", "AGREEMENT", "SEEDS"]
