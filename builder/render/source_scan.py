"""Find uses of Python's headers, and of the name of the ops, in a kernel's sources."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from builder import resources, toml
from builder.config import Backend, Config, Framework
from builder.kernel.tree import HEADERS
from builder.render.project import Project

INSTALL = (
    "install the headers of Python: "
    "apt-get install python3-dev (Debian, Ubuntu), dnf install python3-devel (Fedora), apk add python3-dev (Alpine)"
)
REMEDY = f"include <torch/all.h> or <torch/library.h> if nothing of Python is used, or {INSTALL}"
_CMAKE = ("cmake/python/headers.cmake", "cmake/python/module.cmake")
_REGISTRATION = "torch-ext/registration.h"
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_WORD = re.compile(rb"\b(PyMODINIT_FUNC|PyObject|PyModuleDef|Py_ssize_t)\b")
"""Names of Python's C API, for sources that include it through another header such as the public `registration.h`."""
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEFINES_MODULE = re.compile(rb"\b(?:PYBIND11_MODULE|NB_MODULE|PyInit_\w+)\b")
_REGISTERS = re.compile(rb"\b(?:STABLE_)?TORCH_LIBRARY\w*\s*\(|\bRegisterOperators\b")
_DIRECTIVE = re.compile(rb"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(.*)", re.DOTALL)
_WINDOWS = re.compile(rb"(?:[ \t]*defined)?[ \t(]*(?:_WIN32|_WIN64|_MSC_VER)\b[ \t)]*(?:\r?\n)?")
_NAMED_MODULE = re.compile(rb"^[ \t]*(?:PYBIND11|NB)_MODULE\s*\(\s*(\w+)", re.MULTILINE)
_LIMITED = frozenset({"Python.h", "torch/csrc/python_headers.h"})
"""Headers that can be restricted to the limited API."""
_MACROS = {Framework.TORCH: b"TORCH_EXTENSION_NAME", Framework.TVM_FFI: b"TVM_FFI_EXTENSION_NAME"}
_LINKED = re.compile(
    rb"\b(?:(?:STABLE_)?TORCH_LIBRARY(?:_IMPL)?_EXPAND|REGISTER_EXTENSION)\s*\(\s*TORCH_EXTENSION_NAME\s*(?=[,)])"
)
"""Uses of the name for which `registration.h` has a macro that takes the name at link time."""
_OWN_MACROS = re.compile(rb"#\s*define\s+(?:STABLE_)?TORCH_LIBRARY(?:_IMPL)?_EXPAND\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A source line that needs Python's headers."""

    file: str
    line: int
    """The line number, from 1."""
    name: str
    """The included header, or the used name."""
    limited: bool
    """Whether the limited API suffices: pybind11 and torch's Python headers need more."""


@dataclass(frozen=True, slots=True)
class PythonScan:
    """The uses of Python in a library's sources, and in the kernel's headers that they include."""

    reached: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, sources: Iterable[str], files: Mapping[str, bytes], *, directories: Iterable[str] = ()) -> "PythonScan":
        """Follow the `#include` lines of sources.

        Args:
            sources: The compiled sources, relative to the project.
            files: Content of the sources and headers of the kernel.
            directories: Folders where `#include` looks after the file's own folder, relative to the project.
        """
        folders = tuple(directories)
        pending = [path for path in dict.fromkeys(sources) if path in files]
        known = set(pending)
        reached = []
        while pending:
            path = pending.pop(0)
            if path == _REGISTRATION:
                continue
            reached.append((path, files[path]))
            for quote, name in _INCLUDE.findall(files[path]):
                near = (posixpath.dirname(path),) if quote == b'"' else ()
                header = name.decode("utf-8", "replace")
                places = (posixpath.normpath(posixpath.join(folder, header)) for folder in (*near, *folders))
                found = next((place for place in places if place in files), None)
                if found is not None and found not in known:
                    known.add(found)
                    pending.append(found)
        return cls(tuple(reached))

    @property
    def needs_headers(self) -> Use | None:
        """The first line that needs Python's headers; lines that need more than the limited API come first."""
        return min(self._uses(), key=lambda use: use.limited, default=None)

    @property
    def obstacles(self) -> tuple[Use, ...]:
        """The lines that prevent one library for every Python: modules, and headers with the whole C API."""
        found = []
        for path, content in self.reached:
            code = _code(content)
            for match in _DEFINES_MODULE.finditer(code):
                limited = match[0].startswith(b"PyInit_")
                found.append(_use(path, code, match.start(), match[0].decode(), limited=limited))
        found += [use for use in self._uses() if not use.limited]
        return tuple(sorted(found, key=lambda use: (use.file, use.line)))

    @property
    def misnamed(self) -> tuple[Use, ...]:
        """Modules whose names are written out: they must have the name that the build generates."""
        return tuple(
            _use(path, code, match.start(1), match[1].decode(), limited=False)
            for path, content in self.reached
            for code in (_code(content),)
            for match in _NAMED_MODULE.finditer(code)
            if match[1] != b"TORCH_EXTENSION_NAME"
        )

    def _uses(self) -> Iterator[Use]:
        for path, content in self.reached:
            if b"Py" not in content and b"pybind11" not in content and b"torch/" not in content:
                continue
            code = _code(content)
            for match in _INCLUDE.finditer(code):
                header = match[2].decode("utf-8", "replace")
                if header in _LIMITED or header in _unlimited() or header.startswith("pybind11/"):
                    yield _use(path, code, match.start(), f"<{header}>", limited=header in _LIMITED)
            word = _WORD.search(code)
            if word is not None:
                yield _use(path, code, word.start(), word[0].decode(), limited=True)


def defines_module(sources: Iterable[str], files: Mapping[str, bytes]) -> bool:
    """Whether a source or a header of the kernel defines a Python module, as pybind11 does."""
    headers = (path for path in files if path.endswith(HEADERS) and path != _REGISTRATION)
    texts = [_code(files.get(path, b"")) for path in (*sources, *headers)]
    names = {match[0] for text in texts for match in _DEFINES_MODULE.finditer(text)}
    # Of ops that are registered, a module of a name of its own is the way to load them elsewhere.
    return any(not name.startswith(b"PyInit_") for name in names) or bool(
        names and not any(map(_REGISTERS.search, texts))
    )


def without_windows(content: bytes) -> bytes:
    """Return a source in which the lines are blank that only Windows compiles."""
    if b"_WIN" not in content and b"_MSC_VER" not in content:
        return content
    kept: list[bytes] = []
    hidden: list[bool | None] = []
    """For each open `#if`, whether it hides what follows; None where it asks for something else."""
    for line in content.splitlines(keepends=True):
        directive = _DIRECTIVE.match(line)
        word = b"" if directive is None else directive[1]
        if directive is not None and word.startswith(b"if"):
            asks = _WINDOWS.fullmatch(directive[2])
            hidden.append(None if asks is None else word != b"ifndef")
        elif word in {b"else", b"elif"} and hidden and hidden[-1] is not None:
            hidden[-1] = True if word == b"else" and not hidden[-1] else None
        elif word == b"endif" and hidden:
            hidden.pop()
        kept.append(b"\n" if any(hidden) else line)
    return b"".join(kept)


def directories(config: Config, backend: Backend) -> tuple[str, ...]:
    """Return the folders of a kernel where `#include` looks."""
    named = () if config.torch is None else (entry for _, table in config.tables(backend) for entry in table.include)
    return tuple(dict.fromkeys(("torch-ext", "csrc", *(posixpath.normpath(entry) for entry in named))))


def needed_by(project: Project) -> bool:
    """Whether a rendered project compiles against Python's headers."""
    return any(path in project.files for path in _CMAKE)


def _code(content: bytes) -> bytes:
    """Return a source with its comments blanked, and what only Windows compiles."""
    if b"/*" in content or b"//" in content:
        content = _COMMENT.sub(lambda comment: b"\n" * comment[0].count(b"\n"), content)
    return without_windows(content)


def _use(path: str, code: bytes, offset: int, name: str, *, limited: bool) -> Use:
    return Use(file=path, line=code.count(b"\n", 0, offset) + 1, name=name, limited=limited)


@cache
def _unlimited() -> frozenset[str]:
    table = toml.loads((resources.DATA / "python-headers.toml").read_text(encoding="utf-8"))
    return frozenset(table["torch"]) - _LIMITED


def uses_ops_name(
    sources: Iterable[str], files: Mapping[str, bytes], *, framework: Framework
) -> tuple[str, ...] | None:
    """Return the sources that use the name themselves; None for all sources, if a header uses it."""
    if framework not in _MACROS:
        return ()
    macro = _MACROS[framework]
    if any(_uses(macro, text) for path, text in files.items() if path.endswith(HEADERS) and path != _REGISTRATION):
        return None
    return tuple(path for path in sources if not path.endswith(HEADERS) and _uses(macro, files.get(path, b"")))


def _uses(macro: bytes, text: bytes) -> bool:
    return macro in _LINKED.sub(b"", text) or _OWN_MACROS.search(text) is not None
