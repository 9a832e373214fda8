"""Schema 2: no list of backends, but a flag for pure-Python kernels."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from builder.config import source_tables, v3, v5
from builder.config.dependencies import CudaPythonDependency, OldPythonDependency, PythonDependency
from builder.config.values import Backend, ComponentName, KernelName, Version

_UNIVERSAL = (Backend.CPU, Backend.CUDA, Backend.METAL, Backend.ROCM, Backend.XPU)
"""The backends of a universal kernel in this schema, without backends that came later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """Settings of the whole kernel."""

    name: KernelName
    universal: bool = False
    cuda_minver: Version | None = None
    cuda_maxver: Version | None = None
    hub: v5.Hub | None = None
    python_depends: tuple[OldPythonDependency, ...] = ()

    def upgrade(self, backends: tuple[Backend, ...]) -> v3.General:
        """Return the same settings in schema 3, for `backends`."""
        cuda = v5.CudaGeneral(
            minver=self.cuda_minver,
            maxver=self.cuda_maxver,
            python_depends=tuple(
                CudaPythonDependency(name) for name in self.python_depends if name in CudaPythonDependency.names()
            ),
        )
        return v3.General(
            name=self.name,
            backends=backends,
            python_depends=tuple(
                PythonDependency(name) for name in self.python_depends if name in PythonDependency.names()
            ),
            cuda=None if cuda == v5.CudaGeneral() else cuda,
            hub=self.hub,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A schema 2 file."""

    general: General
    torch: v3.Torch | None = None
    kernel: Mapping[ComponentName, source_tables.Component] = field(default_factory=dict)

    @property
    def backends(self) -> tuple[Backend, ...]:
        """The backends that the kernel supports."""
        if self.general.universal:
            return _UNIVERSAL
        return tuple(sorted({component.backend for component in self.kernel.values()}))

    def upgrade(self) -> v3.Config:
        """Return the same kernel in schema 3."""
        general = self.general.upgrade(self.backends)
        if self.general.universal and not self.kernel and (self.torch is None or not self.torch.src):
            noarch = None if self.torch is None else source_tables.TorchNoarch(pyext=self.torch.pyext)
            return v3.Config(general=general, noarch=noarch)
        return v3.Config(general=general, torch=self.torch, kernel=self.kernel)
