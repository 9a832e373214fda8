"""Which code of a wheel each GPU would run, as a driver chooses it from the bytes of the libraries."""

from collections.abc import Iterable, Iterator

from builder.audit.gpu import Gpu, GpuCode, cuda_of_ptx, known
from builder.audit.report import Finding
from builder.audit.subject import Subject
from builder.binary.device_code import Group, Image
from builder.config import Backend
from builder.matrix import architectures

RULE = "gpus"


def of(subject: Subject) -> tuple[GpuCode, ...]:
    """Return what each GPU of a wheel's backend runs; nothing for a backend without device code."""
    facts = subject.facts
    if facts is None or not facts.backend.facts.device_code:
        return ()
    groups = [group for library in subject.libraries for group in library.device_code]
    return tuple(choose(gpu, groups) for gpu in known() if gpu.backend is facts.backend)


def missing(required: Iterable[Gpu], found: Iterable[GpuCode], file: str) -> Iterator[Finding]:
    """Yield a finding for each GPU that must run all of a wheel and does not."""
    codes = {code.gpu: code for code in found}
    for gpu in required:
        code = codes.get(gpu)
        if code is None or not code.runs:
            yield Finding(
                file=file,
                rule=RULE,
                symbol=f"{gpu.names[0]} ({gpu.arch})",
                why=f"it is required, and the wheel has {GpuCode(gpu=gpu).text if code is None else code.text}",
                remedy=f"add '{gpu.arch}' to the architectures of each component",
            )


def choose(gpu: Gpu, groups: Iterable[Group]) -> GpuCode:
    """Return what `gpu` runs: of each group the machine code that is nearest to it, or else the newest PTX."""
    own: set[str] = set()
    older: set[str] = set()
    ptx: set[str] = set()
    versions: set[str] = set()
    lacks = False
    for group in groups:
        image = _chosen(gpu, group)
        if image is None:
            lacks = True
        elif image.kind == "ptx":
            ptx.add(image.arch)
            versions.update([image.version] if image.version else [])
        else:
            (own if _is_own(gpu, image.arch) else older).add(image.arch)
    newest = max(versions, key=architectures.natural, default=None)
    return GpuCode(
        gpu=gpu,
        own=_sorted(own),
        older=_sorted(older),
        ptx=_sorted(ptx),
        cuda=None if newest is None else cuda_of_ptx(newest),
        lacks=lacks,
    )


def _chosen(gpu: Gpu, group: Group) -> Image | None:
    code = [image for image in group if _fits(gpu, image)]
    return max(code, key=lambda image: (image.kind != "ptx", architectures.natural(image.arch)), default=None)


def _fits(gpu: Gpu, image: Image) -> bool:
    match image.kind:
        case "gcn":
            return image.arch.partition(":")[0] == gpu.arch
        case "sass":
            return architectures.runs(image.arch, gpu.arch)
        case "ptx":
            return architectures.runs(f"{image.arch}+PTX", gpu.arch)
        case _:
            return False  # code for the linker of a device


def _is_own(gpu: Gpu, arch: str) -> bool:
    return arch.partition(":")[0].rstrip("af") in {gpu.arch, gpu.also} or gpu.backend is Backend.ROCM


def _sorted(archs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(archs, key=architectures.natural))
