"""The values for the templates: all decisions are made here."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builder import toml
from builder.config import Backend, Config, Framework, Version, dependencies, libraries
from builder.kernel import Kernel
from builder.kernel.source_set import rendered_package
from builder.metadata import METADATA_FILE, KernelMetadata
from builder.render import arguments, calls, package_metadata
from builder.render.external_sources import header_calls, source_calls, step_calls
from builder.render.source_scan import INSTALL, REMEDY, Use

_BACKEND_TOOL = "scikit-build-core>=1.0"
_DISTRIBUTIONS = {
    Framework.TORCH: "torch",
    Framework.TORCH_NOARCH: "torch",
    Framework.TVM_FFI: "apache-tvm-ffi",
    Framework.CTYPES: None,
}
"""The distribution that a project is built with and that its wheel requires."""
_FEATURES = ("own_objects", "has_file_flags", "has_conditions", "may_be_empty", "may_be_absent", "has_libraries")
"""Features of a project's libraries that need functions of CMake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryScan:
    """Facts about a library's build, found in its sources."""

    module: bool = False
    """Whether a source defines a module of Python."""
    name_in: tuple[str, ...] | None = ()
    """The sources that are compiled with the name of the ops; None for all sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """Facts about a kernel's build, found in its sources."""

    python: Use | None = None
    """A line that needs Python's headers; all libraries then get them."""
    libraries: Mapping[str | None, LibraryScan]
    """The facts of the main library, under None, and of the extensions."""
    license_files: tuple[str, ...] = ()
    """The license files, by name."""


def of(
    kernel: Kernel, backend: Backend, *, unique_id: str, noarch: bool, found: SourceFacts, only: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """Return the values for all templates, for one backend and id; `only` are the GPUs of a quick build."""
    config = kernel.config
    stable_abi = config.stable_abi(backend)
    torch_find = {"DEVICE": backend.facts.torch_device, "STABLE_ABI": stable_abi}
    framework = _DISTRIBUTIONS[config.framework]
    requirement = package_metadata.framework_requirement(config.framework, noarch=noarch, stable_abi=stable_abi)
    bounded = [] if noarch or framework is None else [_bounded(config, framework, stable_abi)]
    built = () if noarch else tuple(_libraries(config, backend, unique_id=unique_id, found=found, only=only))
    has_c = any(path.endswith(".c") for path in sources(config, backend))
    exported = () if config.ctypes is None else config.ctypes.exports_of(backend)
    return {
        **(built[0] if built else _library(config, backend, None, unique_id=unique_id, found=found)),
        "built": built,
        "at_least": dependencies.at_least("tvm-ffi") if config.framework is Framework.TVM_FFI else None,
        "backend": str(backend),
        "build_requires": [_BACKEND_TOOL, *bounded],
        "built_with": framework if requirement is None else None,
        "linked": "" if noarch else linked(config, backend),
        "config": config,
        "dependencies": [*filter(None, [requirement]), *package_metadata.python_depends(config, backend)],
        "each_python": {"HELP": INSTALL} if config.of_each_python(backend) else {},
        "devices": {str(each): each.facts.torch_device for each in Backend if each.facts.torch_device is not None},
        "device_code": not noarch and backend.facts.device_code,
        "exports": {"EXPORTS": tuple((glob,) for glob in exported)} if exported else {},
        "extension_ids": {str(each["extension"]): str(each["ops"]) for each in built[1:]},
        "features": {name: any(getattr(each["calls"], name) for each in built) for name in _FEATURES},
        "foreign": () if noarch else source_calls(config, backend),
        "generate": () if noarch else step_calls(kernel, backend),
        "headers": () if noarch else header_calls(config, backend),
        "id": unique_id,
        "languages": "" if noarch else "C CXX" if has_c else "CXX",
        "license": package_metadata.license_field(config.general.license),
        "license_files": found.license_files,
        "license_is_spdx": package_metadata.spdx(config.general.license) is not None,
        "macos": backend.facts.macos,
        "module": config.general.name.module,
        "name": str(config.general.name),
        "noarch": noarch,
        "package": rendered_package(config),
        "py_api": "py3" if found.python is None else "cp39",
        "python": {} if found.python is None else _python(found.python),
        "readme": package_metadata.readme_field(config),
        "title": backend.facts.title,
        "torch_find": " ".join(f"{keyword} {value}" for keyword, value in torch_find.items() if value is not None),
        "urls": package_metadata.urls(config),
        "version": config.wheel_version,
    }


def linked(config: Config, backend: Backend) -> str:
    """Return the distributions with a CUDA kernel's libraries, as a TOML table by CUDA's major version, or empty."""
    if config.framework is not Framework.TORCH or backend is not Backend.CUDA:
        return ""
    names = config.libraries(backend)
    majors = sorted({major for name in names for major in name.facts.wheels})
    found = {major: libraries.requirements(names, config.framework, major) for major in majors}
    text = ", ".join(f'"{major}" = {toml.spelled(list(wheels))}' for major, wheels in found.items() if wheels)
    return f"{{ {text} }}" if text else ""


def _libraries(
    config: Config, backend: Backend, *, unique_id: str, found: SourceFacts, only: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the values of each library: the main one, then the extensions."""
    name_in = {name: facts.name_in or () for name, facts in found.libraries.items()}
    alone = len(found.libraries) == 1
    for name, own in calls.of(config, backend, name_in=name_in, only=only).items():
        yield {
            **_library(config, backend, name, unique_id=unique_id, found=found),
            "calls": own,
            # With only one library, `kernel_when_any` covers every component.
            "conditional": {} if alone else {"AMONG": tuple((call.name,) for call in own.components)},
            "to_load": libraries.to_load(config.of_library(name).libraries(backend), config.framework),
        }


def _library(
    config: Config, backend: Backend, name: str | None, *, unique_id: str, found: SourceFacts
) -> dict[str, Any]:
    """Return the values of one library; those of the main library are available to every template."""
    facts = found.libraries[name]
    target = "_" + "_".join(filter(None, (config.general.name.module, name, str(backend))))
    ops = f"{target}_{unique_id}"
    return {
        "calls": None,
        "extension": name,
        "library": f"{ops}.so" if found.python is None else f"{ops}.abi3.so",
        "name_everywhere": facts.name_in is None,
        "ops": ops,
        "python_module": facts.module and config.of_each_python(backend),
        "target": target,
        "to_load": (),
    }


def metadata(given: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the client's metadata.json, or its template for CMake."""
    backend, ids = Backend(given["backend"]), given["extension_ids"]
    known = KernelMetadata.of(given["config"], backend, ops=given["ops"], extensions=ids)
    is_open = {"archs": given["device_code"], "extensions": given["features"]["may_be_absent"]}
    completed = {name for name, holds in is_open.items() if holds}
    if completed:
        return {f"{METADATA_FILE}.in": known.template(completed).encode()}
    return {f"{given['package']}/{METADATA_FILE}": known.text.encode()}


def sources(config: Config, backend: Backend) -> tuple[str, ...]:
    """Return the sources of a backend, each once."""
    return tuple(dict.fromkeys(path for _, table in config.tables(backend) for path in table.src))


def _python(use: Use) -> arguments.Arguments:
    """Return the arguments of `kernel_python_headers`."""
    file = re.sub(r"[^\w./+-]", "?", use.file)  # for people to read: CMake cannot contain every file name
    return {
        "SOURCE": f"{file}:{use.line}",
        "USES": use.name,
        "API": "limited" if use.limited else "full",
        "HELP": REMEDY,
    }


def _bounded(config: Config, framework: str, stable_abi: Version | None) -> str:
    """Return the framework versions that can build the project, as pip spells them."""
    if config.framework is Framework.TVM_FFI:
        return dependencies.requirement("tvm-ffi")
    if config.torch is None:
        return framework
    least = max((bound for bound in (config.torch.minver, stable_abi) if bound is not None), default=None)
    bounds = [] if least is None else [f">={least}"]
    if config.torch.maxver is not None:
        bounds.append(f"<{config.torch.maxver.major}.{config.torch.maxver.minor + 1}")
    return framework + ",".join(bounds)
