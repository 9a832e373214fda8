"""Install the C and C++ compilers of `--toolchain pinned`: Debian packages, pinned by hash, that run on any Linux.

A script starts each program through the loader and the libraries that are pinned with it, so its output depends on
nothing of the machine but the Linux kernel and `/bin/sh`. The scripts contain no absolute path: the same files work in
any folder.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from builder import resources, toml, toolchain
from builder.environment import debian
from builder.environment.debian import MIRROR, mirrors
from builder.environment.download import Fetching, UnreachableError, download
from builder.errors import NotHereError, WrongHashError
from builder.hashes import nar, sha256_of
from builder.matrix.variant import built_systems
from builder.store import COMPILERS

TABLE = resources.DATA / "compilers.toml"
_LOADER = "usr/lib/x86_64-linux-gnu"
_ELF = b"\x7fELF"
_PROGRAMS = re.compile(r"usr/bin/[^/]+|usr/lib/gcc(?:-cross)?/[^/]+/\d+/[^/]+")
_DRIVERS = re.compile(r"-(?:gcc|g\+\+|cpp)-\d+$")
_NEVER = re.compile(
    r"(?!usr/)|usr/share/|usr/bin/.*(?:gcov|gprof|gp-|lto-dump|dwp)|.*/lib(?:[atl]|ub|hwa)san(?:_preinit)?\.(?:a|o|so)$"
    r"|.*/(?:gconv|audit|gprofng|plugin|bfd-plugins)/"
)
"""Files that no build uses, a third of the bytes: sanitizers, profilers, documentation."""
_FILE_NAME = str.maketrans("+/", "-_", "=")
_NAMES = {"CXX": "g++", "CC": "gcc"}
_BINUTILS = ("ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "strip")
_REMEDY = f"{MIRROR} names a mirror of Debian, or a folder with its 'pool'; HTTPS_PROXY a proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedPackage:
    """A Debian package, pinned by hash."""

    path: str
    """Its path below a mirror, such as `pool/main/g/gcc-12/g++-12_12.2.0-14_amd64.deb`."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedCompilers:
    """The compilers for one system."""

    target: str
    """The system for which they compile, such as `aarch64-linux`."""
    version: str
    """The number in the names of the programs."""
    hash: str
    """The hash of all unpacked files, as Nix spells it."""
    packages: tuple[PinnedPackage, ...]

    @property
    def name(self) -> str:
        """Their folder's name in a store."""
        return f"{self.target}-{self.hash.removeprefix('sha256-').translate(_FILE_NAME)[:32]}"

    @property
    def triple(self) -> str:
        """The prefix of the programs' names."""
        return str(built_systems()[self.target].triple)


@cache
def pinned() -> Mapping[str, PinnedCompilers]:
    """Return the pinned compilers for this machine, by the system for which they compile."""
    table: Mapping[str, Any] = toml.loads(TABLE.read_text(encoding="utf-8"))
    if toolchain.system() != table["runs-on"]:
        return {}
    return {
        target: PinnedCompilers(
            target=target,
            version=facts["version"],
            hash=facts["hash"],
            packages=tuple(
                PinnedPackage(path=row["path"], sha256=row["sha256"])
                for row in table["package"]
                if target in row["for"]
            ),
        )
        for target, facts in table["target"].items()
    }


def folder(target: str, fetching: Fetching) -> Path:
    """Return the verified folder with the compilers for a system; fetch them if the store lacks them.

    Raises:
        NotHereError: none are pinned.
        ToolError: they cannot be fetched, or do not have the pinned hash.
        StoreError: the store cannot be written.
    """
    wanted = pinned().get(target)
    if wanted is None:
        known = f"; on {toolchain.system()} there are those for {', '.join(pinned())}" if pinned() else ""
        raise NotHereError(
            f"no compiler for {target} that runs on {toolchain.system()} is pinned{known}",
            help="leave out --toolchain pinned, or build on a machine of x86_64-linux",
        )
    return fetching.tree(
        COMPILERS,
        wanted.name,
        called=f"the pinned compilers for {target}",
        is_right=lambda folder: nar(folder, links=True) == wanted.hash,
        fetch=lambda scratch: _made(wanted, scratch, fetching),
    )


def _made(wanted: PinnedCompilers, scratch: Path, fetching: Fetching) -> Path:
    """Fetch and unpack the packages, and return the tree with their files."""
    places = mirrors(fetching.environ)
    fetching.progress(f"fetching the pinned compilers for {wanted.target}: {len(wanted.packages)} packages")
    fresh = scratch / "fresh"
    for package in wanted.packages:
        debian.unpack(_fetched(package, places, scratch, fetching), fresh, wanted=is_wanted)
    arrange(fresh, wanted)
    found = nar(fresh, links=True)
    if found != wanted.hash:
        raise WrongHashError(
            f"the compilers for {wanted.target} were unpacked to other files than are pinned\n"
            f"      expected {wanted.hash}\n      found    {found}",
            help="look whether the disk has errors; nothing was kept",
        )
    return fresh


def _fetched(package: PinnedPackage, places: tuple[str, ...], scratch: Path, fetching: Fetching) -> Path:
    """Fetch a package from the first mirror that has it."""
    target = scratch / PurePosixPath(package.path).name
    for place in places:
        address = f"{place}/{package.path}"
        try:
            download(address, target, environ=fetching.environ, processes=fetching.processes, remedy=_REMEDY)
        except UnreachableError:
            if place == places[-1]:
                raise
            continue
        found = sha256_of(target)
        if found != package.sha256:
            raise WrongHashError(
                f"{address} is not the package that is pinned\n"
                f"      expected sha256 {package.sha256}\n      found sha256    {found}",
                help="ask who runs the mirror; nothing was kept",
            )
        break
    return target


def variables(folders: Mapping[str, Path], environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` with the compilers in these folders, by the system for which they compile, and no others."""
    paths = (*(str(folder / "usr/bin") for folder in folders.values()), environ.get("PATH", os.defpath))
    result = {name: value for name, value in environ.items() if name not in _NAMES}
    here = folders.get(toolchain.system())
    if here is not None:
        own = pinned()[toolchain.system()]
        result |= {
            name: str(here / f"usr/bin/{own.triple}-{program}-{own.version}") for name, program in _NAMES.items()
        }
    return {**result, "PATH": os.pathsep.join(paths)}


def is_wanted(path: str) -> bool:
    """Whether a file of a package, by its path below the root, belongs to the compilers."""
    return _NEVER.match(path) is None


def arrange(root: Path, wanted: PinnedCompilers) -> None:
    """Replace each program below `root` by a script, so that the compilers find their parts below `root`.

    Raises:
        OSError: a file cannot be written.
    """
    for path in sorted(path for path in root.rglob("*") if _is_program(path, root)):
        real = path.with_name(f"{path.name}.bin")
        path.rename(real)
        path.write_text(_script(real.relative_to(root), path.name, wanted), encoding="utf-8")
        path.chmod(0o755)
    own = root / "usr" / wanted.triple / "bin"
    own.mkdir(parents=True, exist_ok=True)
    for name in _BINUTILS:
        (own / name).unlink(missing_ok=True)
        (own / name).symlink_to(f"../../bin/{wanted.triple}-{name}")
    for name in ("lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")  # linker scripts use these paths
    for name in ("gcc", "g++"):
        alias = root / "usr/bin" / f"{wanted.triple}-{name}"
        alias.unlink(missing_ok=True)
        alias.symlink_to(f"{alias.name}-{wanted.version}")


def _is_program(path: Path, root: Path) -> bool:
    if _PROGRAMS.fullmatch(path.relative_to(root).as_posix()) is None or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF and path.stat().st_mode & 0o100 != 0 and ".so" not in path.name


def _script(real: Path, name: str, wanted: PinnedCompilers) -> str:
    """Return the script that starts a program.

    The compilers report their headers under Debian's paths, wherever the root is.
    """
    options = ' --sysroot="$root" -ffile-prefix-map="$root"=' if _DRIVERS.search(name) else ""
    packages = "".join(f"# {package.sha256}\n" for package in wanted.packages)
    return (
        "#!/bin/sh\n"
        "# A pinned program with the loader and the libraries that are pinned with it: packages with these sha256.\n"
        f"{packages}"
        "root=${0%/usr/*}\n"
        f'exec "$root/{_LOADER}/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$root/{_LOADER}" '
        f'"$root/{real.as_posix()}"{options} "$@"\n'
    )
