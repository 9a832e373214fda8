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
    """A C function that a library exports, or a glob, as in `cquantize_*`."""

    __slots__ = ()

    pattern = r"[A-Za-z_][A-Za-z0-9_*?]*"
    code = "B045"
    kind = "a name or a glob of functions of C"
    rule = "begin with a letter or '_', and use letters, digits, '_', '*' and '?', as in 'cquantize_*'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the name in a C declaration."""
        found = re.search(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(", text[:200], re.ASCII)
        return None if found is None else f"write '{found[1]}'"


def exported(names: Iterable[str], globs: Iterable[str]) -> frozenset[str]:
    """Return the names that match one of the globs."""
    wanted = re.compile("|".join(map(translate, globs)) or r"(?!)")  # one pattern: fnmatch caches only some
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
        """Return the name with only valid letters."""
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
    """Include directories for these sources, relative to the project root."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags for these sources, C++ only."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict, metadata={"ours": True})
    """Macros for these sources: `true` defines a macro without a value, `false` does not define it, and a number or a
    text is its value."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict, metadata={"ours": True})
    """Flags for single sources, after all other flags: a table from a file or a glob to the flags for these files."""
    libraries: tuple[LibraryName, ...] = field(default=(), metadata={"ours": True})
    """Libraries of the toolkit or of the system that this library is linked to, as in `["cublas", "dl"]`; each
    backend links to the ones that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension(Binding):
    """The binding of an additional library of the wheel to PyTorch."""

    when: When | None = None
    """The cells with this library: every entry must hold. In other cells, the library and its components are left out,
    and the wheel has no module for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch(Binding):
    """The binding of the kernel to PyTorch."""

    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ("stable-abi", "python-abi")

    minver: Version | None = None
    """Oldest PyTorch to build for, inclusive."""
    maxver: Version | None = None
    """Newest PyTorch to build for, inclusive: `"2.12"` admits 2.12.1."""
    pyext: tuple[PyExt, ...] | None = None
    """File name extensions that ship from `torch-ext/`; by default, `py` and `pyi`."""
    stable_abi: Version | Mapping[Backend, Version] | None = None
    """Build against the LibTorch stable ABI of this version: one version for every backend, or a table with an
    entry for each backend that does."""
    python_abi: PythonAbi | None = field(default=None, metadata={"ours": True})
    """`cpython`: the library may use all of Python's C API, as pybind11 does, and is built once for each Python that
    torch has; by default, one library serves every Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchNoarch:
    """A pure-Python kernel, for PyTorch."""

    pyext: tuple[PyExt, ...] | None = None
    """File name extensions that ship from `torch-ext/`; by default, `py` and `pyi`."""
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
    """File name extensions that ship from `tvm-ffi-ext/`; by default, `py` and `pyi`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ctypes(Binding):
    """A plain shared library without a framework, which Python loads with ctypes."""

    exports: tuple[ExportGlob, ...]
    """The C functions that the library exports, as in `["cquantize_*"]`; all others stay hidden."""
    backend_exports: Mapping[Backend, tuple[ExportGlob, ...]] = field(default_factory=dict)
    """More functions that the library of one backend exports, as in `{ cuda = ["get_context"] }`."""
    pyext: tuple[PyExt, ...] | None = None
    """File name extensions that ship from `ctypes-ext/`; by default, `py` and `pyi`."""
    src: tuple[ProjectPath, ...] = ()
    """Sources and headers of every backend, relative to the project root; an entry may be a glob."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags for these sources, C and C++ only."""

    def exports_of(self, backend: Backend) -> tuple[ExportGlob, ...]:
        """Return the functions that the library of a backend exports."""
        return tuple(dict.fromkeys((*self.exports, *self.backend_exports.get(backend, ()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Sources of one backend that are compiled with the same settings."""

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
    """The cells in which the component is compiled: every entry must hold. In other cells it is left out."""
    extension: ExtensionName | None = field(default=None, metadata={"ours": True})
    """The `[extension.<name>]` whose library the sources are linked into; by default, the library of `[torch]` or
    `[tvm-ffi]`."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict, metadata={"ours": True})
    """Macros for every source, in any language: `true` defines a macro without a value, `false` does not define it, and
    a number or a text is its value."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict, metadata={"ours": True})
    """Flags for single sources, after all other flags: a table from a file or a glob to the flags for these files."""
    libraries: tuple[LibraryName, ...] = field(default=(), metadata={"ours": True})
    """Libraries of the toolkit or of the system that the kernel is linked to, as in `["cublas", "dl"]`."""

    @classmethod
    def variants(cls) -> tuple[tuple[str, type], ...]:
        """Return the component class of each backend, by the value of the key `backend`."""
        return tuple((str(backend), component(backend)) for backend in Backend if backend.facts.components)


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaComponent(Component):
    """Sources for CUDA."""

    backend: ClassVar[Backend] = Backend.CUDA
    cuda_capabilities: tuple[CudaTarget, ...] | None = None
    """CUDA capabilities to compile for, or pairs of a capability and a GPU; by default, all that the toolkit
    supports."""
    cuda_flags: tuple[str, ...] = ()
    """Flags of nvcc, for `.cu` sources only."""
    cuda_minver: Version | None = None
    """Oldest CUDA toolkit that compiles this component; with an older toolkit, the component is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RocmComponent(Component):
    """Sources for ROCm."""

    backend: ClassVar[Backend] = Backend.ROCM
    rocm_archs: tuple[RocmArch, ...] | None = None
    """ROCm architectures to compile for; by default, all that the toolkit supports."""
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
    """Return the component class of a backend: its own, or one without settings that is made for its name."""
    own = next((found for found in _WITH_SETTINGS if found.backend is backend), None)
    if own is not None:
        return own
    body = {"__doc__": f"Sources for {backend.facts.title}.", "__slots__": (), "backend": backend}
    plain: type[Component] = type(f"{backend.value.capitalize()}Component", (Component,), body)
    return plain


SourceTable = Binding | Component
"""A table that lists sources."""
