"""Times of the market: always in UTC, whole microseconds."""

from __future__ import annotations

from datetime import UTC, datetime

from thresher.errors import InputError


def now() -> datetime:
    """The time now."""
    return datetime.now(UTC)


def check_time(name: str, time: datetime) -> datetime:
    """The time in UTC; raise if it has no offset.

    Examples
    --------
    >>> check_time("closes", datetime.fromisoformat("2027-01-01T12:00:00+02:00")).isoformat()
    '2027-01-01T10:00:00+00:00'
    """
    if time.tzinfo is None:
        raise InputError(f"{name} must have a time zone, such as {time.isoformat()}Z")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InputError(f"{name} must be in the years 1 to 9999 in UTC, got {time}") from None


def stamp(time: datetime) -> str:
    """A time as text, the same for the same moment."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
