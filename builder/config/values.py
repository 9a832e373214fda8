"""Values of a config that are valid by construction."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, total_ordering
from typing import Any, ClassVar

from builder import toml
from builder.config.text import KeyPath
from builder.resources import DATA
from builder.wording import quoted


class InvalidValueError(ValueError):
    """A text that is not a valid value of its type."""

    def __init__(self, message: str, *, code: str, path: KeyPath = (), help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.path = path
        self.help = help


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFacts:
    """The facts of one backend; the data file explains each."""

    title: str
    noarch_variant: str
    components: bool = False
    ctypes: bool = False
    toolkit_prefix: str | None = None
    device_code: bool = False
    sources: tuple[str, ...] = ()
    dispatch_key: str = "CPU"
    torch_library: str | None = None
    torch_device: str | None = None
    macos: str | None = None
    file_memory: Mapping[str, float] = field(default_factory=dict)
    init: str


@cache
def backend_facts() -> Mapping[str, BackendFacts]:
    """Return the facts of every backend by its name, in the file's order."""
    tables = toml.facts(DATA / "backends.toml")
    return {name: BackendFacts(**{"init": name, **given}) for name, given in tables.items()}


class Word(str, Enum):
    """A word of the config; its text is its value."""

    def __str__(self) -> str:
        return str(self.value)


class Backend(Word):
    """A backend that a kernel can name in `general.backends`."""

    _ignore_ = ["members", "name"]  # noqa: RUF012  as Enum wants it

    # Code names only these members; the data file has all of them.
    CPU: "Backend"
    CUDA: "Backend"
    METAL: "Backend"
    ROCM: "Backend"
    XPU: "Backend"

    members = vars()
    for name in backend_facts():
        members[name.upper()] = name

    @property
    def facts(self) -> BackendFacts:
        """The facts of the backend."""
        return backend_facts()[self.value]


class LoadTestRule(Word):
    """The rule for a wheel that cannot be imported on the machine that built it."""

    REQUIRE = "require"
    TRY = "try"
    SKIP = "skip"


class ToolchainChoice(Word):
    """The C++ compilers of a build: the machine's own, or pinned ones for any Linux."""

    SYSTEM = "system"
    PINNED = "pinned"


class PythonAbi(Word):
    """The part of Python's C API that a kernel's library may use."""

    CPYTHON = "cpython"


class Framework(Word):
    """The framework whose table a config has."""

    TORCH = "torch"
    TORCH_NOARCH = "torch-noarch"
    TVM_FFI = "tvm-ffi"
    CTYPES = "ctypes"

    @property
    def generated(self) -> str:
        """The generated module of a rendered package: `_ops`, or `_library` for a plain library."""
        return "_library" if self is Framework.CTYPES else "_ops"


_WHITE = r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_VERSION = r"\+?0*([0-9]+)\.\+?0*([0-9]+)"
_LARGEST = 2**64 - 1


@total_ordering
class Version:
    """A version `MAJOR.MINOR`, compared as numbers: 2.9 < 2.10."""

    __slots__ = ("major", "minor")

    # As in the public parser: surrounding white space, and plus signs before numbers.
    pattern: ClassVar[str] = rf"{_WHITE}*\+?[0-9]+\.\+?[0-9]+{_WHITE}*"
    example: ClassVar[str] = "2.13"

    major: int
    minor: int

    def __init__(self, text: str) -> None:
        # Versions rarely contain white space, and this pattern takes milliseconds to compile.
        found = re.fullmatch(_VERSION, text, re.ASCII) or re.fullmatch(f"{_WHITE}*{_VERSION}{_WHITE}*", text, re.ASCII)
        if found is None or max(int(found[1][:21]), int(found[2][:21])) > _LARGEST:
            near = re.fullmatch(r"v?([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:[.+-].*)?", text, re.ASCII)
            remedy = f"write '{near[1]}.{near[2] or 0}'" if near else None
            message = f"{quoted(text)} is not a version: write MAJOR.MINOR, such as '{self.example}'"
            raise InvalidValueError(message, code="B021", help=remedy)
        object.__setattr__(self, "major", int(found[1]))
        object.__setattr__(self, "minor", int(found[2]))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Version is immutable: {name} = {value!r}")

    def __reduce__(self) -> tuple[type["Version"], tuple[str]]:
        return type(self), (str(self),)  # how it goes to another process: nothing is set on one that is made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return (self.major, self.minor) == (other.major, other.minor)

    def __lt__(self, other: "Version") -> bool:
        return (self.major, self.minor) < (other.major, other.minor)

    def __hash__(self) -> int:
        return hash((self.major, self.minor))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    def __repr__(self) -> str:
        return f"Version('{self}')"


class Text(str):
    """A string that matches a pattern."""

    __slots__ = ()

    pattern: ClassVar[str] = ""
    code: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    rule: ClassVar[str] = ""
    before: ClassVar["type[Text] | None"] = None
    """The class of the same value in older schemas."""

    def __new__(cls, text: str) -> "Any":
        """Refuse a text that does not match the pattern."""
        if not cls.matches(text):
            raise cls.refusal(text)
        return super().__new__(cls, text)

    @classmethod
    def matches(cls, text: str) -> bool:
        """Whether the whole text matches the pattern."""
        return re.fullmatch(cls.pattern, text, re.ASCII) is not None

    @classmethod
    def refusal(cls, text: str) -> InvalidValueError:
        """Return the error for an invalid text."""
        return InvalidValueError(f"{quoted(text)} is not {cls.kind}: {cls.rule}", code=cls.code, help=cls.remedy(text))

    @classmethod
    def remedy(cls, text: str) -> str | None:  # noqa: ARG003  for the classes that have one
        """Return the probable meaning of an invalid text; None if there is no guess."""
        return None


class KernelName(Text):
    """A kernel name: a lower-case letter, then lower-case letters, digits and dashes; no dash at the end."""

    __slots__ = ()

    pattern = r"[a-z][-a-z0-9]*[a-z0-9]"
    code = "B020"
    kind = "a kernel name"
    rule = (
        "use lower-case letters, digits and dashes, two or more, a letter first and no dash last, "
        "as in 'flash-attention'"
    )

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the name with only valid letters and separators."""
        guess = re.sub(r"[^a-z0-9]+", "-", text[:200].lower()).strip("-").lstrip("-0123456789")
        return f"write '{guess}'" if cls.matches(guess) else None

    @property
    def module(self) -> str:
        """The Python module: the name with `-` as `_`."""
        return self.replace("-", "_")


class ComponentName(Text):
    """The name of a `[kernel.<name>]` table: it becomes part of CMake target and file names."""

    __slots__ = ()

    pattern = r"[A-Za-z0-9_.-]+"
    code = "B027"
    kind = "a name of a kernel table"
    rule = "use letters, digits, '_', '-' and '.'"


class MacroName(Text):
    """A name that the preprocessor can define."""

    __slots__ = ()

    pattern = r"[A-Za-z_][A-Za-z0-9_]*"
    code = "B038"
    kind = "a name of a macro"
    rule = "use letters, digits and '_', and no digit first, as in 'USE_FP8'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the name in a macro definition that was written as a compiler's option."""
        found = re.fullmatch(r"(?:-D)?([A-Za-z_][A-Za-z0-9_]*)(?:=(.*))?", text[:200], re.ASCII)
        return None if found is None else f"write '{found[1]} = \"{found[2]}\"'" if found[2] else f"write '{found[1]}'"


MacroValue = bool | int | str
"""The value of a macro: `true` defines it without a value, `false` does not define it."""


class ProjectPath(Text):
    """A path relative to the project root, and inside the project."""

    __slots__ = ()

    # Necessary, not sufficient: a regular expression cannot count `..`.
    pattern = r"(?!/)(?!\.\.(?:/|$))[^\u0000-\u001f]+"
    code = "B023"
    kind = "a path inside the project"
    rule = "write it relative to the directory of the config, without control characters"

    @classmethod
    def matches(cls, text: str) -> bool:
        """Whether the path is relative, stays in the project, and can be shown."""
        depths = itertools.accumulate({"": 0, ".": 0, "..": -1}.get(part, 1) for part in text.split("/"))
        return text != "" and text[0] != "/" and text.isprintable() and min(depths) >= 0


class CudaCapability(Text):
    """A CUDA compute capability, such as `9.0a+PTX`."""

    __slots__ = ()

    pattern = r"[0-9]+\.[0-9][af]?(?:\+PTX)?"
    code = "B024"
    kind = "a CUDA capability"
    rule = "write MAJOR.MINOR, with 'a', 'f' or '+PTX' after it if need be, as in '9.0a'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the capability for nvcc's spelling, or for a number without a dot."""
        found = re.fullmatch(r"(?:sm|compute)?[-_]?([0-9]{1,2}?)\.?([0-9])([af]?)((?:\+ptx)?)", text.lower(), re.ASCII)
        return f"write '{found[1]}.{found[2]}{found[3]}{found[4].upper()}'" if found else None


class RocmArch(Text):
    """A ROCm architecture, such as `gfx942`."""

    __slots__ = ()

    pattern = r"gfx[0-9a-f]+"
    code = "B025"
    kind = "a ROCm architecture"
    rule = "write 'gfx' and a hexadecimal number, as in 'gfx942'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the architecture with its prefix, in lower case."""
        found = re.fullmatch(r"(?:gfx)?[-_]?([0-9a-f]{3,4})", text.lower(), re.ASCII)
        return f"write 'gfx{found[1]}'" if found else None


class PyExt(Text):
    """The extension of files that ship with the Python package, such as `py`."""

    __slots__ = ()

    pattern = r"[A-Za-z0-9_.-]+"
    code = "B026"
    kind = "a file extension"
    rule = "use letters, digits, '_', '.' and '-', as in 'py'"


class System(Text):
    """A system that cells are built for, such as `x86_64-linux`."""

    __slots__ = ()

    cpus: ClassVar[tuple[str, ...]] = ("x86_64", "aarch64")
    oses: ClassVar[tuple[str, ...]] = ("linux", "darwin", "windows")
    pattern = rf"(?:{'|'.join(cpus)})-(?:{'|'.join(oses)})"
    code = "B029"
    kind = "a system"
    rule = "write CPU-OS, of 'x86_64', 'aarch64' and 'linux', 'darwin', 'windows', as in 'x86_64-linux'"


class ToolkitVersion(Text):
    """A version of a toolkit, such as `13.0` or `2025.3.2`."""

    __slots__ = ()

    pattern = r"[0-9]+(?:\.[0-9]+){1,2}"
    code = "B021"
    kind = "a version of a toolkit"
    rule = "write MAJOR.MINOR or MAJOR.MINOR.PATCH, such as '13.0'"
