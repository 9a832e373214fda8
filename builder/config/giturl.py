"""Recognize Git URLs exactly as the public parser does: the URL Standard, or the `host:path` form of scp.

Python's `urllib.parse` accepts nearly everything, so this module has the standard's rules for refusing.
"""

import ipaddress
import re
from urllib.parse import unquote

from builder.config.values import Text

SCHEMES = ("https", "http", "git", "ssh", "git+ssh", "git+https", "git+http")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_OPAQUE_FORBIDDEN = re.compile(r"[\0\t\n\r #/:<>?@\[\\\]^|]")
_DOMAIN_FORBIDDEN = re.compile(r"[\0-\x20#%/:<>?@\[\\\]^|\x7f]")
_NO_USER = re.compile(r"//(?:@\Z|:@(?:[/?#]|\Z))")  # no host, but the public parser accepts it
_PORT = re.compile(r"0*([0-9]{0,5})", re.ASCII)
_LARGEST_PORT = 65535
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*", re.ASCII)
_MOST_NUMBERS = 4
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_LONGEST_HOST = 253


class GitUrl(Text):
    """A Git URL: http, https, git, ssh and git+… schemes, or `host:path`."""

    __slots__ = ()

    # Necessary, not sufficient, but as much as a JSON Schema can express.
    pattern = r"[\s\S]+:[\s\S]*"
    code = "B022"
    kind = "a Git URL"
    rule = f"write a URL of {', '.join(SCHEMES)}, or 'user@host:path'"

    @classmethod
    def matches(cls, text: str) -> bool:
        """Whether the text is a URL of one of `SCHEMES`, or `host:path`, as the public parser accepts them."""
        cleaned = _clean(text)
        scheme = _SCHEME.match(cleaned)
        if scheme is not None and scheme[1].lower() not in SCHEMES:
            return False
        if scheme is not None and _is_url(scheme[1].lower(), cleaned[scheme.end() :]):
            return True
        host, colon, path = text.partition(":")
        is_scp = bool(host and colon and path) and not path.startswith("/")
        return is_scp and _is_url("ssh", _clean(f"//{host}/{path}"))

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the URL of a repository that was given as in a web browser or in scp's short form."""
        if re.fullmatch(r"[\w.-]+\.[a-z]+:[\w./-]+", text, re.ASCII):
            return f"write 'git@{text}'"
        return f"write 'https://{text}'" if re.fullmatch(r"[\w-]+(\.[\w-]+)+/[\w./-]+", text, re.ASCII) else None


def _clean(text: str) -> str:
    stripped = text.strip("".join(map(chr, range(0x21))))
    return re.sub(r"[\t\n\r]", "", stripped)


def _is_url(scheme: str, rest: str) -> bool:
    if scheme in {"http", "https"}:
        authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
        return _is_authority(authority, special=True)
    if not rest.startswith("//") or _NO_USER.match(rest):
        return True
    return _is_authority(re.split(r"[/?#]", rest[2:], maxsplit=1)[0], special=False)


def _is_authority(authority: str, *, special: bool) -> bool:
    if not authority:
        return not special
    address = authority.rpartition("@")[2]
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(.*))?", address, re.DOTALL)
    if found is None or not found[1]:
        return False
    port = _PORT.fullmatch((found[2] or "").partition("\\")[0])
    if port is None or int(port[1] or 0) > _LARGEST_PORT:
        return False
    host = found[1]
    if not host.startswith("["):
        return _is_domain(host) if special else _OPAQUE_FORBIDDEN.search(host) is None
    try:
        return ipaddress.IPv6Address(host[1:-1]) is not None and "%" not in host
    except ValueError:
        return False


def _is_domain(host: str) -> bool:
    try:
        host = unquote(host, errors="strict").lower()
        labels = _DOTS.split(_short(host))
        name = host if host.isascii() else ".".join(label.encode("idna").decode("ascii") for label in labels)
    except UnicodeError:
        return False
    if not name or _DOMAIN_FORBIDDEN.search(name) is not None:
        return False
    if not all(_is_label(label) for label in _short(name).split(".") if label.startswith("xn--")):
        return False
    labels = name.removesuffix(".").split(".")
    return _is_ipv4(labels) if _NUMBER.fullmatch(labels[-1]) else True


def _short(host: str) -> str:
    """Cut a host that is too long and may need Punycode, whose decoding takes quadratic time."""
    if "xn--" in host or not host.isascii():
        return host if len(host) <= _LONGEST_HOST else "xn--"
    return host


def _is_label(label: str) -> bool:
    try:
        decoded = label.removeprefix("xn--").encode("ascii").decode("punycode")
        return not decoded.isascii() and decoded.encode("idna").decode("ascii") == label
    except (UnicodeError, ValueError):
        return False


def _is_ipv4(labels: list[str]) -> bool:
    if len(labels) > _MOST_NUMBERS or not all(_NUMBER.fullmatch(label) for label in labels):
        return False
    try:
        *first, last = [_number(label) for label in labels]
    except ValueError:
        return False
    return all(number < 256 for number in first) and last < 256 ** (5 - len(labels))  # noqa: PLR2004  bytes


def _number(label: str) -> int:
    if label[:2].lower() == "0x":
        return int(label[2:] or "0", 16)
    return int(label[1:], 8) if len(label) > 1 and label[0] == "0" else int(label[:64])
