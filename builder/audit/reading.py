"""Read a wheel once, member by member, with little memory."""

import io
import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from builder.audit import resources, size_budget, sizes
from builder.audit.library_members import HEAD, is_library, memory, named_as_library
from builder.audit.report import Finding
from builder.audit.subject import (
    AuditPromise,
    FrameworkClaim,
    Library,
    MemberFile,
    Subject,
    read_metadata,
    requirements,
)
from builder.binary import device_code
from builder.binary.elf_file import Data
from builder.binary.extension import Extension, ExtensionError
from builder.config.values import Backend, Framework, Version
from builder.errors import BuilderError
from builder.hashes import Hasher
from builder.matrix.variant import Variant
from builder.metadata import METADATA_FILE
from builder.untrusted import LARGEST_TEXT
from builder.wheel.archive import Member, Wheel

_IN_PACKAGE = re.compile(r"metadata\.json|_ops(?:_[a-z0-9_]+)?\.py|_library\.py", re.ASCII)
_TEXTS = ("METADATA", "RECORD", "WHEEL")
# `TORCH_ABI_VERSION`, major << 56 | minor << 48 | patch << 40, is an argument of torch_library_impl and
# torch_call_dispatcher, so it stands in the code as a constant. The target version does not.
_X86_64 = re.compile(rb"[\x48\x49][\xb8-\xbf]\x00{5}[\x00-\x1f]([\x00-\x3f])([\x02-\x03])", re.DOTALL)
# `movz xN, #0x20a, lsl #48`: five bits of N, sixteen of the constant, and the operation.
_AARCH64 = re.compile(rb"[\x40-\x67]\xe0\xd2")
_WORD = 4
_MOST_PLACES = 1 << 20
"""The most places in the code that may look like such a constant; a real library has a few dozen."""


def read(wheel: Wheel, *, plan: AuditPromise, functions: resources.Gathering | None = None) -> Subject:
    """Read every member of `wheel` once; the functions of device code where something gathers them, or limits them.

    Raises:
        WheelError: a member cannot be unpacked.
    """
    package = _package(wheel)
    described = {f"{wheel.dist_info}/{text}" for text in _TEXTS}
    files: dict[str, MemberFile] = {}
    texts: dict[str, bytes] = {}
    judged: list[Library | Finding] = []
    for name, member in wheel.members.items():
        folder, _, file = name.rpartition("/")
        describes = name in described or (folder == (package or "") and _IN_PACKAGE.fullmatch(file) is not None)
        files[name] = _member(name, member, texts=texts if describes else None, judged=judged, functions=functions)
    subject = Subject(
        name=wheel.name,
        version=str(wheel.version),
        dist_info=wheel.dist_info,
        tags=tuple(sorted(str(tag) for tag in wheel.tags)),
        package=package,
        facts=_claim(wheel, package=package or "", texts=texts, plan=plan),
        files=files,
        texts=texts,
        libraries=tuple(each for each in judged if isinstance(each, Library)),
        refused=tuple(each for each in judged if isinstance(each, Finding)),
        plan=plan,
    )
    return replace(
        subject,
        sizes=sizes.of(wheel) if size_budget.is_exceeded(subject, wheel) else None,
        resources=_resources(wheel, functions, limited=bool(subject.metadata.function_budgets)),
    )


def _resources(wheel: Wheel, read: resources.Gathering | None, *, limited: bool) -> resources.WheelResources | None:
    if read is not None:
        return read.found
    return resources.of(wheel) if limited else None  # only the metadata.json, which was read now, says so


def _package(wheel: Wheel) -> str | None:
    """Return the top-level directory that matches the distribution's name, as far as a normalised name allows."""
    tops = sorted({name.partition("/")[0] for name in wheel.members if "/" in name})
    return next((top for top in tops if canonicalize_name(top) == wheel.name), None)


def _member(
    name: str,
    member: Member,
    *,
    texts: dict[str, bytes] | None,
    judged: list[Library | Finding],
    functions: resources.Gathering | None,
) -> MemberFile:
    """Hash a member; keep its text in `texts`, and judge it if it is a library by name or by content."""
    pieces = member.chunks()
    first = b""
    for piece in pieces:
        first += piece
        if len(first) >= HEAD:  # a piece may be a single byte
            break
    if member.size and is_library(name, first):
        with memory(member.size) as data:
            file = _hash(first, pieces, into=data)
            judged.append(_judge(name, data))
            if functions is not None:
                functions.add(name, data)
            if texts is not None:  # its name says that it describes others, whatever it is
                texts[name] = data[:LARGEST_TEXT]
        return file
    kept = io.BytesIO()
    file = _hash(first, pieces, into=kept if texts is not None and member.size <= LARGEST_TEXT else None)
    if texts is not None:
        texts[name] = kept.getvalue()
        if member.size > LARGEST_TEXT:
            why = (
                f"it has {member.size} bytes, and of a file that describes others no more than {LARGEST_TEXT} are read"
            )
            judged.append(Finding(name, "budget", name, why))
    if named_as_library(name):
        judged.append(_judge(name, b""))
    return file


def _hash(first: bytes, pieces: Iterator[bytes], *, into: mmap.mmap | io.BytesIO | None) -> MemberFile:
    digest, size = Hasher(), 0
    for piece in chain((first,), pieces):
        digest.update(piece)
        size += len(piece)
        if into is not None:
            into.write(piece)
    return MemberFile(size=size, sha256=digest.digest())


def _judge(name: str, data: Data) -> Library | Finding:
    try:
        extension = Extension.read(name, data)
        code = device_code.groups(name, data, without=extension.relocatable_device_code)
        return Library(extension=extension, device_code=code, headers=header_versions(extension, data))
    except BuilderError as error:
        remedy = error.help or "build it again"
        return Finding(name, "format", name, error.message, remedy)


def _claim(wheel: Wheel, *, package: str, texts: Mapping[str, bytes], plan: AuditPromise) -> FrameworkClaim | None:
    """Return the framework and backend of a wheel, by its plan, label, or else requirements and metadata.json."""
    platform = min(tag.platform for tag in wheel.tags)
    try:
        if plan.variant is not None:
            return FrameworkClaim.of(plan.variant)
        if wheel.label is not None:
            return FrameworkClaim.of(Variant.of_wheel(wheel.label, platform))
        backend = Backend(str(read_metadata(texts.get(f"{package}/{METADATA_FILE}", b"")).backend))
    except ValueError:  # label and platform match no variant, or nothing names a backend
        return None
    if platform == "any":
        return FrameworkClaim(framework=Framework.TORCH_NOARCH, backend=backend)
    return _claim_by_requirements(backend, requirements(texts.get(f"{wheel.dist_info}/METADATA", b"")))


def _claim_by_requirements(backend: Backend, required: Mapping[str, Requirement]) -> FrameworkClaim | None:
    if "torch" not in required:
        tvm_ffi = "apache-tvm-ffi" in required
        return FrameworkClaim(framework=Framework.TVM_FFI, backend=backend) if tvm_ffi else None
    for clause in required["torch"].specifier:
        match = re.match(r"([0-9]+\.[0-9]+)(\..*)?$", clause.version)
        if match and clause.operator in (">=", "=="):
            version, stable = Version(match[1]), clause.operator == ">="
            return FrameworkClaim(framework=Framework.TORCH, backend=backend, version=version, stable=stable)
    return None


def header_versions(extension: Extension, data: Data) -> frozenset[Version]:
    """Return the torch versions that the code of `extension` loads as 64-bit constants.

    Raises:
        ExtensionError: so many places look like a constant that this cannot be code.
    """
    found: set[tuple[int, int]] = set()
    for seen, version in enumerate(_places(extension, data)):
        if seen > _MOST_PLACES:
            raise ExtensionError(
                f"'{extension.name}' has more than {_MOST_PLACES} constants that look like a version of torch",
                help="build it again",
            )
        found.add(version)
    return frozenset(Version(f"{major}.{minor}") for major, minor in found)


def _places(extension: Extension, data: Data) -> Iterator[tuple[int, int]]:
    for offset, size in extension.code:
        end = offset + size
        if extension.machine == "x86_64":
            for match in _X86_64.finditer(data, offset, end):
                yield match[2][0], match[1][0]
        elif extension.machine == "aarch64":
            for match in _AARCH64.finditer(data, offset + 1, end):
                at = match.start() - 1
                if (at - offset) % _WORD == 0:
                    constant = int.from_bytes(data[at : at + _WORD], "little") >> 5 & 0xFFFF
                    yield constant >> 8, constant & 0xFF
