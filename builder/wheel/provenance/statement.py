"""The statement that says how a wheel came to be: in-toto, with SLSA's provenance as its predicate; unsigned."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from builder import __version__, json_text
from builder.wheel.kernel_wheel import KernelWheel
from builder.wheel.provenance.sbom import web

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:kernel-wheel-builder:cell:v1"
BUILDER_ID = f"pkg:pypi/kernel-wheel-builder@{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of a wheel: the commit of its sources, and the platform that built it."""

    commit: str | None = None
    """Git commit of the kernel."""
    dirty: bool = False
    builder_id: str = BUILDER_ID
    """URI of the platform that built; CI names its workflow."""
    sandbox: bool | None = None
    """Whether the wheel was built in a sandbox, where its record says it."""
    invocation: str | None = None
    """URI of the run; it makes the statement of each run another."""


def statement(kernel_wheel: KernelWheel, origin: Origin) -> bytes:
    """Return the statement of one wheel; the same wheel and origin give the same bytes."""
    table = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": kernel_wheel.wheel.path.name, "digest": {"sha256": kernel_wheel.sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"buildDefinition": _definition(kernel_wheel, origin), "runDetails": _run(origin)},
    }
    return json_text.document(table, indent=1, ordered=True, escaped=False).encode()


def _definition(kernel_wheel: KernelWheel, origin: Origin) -> dict[str, Any]:
    metadata = kernel_wheel.metadata
    external: dict[str, Any] = {
        "kernel": kernel_wheel.kernel,
        "version": str(kernel_wheel.wheel.version.public),
        "variant": str(kernel_wheel.variant),
    }
    if metadata.quick_archs:
        external["archs"] = list(metadata.quick_archs)
    if metadata.source is not None:
        external["source"] = metadata.source
    return {
        "buildType": BUILD_TYPE,
        "externalParameters": external,
        "internalParameters": {
            "builder": __version__,
            "toolchain": metadata.inputs.toolchain or {},
            **({} if origin.sandbox is None else {"sandbox": origin.sandbox}),
        },
        "resolvedDependencies": [*_sources(kernel_wheel, origin), *_framework(kernel_wheel)],
    }


def _sources(kernel_wheel: KernelWheel, origin: Origin) -> list[dict[str, Any]]:
    """Return the commit that was checked out, and the rendered project that was built."""
    found: list[dict[str, Any]] = []
    source = kernel_wheel.metadata.source
    if origin.commit is not None:
        dependency: dict[str, Any] = {"name": "kernel", "digest": {"gitCommit": origin.commit}}
        if source is not None and ":" in source:
            dependency["uri"] = _git(source)
        if origin.dirty:
            dependency["annotations"] = {"dirty": True}
        found.append(dependency)
    project = kernel_wheel.metadata.inputs.project
    if project is not None:
        found.append({"name": "rendered project", "digest": {"sha256": project}})
    return found


def _git(source: str) -> str:
    url = web(source)
    return url if url.startswith("git") else f"git+{url}"


def _framework(kernel_wheel: KernelWheel) -> list[dict[str, Any]]:
    version = kernel_wheel.metadata.inputs.framework
    if not version or kernel_wheel.variant.noarch:
        return []
    name = "apache-tvm-ffi" if kernel_wheel.variant.framework.value == "tvm-ffi" else "torch"
    return [{"name": name, "uri": f"pkg:pypi/{name}@{quote(version, safe='')}"}]


def _run(origin: Origin) -> dict[str, Any]:
    details: dict[str, Any] = {"builder": {"id": origin.builder_id, "version": {"kernel-wheel-builder": __version__}}}
    if origin.invocation is not None:
        details["metadata"] = {"invocationId": origin.invocation}
    return details
