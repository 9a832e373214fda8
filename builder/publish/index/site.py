"""The whole site: indexes for installers, pages for people, and what a resolver reads in place of a wheel."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.build.loadtest import record
from builder.errors import BuilderError
from builder.publish.index import choice, grid, people, simple, variants
from builder.wheel.kernel_wheel import KernelWheel

FILES = "files"
MANIFEST = "builder-index.json"
_FORMAT = 1
UNFINISHED = b'{"builder-index": 1, "files": {}, "made": {}}\n'
"""The manifest until all the rest is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file of the site: the wheels and what belongs to them never change, the rest does."""

    content: bytes | Path
    fixed: bool


def build(
    wheels: Sequence[KernelWheel], *, base_url: str | None = None, with_variants: bool = False
) -> Mapping[str, Page]:
    """Return every file of the site, by its path; a link never leads to a file that comes later.

    Args:
        wheels: What the site has.
        base_url: Where it will be served; None shows a word to replace.
        with_variants: Whether the wheels are there as wheel variants, too.

    Raises:
        BuilderError: two kernels have one name for an installer, or two wheels are of one version and variant.
    """
    _check_names(wheels)
    _check_variants(wheels)
    fixed: dict[str, bytes | Path] = {}
    for kernel_wheel in wheels:
        name = kernel_wheel.wheel.path.name
        fixed[f"{FILES}/{name}"] = kernel_wheel.wheel.path
        fixed[f"{FILES}/{name}{simple.METADATA_SUFFIX}"] = kernel_wheel.core
        bill = grid.bill_member(kernel_wheel)
        if bill is not None:
            fixed[f"{FILES}/{name}{grid.SBOM_SUFFIX}"] = kernel_wheel.wheel.members[bill].read()
    environments = choice.by_environment(wheels)
    listings = {kernel_wheel.wheel.path: simple.Listing.of(kernel_wheel) for kernel_wheel in wheels}
    changing = dict(simple.render(tuple(listings.values()), root="simple", files=FILES))
    for environment, fitting in environments.items():
        own = [listings[kernel_wheel.wheel.path] for kernel_wheel in fitting]
        changing |= simple.render(own, root=f"for/{environment}/simple", files=FILES)
    if with_variants:
        _add_variants(wheels, fixed, changing)
    changing |= _records(wheels)
    changing |= people.render(wheels, tuple(environments), base_url=base_url, files=FILES)
    changing[MANIFEST] = _manifest(wheels, fixed | changing)
    return {path: Page(content=content, fixed=True) for path, content in fixed.items()} | {
        path: Page(content=content, fixed=False) for path, content in changing.items()
    }


def _records(wheels: Sequence[KernelWheel]) -> dict[str, bytes]:
    """Return the records of the wheels, which may change: a later load test may come further."""
    known = (
        kernel_wheel
        for kernel_wheel in wheels
        if record.read(kernel_wheel.wheel.path, sha256=kernel_wheel.sha256) is not None
    )
    paths = (record.path_of(kernel_wheel.wheel.path) for kernel_wheel in known)
    return {f"{FILES}/{path.name}": path.read_bytes() for path in paths}


def _add_variants(wheels: Sequence[KernelWheel], fixed: dict[str, bytes | Path], changing: dict[str, bytes]) -> None:
    files = f"{FILES}/variants"
    listings = []
    for kernel_wheel in wheels:
        listing, content = variants.convert(kernel_wheel)
        listings.append(listing)
        fixed[f"{files}/{listing.filename}"] = content
        fixed[f"{files}/{listing.filename}{simple.METADATA_SUFFIX}"] = listing.core
    changing |= simple.render(listings, root="variants/simple", files=files)
    changing |= {f"variants/simple/{path}": content for path, content in variants.index_files(wheels).items()}


def _check_names(wheels: Sequence[KernelWheel]) -> None:
    spelled: dict[str, str] = {}
    for kernel_wheel in wheels:
        other = spelled.setdefault(kernel_wheel.wheel.name, kernel_wheel.kernel)
        if other != kernel_wheel.kernel:
            raise BuilderError(
                f"'{other}' and '{kernel_wheel.kernel}' are one name to an installer: '{kernel_wheel.wheel.name}'",
                help="rename one of the kernels, or give each an index of its own",
            )


def _check_variants(wheels: Sequence[KernelWheel]) -> None:
    """Refuse wheels that differ only in the platform tag: an installer would choose by it, and a person could not."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for kernel_wheel in wheels:
        key = (kernel_wheel.wheel.name, str(kernel_wheel.wheel.version), str(kernel_wheel.variant))
        found.setdefault(key, []).append(str(kernel_wheel.wheel.path))
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


def _manifest(wheels: Sequence[KernelWheel], files: Mapping[str, bytes | Path]) -> bytes:
    """Name every file of the site: the wheels, and what is made of them. Nothing else is published."""
    names = {kernel_wheel.wheel.path.name: kernel_wheel.sha256 for kernel_wheel in wheels}
    made = {path: hashlib.sha256(content).hexdigest() for path, content in files.items() if isinstance(content, bytes)}
    table = {"builder-index": _FORMAT, "files": dict(sorted(names.items())), "made": dict(sorted(made.items()))}
    return (json.dumps(table, indent=1) + "\n").encode()
