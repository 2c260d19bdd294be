"""What several report formats share."""

from __future__ import annotations

from datetime import datetime, timezone


def utc(seconds: float) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC; `None` where no calendar reaches."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return None


def local_minute(seconds: float) -> str:
    """Seconds since 1970 as local date and time, for reading; ``?`` where no calendar reaches."""
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "?"
