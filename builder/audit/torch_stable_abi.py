"""Check the torch stable ABI: only symbols of the C shim that the target version has, and no others of torch."""

import posixpath
from collections.abc import Iterator, Mapping
from functools import cache

from builder import json_text, resources, toml
from builder.audit.mangled import torch_names
from builder.audit.report import Finding
from builder.audit.subject import Library, Subject
from builder.binary.elf_symbols import Symbol
from builder.config.values import Backend, Framework, Version

RULE = "torch-stable-abi"

_CUDA = "CUDA"
"""The dispatch key of CUDA, and also of ROCm, since torch for ROCm keeps CUDA's names."""
_SHIM = ("aoti_torch_", "torch_")
_NEVER = ("THP", "aoti_")
_FIRST_TARGET = Version("2.10")
_BEFORE_TARGETS = frozenset(("aoti_torch_library_impl", "aoti_torch_call_dispatcher"))
_FIRST_WITH_MESSAGES = Version("2.13")
_MESSAGES = "torch_exception_get_what"


@cache
def shim() -> Mapping[str, Mapping[str, str]]:
    """Return library → symbol → the torch version that added it; `<=2.10` means that version or an earlier one."""
    table: dict[str, dict[str, str]] = json_text.read(resources.DATA / "torch-shim.json")
    return table


@cache
def header_only() -> Mapping[str, frozenset[str]]:
    """Return namespace → the names that torch defines in its header-only part."""
    table = toml.loads((resources.DATA / "torch-headeronly.toml").read_text(encoding="utf-8"))
    return {namespace: frozenset(names) for namespace, names in table.items()}


def since(symbol: str, backend: Backend) -> Version | None:
    """Return the torch version that added a shim symbol to the libraries of a backend; None if none did."""
    libraries = ("libtorch_cpu", "libtorch_cuda") if backend.facts.dispatch_key == _CUDA else ("libtorch_cpu",)
    found = next((shim()[library][symbol] for library in libraries if symbol in shim()[library]), None)
    return None if found is None else Version(found.removeprefix("<="))


def check(subject: Subject) -> Iterator[Finding]:
    """Judge each library of a wheel that claims to use the stable ABI."""
    facts = subject.facts
    if facts is None or not facts.stable or facts.framework is not Framework.TORCH or facts.version is None:
        return
    if facts.version < _FIRST_TARGET:
        why = f"the symbols of torch's stable ABI are known from {_FIRST_TARGET} on, the wheel says {facts.version}"
        remedy = f"set [torch.stable-abi] to '{_FIRST_TARGET}' or later"
        yield Finding(f"{subject.module}/metadata.json", RULE, str(facts.version), why, remedy)
        return
    for library in subject.libraries:
        yield from _cxx_symbols(library)
        yield from _shim_symbols(library, target=facts.version, backend=facts.backend)
        yield from _needed(library, facts.backend)
        yield from _target(library, target=facts.version)


def _cxx_symbols(library: Library) -> Iterator[Finding]:
    for symbol in (*library.extension.undefined, *library.extension.defined):
        for name in torch_names(symbol.name):
            if symbol.defined and (name.member is None or name.member in header_only()[name.namespace]):
                continue
            verb = "holds a copy of" if symbol.defined else "needs"
            yield Finding(
                library.name,
                RULE,
                symbol.name,
                f"it {verb} a symbol with '{name}' in it, which is not part of torch's stable ABI",
                "use torch::stable and torch::headeronly only, and no header outside torch/csrc/stable and "
                "torch/headeronly; or leave this backend out of [torch.stable-abi]",
            )
            break


def _shim_symbols(library: Library, *, target: Version, backend: Backend) -> Iterator[Finding]:
    for symbol in library.extension.undefined:
        if not symbol.name.startswith((*_SHIM, *_NEVER)):
            continue
        brought = since(symbol.name, backend)
        if brought is None:
            yield Finding(library.name, RULE, symbol.name, *_unknown(symbol, backend))
        elif brought > target:
            why = f"torch {brought} brought this symbol, and the wheel says that it runs on torch {target}"
            remedy = f"{_define(target)}, or set [torch.stable-abi] to '{brought}'"
            yield Finding(library.name, RULE, symbol.name, why, remedy)


def _unknown(symbol: Symbol, backend: Backend) -> tuple[str, str]:
    """Return why a symbol that no torch has must not be used, and what to do."""
    if symbol.name in shim()["libtorch_cuda"]:
        return (
            f"this symbol is in libtorch_cuda, which a torch for {backend} does not have",
            "guard its use with #ifdef USE_CUDA",
        )
    library = (backend.facts.torch_library or "").removesuffix(".so")
    if library and library not in shim() and backend.facts.dispatch_key != _CUDA:
        return (
            f"no table here says which torch brought the functions of {library}, so that it cannot be vouched for",
            f"use a function of torch/csrc/stable, or leave {backend} out of [torch.stable-abi]",
        )
    return (
        "no release of torch has this symbol in the C shim of its stable ABI",
        "use a function of torch/csrc/stable, or define the symbol in the kernel",
    )


def _needed(library: Library, backend: Backend) -> Iterator[Finding]:
    wanted = backend.facts.torch_library
    if library.extension.format != "ELF":
        wanted = "libtorch_cpu.dylib"  # the only library there
    if wanted is not None and wanted not in map(posixpath.basename, library.extension.needed):
        yield Finding(
            library.name,
            RULE,
            wanted,
            f"it does not name {wanted} among the libraries it needs, so the loader will not look for torch's "
            "symbols there",
            f"link to {wanted}, with --no-as-needed if the linker drops it",
        )


def _define(target: Version) -> str:
    return f"define TORCH_TARGET_VERSION for {target} in every source"


def _target(library: Library, *, target: Version) -> Iterator[Finding]:
    """Compare the target version with the headers, if the code shows their version."""
    undefined = {symbol.name for symbol in library.extension.undefined}
    for symbol in sorted(undefined & _BEFORE_TARGETS):
        why = f"only code for torch older than {_FIRST_TARGET} uses this; the wheel says {target}"
        yield Finding(library.name, RULE, symbol, why, _define(target))
    knows_messages = any(found >= _FIRST_WITH_MESSAGES for found in library.headers)
    if (
        target >= _FIRST_WITH_MESSAGES
        and knows_messages
        and "torch_library_impl" in undefined
        and _MESSAGES not in undefined
    ):
        why = (
            f"it registers operators without asking torch for this, as code for torch older than "
            f"{_FIRST_WITH_MESSAGES} does; the wheel says {target}"
        )
        yield Finding(library.name, RULE, _MESSAGES, why, _define(target))
    for found in sorted(version for version in library.headers if version < target):
        why = f"it was compiled with the headers of torch {found}, which cannot target {target}, as the wheel says"
        remedy = f"build with torch {target} or later, or set [torch.stable-abi] to '{found}'"
        yield Finding(library.name, RULE, f"TORCH_ABI_VERSION={found}", why, remedy)
