"""The coordinator of one round: a state machine without input or output.

In each step, it collects one message from each silo, and has one for each silo to fetch. A step
ends when all expected silos have answered, or when it is closed (at a deadline). With fewer than k
answers, the round has failed, and nobody has learned a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thresher.array_types import Integers
from thresher.federate import messages, primitives
from thresher.federate.messages import COORDINATOR, Kind, Message
from thresher.federate.pair_masks import pair_masks, self_mask, to_numbers
from thresher.federate.primitives import Entropy, ProtocolError, Stream
from thresher.federate.round_terms import Terms
from thresher.federate.secret_shares import SHARE_BYTES, join, read_share
from thresher.federate.silo_round import PARCEL_BYTES, commitment

STEPS = (Kind.KEYS, Kind.SHARES, Kind.UPLOAD, Kind.AGREEMENT, Kind.SEEDS)
DONE = len(STEPS)


class CoordinatorRound:
    """The coordinator's side of a round; `result` is the sum of the survivors' tables.

    Parameters
    ----------
    terms
        The task.
    secret
        The coordinator's Ed25519 key.
    entropy, stream
        For tests: random bytes, and masks from keys.
    """

    def __init__(
        self, terms: Terms, secret: bytes, *,
        entropy: Entropy = primitives.system_entropy, stream: Stream = primitives.stream,
    ) -> None:  # fmt: skip
        if primitives.public_signing_key(secret) != terms.coordinator:
            raise ProtocolError("the key is not that of the task's coordinator")
        self.terms, self._secret, self._stream = terms, secret, stream
        nonce = entropy(messages.NONCE_BYTES)
        self.round = messages.round_id(terms.task, nonce)
        self.step, self.failure = 0, ""
        self.expected = list(range(terms.silos))
        self.result: Integers | None = None
        self.survivors: list[int] = []
        self._transcript = self.round
        self._seen: dict[tuple[Kind, int], bytes] = {}
        self._bodies: dict[int, bytes] = {}
        self._sum = np.zeros(terms.entries, np.uint64)
        self._out: list[dict[int, bytes]] = []
        opening = self._write(Kind.ROUND, nonce, transcript=terms.task)
        self._out.append(dict.fromkeys(self.expected, opening))

    @property
    def opening(self) -> bytes:
        """The message that opens the round, the same for everyone."""
        return self._out[0][0]

    @property
    def answered(self) -> list[int]:
        """The silos that have answered in this step."""
        return sorted(self._bodies)

    def receive(self, raw: bytes) -> None:
        """Accept a message of a silo; a repeated one changes nothing."""
        message = messages.read(
            raw, keys=self.terms.keys, coordinator=self.terms.coordinator, most=self.terms.longest
        )
        if message.round != self.round:
            raise ProtocolError("a message belongs to another round")
        sender, seen = message.sender, (message.kind, message.sender)
        mark = primitives.digest("seen", raw)
        if seen in self._seen:
            if self._seen[seen] != mark:
                raise ProtocolError(f"silo {sender} sent two messages of kind {message.kind.name}")
            return
        self._check(message)
        self._take(message)
        self._seen[seen] = mark
        if len(self._bodies) == len(self.expected):
            self._next()

    def close(self) -> None:
        """End the step: continue with the silos that have answered, or fail if they are too few."""
        if not self.failure and self.step < DONE:
            self._next()

    def outgoing(self, stage: int, silo: int) -> bytes | None:
        """The message of a stage for a silo, None if it is too early for it."""
        if stage >= len(self._out):
            if self.failure:
                raise ProtocolError(f"the round failed: {self.failure}")
            if silo not in self.expected:
                raise ProtocolError("this silo was late, and the round went on without it")
            return None
        if silo not in self._out[stage]:
            raise ProtocolError("this silo was late, and the round went on without it")
        return self._out[stage][silo]

    def _check(self, message: Message) -> None:
        if self.failure or self.step == DONE:
            raise ProtocolError(f"the round is over{self.failure and f': {self.failure}'}")
        if message.kind != STEPS[self.step] or message.sender not in self.expected:
            raise ProtocolError(f"a message of kind {message.kind.name} is out of order or late")
        if message.transcript != self._transcript:
            raise ProtocolError(
                f"a message of kind {message.kind.name} follows a different history of this round"
            )
        if len(message.body) != self._length():
            raise ProtocolError(
                f"a body has {len(message.body)} bytes, but {self._length()} were expected"
            )

    def _length(self) -> int:
        """How many bytes a body has in this step."""
        others = len(self.expected) - 1
        return (
            messages.KEYS_BYTES, others * PARCEL_BYTES, 8 * self.terms.entries, 0,
            (SHARE_BYTES * len(self._senders)) if self.step == 4 else 0,
        )[self.step]  # fmt: skip

    def _take(self, message: Message) -> None:
        body = message.body
        if message.kind == Kind.UPLOAD:
            self._sum += np.frombuffer(body, "<u8")
            body = b""
        elif message.kind == Kind.SEEDS:
            for share in messages.pieces(body, SHARE_BYTES, len(self._senders)):
                read_share(share)
        elif message.kind in {Kind.KEYS, Kind.AGREEMENT}:
            body = message.raw
        self._bodies[message.sender] = body

    def _next(self) -> None:
        if len(self._bodies) < self.terms.fewest:
            self.failure = (
                f"{len(self._bodies)} of {self.terms.silos} silos were left "
                f"({STEPS[self.step].name.lower()}), but {self.terms.fewest} are needed; "
                "nobody has learned a sum"
            )
            return
        bodies, self._bodies = dict(sorted(self._bodies.items())), {}
        ends = (
            self._show_keys, self._pass_shares, self._show_list, self._show_signatures,
            self._unmask,
        )  # fmt: skip
        try:
            self._out.append(ends[self.step](bodies))
        except ProtocolError as refused:
            self.failure = str(refused)
            return
        self.expected = list(bodies)
        self.step += 1

    def _show_keys(self, bodies: dict[int, bytes]) -> dict[int, bytes]:
        self._keys = {
            silo: messages.pieces(
                raw[messages.HEAD.size : -primitives.SIGNATURE_BYTES], primitives.KEY_BYTES, 3
            )
            for silo, raw in bodies.items()
        }
        roster = b"".join(bodies.values())
        out = self._to_all(bodies, Kind.ROSTER, roster)
        self._salt = self._transcript = messages.next_transcript(self.round, "keys", roster)
        return out

    def _pass_shares(self, bodies: dict[int, bytes]) -> dict[int, bytes]:
        self._senders = list(bodies)
        listed = messages.write_list(bodies)
        parcels: dict[int, list[bytes]] = {silo: [] for silo in bodies}
        for silo, body in bodies.items():
            others = [other for other in self._keys if other != silo]
            cut = messages.pieces(body, PARCEL_BYTES, len(others))
            for other, parcel in zip(others, cut, strict=True):
                if other in parcels:
                    parcels[other].append(parcel)
        out = {
            silo: self._write(Kind.PARCELS, listed + b"".join(some))
            for silo, some in parcels.items()
        }
        self._transcript = messages.next_transcript(self._salt, "senders", listed)
        return out

    def _show_list(self, bodies: dict[int, bytes]) -> dict[int, bytes]:
        self.survivors, listed = list(bodies), messages.write_list(bodies)
        out = self._to_all(bodies, Kind.SURVIVORS, listed)
        self._transcript = messages.next_transcript(self._transcript, "survivors", listed)
        return out

    def _show_signatures(self, bodies: dict[int, bytes]) -> dict[int, bytes]:
        return self._to_all(bodies, Kind.AGREEMENTS, b"".join(bodies.values()))

    def _unmask(self, bodies: dict[int, bytes]) -> dict[int, bytes]:
        """Recover one seed of each silo, and remove the masks from the sum."""
        parts = {
            silo: messages.pieces(body, SHARE_BYTES, len(self._senders))
            for silo, body in bodies.items()
        }
        alive, size = set(self.survivors), self.terms.entries
        for place, silo in enumerate(self._senders):
            seed = join({who: each[place] for who, each in parts.items()}, self.terms.fewest)
            if silo in alive:
                if commitment(self.round, silo, seed) != self._keys[silo][2]:
                    raise ProtocolError(
                        f"the shares of silo {silo}'s self seed do not fit together"
                    )
                self._sum -= self_mask(seed, silo, size, salt=self._salt, stream=self._stream)
            else:
                if primitives.public_exchange_key(seed) != self._keys[silo][0]:
                    raise ProtocolError(
                        f"the shares of silo {silo}'s pair seed do not fit together"
                    )
                others = [(each, self._keys[each][0]) for each in self.survivors]
                self._sum += pair_masks(
                    seed, silo, others, size, salt=self._salt, stream=self._stream
                )
        self.result = to_numbers(self._sum)
        return self._to_all(self.survivors, Kind.RESULT, messages.write_table(self.result))

    def _to_all(
        self, silos: Sequence[int] | dict[int, bytes], kind: Kind, body: bytes
    ) -> dict[int, bytes]:
        return dict.fromkeys(silos, self._write(kind, body))

    def _write(self, kind: Kind, body: bytes, transcript: bytes | None = None) -> bytes:
        return messages.write(
            kind, body, round=self.round, transcript=transcript or self._transcript,
            sender=COORDINATOR, secret=self._secret,
        )  # fmt: skip
