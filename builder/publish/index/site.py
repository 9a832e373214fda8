"""The whole site: indexes for installers, pages for people, and what a resolver reads in place of a wheel."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from builder import json_text
from builder.errors import BuilderError
from builder.publish.index import choice, people, simple, uploads
from builder.publish.index.part import FILES, VARIANTS, Listed, Page, Part, Settings, digests, page_path, part
from builder.publish.index.uploads import Uploads
from builder.wheel.kernel_wheel import KernelWheel

__all__ = ["FILES", "MANIFEST", "UNFINISHED", "Page", "assemble", "build"]

MANIFEST = "builder-index.json"
UPLOADED = "uploaded"
"""Where the manifest has the times at which wheels came."""
_FORMAT = 1
UNFINISHED = b'{"builder-index": 1, "files": {}, "made": {}}\n'
"""The manifest until all the rest is there."""


def build(
    wheels: Sequence[KernelWheel],
    *,
    base_url: str | None = None,
    with_variants: bool = False,
    with_families: bool = False,
    uploaded: Uploads = uploads.NONE,
) -> Mapping[str, Page]:
    """Return every file of the site of some wheels, by its path.

    Args:
        wheels: What the site has.
        base_url: Where it will be served; None shows a word to replace.
        with_variants: Whether the wheels are there as wheel variants, too.
        with_families: Whether there are indexes for each family of GPUs, too.
        uploaded: When they came into the index.

    Raises:
        BuilderError: two kernels have one name for an installer, or two wheels are of one version and variant.
    """
    settings = Settings.of(
        (each.variant for each in wheels),
        base_url=base_url,
        with_variants=with_variants,
        with_families=with_families,
    )
    kernels: dict[str, list[KernelWheel]] = {}
    for kernel_wheel in wheels:
        kernels.setdefault(kernel_wheel.wheel.name, []).append(kernel_wheel)
    return assemble([part(own, settings, uploaded) for own in kernels.values()], settings)


def assemble(parts: Iterable[Part], settings: Settings) -> Mapping[str, Page]:
    """Return every file of the site that has these kernels; a link never leads to a file that comes later.

    Raises:
        BuilderError: two kernels have one name for an installer, or two wheels are of one version and variant.
    """
    ordered = sorted(parts, key=lambda each: each.name)
    wheels = [wheel for each in ordered for wheel in each.wheels]
    _check_names(wheels)
    _check_variants(wheels)
    environments = choice.named(environment for each in ordered for environment in each.environments)
    shared = _roots(ordered, settings)
    shared |= people.front(
        [each.card for each in ordered],
        tuple(environments),
        values=chain.from_iterable(each.values for each in ordered),
        base_url=settings.base_url,
    )
    made = dict(chain.from_iterable(each.made.items() for each in ordered)) | digests(shared)
    pages = {page_path(each.name): each.page for each in ordered}
    changing: dict[str, bytes] = {}
    for each in ordered:
        changing |= {**each.indexes, **each.records}
    changing |= pages | shared | {MANIFEST: _manifest(wheels, made)}
    fixed = chain.from_iterable(each.fixed.items() for each in ordered)
    return {path: Page(content=content, fixed=True) for path, content in fixed} | {
        path: Page(content=content, fixed=False) for path, content in changing.items()
    }


def _roots(parts: Sequence[Part], settings: Settings) -> dict[str, bytes]:
    """Return the first page of each index for installers."""
    names = [each.name for each in parts]
    found = simple.root(names, root="simple")
    if settings.with_variants:
        found |= simple.root(names, root=f"{VARIANTS}/simple")
    by_environment: dict[choice.Environment, list[str]] = {}
    for each in parts:
        for environment in each.environments:
            by_environment.setdefault(environment, []).append(each.name)
    by_root: dict[str, list[str]] = {}
    for each in parts:
        for place in each.families:
            by_root.setdefault(place, []).append(each.name)
    for place, fitting in by_root.items():
        found |= simple.root(fitting, root=place)
    for environment, fitting in by_environment.items():
        found |= simple.root(fitting, root=simple.root_for(environment))
    return found


def _check_names(wheels: Sequence[Listed]) -> None:
    spelled: dict[str, str] = {}
    for wheel in wheels:
        other = spelled.setdefault(wheel.project, wheel.kernel)
        if other != wheel.kernel:
            raise BuilderError(
                f"'{other}' and '{wheel.kernel}' are one name to an installer: '{wheel.project}'",
                help="rename one of the kernels, or give each an index of its own",
            )


def _check_variants(wheels: Sequence[Listed]) -> None:
    """Refuse wheels that differ only in the platform tag: an installer would choose by it, and a person could not."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for wheel in wheels:
        found.setdefault((wheel.project, wheel.version, wheel.variant), []).append(str(wheel.path))
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


def _manifest(wheels: Sequence[Listed], made: Mapping[str, str]) -> bytes:
    """Name every file of the site: the wheels, and what is made of them. Nothing else is published."""
    names = {wheel.path.name: wheel.sha256 for wheel in wheels}
    table: dict[str, object] = {
        "builder-index": _FORMAT,
        "files": dict(sorted(names.items())),
        "made": dict(sorted(made.items())),
    }
    uploaded = {wheel.path.name: wheel.uploaded for wheel in wheels if wheel.uploaded is not None}
    table |= {UPLOADED: dict(sorted(uploaded.items()))} if uploaded else {}
    return json_text.document(table, indent=1).encode()
