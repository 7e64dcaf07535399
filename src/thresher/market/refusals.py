"""`Refusal`: what a caller may not do, or cannot do now, with its HTTP status."""

from __future__ import annotations

from thresher.errors import ThresherError


class Refusal(ThresherError):  # noqa: N818 - what it is, in a word
    """A request that is refused.

    Parameters
    ----------
    status
        The HTTP status of the answer: 401 not logged in, 403 not allowed, 404 not found, 409 not
        now, 413 too large, 422 cannot be used, 429 too often.
    code
        One word for programs.
    message
        A sentence for people: what came, what was expected, what to do.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def unknown(what: str) -> Refusal:
    """The refusal if something does not exist or is not for the caller; it does not say which."""
    return Refusal(404, "not_found", f"this {what} does not exist, or you cannot see it")


def forbidden(role: str, *wanted: str) -> Refusal:
    """The refusal if the role may not do this."""
    who, *others = (f"an {each}" if each[0] in "aeiou" else f"a {each}" for each in (role, *wanted))
    return Refusal(403, "forbidden", f"{who} cannot do this, only {' or '.join(others)} can")


def too_late(what: str) -> Refusal:
    """The refusal if the state of the task does not allow this any more, or not yet."""
    return Refusal(409, "conflict", what)


def unusable(message: str) -> Refusal:
    """The refusal if what was submitted cannot be used."""
    return Refusal(422, "unusable", message)
