"""Read a kernel's finished wheel for publishing, and check that it is complete and consistent."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from itertools import islice
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import canonicalize_name

from builder.errors import BuilderError, PublishError
from builder.hashes import digest, record_hash, sha256_of
from builder.matrix.variant import Variant, python_of
from builder.metadata import METADATA_FILE, KernelMetadata, is_digested
from builder.untrusted import LARGEST_TEXT, UntrustedError
from builder.wheel import fields
from builder.wheel.archive import MAX_MEMBERS, Member, Wheel, WheelError

_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SHOWN = 20
_BUILD_AGAIN = "build the wheel again; it was changed or is damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWheel:
    """A complete and consistent wheel: every file has its hash, and name, label and metadata agree."""

    wheel: Wheel
    module: str
    """The Python package, which is also its directory in the wheel."""
    variant: Variant
    metadata: KernelMetadata
    core: bytes
    """The content of its METADATA."""
    sha256: str
    size: int

    @property
    def kernel(self) -> str:
        """The kernel's name, as its config spells it."""
        return str(self.metadata.name)

    @property
    def package(self) -> Mapping[str, Member]:
        """The files of the Python package, by their paths in it."""
        prefix = f"{self.module}/"
        return {
            name.removeprefix(prefix): member for name, member in self.wheel.members.items() if name.startswith(prefix)
        }

    @property
    def fields(self) -> Message:
        """The fields of METADATA."""
        return fields.read(self.core)


def read_all(paths: Iterable[Path]) -> tuple[KernelWheel, ...]:
    """Read wheels, sorted by file name.

    Raises:
        WheelError: with the problems of all wheels.
    """
    found: list[KernelWheel] = []
    problems: list[str] = []
    for path in sorted(set(paths), key=lambda path: (path.name, str(path))):
        try:
            found.append(read(path))
        except WheelError as error:  # noqa: PERF203  every wheel is judged
            problems.append(str(error))
    if problems:
        raise WheelError("\nerror: ".join(problems))
    return tuple(found)


def read(path: Path) -> KernelWheel:
    """Read a wheel, and check that it is complete.

    Raises:
        WheelError: it is not a kernel's wheel, or its files contradict its claims.
    """
    if not path.is_file():
        raise WheelError(f"'{path}' is not a file", help="name wheels that `builder build` made")
    wheel = Wheel.read(path)
    with wheel.held() as held:
        hashes = {name: digest(member.chunks()) for name, member in held.members.items()}
        _check_record(held, hashes)
        module = _module(wheel)
        metadata = _metadata(held, module)
        try:
            variant = variant_of(wheel.label, wheel.tags)
        except WheelError as error:
            raise WheelError(f"'{wheel.path}' {error.message}", help=error.help) from error
        core = _member(held, f"{wheel.dist_info}/METADATA")
        _member(held, f"{wheel.dist_info}/WHEEL")
    kernel_wheel = KernelWheel(
        wheel=wheel,
        module=module,
        variant=variant,
        metadata=metadata,
        core=core,
        sha256=sha256_of(path),
        size=path.stat().st_size,
    )
    problems = tuple(_disagreements(kernel_wheel, hashes))
    if problems:
        raise WheelError(f"'{path}': {'; '.join(problems)}", help=_BUILD_AGAIN)
    return kernel_wheel


def _member(wheel: Wheel, name: str) -> bytes:
    if name not in wheel.members:
        raise WheelError(f"'{wheel.path}' has no '{name}'", help="build the wheel again; it is not complete")
    member = wheel.members[name]
    if member.size > LARGEST_TEXT:
        raise WheelError(
            f"'{wheel.path}': '{name}' has {member.size} bytes, more than the {LARGEST_TEXT} that are read"
        )
    return member.read()


def _check_record(wheel: Wheel, hashes: Mapping[str, bytes]) -> None:
    record = f"{wheel.dist_info}/RECORD"
    try:
        table = csv.reader(io.StringIO(_member(wheel, record).decode()))
        rows = {row[0]: row[1:] for row in islice(table, 2 * MAX_MEMBERS) if row}
    except (UnicodeDecodeError, csv.Error) as error:
        raise WheelError(f"'{wheel.path}' has a RECORD that cannot be read: {error}") from error
    wrong = [f"'{name}' is listed in RECORD and missing" for name in sorted(rows.keys() - wheel.members.keys())]
    for name, found in hashes.items():
        if name == record:
            continue
        if name not in rows:
            wrong.append(f"'{name}' is not listed in RECORD")
        elif rows[name][:1] != [record_hash(found)]:
            wrong.append(f"'{name}' does not have the hash that RECORD gives")
    if f"{wheel.dist_info}/entry_points.txt".casefold() in map(str.casefold, hashes):
        wrong.append("it has an 'entry_points.txt', which adds commands to every environment that it is installed in")
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise WheelError(
            f"'{wheel.path}': {'; '.join(wrong[:_SHOWN])}{more}",
            help=_BUILD_AGAIN,
        )


def _module(wheel: Wheel) -> str:
    tops = {name.split("/")[0] for name in wheel.members} - {wheel.dist_info}
    packages = sorted(top for top in tops if f"{top}/{METADATA_FILE}" in wheel.members)
    if len(packages) != 1 or len(tops) != 1:
        found = ", ".join(f"'{top}'" for top in sorted(tops)) or "nothing"
        raise WheelError(
            f"'{wheel.path}' is not a kernel's wheel: it must hold one package with {METADATA_FILE}; it holds {found}",
            help="name wheels that `builder build` made",
        )
    (module,) = packages
    if _MODULE.fullmatch(module) is None:
        raise WheelError(f"'{wheel.path}': its package '{module}' cannot be imported by that name")
    return module


def _metadata(wheel: Wheel, module: str) -> KernelMetadata:
    name = f"{module}/{METADATA_FILE}"
    try:
        metadata = KernelMetadata.read(_member(wheel, name))
    except UntrustedError as error:
        raise WheelError(f"'{wheel.path}': '{name}' cannot be used: {error}", help=_BUILD_AGAIN) from error
    if metadata.unusable is not None:
        raise WheelError(f"'{wheel.path}': '{name}' {metadata.unusable}", help=_BUILD_AGAIN)
    return metadata


def variant_of(label: str | None, tags: Iterable[Tag]) -> Variant:
    """Return the variant of a wheel's label and tags, both of which are in its file name.

    Raises:
        WheelError: they fit no variant, or several.
    """
    if label is None:
        raise WheelError(
            "has no label, so nothing says which variant it is",
            help="build it without --no-label; that option is only for package indexes",
        )
    try:
        variants = {
            Variant.of_wheel(label, tag.platform, python=python_of(tag.interpreter, tag.abi))
            for tag in sorted(tags, key=str)
        }
    except ValueError as error:
        raise WheelError(f"is of no variant: {error}") from error
    if len(variants) != 1:
        raise WheelError(f"is of more than one variant: {', '.join(sorted(map(str, variants)))}")
    return variants.pop()


def _disagreements(kernel_wheel: KernelWheel, hashes: Mapping[str, bytes]) -> Iterator[str]:
    backend = kernel_wheel.metadata.backend
    if backend != kernel_wheel.variant.backend.value:
        yield f"{METADATA_FILE} says backend '{backend}', the name says '{kernel_wheel.variant.backend}'"
    if canonicalize_name(kernel_wheel.kernel) != kernel_wheel.wheel.name:
        yield f"{METADATA_FILE} is of '{kernel_wheel.kernel}', the file of '{kernel_wheel.wheel.name}'"
    try:
        fields = kernel_wheel.fields
    except UntrustedError as error:
        yield f"METADATA cannot be used: {error}"
        return
    if canonicalize_name(str(fields["Name"])) != kernel_wheel.wheel.name or str(fields["Version"]) != str(
        kernel_wheel.wheel.version
    ):
        yield f"METADATA is of '{fields['Name']} {fields['Version']}', not of what the file is named"
    digested = {name: hashes[f"{kernel_wheel.module}/{name}"] for name in kernel_wheel.package if is_digested(name)}
    if not kernel_wheel.metadata.has_digests(digested):
        yield f"the digest in {METADATA_FILE} is not that of the files"


def one_kernel(wheels: Iterable[KernelWheel]) -> str:
    """Return the kernel of all wheels, which must be the same.

    Raises:
        BuilderError: there are several kernels or versions, or two wheels have the same variant.
    """
    kernels: dict[str, list[str]] = {}
    variants: dict[str, list[str]] = {}
    for kernel_wheel in wheels:
        name = f"{kernel_wheel.kernel} {kernel_wheel.wheel.version.public}"
        kernels.setdefault(name, []).append(str(kernel_wheel.wheel.path))
        variants.setdefault(str(kernel_wheel.variant), []).append(str(kernel_wheel.wheel.path))
    if len(kernels) > 1:
        found = "".join(f"\n  {name}: {paths[0]}" for name, paths in sorted(kernels.items()))
        raise BuilderError(f"the wheels are of different kernels or versions{found}", help="bundle each on its own")
    double = {variant: paths for variant, paths in variants.items() if len(paths) > 1}
    if double:
        found = "".join(f"\n  {variant}: {', '.join(paths)}" for variant, paths in sorted(double.items()))
        raise BuilderError(f"two wheels are of one variant{found}", help="keep the one you mean")
    return next(iter(kernels)).split()[0]


def require_release(obstacles: Mapping[str, str | None], *, allowed: bool) -> None:
    """Refuse wheels or variants that must not be published, unless that is `allowed`.

    Raises:
        PublishError: it names each one, with the reason.
    """
    found = [f"{name} ({reason})" for name, reason in obstacles.items() if reason is not None]
    if found and not allowed:
        raise PublishError(
            f"not for release: {', '.join(found)}", help="build without --archs, or pass --allow-quick to take them too"
        )
