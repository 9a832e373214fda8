"""What Nix says while it builds: its internal-json log, line by line, told apart by derivation."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_PREFIX = "@nix "
_BUILD = 105
"""Type of the activity that is one derivation's build."""
_LINE, _PHASE = 101, 104
"""Types of results: a line of a build's log, the phase that it is in."""
_ERROR = 0
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_LOST = re.compile(r"unexpected end-of-file|Broken pipe|Connection (reset|closed)|cannot connect to", re.IGNORECASE)
# Nix 2.8 says it in a line, Nix 2.34 gives the reason in the next one.
_CODE = re.compile(r"'(?P<drv>/[^']+\.drv)'(?:[^\n]*|\.\s+Reason: builder) failed with exit code (?P<code>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line of the log of a build; without a derivation, one of Nix itself."""

    drv: str | None
    text: str
    started: bool = False
    """The derivation's build begins; the text is its name."""


@dataclass(slots=True, kw_only=True)
class NixLog:
    """Follows one run of Nix."""

    errors: list[str] = field(default_factory=list)
    """Nix's own errors, in order."""
    built: set[str] = field(default_factory=set)
    """Derivations whose build began."""
    codes: dict[str, int] = field(default_factory=dict)
    """Exit codes of the builders that failed."""
    lost: bool = False
    """Whether the connection to a remote builder ended before its build did."""
    _running: dict[int, str] = field(default_factory=dict)

    def take(self, line: str) -> LogLine | None:
        """Take a line in; return what it says of a build."""
        if not line.startswith(_PREFIX):
            self.lost = self.lost or _LOST.search(line) is not None
            return LogLine(drv=None, text=plain(line)) if line.strip() else None
        try:
            event = json.loads(line.removeprefix(_PREFIX))
        except ValueError:
            return None
        match event.get("action"):
            case "start" if event.get("type") == _BUILD:
                return self._start(event)
            case "stop":
                self._running.pop(event["id"], None)
            case "result" if event.get("type") in (_LINE, _PHASE):
                return self._line(event)
            case "msg":
                return self._message(event)
        return None

    def _start(self, event: Mapping[str, object]) -> LogLine | None:
        fields = event.get("fields")
        if not isinstance(fields, list) or not fields:
            return None
        drv = str(fields[0])
        self._running[int(str(event["id"]))] = drv
        self.built.add(drv)
        return LogLine(drv=drv, text=name_of(drv), started=True)

    def _line(self, event: Mapping[str, object]) -> LogLine | None:
        fields, drv = event.get("fields"), self._running.get(int(str(event["id"])))
        if drv is None or not isinstance(fields, list) or not fields:
            return None
        return LogLine(drv=drv, text=plain(str(fields[0])))

    def _message(self, event: Mapping[str, object]) -> LogLine | None:
        text = plain(str(event.get("raw_msg") or event.get("msg") or ""))
        failed = _CODE.search(plain(str(event.get("msg") or "")))
        if failed is not None:
            self.codes[failed["drv"]] = int(failed["code"])
        if event.get("level") == _ERROR:
            self.errors.append(text)
            self.lost = self.lost or _LOST.search(text) is not None
        return None


def plain(text: str) -> str:
    """Return a text without colours."""
    return _ESCAPE.sub("", text)


def name_of(drv: str) -> str:
    """Return the name in a derivation's path: what is after the hash."""
    return drv.rpartition("/")[2].partition("-")[2].removesuffix(".drv")
