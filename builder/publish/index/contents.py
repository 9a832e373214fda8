"""The files of a site of wheels: indexes for installers, pages for people, and a manifest."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from builder import json_text
from builder.errors import BuilderError
from builder.hashes import sha256
from builder.matrix.variant import Variant
from builder.publish.index import people, simple, workers
from builder.publish.index.part import Part, Settings
from builder.publish.index.table import Uploads, environment_names, environments
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError
from builder.wheel.kernel_wheel import KernelWheel

MANIFEST = "builder-index.json"
UPLOADED = "uploaded"
"""The manifest's key for upload times."""
_FORMAT = 1
UNFINISHED = b'{"builder-index": 1, "files": {}, "made": {}}\n'
"""The manifest until all the rest is there."""
_FEW = 300
"""Wheels that are read sooner than other processes start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file of the site: wheels and their fixed files never change, all others do."""

    content: bytes | Path
    fixed: bool


def parts(paths: Collection[Path], settings: Settings, *, processes: int | None = None) -> list[Part]:
    """Read wheels, and return the part of a site that each kernel is; None `processes` are one for each core.

    Raises:
        WheelError: what is wrong with any of the wheels; it may be that it is for a family of GPUs, or cannot be split.
        ToolError: one of the processes was ended.
    """
    kernels: dict[str, list[Path]] = {}
    for path in sorted(paths, key=lambda path: path.name):
        kernels.setdefault(_kernel(path), []).append(path)
    common = replace(settings, environments=environments(frozenset(_variants(path.name for path in paths))))
    before: dict[str, dict[str, tuple[Path, str]]] = {}
    for name, made in settings.before.items():
        before.setdefault(_kernel(made[0]), {})[name] = made
    # Each with what is its own alone: it goes to another process.
    work = [
        (
            own,
            replace(
                common,
                uploaded={each.name: time for each in own if (time := settings.uploaded.get(each.name))},
                before=before.get(kernel, {}),
            ),
        )
        for kernel, own in kernels.items()
    ]
    found = workers.each(_part, work, processes=processes or (1 if len(paths) <= _FEW else None))
    problems = [problem for problem in found if isinstance(problem, str)]
    if problems:
        raise WheelError("\nerror: ".join(problems))
    return [part for part in found if isinstance(part, Part)]


def _kernel(wheel: Path) -> str:
    """Return the kernel of a wheel, as installers call it."""
    return canonicalize_name(wheel.name.partition("-")[0])


def _variants(names: Iterable[str]) -> Iterator[Variant]:
    """Yield the variants in the names of wheels; a name without one is refused when its wheel is read."""
    alike = {name.partition("+")[2]: name for name in names}  # a label and tags say it all
    for name in alike.values():
        try:
            _, version, _, tags = parse_wheel_filename(name)
            yield kernel_wheel.variant_of(version.local, tags)
        except (InvalidWheelFilename, WheelError):  # noqa: PERF203  each name by itself
            continue


def _part(kernel: tuple[Sequence[Path], Settings]) -> Part | str:
    """Return the part of one kernel, or what is wrong with its wheels."""
    paths, settings = kernel
    try:
        return Part.of(kernel_wheel.read_all(paths), settings)
    except WheelError as error:
        return str(error)


def build(wheels: Sequence[KernelWheel], settings: Settings | None = None) -> dict[str, Page]:
    """Return every file of the site of some wheels, as `assemble` does.

    Raises:
        BuilderError: two kernels have the same name for an installer, two wheels the same version and variant, or
            a wheel is for one family of GPUs or cannot be split into families.
    """
    found = settings or Settings()
    common = replace(found, environments=environments(frozenset(each.variant for each in wheels)))
    kernels: dict[str, list[KernelWheel]] = {}
    for each in sorted(wheels, key=lambda each: each.wheel.path.name):
        kernels.setdefault(each.wheel.name, []).append(each)
    return assemble([Part.of(own, common) for own in kernels.values()], common)


def assemble(parts: Iterable[Part], settings: Settings) -> dict[str, Page]:
    """Return every file of the site of some kernels, by its path: wheels first, the manifest last.

    Raises:
        BuilderError: two kernels have one name for an installer, or two wheels are of one version and variant.
    """
    ordered = sorted(parts, key=lambda each: each.name)
    wheels = [each for part in ordered for each in part.wheels]
    _check_names(wheels)
    _check_variants(wheels)
    roots: dict[str, list[str]] = {}
    pages: dict[str, bytes] = {}
    for part in ordered:
        pages |= part.pages
        for root in part.roots:
            roots.setdefault(root, []).append(part.name)
    common: dict[str, bytes] = {}
    for root, names in roots.items():
        common |= simple.first(root, names)
    common |= people.front(
        [each.card for each in ordered],
        environment_names(chain.from_iterable(each.environments for each in ordered)),
        places=chain.from_iterable(each.places for each in ordered),
        base_url=settings.base_url,
    )
    made = {path: sha256(content) for path, content in common.items()}
    for part in ordered:
        made |= part.made
    common[MANIFEST] = _manifest(wheels, settings.uploaded, made)
    fixed = {path: Page(content=content, fixed=True) for part in ordered for path, content in part.fixed.items()}
    return fixed | {path: Page(content=content, fixed=False) for path, content in (pages | common).items()}


def _check_names(wheels: Iterable[KernelWheel]) -> None:
    spelled: dict[str, str] = {}
    for each in wheels:
        other = spelled.setdefault(each.wheel.name, each.kernel)
        if other != each.kernel:
            raise BuilderError(
                f"'{other}' and '{each.kernel}' are one name to an installer: '{each.wheel.name}'",
                help="rename one of the kernels, or give each an index of its own",
            )


def _check_variants(wheels: Iterable[KernelWheel]) -> None:
    """Refuse wheels that differ only in the platform tag: an installer could choose by it, but a person could not."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in wheels:
        key = (each.wheel.name, str(each.wheel.version), str(each.variant))
        found.setdefault(key, []).append(str(each.wheel.path))
    double = "".join(
        f"\n  {name} {version}, {variant}: {', '.join(paths)}"
        for (name, version, variant), paths in sorted(found.items())
        if len(paths) > 1
    )
    if double:
        raise BuilderError(
            f"two wheels are of one version and variant{double}",
            help="keep the one you mean, or build it with another --wheel-version",
        )


def _manifest(wheels: Iterable[KernelWheel], uploaded: Uploads, made: Mapping[str, str]) -> bytes:
    """Name every file of the site: the wheels, and what is made of them. Nothing else is published."""
    digests = {each.wheel.path.name: each.sha256 for each in wheels}
    times = {name: uploaded[name] for name in digests if name in uploaded}
    table: dict[str, object] = {
        "builder-index": _FORMAT,
        "files": dict(sorted(digests.items())),
        "made": dict(sorted(made.items())),
        **({UPLOADED: dict(sorted(times.items()))} if times else {}),
    }
    return json_text.document(table, indent=1).encode()
