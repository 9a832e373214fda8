"""Pictures of the terminal, of commands that run: docs/images/plan.svg and docs/images/build.svg.

Run: python website/terminal.py [plan] [build]. The plan takes a second, and `make docs` draws it. The build takes half
a minute on Linux of x86_64 with a C++ compiler, in a store of its own, into which PyTorch is fetched. How long it took
is cut, since it differs each time; lines of progress are not there, since `builder build` removes them in the end.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "plan": ("builder matrix examples/relu", 80),
    "build": ("builder build examples/relu --backend cpu --torch 2.13", 109),  # no option is broken
}
"""What each picture shows, and the columns of its terminal."""

_MOVES = re.compile(r"(\r?\n|\r|\x1b\[1A|\x1b\[2K|\x1b\[\?25[lh])")
"""By which rich removes lines of progress: the cursor goes up, and the line is emptied."""
_DIFFERS = re.compile(r"(: (?:\x1b\[\d+m)?built(?:\x1b\[0m)?) in [\d.]+ s\b")

# That of rich, which would fetch its fonts, without them.
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }}
.{unique_id}-matrix {{ font-size: {char_height}px }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def run(command: str, width: int) -> str:
    """Run a command of `builder` on a terminal, beside the examples; returns all that it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        return _on_terminal([sys.executable, "-m", *command.split()], folder, width)


def _on_terminal(command: list[str], folder: str, width: int) -> str:
    env = os.environ | {"COLUMNS": str(width), "TERM": "xterm-256color"}
    env |= {"PYTHONPATH": str(ROOT), "BUILDER_STORE": f"{folder}/store"}
    ours, its = pty.openpty()
    with subprocess.Popen(command, cwd=folder, env=env, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        written = b"".join(_read(ours))
        os.close(ours)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{written.decode()}")
    return written.decode()


def _read(terminal: int) -> Iterator[bytes]:
    try:
        while part := os.read(terminal, 1 << 16):
            yield part
    except OSError:  # Linux says so when nothing writes to the terminal any more
        return


def seen(written: str, width: int) -> list[Text]:
    """Return the lines that stay on a terminal, broken where it breaks them."""
    kept, at = [""], 0
    for part in _MOVES.split(written):
        if part.endswith("\n"):
            at += 1
            kept += [""] * (at == len(kept))
        elif part == "\x1b[1A":
            at -= 1
        elif part == "\x1b[2K":
            kept[at] = ""
        elif not _MOVES.fullmatch(part):
            kept[at] += part
    lines = [Text.from_ansi(_DIFFERS.sub(r"\1", line)) for line in "\n".join(kept).rstrip("\n").split("\n")]
    return [part for line in lines for part in line.divide(range(width, len(line.plain), width))]


def picture(command: str, lines: list[Text], width: int) -> str:
    """Return the picture of a command and of what it wrote."""
    console = Console(record=True, width=width, file=StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "green"), (command, "bold")), no_wrap=True)
    for line in lines:
        console.print(line, no_wrap=True, crop=True)
    console.print()  # the picture ends where the letters of its last line do
    return console.export_svg(title="", code_format=_SVG)


def main(names: list[str]) -> None:
    """Draw the pictures of these names, or all."""
    for name in names or COMMANDS:
        command, width = COMMANDS[name]
        svg = picture(command, seen(run(command, width), width), width)
        (ROOT / f"docs/images/{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
