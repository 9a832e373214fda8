"""Names of `dependencies.toml`, valid by construction: the dependencies of components and of the Python package."""

from functools import lru_cache
from typing import Any, ClassVar

from builder import toml
from builder.config.values import InvalidValueError
from builder.resources import DATA
from builder.wording import listed, nearest, quoted


class Known(str):
    """A name from a data file."""

    __slots__ = ()

    code: ClassVar[str] = "B013"
    kind: ClassVar[str] = ""

    def __new__(cls, text: str) -> "Any":
        """Refuse a name that is not known."""
        if text not in cls.names():
            raise cls.refusal(text)
        return super().__new__(cls, text)

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
    """What a component compiles against."""

    __slots__ = ()

    kind = "a dependency of a component"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every valid name."""
        return tuple(_dependencies()["component"])

    @classmethod
    def refusal(cls, text: str) -> InvalidValueError:
        """Return the error for an unknown name, or for one that has another name today."""
        today = _dependencies()["renamed"].get(text.replace("-", "_"))
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
        return tuple(_dependencies()["python"][cls.table])

    @classmethod
    def refusal(cls, text: str) -> InvalidValueError:
        """Return the error for an unknown name, or for one of another backend."""
        for table, names in _dependencies()["python"].items():
            if text in names and table != cls.table:
                where = "general.python-depends" if table == "general" else f"general.{table}.python-depends"
                return InvalidValueError(
                    f"{quoted(text)} is not {cls.kind}", code=cls.code, help=f"move it to '{where}'"
                )
            for name, facts in names.items():
                if table == cls.table and name in cls.names() and text in (facts["package"], *facts["import"]):
                    return InvalidValueError(
                        f"{quoted(text)} is not {cls.kind}", code=cls.code, help=f"it is called '{name}' here"
                    )
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


@lru_cache
def _dependencies() -> dict[str, dict[str, Any]]:
    return toml.loads((DATA / "dependencies.toml").read_text(encoding="utf-8"))
