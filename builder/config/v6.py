"""Edition 6, a preview of what may come: it is edition 5, but `general.upstream` is a list of repositories."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from builder.config import source_tables, v5
from builder.config.dependencies import PythonDependency
from builder.config.giturl import GitUrl
from builder.config.source_tables import Component, Extension, ExtensionName
from builder.config.sources import ForeignSource, GenerateStep, SourceName
from builder.config.values import Backend, ComponentName, KernelName


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """Settings of the whole kernel."""

    name: KernelName
    version: int = field(metadata={"minimum": 0})
    edition: Literal[6] = field(default=6, metadata={"required": True})
    license: str
    upstream: tuple[GitUrl, ...] = ()
    source: GitUrl | None = None
    backends: tuple[Backend, ...]
    kernel_depends: tuple[v5.KernelDependency, ...] = ()
    python_depends: tuple[PythonDependency, ...] = ()
    cuda: v5.CudaGeneral | None = None
    neuron: v5.NeuronGeneral | None = None
    tpu: v5.TpuGeneral | None = None
    xpu: v5.XpuGeneral | None = None
    hub: v5.Hub | None = None

    def in_memory(self) -> v5.General:
        """Return the same as the other editions are kept: the first repository is the one that clients are told."""
        return v5.General(
            name=self.name,
            version=self.version,
            license=self.license,
            upstream=self.upstream[0] if self.upstream else None,
            more_upstreams=self.upstream[1:],
            source=self.source,
            backends=self.backends,
            kernel_depends=self.kernel_depends,
            python_depends=self.python_depends,
            cuda=self.cuda,
            neuron=self.neuron,
            tpu=self.tpu,
            xpu=self.xpu,
            hub=self.hub,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A file of edition 6."""

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = v5.Config.EXACTLY_ONE

    general: General
    torch: source_tables.Torch | None = None
    torch_noarch: source_tables.TorchNoarch | None = None
    tvm_ffi: source_tables.TvmFfi | None = None
    ctypes: source_tables.Ctypes | None = field(default=None, metadata={"ours": True})
    kernel: Mapping[ComponentName, Component] = field(default_factory=dict)
    extension: Mapping[ExtensionName, Extension] = field(default_factory=dict, metadata={"ours": True})
    sources: Mapping[SourceName, ForeignSource] = field(default_factory=dict)
    generate: tuple[GenerateStep, ...] = field(default=(), metadata={"ours": True})
    wheel: v5.Wheel | None = field(default=None, metadata={"ours": True})
    require: v5.Require | None = field(default=None, metadata={"ours": True})
    matrix: v5.Matrix | None = None
    build: v5.Build | None = None

    def upgrade(self) -> v5.Config:
        """Return the same kernel as the other editions are kept."""
        return v5.Config(
            general=self.general.in_memory(),
            torch=self.torch,
            torch_noarch=self.torch_noarch,
            tvm_ffi=self.tvm_ffi,
            ctypes=self.ctypes,
            kernel=self.kernel,
            extension=self.extension,
            sources=self.sources,
            generate=self.generate,
            wheel=self.wheel,
            require=self.require,
            matrix=self.matrix,
            build=self.build,
        )
