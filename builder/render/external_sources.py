"""The external sources of a rendered project: foreign trees, outputs of steps, and header libraries."""

import posixpath
from functools import cache
from typing import Any

from builder import toml
from builder.config import Backend, Config, dependencies
from builder.config.sources import (
    GenerateStep,
    SourceName,
    foreign_path,
    is_output,
    step_outputs,
    writes_below,
)
from builder.config.values import ProjectPath
from builder.kernel import Kernel
from builder.kernel.source_set import expand
from builder.kernel.tree import ListedPath, Tree
from builder.render import quoting
from builder.render.arguments import Arguments
from builder.resources import DATA

GENERATED = "${CMAKE_CURRENT_BINARY_DIR}/generated"
"""The folder with the outputs of `[[generate]]` steps in a build."""


class PlacedEntry(ListedPath):
    """An entry as CMake spells it between quotes: a path below a variable."""

    path: str
    source: str | None
    """The foreign source; None for generated files."""

    def __new__(cls, path: str, *, source: str | None = None) -> "Any":
        """Return a path that is inside the tree, below its variable."""
        folder = GENERATED if source is None else f"${{{source}_SOURCE_DIR}}"
        spelled = str.__new__(cls, f"{folder}/{quoting.escaped(path)}")
        spelled.path, spelled.source = path, source
        spelled.listed = path if source is None else f"{source}:{path}"
        return spelled


def source_variable(name: str) -> str:
    """Return the CMake variable with the folder of a foreign source."""
    return f"FETCHCONTENT_SOURCE_DIR_{name.upper()}"


def used_sources(config: Config, backend: Backend) -> tuple[str, ...]:
    """Return the names of the foreign sources that the build for a backend reads, in the config's order."""
    entries = (entry for _, table in config.tables(backend) for entry in (*table.src, *table.include))
    found = (placed(config, entry) for entry in entries)
    named = {entry.source for entry in found if isinstance(entry, PlacedEntry)}
    return tuple(str(name) for name in config.sources if name in named)


def source_calls(config: Config, backend: Backend) -> tuple[tuple[str, Arguments], ...]:
    """Return the name and the arguments of each call of `kernel_foreign_source`."""
    found: list[tuple[str, Arguments]] = []
    for name in used_sources(config, backend):
        source = config.sources[SourceName(name)]
        if source.git is None:
            found.append((name, {"URL": str(source.url), "SHA256": str(source.sha256)}))
            continue
        submodules = source.submodules
        given = "ALL" if submodules is True else tuple((path,) for path in submodules or ())
        found.append((name, {"GIT": source.git, "REV": str(source.rev), "SUBMODULES": given}))
    return tuple(found)


def placed(config: Config, entry: ProjectPath) -> ProjectPath:
    """Return an entry of a `src` as CMake finds the file."""
    foreign = None if isinstance(entry, PlacedEntry) else foreign_path(entry, config.sources)
    found = entry
    if foreign is not None:
        found = PlacedEntry(posixpath.normpath(foreign.path), source=foreign.source)
    elif is_output(entry, config.generate):
        found = PlacedEntry(posixpath.normpath(entry))
    return found


def placed_folders(config: Config, entries: tuple[ProjectPath, ...]) -> tuple[ProjectPath, ...]:
    """Return entries of an `include` as CMake finds them, each followed by the folder where steps write its files."""
    found: list[ProjectPath] = []
    for entry in entries:
        found.append(placed(config, entry))
        if not isinstance(found[-1], PlacedEntry) and writes_below(entry, config.generate):
            found.append(PlacedEntry(posixpath.normpath(entry)))
    return tuple(found)


def used_steps(config: Config, backend: Backend) -> tuple[GenerateStep, ...]:
    """Return the steps whose outputs the build for a backend reads, in the config's order."""
    known = step_outputs(config.generate)
    pending: list[int] = []
    for _, table in config.tables(backend):
        pending += [known[path] for path in map(_path, table.src) if path in known]
        for start in map(_path, table.include):  # with all outputs below it
            pending += [known[path] for path in known if start == "." or path.startswith(f"{start}/")]
    wanted: set[int] = set()
    while pending:
        number = pending.pop()
        if number not in wanted:
            wanted.add(number)
            inputs = (posixpath.normpath(entry) for entry in config.generate[number].inputs)
            pending += [known[path] for path in inputs if path in known]
    return tuple(step for number, step in enumerate(config.generate) if number in wanted)


def _path(entry: ProjectPath) -> str:
    return entry.path if isinstance(entry, PlacedEntry) else posixpath.normpath(entry)


def step_calls(kernel: Kernel, backend: Backend) -> tuple[Arguments, ...]:
    """Return the arguments of each call of `kernel_generate_step`."""
    tree, steps = Tree.of(kernel.root), kernel.config.generate
    found: list[Arguments] = []
    for step in used_steps(kernel.config, backend):
        made = [posixpath.normpath(entry) for entry in step.inputs if is_output(entry, steps)]
        found.append(
            {
                "SCRIPT": posixpath.normpath(step.script),
                "ARGS": tuple((argument,) for argument in step.args),
                "INPUTS": tuple((path,) for path in expand(kernel, step.inputs, tree=tree)),
                "GENERATED_INPUTS": tuple((path,) for path in dict.fromkeys(made)),
                "OUTPUTS": tuple((posixpath.normpath(path),) for path in step.outputs),
            }
        )
    return tuple(found)


def step_files(kernel: Kernel, tree: Tree, backend: Backend) -> frozenset[str]:
    """Return the files of the kernel that the steps of a backend use."""
    steps = used_steps(kernel.config, backend)
    scripts = (posixpath.normpath(step.script) for step in steps)
    return frozenset((*scripts, *(path for step in steps for path in expand(kernel, step.inputs, tree=tree))))


def header_calls(config: Config, backend: Backend) -> tuple[Arguments, ...]:
    """Return the arguments of `kernel_headers_find` for each library, in the order of their first use in components."""
    names = (name for component in config.components(backend).values() for name in component.depends)
    return tuple(_header_arguments(name) for name in dict.fromkeys(names) if name != "torch")


@cache
def _header_arguments(name: str) -> Arguments:
    version = dependencies.table()["component"][name].get("cutlass")
    library = "cutlass" if version else name
    facts = toml.loads((DATA / "cutlass.toml").read_text(encoding="utf-8"))[library]
    pin: dict[str, str] = {}  # the source of the version, and its hash
    if version in facts.get("wheels", {}):
        wheel = facts["wheels"][version]
        pin = {"WHEEL": wheel["requirement"], "SHA256": wheel["sha256"], "WHEEL_ROOT": facts["wheel-root"]}
    elif version in facts.get("commits", {}):
        pin = {"COMMIT": facts["commits"][version]}
    return {
        "NAME": library,
        **({"VERSION": version} if version else {}),
        **{key.upper(): facts[key] for key in ("package", "variable", "source", "contains")},
        **pin,
        "INCLUDE": (tuple(facts["include"]),),
    }
