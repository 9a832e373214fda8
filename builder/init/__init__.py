"""Start a new kernel: a small one that builds, for a framework and its backends."""

import keyword
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from builder import json_text, resources, templates, toml
from builder.ci.workflow import DISTRIBUTION, PLACEHOLDER, BuilderAddress, Service, caller, find
from builder.config.values import Backend, Framework, InvalidValueError, KernelName
from builder.config.wheel_values import license_problem
from builder.errors import BuilderError, NothingToDoError
from builder.files import write_atomic
from builder.matrix import rows

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9/._~:@%+?=&#-]+", re.ASCII)
FRAMEWORKS = tuple(framework for framework in Framework if framework is not Framework.CTYPES)
"""The frameworks of a new kernel, which starts with ops; so a plain library is not one of them."""
_TAKEN = frozenset({"torch", "triton", "tvm_ffi", "numpy", "kernels", "builder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The name, framework, backends and license of a new kernel."""

    name: KernelName
    framework: Framework
    backends: tuple[Backend, ...]
    license: str
    home: BuilderAddress | None = None
    """The repository that its CI takes builder from."""
    flake: str | None = None
    """The address that its flake takes builder from."""
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
        """Check a user's answers; without `builder_url`, look for the address.

        Raises:
            BuilderError: with every invalid answer.
        """
        named = frozenset(backends)
        chosen = tuple(backend for backend in Backend if backend in named) or default_backends(framework)
        problems = list(_problems(name, framework, chosen, license_, builder_url))
        if problems:
            raise BuilderError("\nerror: ".join(problems))
        home = find() if builder_url is None else BuilderAddress.parse(builder_url)
        return cls(
            name=KernelName(name),
            framework=framework,
            backends=chosen,
            license=license_,
            home=home,
            flake=builder_url if home is None else home.flake,  # Nix accepts more than a repository's address
            ci=ci,
        )


def possible_backends(framework: Framework) -> tuple[Backend, ...]:
    """Return the backends for which a framework can have a component or, for noarch, a wheel."""
    if framework is Framework.TORCH_NOARCH:
        return tuple(Backend)
    if framework is Framework.TORCH:
        return tuple(backend for backend in Backend if backend.facts.components)
    served = {row.backend for row in rows() if row.tvm_ffi is not None}
    return tuple(backend for backend in Backend if backend in served)


def default_backends(framework: Framework) -> tuple[Backend, ...]:
    """Return the default backends of a kernel: the most common ones."""
    common = (Backend.CPU, Backend.CUDA)
    return tuple(backend for backend in common if backend in possible_backends(framework))


def _problems(
    name: str, framework: Framework, backends: tuple[Backend, ...], license_: str, url: str | None
) -> Iterator[str]:
    """Yield what is wrong with each answer, with its remedy."""
    try:
        module = KernelName(name).module
    except InvalidValueError as error:
        yield str(error) if error.help is None else f"{error}\n  help: {error.help}"
    else:
        if module in _TAKEN or module in sys.stdlib_module_names or keyword.iskeyword(module):
            yield f"'{name}' is the name of a module that Python or PyTorch has\n  help: pass another one with --name"
    possible = possible_backends(framework)
    wrong = ", ".join(backend.value for backend in backends if backend not in possible)
    if wrong:
        allowed = ", ".join(backend.value for backend in possible)
        remedy = "`--framework torch-noarch` makes a pure-Python kernel, for every backend"
        yield f"a kernel for {framework} cannot have backend {wrong}: allowed are {allowed}\n  help: {remedy}"
    if license_problem(license_) is not None:
        remedy = "write it as in 'Apache-2.0' or 'MIT OR BSD-3-Clause'"
        yield f"'{license_}' is not an SPDX license expression\n  help: {remedy}"
    if url is not None and not _URL.fullmatch(url) and BuilderAddress.parse(url) is None:
        remedy = "write it as in 'github:OWNER/REPOSITORY' or 'https://example.org/OWNER/REPOSITORY@v1.0'"
        yield f"'{url}' is not the URL of a repository\n  help: {remedy}"


_TEMPLATES = resources.TEMPLATES / "init"
_SUFFIX = ".j2"
_TOUR = {
    Framework.TORCH: (
        ("csrc/", "the computation, a file for each backend"),
        ("torch-ext/torch_binding.cpp", "the ops: their checks and schemas"),
        ("torch-ext/{module}/__init__.py", "what Python sees"),
    ),
    Framework.TORCH_NOARCH: (("torch-ext/{module}/", "the kernel: Triton, and PyTorch where there is none"),),
    Framework.TVM_FFI: (
        ("csrc/", "the computation, a file for each backend"),
        ("tvm-ffi-ext/tvm_ffi_binding.cpp", "the functions and their checks"),
        ("tvm-ffi-ext/{module}/__init__.py", "what Python sees"),
    ),
}
_REFUSAL = {
    Framework.TORCH: "NotImplementedError",  # no kernel is registered for the device
    Framework.TORCH_NOARCH: "NotImplementedError",
    Framework.TVM_FFI: "ValueError",
}


def files(answers: Answers) -> dict[str, str]:
    """Return the text of every file, by its path in the new folder."""
    environment = templates.environment(_TEMPLATES, marks=("{@", "@}", "{@#", "#@}"))  # no language uses these
    environment.filters["toml"] = toml.spelled
    environment.filters["nix"] = lambda value: json_text.line(value, escaped=False).replace("${", "\\${")
    values = _values(answers)
    found = {}
    for top in ("common", answers.framework.value):
        for part in ("base", *sorted({backend.facts.init for backend in answers.backends})):
            for path, template in _templates(f"{top}/{part}").items():
                name = path.replace("__module__", answers.name.module)
                found[name] = environment.get_template(template).render(values)
    if answers.ci is not None:
        found |= caller(answers.ci, home=answers.home)
    return dict(sorted(found.items()))


def _templates(folder: str) -> dict[str, str]:
    """Return the templates in a folder, by the path of their file in a kernel."""
    paths = [path.relative_to(_TEMPLATES).as_posix() for path in sorted((_TEMPLATES / folder).rglob(f"*{_SUFFIX}"))]
    return {path.removeprefix(f"{folder}/").removesuffix(_SUFFIX): path for path in paths}


def write(tree: Mapping[str, str], directory: Path) -> None:
    """Write the files under `directory`; never replace an existing file.

    Raises:
        NothingToDoError: a file exists; then nothing is written.
        BuilderError: the directory cannot be written.
    """
    try:
        there = [path for path in tree if (directory / path).exists() or (directory / path).is_symlink()]
        if there:
            raise NothingToDoError(
                f"'{directory}' already has {', '.join(there)}", help="name a new or an empty directory"
            )
        for path, text in tree.items():
            write_atomic(directory / path, text.encode())
            (directory / path).chmod(0o644)
    except OSError as error:
        raise BuilderError(f"cannot write '{directory}': {error.strerror}", help="name another directory") from error


def _values(answers: Answers) -> dict[str, Any]:
    module, home, framework = answers.name.module, answers.home, answers.framework
    compiled = () if framework is Framework.TORCH_NOARCH else answers.backends
    return {
        "name": str(answers.name),
        "module": module,
        "distribution": canonicalize_name(answers.name).replace("-", "_"),
        "license": answers.license,
        "backends": [backend.value for backend in answers.backends],
        "compiled": [backend.value for backend in compiled],
        "sources": {backend.value: list(_templates(f"{framework}/{backend.facts.init}")) for backend in compiled},
        "flake": answers.flake or f"github:{PLACEHOLDER}",
        "flake_known": answers.flake is not None,
        "install": DISTRIBUTION if home is None or home.released else home.requirement,
        "autograd": framework is not Framework.TVM_FFI,
        "refusal": _REFUSAL[framework],
        "tour": [(path.format(module=module), what) for path, what in _TOUR[framework]],
    }
