"""The steps of a rendered project that write sources; CMake runs them when it builds."""

import posixpath
from collections.abc import Iterator

from builder.config import Backend, Config
from builder.config.foreign import foreign_path
from builder.config.generated import GenerateStep, below, is_output, outputs
from builder.config.values import ProjectPath
from builder.kernel import Kernel
from builder.kernel.source_set import expand
from builder.kernel.tree import Tree
from builder.render.arguments import Arguments
from builder.render.placed import PlacedEntry


def sources(config: Config, entries: tuple[ProjectPath, ...]) -> tuple[ProjectPath, ...]:
    """Return entries of a `src` as CMake finds them."""
    return tuple(_placed(config, entry) for entry in entries)


def _placed(config: Config, entry: ProjectPath) -> ProjectPath:
    found = foreign_path(entry, config.sources)
    placed = entry
    if found is not None:
        placed = PlacedEntry(posixpath.normpath(found.path), source=found.source)
    elif is_output(entry, config.generate):
        placed = PlacedEntry(posixpath.normpath(entry))
    return placed


def folders(config: Config, entries: tuple[ProjectPath, ...]) -> tuple[ProjectPath, ...]:
    """Return entries of an `include` as CMake finds them; behind a folder, the one with what steps write into it."""
    found: list[ProjectPath] = []
    for entry in entries:
        found.append(_placed(config, entry))
        if not isinstance(found[-1], PlacedEntry) and below(entry, config.generate):
            found.append(PlacedEntry(posixpath.normpath(entry)))
    return tuple(found)


def used(config: Config, backend: Backend) -> tuple[GenerateStep, ...]:
    """Return the steps whose outputs the build for a backend reads, in the config's order."""
    known = outputs(config.generate)
    pending = [known[path] for path in _read(config, backend) if path in known]
    wanted: set[int] = set()
    while pending:
        number = pending.pop()
        if number not in wanted:
            wanted.add(number)
            inputs = (posixpath.normpath(entry) for entry in config.generate[number].inputs)
            pending += [known[path] for path in inputs if path in known]
    return tuple(step for number, step in enumerate(config.generate) if number in wanted)


def _read(config: Config, backend: Backend) -> Iterator[str]:
    """Yield the paths that the tables of a backend name, and all outputs below their folders."""
    for _, table in config.tables(backend):
        yield from (entry.path if isinstance(entry, PlacedEntry) else posixpath.normpath(entry) for entry in table.src)
        for entry in table.include:
            start = entry.path if isinstance(entry, PlacedEntry) else posixpath.normpath(entry)
            yield from (path for path in outputs(config.generate) if start == "." or path.startswith(f"{start}/"))


def calls(kernel: Kernel, backend: Backend) -> tuple[Arguments, ...]:
    """Return the arguments of each call of `kernel_generate_step`."""
    tree = Tree.of(kernel.root)
    return tuple(_arguments(kernel, tree, step) for step in used(kernel.config, backend))


def _arguments(kernel: Kernel, tree: Tree, step: GenerateStep) -> Arguments:
    steps = kernel.config.generate
    made = [posixpath.normpath(entry) for entry in step.inputs if is_output(entry, steps)]
    return {
        "SCRIPT": posixpath.normpath(step.script),
        "ARGS": tuple((argument,) for argument in step.args),
        "INPUTS": tuple((path,) for path in expand(kernel, step.inputs, tree=tree)),
        "GENERATED_INPUTS": tuple((path,) for path in dict.fromkeys(made)),
        "OUTPUTS": tuple((posixpath.normpath(path),) for path in step.outputs),
    }


def files(kernel: Kernel, tree: Tree, backend: Backend) -> frozenset[str]:
    """Return the files of the kernel that the steps of a backend are run with."""
    steps = used(kernel.config, backend)
    scripts = (posixpath.normpath(step.script) for step in steps)
    return frozenset((*scripts, *(path for step in steps for path in expand(kernel, step.inputs, tree=tree))))
