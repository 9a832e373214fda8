"""Make a wheel for each family of GPUs from a wheel for all: the same files, with only that family's device code.

A family has the GPUs of one major compute capability, and is named after the first: `sm90` for 9.x. A family's wheel
keeps the images of its family in each fat binary, and other images that its GPUs would run, so each GPU runs the same
code as with the whole wheel. The file name has a build tag (`-90sm-`), but is otherwise that of the whole wheel, since
kernel and version are the same; its `metadata.json` lists the remaining architectures.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from builder.audit import gpus, library_members
from builder.binary import device_code, fatbin
from builder.binary.device_image import Group, Image
from builder.binary.extension import Extension
from builder.config import Backend
from builder.config.gpus import Gpu, GpuName, known
from builder.matrix import architectures
from builder.metadata import METADATA_FILE, SIGNATURE_FILE, KernelMetadata
from builder.untrusted import UntrustedError
from builder.wheel.archive import Bytes, WheelError, pack
from builder.wheel.finish import FinishedWheel
from builder.wheel.kernel_wheel import KernelWheel
from builder.wheel.sbom import with_files

_WITH_BUILD_TAG = 6
"""The number of fields in a wheel's file name with a build tag."""


@dataclass(frozen=True, slots=True, order=True)
class Family:
    """The GPUs of one major compute capability."""

    major: int

    @classmethod
    def of(cls, gpu: Gpu) -> "Family":
        """Return the family of a GPU of NVIDIA."""
        return cls(_major(gpu.arch))

    def __str__(self) -> str:
        return f"sm{self.major}0"

    @property
    def build_tag(self) -> str:
        """The build tag in its wheels' names, between version and tags; it must begin with a digit."""
        return f"{self.major}0sm"

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The known GPUs of the family."""
        return tuple(gpu for gpu in known() if gpu.backend is Backend.CUDA and _major(gpu.arch) == self.major)

    def wanted(self, group: Collection[Image]) -> Group:
        """Return the images of a fat binary for this family, and others that one of its GPUs would run.

        PTX of another family stays together with its machine code, since lists of architectures cannot name it alone.
        If a GPU of the family has no code, a general image stays if there is one. Special code, such as `9.0a`, does
        not count as missing for other GPUs.
        """
        return _wanted(self, frozenset(group))


@lru_cache(maxsize=1 << 10)
def _wanted(family: Family, group: Group) -> Group:
    run = [gpus.chosen(gpu, group) for gpu in family.gpus]
    archs = {image.arch for image in group if _major(image.arch) == family.major}
    archs |= {image.arch for image in run if image is not None}
    general = sorted(image for image in group if not gpus.is_special(image))
    if None in run and general and not archs & {image.arch for image in general}:
        machine = [image for image in general if image.kind == "sass"]
        archs.add((machine or general)[0].arch)
    return frozenset(image for image in group if image.arch in archs)


def of(wheel: KernelWheel) -> tuple[Family, ...]:
    """Return the families for which a wheel has device code; empty for a wheel without CUDA code.

    Raises:
        BuilderError: its device code cannot be read.
    """
    return code(wheel)[1] if wheel.variant.backend is Backend.CUDA else ()


def code(wheel: KernelWheel) -> tuple[frozenset[Group], tuple[Family, ...]]:
    """Return the device code that the GPUs of a wheel run, and the families for which it has some.

    Raises:
        BuilderError: its device code cannot be read.
    """
    backend = wheel.variant.backend
    if backend is not Backend.CUDA:
        return gpus.groups_of(wheel.wheel, backend), ()
    found = {
        name: device_code.groups(name, data, without=Extension.read(name, data).relocatable_device_code)
        for name, data in library_members.libraries(wheel.wheel)
    }
    own = frozenset().union(*(groups for name, groups in found.items() if library_members.named_as_library(name)))
    majors = {_major(image.arch) for groups in found.values() for image in frozenset().union(*groups)}
    majors |= {_major(each.gpu.arch) for each in gpus.of_groups(own, backend) if each.runs}
    return own, tuple(map(Family, sorted(majors)))


def all_known() -> tuple[Family, ...]:
    """Return the families of all known GPUs."""
    return tuple(map(Family, sorted({_major(gpu.arch) for gpu in known() if gpu.backend is Backend.CUDA})))


def require_whole(wheel: KernelWheel) -> None:
    """Refuse a wheel that was made for one family.

    Raises:
        WheelError: the wheel is for one family.
    """
    fields = wheel.wheel.path.name.split("-")
    if len(fields) == _WITH_BUILD_TAG and fields[2].endswith("sm"):
        raise WheelError(
            f"'{wheel.wheel.path}' is for one family of GPUs",
            help="give the wheel for all, as `builder build` makes it",
        )


def split(wheel: KernelWheel) -> Iterator[tuple[Family, FinishedWheel]]:
    """Yield the wheel of each family.

    Raises:
        WheelError: the wheel is already for one family, or it is signed.
        BuilderError: its device code cannot be read.
    """
    require_whole(wheel)
    if SIGNATURE_FILE in wheel.package:
        path = wheel.wheel.path
        raise WheelError(f"'{path}' is signed, and a part of it would not be", help="split it, and sign what is made")
    whole = loaded(wheel)
    for family in of(whole):
        yield family, _wheel(whole, family)


def loaded(wheel: KernelWheel) -> KernelWheel:
    """Return a wheel whose files are in memory, unpacked and compressed, for the wheels that are made of it.

    Raises:
        WheelError: it is damaged.
    """
    with wheel.wheel.held() as held:
        members = {name: Bytes.of(member) for name, member in held.members.items()}
    return replace(wheel, wheel=replace(wheel.wheel, members=members))


def members(wheel: KernelWheel, family: Family | None) -> dict[str, Bytes]:
    """Return the files of a wheel but RECORD, with the device code of a family alone; None is all of it.

    Raises:
        BuilderError: its device code cannot be read.
    """
    record = f"{wheel.wheel.dist_info}/RECORD"
    whole = {name: Bytes.of(member) for name, member in wheel.wheel.members.items() if name != record}
    if family is None:
        return whole
    libraries: dict[str, bytes] = {}
    images: frozenset[Image] = frozenset()
    for name, data in library_members.libraries(wheel.wheel):
        without = Extension.read(name, data).relocatable_device_code
        trimmed = fatbin.trimmed(name, data, keep=family.wanted, without=without)
        images |= device_code.read(name, trimmed, without=without)
        if trimmed != data:
            libraries[name] = trimmed
    found = {
        name: Bytes(libraries[name], mode=member.mode) if name in libraries else member
        for name, member in whole.items()
    }
    prefix = f"{wheel.module}/"
    package = {name.removeprefix(prefix): each for name, each in found.items() if name.startswith(prefix)}
    metadata = _metadata(wheel.metadata, family, images, package)
    found[f"{prefix}{METADATA_FILE}"] = Bytes(metadata.text.encode())
    for name, member in found.items():
        if name.startswith(f"{wheel.wheel.dist_info}/sboms/"):
            try:
                found[name] = Bytes(with_files(member.content, package))
            except UntrustedError as error:
                raise WheelError(f"'{wheel.wheel.path}': '{name}' cannot be used: {error}") from error
    return found


def _wheel(wheel: KernelWheel, family: Family) -> FinishedWheel:
    found = members(wheel, family)
    info = f"{wheel.wheel.dist_info}/WHEEL"
    found[info] = Bytes(found[info].content.rstrip(b"\n") + f"\nBuild: {family.build_tag}\n".encode())
    distribution, version, *tags = wheel.wheel.path.name.split("-")
    return FinishedWheel(
        name="-".join((distribution, version, family.build_tag, *tags)),
        content=pack(found, dist_info=wheel.wheel.dist_info),
    )


def _metadata(
    whole: KernelMetadata, family: Family, images: frozenset[Image], package: Mapping[str, Bytes]
) -> KernelMetadata:
    shared = tuple(arch for arch in whole.shared_code if _major(arch) == family.major)
    required = [name for name in whole.required_gpus if name in GpuName.names() and GpuName(name).gpu in family.gpus]
    ptx = {image.arch for image in images if image.kind == "ptx"}
    # PTX is listed as `9.0+PTX`, next to machine code.
    machine = (f"{each.arch}+PTX" if each.arch in ptx else each.arch for each in images if each.kind == "sass")
    return whole.of_family(
        str(family),
        {name: member.content for name, member in package.items()},
        archs=sorted({*shared, *machine}, key=architectures.natural),
        gpus=required,
        shared_code=shared,
    )


def _major(arch: str) -> int:
    return int(arch.partition(".")[0])
