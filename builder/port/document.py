"""The text of a `build.toml`."""

from collections.abc import Iterator, Sequence

from builder import toml
from builder.config.values import Backend
from builder.port.draft import Binding, Compiled, ComponentDraft
from builder.port.flag_keys import FlagKeys
from builder.port.metadata import Found, Metadata
from builder.port.submodules import Submodule

_WIDTH = 110
_ARCHS = {Backend.CUDA: "cuda-capabilities", Backend.ROCM: "rocm-archs"}
_GPU_FLAGS = {Backend.CUDA: "cuda-flags", Backend.ROCM: "hip-flags"}


def text(metadata: Metadata, compiled: Compiled, modules: Sequence[Submodule] = ()) -> str:
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
