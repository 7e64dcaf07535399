"""Refusal: what a caller may not do, or cannot do now, with the status that HTTP has for it."""

from __future__ import annotations

from thresher.errors import ThresherError


class Refusal(ThresherError):  # noqa: N818 - what it is, in a word
    """A request that is refused.

    Parameters
    ----------
    status
        The status of the answer: 401 who are you, 403 not you, 404 no such thing, 409 not now,
        413 too much, 422 not like that, 429 too often.
    code
        One word for programs.
    message
        A sentence for people: what came, what was wanted, the way out.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def unknown(what: str) -> Refusal:
    """There is no such thing, or it is not for you: the answer does not say which."""
    return Refusal(404, "not_found", f"this {what} does not exist, or you cannot see it")


def forbidden(role: str, *wanted: str) -> Refusal:
    """The role may not do this."""
    who, *others = (f"an {each}" if each[0] in "aeiou" else f"a {each}" for each in (role, *wanted))
    return Refusal(403, "forbidden", f"{who} cannot do this, only {' or '.join(others)} can")


def too_late(what: str) -> Refusal:
    """The state of the task does not allow it any more, or not yet."""
    return Refusal(409, "conflict", what)


def unusable(message: str) -> Refusal:
    """What was handed in cannot be used."""
    return Refusal(422, "unusable", message)
