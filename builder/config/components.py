"""The tables `[kernel.<name>]`: sources of one backend that are compiled in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from builder.config.conditions import When
from builder.config.cuda_targets import CudaTarget
from builder.config.dependency_names import Dependency
from builder.config.extensions import ExtensionName
from builder.config.libraries import LibraryName
from builder.config.values import (
    Backend,
    MacroName,
    MacroValue,
    ProjectPath,
    RocmArch,
    Version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Sources of one backend that are compiled in the same way."""

    backend: ClassVar[Backend]
    depends: tuple[Dependency, ...]
    """What the component compiles against, as in `["torch"]`."""
    src: tuple[ProjectPath, ...]
    """Sources and headers, relative to the project root; an entry may be a glob."""
    exclude: tuple[ProjectPath, ...] = field(default=(), metadata={"ours": True})
    """Files and globs that are taken out of `src`, relative to the project root."""
    include: tuple[ProjectPath, ...] = ()
    """Include directories, relative to the project root; the headers in them need not be listed in `src`."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags for C++ sources only."""
    when: When | None = field(default=None, metadata={"ours": True})
    """In which cells the component is compiled: where every entry holds. Elsewhere it is left out."""
    extension: ExtensionName | None = field(default=None, metadata={"ours": True})
    """The `[extension.<name>]` whose library the sources are linked into; when absent, that of `[torch]` or
    `[tvm-ffi]`."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict, metadata={"ours": True})
    """Macros of every source, whatever its language: `true` defines one without a value, `false` does not
    define it, a number or a text is its value as it stands."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict, metadata={"ours": True})
    """Flags of single sources, after all others: a table from a file or a glob to the flags of those that it names."""
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
