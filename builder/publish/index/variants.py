"""Indexes of wheel variants (PEP 825): one address for every machine, at which an installer chooses by the GPU.

`variants/torch213/simple` has what runs with one PyTorch, `variants/simple` what needs no certain one. The properties
are those of the providers of NVIDIA and AMD, so that nothing of this tool is needed where a kernel is installed. Each
wheel is there without a label in its version; the one for every machine is there as an old installer takes it, too.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path

from packaging.version import Version

from builder import json_text
from builder.audit import gpus
from builder.audit.size_budget import limit_of
from builder.binary.device_image import Group
from builder.config import Backend, Framework
from builder.config.gpus import Gpu, known, plain
from builder.errors import BuilderError
from builder.hashes import sha256, sha256_of
from builder.matrix import architectures
from builder.metadata import SIGNATURE_FILE
from builder.publish import families
from builder.publish.families import Family
from builder.publish.index import words
from builder.publish.index.simple import FILES, Listing
from builder.publish.index.table import Environment
from builder.wheel.archive import Bytes, WheelError, pack
from builder.wheel.kernel_wheel import KernelWheel

VARIANTS = "variants"
"""The folder of these indexes, and that of their files among the wheels."""
SCHEMA = "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"
NULL = "null"
"""The label of the variant for every machine."""
_NVIDIA, _AMD = "nvidia", "amd"
_PROVIDERS = {
    _NVIDIA: {
        "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
        "requires": ["nvidia-variant-provider"],
    },
    _AMD: {"plugin-api": "amd_variant_provider.plugin:AMDVariantPlugin", "requires": ["amd-variant-provider"]},
}
_OLDEST_DRIVER = "11"
"""The oldest driver that the provider of NVIDIA knows."""
_TOOLKIT = re.compile(r"cu([0-9]{2})([0-9]+)")
_DIGITS = 12
"""The digits of the digest by which files are told apart that have one name in several indexes."""
_KEPT = 1 << 8
"""The device codes whose GPUs are kept: the wheels of a kernel mostly have the same."""
Properties = Mapping[str, Mapping[str, Sequence[str]]]
"""What a machine must have: namespace -> feature -> values, of which one is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A wheel that an installer may choose."""

    label: str
    properties: Properties
    wheel: KernelWheel
    family: Family | None = None
    """The GPUs whose device code it has; None for all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantIndex:
    """An index of the variants of one kernel."""

    listings: tuple[Listing, ...]
    tables: Mapping[str, bytes]
    """`<name>-<version>-variants.json` for each version, by their names."""


def indexes(
    wheels: Sequence[KernelWheel],
    fit: Mapping[Environment, Sequence[KernelWheel]],
    whole: Mapping[Path, Listing],
    *,
    before: Mapping[str, tuple[Path, str]],
) -> dict[str, VariantIndex]:
    """Return the indexes of the variants of a kernel, by their folders, given how its wheels are listed.

    A wheel that was made `before`, and still has its digest, is not made again.

    Raises:
        WheelError: the device code of a wheel cannot be read, or a wheel is larger than its kernel allows.
    """
    listed: dict[str, dict[str, KernelWheel]] = defaultdict(dict)
    oldest: dict[tuple[str, str, str | None], KernelWheel] = {}
    for each in sorted(wheels, key=lambda each: each.wheel.version, reverse=True):
        if each.variant.stable:
            oldest[each.wheel.version.public, each.variant.compute, each.variant.system] = each
        elif each.variant.framework is not Framework.TORCH:
            listed[f"{VARIANTS}/simple"][each.wheel.path.name] = each
    listed[f"{VARIANTS}/simple"] |= {each.wheel.path.name: each for each in oldest.values()}
    for (torch, _), own in fit.items():
        listed[f"{VARIANTS}/{words.value(torch)}/simple"] |= {each.wheel.path.name: each for each in own}
    code = {each.wheel.path: _Code.of(each) for own in listed.values() for each in own.values()}
    files: dict[str, _File] = {}
    found = {root: _index(tuple(own.values()), code, files) for root, own in listed.items() if own}
    made = dict(_made(files, whole, before))
    return {
        root: VariantIndex(listings=tuple(made[path] for path in paths), tables=tables)
        for root, (paths, tables) in found.items()
    }


def _index(
    wheels: Sequence[KernelWheel], code: Mapping[Path, "_Code"], files: dict[str, "_File"]
) -> tuple[list[str], dict[str, bytes]]:
    """Add the files that an index has of some wheels; returns their paths in the site, and its tables."""
    paths: list[str] = []
    tables: dict[str, bytes] = {}
    versions: dict[Version, list[KernelWheel]] = defaultdict(list)
    for each in wheels:
        versions[Version(each.wheel.version.public)].append(each)
    for version, own in versions.items():
        choices = list(_choices(own, code))
        properties = {choice.label: choice.properties for choice in choices}
        distribution = own[0].wheel.path.name.partition("-")[0]
        tables[f"{distribution}-{version}-variants.json"] = _json(properties)
        for choice in choices:
            texts = [
                _json({choice.label: choice.properties}, among=properties),
                *([b""] if choice.label == NULL else []),
            ]
            for text in texts:
                file = _File.of(choice, text, code[choice.wheel.wheel.path])
                files[file.path] = file
                paths.append(file.path)
    return paths, tables


def _choices(wheels: Iterable[KernelWheel], code: Mapping[Path, "_Code"]) -> Iterator[Choice]:
    """Yield the choices among wheels of one version; two with one label have the same properties."""
    taken: dict[str, Properties] = {}

    def place(each: KernelWheel) -> tuple[str, str]:
        return each.variant.system or "", each.variant.python or ""

    for _place, own in groupby(sorted(wheels, key=place), key=place):
        slots: dict[str, list[KernelWheel]] = defaultdict(list)
        for each in own:
            slots[each.variant.compute].append(each)
        best = [max(slot, key=lambda each: each.wheel.version) for slot in slots.values()]
        for choice in _of_machine(best, code):
            label, number = choice.label, 2
            while taken.setdefault(label, choice.properties) != choice.properties:
                label, number = f"{choice.label}.{number}", number + 1
            yield Choice(label=label, properties=choice.properties, wheel=choice.wheel, family=choice.family)


def _of_machine(wheels: Sequence[KernelWheel], code: Mapping[Path, "_Code"]) -> Iterator[Choice]:
    """Yield the choices for one system and one Python."""
    cuda = sorted((each for each in wheels if each.variant.backend is Backend.CUDA), key=_toolkit, reverse=True)
    general = min(wheels, key=lambda each: (each.variant.backend not in (Backend.CPU, Backend.METAL), _toolkit(each)))
    yield Choice(label=NULL, properties={}, wheel=general)
    for place in range(len(cuda)):
        yield from _of_driver(cuda[place:], general, code)
    for each in wheels:
        running = sorted(gpu.arch for gpu in code[each.wheel.path].running)
        if each.variant.backend is Backend.ROCM and running:
            yield Choice(label=each.variant.compute, properties={_AMD: {"gfx_arch": running}}, wheel=each)


def _of_driver(cuda: Sequence[KernelWheel], general: KernelWheel, code: Mapping[Path, "_Code"]) -> Iterator[Choice]:
    """Yield the choices for a driver that is as new as the toolkit of the first wheel.

    The provider says of a GPU that it runs the code of each older one of its family, which not every code is for. It
    prefers that of its own, so each capability is named with the wheel that it runs, and with the general one where
    it runs none and an older GPU does.
    """
    newest = cuda[0]
    major, minor = _toolkit(newest)
    bound = {"cuda_version_lower_bound": [f"{major}.{minor}" if major else _OLDEST_DRIVER]}
    if not code[newest.wheel.path].running:
        yield Choice(label=newest.variant.compute, properties={_NVIDIA: bound}, wheel=newest)
        return
    by_path = {each.wheel.path: each for each in (*cuda, general)}
    found: dict[tuple[Path, Family | None, str], list[str]] = defaultdict(list)
    older: set[Family] = set()
    for gpu in capabilities():
        path = next((each.wheel.path for each in cuda if gpu in code[each.wheel.path].running), None)
        value = f"{gpu.arch.replace('.', '')}_real"
        if path is not None:
            older.add(Family.of(gpu))
            family = code[path].running[gpu]
            found[path, family, str(family or "all")].append(value)
        elif Family.of(gpu) in older and general.variant.backend is not Backend.CUDA:
            found[general.wheel.path, None, general.variant.compute].append(value)
    for (path, family, end), values in found.items():
        yield Choice(
            label=f"{newest.variant.compute}.{end}",
            properties={_NVIDIA: {**bound, "sm_arch": sorted(values)}},
            wheel=by_path[path],
            family=family,
        )


def _toolkit(wheel: KernelWheel) -> tuple[int, int]:
    """Return the CUDA toolkit of a wheel; zeros where it has none."""
    found = _TOOLKIT.fullmatch(wheel.variant.compute)
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


@cache
def capabilities() -> tuple[Gpu, ...]:
    """Return every GPU that a CUDA toolkit compiles for, by its capability; the known ones with their other names."""
    there = {gpu.arch: gpu for gpu in known() if gpu.backend is Backend.CUDA}
    targets = {plain(target) for generation in architectures.generations() for target in generation.targets}
    return tuple(
        there.get(arch, Gpu(backend=Backend.CUDA, arch=arch, names=(arch,)))
        for arch in sorted(targets | there.keys(), key=architectures.natural)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Code:
    """The device code of a wheel."""

    running: Mapping[Gpu, Family | None]
    """The GPUs that run all of it, each with the family whose part is enough; None needs the whole wheel."""
    families: tuple[Family, ...]
    """The families that it is split into; none for one that is whole: signed, or of one family."""

    @classmethod
    def of(cls, wheel: KernelWheel) -> "_Code":
        """Read the device code of a wheel; without such code of its own it has none."""
        try:
            with wheel.wheel.held() as held:
                groups, found = families.code(replace(wheel, wheel=held))
        except BuilderError as error:
            raise WheelError(f"'{wheel.wheel.path}' cannot be a variant: {error.message}", help=error.help) from error
        is_split = len(found) > 1 and SIGNATURE_FILE not in wheel.package
        return cls(running=_running(wheel.variant.backend, groups), families=found if is_split else ())


@lru_cache(maxsize=_KEPT)
def _running(backend: Backend, groups: frozenset[Group]) -> Mapping[Gpu, Family | None]:
    """Return the GPUs that run device code; a family's part is enough for its known GPUs, and not always for others."""
    among = capabilities() if backend is Backend.CUDA else tuple(gpu for gpu in known() if gpu.backend is backend)
    running = [gpu for gpu in among if groups and gpus.choose(gpu, groups).runs]
    if backend is not Backend.CUDA:
        return dict.fromkeys(running)
    parts = {family: [family.wanted(group) for group in groups] for family in map(Family.of, running)}
    return {
        gpu: family if gpus.choose(gpu, filter(None, parts[family])).runs else None
        for gpu, family in ((gpu, Family.of(gpu)) for gpu in running)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A wheel to make of another one."""

    path: str
    """Its path in the site."""
    wheel: KernelWheel
    family: Family | None
    text: bytes
    """The content of its `variant.json`; empty for installers without variants, and without a label in its name."""

    @classmethod
    def of(cls, choice: Choice, text: bytes, code: _Code) -> "_File":
        """Return the wheel for a choice."""
        wheel, family = choice.wheel, choice.family if choice.family in code.families else None
        digest = sha256(f"{wheel.sha256} {family} ".encode() + text)[:_DIGITS]
        distribution, _version, *tags = wheel.wheel.path.name.removesuffix(".whl").split("-")
        name = "-".join([distribution, wheel.wheel.version.public, *tags, *([choice.label] if text else [])])
        return cls(path=f"{FILES}/{VARIANTS}/{digest}/{name}.whl", wheel=wheel, family=family, text=text)

    @property
    def core(self) -> bytes:
        """Its METADATA: that of the other wheel, with the version alone."""
        version = self.wheel.wheel.version
        return self.wheel.core.replace(f"\nVersion: {version}\n".encode(), f"\nVersion: {version.public}\n".encode(), 1)

    def listed(self, content: bytes | Path, whole: Mapping[Path, Listing]) -> Listing:
        """Return how it is listed, given how the other wheels are.

        Raises:
            WheelError: it has more bytes than its kernel allows.
        """
        path, version = self.wheel.wheel.path, Version(self.wheel.wheel.version.public)
        found = whole[path].made(self.path, content, core=self.core, version=version)
        limit = limit_of(self.wheel.metadata)
        if limit is not None and found.size > limit.bytes:
            raise WheelError(
                f"'{path}' cannot be a variant: '{found.filename}' has {found.size:,} bytes and may have {limit}",
                help="raise 'max-size' in [wheel] of build.toml, or make the wheel smaller: `builder audit --sizes`",
            )
        return found


def _made(
    files: Mapping[str, _File], whole: Mapping[Path, Listing], before: Mapping[str, tuple[Path, str]]
) -> Iterator[tuple[str, Listing]]:
    """Make the wheels that are not there, and yield how each is listed; what several have is compressed once."""
    by_wheel: dict[Path, dict[Family | None, list[_File]]] = defaultdict(lambda: defaultdict(list))
    for file in files.values():
        there, digest = before.get(file.path, (None, ""))
        if there is not None and there.is_file() and sha256_of(there) == digest:
            yield file.path, file.listed(there, whole)
        else:
            by_wheel[file.wheel.wheel.path][file.family].append(file)
    for path, by_family in by_wheel.items():
        first = next(iter(by_family.values()))[0]
        wheel, core = families.loaded(first.wheel), Bytes.of(Bytes(first.core))
        public, own = wheel.wheel.version.public, wheel.wheel.dist_info
        info = f"{path.name.partition('-')[0]}-{public}.dist-info"
        for family, asked in by_family.items():
            members = {
                re.sub(f"^{re.escape(own)}/", f"{info}/", name): Bytes.of(member)
                for name, member in families.members(wheel, family).items()
            }
            members[f"{info}/METADATA"] = core
            for file in asked:
                more = {f"{info}/variant.json": Bytes(file.text)} if file.text else {}
                yield file.path, file.listed(pack({**members, **more}, dist_info=info), whole)


def _json(labels: Mapping[str, Properties], *, among: Mapping[str, Properties] | None = None) -> bytes:
    """Return a table of variants; `among` are all of its index, which say whose properties there are."""
    used = {namespace for each in (among or labels).values() for namespace in each}
    table = {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": [name for name in _PROVIDERS if name in used] or [_NVIDIA]},
        "providers": {name: each for name, each in _PROVIDERS.items() if name in (used or {_NVIDIA})},
        "variants": labels,
    }
    return json_text.document(table, indent=1, ordered=True).encode()
