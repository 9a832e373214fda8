"""Schema 3: version, license and framework are optional; a kernel without a framework is pure Python."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from builder.config import source_tables, v5
from builder.config.dependencies import PythonDependency
from builder.config.giturl import GitUrl
from builder.config.shape import carried
from builder.config.values import Backend, ComponentName, InvalidValueError, KernelName, ProjectPath, PyExt, Version

_VERSION = 1
"""The version of a kernel that does not name one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """Settings of the whole kernel."""

    name: KernelName
    version: int | None = field(default=None, metadata={"minimum": 0})
    license: str | None = None
    upstream: GitUrl | None = None
    backends: tuple[Backend, ...]
    python_depends: tuple[PythonDependency, ...] = ()
    cuda: v5.CudaGeneral | None = None
    neuron: v5.NeuronGeneral | None = None
    xpu: v5.XpuGeneral | None = None
    hub: v5.Hub | None = None

    def upgrade(self) -> v5.General:
        """Return the same settings in edition 5, which needs a license.

        Raises:
            InvalidValueError: the config names no license.
        """
        if self.license is None:
            raise InvalidValueError(
                "no license: schema 3 and older did without, this one does not",
                code="B036",
                help="add 'license = \"…\"', an SPDX expression, to [general], or run 'builder update --license SPDX'",
            )
        return carried(self, v5.General, version=_VERSION if self.version is None else self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """The binding of the kernel to PyTorch."""

    src: tuple[ProjectPath, ...] = ()
    include: tuple[ProjectPath, ...] = ()
    minver: Version | None = None
    maxver: Version | None = None
    pyext: tuple[PyExt, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TvmFfi:
    """The binding of the kernel to tvm-ffi."""

    src: tuple[ProjectPath, ...]
    include: tuple[ProjectPath, ...] = ()
    pyext: tuple[PyExt, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A schema 3 file."""

    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ("torch", "tvm-ffi")

    general: General
    torch: Torch | None = None
    tvm_ffi: TvmFfi | None = None
    kernel: Mapping[ComponentName, source_tables.Component] = field(default_factory=dict)
    noarch: source_tables.TorchNoarch | None = field(default=None, metadata={"internal": True})
    """The framework table of a universal kernel of schema 2; a file cannot contain it."""

    def upgrade(self) -> v5.Config:
        """Return the same kernel in edition 5, which needs a framework."""
        without = self.torch is None and self.tvm_ffi is None
        return v5.Config(
            general=self.general.upgrade(),
            torch=None if self.torch is None else carried(self.torch, source_tables.Torch),
            torch_noarch=(self.noarch or source_tables.TorchNoarch()) if without else None,
            tvm_ffi=None if self.tvm_ffi is None else carried(self.tvm_ffi, source_tables.TvmFfi),
            kernel=self.kernel,
        )
