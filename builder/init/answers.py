"""What a new kernel is to be, valid by construction."""

import keyword
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from builder.ci.workflow import BuilderAddress, Service, find
from builder.config.values import Backend, Framework, InvalidValueError, KernelName
from builder.errors import BuilderError
from builder.matrix import rows

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9/._~:@%+?=&#-]+", re.ASCII)
FRAMEWORKS = tuple(framework for framework in Framework if framework is not Framework.CTYPES)
"""What a new kernel can bind to; what it begins with are ops, and a plain library has none."""
_TAKEN = frozenset({"torch", "triton", "tvm_ffi", "numpy", "kernels", "builder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The name, framework, backends and license of a new kernel."""

    name: KernelName
    framework: Framework
    backends: tuple[Backend, ...]
    license: str
    home: BuilderAddress | None = None
    """Where its CI takes the builder from."""
    flake: str | None = None
    """Where its flake takes the builder from."""
    ci: Service | None = "github"

    @classmethod
    def of(
        cls,
        *,
        name: str,
        framework: Framework,
        backends: Iterable[Backend],
        license_: str,
        builder_url: str | None = None,
        ci: Service | None = "github",
    ) -> "Answers":
        """Check what a user said; an unknown `builder_url` is looked for.

        Raises:
            BuilderError: all that cannot be.
        """
        chosen = tuple(backend for backend in Backend if backend in set(backends)) or default_backends(framework)
        problems = [
            *_name_problems(name),
            *_backend_problems(framework, chosen),
            *_license_problems(license_),
            *_url_problems(builder_url),
        ]
        if problems:
            raise BuilderError("\nerror: ".join(problems))
        home = find() if builder_url is None else BuilderAddress.parse(builder_url)
        return cls(
            name=KernelName(name),
            framework=framework,
            backends=chosen,
            license=license_,
            home=home,
            flake=builder_url if home is None else home.flake,  # Nix reads more than a repository's address
            ci=ci,
        )


def possible_backends(framework: Framework) -> tuple[Backend, ...]:
    """Return the backends that a framework can have a component, or for noarch a wheel, for."""
    if framework is Framework.TORCH_NOARCH:
        return tuple(Backend)
    if framework is Framework.TORCH:
        return tuple(backend for backend in Backend if backend.facts.components)
    served = {row.backend for row in rows() if row.tvm_ffi is not None}
    return tuple(backend for backend in Backend if backend in served)


def default_backends(framework: Framework) -> tuple[Backend, ...]:
    """Return the backends of a kernel whose author named none: what most people have."""
    common = (Backend.CPU, Backend.CUDA)
    return tuple(backend for backend in common if backend in possible_backends(framework))


def _name_problems(name: str) -> list[str]:
    try:
        module = KernelName(name).module
    except InvalidValueError as error:
        return [str(error) if error.help is None else f"{error}\n  help: {error.help}"]
    if module in _TAKEN or module in sys.stdlib_module_names or keyword.iskeyword(module):
        return [f"'{name}' is the name of a module that Python or PyTorch has\n  help: pass another one with --name"]
    return []


def _backend_problems(framework: Framework, backends: Iterable[Backend]) -> list[str]:
    possible = possible_backends(framework)
    wrong = [backend.value for backend in backends if backend not in possible]
    if not wrong:
        return []
    allowed = ", ".join(backend.value for backend in possible)
    remedy = "`--framework torch-noarch` makes a pure-Python kernel, for every backend"
    return [f"a kernel for {framework} cannot have backend {', '.join(wrong)}: allowed are {allowed}\n  help: {remedy}"]


def _license_problems(text: str) -> list[str]:
    try:
        canonicalize_license_expression(text)
    except InvalidLicenseExpression:
        return [
            f"'{text}' is not an SPDX license expression\n  help: write it as in 'Apache-2.0' or 'MIT OR BSD-3-Clause'"
        ]
    return []


def _url_problems(url: str | None) -> list[str]:
    if url is None or _URL.fullmatch(url) or BuilderAddress.parse(url) is not None:
        return []
    remedy = "write it as in 'github:OWNER/REPOSITORY' or 'https://example.org/OWNER/REPOSITORY@v1.0'"
    return [f"'{url}' is not the URL of a repository\n  help: {remedy}"]
