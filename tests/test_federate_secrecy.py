"""What an observer of the protocol can learn: keys, shares, masks, and the simulator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from federation import ENTRIES, SECRETS, Play, make_terms, some_tables, tape
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from thresher.federate import messages, primitives, secret_shares
from thresher.federate.messages import Kind
from thresher.federate.pair_masks import pair_mask, self_mask
from thresher.federate.primitives import ProtocolError
from thresher.federate.silo_round import PARCEL_BYTES, SiloRound

FALSE_ALARM = 1e-6


def test_keys_for_different_purposes_rounds_and_silos_differ():
    cases = itertools.product(
        ("self mask", "pair mask", "share seal"), (b"r1", b"r2"), (b"1", b"2")
    )
    keys = {
        primitives.derive(b"s" * 32, label, salt=salt, about=about) for label, salt, about in cases
    }
    assert len(keys) == 12
    assert primitives.derive(b"s" * 32, "a", salt=b"", about=b"bc") != primitives.derive(
        b"s" * 32, "ab", salt=b"", about=b"c"
    )


def test_digests_tell_parts_apart():
    assert primitives.digest("a", b"bc", b"d") != primitives.digest("a", b"b", b"cd")
    assert primitives.digest("a", b"b") != primitives.digest("ab", b"")
    assert primitives.digest("a", b"b") != primitives.digest("a", b"b", b"")


def test_no_key_is_used_for_two_streams_or_two_seals(monkeypatch):
    streams, seals = [], []

    def stream(key, size):
        streams.append(key)
        return primitives.stream(key, size)

    seal = primitives.seal

    def sealing(key, content, about):
        seals.append(key)
        return seal(key, content, about)

    monkeypatch.setattr(primitives, "seal", sealing)
    for seed in ("one", "two"):
        Play(make_terms(), some_tables(), seed=seed, stream=stream).run()
    used = {key: streams.count(key) for key in streams}
    pairs = [key for key, times in used.items() if times == 2]
    assert len(used) == 2 * (10 + 5)  # pairs and selves, in each round keys of its own
    assert len(pairs) == 2 * (10 + 5)  # by both ends of a pair; by a silo and the coordinator
    assert len(seals) == len(set(seals)) == 2 * 5 * 4


def test_rounds_never_share_a_key():
    coordinator = Play(make_terms(), some_tables()).coordinator
    first = [
        SiloRound(make_terms(), SECRETS[0], coordinator.opening, lambda _: None).first
        for _ in range(3)
    ]
    bodies = [each[messages.HEAD.size : -64] for each in first]
    assert len({body[at : at + 32] for body in bodies for at in (0, 32, 64)}) == 9


def test_a_key_that_gives_the_secret_away_is_refused():
    for public in (bytes(32), b"\1" + bytes(31)):  # points of small order
        with pytest.raises(ProtocolError, match="same secret"):
            primitives.agree(SECRETS[0], public)


def test_a_sealed_share_is_for_one_silo_of_one_round():
    play = Play(make_terms(), some_tables()).run(until=1)
    sent = play.silos[0]._answers[Kind.ROSTER][1][messages.HEAD.size : -64]
    parcels = messages.pieces(sent, PARCEL_BYTES, 4)
    for other, parcel in enumerate(parcels, start=1):
        assert len(b"".join(play.silos[other]._unseal(0, parcel))) == 2 * secret_shares.SHARE_BYTES
        for wrong in {1, 2, 3, 4} - {other}:
            with pytest.raises(ProtocolError, match="sealed share"):
                play.silos[wrong]._unseal(0, parcel)
        with pytest.raises(ProtocolError, match="sealed share"):
            play.silos[other]._unseal(0, parcel[:-1] + bytes([parcel[-1] ^ 1]))
    again = Play(make_terms(), some_tables(), seed="again").run(until=1)
    with pytest.raises(ProtocolError, match="sealed share"):
        again.silos[1]._unseal(0, parcels[0])


def test_the_field_has_prime_order():
    """Miller and Rabin: a composite number passes with a chance below 4^-58."""
    n, odd, twos = secret_shares.PRIME, secret_shares.PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in range(2, 60):
        x = pow(base, odd, n)
        assert x == 1 or n - 1 in [pow(x, 2**i, n) for i in range(twos)]


@settings(deadline=None, max_examples=30)
@given(secret=st.binary(min_size=32, max_size=32), data=st.data())
def test_any_threshold_of_shares_gives_the_secret(secret, data):
    holders = data.draw(st.lists(st.integers(0, 999), min_size=1, max_size=8, unique=True))
    threshold = data.draw(st.integers(1, len(holders)))
    parts = secret_shares.split(secret, holders, threshold)
    some = data.draw(st.permutations(holders))[:threshold]
    assert secret_shares.join({holder: parts[holder] for holder in some}, threshold) == secret


def test_fewer_shares_fit_every_secret_equally():
    """Given k - 1 shares there is, for each secret, exactly one k-th share: so they tell nothing."""
    parts = secret_shares.split(SECRETS[0], range(5), 3, tape("split"))
    known = {holder: parts[holder] for holder in (1, 4)}
    weights, found = secret_shares.lagrange_weights([1, 2, 4]), set()
    for secret in SECRETS[1:]:
        rest = sum(weights[h] * secret_shares.read_share(known[h]) for h in known)
        third = (int.from_bytes(secret, "big") - rest) * pow(weights[2], -1, secret_shares.PRIME)
        third %= secret_shares.PRIME
        assert secret_shares.join(known | {2: third.to_bytes(33, "big")}, 3) == secret
        found.add(third)
    assert len(found) == len(SECRETS) - 1
    with pytest.raises(ProtocolError, match="only 2 shares arrived, but 3 are needed"):
        secret_shares.join(known, 3)


def test_coefficients_are_fresh_and_as_many_as_the_threshold_asks_for():
    drawn = []

    def entropy(size):
        drawn.append(size)
        return primitives.system_entropy(size)

    first, second = (secret_shares.split(SECRETS[0], range(5), 4, entropy) for _ in range(2))
    assert drawn == [48] * 6
    assert all(first[holder] != second[holder] for holder in first)


@pytest.mark.parametrize(
    "share", [secret_shares.PRIME.to_bytes(33, "big"), b"\xff" * 33, bytes(32), bytes(34), b""]
)
def test_only_one_encoding_of_a_share_is_read(share):
    with pytest.raises(ProtocolError, match="element of the field"):
        secret_shares.read_share(share)


def test_shares_of_no_secret_are_refused():
    large = (2**256 + 5).to_bytes(33, "big")  # an element of the field, but not 32 bytes
    with pytest.raises(ProtocolError, match="not parts of one secret"):
        secret_shares.join({0: large}, 1)


def chi_square(raw):
    counts = np.bincount(np.frombuffer(raw, np.uint8), minlength=256)
    expected = len(raw) / 256
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("value", [0, 2**40], ids=["nothing", "large counts"])
def test_uploads_are_uniform_whatever_was_counted(value):
    """Bytes of uploads without noise: chi-square with 255 degrees, false alarms 1e-6 each."""
    entries = 20_000
    tables = np.full((3, entries), value)
    play = Play(make_terms(3, 3, 1, entries), tables).run(until=1)
    uploads = [raw[messages.HEAD.size : -64] for raw in play.step().values()]
    words = [np.frombuffer(raw, "<u8") for raw in uploads]
    for raw in (*uploads, (words[0] + words[1]).tobytes(), (words[0] - words[2]).tobytes()):
        assert chi_square(raw) < chi2.isf(FALSE_ALARM, 255)
    total = sum(words).tobytes()  # still masked by the selves
    assert chi_square(total) < chi2.isf(FALSE_ALARM, 255)
    assert chi_square(tables.tobytes()) > chi2.isf(FALSE_ALARM, 255)  # the test can fail


# The simulator: streams are ideal pads here, one a key, as ChaCha20 is assumed to be.


def pad(key, size):
    random = np.random.Generator(np.random.PCG64(int.from_bytes(key, "big")))
    return random.integers(0, 2**64, size, np.uint64)


def keys_of(seed, salt, i, j=None):
    """The key of a self mask, or of a pair mask, which only the simulator's author knows."""
    found = []
    secrets = [tape((seed, i)) for i in range(5)]
    drawn = [[each(32) for _ in range(3)] for each in secrets]

    def note(key, size):
        found.append(key)
        return np.zeros(size, np.uint64)

    if j is None:
        self_mask(drawn[i][2], i, 1, salt=salt, stream=note)
    else:
        public = primitives.public_exchange_key(drawn[j][0])
        pair_mask(drawn[i][0], public, (i, j), 1, salt=salt, stream=note)
    return found[0]


def view(tables, stream, late):
    """All that the coordinator and silo 4 see: every message, and the inside of silo 4."""
    play = Play(make_terms(), tables, seed="view", stream=stream)
    play.step(), play.step(), play.step(late=late)
    inside = dict(play.silos[4]._held)
    play.run()
    out = [sorted(stage.items()) for stage in play.coordinator._out]
    return (play.sent, out, inside), play


@pytest.mark.parametrize("late", [[], [2]], ids=["all in time", "one upload late"])
def test_the_view_of_coordinator_and_silo_can_be_made_from_the_noisy_sum_alone(late):
    """Real and simulated views are equal, byte for byte, under pads that are equally likely.

    The simulator gives the whole noisy sum of the honest survivors to one of them and zeros to
    all others. The pads that honest silos share with each other are moved by constants, and so is
    the self pad of a late silo: a bijection of uniform pads, none of which is ever opened. So
    both views have one distribution, and nothing but the sum goes into it.
    """
    real_tables = some_tables(seed=5)
    honest = [i for i in range(4) if i not in late]
    real, play = view(real_tables, pad, late)
    noisy_sum = play.coordinator.result - real_tables[4]  # the simulator's only input
    simulated_tables = np.zeros_like(real_tables)
    simulated_tables[honest[0]], simulated_tables[4] = noisy_sum, real_tables[4]
    moved, shift, salt = (real_tables - simulated_tables).view(np.uint64), {}, play.silos[0]._salt
    total = np.zeros(ENTRIES, np.uint64)
    for i, j in itertools.pairwise(honest):
        total = total + moved[i]
        shift[keys_of("view", salt, i, j)] = total
    for i in late:
        shift[keys_of("view", salt, i)] = moved[i]

    def moved_pad(key, size):
        return pad(key, size) + shift.get(key, np.zeros(size, np.uint64))

    simulated, _ = view(simulated_tables, moved_pad, late)
    assert simulated == real
    unmoved, _ = view(simulated_tables, pad, late)
    assert unmoved != real  # the comparison can fail
