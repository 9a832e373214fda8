"""State how a wheel was built: in-toto with SLSA provenance as the predicate; unsigned."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from builder import __version__, json_text
from builder.config import Framework
from builder.wheel.kernel_wheel import KernelWheel
from builder.wheel.sbom import web

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:kernel-wheel-builder:cell:v1"
BUILDER_ID = f"pkg:pypi/kernel-wheel-builder@{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of a wheel: the commit of its sources, and the platform that built it."""

    commit: str | None = None
    """The Git commit of the kernel."""
    dirty: bool = False
    builder_id: str = BUILDER_ID
    """The URI of the build platform; CI uses its workflow."""
    sandbox: bool | None = None
    """Whether the wheel was built in a sandbox, if its record tells."""
    invocation: str | None = None
    """The URI of the run, which makes each run's statement different."""


def statement(kernel_wheel: KernelWheel, origin: Origin) -> bytes:
    """Return the statement about one wheel; the same wheel and origin give the same bytes."""
    metadata = kernel_wheel.metadata
    run: dict[str, Any] = {"builder": {"id": origin.builder_id, "version": {"kernel-wheel-builder": __version__}}}
    if origin.invocation is not None:
        run["metadata"] = {"invocationId": origin.invocation}
    definition = {
        "buildType": BUILD_TYPE,
        "externalParameters": {
            "kernel": kernel_wheel.kernel,
            "version": str(kernel_wheel.wheel.version.public),
            "variant": str(kernel_wheel.variant),
            **({"archs": list(metadata.quick_archs)} if metadata.quick_archs else {}),
            **({} if metadata.source is None else {"source": metadata.source}),
        },
        "internalParameters": {
            "builder": __version__,
            "toolchain": metadata.inputs.toolchain or {},
            **({} if origin.sandbox is None else {"sandbox": origin.sandbox}),
        },
        "resolvedDependencies": list(_dependencies(kernel_wheel, origin)),
    }
    table = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": kernel_wheel.wheel.path.name, "digest": {"sha256": kernel_wheel.sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"buildDefinition": definition, "runDetails": run},
    }
    return json_text.document(table, indent=1, ordered=True, escaped=False).encode()


def _dependencies(kernel_wheel: KernelWheel, origin: Origin) -> Iterator[dict[str, Any]]:
    """Yield the checked-out commit, the rendered project, and the framework."""
    source, inputs = kernel_wheel.metadata.source, kernel_wheel.metadata.inputs
    if origin.commit is not None:
        commit: dict[str, Any] = {"name": "kernel", "digest": {"gitCommit": origin.commit}}
        if source is not None and ":" in source:
            url = web(source)
            commit["uri"] = url if url.startswith("git") else f"git+{url}"
        if origin.dirty:
            commit["annotations"] = {"dirty": True}
        yield commit
    if inputs.project is not None:
        yield {"name": "rendered project", "digest": {"sha256": inputs.project}}
    if inputs.framework and not kernel_wheel.variant.noarch:
        name = "apache-tvm-ffi" if kernel_wheel.variant.framework is Framework.TVM_FFI else "torch"
        yield {"name": name, "uri": f"pkg:pypi/{name}@{quote(inputs.framework, safe='')}"}
