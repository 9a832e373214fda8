"""The whole site: indexes for installers, pages for people, and what a resolver reads in place of a wheel."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder import pages
from builder.build.loadtest import record
from builder.errors import BuilderError
from builder.publish.index import choice, grid, simple, variants
from builder.wheel.kernel_wheel import KernelWheel

FILES = "files"
MANIFEST = "builder-index.json"
_FORMAT = 1
_FRAMEWORK = re.compile(r"(?:torch|apache-tvm-ffi)(?![A-Za-z0-9._-])")


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
    environments = choice.by_environment(wheels)
    changing = _simple(wheels, "simple")
    for environment, fitting in environments.items():
        changing |= _simple(fitting, f"for/{environment}/simple")
    if with_variants:
        _add_variants(wheels, fixed, changing)
    changing |= _records(wheels)
    changing |= _landing(wheels, tuple(environments), base_url=base_url)
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


def _simple(wheels: Sequence[KernelWheel], root: str) -> dict[str, bytes]:
    return dict(simple.render([simple.Listing.of(kernel_wheel) for kernel_wheel in wheels], root=root, files=FILES))


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


def _landing(wheels: Sequence[KernelWheel], environments: tuple[str, ...], *, base_url: str | None) -> dict[str, bytes]:
    base = "URL" if base_url is None else base_url.rstrip("/")
    kernels: dict[str, list[KernelWheel]] = {}
    for kernel_wheel in wheels:
        kernels.setdefault(kernel_wheel.wheel.name, []).append(kernel_wheel)
    result = {}
    summaries = []
    for name, own in sorted(kernels.items()):
        grids = grid.grids(own, files=f"../../{FILES}")
        newest = max(own, key=lambda kernel_wheel: (kernel_wheel.wheel.version, kernel_wheel.wheel.path.name))
        result[f"kernels/{name}/index.html"] = pages.render(
            "kernel.html.j2",
            name=name,
            module=newest.module,
            metadata=newest.metadata,
            links=_links(newest),
            requires=_requires(newest),
            grids=grids,
            torches=_by_torch(choice.by_environment(own)),
            base=base,
            base_known=base_url is not None,
        )
        summaries.append({"name": name, "version": grids[0].version, "count": len(own)})
    result["index.html"] = pages.render(
        "index.html.j2", kernels=summaries, environments=environments, base=base, base_known=base_url is not None
    )
    return result


def _by_torch(environments: Iterable[str]) -> Mapping[str, list[str]]:
    """Group the names of environments by PyTorch, in their order."""
    found: dict[str, list[str]] = {}
    for name in environments:
        digits = name.partition("-")[0].removeprefix("torch")
        found.setdefault(f"{digits[0]}.{digits[1:]}", []).append(name)
    return found


def _requires(kernel_wheel: KernelWheel) -> tuple[str, ...]:
    """Return what must be installed besides the framework; that one differs from wheel to wheel."""
    return tuple(
        requirement
        for requirement in kernel_wheel.fields.get_all("Requires-Dist", [])
        if not _FRAMEWORK.match(requirement)
    )


def _links(kernel_wheel: KernelWheel) -> tuple[tuple[str, str], ...]:
    urls = ((label, kernel_wheel.metadata.get(label)) for label in ("source", "upstream"))
    return tuple((label, str(url)) for label, url in urls if str(url).startswith(("https://", "http://")))


def _manifest(wheels: Sequence[KernelWheel], files: Mapping[str, bytes | Path]) -> bytes:
    """Name every file of the site: the wheels, and what is made of them. Nothing else is published."""
    names = {kernel_wheel.wheel.path.name: kernel_wheel.sha256 for kernel_wheel in wheels}
    made = {path: hashlib.sha256(content).hexdigest() for path, content in files.items() if isinstance(content, bytes)}
    table = {"builder-index": _FORMAT, "files": dict(sorted(names.items())), "made": dict(sorted(made.items()))}
    return (json.dumps(table, indent=1) + "\n").encode()
