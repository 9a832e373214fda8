"""The tables that list sources: bindings to a framework, further libraries of a wheel, and compiled components."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache
from typing import ClassVar

from builder.config.conditions import When
from builder.config.dependencies import Dependency
from builder.config.gpus import CudaTarget
from builder.config.libraries import LibraryName
from builder.config.values import (
    Backend,
    CudaCapability,
    MacroName,
    MacroValue,
    ProjectPath,
    PyExt,
    PythonAbi,
    RocmArch,
    Text,
    Version,
)


class ExportGlob(Text):
    """A function of C that a library exports, or a glob of them, as in `cquantize_*`."""

    __slots__ = ()

    pattern = r"[A-Za-z_][A-Za-z0-9_*?]*"
    code = "B045"
    kind = "a name or a glob of functions of C"
    rule = "begin with a letter or '_', and use letters, digits, '_', '*' and '?', as in 'cquantize_*'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the name in a declaration of C."""
        found = re.search(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(", text[:200], re.ASCII)
        return None if found is None else f"write '{found[1]}'"


def exported(names: Iterable[str], globs: Iterable[str]) -> frozenset[str]:
    """Return the names that one of the globs has."""
    wanted = re.compile("|".join(map(translate, globs)) or r"(?!)")  # one for all: fnmatch itself keeps only some
    return frozenset(name for name in names if wanted.match(name))


class ExtensionName(Text):
    """The name of an `[extension.<name>]` table: it becomes part of the names of Python modules."""

    __slots__ = ()

    pattern = r"[a-z][a-z0-9_]{0,62}"
    code = "B043"
    kind = "a name of an extension"
    rule = "use up to 63 lower-case letters, digits and '_', a letter first, as in 'moe'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the name with the letters that names have."""
        guess = text[:63].lower().replace("-", "_").replace(".", "_").strip("_")
        return f"write '{guess}'" if cls.matches(guess) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The sources by which a library binds to its framework; each framework's table adds keys of its own."""

    src: tuple[ProjectPath, ...] = ()
    """Sources and headers, relative to the project root; an entry may be a glob."""
    exclude: tuple[ProjectPath, ...] = field(default=(), metadata={"ours": True})
    """Files and globs that are taken out of `src`, relative to the project root."""
    include: tuple[ProjectPath, ...] = ()
    """Include directories of these sources, relative to the project root."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags of these sources, for C++ only."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict, metadata={"ours": True})
    """Macros of these sources: `true` defines one without a value, `false` does not
    define it, a number or a text is its value as it stands."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict, metadata={"ours": True})
    """Flags of single sources, after all others: a table from a file or a glob to the flags of the files it names."""
    libraries: tuple[LibraryName, ...] = field(default=(), metadata={"ours": True})
    """Libraries of the toolkit or of the system that this library is linked to, as in `["cublas", "dl"]`; each
    backend links to the ones that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension(Binding):
    """The binding of one more library of the wheel to PyTorch."""

    when: When | None = None
    """The cells that have the library: every entry holds in them. Elsewhere it is left out with its components, and
    the wheel has no module for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch(Binding):
    """The binding of the kernel to PyTorch."""

    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ("stable-abi", "python-abi")

    minver: Version | None = None
    """Oldest PyTorch to build for, inclusive."""
    maxver: Version | None = None
    """Newest PyTorch to build for, inclusive: `"2.12"` admits 2.12.1."""
    pyext: tuple[PyExt, ...] | None = None
    """Extensions of the files that ship from `torch-ext/`; `py` and `pyi` when absent."""
    stable_abi: Version | Mapping[Backend, Version] | None = None
    """Build against the LibTorch stable ABI of this version: one version for every backend, or a table with an
    entry for each backend that does."""
    python_abi: PythonAbi | None = field(default=None, metadata={"ours": True})
    """`cpython`: the library may use all of Python's C API, as pybind11 does, and is built once for each Python that
    torch has; when absent, one library serves every Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchNoarch:
    """A pure-Python kernel, for PyTorch."""

    pyext: tuple[PyExt, ...] | None = None
    """Extensions of the files that ship from `torch-ext/`; `py` and `pyi` when absent."""
    cuda_capabilities: tuple[CudaCapability, ...] | None = field(
        default=None, metadata={"key": "cuda_capabilities", "also": "cuda-capabilities"}
    )
    """CUDA capabilities that the kernel runs on. Note the underscore: the public kernel-builder requires it."""
    rocm_archs: tuple[RocmArch, ...] | None = field(default=None, metadata={"key": "rocm_archs", "also": "rocm-archs"})
    """ROCm architectures that the kernel runs on. Note the underscore: the public kernel-builder requires it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TvmFfi(Binding):
    """The binding of the kernel to tvm-ffi."""

    src: tuple[ProjectPath, ...]
    pyext: tuple[PyExt, ...] | None = None
    """Extensions of the files that ship from `tvm-ffi-ext/`; `py` and `pyi` when absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ctypes(Binding):
    """A plain shared library, without a framework, which Python loads by ctypes."""

    exports: tuple[ExportGlob, ...]
    """The functions of C that the library exports, as in `["cquantize_*"]`; it keeps everything else to itself."""
    backend_exports: Mapping[Backend, tuple[ExportGlob, ...]] = field(default_factory=dict)
    """Further ones that the library of one backend exports, as in `{ cuda = ["get_context"] }`."""
    pyext: tuple[PyExt, ...] | None = None
    """Extensions of the files that ship from `ctypes-ext/`; `py` and `pyi` when absent."""
    src: tuple[ProjectPath, ...] = ()
    """Sources and headers of every backend, relative to the project root; an entry may be a glob."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags of these sources, for C and C++ only."""

    def exports_of(self, backend: Backend) -> tuple[ExportGlob, ...]:
        """Return what the library of a backend exports."""
        return tuple(dict.fromkeys((*self.exports, *self.backend_exports.get(backend, ()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Sources of one backend that are compiled in the same way."""

    backend: ClassVar[Backend]
    depends: tuple[Dependency, ...]
    """The libraries that the component compiles against, as in `["torch"]`."""
    src: tuple[ProjectPath, ...]
    """Sources and headers, relative to the project root; an entry may be a glob."""
    exclude: tuple[ProjectPath, ...] = field(default=(), metadata={"ours": True})
    """Files and globs that are taken out of `src`, relative to the project root."""
    include: tuple[ProjectPath, ...] = ()
    """Include directories, relative to the project root; the headers in them need not be listed in `src`."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags for C++ sources only."""
    when: When | None = field(default=None, metadata={"ours": True})
    """The cells in which the component is compiled: every entry holds in them. Elsewhere it is left out."""
    extension: ExtensionName | None = field(default=None, metadata={"ours": True})
    """The `[extension.<name>]` whose library the sources are linked into; when absent, that of `[torch]` or
    `[tvm-ffi]`."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict, metadata={"ours": True})
    """Macros of every source, whatever its language: `true` defines one without a value, `false` does not
    define it, a number or a text is its value as it stands."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict, metadata={"ours": True})
    """Flags of single sources, after all others: a table from a file or a glob to the flags of the files it names."""
    libraries: tuple[LibraryName, ...] = field(default=(), metadata={"ours": True})
    """Libraries of the toolkit or of the system that the kernel is linked to, as in `["cublas", "dl"]`."""

    @classmethod
    def variants(cls) -> tuple[tuple[str, type], ...]:
        """Return the component of each backend that has one, by the value of its key `backend`."""
        return tuple((str(backend), component(backend)) for backend in Backend if backend.facts.components)


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaComponent(Component):
    """Sources for CUDA."""

    backend: ClassVar[Backend] = Backend.CUDA
    cuda_capabilities: tuple[CudaTarget, ...] | None = None
    """CUDA capabilities to compile for, or pairs of one and a GPU; when absent, all that the toolkit supports."""
    cuda_flags: tuple[str, ...] = ()
    """Flags of nvcc, for `.cu` sources only."""
    cuda_minver: Version | None = None
    """Oldest CUDA toolkit that compiles this component; with an older one it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RocmComponent(Component):
    """Sources for ROCm."""

    backend: ClassVar[Backend] = Backend.ROCM
    rocm_archs: tuple[RocmArch, ...] | None = None
    """ROCm architectures to compile for; when absent, all that the toolkit supports."""
    hip_flags: tuple[str, ...] = ()
    """Compiler flags for `.cu` and `.hip` sources only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XpuComponent(Component):
    """Sources for XPU."""

    backend: ClassVar[Backend] = Backend.XPU
    sycl_flags: tuple[str, ...] = ()
    """Compiler flags for the SYCL sources of the component."""


_WITH_SETTINGS: tuple[type[Component], ...] = (CudaComponent, RocmComponent, XpuComponent)


@cache
def component(backend: Backend) -> type[Component]:
    """Return the component of a backend: one with settings of its own, or the plain one of its name."""
    own = next((found for found in _WITH_SETTINGS if found.backend is backend), None)
    if own is not None:
        return own
    body = {"__doc__": f"Sources for {backend.facts.title}.", "__slots__": (), "backend": backend}
    plain: type[Component] = type(f"{backend.value.capitalize()}Component", (Component,), body)
    return plain


SourceTable = Binding | Component
"""A table that lists sources."""
