"""Compare the ops of two builds: each is loaded in a sandbox, as in a load test, and torch's dispatcher is asked."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import loadtest, pins, sandbox
from builder.config import Backend, Framework, Version
from builder.diff.changes import FactChange
from builder.diff.facts import Facts, module_of, opened, shared_names
from builder.environment import pinned
from builder.errors import BuilderError
from builder.loadtest.process import ImportReport
from builder.make import load, sandbox_contents
from builder.make.job import PinnedPackages
from builder.matrix import Cell
from builder.matrix.variant import Variant
from builder.metadata import ID
from builder.pins import MissingPinsError, Requirement
from builder.plan.installed import framework_of
from builder.toolchain.this_machine import installed_frameworks
from builder.wheel.archive import unpack

PART = "ops"
_NO_PARSER = "its schema changed, and torch's parser could not judge it here"
_Described = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The places with a torch that may load the builds."""

    store: Path
    """Its pinned environments are used where they are there; none is made."""
    python: Path | None = None
    """The Python that the user named; None for the running one."""
    home: Path | None = None
    """The user's home, of which the sandbox shows nothing."""
    cc: Path | None = None
    """The compiler for stand-ins of a GPU's libraries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One of the two builds."""

    path: Path
    facts: Facts
    variant: Variant | None


def compare(before: Build, after: Build, loading: Loading | None) -> tuple[tuple[FactChange, ...], str]:
    """Return the changes of ops, and why they come from texts of the libraries, where the builds were not loaded."""
    frameworks = {each.variant.framework for each in (before, after) if each.variant is not None}
    if not frameworks & {Framework.TORCH, Framework.TORCH_NOARCH}:
        return (), ""
    from_texts = "the ops in torch's dispatcher, only schemas in the libraries"
    if loading is None:
        return tuple(_of_texts(before.facts, after.facts)), f"{from_texts}: neither build was loaded"
    try:
        old = _described(before, loading, {})
        new = _described(after, loading, {name: op["schema"] for name, op in old.items()})
    except BuilderError as error:
        return tuple(_of_texts(before.facts, after.facts)), f"{from_texts}: {error.message}"
    return tuple(of_dispatcher(old, new)), ""


def of_dispatcher(before: _Described, after: _Described) -> Iterator[FactChange]:
    """Yield what differs in what the dispatcher says of the ops of two builds."""
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            lost = "nothing registers this op any more" if old else ""
            yield _change(name, "" if old is None else old["schema"], "" if new is None else new["schema"], breaks=lost)
            continue
        if old["schema"] != new["schema"]:
            breaks = "" if new["fits"] else "torch's parser: calls of the schema before do not fit"
            breaks = "what it changes in place is different" if old["mutable"] != new["mutable"] else breaks
            yield _change(name, old["schema"], new["schema"], breaks=breaks)
        lost_keys = [key for key in old["keys"] if key not in new["keys"]]
        if old["keys"] != new["keys"]:
            breaks = f"it has no kernel for {', '.join(lost_keys)} any more" if lost_keys else ""
            one, other = (" ".join(each["keys"]) for each in (old, new))
            yield _change(f"{name}, dispatch keys", one, other, breaks=breaks)
        if old["fake"] != new["fake"]:
            breaks = "torch.compile needs it" if old["fake"] else ""
            one, other = ("there" if each["fake"] else "" for each in (old, new))
            yield _change(f"{name}, fake kernel", one, other, breaks=breaks)


def _change(subject: str, before: str, after: str, breaks: str) -> FactChange:
    return FactChange(part=PART, subject=subject, before=before, after=after, breaks=breaks)


def _of_texts(before: Facts, after: Facts) -> Iterator[FactChange]:
    """Yield what differs in the texts of the libraries that look like schemas."""
    old, new = ({text.partition("(")[0]: text for text in facts.schemas} for facts in (before, after))
    for name in sorted({*old, *new}):
        one, other = old.get(name, ""), new.get(name, "")
        if one != other:
            breaks = "" if not one else _NO_PARSER if other else "its schema is in no library any more"
            yield _change(name, one, other, breaks=breaks)


def _described(build: Build, loading: Loading, before: Mapping[str, str]) -> _Described:
    """Load a build, and return its ops, by names that all builds share.

    Raises:
        BuilderError: it cannot be loaded here.
    """
    why = sandbox.why_unavailable()
    if why is not None:
        raise BuilderError(f"what is compared is loaded only in a sandbox, and there is none: {why}")
    if build.variant is None:
        raise BuilderError(f"'{build.path.name}' is of no variant")
    metadata = build.facts.kernel
    if metadata.ops is None or ID.fullmatch(metadata.ops) is None:
        raise BuilderError(f"the metadata of '{build.path.name}' names no library")
    cell = cell_of(build.variant)
    python, site_packages, visible = _place(cell, loading)
    with tempfile.TemporaryDirectory(prefix="builder-diff-") as folder:
        root = Path(folder) / "installed"
        root.mkdir()
        wheel = opened(build.path)
        unpack(wheel, root)
        package = root / module_of(wheel)
        folders: tuple[Path, ...] = ()
        if cell.backend is not Backend.CPU and not cell.noarch and loading.cc is not None:
            folders = load.loader_folders(site_packages, [package], Path(folder), cc=loading.cc)
        setup = loadtest.Setup(
            package=package,
            cell=cell,
            python=python,
            libraries=folders,
            visible=visible.with_more(readable=folders),
            scratch=Path(folder),
        )
        names = shared_names(metadata)
        found = loadtest.described(setup, ops=metadata.ops, extensions=metadata.extensions, names=names, before=before)
    return _told(found)


def _told(found: ImportReport) -> _Described:
    """Return the ops of a report; an import that fails may have registered them all the same.

    Raises:
        BuilderError: there is none.
    """
    if found.described:
        return found.described
    chain = [] if found.failure is None else found.failure["chain"]
    reason = found.died or found.library or (chain[0]["text"] if chain else "it registers no op")
    raise BuilderError(f"a build cannot be loaded here: {(reason.strip().splitlines() or [''])[0]}")


def cell_of(variant: Variant) -> Cell:
    """Return a cell that is loaded like a wheel of a variant."""
    digits = variant.compute.lstrip("abcdefghijklmnopqrstuvwxyz-")
    stable = variant.version if variant.stable else None
    return Cell(
        torch=variant.version or Version("0.0"),
        toolkit=f"{digits[:-1]}.{digits[-1]}" if len(digits) > 1 else None,
        system=variant.system or "",
        variant=str(variant),
        framework=variant.framework,
        backend=variant.backend,
        compute=variant.compute,
        stable_abi=stable,
        python=variant.python,
    )


def _place(cell: Cell, loading: Loading) -> tuple[Path, Path, sandbox.SandboxPaths]:
    """Return an interpreter with the torch of a cell, its packages, and what the sandbox shows of them.

    Raises:
        BuilderError: there is none on this machine.
    """
    found = None if loading.python is not None else _in_store(cell, loading.store)
    if found is not None:
        seen = tuple(sandbox_contents.of_python(found.python, environment=found.path, home=loading.home))
        return found.python, found.site_packages, sandbox.SandboxPaths(readable=(*seen, found.path))
    installed, _ = framework_of(cell, installed_frameworks(loading.python))
    seen = tuple(sandbox_contents.of_python(installed.python, environment=None, home=loading.home))
    shown = sandbox.SandboxPaths(readable=(*seen, installed.site_packages))
    return installed.python, installed.site_packages, shown


def _in_store(cell: Cell, store: Path) -> PinnedPackages | None:
    """Return the pinned environment of a cell that is in the store; None without one."""
    known = pins.load()
    for python in reversed(known.pythons):
        try:
            wanted = known.environment(Requirement.of(cell, python))
        except MissingPinsError:
            continue
        found = pinned.at(wanted, store)
        if (cell.python is None or cell.python == python) and (found.path / pinned.MARKER).is_file():
            return found
    return None
