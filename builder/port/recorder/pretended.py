"""Modules that answer everything: those that a `setup.py` imports and that decide nothing of what is compiled."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from typing import Any


class Anything(type):
    """A class that has every attribute, each of them such a class again."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return anything(f"{cls.__qualname__}.{name}")

    def __str__(cls) -> str:
        return f"<{cls.__qualname__}>"

    def __iter__(cls) -> Any:
        return iter(())


class _Instance(metaclass=Anything):
    """What such a class makes when it is called."""

    def __init__(self, *_args: object, **_options: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return anything(f"{type(self).__qualname__}.{name}")

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
    """Return a class of that name which can be called, asked for attributes and derived from."""
    return Anything(name.rpartition(".")[2], (_Instance,), {"__qualname__": name})


class PretendedModule(types.ModuleType):
    """A module that has every attribute."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: MutableSequence[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return anything(f"{self.__name__}.{name}")


Fill = Callable[[types.ModuleType], None]


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins before anything that is installed."""

    def __init__(self, known: Mapping[str, Fill], pretended: Sequence[str]) -> None:
        self._known = known
        self._pretended = frozenset(pretended)

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> Any:
        """Return where a module comes from; None where it is none of these."""
        if fullname not in self._known and fullname.partition(".")[0] not in self._pretended:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True, origin=f"<stand-in for {fullname}>")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return the module, still empty."""
        lenient = spec.name.partition(".")[0] in self._pretended
        return PretendedModule(spec.name) if lenient else types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill the module with what is known of it."""
        fill = self._known.get(module.__name__)
        if fill is not None:
            fill(module)

    def install(self) -> None:
        """Answer imports from now on."""
        sys.meta_path.insert(0, self)
