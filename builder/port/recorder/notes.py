"""What is noted while a `setup.py` runs, each with the line of the tree that did it."""

import os
import sys
from types import FrameType
from typing import Any

_COMMANDS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"}
_NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"}
_MOST = 200
_LONGEST = 300


class Notes:
    """The extensions, the call of `setup`, commands and uses of the network, in the order they came."""

    def __init__(self, tree: str) -> None:
        self.tree = os.path.realpath(tree)
        self.extensions: list[dict[str, Any]] = []
        self.setup: dict[str, Any] | None = None
        self.events: list[dict[str, str]] = []
        self.variables: dict[str, str] = {}

    def place(self, frame: FrameType | None = None) -> str:
        """Return `file:line` of the nearest caller that is in the tree; empty where there is none."""
        at = sys._getframe(1) if frame is None else frame  # noqa: SLF001  there is no public way that costs as little
        while at is not None:
            found = self._inside(at.f_code.co_filename, at.f_lineno)
            if found:
                return found
            at = at.f_back  # type: ignore[assignment]
        return ""

    def place_of(self, error: BaseException) -> str:
        """Return `file:line` of the last line of the tree that an error came through."""
        found, trace = "", error.__traceback__
        while trace is not None:
            found = self._inside(trace.tb_frame.f_code.co_filename, trace.tb_lineno) or found
            trace = trace.tb_next
        return found

    def _inside(self, file: str, line: int) -> str:
        if file.startswith("<"):
            return ""
        path = os.path.realpath(file)
        return f"{os.path.relpath(path, self.tree)}:{line}" if path.startswith(self.tree + os.sep) else ""

    def watch_variables(self) -> None:
        """Note from now on which variables of the environment the tree reads."""
        notes, real = self, type(_environment())

        class Watched(real):  # type: ignore[misc, valid-type]
            def __getitem__(self, name: str) -> str:
                place = notes.place()
                if place and len(notes.variables) < _MOST:
                    notes.variables.setdefault(str(name), place)
                found: str = super().__getitem__(name)
                return found

        _environment().__class__ = Watched

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event that Python tells of: a command, or a use of the network."""
        if event in _COMMANDS:
            words = arguments[1] if event == "subprocess.Popen" else arguments[0]
            said = " ".join(map(_text, words)) if isinstance(words, list | tuple) else _text(words)
            self._note("command", said.replace(sys.executable, "python"))
        elif event in _NETWORK:
            self._note("network", _text(arguments[0] if event == "urllib.Request" else arguments[-1]))

    def _note(self, kind: str, text: str) -> None:
        place = self.place(sys._getframe(2))  # noqa: SLF001
        note = {"kind": kind, "text": text[:_LONGEST], "at": place}
        if place and len(self.events) < _MOST and note not in self.events:
            self.events.append(note)


def _environment() -> Any:
    return vars(os)["environ"]


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
