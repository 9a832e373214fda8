"""Write the files of a recording: the config, and where it is needed a start for the binding."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder import toml
from builder.config import Backend, Config, parse
from builder.config.text import Source
from builder.errors import BuilderError, NothingToDoError
from builder.files import write_atomic
from builder.kernel import CONFIG
from builder.port import draft, metadata, part, source_facts
from builder.port.draft import Binding, Compiled, ComponentDraft
from builder.port.flag_keys import FlagKeys
from builder.port.metadata import Found, Metadata
from builder.port.recording import Recording, Run
from builder.port.source_facts import Remaining, Submodule, Todo

_WIDTH = 110
_ARCHS = {Backend.CUDA: "cuda-capabilities", Backend.ROCM: "rocm-archs"}
_GPU_FLAGS = {Backend.CUDA: "cuda-flags", Backend.ROCM: "hip-flags"}


def config_text(metadata: Metadata, compiled: Compiled, modules: Sequence[Submodule] = ()) -> str:
    """Return a config with a comment for each value that was guessed."""
    tables = [_general(metadata, compiled), *_wheel(metadata)]
    tables += [_submodule(each) for each in modules]
    tables.append(_binding("torch", compiled.torch, own=True))
    tables += [_binding(f"extension.{name}", each, own=False) for name, each in compiled.extensions.items()]
    tables += [_component(each) for each in compiled.components]
    return "\n".join(tables)


def _general(metadata: Metadata, compiled: Compiled) -> str:
    lines = [
        "[general]",
        _guessed("name", toml.spelled(metadata.name.value), metadata.name),
        _guessed("version", metadata.version.value, metadata.version),
        "edition = 5",
        _guessed("license", toml.spelled(metadata.license.value), metadata.license),
        *(() if metadata.upstream is None else [f"upstream = {toml.spelled(metadata.upstream)}"]),
        f"backends = {toml.spelled([str(backend) for backend in compiled.backends])}",
        *_list("python-depends", metadata.python_depends),
    ]
    return _table(lines)


def _guessed(key: str, value: str, found: Found) -> str:
    origin = "".join(letter if letter.isprintable() else "?" for letter in found.origin)
    return f"{key} = {value} # from {origin}" if origin != "nowhere" else f"{key} = {value} # not found: write it"


def _wheel(metadata: Metadata) -> Iterator[str]:
    whole = metadata.wheel_version
    lines = [] if whole is None else [_guessed("version", toml.spelled(whole.value), whole)]
    lines += [] if metadata.readme is None else [f"readme = {toml.spelled(metadata.readme)}"]
    lines += [] if metadata.package is None else [f"package = {toml.spelled(metadata.package)}"]
    lines += [*_list("requires", metadata.requires), *_list("data", metadata.data)]
    if lines:
        yield _table(["[wheel]", *lines])


def _submodule(source: Submodule) -> str:
    lines = [f"[sources.{source.name}]", f"git = {toml.spelled(source.url)}", f"rev = {toml.spelled(source.commit)}"]
    return _table(lines)


def _binding(table: str, binding: Binding, *, own: bool) -> str:
    lines = [
        f"[{table}]",
        *_list("src", binding.src),
        *_list("exclude", binding.exclude),
        *_list("include", binding.include),
        *_flags(binding.keys, None),
        *_list("libraries", binding.libraries),
    ]
    if own and binding.stable_abi is not None:
        lines.append(f'stable-abi = "{binding.stable_abi}"')
    if own and binding.python_abi:
        lines.append('python-abi = "cpython"')
    return _table(lines)


def _component(draft: ComponentDraft) -> str:
    lines = [f"[kernel.{draft.name}]", f'backend = "{draft.backend}"', 'depends = ["torch"]']
    if draft.extension is not None:
        lines.append(f"extension = {toml.spelled(draft.extension)}")
    if draft.when is not None:
        lines.append(f"when = {{ cuda = {toml.spelled(draft.when)} }}")
    lines += [*_list("src", draft.src), *_list("exclude", draft.exclude), *_list("include", draft.include)]
    if draft.backend in _ARCHS:
        lines += _list(_ARCHS[draft.backend], draft.capabilities or ())
    lines += [*_flags(draft.keys, _GPU_FLAGS.get(draft.backend))]
    lines += _list("libraries", draft.libraries)
    return _table(lines)


def _flags(keys: FlagKeys, gpu: str | None) -> Iterator[str]:
    if keys.defines:
        yield f"defines = {{ {', '.join(f'{name} = {toml.spelled(value)}' for name, value in keys.defines)} }}"
    yield from _list("cxx-flags", keys.cxx_flags)
    if gpu is not None:
        yield from _list(gpu, keys.gpu_flags)


def _list(key: str, values: Sequence[str]) -> Iterator[str]:
    """Yield an array, on one line where it fits."""
    if values:
        yield from toml.array(key, values, width=_WIDTH)


def _table(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_SKELETON = """#include <torch/library.h>

#include "registration.h"

// Declare the functions of the kernel here, and register each of them:
//   ops.def("scale(Tensor input, float factor) -> Tensor");
//   ops.impl("scale", c10::kCUDA, &scale);
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
"""
_LONGEST = 160
"""Characters of what a failure says that are shown in a list."""
_BINDING = "torch-ext/torch_binding.cpp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ported:
    """The files to write, and the list of what remains for a person."""

    files: Mapping[str, str]
    remaining: tuple[Remaining, ...]
    config: Config


def port(recording: Recording, root: Path) -> Ported:
    """Return the files that a recording of a `setup.py` becomes.

    Raises:
        BuilderError: no run ended well, or none compiles anything.
    """
    best = recording.best
    if best is None:
        raise _failed(recording)
    if not best.extensions:
        raise nothing_compiled(recording, best, root)
    todo = Todo()
    parts = tuple(part.parts(recording, root, todo))
    compiled = draft.compiled(recording, parts)
    said = metadata.of(best.setup, root, {each.extension.name: each.reached for each in parts}, todo)
    entries = (entry for include in compiled.include for entry in include)
    included = frozenset(entry.partition(":")[0] for entry in entries if ":" in entry)
    sources = tuple(source_facts.sources(root, included, todo))
    _say_runs(recording, todo)
    if Backend.ROCM in compiled.backends:
        todo.add(
            "flags of components for ROCm are those that setup.py gives there: no compile line of ROCm was compared"
        )
    files = {CONFIG: config_text(said, compiled, sources)}
    if not compiled.torch.src and not any(each.needs_python for each in parts) and not (root / _BINDING).exists():
        files[_BINDING] = _SKELETON
    config = parse(Source(name=CONFIG, text=files[CONFIG]))
    return Ported(files=files, remaining=tuple(todo), config=config)


def write(ported: Ported, root: Path, *, force: bool) -> None:
    """Write the files into the directory; without `force`, none that is there is replaced.

    Raises:
        NothingToDoError: one is there.
    """
    there = [path for path in ported.files if (root / path).exists() or (root / path).is_symlink()]
    if there and not force:
        raise NothingToDoError(f"'{root}' already has {', '.join(there)}", help="pass --force to overwrite")
    for path, text in ported.files.items():
        write_atomic(root / path, text.encode())
        (root / path).chmod(0o644)


def _failed(recording: Recording) -> BuilderError:
    """Say why no run ended well: in one line where all failed in the same way."""
    ways: dict[tuple[str, str], list[str]] = {}
    for run in recording.runs:
        ways.setdefault((run.at, run.failure or ""), []).append(run.setting.name)
    lines = []
    for (at, failure), names in ways.items():
        where = f"{at}: " if at else ""
        under = "" if len(ways) == 1 else f" ({names[0]}" + (f" and {len(names) - 1} more)" if names[1:] else ")")
        lines.append(f"{where}{failure}{under}")
    events = {f"{event.at}: {_said(event.kind)} {event.text}" for run in recording.runs for event in run.events}
    said = "\n  ".join([*lines, *sorted(events)])
    return BuilderError(f"setup.py cannot be recorded\n  {said}", help=_remedy(recording))


def _said(kind: str) -> str:
    return {"command": "it runs", "network": "it uses the network:"}[kind]


def _remedy(recording: Recording) -> str:
    if any(event.kind == "network" for run in recording.runs for event in run.events):
        return "nothing is reached from where it runs: fetch what it wants first, so that it finds it in its folder"
    variables = _variables(recording)
    if variables:
        return f"it reads variables, which --env NAME=VALUE gives it: {', '.join(variables)}"
    return "make it call setup() here, where there is neither a GPU nor a network"


def _variables(recording: Recording) -> list[str]:
    found = {name: place for run in recording.runs for name, place in run.variables.items()}
    usual = (*_USUAL, *recording.given)
    return [f"{name} ({place})" for name, place in sorted(found.items()) if not name.startswith(usual)]


_USUAL = (
    "_PYTHON",
    "PATH",
    "HOME",
    "CUDA_HOME",
    "CUDA_PATH",
    "ROCM_",
    "HIP_",
    "PYTHON",
    "MAX_JOBS",
    "TORCH_CUDA_ARCH_LIST",
    "TMP",
)


def nothing_compiled(recording: Recording, best: Run, root: Path) -> BuilderError:
    """Return the error for a `setup.py` that ended well, and compiles nothing."""
    at = "" if best.setup is None else f"{best.setup.at}: "
    variables = _variables(recording)
    remedy = f"it reads variables, which --env NAME=VALUE gives it: {', '.join(variables)}" if variables else None
    if (root / "CMakeLists.txt").is_file():
        remedy = "if CMake compiles it, pass --compile-commands FILE: the compile_commands.json of its build folder"
    return BuilderError(f"{at}setup() is given no extension, so that nothing is compiled", help=remedy)


def _say_runs(recording: Recording, todo: Todo) -> None:
    """Tell a person what else was seen: runs that failed, commands, files, variables, stand-ins."""
    for run in recording.runs:
        without = run.setting.cuda is None and run.setting.hip is None
        if run.failure is not None and not (without and recording.main):  # a kernel for GPUs alone
            shown = run.failure if len(run.failure) <= _LONGEST else f"{run.failure[:_LONGEST]}…"
            todo.add(f"with {run.setting.name}, {shown}", at=run.at)
        for event in run.events:
            if not event.text.startswith(("/tmp/builder/", "<", "nvcc", "hipcc")) and "nvcc" not in event.text:  # noqa: S108
                todo.add(f"{_said(event.kind)} {event.text}", at=event.at)
        if run.written:
            shown = ", ".join(run.written[:3]) + (", …" if run.written[3:] else "")
            todo.add(f"setup.py writes {shown}: a file that is compiled has to be in the project or in [[generate]]")
    for name in recording.pretended:
        todo.add(f"setup.py imports '{name}', which was not there: a stand-in answered")
    found = _variables(recording)
    if found:
        todo.add(f"setup.py reads variables; it was run without them: {', '.join(found)}")
