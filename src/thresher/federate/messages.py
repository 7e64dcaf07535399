"""Messages: one canonical encoding, signed, of an exact length, bound to a round and its history.

A message is a head of fixed size, a body and an Ed25519 signature of both. The head has the
version, kind, round, transcript so far (a hash of everything agreed in the round, as the sender saw
it), sender, and length of the body. Each message has only one encoding, so equal messages are equal
bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np

from thresher.array_types import Integers
from thresher.federate.primitives import (
    KEY_BYTES,
    SIGNATURE_BYTES,
    ProtocolError,
    digest,
    is_signed,
    sign,
)

MAGIC, VERSION = b"THRF", 1
HEAD = struct.Struct(">4sBB32s32sHI")
COORDINATOR = 0xFFFF  # as a sender
NONCE_BYTES = 16
SMALLEST = HEAD.size + SIGNATURE_BYTES
WIDTHS = (2, 4, 8)  # bytes of a number of the noisy sum


class Kind(IntEnum):
    """The kind of a message; even kinds come from the coordinator, odd ones from a silo."""

    ROUND = 0
    KEYS = 1
    ROSTER = 2
    SHARES = 3
    PARCELS = 4
    UPLOAD = 5
    SURVIVORS = 6
    AGREEMENT = 7
    AGREEMENTS = 8
    SEEDS = 9
    RESULT = 10


@dataclass(frozen=True)
class Message:
    """A message whose signature was checked."""

    kind: Kind
    round: bytes
    transcript: bytes
    sender: int
    body: bytes
    raw: bytes


def write(
    kind: Kind, body: bytes, *, round: bytes, transcript: bytes, sender: int, secret: bytes,  # noqa: A002
) -> bytes:  # fmt: skip
    """A signed message."""
    head = HEAD.pack(MAGIC, VERSION, kind, round, transcript, sender, len(body))
    return head + body + sign(secret, head + body)


def read(raw: bytes, *, keys: Sequence[bytes], coordinator: bytes, most: int) -> Message:
    """Read a message of at most `most` bytes; raise unless a party of the task signed it."""
    if not SMALLEST <= len(raw) <= most:
        raise ProtocolError(f"a message has {len(raw)} bytes, but at most {most} are allowed")
    magic, version, number, round_, transcript, sender, length = HEAD.unpack_from(raw)
    if magic != MAGIC or version != VERSION:
        raise ProtocolError(f"a message does not use version {VERSION} of this protocol")
    if number not in set(Kind) or len(raw) != SMALLEST + length:
        raise ProtocolError("a message has an unknown kind, or not the length that it states")
    kind = Kind(number)
    if (sender == COORDINATOR) != (kind % 2 == 0) or (
        sender != COORDINATOR and sender >= len(keys)
    ):
        raise ProtocolError(f"a message of kind {kind.name} cannot come from sender {sender}")
    public = coordinator if sender == COORDINATOR else keys[sender]
    content, signature = raw[:-SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:]
    if not is_signed(public, signature, content):
        raise ProtocolError(f"a message of kind {kind.name} was not signed by its sender")
    return Message(kind, round_, transcript, sender, content[HEAD.size :], raw)


def round_id(task: bytes, nonce: bytes) -> bytes:
    """The name of a round, from its task and a nonce that the coordinator draws for each try."""
    return digest("round", task, nonce)


def next_transcript(transcript: bytes, label: str, *parts: bytes) -> bytes:
    """The transcript after one more thing was agreed."""
    return digest(f"transcript {label}", transcript, *parts)


def write_list(silos: Iterable[int]) -> bytes:
    """A list of silo numbers, in rising order, as bytes."""
    ordered = sorted(silos)
    return struct.pack(f">{len(ordered) + 1}H", len(ordered), *ordered)


def read_list(body: bytes) -> tuple[list[int], bytes]:
    """The silos that `write_list` wrote, and the bytes after them."""
    if len(body) < 2:
        raise ProtocolError("a list of silos is cut off")
    (count,) = struct.unpack_from(">H", body)
    end = 2 * (count + 1)
    if len(body) < end:
        raise ProtocolError("a list of silos is cut off")
    silos = list(struct.unpack_from(f">{count}H", body, 2))
    if any(later <= earlier for earlier, later in pairwise(silos)):
        raise ProtocolError("a list of silos is not in rising order")
    return silos, body[end:]


def pieces(body: bytes, size: int, count: int) -> list[bytes]:
    """The body cut into `count` pieces of one size; raise unless its length fits."""
    if len(body) != size * count:
        raise ProtocolError(f"a body has {len(body)} bytes, but {size * count} were expected")
    return [body[at : at + size] for at in range(0, len(body), size)]


def write_table(table: Integers) -> bytes:
    """Whole numbers as bytes, all in the smallest width that fits them.

    Examples
    --------
    >>> read_table(write_table(np.array([3, -70000])), 2).tolist()
    [3, -70000]
    """
    largest = max(int(table.max(initial=0)), -int(table.min(initial=0)) - 1)
    width = next(width for width in WIDTHS if largest < 1 << (8 * width - 1))
    return bytes([width]) + table.astype(f"<i{width}").tobytes()


def read_table(body: bytes, entries: int) -> Integers:
    """The whole numbers that `write_table` wrote."""
    width = body[0] if body else 0
    if width not in WIDTHS or len(body) != 1 + width * entries:
        raise ProtocolError(f"the result does not hold {entries} numbers")
    return np.frombuffer(body[1:], f"<i{width}").astype(np.int64)


KEYS_BYTES = 3 * KEY_BYTES  # for masks, for seals, and a commitment to the self seed
SIGNED_KEYS_BYTES = SMALLEST + KEYS_BYTES
