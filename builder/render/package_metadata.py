"""The metadata of a package: metadata.json, which the client reads, and the fields of pyproject.toml."""

import posixpath
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from builder import json_text, toml
from builder.config import Backend, Config, Framework, Version, dependencies
from builder.config.v5 import KernelDependency
from builder.kernel.source_set import readme

_COMPLETED = {"archs": "@KERNEL_ARCHITECTURES@", "extensions": "@KERNEL_EXTENSIONS@"}
"""What CMake replaces: by the architectures that it compiled, and by the extensions that it has."""
_CONTENT_TYPES = {".md": "text/markdown", ".markdown": "text/markdown", ".rst": "text/x-rst"}
_DEPENDS_SINCE = "0.17.0"
"""The first client that loads the kernels another one depends on; older ones load any other kernel."""


def client(
    config: Config,
    backend: Backend,
    *,
    ops: str,
    extensions: Mapping[str, str],
    completed: AbstractSet[str] = frozenset(),
) -> str:
    """Return metadata.json, or a template of it in which CMake completes `archs`, `extensions` or both."""
    general = config.general
    table: dict[str, Any] = {
        "name": str(general.name),
        "id": ops,
        "version": general.version,
        **({"kernels-minver": _DEPENDS_SINCE} if config.kernel_depends(backend) else {}),
        "license": general.license,
    }
    table |= {key: value for key in ("upstream", "source") if (value := getattr(general, key)) is not None}
    table["python-depends"] = list(dict.fromkeys(config.python_depends(backend)))
    kernels = [_kernel(kernel) for kernel in config.kernel_depends(backend)]
    if kernels:
        table["kernel-depends"] = kernels
    if extensions:
        table["extensions"] = [] if "extensions" in completed else dict(extensions)
    table["backend"] = {"type": str(backend)}
    required = _required(config, backend)
    if required:
        table["require"] = required
    if config.ctypes is not None:
        table["exports"] = list(config.ctypes.exports_of(backend))
    if not completed:
        return _json(table)
    if "archs" in completed:
        table["backend"]["archs"] = []
    # No text of the config has an '@' left, so CMake replaces these alone.
    text = _json(table).replace("@", "\\u0040")
    for key in sorted(completed):
        text = text.replace(f'"{key}": []', f'"{key}": {_COMPLETED[key]}')
    return text


def _required(config: Config, backend: Backend) -> dict[str, Any]:
    """Return what every audit of the wheel asks of it."""
    gpus = config.required_gpus(backend)
    found: dict[str, Any] = {"gpus": list(gpus)} if gpus else {}
    return found if config.max_size is None else {**found, "max-size": str(config.max_size)}


def framework_requirement(framework: Framework, *, noarch: bool, stable_abi: Version | None) -> str | None:
    """Return the framework that a wheel requires; None if that depends on the version that it is built with.

    `requirement.py` of a project, or `metadata.requirements` in a build of `builder`, then adds it.
    """
    if framework is Framework.CTYPES:
        return None
    if noarch:
        return "torch"  # _ops.py asks it for the backend, whatever the framework is
    return None if stable_abi is None or framework is Framework.TVM_FFI else f"torch>={stable_abi}"


def license_field(text: str) -> str:
    """Return the TOML value of `project.license`: an SPDX expression, or another text as such."""
    known = spdx(text)
    return f"{{ text = {toml.spelled(text)} }}" if known is None else toml.spelled(known)


def content_type(path: str) -> str:
    """Return how indexes show a description, by the suffix of its file."""
    return _CONTENT_TYPES.get(posixpath.splitext(path)[1].lower(), "text/plain")


def readme_field(config: Config) -> str:
    """Return the TOML value of `project.readme`; empty for a kernel without a description."""
    path = readme(config)
    if path is None:
        return ""
    return f"{{ file = {toml.spelled(path)}, content-type = {toml.spelled(content_type(path))} }}"


def spdx(text: str) -> str | None:
    """Return a license as an SPDX expression, in its one spelling; None for another text."""
    try:
        return str(canonicalize_license_expression(text))
    except InvalidLicenseExpression:
        return None


def urls(config: Config) -> tuple[tuple[str, str], ...]:
    """Return the project URLs that a browser can open."""
    more = ((f"Upstream-{number}", url) for number, url in enumerate(config.general.more_upstreams, start=2))
    named = (("Source", config.general.source), ("Upstream", config.general.upstream), *more)
    return tuple((label, url) for label, url in named if url is not None and url.startswith(("http://", "https://")))


def python_depends(config: Config, backend: Backend) -> tuple[str, ...]:
    """Return the requirements of what the kernel imports on `backend`."""
    named = (dependencies.requirement(name) for name in config.python_depends(backend))
    return tuple(dict.fromkeys((*named, *config.requires)))


def _kernel(kernel: KernelDependency) -> dict[str, Any]:
    version = {"version": kernel.version} if kernel.revision is None else {"revision": kernel.revision}
    return {"repo-id": kernel.repo_id, **version}


def _json(table: dict[str, Any]) -> str:
    return json_text.document(table, escaped=False)
