"""The libraries that a kernel can be linked to: the tables of `data/libraries.toml`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

from builder import toml
from builder.config.dependencies import Known
from builder.config.values import Backend, Framework, InvalidValueError
from builder.resources import DATA
from builder.wording import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFacts:
    """The facts of one library; the data file explains each."""

    backends: tuple[str, ...] | None = None
    target: str | None = None
    package: str | None = None
    link: str | None = None
    macos: bool = True
    soname: str | None = None
    driver: bool = False
    wheels: Mapping[str, str] = field(default_factory=dict)
    part: str | None = None
    headers: str | None = None
    torch: str | None = None

    def is_for(self, backend: Backend) -> bool:
        """Whether a backend has this library."""
        return self.backends is None or backend.value in self.backends


class LibraryName(Known):
    """A library of a GPU's toolkit or of the system that a kernel is linked to."""

    __slots__ = ()

    code = "B039"
    kind = "a library that can be linked to"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every valid name."""
        return tuple(table())

    @classmethod
    def refusal(cls, text: str) -> InvalidValueError:
        """Return the error for an unknown name, or for the name that a linker or CMake uses."""
        plain = re.sub(r"^(?:-l|lib|[A-Za-z]+::)|\.(?:so|a|dylib)\b.*$", "", text[:200])
        if plain in cls.names():
            return InvalidValueError(f"{quoted(text)} is not {cls.kind}", code=cls.code, help=f"write '{plain}'")
        return super().refusal(text)

    @property
    def facts(self) -> LibraryFacts:
        """The facts of the library."""
        return table()[self]


@cache
def table() -> Mapping[str, LibraryFacts]:
    """Return the facts of every library by its name, in the file's order."""
    return {name: LibraryFacts(**given) for name, given in toml.facts(DATA / "libraries.toml").items()}


def to_load(names: Iterable[LibraryName], framework: Framework) -> tuple[str, ...]:
    """Return the unversioned files that a kernel must load before its own library."""
    found = [name.facts for name in names if name.facts.wheels]
    loaded = [facts for facts in found if framework is Framework.TORCH and facts.torch == "loads"]
    return tuple(dict.fromkeys(str(facts.soname) for facts in found if facts not in loaded))


def requirements(names: Iterable[LibraryName], framework: Framework, toolkit: str | None) -> tuple[str, ...]:
    """Return the distributions that a wheel requires for its libraries, unless the framework requires them."""
    major = "" if toolkit is None else toolkit.partition(".")[0]
    found = [name.facts for name in names]
    needed = [facts for facts in found if not (framework is Framework.TORCH and facts.torch is not None)]
    return tuple(dict.fromkeys(facts.wheels[major] for facts in needed if major in facts.wheels))


def parts(names: Iterable[LibraryName]) -> tuple[str, ...]:
    """Return the parts of the pin file that install libraries into a build environment."""
    return tuple(dict.fromkeys(name.facts.part for name in names if name.facts.part is not None))


def of_header(file: str) -> LibraryName | None:
    """Return the library that has a header such as `curand_kernel.h`; None for any other header."""
    named = ((name, facts.headers) for name, facts in table().items() if facts.headers is not None)
    return next((LibraryName(name) for name, pattern in named if fnmatchcase(file, pattern)), None)


def distributions(file: str) -> frozenset[str]:
    """Return the distributions that install a shared library, such as `libnvjpeg.so.13`."""
    facts = next((each for each in table().values() if each.soname and file.startswith(f"{each.soname}.")), None)
    wheels = () if facts is None else facts.wheels.values()
    return frozenset(requirement.partition(">")[0] for requirement in wheels)
