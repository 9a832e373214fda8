"""Render a kernel for one backend: a complete project that builds without `builder`."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar, cast

from jinja2 import Environment

from builder import resources, templates, toml
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
from builder.matrix import architectures, is_noarch, require_backends
from builder.render import quoting, refusals, source_scan, template_values
from builder.render.arguments import Arguments
from builder.render.external_sources import PlacedEntry, placed, placed_folders, step_files
from builder.render.project import Project
from builder.wording import quoted

__all__ = ["backends", "environment", "python_scan", "render"]

Listing = TypeVar("Listing", Torch, TvmFfi, Ctypes, Extension, Component)

_ID_DIGITS = 7
_ID = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_FROM_LISTS = re.compile(r"^\s*include\(cmake/([a-z0-9_/]+\.cmake)\)$", re.MULTILINE)
_FROM_MODULE = re.compile(r'"\$\{CMAKE_CURRENT(?:_FUNCTION)?_LIST_DIR\}/([a-z0-9_./]+\.(?:cmake|cpp|py|txt))"')


def backends(kernel: Kernel) -> tuple[Backend, ...]:
    """Return the backends for which the kernel can be rendered, in the config's order."""
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
        ConfigError: a file is missing or a value cannot be rendered; all such problems are reported.
        BuilderError: the kernel is not for `backend`, `unique_id` is not valid, or `only` is for another one.
    """
    require_backends(kernel.config, (backend,))
    architectures.require(only, backend, noarch=is_noarch(kernel.config, backend))
    if unique_id is not None and _ID.fullmatch(unique_id) is None:
        raise BuilderError(
            f"{quoted(unique_id)} cannot be the id of a build", help="use letters, digits and underscores"
        )
    tree = Tree.of(kernel.root)
    refusals.check(kernel, tree, backend, allow_unsafe_flags=allow_unsafe_flags)
    kernel, copied = _read(kernel, tree, backend)
    found = template_values.SourceFacts(
        license_files=license_files(copied),
        python=_python_scan(kernel, copied, backend).needs_headers,
        libraries={
            name: _facts(replace(kernel, config=kernel.config.of_library(name)), copied, backend)
            for name in (None, *kernel.config.extensions(backend))
        },
    )
    if unique_id is None:
        # The project's id is a digest of its content without an id.
        unique_id = _project(kernel, backend, copied, "", found=found, only=only).digest[:_ID_DIGITS]
    return _project(kernel, backend, copied, unique_id, found=found, only=only)


def python_scan(kernel: Kernel, backend: Backend) -> source_scan.PythonScan:
    """Return how the library of a backend uses Python.

    Raises:
        ConfigError: a file is missing.
    """
    return _python_scan(*_read(kernel, Tree.of(kernel.root), backend), backend)


def _read(kernel: Kernel, tree: Tree, backend: Backend) -> tuple[Kernel, Mapping[str, bytes]]:
    """Return the kernel with expanded globs, and the files that its build for a backend reads."""
    files = source_set(kernel, tree=tree)
    kernel = _expanded(kernel, tree, backend)
    run = frozenset[str]() if is_noarch(kernel.config, backend) else step_files(kernel, tree, backend)
    return kernel, {target: files.read(path) for target, path in _copied(kernel, backend, files, run)}


def _python_scan(kernel: Kernel, copied: Mapping[str, bytes], backend: Backend) -> source_scan.PythonScan:
    is_judged = kernel.config.framework is Framework.TORCH and not is_noarch(kernel.config, backend)
    sources = template_values.sources(kernel.config, backend) if is_judged else ()
    return source_scan.PythonScan.of(sources, copied, directories=source_scan.directories(kernel.config, backend))


def _facts(kernel: Kernel, copied: Mapping[str, bytes], backend: Backend) -> template_values.LibraryScan:
    """Return the facts in the sources of a kernel that has only one library."""
    config = kernel.config
    sources = template_values.sources(config, backend)
    binding: tuple[str, ...] = next((table.src for _, table in config.tables(backend)), ())
    # The sources of a foreign binding are unknown, so assume that they use the name of the ops; a library for one
    # Python
    # is usually a module.
    elsewhere = tuple(path for path in binding if isinstance(path, PlacedEntry))
    module = bool(elsewhere) or source_scan.defines_module(sources, copied)
    name_in: tuple[str, ...] | None = ()
    if not is_noarch(config, backend):
        found = source_scan.uses_ops_name(sources, copied, framework=config.framework)
        name_in = None if found is None else (*found, *elsewhere)
        # ROCm compiles a translated copy of the file, under another name.
        name_in = None if name_in and backend is Backend.ROCM else name_in
    return template_values.LibraryScan(module=module, name_in=name_in)


def _expanded(kernel: Kernel, tree: Tree, backend: Backend) -> Kernel:
    """Return the kernel with expanded source globs, once for all callers."""
    config, used = kernel.config, kernel.config.extensions(backend)
    changed: dict[str, Any] = {
        name: _table(kernel, tree, table)
        for name in ("torch", "tvm_ffi", "ctypes")
        if (table := getattr(config, name)) is not None
    }
    changed["extension"] = {
        name: _table(kernel, tree, table) if name in used else table for name, table in config.extension.items()
    }
    changed["kernel"] = {
        name: _table(kernel, tree, component) if component.backend == backend else component
        for name, component in config.kernel.items()
    }
    return replace(kernel, config=replace(config, **changed))


def _table(kernel: Kernel, tree: Tree, table: Listing) -> Listing:
    found = [placed(kernel.config, entry) for entry in table.src]
    if any(isinstance(entry, PlacedEntry) for entry in found):
        files = ((entry,) if isinstance(entry, PlacedEntry) else expand(kernel, (entry,), tree=tree) for entry in found)
        expanded = tuple(dict.fromkeys(path for paths in files for path in paths))
    else:
        expanded = expand(kernel, table.src, tree=tree)
    # A file that a glob finds is in the project, even with unusual characters in its name.
    src = cast("tuple[ProjectPath, ...]", files_without(expanded, table.exclude))
    return replace(table, src=src, include=placed_folders(kernel.config, table.include))


def _project(
    kernel: Kernel,
    backend: Backend,
    copied: Mapping[str, bytes],
    unique_id: str,
    *,
    found: template_values.SourceFacts,
    only: tuple[str, ...],
) -> Project:
    noarch = is_noarch(kernel.config, backend)
    given = template_values.of(kernel, backend, unique_id=unique_id, noarch=noarch, found=found, only=only)
    rendered = {
        path: environment().get_template(name).render(given).encode("utf-8")
        for path, name in _templates(kernel, backend).items()
    }
    for library in given["built"][1:]:
        path = f"{given['package']}/_ops_{library['extension']}.py"
        text = environment().get_template(f"{kernel.config.framework}/_ops.py.j2").render({**given, **library})
        rendered[path] = text.encode("utf-8")
    lists = rendered.get("CMakeLists.txt", b"").decode("utf-8")
    included = {f"cmake/{path}": content for path, content in _cmake_modules(lists).items()}
    return Project({**copied, **included, **rendered, **template_values.metadata(given)})


def _templates(kernel: Kernel, backend: Backend) -> Mapping[str, str]:
    """Return the templates of the rendered files: path -> template."""
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
    if is_open or template_values.linked(kernel.config, backend):
        own["requirement.py"] = "_shared/requirement.py.j2"
    if framework is Framework.TORCH:
        own["torch-ext/registration.h"] = "torch/registration.h.j2"
    return {**shared, **own}


def _copied(kernel: Kernel, backend: Backend, files: SourceSet, run: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the kernel's files that the build for one backend reads, each with its path in the project.

    `run` has the files of its steps. All headers are included, since sources include unlisted ones; other sources are
    the backend's. The Python package has the same path in all projects.
    """
    package, inside = package_directory(kernel.config), rendered_package(kernel.config)
    noarch = is_noarch(kernel.config, backend)
    compiled = set() if noarch else run.union(template_values.sources(kernel.config, backend))
    named = readme(kernel.config)
    yield from ((path, path) for path in (*license_files(files.paths), *filter(None, [named])))
    for path in files.paths:
        in_place = package == inside and path.startswith(f"{package}/")
        if package != inside and path in files.shipped:
            yield f"{inside}{path.removeprefix(package)}", path
        if in_place or (not noarch and (path in compiled or path.endswith(HEADERS))):
            yield path, path


@lru_cache
def environment() -> Environment:
    """Return the Jinja environment; an undefined name is an error."""
    env = templates.environment(resources.TEMPLATES)
    env.filters["cmake"] = quoting.cmake
    env.filters["cmake_arguments"] = cmake_arguments
    env.filters["toml"] = toml.spelled
    env.filters["python"] = quoting.python
    return env


def cmake_arguments(arguments: Arguments) -> str:
    """Return keyword arguments as lines of a call: each keyword, then its values."""
    lines = []
    for keyword, given in arguments.items():
        if isinstance(given, str):
            lines.append(f"  {keyword} {quoting.cmake(given)}")
        elif given:
            lines.append(f"  {keyword}")
            for line in given:
                words = (f'"{text}"' if isinstance(text, PlacedEntry) else quoting.cmake(text) for text in line)
                lines.append(f"    {' '.join(words)}")
    return "\n".join(lines)


def _cmake_modules(lists: str) -> dict[str, bytes]:
    """Return the files, relative to `cmake/`, that a CMakeLists.txt includes."""
    found: dict[str, bytes] = {}
    pending = _FROM_LISTS.findall(lists)
    while pending:
        path = pending.pop()
        if path not in found:
            found[path], included = _cmake_module(path)
            pending += included
    return found


@lru_cache
def _cmake_module(path: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the content of a module, and the modules that it includes."""
    content, folder = (resources.CMAKE / path).read_bytes(), posixpath.dirname(path)
    named = _FROM_MODULE.findall(content.decode("utf-8"))
    return content, tuple(posixpath.normpath(posixpath.join(folder, other)) for other in named)
