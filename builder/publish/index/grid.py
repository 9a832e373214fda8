"""A grid of frameworks and platforms for the wheels of one version, and the changes since the version before."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby, zip_longest
from typing import Any
from urllib.parse import quote

from builder import wording
from builder.config import Framework, Version
from builder.config.gpus import Gpu, known
from builder.make import wheel_record as record
from builder.matrix.variant import Variant
from builder.publish.index import words
from builder.publish.index.simple import FILES
from builder.publish.index.table import Pick, Place, Table, in_matrix
from builder.wheel.kernel_wheel import KernelWheel

SBOM_SUFFIX = ".cdx.json"
TOP = "../../"
"""The relative path from a kernel's page to the top of the site."""
View = dict[str, Any]
"""The values for a template, by name."""
_MOST_FILES = 10
"""The most changed files that are named."""
_GENERATED = "_ops"
"""The prefix of module names that every build generates."""


def grids(table: Table) -> list[View]:
    """Return a grid for each version, the newest first."""
    releases = table.releases()
    return [_grid(release, before) for release, before in zip_longest(releases, releases[1:])]


def _grid(release: Table, before: Table | None) -> View:
    shown = {each.wheel.path.name: _wheel(each, release) for each in release.wheels}
    plain = all(each.variant.framework is Framework.CTYPES for each in release.wheels)
    return {
        "version": release.version,
        "columns": ["any framework"] if plain else [f"torch {torch}" for torch in release.torches],
        "rows": [
            {
                "compute": words.compute(place[0]),
                "system": words.system(place[1]),
                "cells": [
                    {"span": span, "why": why, "wheels": [shown[each.wheel.path.name] for each in wheels]}
                    for span, wheels, why in _cells(release, place, plain=plain)
                ],
            }
            for place in release.places
        ],
        # All wheels; a wheel that no installer prefers is in no cell of the grid.
        "wheels": list(shown.values()),
        "changes": None if before is None else _changes(before, release),
        "released": release.released,
    }


def _cells(release: Table, place: Place, *, plain: bool) -> Iterator[tuple[int, Sequence[KernelWheel], str]]:
    """Yield for each cell the columns that it spans, its wheels, and the reason if it has none.

    Wheels that need no torch are the same in every column, so they have one cell.
    """
    picks = [pick for pick in release.picks if pick.place == place]
    if plain:
        yield 1, picks[0].wheels, ""
        return
    by_torch = {torch: pick for pick in picks for torch in pick.torches}

    def content(torch: Version) -> tuple[Pick | None, str]:
        empty = "not built" if in_matrix(torch, place) else "no PyTorch"
        return by_torch.get(torch), "" if torch in by_torch else empty

    for (pick, why), torches in groupby(release.torches, key=content):
        yield len(list(torches)), () if pick is None else pick.wheels, why


def serves(variant: Variant) -> str:
    """Return in words what a wheel is built for."""
    place = words.compute(variant.compute)
    where = place if variant.system is None else f"{place}, {words.system(variant.system)}"
    match variant.framework:
        case Framework.TORCH_NOARCH:
            return f"any torch, {where}"
        case Framework.CTYPES:
            return f"any framework, {where}"
        case Framework.TVM_FFI:
            return f"tvm-ffi {variant.version}, {where}"
        case Framework.TORCH:
            return f"torch {variant.version}{' and newer' if variant.stable else ''}, {where}"


def _wheel(kernel_wheel: KernelWheel, release: Table) -> View:
    path = kernel_wheel.wheel.path
    url = f"{TOP}{FILES}/{quote(path.name)}"
    tested = record.read(path, sha256=kernel_wheel.sha256)
    return {
        "variant": str(kernel_wheel.variant),
        "serves": serves(kernel_wheel.variant),
        "filename": path.name,
        "url": url,
        "size": wording.size(kernel_wheel.size),
        "sha256": kernel_wheel.sha256,
        "requirement": shlex.quote(f"{kernel_wheel.wheel.name}=={kernel_wheel.wheel.version}"),
        "archs": kernel_wheel.metadata.archs or (),
        "code": release.code[path],
        "families": [
            (f"{family} ({', '.join(gpu.names[0] for gpu in family.gpus)})", f"{TOP}{root}/", wording.size(size))
            for family, (root, size) in release.split.get(path, {}).items()
        ],
        # The wheel itself does not tell which machine tested it.
        "load_test": "not known, as it has no record" if tested is None else tested.words,
        "check": f"echo {shlex.quote(f'{kernel_wheel.sha256}  {path.name}')} | sha256sum --check",
        "bill": None if bill_member(kernel_wheel) is None else f"{url}{SBOM_SUFFIX}",
    }


def bill_member(kernel_wheel: KernelWheel) -> str | None:
    """Return the name of the bill of materials in a wheel; None without one."""
    name = f"{kernel_wheel.wheel.dist_info}/sboms/{kernel_wheel.wheel.name}{SBOM_SUFFIX}"
    return name if name in kernel_wheel.wheel.members else None


def _changes(older: Table, newer: Table) -> View:
    """Compare two versions: the platforms they serve, their requirements, Python files and sizes."""
    unsure = {gpu for table in (older, newer) for each in table.wheels for gpu in table.code[each.wheel.path].silent}
    before, after = _traits(older, unsure), _traits(newer, unsure)
    variants = {str(each.variant): each for each in older.wheels}
    pairs = [(variants[name], each) for each in newer.wheels if (name := str(each.variant)) in variants]
    was, now = (_python_files(pairs[0][side]) if pairs else {} for side in (0, 1))
    return {
        "since": older.version,
        "new": [*(each for each in after if each not in before), *_named(name for name in now if name not in was)],
        "gone": [*(each for each in before if each not in after), *_named(name for name in was if name not in now)],
        "changed": [
            *_license(older, newer),
            *_named(name for name in now if name in was and was[name] != now[name]),
            *_sizes(pairs),
        ],
    }


def _traits(release: Table, unsure: AbstractSet[Gpu]) -> dict[str, None]:
    """Return the platforms and requirements of a version, in words and in a fixed order, without `unsure` GPUs."""
    running = {answer.gpu for each in release.wheels for answer in release.code[each.wheel.path].codes if answer.runs}
    found = [
        *(f"PyTorch {torch}" for torch in release.torches),
        *map(words.compute, release.computes),
        *map(words.system, release.systems),
        *(words.gpu_title(gpu) for gpu in known() if gpu in running - unsure),
        *(f"requires {wording.escaped(requirement)}" for requirement in words.requires(release.newest)),
    ]
    return dict.fromkeys(found)


def _license(older: Table, newer: Table) -> Iterator[str]:
    was, now = (table.newest.metadata.license or "not said" for table in (older, newer))
    if was != now:
        yield f"license {wording.escaped(now)}, before {wording.escaped(was)}"


def _python_files(wheel: KernelWheel) -> dict[str, str]:
    """Return path -> hash of a wheel's Python files; the other cells have the same sources."""
    files = sorted(wheel.metadata.digests.items())
    return {name: digest for name, digest in files if name.endswith(".py") and not name.startswith(_GENERATED)}


def _named(files: Iterable[str]) -> Iterator[str]:
    """Yield the names of files in words; many are only counted."""
    names = list(files)
    yield from (f"file {wording.escaped(name)}" for name in names[:_MOST_FILES])
    if len(names) > _MOST_FILES:
        yield f"{len(names) - _MOST_FILES} more files"


def _sizes(pairs: Sequence[tuple[KernelWheel, KernelWheel]]) -> Iterator[str]:
    was, now = (wording.size(sum(pair[side].size for pair in pairs)) for side in (0, 1))
    if was != now:
        which = "the wheel" if len(pairs) == 1 else f"the {len(pairs)} wheels"
        yield f"size {now}, before {was}, of {which} that both versions have"
