"""Find the folders of a kernel's header-only libraries: among the pinned wheels, or named by the user."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from builder.config import Backend, Config
from builder.errors import BuilderError
from builder.hashes import Hasher
from builder.kernel.git_fetch import Fetcher
from builder.make.job import Job
from builder.pins import PinnedWheel
from builder.render.arguments import Arguments
from builder.render.external_sources import header_calls


def wheels(config: Config, backend: Backend, *, environ: Mapping[str, str]) -> tuple[PinnedWheel, ...]:
    """Return the pinned wheels of the libraries for which the user names no folder."""
    result = []
    for found in header_calls(config, backend):
        if "WHEEL" in found and not _named(found, environ):
            name, version = str(found["WHEEL"]).split("==")
            file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
            result.append(PinnedWheel(file=file, name=name, version=version, sha256=str(found["SHA256"])))
    return tuple(result)


def of_job(job: Job) -> dict[str, Path]:
    """Return the CMake variables that name the folders, as far as they are known before CMake runs."""
    found = folders(job.kernel.config, job.cell.backend, environ=job.environ, site_packages=job.site_packages)
    return found | dict(job.spec.headers)


def folders(config: Config, backend: Backend, *, environ: Mapping[str, str], site_packages: Path) -> dict[str, Path]:
    """Return the CMake variables for folders that the user names or that pinned wheels contain."""
    result = {}
    for found in header_calls(config, backend):
        pinned = site_packages / str(found.get("WHEEL_ROOT", ""))
        if _named(found, environ):
            result[str(found["VARIABLE"])] = Path(_named(found, environ)).absolute()
        elif "WHEEL_ROOT" in found and pinned.is_dir():
            result[str(found["VARIABLE"])] = pinned
    return result


def fetched(config: Config, backend: Backend, *, environ: Mapping[str, str], root: Path) -> dict[str, Path]:
    """Return the CMake variables for libraries pinned by commit, each fetched once below `root`.

    Libraries are fetched before the build, which has no network.

    Raises:
        ToolError: a commit cannot be fetched.
    """
    result = {}
    for found in header_calls(config, backend):
        if "COMMIT" not in found or _named(found, environ):
            continue
        folder = root / str(found["COMMIT"])
        if not folder.is_dir():
            Fetcher(environ=environ).fetch(str(found["SOURCE"]), str(found["COMMIT"]), folder)
        with contextlib.suppress(OSError):  # another user's folder
            os.utime(folder)  # the time of the last use
        result[str(found["VARIABLE"])] = folder
    return result


def digests(config: Config, backend: Backend, *, environ: Mapping[str, str]) -> dict[str, str]:
    """Return variable -> sha256 of the headers, for each folder that the user names.

    Raises:
        BuilderError: a folder does not have the library.
    """
    named = {str(found["VARIABLE"]): found for found in header_calls(config, backend) if _named(found, environ)}
    return {variable: _digest(found, Path(environ[variable])) for variable, found in named.items()}


def _digest(found: Arguments, root: Path) -> str:
    if not (root / str(found["CONTAINS"])).is_file():
        raise BuilderError(
            f"{found['VARIABLE']} names '{root}', and there is no '{found['CONTAINS']}' in it",
            help=f"name the folder of {found['SOURCE']} in a version that the kernel can use",
        )
    digest = Hasher()
    for directory in (directory for directories in found["INCLUDE"] for directory in directories):
        for path in sorted(path for path in (root / directory).rglob("*") if path.is_file()):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _named(found: Arguments, environ: Mapping[str, str]) -> str:
    return environ.get(str(found["VARIABLE"]), "")
