"""Schema 4: files without `edition`; it has no kernel dependencies, no TPU, and one stable ABI for all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from builder.config import source_tables, v5
from builder.config.dependencies import (
    CudaPythonDependency,
    NeuronPythonDependency,
    PythonDependency,
    XpuPythonDependency,
)
from builder.config.giturl import GitUrl
from builder.config.values import Backend, ComponentName, KernelName, ProjectPath, PyExt, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaGeneral:
    """Settings for CUDA only."""

    minver: Version | None = None
    maxver: Version | None = None
    python_depends: tuple[CudaPythonDependency, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronGeneral:
    """Settings for Neuron only."""

    python_depends: tuple[NeuronPythonDependency, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class XpuGeneral:
    """Settings for XPU only."""

    python_depends: tuple[XpuPythonDependency, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """Settings of the whole kernel."""

    name: KernelName
    version: int = field(metadata={"minimum": 0})
    license: str
    upstream: GitUrl | None = None
    source: GitUrl | None = None
    backends: tuple[Backend, ...]
    python_depends: tuple[PythonDependency, ...] = ()
    cuda: CudaGeneral | None = None
    neuron: NeuronGeneral | None = None
    xpu: XpuGeneral | None = None
    hub: v5.Hub | None = None

    def upgrade(self) -> v5.General:
        """Return the same in edition 5."""
        return v5.General(
            name=self.name,
            version=self.version,
            license=self.license,
            upstream=self.upstream,
            source=self.source,
            backends=self.backends,
            python_depends=self.python_depends,
            cuda=None
            if self.cuda is None
            else v5.CudaGeneral(
                minver=self.cuda.minver, maxver=self.cuda.maxver, python_depends=self.cuda.python_depends
            ),
            neuron=None if self.neuron is None else v5.NeuronGeneral(python_depends=self.neuron.python_depends),
            xpu=None if self.xpu is None else v5.XpuGeneral(python_depends=self.xpu.python_depends),
            hub=self.hub,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """How the kernel binds to PyTorch."""

    src: tuple[ProjectPath, ...] = ()
    include: tuple[ProjectPath, ...] = ()
    minver: Version | None = None
    maxver: Version | None = None
    pyext: tuple[PyExt, ...] | None = None
    cxx_flags: tuple[str, ...] = ()
    stable_abi: Version | None = None

    def upgrade(self, backends: tuple[Backend, ...]) -> source_tables.Torch:
        """Return the same in edition 5, with a stable ABI for each of `backends`."""
        return source_tables.Torch(
            src=self.src,
            include=self.include,
            minver=self.minver,
            maxver=self.maxver,
            pyext=self.pyext,
            cxx_flags=self.cxx_flags,
            stable_abi=None if self.stable_abi is None else dict.fromkeys(backends, self.stable_abi),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A schema 4 file."""

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = v5.Config.EXACTLY_ONE

    general: General
    torch: Torch | None = None
    torch_noarch: source_tables.TorchNoarch | None = None
    tvm_ffi: source_tables.TvmFfi | None = None
    kernel: Mapping[ComponentName, source_tables.Component] = field(default_factory=dict)

    def upgrade(self) -> v5.Config:
        """Return the same kernel in edition 5."""
        return v5.Config(
            general=self.general.upgrade(),
            torch=None if self.torch is None else self.torch.upgrade(self.general.backends),
            torch_noarch=self.torch_noarch,
            tvm_ffi=self.tvm_ffi,
            kernel=self.kernel,
        )
