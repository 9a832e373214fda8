"""Files and directories that a config lists."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from builder.config import Config
from builder.errors import Problem
from builder.kernel import Kernel
from builder.source import KeyPath
from builder.spelling import nearest, quoted
from builder.tree import Tree, is_glob


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield listed files that do not exist or are listed twice, and include directories that do not exist."""
    for path, entry in listed(kernel.config):
        yield from _missing(kernel, path, entry)
    yield from _twice(kernel)
    for path, entry in _includes(kernel.config):
        if not (kernel.root / entry).is_dir():
            yield kernel.source.problem(
                "B127",
                f"include directory {quoted(entry)} does not exist",
                path=path,
                severity="warning",
                help="it is relative to the directory of 'build.toml'",
            )


def listed(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield each entry of a `src` list, with its place."""
    for table, entries in _sources(config):
        yield from (((*table, "src", index), entry) for index, entry in enumerate(entries))


def _sources(config: Config) -> Iterator[tuple[KeyPath, tuple[str, ...]]]:
    if config.torch is not None:
        yield ("torch",), config.torch.src
    if config.tvm_ffi is not None:
        yield ("tvm-ffi",), config.tvm_ffi.src
    for name, component in config.kernel.items():
        yield ("kernel", name), component.src


def _includes(config: Config) -> Iterator[tuple[KeyPath, str]]:
    tables: list[tuple[KeyPath, tuple[str, ...]]] = []
    if config.torch is not None:
        tables.append((("torch",), config.torch.include))
    if config.tvm_ffi is not None:
        tables.append((("tvm-ffi",), config.tvm_ffi.include))
    tables.extend((("kernel", name), component.include) for name, component in config.kernel.items())
    for table, entries in tables:
        yield from (((*table, "include", index), entry) for index, entry in enumerate(entries))


def _missing(kernel: Kernel, path: KeyPath, entry: str) -> Iterator[Problem]:
    if is_glob(entry):
        if not Tree.of(kernel.root).glob(entry):
            yield kernel.source.problem(
                "B104", f"no file matches {quoted(entry)}", path=path, help="'**' stands for any directories"
            )
        return
    found = kernel.root / entry
    if found.is_file():
        return
    what = "is not a file" if found.exists() else "does not exist"
    yield kernel.source.problem(
        "B104", f"listed file {quoted(entry)} {what}", path=path, help=_remedy(kernel.root, entry)
    )


def _remedy(root: Path, entry: str) -> str:
    here = PurePosixPath(entry)
    directory = root / here.parent
    if not directory.is_dir():
        return f"there is no directory {quoted(here.parent.as_posix())}: paths are relative to that of 'build.toml'"
    found = nearest(here.name, sorted(path.name for path in directory.iterdir() if path.is_file()))
    if found is None:
        return "create it, or remove it from the list: paths are relative to the directory of 'build.toml'"
    return f"did you mean '{here.with_name(found).as_posix()}'?"


def _twice(kernel: Kernel) -> Iterator[Problem]:
    for table, entries in _sources(kernel.config):
        first: dict[str, int] = {}
        for index, entry in enumerate(entries):
            normal = PurePosixPath(entry).as_posix()
            if first.setdefault(normal, index) != index:
                yield kernel.source.problem(
                    "B105",
                    f"file {quoted(entry)} is listed twice",
                    path=(*table, "src", index),
                    severity="warning",
                    help="remove one of the two",
                )
