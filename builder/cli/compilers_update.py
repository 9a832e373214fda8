"""Write `builder/data/compilers.toml` from the packages on a mirror of Debian.

Run it as `python -m builder.cli.compilers_update MIRROR > builder/data/compilers.toml`, and review the changes: other
compilers give other wheels.
"""

import lzma
import os
import sys
import tempfile
from pathlib import Path

from builder import terminal, toml
from builder.environment import compilers, debian, download
from builder.environment.compilers import PinnedCompilers, PinnedPackage
from builder.errors import ToolError
from builder.hashes import nar, sha256_of
from builder.run import Processes

_SUITE = "bookworm"
_VERSION = "12"
_RUNS_ON = "x86_64-linux"
_FIRST = """\
# The C and C++ compilers of `--toolchain pinned`: packages of Debian by hash, and the hash of all files as they are
# arranged below one folder. `python -m builder.cli.compilers_update MIRROR` writes this file.
"""
_RUN = (
    *("libc6", "libgcc-s1", "libstdc++6", "libgmp10", "libisl23", "libmpc3", "libmpfr6", "libzstd1", "zlib1g"),
    *("libbinutils", "libctf0", "libctf-nobfd0", "libjansson4"),
)
"""The libraries that the programs load."""
_COMPILE = {
    "x86_64-linux": (
        *("gcc-12", "g++-12", "cpp-12", "libgcc-12-dev", "libstdc++-12-dev", "binutils-x86-64-linux-gnu"),
        *("libc6-dev", "linux-libc-dev", "libgomp1", "libatomic1"),
    ),
    "aarch64-linux": (
        *("gcc-12-aarch64-linux-gnu", "g++-12-aarch64-linux-gnu", "cpp-12-aarch64-linux-gnu"),
        *("libgcc-12-dev-arm64-cross", "libstdc++-12-dev-arm64-cross", "binutils-aarch64-linux-gnu"),
        *("libc6-arm64-cross", "libc6-dev-arm64-cross", "linux-libc-dev-arm64-cross"),
        *("libgcc-s1-arm64-cross", "libstdc++6-arm64-cross", "libgomp1-arm64-cross", "libatomic1-arm64-cross"),
    ),
}


def propose(mirror: str) -> str:
    """Return the text of the table.

    Raises:
        ToolError: the mirror lacks a package, or serves one that does not match its index.
    """
    with tempfile.TemporaryDirectory() as scratch:
        known = _index(mirror, Path(scratch))
        named = sorted({*_RUN, *(name for names in _COMPILE.values() for name in names)})
        missing = next((name for name in named if name not in known), None)
        if missing is not None:
            remedy = "name a mirror that has all of Debian"
            raise ToolError(f"{mirror} has no package '{missing}' in {_SUITE}", help=remedy)
        lines = [_FIRST, f'runs-on = "{_RUNS_ON}"\n']
        for target, names in _COMPILE.items():
            packages = tuple(known[name] for name in sorted({*_RUN, *names}))
            wanted = PinnedCompilers(target=target, version=_VERSION, hash="", packages=packages)
            found = _hash(wanted, mirror, Path(scratch) / target)
            lines.append(f'\n[target.{target}]\nversion = "{_VERSION}"\nhash = "{found}"\n')
        for name in named:
            users = [target for target, names in _COMPILE.items() if name in (*_RUN, *names)]
            row = known[name]
            lines.append(f'\n[[package]]\npath = "{row.path}"\nsha256 = "{row.sha256}"\nfor = {toml.spelled(users)}\n')
    return "".join(lines)


def _fetch(place: str, target: Path) -> Path:
    remedy = "look whether it is a mirror of Debian"
    download.download(place, target, environ=os.environ, processes=Processes(), remedy=remedy)
    return target


def _index(mirror: str, scratch: Path) -> dict[str, PinnedPackage]:
    """Return the packages of the suite by their names."""
    packed = _fetch(f"{mirror}/dists/{_SUITE}/main/binary-amd64/Packages.xz", scratch / "Packages.xz")
    text = lzma.decompress(packed.read_bytes()).decode()
    return {
        fields["Package"]: PinnedPackage(path=fields["Filename"], sha256=fields["SHA256"])
        for fields in map(_fields, text.split("\n\n"))
        if fields
    }


def _fields(paragraph: str) -> dict[str, str]:
    pairs = (line.partition(": ") for line in paragraph.splitlines() if not line.startswith(" "))
    return {name: value for name, _, value in pairs if value}


def _hash(wanted: PinnedCompilers, mirror: str, scratch: Path) -> str:
    scratch.mkdir()
    for package in wanted.packages:
        file = _fetch(f"{mirror}/{package.path}", scratch / Path(package.path).name)
        if sha256_of(file) != package.sha256:
            raise ToolError(f"{mirror} serves another '{package.path}' than its index says", help="try another mirror")
        debian.unpack(file, scratch / "root", wanted=compilers.is_wanted)
    compilers.arrange(scratch / "root", wanted)
    return nar(scratch / "root", links=True)


if __name__ == "__main__":
    terminal.document(propose(sys.argv[1].rstrip("/")))
