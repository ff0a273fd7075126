"""Times and durations as the consoles say them; all times are UTC."""

from datetime import UTC, datetime

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
WARN_DAYS = 14
"""From so many days before its end on, a certificate is worth a warning."""


def moment(at: float, now: float) -> str:
    """Return a time, with its day unless that is today."""
    when, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC)
    if when.date() == today.date():
        return f"{when:%H:%M}"
    year = f" {when:%Y}" if when.year != today.year else ""
    return f"{when.day} {when:%b}{year} {when:%H:%M}"


def full(at: float) -> str:
    """Return a day and a time."""
    when = datetime.fromtimestamp(at, UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def ago(seconds: float) -> str:
    """Return how long ago something was."""
    if seconds < MINUTE:
        return "less than a minute ago"
    return f"{lasting(seconds)} ago"


def lasting(seconds: float) -> str:
    """Return a duration in one unit."""
    for unit, name in ((DAY, "days"), (HOUR, "h")):
        if seconds >= 2.0 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / MINUTE:.0f} min"


def days_left(ends: float, now: float) -> tuple[str, str]:
    """Return the state of a certificate and what to say of it."""
    if not ends:
        return "", "none"
    left = (ends - now) / DAY
    if left < 0.0:
        return "bad", f"ended {lasting(now - ends)} ago"
    return ("warn" if left < WARN_DAYS else "good"), f"{int(left)} days"
