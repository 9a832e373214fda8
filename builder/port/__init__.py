"""Turn a setup.py into a build.toml: record its compile lines, and draft the config and the binding."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.config import Backend, Config, parse
from builder.config.text import Source
from builder.errors import BuilderError, NothingToDoError
from builder.files import write_atomic
from builder.kernel import CONFIG
from builder.kernel.source_set import package_directory
from builder.port import draft, metadata, part, source_facts, variables
from builder.port.recorder.script import OUTSIDE
from builder.port.recording import Event, Recording
from builder.port.source_facts import Todo

_SKELETON = """#include <torch/library.h>

#include "registration.h"

// Declare the functions of the kernel here, and register each of them:
//   ops.def("scale(Tensor input, float factor) -> Tensor");
//   ops.impl("scale", c10::kCUDA, &scale);
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
"""
_MODULE = '''"""The functions of the extension, under the names that they had in it."""

from ._ops import module

__all__ = [name for name in vars(module) if not name.startswith("_")]
globals().update({name: getattr(module, name) for name in __all__})
'''
_OPS = '''"""The operators of this kernel."""

from ._ops import ops

__all__ = ["ops"]
'''
_LONGEST = 160
"""The most characters of a failure's message in a list."""
_BINDING = "torch-ext/torch_binding.cpp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ported:
    """The files to write, and the list of tasks for a person."""

    files: Mapping[str, str]
    remaining: tuple[str, ...]
    config: Config


def port(recording: Recording, root: Path) -> Ported:
    """Return the files drafted from the recording of a `setup.py`.

    Raises:
        BuilderError: no run succeeded, or none compiles anything.
    """
    best = recording.best
    if best is None:
        raise _failed(recording, root)
    if not best.extensions:
        raise variables.nothing_compiled(recording, root)
    todo = Todo()
    parts = tuple(part.parts(recording, best, root, todo))
    part.say_twins(parts)
    backends, drafts = draft.compiled(recording, parts)
    reached = {each.extension.name: each.reached for each in parts}
    general, wheel, modules = metadata.tables(best.setup, root, backends=backends, reached=reached, todo=todo)
    entries = [entry for each in drafts for entry in each.include]
    included = {entry.partition(":")[0] for entry in entries if ":" in entry}
    sources = tuple(source_facts.sources(root, included, todo))
    _say_runs(recording, todo)
    if Backend.ROCM in backends:
        todo.add(
            "flags of components for ROCm are those that setup.py gives there: no compile line of ROCm was compared"
        )
    bounds = draft.toolkit_bounds(recording, todo) if Backend.CUDA in backends else None
    optional = (*filter(None, [bounds]), *([wheel] if any(wheel.keys.values()) else []))
    tables = (general, *optional, *sources, *(each.table for each in drafts))
    files = {CONFIG: "\n".join(map(str, tables)), **modules}
    binds = any(source_facts.registers_ops(root, path) for path in parts[0].sources)
    if not binds and not any(each.needs_python for each in parts) and not (root / _BINDING).exists():
        files[_BINDING] = _SKELETON
    config = parse(Source(name=CONFIG, text=files[CONFIG]))
    package = f"{package_directory(config)}/__init__.py"
    if config.wheel.package is None and not (root / package).exists():
        files[package] = _MODULE if any(each.needs_python for each in parts) else _OPS
        todo.add(f"no Python package was found: '{package}' is a start for one")
    return Ported(files=files, remaining=tuple(todo.items), config=config)


def write(ported: Ported, root: Path, *, force: bool) -> None:
    """Write the files into the directory; without `force`, never replace an existing file.

    Raises:
        NothingToDoError: a file exists.
    """
    there = [path for path in ported.files if (root / path).exists() or (root / path).is_symlink()]
    if there and not force:
        raise NothingToDoError(f"'{root}' already has {', '.join(there)}", help="pass --force to overwrite")
    for path, text in ported.files.items():
        write_atomic(root / path, text.encode())
        (root / path).chmod(0o644)


def _failed(recording: Recording, root: Path) -> BuilderError:
    """Return the error if no run succeeded: one line if all failed in the same way."""
    ways: dict[tuple[str, str], list[str]] = {}
    for run in recording.runs:
        ways.setdefault((run.at, run.failure or ""), []).append(run.setting.name)
    lines = []
    for (at, failure), names in ways.items():
        where = f"{at}: " if at else ""
        under = "" if len(ways) == 1 else f" ({names[0]}" + (f" and {len(names) - 1} more)" if names[1:] else ")")
        lines.append(f"{where}{failure}{under}")
    events = {f"{event.at}: {_said(event)}" for run in recording.runs for event in run.events}
    said = "\n  ".join([*lines, *sorted(events)])
    remedy = variables.remedy_of(recording) or "make it call setup() here, where there is neither a GPU nor a network"
    replaced = variables.pretended(recording, root)
    if replaced is not None:
        said, remedy = f"{said}\n  {replaced[0]}", replaced[1]
    if OUTSIDE in said:
        remedy = "move setup.py to a folder that has all that it reads, such as that of the repository, and port that"
    if any(event.kind == "network" for run in recording.runs for event in run.events):
        remedy = "nothing is reached from where it runs: fetch what it wants first, so that it finds it in its folder"
    return BuilderError(f"setup.py cannot be recorded\n  {said}", help=remedy)


def _said(event: Event) -> str:
    return f"{'it runs' if event.kind == 'command' else 'it uses the network:'} {event.text}"


def _say_runs(recording: Recording, todo: Todo) -> None:
    """Tell a person what else was seen: runs that failed, commands, files, variables, stand-ins."""
    outside = draft.outside(recording)
    for run in recording.runs:
        without = run.setting.cuda is None and run.setting.hip is None
        # A kernel may be for GPUs alone, and of the toolkits that it refuses it is said why these are left out.
        known = (without and recording.main) or run.setting in outside
        if run.failure is not None and not known:
            shown = run.failure if len(run.failure) <= _LONGEST else f"{run.failure[:_LONGEST]}…"
            todo.add(f"with {run.setting.name}, {shown}", at=run.at)
        for event in run.events:
            if not event.text.startswith(("/tmp/builder/", "<", "nvcc", "hipcc")) and "nvcc" not in event.text:  # noqa: S108
                todo.add(_said(event), at=event.at)
        if run.written:
            shown = ", ".join(run.written[:3]) + (", …" if run.written[3:] else "")
            todo.add(f"setup.py writes {shown}: a file that is compiled has to be in the project or in [[generate]]")
    for name in recording.pretended:
        todo.add(f"setup.py imports '{name}', which was not there: a stand-in answered")
    answered = {name: place for run in recording.runs for name, place in run.answered.items()}
    if answered:
        names = ", ".join(f"{name} ({place})" for name, place in sorted(answered.items()))
        todo.add(f"a stand-in answered what setup.py asks of torch: {names}")
    names = variables.said(recording)
    if names:
        todo.add(f"setup.py reads variables; it was run without them: {names}")
