"""Edition 5 of the config: the current schema; every other one is upgraded to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from builder.config.values import Backend, Framework, KernelName, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDependency:
    """Another kernel of the hub that this one loads."""

    repo_id: str
    version: int | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaGeneral:
    """What holds for CUDA alone."""

    minver: Version | None = None
    maxver: Version | None = None
    kernel_depends: tuple[KernelDependency, ...] = ()
    python_depends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendGeneral:
    """What holds for one backend alone."""

    kernel_depends: tuple[KernelDependency, ...] = ()
    python_depends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuGeneral:
    """What holds for TPU alone."""

    python_depends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """Where the kernel is published."""

    repo_id: str | None = None
    branch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """What holds for the whole kernel."""

    name: KernelName
    version: int
    edition: int = 5
    license: str
    upstream: str | None = None
    source: str | None = None
    backends: tuple[Backend, ...]
    kernel_depends: tuple[KernelDependency, ...] = ()
    python_depends: tuple[str, ...] = ()
    cuda: CudaGeneral | None = None
    neuron: BackendGeneral | None = None
    tpu: TpuGeneral | None = None
    xpu: BackendGeneral | None = None
    hub: Hub | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """How the kernel binds to PyTorch."""

    src: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    minver: Version | None = None
    maxver: Version | None = None
    pyext: tuple[str, ...] | None = None
    cxx_flags: tuple[str, ...] = ()
    stable_abi: Mapping[Backend, Version] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchNoarch:
    """A kernel of Python alone."""

    pyext: tuple[str, ...] | None = None
    cuda_capabilities: tuple[str, ...] | None = None
    rocm_archs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TvmFfi:
    """How the kernel binds to tvm-ffi."""

    src: tuple[str, ...]
    include: tuple[str, ...] = ()
    pyext: tuple[str, ...] | None = None
    cxx_flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Component:
    depends: tuple[str, ...]
    src: tuple[str, ...]
    include: tuple[str, ...] = ()
    cxx_flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuComponent(_Component):
    """Sources for the CPU."""

    backend: ClassVar[Backend] = Backend.CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaComponent(_Component):
    """Sources for CUDA."""

    backend: ClassVar[Backend] = Backend.CUDA
    cuda_capabilities: tuple[str, ...] | None = None
    cuda_flags: tuple[str, ...] = ()
    cuda_minver: Version | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RocmComponent(_Component):
    """Sources for ROCm."""

    backend: ClassVar[Backend] = Backend.ROCM
    rocm_archs: tuple[str, ...] | None = None
    hip_flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetalComponent(_Component):
    """Sources for Metal."""

    backend: ClassVar[Backend] = Backend.METAL


@dataclass(frozen=True, slots=True, kw_only=True)
class XpuComponent(_Component):
    """Sources for XPU."""

    backend: ClassVar[Backend] = Backend.XPU
    sycl_flags: tuple[str, ...] = ()


Component = CpuComponent | CudaComponent | RocmComponent | MetalComponent | XpuComponent


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixBackend:
    """Which cells of one backend are built."""

    systems: tuple[str, ...] | None = None
    toolkits: tuple[str, ...] | None = None
    ptxas: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Which cells are built; an extension that the public parser does not know."""

    systems: tuple[str, ...] | None = None
    backend: Mapping[Backend, MatrixBackend] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A kernel, as its `build.toml` describes it."""

    general: General
    torch: Torch | None = None
    torch_noarch: TorchNoarch | None = None
    tvm_ffi: TvmFfi | None = None
    kernel: Mapping[str, Component] = field(default_factory=dict)
    matrix: Matrix | None = None

    @property
    def framework(self) -> Framework:
        """The framework whose table the config has."""
        if self.torch is not None:
            return Framework.TORCH
        return Framework.TORCH_NOARCH if self.torch_noarch is not None else Framework.TVM_FFI

    def components(self, backend: Backend) -> Mapping[str, Component]:
        """Return the components of one backend, in the file's order."""
        return {name: part for name, part in self.kernel.items() if part.backend == backend}

    def stable_abi(self, backend: Backend) -> Version | None:
        """Return the LibTorch stable ABI that `backend` targets."""
        return None if self.torch is None else self.torch.stable_abi.get(backend)

    @property
    def pyext(self) -> tuple[str, ...]:
        """Extensions of the files that ship from the Python package."""
        table = self.torch or self.torch_noarch or self.tvm_ffi
        return ("py", "pyi") if table is None or table.pyext is None else table.pyext

    def python_depends(self, backend: Backend) -> tuple[str, ...]:
        """Return the names of the Python packages that `backend` needs."""
        tables = {
            Backend.CUDA: self.general.cuda,
            Backend.NEURON: self.general.neuron,
            Backend.TPU: self.general.tpu,
            Backend.XPU: self.general.xpu,
        }
        own = tables.get(backend)
        return self.general.python_depends + (() if own is None else own.python_depends)
