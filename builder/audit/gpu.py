"""What a GPU runs of a wheel, and the GPU that a user names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from builder.config.gpus import Gpu, known, table
from builder.errors import BuilderError
from builder.wording import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCode:
    """What one GPU runs of a wheel."""

    gpu: Gpu
    own: tuple[str, ...] = ()
    """Machine code for this very GPU."""
    older: tuple[str, ...] = ()
    """Machine code for an earlier GPU of its family, which runs on it."""
    ptx: tuple[str, ...] = ()
    """PTX that its driver compiles when the wheel is loaded."""
    cuda: str | None = None
    """The release of CUDA that the driver must be of, at least, to compile that PTX; None without PTX."""
    lacks: bool = False
    """Whether some of the device code has nothing for it, so that those kernels fail."""
    special: tuple[str, ...] = ()
    """What device code is for that is special code for other GPUs alone, such as `9.0a`; it lacks nothing by that."""

    @property
    def runs(self) -> bool:
        """Whether every kernel of the wheel has code for it."""
        return not self.lacks and bool(self.own or self.older or self.ptx)

    @property
    def text(self) -> str:
        """The answer in words."""
        return self._said(f"machine code for {', '.join(self.own)}")

    @property
    def way(self) -> str:
        """The answer in words that are the same for all GPUs with machine code of their own."""
        return self._said("machine code of its own")

    def _said(self, own: str) -> str:
        if not (self.own or self.older or self.ptx):
            return "nothing: kernels fail with 'no kernel image is available'"
        parts = [own] if self.own else []
        if self.older:
            parts.append(f"machine code for {', '.join(self.older)}, which it runs")
        if self.ptx:
            driver = f"; driver of CUDA {self.cuda} or newer" if self.cuda else ""
            parts.append(f"PTX for {', '.join(self.ptx)}, compiled at the first load{driver}")
        if self.special:
            parts.append(f"not the kernels for {', '.join(self.special)} alone")
        if self.lacks:
            parts.append("and nothing for other kernels, which fail")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, object]:
        """Return the answer as plain values."""
        return {
            "arch": self.gpu.arch,
            "names": list(self.gpu.names),
            "runs": self.runs,
            "own": list(self.own),
            "older": list(self.older),
            "ptx": list(self.ptx),
            "cuda": self.cuda,
            "lacks": self.lacks,
            "special": list(self.special),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "GpuCode":
        """Undo `to_dict`."""
        return cls(
            gpu=next(gpu for gpu in known() if gpu.arch == fields["arch"]),
            own=tuple(fields["own"]),
            older=tuple(fields["older"]),
            ptx=tuple(fields["ptx"]),
            cuda=fields["cuda"],
            lacks=fields["lacks"],
            special=tuple(fields["special"]),
        )


def named(text: str) -> Gpu:
    """Return the GPU that a user names, by its product or its architecture.

    Raises:
        BuilderError: none is called so.
    """
    wanted = text.strip().lower()
    for gpu in known():
        if wanted in gpu.words or any(wanted == word.rpartition(" ")[2] for word in gpu.words):
            return gpu
    names = [word for gpu in known() for word in (gpu.arch, *gpu.names)]
    guess = nearest(text, names)
    raise BuilderError(
        f"'{text}' is not a GPU that is known",
        help=f"did you mean '{guess}'?" if guess else "name one by its architecture, such as '9.0' or 'gfx942'",
    )


def cuda_of_ptx(version: str) -> str | None:
    """Return the release of CUDA whose drivers compile a version of PTX first; None for one that is not known."""
    found: str | None = table()["ptx"].get(version)
    return found
