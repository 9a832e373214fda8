"""Device code: what is really in the libraries, against what the wheel says."""

from collections.abc import Iterator

from builder.audit import gpus
from builder.audit.report import Finding
from builder.audit.subject import Subject
from builder.binary import device_code
from builder.binary.device_image import Image
from builder.config.values import Framework
from builder.matrix import architectures
from builder.metadata import ARCHS_KEY, QUICK_KEY

RULE = "archs"

_SHOWN = 10


def check(subject: Subject) -> Iterator[Finding]:
    """Compare the device code of all libraries with the plan, or with `metadata.json`."""
    reason = subject.metadata.not_for_release
    if reason is not None:
        yield _unreleased(subject.module, reason)
    facts = subject.facts
    if facts is None or facts.framework is Framework.TORCH_NOARCH or not subject.libraries:
        return
    found = frozenset(image for library in subject.libraries for image in library.images)
    wanted = device_code.images_of(subject.archs or ())
    if not facts.backend.facts.device_code:
        wanted = frozenset()
    elif subject.archs is None:
        yield Finding(
            file=f"{subject.module}/metadata.json",
            rule=RULE,
            symbol=ARCHS_KEY,
            why="neither the plan nor metadata.json says for which architectures the device code is",
            remedy="write backend.archs into metadata.json",
        )
        return
    source = "the plan" if subject.plan.archs is not None else "metadata.json"
    file = ", ".join(library.name for library in subject.libraries[:_SHOWN])
    shared = frozenset(Image(kind="sass", arch=arch) for arch in subject.metadata.shared_code)
    served = frozenset(image for image in shared & wanted if _is_served(image, found))
    yield from (_missing(file, image, source) for image in sorted(wanted - found - served))
    for library in subject.libraries:
        yield from (_extra(library.name, image, source) for image in sorted(library.images - wanted))


def _is_served(image: Image, found: frozenset[Image]) -> bool:
    """Whether there is machine code that runs where an image would, for all later GPUs of its generation, too."""
    gpu = image.arch.rstrip("af")
    return any(
        each.kind == "sass" and not gpus.is_special(each) and architectures.runs(each.arch, gpu) for each in found
    )


def _unreleased(module: str, reason: str) -> Finding:
    return Finding(
        file=f"{module}/metadata.json",
        rule=RULE,
        symbol=QUICK_KEY,
        why=f"it is not for release: {reason}",
        remedy="build it without --archs before you publish it",
        severity="note",
    )


def _missing(file: str, image: Image, source: str) -> Finding:
    return Finding(
        file=file,
        rule=RULE,
        symbol=image.arch,
        why=f"{source} promises {image}, and there is none in the library",
        remedy="compile for it (CMAKE_CUDA_ARCHITECTURES, --offload-arch), or take it out of the kernel's list",
    )


def _extra(file: str, image: Image, source: str) -> Finding:
    return Finding(
        file=file,
        rule=RULE,
        symbol=image.arch,
        why=f"it has {image}, which {source} does not name",
        remedy="do not compile for it (does a variable or a flag name it?), or add it to the list",
    )
