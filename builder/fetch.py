"""Bring pinned wheels into an environment: from a find-links folder, or through uv from an index."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.errors import ToolError
from builder.finders import Finders, uv_binary
from builder.pins import PinSet, Wheel
from builder.run import Completed, run
from builder.toolchain import sha256_of

REMEDY = (
    "put the files into a folder and name it in PIP_FIND_LINKS, or name a mirror in PIP_INDEX_URL, "
    "or a proxy in HTTPS_PROXY"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Installer:
    """Where uv installs to, and how it is run."""

    into: Path
    scratch: Path
    cache: Path | None
    """None for no cache at all."""
    finders: Finders

    def run(self, wheels: tuple[Wheel, ...], *options: str, local: dict[Wheel, Path], index: str | None) -> Completed:
        wanted = self.scratch / "wheels.txt"
        wanted.write_text("".join(f"{_requirement(wheel, local.get(wheel))}\n" for wheel in wheels), encoding="utf-8")
        env = {"UV_CACHE_DIR": str(self.cache), **self.finders.env}
        options += ("--no-cache",) if self.cache is None else ()
        if index is not None:
            env["UV_EXTRA_INDEX_URL"] = f"{env.get('UV_EXTRA_INDEX_URL', '')} {index}".strip()
        python = str(self.into / "bin" / "python")
        argv = (
            *(uv_binary(), "pip", "install", "--python", python),
            *("--require-hashes", "--no-deps", "--no-build", *options, "--requirements", str(wanted)),
        )
        return run(argv, cwd=self.scratch, env=env)


def install(
    pinset: PinSet, *, into: Path, cache: Path | None, finders: Finders, progress: Callable[[str], None]
) -> None:
    """Install exactly the wheels of `pinset` into the environment `into`.

    Raises:
        ToolError: a wheel cannot be had, or is not the one that was pinned.
    """
    local = dict(_local(pinset, finders))
    indexes = {wheel.index for wheel in pinset.wheels if wheel not in local} - {None}
    with TemporaryDirectory(prefix=".fetch-", dir=into) as scratch:
        installer = _Installer(into=into, scratch=Path(scratch), cache=cache, finders=finders)
        for index in (None, *sorted(index for index in indexes if index)):
            batch = tuple(wheel for wheel in pinset.wheels if (None if wheel in local else wheel.index) == index)
            if batch:
                progress(f"installing {len(batch)} pinned wheels" + ("" if index is None else f" from {index}"))
                _install(installer, batch, local=local, index=index)


def _install(installer: _Installer, wheels: tuple[Wheel, ...], *, local: dict[Wheel, Path], index: str | None) -> None:
    for options, where in _attempts(installer, wheels, local=local, index=index):
        done = installer.run(wheels, *options, local=local, index=where)
        if done.returncode == 0:
            return
    raise _failure(installer, wheels, local=local, said=done.output)


def _attempts(
    installer: _Installer, wheels: tuple[Wheel, ...], *, local: dict[Wheel, Path], index: str | None
) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Yield options and index of each try: with what is here, with the user's own indexes, with all of them."""
    here = all(wheel in local for wheel in wheels)
    if here or (installer.cache is not None and installer.cache.exists()):
        yield ("--offline",), index
    if index is not None and installer.finders.own_index:
        yield (), None  # a mirror may have what cannot be reached where it is published
    if not here:
        yield (), index


def _requirement(wheel: Wheel, path: Path | None) -> str:
    place = f"=={wheel.version}" if path is None else f" @ {path.resolve().as_uri()}"
    return f"{wheel.name}{place} --hash=sha256:{wheel.sha256}"


def _local(pinset: PinSet, finders: Finders) -> Iterator[tuple[Wheel, Path]]:
    """Yield the wheels that lie in a find-links folder, each with its path.

    Raises:
        ToolError: a file has a pinned name and no folder has it with the pinned content.
    """
    wrong: list[str] = []
    for wheel in pinset.wheels:
        paths = [folder / wheel.file for folder in finders.folders if (folder / wheel.file).is_file()]
        digests = {path: _sha256(path) for path in paths}
        good = next((path for path, digest in digests.items() if digest == wheel.sha256), None)
        if good is not None:
            yield wheel, good
        else:
            wrong += [
                f"\n  --> {path.parent}: {wheel.file}\n      pinned sha256 {wheel.sha256}\n      found sha256  {digest}"
                for path, digest in digests.items()
            ]
    if wrong:
        count = "a wheel" if len(wrong) == 1 else f"{len(wrong)} wheels"
        raise ToolError(
            f"{count} in a find-links folder is not what was pinned{''.join(wrong)}",
            help="remove the file, or replace it by the published one; nothing was installed",
        )


def _sha256(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise ToolError(f"cannot read '{path}': {error.strerror}", help="make the file readable") from error


def _failure(installer: _Installer, wheels: tuple[Wheel, ...], *, local: dict[Wheel, Path], said: str) -> ToolError:
    """Return the error of a failed installation: which wheels are wrong or missing, and what uv said."""
    quoted = "".join(f"\n  uv: {line}" for line in said.strip().splitlines() if line.strip())
    if re.search(r"hash mismatch", said, re.IGNORECASE):
        return ToolError(
            f"an index serves a file that is not the pinned one{quoted}",
            help="ask who runs the index; a pin is changed only by `builder pins update`",
        )
    missing = [wheel for wheel in wheels if wheel not in local and not _is_cached(installer, wheel)]
    if not missing:
        return ToolError(f"uv could not install the pinned wheels{quoted}", help="see what uv said above")
    listed = "".join(f"\n  --> {wheel.file} (sha256 {wheel.sha256})" for wheel in missing)
    count = "a pinned wheel" if len(missing) == 1 else f"{len(missing)} of {len(wheels)} pinned wheels"
    return ToolError(f"cannot get {count}{listed}{quoted}", help=REMEDY)


def _is_cached(installer: _Installer, wheel: Wheel) -> bool:
    done = installer.run((wheel,), "--offline", "--dry-run", local={}, index=wheel.index)
    return done.returncode == 0
