"""Compare the device code in the libraries with the claims of the wheel."""

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
    stated_in = f"{subject.module}/metadata.json"
    reason = subject.metadata.not_for_release
    if reason is not None:
        remedy = "build it without --archs before you publish it"
        yield Finding(stated_in, RULE, QUICK_KEY, f"it is not for release: {reason}", remedy, severity="note")
    facts = subject.facts
    if facts is None or facts.framework is Framework.TORCH_NOARCH or not subject.libraries:
        return
    wanted = device_code.images_of(subject.archs or ())
    if not facts.backend.facts.device_code:
        wanted = frozenset()
    elif subject.archs is None:
        why = "neither the plan nor metadata.json says for which architectures the device code is"
        yield Finding(stated_in, RULE, ARCHS_KEY, why, "write backend.archs into metadata.json")
        return
    source = "the plan" if subject.plan.archs is not None else "metadata.json"
    found = frozenset(image for library in subject.libraries for image in library.images)
    shared = frozenset(Image(kind="sass", arch=arch) for arch in subject.metadata.shared_code)
    for image in sorted(wanted - found):
        if image not in shared or not _is_served(image, found):
            file = ", ".join(library.name for library in subject.libraries[:_SHOWN])
            why = f"{source} promises {image}, and there is none in the library"
            remedy = "compile for it (CMAKE_CUDA_ARCHITECTURES, --offload-arch), or take it out of the kernel's list"
            yield Finding(file, RULE, image.arch, why, remedy)
    for library in subject.libraries:
        for image in sorted(library.images - wanted):
            why = f"it has {image}, which {source} does not name"
            remedy = "do not compile for it (does a variable or a flag name it?), or add it to the list"
            yield Finding(library.name, RULE, image.arch, why, remedy)


def _is_served(image: Image, found: frozenset[Image]) -> bool:
    """Whether other machine code in `found` runs on the GPU of an image, and on all later GPUs of its generation."""
    gpu = image.arch.rstrip("af")
    return any(
        each.kind == "sass" and not gpus.is_special(each) and architectures.runs(each.arch, gpu) for each in found
    )
