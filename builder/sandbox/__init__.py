"""Run a command in a sandbox of namespaces that shows only some paths, or at least at the canonical path."""

import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from builder.errors import ToolError
from builder.run import ask

CANONICAL = Path("/tmp/builder")  # noqa: S108  exists on every machine and in Nix's sandbox; only a mount point
"""The path at which a build sees its scratch directory; the environment is mounted at its `env`."""
_ENTER = Path(__file__).with_name("enter.py")
_PROBE_TIMEOUT = 10
_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--")

# Mount and exec, in a separate mount namespace; the values are arguments, and never part of the script.
_SCRIPT = """
set -e
mount --bind "$1" "$3"
if [ -n "$2" ]; then mount --bind "$2" "$3/env"; fi
cd "$3"
shift 3
exec "$@"
"""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""The folders of a system's toolchain; on most systems all but the first are links into it."""
_OF_ETC = ("alternatives", "clang", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nvcc.profile")
_STORES = ("/nix/store", "/gnu/store")
"""Stores with a folder for each package: packages need each other, so the whole store is shown."""
_FILES = {
    "/etc/group": "builder:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/passwd": "builder:x:1000:1000:builder:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
}
_PARTS = ("bin", "include", "lib", "lib32", "lib64", "libexec")
"""The folders to show of a prefix that is also a home folder."""
_MOST_LINKS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPaths:
    """The paths that a sandbox shows, in addition to the system's tools."""

    readable: tuple[Path, ...] = ()
    """Shown at their own paths, read-only; missing ones are skipped."""
    writable: tuple[Path, ...] = ()
    """Shown at their own paths."""
    mounts: tuple[tuple[Path, Path, bool], ...] = ()
    """A folder, its path in the sandbox, and whether it can be written there."""
    cwd: Path = field(default=Path("/"))

    def with_more(self, *, readable: Iterable[Path] = (), writable: Iterable[Path] = ()) -> "SandboxPaths":
        """Return a copy that shows more paths."""
        return replace(self, readable=(*self.readable, *readable), writable=(*self.writable, *writable))

    def plan(self) -> tuple[tuple[str, str, str], ...]:
        """Return the steps for `enter.py`: mounts, and links with the same targets as on this machine."""
        system = (Path(path) for path in (*SYSTEM, *(f"/etc/{name}" for name in _OF_ETC)))
        shown = [*system, *self.readable, *_stores(self.readable)]
        trails = [(*_trail(path), False) for path in shown] + [(*_trail(path), True) for path in self.writable]
        binds = {end: writable for _, end, writable in trails if end.exists() and end != Path("/")}
        # A parent folder may be shown in the same way.
        above = {path: next((binds[parent] for parent in path.parents if parent in binds), None) for path in binds}
        planned = [(path, path, writable) for path, writable in binds.items() if above[path] != writable]
        planned += [(source.resolve(), target, writable) for source, target, writable in self.mounts]
        planned.sort(key=lambda bind: len(bind[1].parts))
        return (
            ("cwd", str(self.cwd), ""),
            *(("file", path, text) for path, text in _FILES.items()),
            *(("write" if writable else "read", str(source), str(target)) for source, target, writable in planned),
            *(("link", *link) for link in sorted({link for links, _, _ in trails for link in links})),
        )


@cache
def why_unavailable() -> str | None:
    """Return why no sandbox can be made here; None if one can."""
    if not sys.platform.startswith("linux"):
        return "sandboxes need the namespaces of Linux"
    try:
        probe = ask(enclose(["/bin/sh", "-c", ":"], SandboxPaths()), seconds=_PROBE_TIMEOUT)
    except ToolError as error:
        return error.message
    said = probe.stderr.strip().removeprefix("error: ")
    return None if probe.returncode == 0 else said.splitlines()[-1] if said else f"exit code {probe.returncode}"


def enclose(argv: list[str], visible: SandboxPaths) -> list[str]:
    """Return the command that runs `argv`, a path and its arguments, with only the system's tools and `visible`."""
    # Without the build's variables, and without this interpreter's packages.
    steps = [word for step in visible.plan() for word in step]
    return [sys.executable, "-I", "-S", str(_ENTER), *steps, "--", *argv]


@cache
def can_mount() -> bool:
    """Whether Linux lets this user mount in a user namespace."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        CANONICAL.mkdir(mode=0o755, exist_ok=True)
        if CANONICAL.is_symlink():  # a link could lead anywhere
            return False
        probe = [*_UNSHARE, "mount", "--bind", str(CANONICAL), str(CANONICAL)]
        return ask(probe, seconds=_PROBE_TIMEOUT).returncode == 0
    except (OSError, ToolError):
        return False


def wrap(argv: list[str], *, scratch: Path, environment: Path | None) -> list[str]:
    """Return the command that runs `argv` with `scratch` at `CANONICAL` and `environment`, if any, at its `env`."""
    return [*_UNSHARE, "/bin/sh", "-c", _SCRIPT, "sh", str(scratch), str(environment or ""), str(CANONICAL), *argv]


def _trail(path: Path) -> tuple[list[tuple[str, str]], Path]:
    """Follow a path: return each link with its target, and the final path."""
    links: list[tuple[str, str]] = []
    at, left = Path("/"), list(path.absolute().parts[1:])
    while left:
        name = left.pop(0)
        step = at.parent if name == ".." else at / name
        if name == ".." or not step.is_symlink() or len(links) >= _MOST_LINKS:
            at = step
            continue
        target = str(step.readlink())
        links.append((str(step), target))
        at = Path("/") if target.startswith("/") else at
        left = [part for part in Path(target).parts if part != "/"] + left
    return links, at


def _stores(paths: Iterable[Path]) -> Iterator[Path]:
    ends = [path.resolve() for path in paths]
    yield from (Path(store) for store in _STORES if any(end.is_relative_to(store) for end in ends))


def prefixes_of(program: Path, *, home: Path | None) -> tuple[Path, ...]:
    """Return the installation prefixes of a program, by its own path and by its link targets.

    If a prefix is also a home folder, return only its program folders.
    """
    found = [program]
    for path in (program, program.resolve()):
        folder = path.parent.parent if path.parent.name in ("bin", "sbin", "libexec") else path.parent
        private = () if home is None else (home, *home.parents, home / ".local")
        if folder != Path("/"):
            found += [folder / part for part in _PARTS] if folder in private else [folder]
    return tuple(dict.fromkeys(found))


def link_targets(folder: Path) -> Iterator[Path]:
    """Yield the targets of links that lead out of a toolkit, including links within its own folders."""
    root = folder.resolve()
    inner = itertools.chain(root.glob("*"), root.glob("*/*"))
    ends = {path.resolve() for path in inner if path.is_symlink()}
    yield from sorted(end for end in ends if end.exists() and not end.is_relative_to(root))
