"""Make a sandbox around a command, in a separate process that waits for the command's end.

The arguments are the plan made by `builder/sandbox/__init__.py`, then `--` and the command. User namespaces do not need
root. This process stays outside; its child is pid 1 of the sandbox, ends when this process ends, and then ends
everything inside. After the old root is gone nothing can be imported, so all imports are at the top. They are few,
since starting Python takes most of a sandbox's time.
"""

import ctypes
import os
import resource
import signal
import sys

FAILED = 125
"""The exit code if the sandbox could not be made."""
USER = 1000
"""The user of the command: an ordinary one, so that it cannot change the mounts."""

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    *(0x00020000, 0x04000000, 0x08000000),
    *(0x10000000, 0x20000000, 0x40000000),
)
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_DETACH = 2
_PDEATHSIG, _NO_NEW_PRIVS = 1, 38
_AT_RECURSIVE, _MOUNT_SETATTR = 0x8000, 442
_PIVOT_ROOT = {"x86_64": 155}.get(os.uname().machine, 41)
_KEPT = {
    "nosuid": _NOSUID,
    "nodev": _NODEV,
    "noexec": _NOEXEC,
    "noatime": 1024,
    "nodiratime": 2048,
    "relatime": 1 << 21,
}
"""Mount flags that only the owner of a mount may change."""
_BASE = "/tmp"  # noqa: S108  only to mount on it: it is on every machine
_TURNS, _TURN = 6, 0.05
"""The time for processes to end after a signal, in turns: compilers remove half-written files."""

_libc = ctypes.CDLL(None, use_errno=True)
Plan = list[tuple[str, str, str]]


def main() -> None:
    """Make the namespaces, wait for their pid 1, and end as the command did."""
    words = iter(sys.argv[1:])
    plan: Plan = [(kind, next(words), next(words)) for kind in iter(words.__next__, "--")]
    command = list(words)
    _call("prctl", _PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # pid 1 gets the signals, too, and decides
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEWUSER | _NEWNS | _NEWPID | _NEWIPC | _NEWUTS | _NEWNET)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{USER} {user} 1")
    _write("/proc/self/gid_map", f"{USER} {group} 1")
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        _first(plan, command, tell)
    os.close(tell)
    os.waitpid(child, 0)
    said = os.read(told, 16)
    _end_as(os.waitstatus_to_exitcode(int(said)) if said else -signal.SIGKILL)


_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _end_as(code: int) -> None:
    if code >= 0:
        os._exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


def _first(plan: Plan, command: list[str], tell: int) -> None:
    """Run as pid 1: make the new root, start the command, reap processes, and report how the command ended."""
    try:
        _call("prctl", _PDEATHSIG, signal.SIGKILL)
        umask = os.umask(0o022)
        _build(plan)
        os.umask(umask)
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        child = os.fork()
        if child == 0:
            _become(plan, command)
    except OSError as error:
        _fail(f"cannot make the sandbox: {error}")
    os.write(tell, str(_collect(child)).encode())
    os._exit(0)


def _collect(child: int) -> int:
    """Wait for `child` and return its status; after a signal, also wait a short time for all other processes."""
    status: int | None = None
    ending, left, alone = False, _TURNS, False
    while not alone and (left > 0 if ending else status is None):
        event = signal.sigtimedwait((*_ENDING, signal.SIGCHLD), _TURN if ending else 3600)
        ending = ending or (event is not None and event.si_signo != signal.SIGCHLD)
        left -= ending and event is None  # count turns and not time, since a build may see a stopped clock
        dead, alone = _collect_dead()
        status = dead.get(child, status)
    return signal.SIGTERM if status is None else status


def _collect_dead() -> tuple[dict[int, int], bool]:
    """Reap ended processes: return their statuses, and whether none is left."""
    found: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return found, False
            found[pid] = status
    except ChildProcessError:
        return found, True


def _become(plan: Plan, command: list[str]) -> None:
    """Run the command as an ordinary user, without the rights that made its sandbox."""
    try:
        os.chdir(next(path for kind, path, _ in plan if kind == "cwd"))
        _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execv(command[0], command)  # noqa: S606  no shell is meant; execvp would import a module
    except OSError as error:
        _fail(f"cannot run '{command[0]}' in the sandbox: {error.strerror}")


def _build(plan: Plan) -> None:
    """Make the planned root, and leave the old one."""
    _call("sethostname", b"builder", 7)
    _mount(None, "/", None, _REC | _PRIVATE)
    _mount("tmpfs", _BASE, "tmpfs", _NOSUID | _NODEV, "mode=755")
    for name in ("old", "new"):
        os.mkdir(f"{_BASE}/{name}")
    _pivot(_BASE, f"{_BASE}/old")
    os.chdir("/")
    _mount("tmpfs", "/new", "tmpfs", _NOSUID | _NODEV, "mode=755")
    _furnish()
    for kind, one, other in plan:
        if kind in ("read", "write"):
            _bind(f"/old{one}", f"/new{other}", writable=kind == "write")
        elif kind == "link":
            _link(f"/new{one}", other)
        elif kind == "file":
            _write(f"/new{one}", other)
    _seal("/new", recursive=False)
    os.chdir("/new")
    _pivot(".", ".")
    _call("umount2", b".", _DETACH)
    os.chdir("/")


def _furnish() -> None:
    """Make the sandbox's own /proc, /dev and /tmp."""
    for folder in ("proc", "dev/shm", "tmp", "etc"):
        os.makedirs(f"/new/{folder}", exist_ok=True)
    # Read-only: if the outer user is root, the command could otherwise write to /proc/sys.
    _mount("proc", "/new/proc", "proc", _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    for folder in ("tmp", "dev/shm"):
        _mount("tmpfs", f"/new/{folder}", "tmpfs", _NOSUID | _NODEV, "mode=1777")
    for name in ("null", "zero", "full", "random", "urandom"):
        _bind(f"/old/dev/{name}", f"/new/dev/{name}", writable=True)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        _link(f"/new/dev/{name}", f"/proc/self/fd{target}")


def _bind(source: str, target: str, *, writable: bool) -> None:
    if not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.mkdir(target) if os.path.isdir(source) else _write(target, "")
    _mount(source, target, None, _BIND | _REC)
    if not writable:
        _seal(target)


def _link(path: str, target: str) -> None:
    if not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)


def _seal(target: str, *, recursive: bool = True) -> None:
    """Make a mount and all mounts below it read-only."""
    attributes = (ctypes.c_uint64 * 4)(_RDONLY, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    if _libc.syscall(_MOUNT_SETATTR, -100, target.encode(), flags, attributes, 32) == 0:
        return
    # Linux before 5.12 lacks this call: remount each mount with its own flags.
    for path, kept in _mounts(target):
        if recursive or path == target:
            _mount(None, path, None, _REMOUNT | _BIND | _RDONLY | kept)


def _mounts(root: str) -> list[tuple[str, int]]:
    """Return the mounts at and below `root`, each with the flags to keep."""
    with open("/old/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        rows = [line.split(" ") for line in file]
    found = []
    for _, _, _, _, spelled, options, *_ in rows:
        path = spelled
        for code in ("040", "011", "012", "134"):
            path = path.replace(f"\\{code}", chr(int(code, 8)))
        if path == root or path.startswith(f"{root}/"):
            found.append((path, sum(_KEPT.get(option, 0) for option in options.split(","))))
    return found


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _call("mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3], about=target)


def _pivot(new: str, old: str) -> None:
    _call("syscall", _PIVOT_ROOT, new.encode(), old.encode(), about=new)


def _call(name: str, *arguments: object, about: str = "") -> None:
    if getattr(_libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"{name} {about}".strip())


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _fail(text: str) -> None:
    os.write(2, f"error: {text}\n".encode())
    os._exit(FAILED)


if __name__ == "__main__":
    try:
        main()
    except OSError as failed:
        _fail(f"cannot make the sandbox: {failed}")
