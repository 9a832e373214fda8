"""Read a wheel once, member by member, in little memory."""

import hashlib
import mmap
import re
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO

from packaging.utils import canonicalize_name

from builder import devicecode
from builder.audit import facts
from builder.audit.facts import Facts, Plan
from builder.audit.headers import header_versions
from builder.audit.report import Finding
from builder.audit.subject import File, Library, Subject, parse_object
from builder.elf import Data
from builder.errors import BuilderError
from builder.extension import Extension, binary_format
from builder.wheel import Wheel, WheelError

_CHUNK = 1 << 20
_IN_MEMORY = 4 << 20
_LARGEST_TEXT = 16 << 20
_LIBRARY_NAME = re.compile(r"\.(so(\.[0-9]+)*|pyd|dylib|dll)$")


def read(wheel: Wheel, *, plan: Plan) -> Subject:
    """Read every member of `wheel` once.

    Raises:
        WheelError: a member cannot be unpacked.
    """
    files: dict[str, File] = {}
    texts: dict[str, bytes] = {}
    libraries: list[Library] = []
    refused: list[Finding] = []
    package = _package(wheel)
    try:
        with zipfile.ZipFile(wheel.path) as archive:
            for name in wheel.members:
                with archive.open(name) as member, tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
                    files[name] = _hash(member, copy)
                    if _describes(name, module=package or "", dist_info=wheel.dist_info):
                        copy.seek(0)
                        texts[name] = copy.read(_LARGEST_TEXT)
                    match _library(name, copy, size=files[name].size):
                        case Library() as library:
                            libraries.append(library)
                        case Finding() as finding:
                            refused.append(finding)
                        case None:
                            pass
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise WheelError(f"'{wheel.path}' is damaged: {error}", help="build or download it again") from error
    tags = tuple(sorted(str(tag) for tag in wheel.tags))
    return Subject(
        name=wheel.name,
        version=str(wheel.version),
        dist_info=wheel.dist_info,
        tags=tags,
        package=package,
        facts=_facts(wheel, package=package or "", texts=texts, plan=plan),
        files=files,
        texts=texts,
        libraries=tuple(libraries),
        refused=tuple(refused),
        plan=plan,
    )


def _describes(name: str, *, module: str, dist_info: str) -> bool:
    """Whether a member's content says something about the others."""
    return name.startswith(f"{dist_info}/") or name in (f"{module}/metadata.json", f"{module}/_ops.py")


def _hash(member: IO[bytes], copy: IO[bytes]) -> File:
    digest, size = hashlib.sha256(), 0
    while chunk := member.read(_CHUNK):
        digest.update(chunk)
        copy.write(chunk)
        size += len(chunk)
    return File(size=size, sha256=digest.digest())


def _library(name: str, copy: "tempfile.SpooledTemporaryFile[bytes]", *, size: int) -> Library | Finding | None:
    """Return the library in `copy`, what is wrong with it, or None if it is no library by name and by content."""
    copy.seek(0)
    head = copy.read(4)
    if _LIBRARY_NAME.search(name) is None and binary_format(head) in (None, "PE"):
        return None  # two letters, MZ, do not make a text file a program
    copy.seek(0)
    if size <= _IN_MEMORY:
        return _judge(name, copy.read())
    with mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _judge(name, data)


def _judge(name: str, data: Data) -> Library | Finding:
    try:
        extension = Extension.read(name, data)
        images = devicecode.read(name, data, without=extension.relocatable_device_code)
        return Library(extension=extension, images=images, headers=header_versions(extension, data))
    except BuilderError as error:
        remedy = error.help or "build it again"
        return Finding(file=name, rule="format", symbol=name, why=error.message, remedy=remedy)


def _package(wheel: Wheel) -> str | None:
    """Return the top-level directory that has the distribution's name, as far as a normalised name tells."""
    tops = sorted({name.partition("/")[0] for name in wheel.members if "/" in name})
    return next((top for top in tops if canonicalize_name(top) == wheel.name), None)


def _facts(wheel: Wheel, *, package: str, texts: Mapping[str, bytes], plan: Plan) -> Facts | None:
    if plan.variant is not None:
        return Facts.of(plan.variant)
    platform = min(tag.platform for tag in wheel.tags)
    if wheel.label is not None:
        variant = facts.variant_of(wheel.label, facts.system_of(platform))
        return None if variant is None else Facts.of(variant)
    metadata = parse_object(texts.get(f"{package}/metadata.json", b"")) or {}
    backend = metadata.get("backend")
    return facts.from_contents(
        backend=backend.get("type") if isinstance(backend, dict) else None,
        metadata=texts.get(f"{wheel.dist_info}/METADATA", b""),
        noarch=platform == "any",
    )
