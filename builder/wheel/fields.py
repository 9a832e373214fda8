"""Read the fields of METADATA and WHEEL, which are untrusted."""

from email.message import Message
from functools import lru_cache

from builder.untrusted import UntrustedError

_LONGEST_HEAD = 1 << 20
_MOST_FIELDS = 10_000
_KEPT = 64
"""The number of cached files: several readers ask for the same file in a row."""


@lru_cache(maxsize=_KEPT)
def read(content: bytes) -> Message:
    """Return the fields of METADATA or WHEEL, without the text after them.

    Raises:
        UntrustedError: the fields are not UTF-8, or there are too many.
    """
    head = content.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    if len(head) > _LONGEST_HEAD or head.count(b"\n") > _MOST_FIELDS:
        raise UntrustedError(f"it has more than {_MOST_FIELDS} lines of fields, or {_LONGEST_HEAD} bytes")
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        raise UntrustedError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    from email.parser import HeaderParser  # noqa: PLC0415  a build needs no reader of mail

    return HeaderParser().parsestr(text)
