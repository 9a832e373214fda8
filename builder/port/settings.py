"""The machines that a `setup.py` is made to see, one after the other."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from builder import toml
from builder.config.values import Backend, Version
from builder.lint import cxx_standard
from builder.matrix import rows
from builder.resources import DATA

_GPU = (9, 0)
_OTHER_GPU = (8, 0)
_ARCH_LIST = "8.0;9.0a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A machine: its toolkit, its GPU and its variables."""

    name: str
    cuda: str | None = None
    """Version of the CUDA toolkit."""
    hip: str | None = None
    gpu: tuple[int, int] | None = None
    """Capability of the GPU."""
    arch_list: str | None = None
    """`TORCH_CUDA_ARCH_LIST`."""

    @property
    def is_main(self) -> bool:
        """Whether it differs from the others by its toolkit alone."""
        return self.cuda is not None and self.gpu == _GPU and self.arch_list is None


@lru_cache
def facts() -> dict[str, Any]:
    """Return the tables of `cpp-extension.toml`."""
    return toml.loads((DATA / "cpp-extension.toml").read_text(encoding="utf-8"))


def toolkits() -> tuple[str, ...]:
    """Return the CUDA toolkits of the build matrix, and those that files of projects ask about, oldest first."""
    found = {Version(row.toolkit) for row in rows() if row.backend is Backend.CUDA and row.toolkit is not None}
    found |= set(map(Version, facts()["toolkits"]))
    return tuple(map(str, sorted(found)))


def torch_version() -> str:
    """Return the newest torch of the build matrix."""
    return f"{max(row.torch for row in rows())}.0"


def _newest(backend: Backend) -> str:
    found = (Version(row.toolkit) for row in rows() if row.backend is backend and row.toolkit is not None)
    return str(max(found))


def settings() -> tuple[Setting, ...]:
    """Return every machine, those with a CUDA toolkit and a GPU first."""
    versions = toolkits()
    newest = versions[-1]
    return (
        *(Setting(name=f"CUDA {version}", cuda=version, gpu=_GPU) for version in versions),
        Setting(name=f"CUDA {newest}, another GPU", cuda=newest, gpu=_OTHER_GPU),
        Setting(name=f"CUDA {newest}, no GPU", cuda=newest),
        Setting(name=f"CUDA {newest}, TORCH_CUDA_ARCH_LIST={_ARCH_LIST}", cuda=newest, gpu=_GPU, arch_list=_ARCH_LIST),
        Setting(name=f"ROCm {_newest(Backend.ROCM)}", hip=f"{_newest(Backend.ROCM)}.0", gpu=_GPU),
        Setting(name="no GPU and no toolkit"),
    )


def standard() -> int:
    """Return the C++ standard of the headers of the newest torch, which a rendered project compiles with."""
    newest = Version(torch_version().rpartition(".")[0])
    return cxx_standard.standard(newest)
