"""One silo in one round: a state machine without input or output.

It answers each message of the coordinator with one of its own. If the coordinator breaks the
protocol (changes the roster, shows two lists of survivors, asks for both seeds of a silo), the
round ends for this silo: it forgets its seeds and answers nothing more. Unsigned or foreign
messages are refused and change nothing, and a repeated message gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from thresher.array_types import Integers
from thresher.federate import messages, primitives
from thresher.federate.messages import Kind, Message
from thresher.federate.pair_masks import pair_masks, self_mask, to_words
from thresher.federate.primitives import Entropy, ProtocolError, Stream, digest
from thresher.federate.round_terms import Terms
from thresher.federate.secret_shares import SHARE_BYTES, read_share, split

PARCEL_BYTES = 2 * SHARE_BYTES + primitives.SEAL_BYTES
ORDER = (Kind.ROSTER, Kind.PARCELS, Kind.SURVIVORS, Kind.AGREEMENTS, Kind.RESULT)


class SiloRound:
    """A silo's side of a round.

    Parameters
    ----------
    terms
        The task, which the silo has approved.
    secret
        The silo's Ed25519 key.
    opening
        The coordinator's message that opens the round.
    contribute
        A function that is called once, with the name of the round, just before the upload. It
        charges the ledger, draws the noise share, counts, and returns the sum, one whole number for
        each entry.
    entropy, stream
        For tests: random bytes, and masks from keys.
    """

    def __init__(
        self, terms: Terms, secret: bytes, opening: bytes, contribute: Callable[[bytes], Any],
        *, entropy: Entropy = primitives.system_entropy, stream: Stream = primitives.stream,
    ) -> None:  # fmt: skip
        self.terms, self.number = terms, terms.number_of(primitives.public_signing_key(secret))
        self._secret, self._contribute = secret, contribute
        self._entropy, self._stream = entropy, stream
        opened = self._read(opening)
        nonce_fits = len(opened.body) == messages.NONCE_BYTES
        if opened.kind != Kind.ROUND or opened.transcript != terms.task or not nonce_fits:
            raise ProtocolError("the round belongs to a task that this silo has not approved")
        self.round = messages.round_id(terms.task, opened.body)
        if opened.round != self.round:
            raise ProtocolError("the name of the round does not follow from its task and nonce")
        self._mask_secret, self._seal_secret, self._self_seed = (
            entropy(primitives.KEY_BYTES) for _ in range(3)
        )
        self._transcript, self._waiting = self.round, 0
        self._answers: dict[Kind, tuple[bytes, bytes]] = {}
        self._failure = ""
        self.result: Integers | None = None
        self.survivors: list[int] = []
        self.first = self._write(Kind.KEYS, self._public_keys())

    def receive(self, raw: bytes) -> bytes:
        """The answer to a message of the coordinator; empty for the result."""
        message = self._read(raw)
        if message.round != self.round:
            raise ProtocolError("a message belongs to another round")
        if self._failure:
            raise ProtocolError(f"this silo has left the round: {self._failure}")
        if message.kind in self._answers:
            known, answer = self._answers[message.kind]
            if known != raw:
                self._leave(f"the coordinator sent two messages of kind {message.kind.name}")
            return answer
        if self._waiting == len(ORDER) or message.kind != ORDER[self._waiting]:
            raise ProtocolError(f"a message of kind {message.kind.name} is out of order")
        try:
            answer = self._handle(message)
        except Exception as refused:  # noqa: BLE001 - raised again, when the seeds are forgotten
            self._leave(str(refused), refused)
        self._answers[message.kind] = raw, answer
        self._waiting += 1
        return answer

    def _handle(self, message: Message) -> bytes:
        if message.transcript != self._transcript:
            raise ProtocolError(
                f"a message of kind {message.kind.name} follows a different history of this round"
            )
        handlers = (
            self._share, self._upload, self._agree, self._open, self._finish,
        )  # fmt: skip
        return handlers[self._waiting](message.body)

    def _share(self, body: bytes) -> bytes:
        """Check everybody's keys, and seal shares of both seeds for each silo."""
        self._keys = self._read_roster(body)
        self._transcript = messages.next_transcript(self.round, "keys", body)
        self._salt, others = self._transcript, [j for j in self._keys if j != self.number]
        holders, k = list(self._keys), self.terms.fewest
        selfs = split(self._self_seed, holders, k, self._entropy)
        pairs = split(self._mask_secret, holders, k, self._entropy)
        self._held = {self.number: (selfs[self.number], pairs[self.number])}
        return self._write(
            Kind.SHARES, b"".join(self._seal(j, selfs[j] + pairs[j]) for j in others)
        )

    def _upload(self, body: bytes) -> bytes:
        """Accept the shares of the others, then mask this silo's table and send it."""
        senders, parcels = messages.read_list(body)
        self._check_subset(senders, self._keys, "senders of shares")
        others = [j for j in senders if j != self.number]
        for j, parcel in zip(
            others, messages.pieces(parcels, PARCEL_BYTES, len(others)), strict=True
        ):
            self._held[j] = self._unseal(j, parcel)
        self._senders = senders
        self._transcript = messages.next_transcript(
            self._salt, "senders", messages.write_list(senders)
        )
        size, salt, stream = self.terms.entries, self._salt, self._stream
        masks = pair_masks(
            self._mask_secret, self.number, [(j, self._keys[j][0]) for j in others], size,
            salt=salt, stream=stream,
        )  # fmt: skip
        masks += self_mask(self._self_seed, self.number, size, salt=salt, stream=stream)
        words = to_words(self._contribute(self.round))  # charges the ledger, just before it leaves
        if len(words) != size:
            raise ProtocolError(f"the table has {len(words)} entries, but the task says {size}")
        masks += words
        return self._write(Kind.UPLOAD, masks.astype("<u8", copy=False).tobytes())

    def _agree(self, body: bytes) -> bytes:
        """Sign the one list of survivors."""
        survivors, rest = messages.read_list(body)
        self._check_subset(survivors, self._senders, "survivors")
        if rest:
            raise ProtocolError("a list of survivors has extra bytes at its end")
        self.survivors = survivors
        self._transcript = messages.next_transcript(self._transcript, "survivors", body)
        return self._write(Kind.AGREEMENT, b"")

    def _open(self, body: bytes) -> bytes:
        """Check that enough survivors signed the same list; only then send each silo's share."""
        signed = messages.pieces(body, messages.SMALLEST, max(1, len(body) // messages.SMALLEST))
        signers = set()
        for raw in signed:
            each = self._read(raw)
            same = (each.kind, each.round, each.transcript, each.body) == (
                Kind.AGREEMENT, self.round, self._transcript, b"",
            )  # fmt: skip
            if not same or each.sender not in self.survivors:
                raise ProtocolError("a survivor signed a different list")
            signers.add(each.sender)
        if len(signers) < self.terms.fewest:
            raise ProtocolError(
                f"{len(signers)} survivors signed the list, but {self.terms.fewest} are needed"
            )
        alive = set(self.survivors)
        opened = [self._held[j][0 if j in alive else 1] for j in self._senders]
        self._forget()
        return self._write(Kind.SEEDS, b"".join(opened))

    def _finish(self, body: bytes) -> bytes:
        self.result = messages.read_table(body, self.terms.entries)
        return b""

    def _read_roster(self, body: bytes) -> dict[int, tuple[bytes, bytes, bytes]]:
        """The signed keys of the silos that take part, by number."""
        count = len(body) // messages.SIGNED_KEYS_BYTES
        raws = messages.pieces(body, messages.SIGNED_KEYS_BYTES, max(1, count))
        found: dict[int, tuple[bytes, bytes, bytes]] = {}
        for raw in raws:
            each = self._read(raw)
            if (each.kind, each.round, each.transcript) != (Kind.KEYS, self.round, self.round):
                raise ProtocolError("the roster holds keys of another round")
            if found and each.sender <= max(found):
                raise ProtocolError("the roster is not in rising order")
            mask, seal, commitment = messages.pieces(each.body, primitives.KEY_BYTES, 3)
            found[each.sender] = mask, seal, commitment
        self._check_subset(found, range(self.terms.silos), "silos with keys")
        if self.first not in raws:
            raise ProtocolError("the roster does not hold the keys that this silo sent")
        return found

    def _check_subset(self, some: Any, known: Any, what: str) -> None:
        if not set(some) <= set(known):
            raise ProtocolError(f"the {what} include some that were not there before")
        if self.number not in some:
            raise ProtocolError(f"the {what} do not include this silo")
        if len(some) < self.terms.fewest:
            raise ProtocolError(
                f"there are {len(some)} {what}, but at least {self.terms.fewest} are needed"
            )

    def _public_keys(self) -> bytes:
        public = (primitives.public_exchange_key(s) for s in (self._mask_secret, self._seal_secret))
        return b"".join([*public, commitment(self.round, self.number, self._self_seed)])

    def _seal(self, other: int, content: bytes) -> bytes:
        return primitives.seal(*self._seal_key(other, (self.number, other), content))

    def _unseal(self, other: int, parcel: bytes) -> tuple[bytes, bytes]:
        content = primitives.unseal(*self._seal_key(other, (other, self.number), parcel))
        own, pair = content[:SHARE_BYTES], content[SHARE_BYTES:]
        read_share(own), read_share(pair)
        return own, pair

    def _seal_key(
        self, other: int, way: tuple[int, int], content: bytes
    ) -> tuple[bytes, bytes, bytes]:
        """The key from one silo to another, the content, and the data that the seal is bound to."""
        about = b"".join(each.to_bytes(2, "big") for each in way)
        shared = primitives.agree(self._seal_secret, self._keys[other][1])
        key = primitives.derive(shared, "share seal", salt=self._salt, about=about)
        return key, content, self._salt + about

    def _read(self, raw: bytes) -> Message:
        terms = self.terms
        return messages.read(
            raw, keys=terms.keys, coordinator=terms.coordinator, most=terms.longest
        )

    def _write(self, kind: Kind, body: bytes) -> bytes:
        return messages.write(
            kind, body, round=self.round, transcript=self._transcript, sender=self.number,
            secret=self._secret,
        )  # fmt: skip

    def _leave(self, why: str, cause: Exception | None = None) -> NoReturn:
        """End the round for this silo: it forgets its secrets, and no share leaves any more."""
        self._failure = why
        self._forget()
        self._answers.clear()
        if cause is not None and not isinstance(cause, ProtocolError):
            raise cause
        raise ProtocolError(why) from None

    def _forget(self) -> None:
        self._mask_secret = self._seal_secret = self._self_seed = b""
        self._held = {}


def commitment(round: bytes, silo: int, seed: bytes) -> bytes:  # noqa: A002
    """A digest of the self seed, which a silo publishes so that a wrong share is noticed."""
    return digest("self seed", round, silo.to_bytes(2, "big"), seed)
