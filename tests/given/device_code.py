"""Device code as compilers pack it: images in fat binaries, bundles and cubins."""

import struct
import zlib

from builder.binary.device_image import Image

ARCH_SPECIFIC, FAMILY_SPECIFIC = 1 << 20, 1 << 21
TEXT = b"\x10instructions"
REGISTERS, PARAMETERS = struct.pack("<BBHII", 4, 0x2F, 8, 7, 40), struct.pack("<BBH", 3, 0x19, 12)
NO_BITS = 8


def image(kind, arch, *, flags=0, content=b"c" * 32, whole=0):
    """Return an image of a fat binary; `whole` is its size when unpacked, where its content is compressed."""
    head = (kind, 0x101, 64, len(content), 0, 0, 8, 1, arch, 0, 0, flags, 0, whole)
    return struct.pack("<HHIQIIHHIIIQQQ", *head) + content


def fatbin(*images):
    body = b"".join(images)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def bundle(**targets):
    names = [name.replace("__", "--").encode() for name in targets]
    offset = 32 + sum(24 + len(name) for name in names)
    head, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names)), b""
    for name, content in zip(names, targets.values(), strict=True):
        head += struct.pack("<QQQ", offset + len(body), len(content), len(name)) + name
        body += content
    return head + body


def packed(content, *, version=2, method=0, body=None):
    """Return a compressed offload bundle, whose `body` is what zlib makes of its content or another one."""
    body = zlib.compress(content) if body is None else body
    layout = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}[version]
    total = () if version == 1 else (struct.calcsize(layout) + len(body),)
    return struct.pack(layout, b"CCOB", version, method, *total, len(content), 7) + body


def sass(arch):
    return Image(kind="sass", arch=arch)


def ptx(arch, version=None):
    return Image(kind="ptx", arch=arch, version=version)


def cubin(sections=(), *, shared=64, version=0, **changed):
    """Return a cubin with sections by name, as `.text.k`: those that each has, with those that are changed.

    A `.symtab` has its names in `.strtab`.
    """
    contents = {
        ".note.nv.cuinfo": b"sm_86",
        ".nv.compat": b"\x02\x09",
        ".nv.info": b"all",
        ".nv.info.k": REGISTERS + PARAMETERS,
        ".text.k": TEXT,
        ".nv.constant0.k": b"\x01" * 16,
        **dict(sections),
        **{f".{name.replace('_', '.')}": content for name, content in changed.items()},
    }
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*contents, ".nv.shared.k", ".shstrtab"))
    rows, body, at = [], b"", 64
    for name, content in contents.items():
        kind, link = (2, list(contents).index(".strtab")) if name == ".symtab" else (1, 0)
        rows.append((names.index(b"\0" + name.encode() + b"\0") + 1, kind, 0, 0, at, len(content), link, 0, 4, 0))
        body, at = body + content, at + len(content)
    rows.append((names.index(b".nv.shared.k\0"), NO_BITS, 3, 0, at, shared, 0, 0, 4, 0))
    rows.append((names.index(b".shstrtab\0"), 3, 0, 0, at, len(names), 0, 0, 1, 0))
    table = b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)
    head = (
        b"\x7fELF\x02\x01"
        + bytes(14)
        + struct.pack("<H", version)
        + bytes(18)
        + struct.pack("<Q", at + len(names))
        + bytes(10)
    )
    return head + struct.pack("<HHH", 64, len(rows), len(rows) - 1) + body + names + table


STORE, LOAD = 0x387, 0x983
WIDTHS = {1: 0, 2: 2, 4: 4, 8: 5, 16: 6}


def moving(opcode, width):
    """Return an instruction that moves so many bytes to or from local memory."""
    return struct.pack("<H7xB6x", opcode, WIDTHS[width] << 1)


def compiled(
    *, registers=40, stack=0, moves=(), arrays=(), threads=None, limit=255, options=None, version=1, shared=64
):
    """Return a cubin as ptxas of CUDA 13 writes it, with a kernel `_Z4tilePf` that spills by `moves`: (opcode, bytes).

    It moves `arrays` in the same way, which are no spills.
    """
    name = "_Z4tilePf"
    code = b"".join(moving(*each) for each in (*moves, *arrays)) + b"\x18\x79" + bytes(14)
    marks = b"".join(struct.pack("<II", 1, 16 * index) for index in range(len(moves)))
    about = struct.pack("<BBH", 3, 0x1B, limit)
    if marks:
        about += struct.pack("<BBH", 4, 0x55, len(marks)) + marks
    if threads is not None:
        about += struct.pack("<BBHIII", 4, 0x05, 12, threads, 1, 1)
    pairs = ((0x2F, registers), (0x11, stack), (0x12, stack))
    words = ("ptxas", "Cuda compilation tools, release 13.0", "Build 1", options or "")
    texts = b"NVIDIA Corp\0" + bytes(24) + "\0".join(("", *words, "")).encode()
    return cubin(
        {
            ".strtab": f"\0{name}\0".encode(),
            ".symtab": bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0x10, 4, 0, len(code)),
            ".nv.info": b"".join(struct.pack("<BBHII", 4, attribute, 8, 1, value) for attribute, value in pairs),
            f".nv.info.{name}": about,
            f".text.{name}": code,
            f".nv.constant0.{name}": bytes(16),
            f".nv.shared.{name}": bytes(shared),
            **({} if options is None else {".note.nv.tkinfo": texts}),
        },
        version=version,
    )
