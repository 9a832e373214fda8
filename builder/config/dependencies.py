"""The names in `dependencies.toml`: libraries that components compile against, and Python packages."""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from builder import toml
from builder.config.values import InvalidValueError, Text
from builder.resources import DATA
from builder.wording import listed, nearest, quoted


class Known(Text):
    """A name from a data file."""

    __slots__ = ()

    code = "B013"

    @classmethod
    def matches(cls, text: str) -> bool:
        """Whether the name is known."""
        return text in cls.names()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every valid name."""
        raise NotImplementedError

    @classmethod
    def refusal(cls, text: str) -> InvalidValueError:
        """Return the error for an unknown name."""
        guess = nearest(text, cls.names())
        remedy = f"did you mean '{guess}'?" if guess else f"allowed: {listed(cls.names()) or 'none'}"
        return InvalidValueError(f"{quoted(text)} is not {cls.kind}", code=cls.code, help=remedy)


class Dependency(Known):
    """A library that a component compiles against."""

    __slots__ = ()

    kind = "a dependency of a component"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every valid name."""
        return tuple(table()["component"])

    @classmethod
    def refusal(cls, text: str) -> InvalidValueError:
        """Return the error for an unknown name, or for a name that has changed."""
        today = table()["renamed"].get(text.replace("-", "_"))
        if today is None:
            return super().refusal(text)
        return InvalidValueError(
            f"{quoted(text)} is not {cls.kind} any more", code=cls.code, help=f"it is called '{today}' now"
        )


class PythonDependency(Known):
    """A Python package that the kernel imports, on every backend."""

    __slots__ = ()

    code = "B028"
    kind = "a Python dependency for every backend"
    table: ClassVar[str] = "general"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every valid name."""
        return tuple(table()["python"][cls.table])

    @classmethod
    def refusal(cls, text: str) -> InvalidValueError:
        """Return the error for an unknown name, or for a package of another backend."""
        refused = f"{quoted(text)} is not {cls.kind}"
        for where, names in table()["python"].items():
            if text in names and where != cls.table:
                place = "general.python-depends" if where == "general" else f"general.{where}.python-depends"
                return InvalidValueError(refused, code=cls.code, help=f"move it to '{place}'")
            for name, facts in names.items():
                if where == cls.table and name in cls.names() and text in (facts["package"], *facts["import"]):
                    return InvalidValueError(refused, code=cls.code, help=f"it is called '{name}' here")
        return super().refusal(text)


class OldPythonDependency(PythonDependency):
    """A Python package that the kernel imports, in schema 2."""

    __slots__ = ()

    kind = "a Python dependency of schema 2"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every valid name."""
        return ("einops", "nvidia-cutlass-dsl")


class CudaPythonDependency(PythonDependency):
    """A Python package that the kernel imports on CUDA."""

    __slots__ = ()

    kind = "a Python dependency for CUDA"
    table = "cuda"


class NeuronPythonDependency(PythonDependency):
    """A Python package that the kernel imports on Neuron."""

    __slots__ = ()

    kind = "a Python dependency for Neuron"
    table = "neuron"


class TpuPythonDependency(PythonDependency):
    """A Python package that the kernel imports on TPU."""

    __slots__ = ()

    kind = "a Python dependency for TPU"
    table = "tpu"


class XpuPythonDependency(PythonDependency):
    """A Python package that the kernel imports on XPU."""

    __slots__ = ()

    kind = "a Python dependency for XPU"
    table = "xpu"


@cache
def table() -> dict[str, Any]:
    """Return `dependencies.toml`."""
    return toml.loads((DATA / "dependencies.toml").read_text(encoding="utf-8"))


@cache
def _declared() -> Mapping[str, Mapping[str, Any]]:
    """Return the facts of every Python package that a kernel may declare, by name."""
    return {name: facts for names in table()["python"].values() for name, facts in names.items()}


def package(name: str) -> str:
    """Return the distribution that provides a dependency."""
    return str(_declared()[name]["package"])


def distribution(name: str) -> str:
    """Return the distribution of a dependency, whether declared or installed with torch."""
    return str((table()["brought"].get(name) or _declared()[name])["package"])


def modules(name: str) -> tuple[str, ...]:
    """Return the modules of a dependency, whether declared or installed with torch."""
    return tuple({**table()["brought"], **_declared()}.get(name, {}).get("import", ()))


def brought(backend: str) -> tuple[str, ...]:
    """Return the names of the packages that a backend's torch depends on, on Linux."""
    return tuple(name for name, facts in table()["brought"].items() if backend in facts["backends"])


def declarations(module: str) -> tuple[tuple[str, str], ...]:
    """Return each table of `python-depends` that can declare a module, with the name to write there."""
    return tuple(
        (where, name)
        for where, names in table()["python"].items()
        for name, facts in names.items()
        if module in facts["import"]
    )


def requirement(name: str) -> str:
    """Return the requirement for a wheel: the distribution, without unsafe versions."""
    least = at_least(name)
    return package(name) if least is None else f"{package(name)}>={least}"


def at_least(name: str) -> str | None:
    """Return the first safe version of a dependency; None if all are safe."""
    found: dict[str, Any] = next((names[name] for names in table()["python"].values() if name in names), {})
    least: str | None = found.get("at-least")
    return least
