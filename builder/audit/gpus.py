"""Find the code that each GPU would run, as a driver chooses it from the libraries of a wheel."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from builder import codec
from builder.audit import occupancy
from builder.audit.library_members import named_as_library, unpacked
from builder.audit.report import Finding
from builder.audit.subject import Subject
from builder.binary import device_code
from builder.binary.device_image import Group, Image
from builder.binary.extension import Extension
from builder.config import Backend
from builder.config.gpus import Gpu, GpuName, known, table
from builder.errors import BuilderError
from builder.matrix import architectures
from builder.wheel.archive import Wheel
from builder.wording import nearest

RULE = "gpus"
_KEPT = 64
"""The number of cached answers: one for each kind of wheel that a kernel has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCode:
    """The code of a wheel that a GPU runs."""

    gpu: Gpu
    own: tuple[str, ...] = ()
    """Machine code for exactly this GPU."""
    older: tuple[str, ...] = ()
    """Machine code for an earlier GPU of the same family, which this GPU also runs."""
    ptx: tuple[str, ...] = ()
    """PTX that the driver compiles when the wheel is loaded."""
    cuda: str | None = None
    """The oldest release of CUDA whose driver compiles this PTX; None without PTX."""
    lacks: bool = False
    """Whether some kernels have no code for this GPU, so that they fail."""
    special: tuple[str, ...] = ()
    """Architectures of code for special GPUs only, such as `9.0a`; this GPU does not need that code."""

    @property
    def runs(self) -> bool:
        """Whether every kernel of the wheel runs on this GPU."""
        return not self.lacks and bool(self.own or self.older or self.ptx)

    @property
    def text(self) -> str:
        """The answer in words."""
        return self._said(f"machine code for {', '.join(self.own)}")

    @property
    def way(self) -> str:
        """The answer in words, but the same words for all GPUs with machine code of their own."""
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
        """Return the answer as JSON values."""
        fields = codec.encode(self)
        gpu = fields.pop("gpu")
        return {"arch": gpu["arch"], "names": gpu["names"], "runs": self.runs, **fields}


def named(text: str) -> Gpu:
    """Return the GPU with this product name or architecture.

    Raises:
        BuilderError: no GPU has this name.
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
    """Return the first release of CUDA whose drivers compile a version of PTX; None for an unknown version."""
    found: str | None = table()["ptx"].get(version)
    return found


def check(subject: Subject) -> Iterator[Finding]:
    """Report each GPU that the kernel's `[require]` lists and that cannot run the whole wheel."""
    names = subject.metadata.required_gpus
    if not names or subject.metadata.not_for_release is not None:
        return
    file = f"{subject.module}/metadata.json"
    known_names = [name for name in names if name in GpuName.names()]
    yield from missing((GpuName(name).gpu for name in known_names), of(subject), file)
    for name in names:
        if name not in known_names:
            why = "it is required, and is no GPU that this audit knows"
            yield Finding(file, RULE, name, why, "audit the wheel with the builder that made it, or a newer one")


def of(subject: Subject) -> tuple[GpuCode, ...]:
    """Return the code that each GPU of a wheel's backend runs; empty for a backend without device code."""
    facts = subject.facts
    if facts is None or not facts.backend.facts.device_code:
        return ()
    return _each(facts.backend, frozenset(group for library in subject.libraries for group in library.device_code))


def of_libraries(wheel: Wheel, backend: Backend) -> tuple[GpuCode, ...]:
    """Return the code that each GPU of a backend runs, from members with a library's name; empty without device code.

    Other members are not read: that would take most of the time when thousands of wheels are examined.

    Raises:
        BuilderError: a library cannot be read.
    """
    return of_groups(groups_of(wheel, backend), backend)


def of_groups(groups: frozenset[Group], backend: Backend) -> tuple[GpuCode, ...]:
    """Return the code that each GPU of a backend runs of some device code; empty without any."""
    return _each(backend, groups) if groups else ()


def groups_of(wheel: Wheel, backend: Backend) -> frozenset[Group]:
    """Return the device code in the libraries of a wheel, of which those of a backend run one image of each group.

    Raises:
        BuilderError: a library cannot be read.
    """
    groups: set[Group] = set()
    if not backend.facts.device_code:
        return frozenset()
    for name, member in wheel.members.items():
        if member.size and named_as_library(name):
            with unpacked(member) as data:
                without = Extension.read(name, data).relocatable_device_code
                groups |= device_code.groups(name, data, without=without)
    return frozenset(groups)


@lru_cache(maxsize=_KEPT)
def _each(backend: Backend, groups: frozenset[Group]) -> tuple[GpuCode, ...]:
    """Return the code that each GPU of a backend runs; cached, since a kernel's wheels mostly have the same groups."""
    return tuple(choose(gpu, groups) for gpu in known() if gpu.backend is backend)


def missing(required: Iterable[Gpu], found: Iterable[GpuCode], file: str) -> Iterator[Finding]:
    """Report each GPU that must run the whole wheel and does not."""
    codes = {code.gpu: code for code in found}
    for gpu in required:
        code = codes.get(gpu, GpuCode(gpu=gpu))
        if not code.runs:
            why = f"it is required, and the wheel has {code.text}"
            remedy = f"add '{gpu.arch}' to the architectures of each component that it is to run"
            yield Finding(file, RULE, f"{gpu.names[0]} ({gpu.arch})", why, remedy)


def choose(gpu: Gpu, groups: Iterable[Group]) -> GpuCode:
    """Choose the code that `gpu` runs: from each group the nearest machine code, or else the newest PTX.

    A group that has only special code, such as `9.0a`, is for special GPUs: other GPUs do not need it.
    """
    archs: dict[str, set[str]] = {"own": set(), "older": set(), "ptx": set(), "special": set()}
    versions: set[str] = set()
    lacks = False
    for group in groups:
        image = chosen(gpu, group)
        if image is None and all(is_special(each) for each in group):
            archs["special"].update(each.arch for each in group)
        elif image is None:
            lacks = True
        elif image.kind == "ptx":
            archs["ptx"].add(image.arch)
            versions.update([image.version] if image.version else [])
        else:
            own = image.arch.partition(":")[0].rstrip("af") in {gpu.arch, gpu.also} or gpu.backend is Backend.ROCM
            archs["own" if own else "older"].add(image.arch)
    newest = max(versions, key=architectures.natural, default=None)
    ordered = {kind: tuple(sorted(found, key=architectures.natural)) for kind, found in archs.items()}
    return GpuCode(gpu=gpu, **ordered, cuda=None if newest is None else cuda_of_ptx(newest), lacks=lacks)


def chosen(gpu: Gpu, group: Iterable[Image]) -> Image | None:
    """Return the image that a driver chooses for `gpu` of a fat binary or a bundle; None where there is none for it."""
    code = [image for image in group if occupancy.runs(gpu, image)]
    return max(code, key=lambda image: (image.kind != "ptx", architectures.natural(image.arch)), default=None)


def is_special(image: Image) -> bool:
    """Whether device code runs only on one GPU or its family, such as `9.0a` and `10.0f`."""
    return image.kind in {"sass", "ptx"} and image.arch[-1] in "af"
