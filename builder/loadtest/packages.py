"""The packages of a load test: a user has them because of torch, build.toml or other kernels."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.config import Backend, Framework, dependencies
from builder.kernel import Kernel
from builder.kernel.source_set import package_directory
from builder.matrix import Cell
from builder.pins import PinnedWheel

_CLIENT = "kernels"
"""The module that loads other kernels by their names on the hub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFolder:
    """A variant of a locked kernel that another kernel depends on."""

    repo_id: str
    commit: str
    folder: Path
    python_depends: tuple[str, ...] = ()
    """The Python packages that it imports, by their names in build.toml."""
    depends: tuple["KernelFolder", ...] = ()

    def all(self) -> Iterator["KernelFolder"]:
        """Yield this kernel and all its dependencies."""
        yield self
        for each in self.depends:
            yield from each.all()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for the process that loads the kernel."""
        return {"folder": str(self.folder), "depends": {each.repo_id: each.to_json() for each in self.depends}}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTestPackages:
    """The packages that a load test finds on its path after the framework."""

    folders: tuple[Path, ...] = ()
    """Folders of packages, with their `.pth` files."""
    kernels: tuple[Path, ...] = ()
    """Wheels of other kernels, to be unpacked."""
    locked: tuple[KernelFolder, ...] = ()
    """Other kernels in `kernels.lock`."""
    depends: Mapping[str, str | None] = field(default_factory=dict)
    """The repositories of `kernel-depends`, each with the module of its wheel, if available."""
    names: tuple[str, ...] = ()
    """The names of the packages, such as `triton 3.7.1`."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Modules that a user would have but this machine lacks, each with the reason."""
    unmet: Mapping[str, str] = field(default_factory=dict)
    """Packages that the wheel requires but this machine lacks, each with the reason; their modules are unknown."""

    @property
    def kernel_folders(self) -> tuple[Path, ...]:
        """The folders of all locked kernels."""
        return tuple(dict.fromkeys(kernel.folder for each in self.locked for kernel in each.all()))

    @property
    def kernel_tree(self) -> dict[str, Any]:
        """The dependencies of a kernel, as JSON for the process that loads them."""
        wheels = {repository: module and {"module": module} for repository, module in self.depends.items()}
        return {**wheels, **{each.repo_id: each.to_json() for each in self.locked}}


def wanted(kernel: Kernel, cell: Cell) -> tuple[str, ...]:
    """Return the packages that the kernel may import from a user's environment, as `load-test-packages.nix` does."""
    declared = tuple(dict.fromkeys(kernel.config.python_depends(cell.backend)))
    if cell.framework in (Framework.TVM_FFI, Framework.CTYPES):
        return declared
    brought = dependencies.brought(cell.backend)
    return (*declared, *(name for name in brought if _mentions(kernel, name) and name not in declared))


def parts(names: Iterable[str]) -> tuple[str, ...]:
    """Return the parts of the pin file for dependencies."""
    return tuple(dependencies.distribution(name) for name in names)


def _mentions(kernel: Kernel, module: str) -> bool:
    """Whether the text of a package file imports `module`: a package that nobody imports is not installed."""
    root = kernel.root / package_directory(kernel.config)
    said = re.compile(rf"(import|from) {re.escape(module)}".encode())
    files = (path for path in root.rglob("*.py") if path.is_file())
    own = (path for path in files if not any(part.startswith(".") for part in path.relative_to(root).parts))
    return any(said.search(path.read_bytes()) for path in own)


def found(
    kernel: Kernel,
    cell: Cell,
    *,
    wheels: Iterable[PinnedWheel],
    folders: tuple[Path, ...] = (),
    kernels: Mapping[str, Path] | None = None,
    locked: tuple[KernelFolder, ...] = (),
    why: str,
) -> LoadTestPackages:
    """Return the available packages for a load test, and the missing ones.

    `wheels` are the wheels of its environments, in `folders`, and `why` ends the sentence about a missing one.
    `kernels` are wheels of the kernel's dependencies, by repository, and `locked` the kernels of its lock.
    """
    versions = {wheel.name: wheel.version for wheel in wheels}
    packages = {name: dependencies.distribution(name) for name in wanted(kernel, cell)}
    commits = {each.repo_id: each.commit[:7] for each in locked}
    required = {requirement.package: requirement for requirement in kernel.config.wheel.requires}
    others, depends = kernels or {}, depended(kernel, cell.backend)
    # Modules that locked kernels import, so their users have them.
    absent = {
        module: f"'{name}' is needed by the kernel '{each.repo_id}' alone"
        for each in (each for kernel in locked for each in kernel.all())
        for name in each.python_depends
        for module in dependencies.modules(name)
    }
    missing = [name for name, package in packages.items() if package not in versions]
    absent |= {module: f"'{name}' {why}" for name in missing for module in dependencies.modules(name)}
    absent |= {
        module_of(each): f"the kernel '{each}' of kernel-depends is not at hand: `builder lock` brings it"
        for each in depends
        if each not in others and each not in commits
    }
    if depends:
        absent[_CLIENT] = f"'{_CLIENT}' would load {', '.join(depends)} from the hub, and a load test has no network"
    return LoadTestPackages(
        folders=folders,
        kernels=tuple(others[repository] for repository in depends if repository in others),
        locked=locked,
        depends={each: module_of(each) if each in others else None for each in depends},
        names=(
            *(f"{package} {versions[package]}" for package in packages.values() if package in versions),
            *(f"{name} {versions[name]}" for name in required if name in versions and name not in packages.values()),
            *(repository for repository in depends if repository in others and repository not in commits),
            *(f"{repository} {commits[repository]}" for repository in depends if repository in commits),
        ),
        absent=absent,
        unmet={name: f"'{requirement}' {why}" for name, requirement in required.items() if name not in versions},
    )


def depended(kernel: Kernel, backend: Backend) -> tuple[str, ...]:
    """Return the repositories of the kernels that a kernel depends on."""
    return tuple(dict.fromkeys(each.repo_id for each in kernel.config.kernel_depends(backend)))


def module_of(repository: str) -> str:
    """Return the module name of the kernel in a repository."""
    return repository.rpartition("/")[2].replace("-", "_")


def remedy(module: str, *, package: Path, backend: Backend) -> str:
    """Return the line of build.toml that declares a module, or another way to make the kernel importable."""
    tables = dict(dependencies.declarations(module))
    if "general" in tables:
        return f"""add python-depends = ["{tables["general"]}"] to [general] of build.toml"""
    if str(backend) in tables:
        return f"""add python-depends = ["{tables[str(backend)]}"] to [general.{backend}] of build.toml"""
    if tables:
        (table, name), *_ = tables.items()
        return f"'{name}' can only be declared in [general.{table}]: import it only where the backend is {table}"
    if (package / module).is_dir() or (package / f"{module}.py").is_file():
        return (
            f"'{module}' is a part of this kernel: write 'from . import {module}', since it is not a top-level module"
        )
    if module in dependencies.table()["brought"]:
        backends = ", ".join(dependencies.table()["brought"][module]["backends"])
        return (
            f"torch brings '{module}' for {backends}, and not for {backend}: import it only where it is used, "
            f"or leave '{backend}' out of general.backends"
        )
    return (
        f"name the package that has '{module}' in 'requires' of [wheel], or import it where it is used, with the "
        "ImportError handled, or put it into the package"
    )


def imported_modules(source: bytes) -> frozenset[str]:
    """Return the top-level modules that a file imports anywhere; empty if it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.add(node.module)
    return frozenset(name.partition(".")[0] for name in names)
