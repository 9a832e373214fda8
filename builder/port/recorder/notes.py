"""Note the actions of a setup.py, and provide stand-ins for imports that do not affect what is compiled."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Mapping, MutableSequence, Sequence
from types import FrameType
from typing import Any

_COMMANDS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"}
_NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"}
_MOST = 200
_LONGEST = 300


class Notes:
    """The extensions, the call of `setup`, commands and network accesses, in order."""

    def __init__(self, tree: str) -> None:
        self.tree = os.path.realpath(tree)
        self.extensions: list[Any] = []
        self.setup: dict[str, Any] | None = None
        self.events: list[dict[str, str]] = []
        self.variables: dict[str, str] = {}
        self.answered: dict[str, str] = {}

    def answer(self, name: str) -> Any:
        """Return an answer for something of torch of which nothing is known, and note what it was."""
        place = self.place()
        if place and len(self.answered) < _MOST:
            self.answered.setdefault(name, place)
        return anything(name)

    def place(self, frame: FrameType | None = None) -> str:
        """Return `file:line` of the nearest caller inside the tree; empty without one."""
        at = sys._getframe(1) if frame is None else frame  # noqa: SLF001  there is no public way that costs as little
        while at is not None:
            found = self._inside(at.f_code.co_filename, at.f_lineno)
            if found:
                return found
            at = at.f_back  # type: ignore[assignment]
        return ""

    def is_of_tree(self, frame: FrameType) -> bool:
        """Whether a frame itself is of a file of the tree."""
        return bool(self._inside(frame.f_code.co_filename, frame.f_lineno))

    def place_of(self, error: BaseException) -> str:
        """Return `file:line` of the last line in the tree that an error passed through."""
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
        """Note, from now on, which environment variables the tree reads."""
        notes, real = self, type(_environment())

        class Watched(real):  # type: ignore[misc, valid-type]
            def __getitem__(self, name: str) -> str:
                place = notes.place()
                if place and len(notes.variables) < _MOST:
                    notes.variables.setdefault(_text(name), place)
                found: str = super().__getitem__(name)
                return found

        _environment().__class__ = Watched

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an audit event of Python: a command, or a network access."""
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


def _attribute(owner: str, name: str) -> Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return anything(f"{owner}.{name}")


class _Answer:
    """Answers operators: a version that is asked about is newer than others, everything else about it is nothing."""

    def _itself(self, *_: object) -> Any:
        return self

    def _yes(self, _: object) -> bool:
        return True

    def _no(self, _: object) -> bool:
        return False

    __add__ = __radd__ = __sub__ = __mul__ = __mod__ = __truediv__ = __floordiv__ = __getitem__ = _itself
    __gt__ = __ge__ = _yes
    __lt__ = __le__ = __contains__ = _no

    def __int__(self) -> int:
        return 0

    __index__ = __int__

    def __float__(self) -> float:
        return 0.0

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return 0


class Anything(_Answer, type):
    """A class that has every attribute, each of them such a class again."""

    def __getattr__(cls, name: str) -> Any:
        return _attribute(cls.__qualname__, name)

    def __str__(cls) -> str:
        return f"<{cls.__qualname__}>"

    def __iter__(cls) -> Any:
        return iter(())


class _Instance(_Answer, metaclass=Anything):
    """An instance of such a class."""

    def __init__(self, *_args: object, **_options: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return _attribute(type(self).__qualname__, name)

    def __call__(self, *_args: object, **_options: object) -> Any:
        return self

    def __str__(self) -> str:
        return f"<{type(self).__qualname__}>"

    def __fspath__(self) -> str:
        return str(self)

    def __iter__(self) -> Any:
        return iter(())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def anything(name: str) -> Any:
    """Return a class with this name that can be called, subclassed and asked for attributes."""
    return Anything(name.rpartition(".")[2], (_Instance,), {"__qualname__": name})


class PretendedModule(types.ModuleType):
    """A module that has every attribute."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: MutableSequence[str] = []

    def __getattr__(self, name: str) -> Any:
        return _attribute(self.__name__, name)


class TorchModule(types.ModuleType):
    """A module of torch: what is not known of it is answered and noted."""

    def __init__(self, name: str, notes: Notes, absent: frozenset[str]) -> None:
        super().__init__(name)
        self.__path__: MutableSequence[str] = []
        self._notes = notes
        self._absent = absent

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        if full in self._absent or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return self._notes.answer(full)


class Asked(importlib.abc.MetaPathFinder):
    """Comes after all other finders, and remembers the last module that the tree asked for and that is nowhere."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.last: str | None = None

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> None:
        """Find nothing; a module that another module asked for is of no interest."""
        at = sys._getframe(1)  # noqa: SLF001
        while at.f_back is not None and "importlib" in at.f_code.co_filename:
            at = at.f_back
        if self._notes.is_of_tree(at):
            self.last = fullname


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins before installed modules."""

    def __init__(
        self,
        known: Mapping[str, Mapping[str, Any]],
        pretended: Sequence[str],
        *,
        packages: Sequence[str],
        absent: Sequence[str],
        notes: Notes,
    ) -> None:
        self._known = known
        self._pretended = frozenset(pretended)
        self._packages = frozenset(packages)
        self._absent = frozenset(absent)
        self._notes = notes

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> Any:
        """Return where a module comes from; None where it is none of these."""
        top = fullname.partition(".")[0]
        if fullname not in self._known and top not in self._pretended and not self._is_of_torch(fullname):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True, origin=f"<stand-in for {fullname}>")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return the module, still empty."""
        top = spec.name.partition(".")[0]
        if top == "torch":
            return TorchModule(spec.name, self._notes, self._absent)
        return PretendedModule(spec.name) if top in self._pretended else types.ModuleType(spec.name)

    def _is_of_torch(self, name: str) -> bool:
        top, _, below = name.partition(".")
        package = below.partition(".")[0]
        return top == "torch" and (package in self._packages or package.startswith("_"))

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill the module with its known content and its known submodules."""
        for name in self._known:
            if name.rpartition(".")[0] == module.__name__:
                importlib.import_module(name)
        vars(module).update(self._known.get(module.__name__, {}))
