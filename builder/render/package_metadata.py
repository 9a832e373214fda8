"""The fields of pyproject.toml that describe a package."""

import posixpath

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from builder import toml
from builder.config import Backend, Config, Framework, Version, dependencies
from builder.kernel.source_set import readme

_CONTENT_TYPES = {".md": "text/markdown", ".markdown": "text/markdown", ".rst": "text/x-rst"}


def framework_requirement(framework: Framework, *, noarch: bool, stable_abi: Version | None) -> str | None:
    """Return the framework that a wheel requires; None if it depends on the version used in the build.

    In that case, the project's `requirement.py` adds it or, in a build by `builder`, `core_metadata.requirements`.
    """
    if framework is Framework.CTYPES:
        return None
    if noarch:
        return "torch"  # _ops.py asks torch for the backend, for every framework
    return None if stable_abi is None or framework is Framework.TVM_FFI else f"torch>={stable_abi}"


def license_field(text: str) -> str:
    """Return the TOML value of `project.license`: an SPDX expression, or a table with another text."""
    known = spdx(text)
    return f"{{ text = {toml.spelled(text)} }}" if known is None else toml.spelled(known)


def content_type(path: str) -> str:
    """Return the content type of a description, by the suffix of its file."""
    return _CONTENT_TYPES.get(posixpath.splitext(path)[1].lower(), "text/plain")


def readme_field(config: Config) -> str:
    """Return the TOML value of `project.readme`; empty for a kernel without a description."""
    path = readme(config)
    if path is None:
        return ""
    return f"{{ file = {toml.spelled(path)}, content-type = {toml.spelled(content_type(path))} }}"


def spdx(text: str) -> str | None:
    """Normalise an SPDX expression; None for another text."""
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
    """Return the requirements for the Python packages that the kernel imports on `backend`."""
    named = (dependencies.requirement(name) for name in config.python_depends(backend))
    return tuple(dict.fromkeys((*named, *config.wheel.requires)))
