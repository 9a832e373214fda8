"""Check libraries that use torch's C++ API: the libraries that they link to must have the torch symbols they use."""

import posixpath
from collections.abc import Iterator

from builder.audit.mangled import RootName, torch_names
from builder.audit.report import Finding
from builder.audit.subject import Library, Subject
from builder.config.values import Backend, Framework

RULE = "torch-libraries"

_WITHOUT_TORCH = {Framework.TVM_FFI: "a tvm-ffi kernel", Framework.CTYPES: "a plain library"}
_DEVICES = {"cuda": ("cuda", "hip"), "hip": ("hip",), "xpu": ("xpu",)}
"""Namespace → the builds of torch whose libraries contain it; the builds for ROCm keep CUDA's names."""
_BRINGS = {
    "libtorch_cpu.so": ("libtorch_cpu.so", "libc10.so"),
    "libtorch_cuda.so": ("libtorch_cuda.so", "libc10_cuda.so", "libtorch_cpu.so", "libc10.so"),
    "libtorch_hip.so": ("libtorch_hip.so", "libc10_hip.so", "libtorch_cpu.so", "libc10.so"),
    "libtorch_xpu.so": ("libtorch_xpu.so", "libc10_xpu.so", "libtorch_cpu.so", "libc10.so"),
    "libtorch_python.so": ("libtorch_python.so", "libtorch_cpu.so", "libc10.so"),
    "libc10_cuda.so": ("libc10_cuda.so", "libc10.so"),
    "libc10_hip.so": ("libc10_hip.so", "libc10.so"),
    "libc10_xpu.so": ("libc10_xpu.so", "libc10.so"),
}
"""The libraries that a needed library loads as well."""


def check(subject: Subject) -> Iterator[Finding]:
    """Judge each library of a wheel that is not for the stable ABI."""
    facts = subject.facts
    if facts is None or facts.stable:
        return
    for library in subject.libraries:
        brought = _brought(library, facts.backend)
        for symbol in library.extension.undefined:
            if symbol.binding == "weak":
                continue
            name = next(torch_names(symbol.name), None)
            if name is None:
                continue
            if facts.framework in _WITHOUT_TORCH:
                why = f"it uses torch, and {_WITHOUT_TORCH[facts.framework]} must load where no torch is"
                remedy = f"do without torch, or make it a [torch] kernel in place of [{facts.framework}]"
                yield Finding(library.name, RULE, symbol.name, why, remedy)
            elif brought.isdisjoint(homes := _homes(name)):
                yield Finding(
                    library.name,
                    RULE,
                    symbol.name,
                    "none of the libraries that it links to defines this symbol of torch; it would load only if "
                    f"another library had made {homes[0]} global",
                    f"link to {homes[0]} (target_link_libraries(… torch))",
                )


def _brought(library: Library, backend: Backend) -> frozenset[str]:
    brought: set[str] = set()
    for path in library.extension.needed:
        needed = posixpath.basename(path).replace(".dylib", ".so")
        brought.update(_BRINGS.get(needed, (needed,)))
        if needed == "libtorch.so":  # it needs all libraries of its torch
            brought.update(_BRINGS["libtorch_cpu.so"])
            brought.update(_BRINGS.get(backend.facts.torch_library or "", ()))
    return frozenset(brought)


def _homes(name: RootName) -> tuple[str, ...]:
    """Return the libraries that may define a name."""
    devices = _DEVICES.get(name.member or "", ())
    if name.namespace == "c10":
        return tuple(f"libc10_{device}.so" for device in devices) or ("libc10.so",)
    return (*(f"libtorch_{device}.so" for device in devices), "libtorch_cpu.so")
