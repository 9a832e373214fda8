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
    "diff": "Show what changed between two builds, and what breaks.",
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
"""
GROUPS = {
    "Write a kernel": ("init", "port", "check", "update", "render", "matrix", "doctor"),
    "Build and try it": ("build", "test", "watch", "shell", "why", "store"),
    "Look at wheels": ("audit", "diff", "repro", "split"),
    "Publish": ("release", "bundle", "index", "publish", "attest"),
    "Maintain": ("lock", "pins", "torch-day"),
    "Learn more": ("docs", "schema", "completion"),
}
"""The commands by their purpose, in the order in which one needs them."""


def help_text(*, width: int | None = None, colored: bool = False) -> str:
    """Return the help of the whole command line, without imports; on a terminal in colours, and as wide as it is."""
    name_width = max(map(len, COMMANDS))
    lines = _HEAD.splitlines()
    for group, names in GROUPS.items():
        lines += ["", f"{group}:"]
        for name in names:
            first, *others = _lines(COMMANDS[name], None if width is None else width - name_width - 4)
            lines.append(f"  {name:{name_width}}  {first}")
            lines += [f"{'':{name_width + 4}}{line}" for line in others]
    if colored:
        lines = [f"\x1b[1m{line}\x1b[0m" if line.endswith(":") and line[0] != " " else line for line in lines]
    return "".join(f"{line}\n" for line in lines)


def _lines(text: str, width: int | None) -> list[str]:
    """Break a text between words."""
    lines = [""]
    for word in text.split():
        if lines[-1] and width is not None and len(lines[-1]) + 1 + len(word) > max(width, 1):
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def _help_for_stdout() -> str:
    """Return the help as fits stdout, as builder.cli.screen would say, which imports more."""
    if sys.stdout is None or not sys.stdout.isatty():
        return help_text(colored=bool(os.environ.get("FORCE_COLOR")) and not os.environ.get("NO_COLOR"))
    try:
        width = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        width = 0
    return help_text(width=width or None, colored=not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = sys.argv[1:] if argv is None else argv
    if COMPLETE not in os.environ:  # else the words are in variables, not in the arguments
        # What a shell asks for most costs no import of a library: see benchmarks/startup.py.
        if not arguments or arguments[0] in _HELP:
            _write(_help_for_stdout())
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
