"""Refuse everything that cannot be rendered, before rendering: each problem with its place in the config."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial

from builder.config import Backend, libraries
from builder.config.source_tables import SourceTable
from builder.config.sources import SourceName, foreign_path
from builder.config.text import KeyPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.kernel.source_set import expand
from builder.kernel.tree import Tree, files_named, files_without, is_glob
from builder.render import arguments, quoting
from builder.render.external_sources import used_sources, used_steps
from builder.wording import quoted

Files = Callable[[str], tuple[str, ...]]
Tables = Sequence[tuple[KeyPath, SourceTable]]

_LANGUAGES = {
    suffix: tuple(other for other in Backend if suffix in other.facts.sources)
    for backend in Backend
    for suffix in backend.facts.sources
}
"""Suffix of a source -> the backends that compile it, if not every one does."""
_FLAGS = ("cxx-flags", "cuda-flags", "hip-flags", "sycl-flags")
_LOADS_CODE = "makes the compiler run code of its own choice"
_READS_FLAGS = "reads more flags from a file, which nobody checks"
_RUNS_COMMANDS = "makes nvcc's shell run a command"
_OTHER_TOOLS = "makes the compiler run other programs than its own"
_UNSAFE_FLAGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"@.*", _READS_FLAGS),
        (r"--?options-file.*|-optf.*|--config.*", _READS_FLAGS),
        (r"-f(?:pass-)?plugin.*|-load.*|-add-plugin|-plugin.*", _LOADS_CODE),
        (r"-specs.*|--specs.*", _LOADS_CODE),
        (r"-wrapper.*|--wrapper.*", _LOADS_CODE),
        (r"-fuse-ld=.*/.*|--ld-path.*|-fdirectives-only=.*", _OTHER_TOOLS),
        (r"-B.*|--prefix.*|--gcc-toolchain.*|--gcc-install-dir.*|-no-canonical-prefixes", _OTHER_TOOLS),
        (r"--?compiler-bindir.*|-ccbin.*|--?(?:cuda|hip|rocm)-path.*", _OTHER_TOOLS),
        (r"--?(?:dryrun|run|run-args|input-drive-prefix|dependency-drive-prefix|keep-dir|tool-dir).*", _OTHER_TOOLS),
        (r"--?(?:target-directory|nvvm|libdevice-directory).*|-ldir.*", _OTHER_TOOLS),
    )
)
_FOR_A_SHELL = re.compile(r".*(?:`|\$\()", re.DOTALL)
"""nvcc passes its flags to a shell; other compilers do not."""
_FORWARDS = re.compile(
    r"(?:-Xcompiler|--compiler-options|-Xlinker|--linker-options|-Xclang|-Xptxas|-Wl|-Wa|-Wp|-Xarch_host)(?:[=,](.*))?"
)


def check(kernel: Kernel, tree: Tree, backend: Backend, *, allow_unsafe_flags: bool) -> None:
    """Refuse a kernel with a value that a project for `backend` cannot hold.

    Raises:
        ConfigError: with all such values.
    """
    files = cache(partial(_files, kernel, tree))  # walk a folder of thousands of files only once
    tables = tuple(kernel.config.tables(backend)) if kernel.config.components(backend) else ()
    problems = []
    for path, text in _strings(kernel, backend, tables, files):
        reason = quoting.why_not_cmake(text)
        if reason is not None:
            message = f"CMake cannot hold {quoted(text)}: {reason}"
            problems.append(kernel.source.problem("B060", message, path=path, help="write it without"))
    problems += _foreign(kernel, backend, tables, files)
    problems += _shaders(kernel, tables, files)
    problems += _libraries(kernel, backend, tables)
    if not allow_unsafe_flags:
        problems += _unsafe(kernel, tables)
    if problems:
        raise kernel.source.error(*problems)


def _strings(kernel: Kernel, backend: Backend, tables: Tables, files: Files) -> Iterator[tuple[KeyPath, str]]:
    """Yield every string that becomes an argument in CMake."""
    for path, table in tables:
        if path[0] == "kernel":
            yield path, str(path[-1])
        for number, entry in enumerate(table.src):
            compiled = files_without(files(entry), table.exclude)
            yield from (((*path, "src", number), file) for file in compiled)
        yield from _each((*path, "include"), table.include)
        yield from _flags(path, table)
        options = arguments.define_options(table.defines)
        yield from (((*path, "defines", name), option) for name, option in options.items())
    for name in used_sources(kernel.config, backend):
        submodules = kernel.config.sources[SourceName(name)].submodules
        yield from _each(("sources", name, "submodules"), submodules if isinstance(submodules, tuple) else ())
    for step in used_steps(kernel.config, backend):
        place: KeyPath = ("generate", kernel.config.generate.index(step))
        yield (*place, "script"), step.script
        yield from _each((*place, "args"), step.args)
        yield from _each((*place, "outputs"), step.outputs)
        for number, entry in enumerate(step.inputs):
            yield from (((*place, "inputs", number), file) for file in files(entry))


def _each(path: KeyPath, entries: Iterable[str]) -> Iterator[tuple[KeyPath, str]]:
    yield from (((*path, number), entry) for number, entry in enumerate(entries))


def _files(kernel: Kernel, tree: Tree, entry: str) -> tuple[str, ...]:
    """Return the files of a `src` entry; an entry without a wildcard, or in a foreign source, is returned unchanged."""
    named = not is_glob(entry) or foreign_path(entry, kernel.config.sources) is not None
    return (entry,) if named else expand(kernel, (entry,), tree=tree)


def _flags(path: KeyPath, table: SourceTable) -> Iterator[tuple[KeyPath, str]]:
    for key in _FLAGS:
        yield from _each((*path, key), getattr(table, key.replace("-", "_"), ()))
    for glob, flags in table.file_flags.items():
        yield from _each((*path, "file-flags", glob), flags)


def _foreign(kernel: Kernel, backend: Backend, tables: Tables, files: Files) -> Iterator[Problem]:
    """Report sources of one backend in a component of another."""
    for path, table in tables:
        for number, entry in enumerate(table.src):
            for file in files_without(files(entry), table.exclude):
                allowed = _LANGUAGES.get("." + file.rpartition(".")[2])
                if allowed is not None and backend not in allowed:
                    message = f"{quoted(file)} cannot be compiled for '{backend}'"
                    remedy = f"move it to a component with the backend {' or '.join(repr(str(b)) for b in allowed)}"
                    yield kernel.source.problem("B062", message, path=(*path, "src", number), help=remedy)
                elif backend is Backend.ROCM and file.endswith(".cu") and kernel.config.is_elsewhere(file):
                    message = f"{quoted(file)} is foreign or generated, and only the kernel's own files become HIP"
                    remedy = "copy it into the kernel, or leave it out for ROCm"
                    yield kernel.source.problem("B062", message, path=(*path, "src", number), help=remedy)


def _shaders(kernel: Kernel, tables: Tables, files: Files) -> Iterator[Problem]:
    """Report flags for single Metal shaders, since all shaders are compiled together."""
    for path, table in tables:
        shaders = [file for entry in table.src for file in files(entry) if file.endswith(".metal")]
        for glob in table.file_flags:
            for file in files_named(glob, files_without(shaders, table.exclude)):
                message = f"{quoted(file)} is a Metal shader, which takes no flags of its own"
                where = (*path, "file-flags", glob)
                remedy = "write a narrower glob; 'defines' holds for shaders, too"
                yield kernel.source.problem("B064", message, path=where, key=True, help=remedy)


def _libraries(kernel: Kernel, backend: Backend, tables: Tables) -> Iterator[Problem]:
    """Report libraries that the backend of a component lacks, or that every backend of a binding lacks."""
    for path, table in tables:
        backends = kernel.config.general.backends if path[0] != "kernel" else (backend,)
        for number, name in enumerate(table.libraries):
            if not any(name.facts.is_for(each) for each in backends):
                has = [member for member, facts in libraries.table().items() if facts.is_for(backend)]
                message = f"there is no library '{name}' for {' or '.join(map(repr, map(str, backends)))}"
                where = (*path, "libraries", number)
                yield kernel.source.problem("B063", message, path=where, help=f"{backend} has: {', '.join(has)}")


def _unsafe(kernel: Kernel, tables: Tables) -> Iterator[Problem]:
    for path, table in tables:
        for place, flag in _flags(path, table):
            reason = why_unsafe(flag, shell=not {"cuda-flags", "file-flags"}.isdisjoint(place))
            if reason is not None:
                message = f"the flag {quoted(flag)} {reason}"
                remedy = "remove it, or pass --allow-unsafe-flags if you trust this kernel"
                yield kernel.source.problem("B061", message, path=place, help=remedy)


def why_unsafe(flag: str, *, shell: bool = False) -> str | None:
    """Return why a flag is unsafe in an unreviewed config; None if it is safe. `shell` is for nvcc, which uses a shell.

    Flags that are passed on to another tool are judged as well.
    """
    forwarded = _FORWARDS.fullmatch(flag)
    parts = [flag] if forwarded is None else re.split(r"[,\s]+", forwarded[1] or "")
    unsafe = (reason for part in parts for rule, reason in _UNSAFE_FLAGS if rule.fullmatch(part.strip("'\"")))
    return next(unsafe, _RUNS_COMMANDS if shell and _FOR_A_SHELL.match(flag) else None)
