"""The circumstances that are varied between two builds, with their requirements."""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from builder.errors import ToolError
from builder.kernel import git
from builder.repro.setting import Circumstances, Workspace, aged, cloned, link_environments, shared_memory
from builder.run import ask
from builder.toolchain import this_machine
from builder.toolchain.tool import Search


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """A circumstance that must not change any bit."""

    name: str
    what: str
    apply: Callable[[Circumstances, Workspace], Circumstances]
    why_not: Callable[[Workspace], str | None] = lambda _: None
    """Returns why this machine cannot vary it; None if it can."""


def _path(setting: Circumstances, workspace: Workspace) -> Circumstances:
    kind = workspace.of("deep", "link", "elsewhere")
    if kind == "elsewhere" and shared_memory() is not None:
        return setting.copied_to(workspace.elsewhere / workspace.fresh("shm").name / "kernel")
    there = setting.copied_to(workspace.fresh("path") / "a folder with a space" / "/".join(["deep"] * 12) / "kernel")
    if kind != "link":
        return replace(there, cwd=there.kernel.parent)
    link = workspace.fresh("link") / "kernel"
    link.symlink_to(there.kernel, target_is_directory=True)
    return replace(there, kernel=link, cwd=link.parent)


def _checkout(setting: Circumstances, workspace: Workspace) -> Circumstances:
    kernel = cloned(setting.kernel, workspace.fresh("checkout"), archive=workspace.round % 2 == 0)
    return replace(setting, kernel=kernel, copied=True)


def _files(setting: Circumstances, workspace: Workspace) -> Circumstances:
    there = setting.copied_to(workspace.fresh("files") / "kernel")
    aged(there.kernel, mode=workspace.round % 2)
    return there


def _order(setting: Circumstances, workspace: Workspace) -> Circumstances:
    there = replace(setting, backwards=True).copied_to(workspace.fresh("order") / "kernel")
    return _preloaded(there, workspace, BUILDER_REPRO_REVERSED="1")


def _store(setting: Circumstances, workspace: Workspace) -> Circumstances:
    store = workspace.fresh("store") / "another place for a store" / f"round-{workspace.round}"
    store.mkdir(parents=True)
    link_environments(store, setting.store)
    return replace(setting, store=store)


def _home(setting: Circumstances, workspace: Workspace) -> Circumstances:
    home = workspace.fresh("home")
    return setting.seeing(HOME=str(home), XDG_CACHE_HOME=str(home / "cache"), TMPDIR=str(home))


def _user(setting: Circumstances, _: Workspace) -> Circumstances:
    words = ("unshare", "--user", "--map-user=4711", "--map-group=4712", "--")
    return setting.seeing(USER="somebody", LOGNAME="somebody").run_by(*words)


def _hostname(setting: Circumstances, workspace: Workspace) -> Circumstances:
    name = workspace.of("elsewhere", "a-very-long-host-name.example.org")
    script = 'hostname "$1" && shift && exec "$@"'
    return setting.run_by("unshare", "--user", "--map-root-user", "--uts", "--", "sh", "-c", script, "sh", name)


def _umask(setting: Circumstances, workspace: Workspace) -> Circumstances:
    return replace(_store(setting, workspace), umask=0o077 if workspace.round % 2 else 0o002)


def _locale(setting: Circumstances, workspace: Workspace) -> Circumstances:
    name = workspace.of("tr_TR.UTF-8", "C", "de_DE.UTF-8")
    return setting.seeing(LANG=name, LC_ALL=name, LANGUAGE=name[:2])


_YEARS = str(4 * 365 * 86400 + 12345)
_ZONES = ("Pacific/Kiritimati", "America/St_Johns", "Asia/Kathmandu")


def frozen(setting: Circumstances, workspace: Workspace) -> Circumstances:
    """Return the setting with a stopped clock: differences that remain are not caused by time."""
    return _preloaded(setting, workspace, BUILDER_REPRO_FROZEN="1600000000")


def _preloaded(setting: Circumstances, workspace: Workspace, **variables: str) -> Circumstances:
    """Preload the library that changes the clock and folders as `variables` say."""
    if workspace.preload.library is None:
        return setting
    seen = {**variables, "LD_PRELOAD": str(workspace.preload.library)}
    return replace(setting.seeing(**seen), inside={**setting.inside, **seen})


def _jobs(setting: Circumstances, workspace: Workspace) -> Circumstances:
    cores = os.cpu_count() or 1
    return replace(setting, jobs=1 if workspace.round % 2 else cores + 3, cores=1 if workspace.round % 2 else None)


def _noise(setting: Circumstances, _: Workspace) -> Circumstances:
    noise = {
        "CFLAGS": "-O0 -g -DNOISE",
        "CPATH": "/usr/include/noise",
        "CPPFLAGS": "-DNOISE",
        "CXXFLAGS": "-O0 -g -DNOISE -fno-inline",
        "LDFLAGS": "-Wl,--build-id=uuid",
        "CMAKE_BUILD_TYPE": "Debug",
        "CUDAFLAGS": "-G",
        "HIPFLAGS": "-O0",
        "NVCC_APPEND_FLAGS": "-lineinfo",
        "SKBUILD_CMAKE_BUILD_TYPE": "Debug",
        "TORCH_CUDA_ARCH_LIST": "7.5",
        "EMAIL": "somebody@example.org",
        "NOISE": "an unrelated variable",
    }
    return setting.seeing(**noise)


def _compiled(setting: Circumstances, workspace: Workspace) -> Circumstances:
    """Vary the origin of compiled files; each build has its own caches, or it would get objects of other variations."""
    kind = workspace.of("cold", "warm", "shared", "off")
    if kind == "off":
        return setting.seeing(CCACHE_DISABLE="1")
    store, first = workspace.fresh("cache"), workspace.folder / "cache-0"
    link_environments(store, setting.store)
    shared = store / "shared"
    shared.mkdir()
    for name in {"cold": (), "warm": ("compiled",), "shared": ("shared",)}[kind]:
        if (first / name).is_dir() and store != first:
            shutil.copytree(first / name, store / name, dirs_exist_ok=True)
    # The first build has no cache: an empty text removes the user's.
    there = setting.seeing(CCACHE_DISABLE="", BUILDER_CACHE=str(shared), BUILDER_CACHE_ACCESS="read-write")
    return replace(there, store=store)


@cache
def _can_run(*command: str) -> bool:
    try:
        return ask(command, seconds=10).returncode == 0
    except ToolError:
        return False


def _unless(there: Callable[[], object], why: str) -> Callable[[Workspace], str | None]:
    return lambda _: None if there() else why


def _needs_preload(workspace: Workspace) -> str | None:
    return workspace.preload.why


_NO_NAMESPACES = "Linux allows no user namespaces here, or unshare is too old"
_needs_namespaces = _unless(lambda: _can_run("unshare", "--user", "--map-user=4711", "--", "true"), _NO_NAMESPACES)
_needs_names = _unless(
    lambda: _can_run("unshare", "--user", "--map-root-user", "--uts", "--", "sh", "-c", "hostname probe"),
    _NO_NAMESPACES,
)
_needs_git = _unless(git.is_here, "no git")
_needs_ccache = _unless(lambda: this_machine.find_ccache(Search(environ={}, digest=str)), "no ccache")
_needs_linux = _unless(lambda: sys.platform.startswith("linux"), "only where Linux is")


# First copies, each made from the one before; the last one's place is the build's. Then the user of the build, and
# at the end wrappers of its command.
VARIATIONS = (
    Variation(name="checkout", what="git clone, changed and restored; tarball", apply=_checkout, why_not=_needs_git),
    Variation(name="files", what="modes and times of the files", apply=_files),
    Variation(name="order", what="order in which folders list files", apply=_order, why_not=_needs_preload),
    Variation(name="path", what="deep with a space; through a link; another file system", apply=_path),
    Variation(name="store", what="location of the store", apply=_store),
    Variation(name="home", what="home, cache and temporary folders", apply=_home),
    Variation(name="user", what="user, group and their names", apply=_user, why_not=_needs_namespaces),
    Variation(name="hostname", what="name of the host", apply=_hostname, why_not=_needs_names),
    Variation(name="umask", what="umask, and a store made under it", apply=_umask),
    Variation(
        name="timezone",
        what="TZ",
        apply=lambda setting, workspace: setting.seeing(TZ=workspace.of(*_ZONES)),
    ),
    Variation(name="locale", what="LANG, LC_ALL, LANGUAGE", apply=_locale),
    Variation(
        name="time",
        what="the clock, four years ahead",
        apply=lambda setting, workspace: _preloaded(setting, workspace, BUILDER_REPRO_OFFSET=_YEARS),
        why_not=_needs_preload,
    ),
    Variation(
        name="hashseed",
        what="PYTHONHASHSEED",
        apply=lambda setting, workspace: setting.seeing(PYTHONHASHSEED=workspace.of("1", "4294967295", "random")),
    ),
    Variation(name="jobs", what="cores and -j", apply=_jobs, why_not=_needs_linux),
    Variation(
        name="load",
        what="a busy machine",
        apply=lambda setting, _: replace(setting, burners=max(1, (os.cpu_count() or 1) // 2)),
    ),
    Variation(name="environment", what="variables that tools read: CFLAGS, CPATH and others", apply=_noise),
    Variation(name="cache", what="of compiled files: off, cold, warm, shared", apply=_compiled, why_not=_needs_ccache),
)
NAMES = tuple(variation.name for variation in VARIATIONS)
