"""The rules that make a build give the same bytes everywhere.

The rules of a rendered project are applied, under these names, by `cmake/reproducible.cmake` and its neighbours.
"""

import os
import shlex
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from builder.errors import BuilderError
from builder.toolchain.tool import REACHES_BUILD
from builder.wheel.options import BuildOptions
from builder.wording import nearest

NAMES = (
    "canonical-path",
    "sandbox",
    "module-id",
    "prefix-map",
    "random-seed",
    "strip",
    "install-rpath",
    "source-date-epoch",
    "environment",
    "fixed-zip",
    "sorted-inputs",
)
"""The rules; docs/reproducibility.md explains what each prevents, and where it is applied."""
OF_PROJECT = ("prefix-map", "random-seed", "strip", "install-rpath")
"""The rules that a rendered project contains, so that a build without `builder` follows them as well."""
SANDBOX_PATHS = "BUILDER_SANDBOX_PATHS"
"""The user's variable with additional folders to show to a build, for compilers with parts in unusual places."""


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return these rules, in the order of the list.

    Raises:
        BuilderError: a name is unknown.
    """
    wanted = frozenset(names)
    for name in sorted(wanted.difference(NAMES)):
        guess = nearest(name, NAMES)
        remedy = f"did you mean '{guess}'?" if guess else f"there are {', '.join(NAMES)}"
        raise BuilderError(f"'{name}' is not a rule of reproducible builds", help=remedy)
    return tuple(name for name in NAMES if name in wanted)


def read_options(table: Mapping[str, Any]) -> BuildOptions:
    """Read the options of a build from JSON.

    Raises:
        BuilderError: an option is unknown or invalid, or names an unknown rule.
    """
    options = BuildOptions.from_json(table)
    return replace(options, without=in_order(options.without))


def variables(
    base: Path, *, environ: Mapping[str, str], path: tuple[Path, ...], options: BuildOptions
) -> dict[str, str]:
    """Return all variables of a build; from the user's, only those in the build key.

    `base` is the scratch directory as the build sees it, `path` goes before the system's own PATH.
    """
    result = dict(environ) if "environment" in options.without else {}
    result |= {
        "HOME": str(base / "home"),
        "LC_ALL": "C.UTF-8",
        "PATH": os.pathsep.join([*map(str, path), "/usr/local/bin", "/usr/bin", "/bin"]),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "SOURCE_DATE_EPOCH": str(options.epoch),
        "TMPDIR": str(base / "tmp"),
        "TZ": "UTC",
        "XDG_CACHE_HOME": str(base / "home"),
    }
    if "source-date-epoch" in options.without:
        del result["SOURCE_DATE_EPOCH"]
    result.update((name, environ[name]) for name in REACHES_BUILD if environ.get(name))
    return result | dict(options.variables)


def cmake_defines(without: Collection[str]) -> dict[str, str]:
    """Return the CMake variables that switch off rules of a rendered project."""
    off = [name for name in OF_PROJECT if name in without]
    return {"KERNEL_WITHOUT_RULES": ";".join(off)} if off else {}


_SEEDED_NVCC = (12, 9)
"""The first CUDA whose nvcc accepts a seed for generated names."""


def why_not_reproducible(*, cuda: str | None, canonical: bool, rewrites_module_id: bool = True) -> str | None:
    """Return why a build with this version of nvcc, or without nvcc, may differ elsewhere; None if it cannot.

    `rewrites_module_id` matters only away from the canonical path.
    """
    if cuda is None or canonical:
        return None
    version = tuple(int(part) for part in cuda.split(".")[:2] if part.isdigit())
    if version < _SEEDED_NVCC:
        return f"CUDA {cuda} may name kernels by the folder of the build, and there is no canonical path here"
    return None if rewrites_module_id else f"the module id of CUDA {cuda} has the folder of the build in it"


# cudafe++ hashes a source's real path into an id that ends the names of kernels: the folder is removed from it.
_CUDAFE = """#!/bin/sh
folder={folder}
left=$#
path=
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  if [ -n "$path" ]; then argument=${{argument#"$folder"/}}; fi
  path=
  if [ "$argument" = --orig_src_path_name ]; then path=1; fi
  set -- "$@" "$argument"
  left=$((left - 1))
done
exec {cudafe} "$@"
"""


def module_id_farm(root: Path, target: Path, *, folder: Path) -> Path:
    """Make in `target` a toolkit of links to the one at `root`; module ids then use paths relative to `folder`."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "bin").mkdir(parents=True)
    for path in (*root.iterdir(), *(root / "bin").iterdir()):
        inner = path.relative_to(root)
        if inner.as_posix() not in ("bin", "bin/nvcc", "bin/cudafe++"):
            (target / inner).symlink_to(path)
    # nvcc follows links to itself and looks for its parts there, so it is copied and not linked.
    shutil.copy2(root / "bin/nvcc", target / "bin/nvcc")
    cudafe = target / "bin/cudafe++"
    real = shlex.quote(str((root / "bin/cudafe++").resolve()))
    # nvcc names a source by its real path.
    cudafe.write_text(_CUDAFE.format(folder=shlex.quote(str(folder.resolve())), cudafe=real), encoding="utf-8")
    cudafe.chmod(0o755)
    return target
