"""The arguments of calls in a rendered CMakeLists.txt: keyword -> values, in the order of writing."""

from collections.abc import Mapping, Sequence
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
    RocmComponent,
    SourceTable,
    XpuComponent,
)
from builder.config.values import MacroName, MacroValue
from builder.kernel.tree import files_named
from builder.matrix import architectures
from builder.resources import DATA

Line = tuple[str, ...]
Arguments = Mapping[str, str | tuple[Line, ...]]
"""Keyword -> its value, or lines of values; a keyword without values is omitted."""
Definitions = Mapping[MacroName, MacroValue]
# nvcc removes a backslash before a character, splits at commas, and passes the rest to a shell in double quotes.
_NVCC = str.maketrans({"\\": r"\\\\", "$": r"\\$", "`": r"\\`", '"': r"\"", ",": r"\,"})


def binding(table: Binding, *, name_in: tuple[str, ...]) -> Arguments:
    """Return the arguments of the binding's sources, including sources that contain the name of the ops."""
    return {
        "NAME_IN": _lines(name_in),
        "SOURCES": _lines(table.src),
        "INCLUDE_DIRS": _lines(table.include),
        "CXX_FLAGS": _lines((*define_options(table.defines).values(), *table.cxx_flags)),
    }


def component(part: Component, only: tuple[str, ...] = ()) -> Arguments:
    """Return the arguments of one `[kernel.*]`; `only` are the GPUs of a quick build."""
    defines = define_options(part.defines).values()
    given: dict[str, str | tuple[Line, ...]] = {
        "SOURCES": _lines(part.src),
        "INCLUDE_DIRS": _lines(part.include),
        "CXX_FLAGS": _lines((*defines, *part.cxx_flags)),
    }
    match part:
        case CudaComponent():
            flags = (*nvcc_define_options(part.defines), *part.cuda_flags)
            given["CUDA_FLAGS"] = _lines(flags_of(part.backend, flags))
            given["MINVER"] = () if part.cuda_minver is None else str(part.cuda_minver)
            given["CAPABILITIES"] = capabilities((part.cuda_capabilities,), only)
        case RocmComponent():
            selection = architectures.rocm(part.rocm_archs, only)
            given["HIP_FLAGS"] = _lines(flags_of(part.backend, (*defines, *part.hip_flags)))
            given["ARCHITECTURES"] = _row(selection.compiled)
            given["LOST"] = _row(selection.lost)
        case XpuComponent():
            facts = architectures.facts()["xpu"]
            given["SYCL_FLAGS"] = _lines(flags_of(part.backend, part.sycl_flags))
            given["TARGETS"] = _row(tuple(facts["targets"]))
            given["DEVICES"] = _row(tuple(facts["devices"]))
        case _ if part.backend is Backend.METAL:
            given["METAL_FLAGS"] = _lines(tuple(defines))
    return given


def file_flags(table: SourceTable) -> tuple[Arguments, ...]:
    """Return the arguments of each call of `kernel_file_flags`: one for each entry of the table."""
    return tuple(
        {"SOURCES": _lines(files_named(entry, table.src)), "FILE_FLAGS": _lines(flags)}
        for entry, flags in table.file_flags.items()
        if flags
    )


def when(subject: Arguments, given: When | None, parts: Sequence[Component], only: tuple[str, ...]) -> Arguments:
    """Return the arguments of `kernel_when_holds` for the condition of a component or an extension; empty without one.

    `parts` are the components that the condition applies to; `only` are the GPUs of a quick build.
    """
    if given is None:
        return {}
    found: dict[str, str | tuple[Line, ...]] = {
        **subject,
        "CUDA_IS": _lines(() if given.cuda is None else given.cuda.clauses),
        "TORCH_IS": _lines(() if given.torch is None else given.torch.clauses),
        "SYSTEM_IS": _lines(given.systems),
    }
    requested = [part.cuda_capabilities for part in parts if isinstance(part, CudaComponent)]
    if given.archs and requested:
        # The requested capabilities among the compiled ones.
        table = capabilities(requested, only)
        compiled = (line[: line.index("lost")] if "lost" in line else line for line in table)
        found["CAPABILITIES"] = tuple(
            (since, *(name for name in names if code_of(name).real in given.archs)) for since, *names in compiled
        )
    elif given.archs:
        sets = (architectures.compiled(part, None, only) for part in parts)
        found["COMPILED"] = "yes" if any(set(given.archs) & names for names in sets) else "no"
    return found


def libraries(names: tuple[LibraryName, ...], backend: Backend) -> Arguments:
    """Return the arguments of `kernel_libraries` for the libraries of a backend; empty without any."""
    found = [name.facts for name in names if name.facts.is_for(backend)]
    given = {
        "FIND_PACKAGES": [facts.package for facts in found],
        "TARGETS": [facts.target for facts in found],
        "LINK_NAMES": [facts.link for facts in found if facts.macos],
        "LINK_EXCEPT_MACOS": [facts.link for facts in found if not facts.macos],
    }
    texts = {keyword: _lines(tuple(dict.fromkeys(filter(None, values)))) for keyword, values in given.items()}
    return {keyword: lines for keyword, lines in texts.items() if lines}


def capabilities(requests: Sequence[tuple[str, ...] | None], only: tuple[str, ...]) -> tuple[Line, ...]:
    """Return a line for each range of CUDA toolkits: its first version, the compiled capabilities, and the lost ones.

    All requests are combined.
    """
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
    """Return the flags of a component: the backend's own, then the component's."""
    return (*_flags_of_backends().get(backend.value, ()), *own)


@cache
def _flags_of_backends() -> dict[str, Any]:
    return toml.loads((DATA / "compiler-flags.toml").read_text(encoding="utf-8"))


def define_options(given: Definitions) -> Mapping[MacroName, str]:
    """Return the compiler option for each macro, for a compiler that runs without a shell."""
    return {
        name: f"-D{name}" if value is True else f"-D{name}={value}"
        for name, value in given.items()
        if value is not False
    }


def nvcc_define_options(given: Definitions) -> tuple[str, ...]:
    """Return nvcc's options for the same macros."""
    return tuple(option.translate(_NVCC) for option in define_options(given).values())
