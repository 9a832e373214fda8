"""What a hostile kernel tries: it reads, reaches and writes whatever it can, and says what it got."""

import contextlib
import json
import socket
import subprocess
import uuid
from dataclasses import asdict, dataclass

TOKEN = "token-of-the-user-5f3c1e"
_MANY = 1000
"""More processes than a build in a sandbox has."""

# Runs in the kernel's own process, with any Python; `TRIES` is put before it.
PROBE = """
def _tries():
    import ctypes, glob, os, signal, socket
    got = []
    def tried(what, action):
        try:
            if action():
                got.append(what)
        except Exception:
            pass
    def has(path):
        with open(path, "rb") as file:
            return TRIES["token"].encode() in file.read()
    def connects(family, address):
        with socket.socket(family) as client:
            client.settimeout(2)
            client.connect(address)
        return True
    def writes(path):
        with open(path, "a") as file:
            file.write("written")
        return True
    for path in glob.glob("/proc/[0-9]*/environ"):
        tried("environment", lambda: has(path))
    tried("own environment", lambda: TRIES["token"] in repr(dict(os.environ)))
    tried("parent", lambda: open("/proc/%d/cmdline" % TRIES["pid"]).read())
    tried("signal", lambda: os.kill(TRIES["pid"], 0) is None)
    for path in TRIES["files"]:
        tried("file " + path, lambda: has(path))
    for path in TRIES["folders"]:
        tried("folder " + path, lambda: os.listdir(path))
    tried("loopback", lambda: connects(socket.AF_INET, ("127.0.0.1", TRIES["port"])))
    tried("unix socket", lambda: connects(socket.AF_UNIX, TRIES["socket"]))
    tried("abstract socket", lambda: connects(socket.AF_UNIX, "\\0" + TRIES["abstract"]))
    for path in TRIES["targets"]:
        tried("write " + path, lambda: writes(path) and os.stat(path).st_dev == TRIES["device"])
    if TRIES["rough"]:
        libc = ctypes.CDLL(None)
        tried("mount", lambda: libc.mount(b"none", b"/usr", None, 32 | 4096, None) == 0)  # remount, to write there
        tried("write /usr", lambda: writes("/usr/written-by-a-kernel"))
        tried("write /proc/sys", lambda: open("/proc/sys/kernel/core_pattern", "w"))
    return sorted(set(got))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """What the kernel is after; each of it is there for whoever has no sandbox."""

    token: str
    pid: int
    files: tuple[str, ...]
    folders: tuple[str, ...]
    port: int
    socket: str
    abstract: str
    targets: tuple[str, ...]
    device: int
    """What is written elsewhere than on this device is written into the sandbox's own memory, and lost with it."""
    rough: bool = True
    """Also what would harm this machine, if it were allowed."""

    def code(self):
        """Return Python that defines `_tries()`."""
        return f"TRIES = {json.loads(json.dumps(asdict(self)))!r}\n{PROBE}"


@contextlib.contextmanager
def bystander():
    """Run a process, and give its number: so high that no process of a sandbox has it, where they count from 1."""
    while (process := subprocess.Popen(["sleep", "600"])).pid < _MANY:
        process.kill()
        process.wait()
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def prey(folder, *, pid, store):
    """Lay out all that a kernel may be after, with listeners on loopback, a path and an abstract name."""
    secrets = folder / "somebody"
    secrets.mkdir()
    (secrets / ".netrc").write_text(TOKEN)
    store.mkdir(exist_ok=True)
    (store / "secret").write_text(TOKEN)
    with contextlib.ExitStack() as stack:
        families = (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX)
        listeners = [stack.enter_context(socket.socket(family)) for family in families]
        path, abstract = str(folder / "s"), f"builder-{uuid.uuid4()}"
        for listener, address in zip(listeners, (("127.0.0.1", 0), path, f"\0{abstract}"), strict=True):
            listener.bind(address)
            listener.listen()
        yield Tries(
            token=TOKEN,
            pid=pid,
            files=(str(secrets / ".netrc"), str(store / "secret"), "/etc/shadow"),
            folders=(str(secrets), str(store / "wheels"), "/home", "/mnt", "/var"),
            port=listeners[0].getsockname()[1],
            socket=path,
            abstract=abstract,
            targets=(str(folder / "written"), str(store / "written")),
            device=folder.stat().st_dev,
        )


def importing(kernel, tries):
    """Let the package of a kernel try everything while it is imported, and fail with what it got."""
    package = kernel / "ctypes-ext/plain/__init__.py"
    failing = "_got = _tries()\nif _got:\n    raise ValueError('got: ' + ', '.join(_got))\n"
    package.write_text(f"{package.read_text()}\n{tries.code()}\n{failing}")


def including(source, path):
    """Let a source take a file of the machine into its library."""
    text = f'asm(".section .rodata\\n.global stolen\\nstolen:\\n.incbin \\"{path}\\"\\n.previous");\n'
    source.write_text(f"{source.read_text()}\n{text}")


def compiler(folder, tries, said):
    """Make a C++ compiler that tries everything before it compiles, and writes what it got to `said`, in its log."""
    tools = folder / "tools/bin"
    tools.mkdir(parents=True)
    (tools / "tries.py").write_text(f"{tries.code()}\nprint('{said}', ', '.join(_tries()) or 'nothing', flush=True)\n")
    script = tools / "g++"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *scale.cpp*) /usr/bin/python3 "{tools}/tries.py";; esac\nexec /usr/bin/g++ "$@"\n'
    )
    script.chmod(0o755)
    return script
