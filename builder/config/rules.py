"""Rules between the tables of a config, which no table can judge alone."""

from collections.abc import Iterator

from builder.config import generated
from builder.config.components import Component
from builder.config.conditions import When
from builder.config.foreign import SourceName, foreign_path, require_path
from builder.config.text import KeyPath
from builder.config.v5 import Config
from builder.config.values import Backend, CudaCapability, InvalidValueError, RocmArch
from builder.wording import listed, nearest, quoted


def check(config: Config) -> Iterator[InvalidValueError]:
    """Yield what breaks a rule, each with its place."""
    if config.sources:
        yield from _foreign(config)
    if config.generate:
        yield from _generated(config)
    for name, part in config.kernel.items():
        if part.when is not None:
            yield from _condition(config, ("kernel", name, "when"), part, part.when)


def _condition(config: Config, path: KeyPath, part: Component, when: When) -> Iterator[InvalidValueError]:
    """Refuse entries that never hold, whatever a cell is."""
    backend = part.backend
    if when.cuda is not None and backend is not Backend.CUDA:
        message = f"'cuda' never holds in a component of '{backend}'"
        yield InvalidValueError(message, code="B042", path=(*path, "cuda"), help="remove it")
    if when.torch is not None and config.torch is None:
        message = "'torch' never holds in a kernel that is built without torch"
        yield InvalidValueError(message, code="B042", path=(*path, "torch"), help="remove it")
    kinds = {Backend.CUDA: CudaCapability, Backend.ROCM: RocmArch}
    for arch in when.archs:
        if backend not in kinds or not kinds[backend].matches(arch):
            message = f"'{arch}' never holds in a component of '{backend}'"
            remedy = "write one of its architectures" if backend in kinds else "remove it"
            yield InvalidValueError(message, code="B042", path=(*path, "arch"), help=remedy)


def entries(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield each entry of a `src` and an `include`, with its place."""
    tables: list[tuple[KeyPath, tuple[str, ...], tuple[str, ...]]] = []
    if config.torch is not None:
        tables.append((("torch",), config.torch.src, config.torch.include))
    if config.tvm_ffi is not None:
        tables.append((("tvm-ffi",), config.tvm_ffi.src, config.tvm_ffi.include))
    tables += ((("kernel", name), part.src, part.include) for name, part in config.kernel.items())
    for path, src, include in tables:
        yield from (((*path, "src", number), entry) for number, entry in enumerate(src))
        yield from (((*path, "include", number), entry) for number, entry in enumerate(include))


def _generated(config: Config) -> Iterator[InvalidValueError]:
    """Refuse steps that cannot be run, or for nothing; a step has files of the kernel alone."""
    found = tuple(entries(config))
    src = [entry for path, entry in found if path[-2] == "src"]
    include = [entry for path, entry in found if path[-2] == "include"]
    yield from generated.check(config.generate, src=src, include=include)
    for number, step in enumerate(config.generate):
        for key, paths in (("script", (step.script,)), ("inputs", step.inputs), ("outputs", step.outputs)):
            for index, entry in enumerate(paths):
                if foreign_path(entry, config.sources) is not None:
                    place = ("generate", number, key) if key == "script" else ("generate", number, key, index)
                    message = f"{quoted(entry)} is of a foreign source, and a step has files of the kernel alone"
                    yield InvalidValueError(message, code="B058", path=place, help="copy it into the kernel")


def _foreign(config: Config) -> Iterator[InvalidValueError]:
    """Refuse entries that name a foreign source that is not there, or a path that is none in its tree."""
    for path, entry in entries(config):
        found = foreign_path(entry, config.sources)
        name, colon, _ = entry.partition(":")
        if found is None and colon and SourceName.matches(name):
            guess = nearest(name, config.sources)
            remedy = f"did you mean '{guess}'?" if guess else f"there are {listed(sorted(config.sources))}"
            message = f"{quoted(entry)} names the foreign source '{name}', and there is no [sources.{name}]"
            yield InvalidValueError(message, code="B053", path=path, help=remedy)
        elif found is not None:
            try:
                require_path(entry, found)
            except InvalidValueError as error:
                error.path = path
                yield error
