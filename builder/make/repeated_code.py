"""Remove repeated machine code: ptxas often writes the same code for 8.9 as for 8.6, and for 9.0a as for 9.0.

An image is removed from a fat binary if every GPU that would load it then loads another image with the same code. So
each GPU still runs the same instructions.
"""

from dataclasses import replace

from builder.audit import gpus
from builder.audit.library_members import libraries
from builder.binary import cubin, device_code, fatbin
from builder.binary.device_image import Contents, Group, Image
from builder.binary.extension import Extension
from builder.config import Backend
from builder.config.gpus import known
from builder.matrix import architectures
from builder.wheel.archive import Bytes, Wheel


def left_out(wheel: Wheel) -> tuple[Wheel, tuple[str, ...]]:
    """Return a CUDA wheel without repeated code, and the architectures that now run the code of others.

    Raises:
        DeviceCodeError: a fat binary is damaged.
        ToolError: this Python cannot unpack Zstandard.
    """
    members = dict(wheel.members)
    before: frozenset[Image] = frozenset()
    after: frozenset[Image] = frozenset()
    for name, data in libraries(wheel):
        without = Extension.read(name, data).relocatable_device_code
        content = fatbin.trimmed(name, data, keep=_not_repeated, without=without)
        before |= device_code.read(name, data, without=without)
        after |= device_code.read(name, content, without=without)
        if content != data:
            members[name] = Bytes(content, mode=wheel.members[name].mode)
    shared = sorted((image.arch for image in before - after), key=architectures.natural)
    return replace(wheel, members=members), tuple(shared)


def _not_repeated(contents: Contents) -> Group:
    """Return the images of a fat binary to keep."""
    left = frozenset(contents)
    # Code for few GPUs, such as `9.0a`, comes before code for many.
    order = sorted(
        contents, key=lambda image: (gpus.is_special(image), architectures.natural(image.arch)), reverse=True
    )
    for image in order:
        other = _instead(image, left) if image.kind == "sass" else None
        if other is not None and cubin.does_as(contents[other](), contents[image]()):
            left -= {image}
    return left


def _instead(image: Image, group: Group) -> Image | None:
    """Return the image that every GPU that loads `image` would load without it; None if they differ or lack one.

    It is machine code for every later GPU of its generation, including unknown ones. Machine code next to PTX stays,
    since lists of architectures name PTX together with its machine code.
    """
    if any(each.kind == "ptx" and each.arch == image.arch for each in group):
        return None
    takers = [gpu for gpu in known() if gpu.backend is Backend.CUDA and gpus.chosen(gpu, group) == image]
    others = {gpus.chosen(gpu, group - {image}) for gpu in takers}
    other = others.pop() if len(others) == 1 else None
    return None if other is None or other.kind != "sass" or gpus.is_special(other) else other
