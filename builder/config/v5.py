"""Edition 5 of the config, the current schema; all others are upgraded to it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Literal

from builder.config.dependencies import (
    CudaPythonDependency,
    NeuronPythonDependency,
    PythonDependency,
    TpuPythonDependency,
    XpuPythonDependency,
)
from builder.config.giturl import GitUrl
from builder.config.gpus import GpuName
from builder.config.libraries import LibraryName
from builder.config.source_tables import (
    Binding,
    Component,
    Ctypes,
    Extension,
    ExtensionName,
    SourceTable,
    Torch,
    TorchNoarch,
    TvmFfi,
)
from builder.config.sources import ForeignSource, GenerateStep, SourceName, foreign_path, is_output
from builder.config.text import KeyPath
from builder.config.values import (
    Backend,
    ComponentName,
    Framework,
    KernelName,
    LoadTestRule,
    ProjectPath,
    System,
    ToolchainChoice,
    ToolkitVersion,
    Version,
)
from builder.config.wheel_values import PackageRequirement, WheelSize, WheelVersion

EDITION = 5
"""The number of this schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDependency:
    """Another kernel on the hub that this kernel loads."""

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = ("version", "revision")

    repo_id: str
    """Repository of the kernel on the hub, as in `"kernels-community/relu"`."""
    version: int | None = field(default=None, metadata={"minimum": 0})
    """Major version of the API of that kernel. Give this or `revision`."""
    revision: str | None = None
    """Branch, tag or commit of that repository. Give this or `version`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaGeneral:
    """Settings for CUDA only."""

    minver: Version | None = None
    """Oldest CUDA toolkit to build with, inclusive."""
    maxver: Version | None = None
    """Newest CUDA toolkit to build with, inclusive."""
    kernel_depends: tuple[KernelDependency, ...] = field(default=(), metadata={"new": True})
    """Kernels on the hub that this kernel loads on CUDA."""
    python_depends: tuple[CudaPythonDependency, ...] = ()
    """Python packages that the kernel imports on CUDA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronGeneral:
    """Settings for Neuron only."""

    kernel_depends: tuple[KernelDependency, ...] = field(default=(), metadata={"new": True})
    """Kernels on the hub that this kernel loads on Neuron."""
    python_depends: tuple[NeuronPythonDependency, ...] = ()
    """Python packages that the kernel imports on Neuron."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuGeneral:
    """Settings for TPU only."""

    python_depends: tuple[TpuPythonDependency, ...] = ()
    """Python packages that the kernel imports on TPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XpuGeneral:
    """Settings for XPU only."""

    kernel_depends: tuple[KernelDependency, ...] = field(default=(), metadata={"new": True})
    """Kernels on the hub that this kernel loads on XPU."""
    python_depends: tuple[XpuPythonDependency, ...] = ()
    """Python packages that the kernel imports on XPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """The hub repository to publish the kernel in."""

    repo_id: str | None = None
    """Repository on the hub, as in `"kernels-community/relu"`."""
    branch: str | None = None
    """Branch of that repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """Settings of the whole kernel."""

    name: KernelName
    """Name of the kernel; the Python module has this name with `_` for `-`."""
    version: int = field(metadata={"minimum": 0})
    """Major version of the kernel's API; raise it when callers must change."""
    edition: Literal[5] = field(default=5, metadata={"required": True, "new": True})
    """Version of this format."""
    license: str
    """License of the kernel, an SPDX expression such as `"Apache-2.0"`."""
    upstream: GitUrl | None = None
    """Git repository that the kernel's code was taken from."""
    more_upstreams: tuple[GitUrl, ...] = field(default=(), metadata={"internal": True})
    """More such repositories, which only edition 6 can name."""
    source: GitUrl | None = None
    """Git repository of this kernel."""
    backends: tuple[Backend, ...]
    """Backends that the kernel supports."""
    kernel_depends: tuple[KernelDependency, ...] = field(default=(), metadata={"new": True})
    """Kernels on the hub that this kernel loads, on every backend."""
    python_depends: tuple[PythonDependency, ...] = ()
    """Python packages that the kernel imports, on every backend."""
    cuda: CudaGeneral | None = None
    """Settings for CUDA only."""
    neuron: NeuronGeneral | None = None
    """Settings for Neuron only."""
    tpu: TpuGeneral | None = field(default=None, metadata={"new": True})
    """Settings for TPU only."""
    xpu: XpuGeneral | None = None
    """Settings for XPU only."""
    hub: Hub | None = None
    """The hub repository to publish the kernel in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixBackend:
    """Selects the cells of one backend."""

    systems: tuple[System, ...] | None = None
    """Systems to build this backend for, as in `["x86_64-linux"]`."""
    toolkits: tuple[ToolkitVersion, ...] | None = None
    """Toolkit versions to keep, as in `["12.6", "13.0"]`."""
    ptxas: ToolkitVersion | None = None
    """CUDA only: assemble with the `ptxas` of this newer toolkit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Selects the cells to build; an extension that the public kernel-builder does not read."""

    systems: tuple[System, ...] | None = None
    """Systems to build for, as in `["x86_64-linux"]`."""
    backend: Mapping[Backend, MatrixBackend] = field(default_factory=dict, metadata={"rest": True})
    """Selects the cells of one backend, in `[matrix.<backend>]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Settings for compiling and judging wheels; an extension that the public kernel-builder does not read."""

    load_test: LoadTestRule = LoadTestRule.REQUIRE
    """The rule for a wheel that cannot be imported on the machine that built it: `require`, the default, refuses it;
    `try` notes the error and keeps it; `skip` imports nothing."""
    toolchain: ToolchainChoice = ToolchainChoice.SYSTEM
    """The C++ compilers: `system`, the default, uses the machine's own; `pinned` gives the same wheel on any Linux.
    `--toolchain` overrides this key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """Contents and requirements of the wheel, other than its library."""

    version: WheelVersion | None = None
    """Version of the wheel, as in `"2.8.4"`; its major version is `general.version`, and the default is
    `general.version` with `.0.0`. `builder build --wheel-version` overrides this key."""
    readme: ProjectPath | None = None
    """File in UTF-8 that indexes show as the description of the wheel, relative to the project root, as in
    `"README.md"`: Markdown or reStructuredText by its suffix, otherwise plain text."""
    package: ProjectPath | None = None
    """Folder of the Python package, as in `"python/gsplat"`; by default, `torch-ext/<module>`, `tvm-ffi-ext/<module>`
    or `ctypes-ext/<module>`. In the wheel, the folder has the name of the module."""
    requires: tuple[PackageRequirement, ...] = ()
    """Python packages that the kernel needs, as in `["tokenizers>=0.20"]`: any package on an index, in the form of PEP
    508. The wheel requires them, and its load test installs them."""
    data: tuple[ProjectPath, ...] = ()
    """Data files of the Python package to put into the wheel, relative to the project root; an entry may be a glob, as
    in `["python/gsplat/**/*.json"]`."""
    max_size: WheelSize | None = None
    """The largest allowed wheel, as in `"200 MB"`: the audit refuses a larger one. MB means 1,000,000 bytes, MiB
    1,048,576; kB, GB, KiB and GiB are units as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionBudget:
    """The most that some functions of the device code may take.

    Of several tables that name a function, the last one that has a key counts for it.
    """

    names: tuple[str, ...] = ("*",)
    """Globs of the functions' names in the source, as in `["my::attention*", "tile<256>*"]`, or of mangled names."""
    gpus: tuple[GpuName, ...] = ()
    """The code that one of these GPUs runs, by product or architecture; all code when it is empty."""
    max_registers: int | None = field(default=None, metadata={"minimum": 1})
    """The most registers of a thread."""
    no_spills: bool | None = None
    """Whether registers may not be spilled to memory; `false` allows it where another table does not."""
    max_shared_memory: int | None = field(default=None, metadata={"minimum": 0})
    """The most bytes of shared memory of a block, without what a launch adds."""
    min_occupancy: int | None = field(default=None, metadata={"minimum": 0})
    """The least percentage of its waves (warps) that each GPU keeps running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    """Properties that the audit requires of a wheel."""

    gpus: tuple[GpuName, ...] = ()
    """GPUs that run every kernel of the wheels for their backend, by product or architecture, as in
    `["H100", "8.6", "gfx942"]`: on machine code, or on PTX that the driver compiles."""
    max_registers: int | None = field(default=None, metadata={"minimum": 1})
    """The most registers of a thread, for every function of the device code."""
    no_spills: bool | None = None
    """Whether no function may spill registers to memory."""
    max_shared_memory: int | None = field(default=None, metadata={"minimum": 0})
    """The most bytes of shared memory of a block, without what a launch adds, for every function."""
    min_occupancy: int | None = field(default=None, metadata={"minimum": 0})
    """The least percentage of its waves (warps) that each GPU keeps running, for every function."""
    functions: tuple[FunctionBudget, ...] = ()
    """Limits of some functions, in place of those of all: by `names`, globs as in `["my::attention*"]`, and for the
    code that some `gpus` run. Of several that name a function, the last one that has a key counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A kernel, as its `build.toml` describes it."""

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = ("torch", "torch-noarch", "tvm-ffi", "ctypes")

    general: General
    """Settings of the whole kernel."""
    torch: Torch | None = None
    """The binding of the kernel to PyTorch. A config has exactly one of `[torch]`, `[torch-noarch]`, `[tvm-ffi]` and
    `[ctypes]`."""
    torch_noarch: TorchNoarch | None = None
    """A pure-Python kernel, for PyTorch."""
    tvm_ffi: TvmFfi | None = None
    """The binding of the kernel to tvm-ffi."""
    ctypes: Ctypes | None = field(default=None, metadata={"ours": True})
    """A plain shared library without a framework, which Python loads with ctypes."""
    kernel: Mapping[ComponentName, Component] = field(default_factory=dict)
    """Compiled components, by name: sources of one backend that are compiled with the same settings."""
    extension: Mapping[ExtensionName, Extension] = field(default_factory=dict, metadata={"ours": True})
    """Additional libraries of the wheel, by name. A component selects its library with the key `extension`."""
    sources: Mapping[SourceName, ForeignSource] = field(default_factory=dict, metadata={"new": True})
    """Source trees of other projects, by name; an extension that the public kernel-builder does not read."""
    generate: tuple[GenerateStep, ...] = field(default=(), metadata={"ours": True})
    """Scripts that write sources before the build compiles them."""
    wheel: Wheel = field(default_factory=Wheel, metadata={"ours": True})
    """Contents and requirements of the wheel, other than its library."""
    require: Require = field(default_factory=Require, metadata={"ours": True})
    """Properties that the audit requires of a wheel."""
    matrix: Matrix = field(default_factory=Matrix, metadata={"new": True})
    """Selects the cells to build; an extension that the public kernel-builder does not read."""
    build: Build = field(default_factory=Build, metadata={"new": True})
    """Settings for compiling and judging wheels; an extension that the public kernel-builder does not read."""

    @property
    def framework(self) -> Framework:
        """The framework whose table is in the config."""
        if self.torch is not None:
            return Framework.TORCH
        if self.torch_noarch is not None:
            return Framework.TORCH_NOARCH
        return Framework.TVM_FFI if self.tvm_ffi is not None else Framework.CTYPES

    def bindings(self, backend: Backend | None = None) -> Iterator[tuple[KeyPath, Binding]]:
        """Yield the tables that bind to the framework, with their places: the main table, and those of extensions."""
        if self.torch is not None:
            yield ("torch",), self.torch
        if self.tvm_ffi is not None:
            yield ("tvm-ffi",), self.tvm_ffi
        if self.ctypes is not None:
            yield ("ctypes",), self.ctypes
        for name in self.extension if backend is None else self.extensions(backend):
            yield ("extension", name), self.extension[name]

    def tables(self, backend: Backend | None = None) -> Iterator[tuple[KeyPath, SourceTable]]:
        """Yield the tables that list sources, with their places: for one backend, or for all."""
        yield from self.bindings(backend)
        for name, part in self.kernel.items():
            if backend in (None, part.backend):
                yield ("kernel", name), part

    def entries(self, *keys: str) -> Iterator[tuple[KeyPath, str]]:
        """Yield each entry of file lists such as `src`, in every table, with its place."""
        for path, table in self.tables():
            for key in keys:
                yield from (((*path, key, number), entry) for number, entry in enumerate(getattr(table, key)))

    def is_elsewhere(self, entry: str) -> bool:
        """Whether a build fetches or generates the files of a `src` entry."""
        return foreign_path(entry, self.sources) is not None or is_output(entry, self.generate)

    def extensions(self, backend: Backend) -> tuple[ExtensionName, ...]:
        """Return the names of the extensions that have a component for `backend`, in the file's order."""
        named = {part.extension for part in self.components(backend).values()}
        return tuple(name for name in self.extension if name in named)

    def of_library(self, name: str | None) -> "Config":
        """Return the config reduced to one library: an extension's, or the main one for None."""
        torch, own = self.torch, None if name is None else self.extension[ExtensionName(name)]
        if torch is not None and own is not None:
            torch = replace(torch, **{each.name: getattr(own, each.name) for each in fields(Binding)})
        parts = {key: part for key, part in self.kernel.items() if part.extension == name}
        return replace(self, torch=torch, kernel=parts, extension={})

    def components(self, backend: Backend) -> Mapping[str, Component]:
        """Return the components of one backend, in the file's order."""
        return {name: part for name, part in self.kernel.items() if part.backend == backend}

    def stable_abi(self, backend: Backend) -> Version | None:
        """Return the LibTorch stable ABI that `backend` targets."""
        stable = None if self.torch is None else self.torch.stable_abi
        return stable.get(backend) if isinstance(stable, Mapping) else stable

    def of_each_python(self, backend: Backend) -> bool:
        """Whether `backend` has a separate library for each Python."""
        return self.torch is not None and self.torch.python_abi is not None and bool(self.components(backend))

    @property
    def pyext(self) -> tuple[str, ...]:
        """File name extensions that ship from the Python package."""
        table = self.torch or self.torch_noarch or self.tvm_ffi or self.ctypes
        return ("py", "pyi") if table is None or table.pyext is None else table.pyext

    def python_depends(self, backend: Backend) -> tuple[str, ...]:
        """Return the names of the Python packages that `backend` needs."""
        own = getattr(self.general, backend.value, None)  # some backends have no table
        return (*self.general.python_depends, *getattr(own, "python_depends", ()))

    @property
    def wheel_version(self) -> str:
        """The version of the wheel, unless an option gives another one."""
        return self.wheel.version or f"{self.general.version}.0.0"

    def required_gpus(self, backend: Backend) -> tuple[GpuName, ...]:
        """Return the required GPUs of a backend."""
        return tuple(name for name in self.require.gpus if name.gpu.backend is backend)

    def function_budgets(self, backend: Backend) -> tuple[FunctionBudget, ...]:
        """Return the limits of the functions of a backend, of which the last one that fits counts."""
        if not backend.facts.device_code:
            return ()
        found = self.require
        whole = FunctionBudget(
            max_registers=found.max_registers,
            no_spills=found.no_spills,
            max_shared_memory=found.max_shared_memory,
            min_occupancy=found.min_occupancy,
        )
        own = (each for each in found.functions if not each.gpus or backend in {name.gpu.backend for name in each.gpus})
        return (*((whole,) if whole != FunctionBudget() else ()), *own)

    def kernel_depends(self, backend: Backend) -> tuple[KernelDependency, ...]:
        """Return the kernels of the hub that `backend` needs."""
        own = getattr(self.general, backend.value, None)
        return (*self.general.kernel_depends, *getattr(own, "kernel_depends", ()))

    def libraries(self, backend: Backend, *, without: Collection[str] = ()) -> tuple[LibraryName, ...]:
        """Return the libraries that the kernel links to on `backend`, leaving out the components in `without`."""
        tables: list[SourceTable] = [table for _, table in self.bindings(backend)]
        tables += [part for name, part in self.components(backend).items() if name not in without]
        named = [name for table in tables for name in table.libraries]
        if self.ctypes is not None and backend is Backend.CUDA:
            named.insert(0, LibraryName("cudart"))  # the compiler links to it, and no framework installs it
        return tuple(dict.fromkeys(name for name in named if name.facts.is_for(backend)))
