"""The one form of time in records: ISO 8601, UTC, microseconds, `+00:00`."""

from datetime import UTC, datetime


def now_iso() -> str:
    """Return the present as a record writes it, say `2026-11-20T09:00:00.123456+00:00`."""
    return to_iso(datetime.now(UTC))


def to_iso(moment: datetime) -> str:
    """Return `moment` in the record form; a time without zone is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds")


def from_iso(text: str) -> datetime:
    """Return the time that `to_iso` wrote; raises ValueError for other text."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def to_minute(text: str) -> str:
    """Return the time that `to_iso` wrote as people read it.

    Example:
        >>> to_minute("2026-11-20T09:00:59.123456+00:00")
        '2026-11-20 09:00 UTC'
    """
    return f"{from_iso(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
