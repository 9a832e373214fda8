"""The arguments of the calls of a rendered CMakeLists.txt: keyword -> values, in the order they are written."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from builder import toml
from builder.config import Backend
from builder.config.conditions import When
from builder.config.gpus import code_of
from builder.config.libraries import LibraryName
from builder.config.source_tables import (
    Binding,
    Component,
    CudaComponent,
    Extension,
    RocmComponent,
    SourceTable,
    XpuComponent,
)
from builder.config.text import KeyPath
from builder.config.values import MacroName, MacroValue
from builder.kernel.tree import files_named
from builder.matrix import architectures
from builder.resources import DATA

Line = tuple[str, ...]
Arguments = Mapping[str, str | tuple[Line, ...]]
"""Keyword -> its value, or lines of values; a keyword without values is not written."""
Definitions = Mapping[MacroName, MacroValue]
# nvcc takes a backslash off what follows it, splits at commas, and hands the rest to a shell inside of double quotes.
_NVCC = str.maketrans({"\\": r"\\\\", "$": r"\\$", "`": r"\\`", '"': r"\"", ",": r"\,"})


def binding(table: Binding, *, name_in: tuple[str, ...]) -> Arguments:
    """Return the arguments of the sources that bind to the framework, and of the ones with the name of the ops."""
    return {
        "NAME_IN": _lines(name_in),
        "SOURCES": _lines(table.src),
        "INCLUDE_DIRS": _lines(table.include),
        "CXX_FLAGS": _lines((*define_options(table.defines), *table.cxx_flags)),
    }


def component(part: Component, only: tuple[str, ...] = ()) -> Arguments:
    """Return the arguments of one `[kernel.*]`; `only` are the GPUs of a quick build."""
    return {
        "SOURCES": _lines(part.src),
        "INCLUDE_DIRS": _lines(part.include),
        "CXX_FLAGS": _lines((*define_options(part.defines), *part.cxx_flags)),
        **_own(part, only),
    }


def exports(globs: tuple[str, ...]) -> Arguments:
    """Return the argument with the functions that a plain library exports."""
    return {"EXPORTS": _lines(globs)}


def file_flags(table: SourceTable) -> tuple[Arguments, ...]:
    """Return the arguments of each call of `kernel_file_flags`: one for each entry of the table."""
    return tuple(
        {"SOURCES": _lines(files_named(entry, table.src)), "FILE_FLAGS": _lines(flags)}
        for entry, flags in table.file_flags.items()
        if flags
    )


def when(name: str, part: Component, only: tuple[str, ...] = ()) -> Arguments:
    """Return the arguments of `kernel_when_holds`; empty for a component without a condition."""
    return {} if part.when is None else {"NAME": name, **_condition(part.when, (part,), only)}


def when_of_extension(name: str, table: Extension, parts: Sequence[Component], only: tuple[str, ...] = ()) -> Arguments:
    """Return the arguments of `kernel_when_holds` for an extension with these components."""
    return {} if table.when is None else {"EXTENSION": name, **_condition(table.when, parts, only)}


def _condition(given: When, parts: Sequence[Component], only: tuple[str, ...]) -> Arguments:
    arguments: dict[str, str | tuple[Line, ...]] = {
        "CUDA_IS": _lines(() if given.cuda is None else given.cuda.clauses),
        "TORCH_IS": _lines(() if given.torch is None else given.torch.clauses),
        "SYSTEM_IS": _lines(given.systems),
    }
    requested = [part.cuda_capabilities for part in parts if isinstance(part, CudaComponent)]
    if given.archs and requested:
        arguments["CAPABILITIES"] = _asked(_by_toolkit(requested, only), given.archs)
    elif given.archs:
        compiled = (architectures.compiled(part, None, only) for part in parts)
        arguments["COMPILED"] = "yes" if any(set(given.archs) & names for names in compiled) else "no"
    return arguments


def _asked(table: tuple[Line, ...], archs: tuple[str, ...]) -> tuple[Line, ...]:
    """Return a table of capabilities with those alone that are asked for, where they are compiled."""
    compiled = (line[: line.index("lost")] if "lost" in line else line for line in table)
    return tuple((since, *(name for name in names if code_of(name).real in archs)) for since, *names in compiled)


def libraries(names: tuple[LibraryName, ...], backend: Backend) -> Arguments:
    """Return the arguments of `kernel_libraries` for the libraries that a backend has; empty if it has none."""
    found = [name.facts for name in names if name.facts.is_for(backend)]
    given = {
        "FIND_PACKAGES": [facts.package for facts in found],
        "TARGETS": [facts.target for facts in found],
        "LINK_NAMES": [facts.link for facts in found if facts.macos],
        "LINK_EXCEPT_MACOS": [facts.link for facts in found if not facts.macos],
    }
    texts = {keyword: _lines(tuple(dict.fromkeys(filter(None, values)))) for keyword, values in given.items()}
    return {keyword: lines for keyword, lines in texts.items() if lines}


def _own(part: Component, only: tuple[str, ...]) -> Arguments:
    """Return the arguments that the component's backend alone has."""
    match part:
        case CudaComponent():
            own = (*nvcc_define_options(part.defines), *part.cuda_flags)
            return {
                "CUDA_FLAGS": _lines(flags_of(part.backend, own)),
                "MINVER": () if part.cuda_minver is None else str(part.cuda_minver),
                "CAPABILITIES": capabilities(part.cuda_capabilities, only),
            }
        case RocmComponent():
            selection = architectures.rocm(part.rocm_archs, only)
            own = (*define_options(part.defines), *part.hip_flags)
            return {
                "HIP_FLAGS": _lines(flags_of(part.backend, own)),
                "ARCHITECTURES": _row(selection.compiled),
                "LOST": _row(selection.lost),
            }
        case XpuComponent():
            facts = architectures.facts()["xpu"]
            return {
                "SYCL_FLAGS": _lines(flags_of(part.backend, part.sycl_flags)),
                "TARGETS": _row(tuple(facts["targets"])),
                "DEVICES": _row(tuple(facts["devices"])),
            }
        case _ if part.backend is Backend.METAL:
            return {"METAL_FLAGS": _lines(define_options(part.defines))}
        case _:
            return {}


def capabilities(requested: tuple[str, ...] | None, only: tuple[str, ...] = ()) -> tuple[Line, ...]:
    """Return a line for each range of CUDA toolkits: from which version, what is compiled, and what is lost."""
    return _by_toolkit((requested,), only)


def _by_toolkit(requests: Sequence[tuple[str, ...] | None], only: tuple[str, ...]) -> tuple[Line, ...]:
    """Return these lines for what several components request together."""
    lines: list[Line] = []
    for generation in architectures.generations():
        found = [architectures.cuda(requested, generation.since, only) for requested in requests]
        lost = tuple(dict.fromkeys(name for each in found for name in each.lost))
        line = (*dict.fromkeys(name for each in found for name in each.compiled), *(("lost", *lost) if lost else ()))
        if lines and lines[-1][1:] == line:
            lines.pop()
        lines.append((f"CUDA>={generation.since}", *line))
    return tuple(lines)


def _lines(values: tuple[str, ...]) -> tuple[Line, ...]:
    return tuple((value,) for value in values)


def _row(values: tuple[str, ...]) -> tuple[Line, ...]:
    return (values,) if values else ()


def flags_of(backend: Backend, own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags of a component: those of every source of its backend, and then its own."""
    return (*_flags_of_backends().get(backend.value, ()), *own)


@cache
def _flags_of_backends() -> dict[str, Any]:
    return toml.loads((DATA / "compiler-flags.toml").read_text(encoding="utf-8"))


def define_options(given: Definitions) -> tuple[str, ...]:
    """Return the options of a compiler that is run as it is written."""
    return tuple(option for name, value in given.items() if (option := _define_option(name, value)) is not None)


def nvcc_define_options(given: Definitions) -> tuple[str, ...]:
    """Return the options of nvcc for the same macros."""
    return tuple(option.translate(_NVCC) for option in define_options(given))


def define_places(given: Definitions, table: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield each option with the place of its macro in the config."""
    for name, value in given.items():
        option = _define_option(name, value)
        if option is not None:
            yield (*table, "defines", name), option


def _define_option(name: str, value: MacroValue) -> str | None:
    if value is False:
        return None
    return f"-D{name}" if value is True else f"-D{name}={value}"
