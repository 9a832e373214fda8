"""When wheels came into an index, the `upload-time` of PEP 700: whoever makes the index says it, as no wheel can."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from builder.errors import BuilderError
from builder.wheel.kernel_wheel import KernelWheel

Uploads = Mapping[str, str]
"""Times by the names of wheels, those that are known, as `2026-08-01T00:00:00Z`."""
NONE: Uploads = {}
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
_DATE = 10
"""How many characters of a time are its day."""


def of_seconds(seconds: float) -> str:
    """Return the time that is so many seconds after the beginning of 1970."""
    return _written(datetime.fromtimestamp(seconds, timezone.utc))


def parse(text: str) -> str:
    """Return a time that a user wrote: a day, or a time; in UTC where it does not say.

    Raises:
        BuilderError: it is none.
    """
    try:
        found = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)  # 3.10 knows no Z
        return _written(found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc))
    except (ValueError, OverflowError):
        raise BuilderError(
            f"'{text}' is not a time", help="write 'now', a day such as '2026-08-01', or '2026-08-01T12:30:00Z'"
        ) from None


def is_time(text: object) -> bool:
    """Whether a text of a manifest is a time as it is written here."""
    return isinstance(text, str) and _TIME.fullmatch(text) is not None


def day_of(wheels: Iterable[KernelWheel], uploads: Uploads) -> str:
    """Return the day on which a version came into the index; nothing where that of any of its wheels is not known.

    It is that of its first wheel: one for a new PyTorch, which comes later, makes no new version.
    """
    found = [uploads.get(each.wheel.path.name) for each in wheels]
    known = [time for time in found if time is not None]
    return min(known)[:_DATE] if known and len(known) == len(found) else ""


def _written(time: datetime) -> str:
    return time.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
