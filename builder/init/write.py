"""The files of a new kernel, and their way to the disk."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment
from packaging.utils import canonicalize_name

from builder import json_text, resources, templates, toml
from builder.ci.workflow import DISTRIBUTION, PLACEHOLDER, caller
from builder.config.values import Backend, Framework
from builder.errors import BuilderError, NothingToDoError
from builder.files import write_atomic
from builder.init.answers import Answers

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
    """Return the text of every file, by its path in the new directory."""
    values = _values(answers)
    environment = _environment()
    found = {}
    for template in _templates(answers):
        _, _, path = template.split("/", 2)
        name = path.replace("__module__", answers.name.module).removesuffix(_SUFFIX)
        found[name] = environment.get_template(template).render(values)
    if answers.ci is not None:
        found |= caller(answers.ci, home=answers.home)
    return dict(sorted(found.items()))


def write(tree: Mapping[str, str], directory: Path) -> None:
    """Write the files under `directory`; a file that is there is never replaced.

    Raises:
        NothingToDoError: one is there; nothing is written then.
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


def _templates(answers: Answers) -> Iterator[str]:
    backends = {backend.facts.init for backend in answers.backends}
    for top in ("common", answers.framework.value):
        for part in ("base", *sorted(backends)):
            for path in sorted((_TEMPLATES / top / part).rglob(f"*{_SUFFIX}")):
                yield path.relative_to(_TEMPLATES).as_posix()


def _sources(answers: Answers, backend: Backend) -> list[str]:
    """Return the sources of a backend in a new kernel: what its folder of templates has."""
    folder = _TEMPLATES / answers.framework.value / backend.facts.init
    return [path.relative_to(folder).as_posix().removesuffix(_SUFFIX) for path in sorted(folder.rglob(f"*{_SUFFIX}"))]


def _values(answers: Answers) -> dict[str, Any]:
    module = answers.name.module
    home = answers.home
    compiled = () if answers.framework is Framework.TORCH_NOARCH else answers.backends
    return {
        "name": str(answers.name),
        "module": module,
        "distribution": canonicalize_name(answers.name).replace("-", "_"),
        "license": answers.license,
        "backends": [backend.value for backend in answers.backends],
        "compiled": [backend.value for backend in compiled],
        "sources": {backend.value: _sources(answers, backend) for backend in compiled},
        "flake": answers.flake or f"github:{PLACEHOLDER}",
        "flake_known": answers.flake is not None,
        "install": DISTRIBUTION if home is None or home.released else home.requirement,
        "autograd": answers.framework is not Framework.TVM_FFI,
        "refusal": _REFUSAL[answers.framework],
        "tour": [(path.format(module=module), what) for path, what in _TOUR[answers.framework]],
    }


def _environment() -> Environment:
    """Return an environment whose marks clash with no language of a kernel."""
    environment = templates.environment(_TEMPLATES, marks=("{@", "@}", "{@#", "#@}"))
    environment.filters["toml"] = toml.spelled
    environment.filters["nix"] = lambda value: json_text.line(value, escaped=False).replace("${", "\\${")
    return environment
