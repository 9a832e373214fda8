"""The tables that say how a kernel's library binds to its framework, in the current schema."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from builder.config.exports import ExportGlob
from builder.config.extensions import Extension
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
    Version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """How the kernel binds to PyTorch."""

    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ("stable-abi", "python-abi")

    src: tuple[ProjectPath, ...] = ()
    """Sources and headers of the binding, relative to the project root; an entry may be a glob."""
    exclude: tuple[ProjectPath, ...] = field(default=(), metadata={"ours": True})
    """Files and globs that are taken out of `src`, relative to the project root."""
    include: tuple[ProjectPath, ...] = ()
    """Include directories of the binding sources, relative to the project root."""
    minver: Version | None = None
    """Oldest PyTorch to build for, inclusive."""
    maxver: Version | None = None
    """Newest PyTorch to build for, inclusive: `"2.12"` admits 2.12.1."""
    pyext: tuple[PyExt, ...] | None = None
    """Extensions of the files that ship from `torch-ext/`; `py` and `pyi` when absent."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags of the binding sources, for C++ only."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict, metadata={"ours": True})
    """Macros of the binding sources: `true` defines one without a value, `false` does not
    define it, a number or a text is its value as it stands."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict, metadata={"ours": True})
    """Flags of single sources, after all others: a table from a file or a glob to the flags of those that it names."""
    libraries: tuple[LibraryName, ...] = field(default=(), metadata={"ours": True})
    """Libraries of the toolkit or of the system that the kernel is linked to, as in `["cublas", "dl"]`; on each
    backend those that it has."""
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
class TvmFfi:
    """How the kernel binds to tvm-ffi."""

    src: tuple[ProjectPath, ...]
    """Sources and headers of the binding, relative to the project root; an entry may be a glob."""
    exclude: tuple[ProjectPath, ...] = field(default=(), metadata={"ours": True})
    """Files and globs that are taken out of `src`, relative to the project root."""
    include: tuple[ProjectPath, ...] = ()
    """Include directories of the binding sources, relative to the project root."""
    pyext: tuple[PyExt, ...] | None = None
    """Extensions of the files that ship from `tvm-ffi-ext/`; `py` and `pyi` when absent."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags of the binding sources, for C++ only."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict, metadata={"ours": True})
    """Macros of the binding sources: `true` defines one without a value, `false` does not
    define it, a number or a text is its value as it stands."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict, metadata={"ours": True})
    """Flags of single sources, after all others: a table from a file or a glob to the flags of those that it names."""
    libraries: tuple[LibraryName, ...] = field(default=(), metadata={"ours": True})
    """Libraries of the toolkit or of the system that the kernel is linked to, as in `["cublas", "dl"]`; on each
    backend those that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ctypes:
    """A plain shared library, without a framework, which Python loads by ctypes."""

    exports: tuple[ExportGlob, ...]
    """The functions of C that the library exports, as in `["cquantize_*"]`; it keeps everything else to itself."""
    backend_exports: Mapping[Backend, tuple[ExportGlob, ...]] = field(default_factory=dict)
    """Those that the library of one backend exports besides, as in `{ cuda = ["get_context"] }`."""
    src: tuple[ProjectPath, ...] = ()
    """Sources and headers of every backend, relative to the project root; an entry may be a glob."""
    exclude: tuple[ProjectPath, ...] = ()
    """Files and globs that are taken out of `src`, relative to the project root."""
    include: tuple[ProjectPath, ...] = ()
    """Include directories of these sources, relative to the project root."""
    pyext: tuple[PyExt, ...] | None = None
    """Extensions of the files that ship from `ctypes-ext/`; `py` and `pyi` when absent."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags of these sources, for C and C++ only."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict)
    """Macros of these sources: `true` defines one without a value, `false` does not define it, a number or a text is
    its value as it stands."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict)
    """Flags of single sources, after all others: a table from a file or a glob to the flags of those that it names."""
    libraries: tuple[LibraryName, ...] = ()
    """Libraries of the toolkit or of the system that the kernel is linked to, as in `["cublas", "dl"]`; on each
    backend those that it has."""

    def exports_of(self, backend: Backend) -> tuple[ExportGlob, ...]:
        """Return what the library of a backend exports."""
        return tuple(dict.fromkeys((*self.exports, *self.backend_exports.get(backend, ()))))


Binding = Torch | TvmFfi | Ctypes | Extension
"""A table that says how a library binds to its framework."""
