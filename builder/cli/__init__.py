"""The command line: a table of commands, each loaded when it is called."""

import contextlib
import gc
import os
import sys

from builder import __version__

COMMANDS = {
    "attest": "State how wheels came to be, for CI to sign.",
    "audit": "Check wheels and hub layouts: ABI, layout, architectures.",
    "build": "Build the wheels of a kernel.",
    "bundle": "Lay wheels out for the hub.",
    "check": "Find what is wrong with a kernel before it is built.",
    "completion": "Print the completion script of a shell.",
    "docs": "Show the documentation, or one text for coding agents.",
    "doctor": "Show this machine, its toolchains and the cells it can build.",
    "index": "Make a static package index of wheels.",
    "init": "Start a new kernel that builds.",
    "lock": "Lock the kernels that a kernel depends on.",
    "matrix": "Show the cells of a kernel.",
    "pins": "Maintain the pinned wheels that builds use.",
    "port": "Write the build.toml that a setup.py stands for.",
    "publish": "Publish an index or a hub layout.",
    "release": "Check, build, audit, bundle and publish in one.",
    "render": "Show or write the CMake project of a kernel.",
    "repro": "Build again under other circumstances, and compare the bytes.",
    "schema": "Print the JSON Schema of a build.toml.",
    "shell": "Open a shell with a cell's tools, its torch and the kernel.",
    "split": "Make a wheel for each family of GPUs.",
    "store": "List, verify and clean the store.",
    "test": "Run a kernel's tests against its wheel.",
    "torch-day": "Propose the data of a new torch, read from its wheels.",
    "update": "Rewrite a build.toml to the current edition.",
    "watch": "Build and test a kernel at each save.",
    "why": "Say why a cell would be built again.",
}
"""The commands, each with one line of help; `builder.cli.<name>` defines it as `command`."""

COMPLETE = "_BUILDER_COMPLETE"
"""The variable by which a shell's completion script asks; click derives its name from the program's name."""

_OBJECTS = 100_000
"""New objects after which Python looks for garbage; imports make many that stay, so that its own 700 cost a tenth."""

_HELP = ("-h", "--help")
_HEAD = """Usage: builder [OPTIONS] COMMAND [ARGS]...

  Turn a GPU kernel's build.toml into reproducible wheels.

Options:
  --version   Show the version and exit.
  -h, --help  Show this message and exit.

Commands:
"""


def help_text() -> str:
    """Return the help of the whole command line, without imports."""
    width = max(map(len, COMMANDS))
    return _HEAD + "".join(f"  {name:{width}}  {line}\n" for name, line in sorted(COMMANDS.items()))


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = sys.argv[1:] if argv is None else argv
    if COMPLETE not in os.environ:  # else the words are in variables, not in the arguments
        # What a shell asks for most costs no import of a library: see benchmarks/startup.py.
        if not arguments or arguments[0] in _HELP:
            _write(help_text())
        if arguments == ["--version"]:
            _write(f"builder, version {__version__}\n")
        arguments = arguments or ["--help"]
    gc.set_threshold(_OBJECTS)
    code = run(arguments)
    gc.freeze()  # Python would look through all objects for garbage before it ends, which costs another tenth
    sys.exit(code)


def _write(text: str) -> None:
    """Write a text of this program and exit; if that fails, return: the command itself reports the error."""
    with contextlib.suppress(OSError, AttributeError):  # disk full, no reader, or closed
        sys.stdout.write(text)
        sys.stdout.flush()
        sys.exit(0)


def run(argv: list[str]) -> int:
    """Run the command line and return its exit code."""
    from builder.cli import group  # noqa: PLC0415  click is imported for a command, and not before

    return group.run(argv)
