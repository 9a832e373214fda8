"""Schema 1: components have a language; ROCm is a by-product of CUDA."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from builder.config import source_tables, v2, v3
from builder.config.dependencies import Dependency
from builder.config.gpus import CudaTarget
from builder.config.shape import carried
from builder.config.values import (
    Backend,
    ComponentName,
    InvalidValueError,
    KernelName,
    ProjectPath,
    PyExt,
    RocmArch,
)


class Language(str, Enum):
    """The language of a component."""

    CUDA = "cuda"
    CUDA_HIPIFY = "cuda-hipify"
    METAL = "metal"


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """Settings of the whole kernel."""

    name: KernelName


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """The binding of the kernel to PyTorch."""

    src: tuple[ProjectPath, ...] = ()
    include: tuple[ProjectPath, ...] = ()
    pyext: tuple[PyExt, ...] | None = None
    universal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Sources that are compiled in the same way."""

    language: Language = Language.CUDA
    cuda_capabilities: tuple[CudaTarget, ...] | None = None
    rocm_archs: tuple[RocmArch, ...] | None = None
    depends: tuple[Dependency, ...]
    src: tuple[ProjectPath, ...]
    include: tuple[ProjectPath, ...] = ()

    def upgrade(self) -> Iterator[source_tables.Component]:
        """Yield a component for each backend that the language stands for."""
        if self.language is Language.METAL:
            yield source_tables.component(Backend.METAL)(depends=self.depends, src=self.src, include=self.include)
            return
        yield source_tables.CudaComponent(
            depends=self.depends,
            src=self.src,
            include=self.include,
            cuda_capabilities=self.cuda_capabilities,
        )
        if self.language is Language.CUDA_HIPIFY:
            yield source_tables.RocmComponent(
                depends=self.depends, src=self.src, include=self.include, rocm_archs=self.rocm_archs
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A schema 1 file."""

    general: General
    torch: Torch | None = None
    kernel: Mapping[ComponentName, Component] = field(default_factory=dict)

    def upgrade(self) -> v2.Config:
        """Return the same kernel in schema 2, which has a component for each backend.

        Raises:
            InvalidValueError: two components would get the same name.
        """
        upgraded: dict[ComponentName, source_tables.Component] = {}
        for name, component in self.kernel.items():
            upgraded[name], *of_rocm = component.upgrade()
            if not of_rocm:
                continue
            rocm: ComponentName = ComponentName(f"{name}_rocm")
            if rocm in self.kernel:
                message = f"the ROCm half of '{name}' would be called '{rocm}', and there is one of that name"
                raise InvalidValueError(message, code="B037", path=("kernel", rocm), help=f"rename '{rocm}'")
            (upgraded[rocm],) = of_rocm
        torch = self.torch
        return v2.Config(
            general=v2.General(name=self.general.name, universal=torch is not None and torch.universal),
            torch=None if torch is None else carried(torch, v3.Torch),
            kernel=upgraded,
        )
