"""Render a kernel for one backend: a complete project that builds without `builder`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from builder.config import Backend, Framework
from builder.config.source_tables import Component, Ctypes, Extension, Torch, TvmFfi
from builder.config.values import ProjectPath
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.kernel.source_set import (
    SourceSet,
    expand,
    license_files,
    package_directory,
    readme,
    rendered_package,
    source_set,
)
from builder.kernel.tree import HEADERS, Tree, files_without
from builder.matrix import is_noarch, quick, require_backends
from builder.render import refusals, source_scan, values
from builder.render.project import Project
from builder.render.sources import PlacedEntry, placed_folders, placed_sources, step_files
from builder.render.template import cmake_modules, environment
from builder.wording import quoted

__all__ = ["backends", "misnamed_modules", "needs_python", "python_obstacles", "render"]

Listing = TypeVar("Listing", Torch, TvmFfi, Ctypes, Extension, Component)

_ID_DIGITS = 7
_ID = re.compile(r"[A-Za-z0-9_]+", re.ASCII)


def backends(kernel: Kernel) -> tuple[Backend, ...]:
    """Return the backends that the kernel can be rendered for, in the config's order."""
    return tuple(dict.fromkeys(kernel.config.general.backends))


def render(
    kernel: Kernel,
    backend: Backend,
    *,
    unique_id: str | None = None,
    allow_unsafe_flags: bool = False,
    only: tuple[str, ...] = (),
) -> Project:
    """Return the project of a kernel for one backend; `only` are the GPUs of a quick build.

    Raises:
        ConfigError: a file is missing, or a value cannot be rendered; all of them are reported.
        BuilderError: the kernel is not for `backend`, `unique_id` cannot be part of a name, or `only` is of another
            backend.
    """
    require_backends(kernel.config, (backend,))
    quick.require(only, backend, noarch=is_noarch(kernel.config, backend))
    if unique_id is not None and _ID.fullmatch(unique_id) is None:
        raise BuilderError(
            f"{quoted(unique_id)} cannot be the id of a build", help="use letters, digits and underscores"
        )
    tree = Tree.of(kernel.root)
    refusals.check(kernel, tree, backend, allow_unsafe_flags=allow_unsafe_flags)
    kernel, copied = _read(kernel, tree, backend)
    found = values.SourceFacts(
        license_files=license_files(copied),
        python=_python(kernel, copied, backend),
        libraries={
            name: _facts(replace(kernel, config=kernel.config.of_library(name)), copied, backend)
            for name in (None, *kernel.config.extensions(backend))
        },
    )
    if unique_id is None:
        # The project names itself by its content: by what it is without a name.
        unique_id = _project(kernel, backend, copied, "", found=found, only=only).digest[:_ID_DIGITS]
    return _project(kernel, backend, copied, unique_id, found=found, only=only)


def needs_python(kernel: Kernel, backend: Backend) -> source_scan.Use | None:
    """Return the line that makes the build for a backend need Python's headers, or None.

    Raises:
        ConfigError: a file is missing.
    """
    return _python(*_read(kernel, Tree.of(kernel.root), backend), backend)


def python_obstacles(kernel: Kernel, backend: Backend) -> tuple[source_scan.Use, ...]:
    """Return the lines that keep the library of a backend from serving every Python.

    Raises:
        ConfigError: a file is missing.
    """
    kernel, copied = _read(kernel, Tree.of(kernel.root), backend)
    folders = source_scan.directories(kernel.config, backend)
    return source_scan.obstacles(_sources(kernel, backend), copied, directories=folders)


def misnamed_modules(kernel: Kernel, backend: Backend) -> tuple[source_scan.Use, ...]:
    """Return the modules of Python whose names are not those of the library of a backend.

    Raises:
        ConfigError: a file is missing.
    """
    kernel, copied = _read(kernel, Tree.of(kernel.root), backend)
    folders = source_scan.directories(kernel.config, backend)
    return source_scan.misnamed(_sources(kernel, backend), copied, directories=folders)


def _read(kernel: Kernel, tree: Tree, backend: Backend) -> tuple[Kernel, Mapping[str, bytes]]:
    """Return the kernel with its globs expanded, and the files that its build for a backend reads."""
    files = source_set(kernel, tree=tree)
    kernel = _expanded(kernel, tree, backend)
    run = frozenset[str]() if is_noarch(kernel.config, backend) else step_files(kernel, tree, backend)
    return kernel, {target: files.read(path) for target, path in _copied(kernel, backend, files, run)}


def _python(kernel: Kernel, copied: Mapping[str, bytes], backend: Backend) -> source_scan.Use | None:
    if kernel.config.framework is not Framework.TORCH or is_noarch(kernel.config, backend):
        return None
    return source_scan.find_python(
        _sources(kernel, backend), copied, directories=source_scan.directories(kernel.config, backend)
    )


def _facts(kernel: Kernel, copied: Mapping[str, bytes], backend: Backend) -> values.LibraryFacts:
    """Return what the sources of a kernel say that has one library alone."""
    # What a binding outside of the project defines cannot be seen; a library for one Python is a module as a rule.
    module = bool(_binding_elsewhere(kernel, backend)) or source_scan.defines_module(_sources(kernel, backend), copied)
    return values.LibraryFacts(module=module, name_in=_name_in(kernel, copied, backend))


def _name_in(kernel: Kernel, copied: Mapping[str, bytes], backend: Backend) -> tuple[str, ...] | None:
    """Return the sources that are compiled with the name of the ops; None for all."""
    if is_noarch(kernel.config, backend):
        return ()
    found = source_scan.uses_ops_name(_sources(kernel, backend), copied, framework=kernel.config.framework)
    if found is not None:
        # What a binding that is not in the project does with the name cannot be seen.
        found = (*found, *_binding_elsewhere(kernel, backend))
    # What is compiled for ROCm is a translation of the file, under another name.
    return None if found and backend is Backend.ROCM else found


def _sources(kernel: Kernel, backend: Backend) -> tuple[str, ...]:
    """Return what is compiled for a backend, each file once."""
    return tuple(dict.fromkeys(path for entries in values.source_lists(kernel, backend) for path in entries))


def _binding_elsewhere(kernel: Kernel, backend: Backend) -> tuple[str, ...]:
    """Return the sources of the binding that are of foreign trees, or generated."""
    binding = next(values.source_lists(kernel, backend), ())
    return tuple(path for path in binding if isinstance(path, PlacedEntry))


def _expanded(kernel: Kernel, tree: Tree, backend: Backend) -> Kernel:
    """Return the kernel with the globs of its sources expanded: once, for all that ask."""
    config = kernel.config
    torch = None if config.torch is None else _table(kernel, tree, config.torch)
    tvm_ffi = None if config.tvm_ffi is None else _table(kernel, tree, config.tvm_ffi)
    ctypes = None if config.ctypes is None else _table(kernel, tree, config.ctypes)
    used = config.extensions(backend)
    extension = {
        name: _table(kernel, tree, table) if name in used else table for name, table in config.extension.items()
    }
    components = {
        name: _table(kernel, tree, component) if component.backend == backend else component
        for name, component in config.kernel.items()
    }
    bindings: dict[str, Any] = {"torch": torch, "tvm_ffi": tvm_ffi, "ctypes": ctypes}
    return replace(kernel, config=replace(config, **bindings, kernel=components, extension=extension))


def _table(kernel: Kernel, tree: Tree, table: Listing) -> Listing:
    include = placed_folders(kernel.config, table.include)
    src = files_without(_files(kernel, tree, table.src), table.exclude)
    return replace(table, src=cast("tuple[ProjectPath, ...]", src), include=include)


def _files(kernel: Kernel, tree: Tree, entries: tuple[ProjectPath, ...]) -> tuple[ProjectPath, ...]:
    found = placed_sources(kernel.config, entries)
    if not any(isinstance(entry, PlacedEntry) for entry in found):
        # A file that a glob finds is in the project, whatever characters its name has.
        return cast("tuple[ProjectPath, ...]", expand(kernel, entries, tree=tree))
    expanded = ((entry,) if isinstance(entry, PlacedEntry) else expand(kernel, (entry,), tree=tree) for entry in found)
    return cast("tuple[ProjectPath, ...]", tuple(dict.fromkeys(path for paths in expanded for path in paths)))


def _project(
    kernel: Kernel,
    backend: Backend,
    copied: Mapping[str, bytes],
    unique_id: str,
    *,
    found: values.SourceFacts,
    only: tuple[str, ...],
) -> Project:
    noarch = is_noarch(kernel.config, backend)
    given = values.of(kernel, backend, unique_id=unique_id, noarch=noarch, found=found, only=only)
    rendered = {
        path: environment().get_template(name).render(given).encode("utf-8")
        for path, name in _templates(kernel, backend).items()
    }
    for library in given["built"][1:]:
        path = f"{given['package']}/_ops_{library['extension']}.py"
        text = environment().get_template(f"{kernel.config.framework}/_ops.py.j2").render({**given, **library})
        rendered[path] = text.encode("utf-8")
    lists = rendered.get("CMakeLists.txt", b"").decode("utf-8")
    included = {f"cmake/{path}": content for path, content in cmake_modules(lists).items()}
    return Project({**copied, **included, **rendered, **values.metadata(given)})


def _templates(kernel: Kernel, backend: Backend) -> Mapping[str, str]:
    """Return the rendered files, path -> template."""
    package = rendered_package(kernel.config)
    shared = {"pyproject.toml": "_shared/pyproject.toml.j2"}
    if is_noarch(kernel.config, backend):
        return {**shared, f"{package}/_ops.py": "noarch/_ops.py.j2"}
    framework = kernel.config.framework
    own = {
        "CMakeLists.txt": f"{framework}/CMakeLists.txt.j2",
        f"{package}/{framework.generated}.py": f"{framework}/{framework.generated}.py.j2",
    }
    is_open = kernel.config.stable_abi(backend) is None and framework is not Framework.CTYPES
    if is_open or values.linked(kernel.config, backend):
        own["requirement.py"] = "_shared/requirement.py.j2"
    if framework is Framework.TORCH:
        own["torch-ext/registration.h"] = "torch/registration.h.j2"
    return {**shared, **own}


def _copied(kernel: Kernel, backend: Backend, files: SourceSet, run: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of the kernel that its build for one backend reads, each with its path in the project.

    `run` are those of its steps. Headers may be anyone's, since sources include what is not listed; other sources are
    those of the backend. The Python package has one place in all projects.
    """
    package, inside = package_directory(kernel.config), rendered_package(kernel.config)
    noarch = is_noarch(kernel.config, backend)
    compiled = set() if noarch else run | {path for entries in values.source_lists(kernel, backend) for path in entries}
    named = readme(kernel.config)
    yield from ((path, path) for path in (*license_files(files.paths), *filter(None, [named])))
    for path in files.paths:
        in_place = package == inside and path.startswith(f"{package}/")
        if package != inside and path in files.shipped:
            yield f"{inside}{path.removeprefix(package)}", path
        if in_place or (not noarch and (path in compiled or path.endswith(HEADERS))):
            yield path, path
