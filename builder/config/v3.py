"""Schema 3: version, license and framework are optional; a kernel without a framework is pure Python."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from builder.config import source_tables, v4, v5
from builder.config.dependencies import PythonDependency
from builder.config.giturl import GitUrl
from builder.config.values import (
    Backend,
    ComponentName,
    InvalidValueError,
    KernelName,
    ProjectPath,
    PyExt,
    Version,
)

_VERSION = 1
"""What a kernel that says nothing about its version has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """Settings of the whole kernel."""

    name: KernelName
    version: int | None = field(default=None, metadata={"minimum": 0})
    license: str | None = None
    upstream: GitUrl | None = None
    backends: tuple[Backend, ...]
    python_depends: tuple[PythonDependency, ...] = ()
    cuda: v4.CudaGeneral | None = None
    neuron: v4.NeuronGeneral | None = None
    xpu: v4.XpuGeneral | None = None
    hub: v5.Hub | None = None

    def upgrade(self) -> v4.General:
        """Return the same in schema 4, which needs a license.

        Raises:
            InvalidValueError: the config names no license.
        """
        if self.license is None:
            raise InvalidValueError(
                "no license: schema 3 and older did without, this one does not",
                code="B036",
                help="add 'license = \"…\"', an SPDX expression, to [general], or run 'builder update --license SPDX'",
            )
        return v4.General(
            name=self.name,
            version=_VERSION if self.version is None else self.version,
            license=self.license,
            upstream=self.upstream,
            backends=self.backends,
            python_depends=self.python_depends,
            cuda=self.cuda,
            neuron=self.neuron,
            xpu=self.xpu,
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

    def upgrade(self) -> v4.Torch:
        """Return the same in schema 4."""
        return v4.Torch(src=self.src, include=self.include, minver=self.minver, maxver=self.maxver, pyext=self.pyext)


@dataclass(frozen=True, slots=True, kw_only=True)
class TvmFfi:
    """How the kernel binds to tvm-ffi."""

    src: tuple[ProjectPath, ...]
    include: tuple[ProjectPath, ...] = ()
    pyext: tuple[PyExt, ...] | None = None

    def upgrade(self) -> source_tables.TvmFfi:
        """Return the same in schema 4."""
        return source_tables.TvmFfi(src=self.src, include=self.include, pyext=self.pyext)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A schema 3 file."""

    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ("torch", "tvm-ffi")

    general: General
    torch: Torch | None = None
    tvm_ffi: TvmFfi | None = None
    kernel: Mapping[ComponentName, source_tables.Component] = field(default_factory=dict)
    noarch: source_tables.TorchNoarch | None = field(default=None, metadata={"internal": True})
    """What is kept of the framework of a universal kernel of schema 2; no key of a file."""

    def upgrade(self) -> v4.Config:
        """Return the same kernel in schema 4, which needs a framework."""
        without = self.torch is None and self.tvm_ffi is None
        return v4.Config(
            general=self.general.upgrade(),
            torch=None if self.torch is None else self.torch.upgrade(),
            torch_noarch=(self.noarch or source_tables.TorchNoarch()) if without else None,
            tvm_ffi=None if self.tvm_ffi is None else self.tvm_ffi.upgrade(),
            kernel=self.kernel,
        )
