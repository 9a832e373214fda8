"""The values that templates place: everything is decided here."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builder.config import Backend, Config, Framework, Version, dependencies, libraries
from builder.kernel import Kernel
from builder.kernel.source_set import rendered_package
from builder.render import arguments, calls, foreign, generated, header_libraries, package_metadata
from builder.render.python_api import INSTALL, REMEDY, Use

_BACKEND_TOOL = "scikit-build-core>=1.0"
_DISTRIBUTIONS = {Framework.TORCH: "torch", Framework.TORCH_NOARCH: "torch", Framework.TVM_FFI: "apache-tvm-ffi"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What the sources of a kernel say of its build."""

    python: Use | None = None
    """The line that needs Python's headers."""
    module: bool = False
    """Whether a source defines a module of Python."""
    name_in: tuple[str, ...] | None = ()
    """The sources that are compiled with the name of the ops; None for all of them."""


def of(
    kernel: Kernel, backend: Backend, *, unique_id: str, noarch: bool, found: SourceFacts, only: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """Return the values of every template, for one backend and id; `only` are the GPUs of a quick build."""
    python = found.python
    config = kernel.config
    module = config.general.name.module
    stable_abi = config.stable_abi(backend)
    framework = _DISTRIBUTIONS[config.framework]
    requirement = package_metadata.framework_requirement(config.framework, noarch=noarch, stable_abi=stable_abi)
    target = f"_{module}_{backend}"
    ops = f"{target}_{unique_id}"
    return {
        "at_least": dependencies.at_least("tvm-ffi") if config.framework is Framework.TVM_FFI else None,
        "backend": str(backend),
        "build_requires": [_BACKEND_TOOL] if noarch else [_BACKEND_TOOL, _bounded(config, framework, stable_abi)],
        "built_with": framework if requirement is None else None,
        "calls": None if noarch else calls.of(kernel, backend, name_in=found.name_in or (), only=only),
        "config": config,
        "dependencies": [*filter(None, [requirement]), *package_metadata.python_depends(config, backend)],
        "each_python": {"HELP": INSTALL} if config.of_each_python(backend) else {},
        "devices": {str(each): each.facts.torch_device for each in Backend if each.facts.torch_device is not None},
        "device_code": not noarch and backend.facts.device_code,
        "foreign": () if noarch else foreign.calls(config, backend),
        "generate": () if noarch else generated.calls(kernel, backend),
        "headers": () if noarch else header_libraries.of(config, backend),
        "id": unique_id,
        "languages": "" if noarch else _languages(kernel, backend),
        "library": f"{ops}.so" if python is None else f"{ops}.abi3.so",
        "license": package_metadata.license_field(config.general.license),
        "macos": backend.facts.macos,
        "module": module,
        "name": str(config.general.name),
        "name_everywhere": found.name_in is None,
        "noarch": noarch,
        "ops": ops,
        "package": rendered_package(config),
        "py_api": "py3" if python is None else "cp39",
        "python": {} if python is None else _python(python),
        "python_module": found.module and config.of_each_python(backend),
        "target": target,
        "title": backend.facts.title,
        "to_load": () if noarch else libraries.to_load(config.libraries(backend), config.framework),
        "torch_find": _torch_find(backend, stable_abi),
        "urls": package_metadata.urls(config),
        "version": f"{config.general.version}.0.0",
    }


def metadata(given: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the client's metadata.json, or what CMake makes it of."""
    text = package_metadata.client(
        given["config"], Backend(given["backend"]), ops=given["ops"], completed=given["device_code"]
    )
    path = "metadata.json.in" if given["device_code"] else f"{given['package']}/metadata.json"
    return {path: text.encode("utf-8")}


def source_lists(kernel: Kernel, backend: Backend) -> Iterator[tuple[str, ...]]:
    """Yield the sources of the binding and of each component of a backend."""
    table = kernel.config.torch or kernel.config.tvm_ffi
    if table is not None:
        yield table.src
    for component in kernel.config.components(backend).values():
        yield component.src


def _python(use: Use) -> arguments.Arguments:
    """Return the arguments of `kernel_python_headers`."""
    file = re.sub(r"[^\w./+-]", "?", use.file)  # to be read by people: not every name can be in CMake
    return {
        "SOURCE": f"{file}:{use.line}",
        "USES": use.name,
        "API": "limited" if use.limited else "full",
        "HELP": REMEDY,
    }


def _bounded(config: Config, framework: str, stable_abi: Version | None) -> str:
    """Return the framework that the project can be built with, as pip reads it."""
    if config.framework is Framework.TVM_FFI:
        return dependencies.requirement("tvm-ffi")
    if config.torch is None:
        return framework
    least = max((bound for bound in (config.torch.minver, stable_abi) if bound is not None), default=None)
    bounds = [] if least is None else [f">={least}"]
    if config.torch.maxver is not None:
        bounds.append(f"<{config.torch.maxver.major}.{config.torch.maxver.minor + 1}")
    return framework + ",".join(bounds)


def _torch_find(backend: Backend, stable_abi: Version | None) -> str:
    """Return the arguments of `kernel_torch_find`."""
    given = {"DEVICE": backend.facts.torch_device, "STABLE_ABI": stable_abi}
    return " ".join(f"{keyword} {value}" for keyword, value in given.items() if value is not None)


def _languages(kernel: Kernel, backend: Backend) -> str:
    """Return the languages that CMake enables with the project, besides that of the backend."""
    sources = {path for entries in source_lists(kernel, backend) for path in entries}
    return "C CXX" if any(path.endswith(".c") for path in sources) else "CXX"
