"""The reason for a compile that failed: the compiler's own first error, or that memory ran out."""

import re
from collections.abc import Sequence
from pathlib import Path

from builder import run
from builder.make.job import CompileError, OutOfMemoryError

_COMPILER = r"\S*(?:g\+\+|gcc|c\+\+|cc|clang|clang\+\+|icpx?|icx|hipcc)(?:-[0-9.]+)?"
_OUT_OF_MEMORY = re.compile(
    rf"{_COMPILER}: (?:fatal error: Killed signal terminated program \S+|error: unable to execute command: Killed)"
    r"|collect2: (?:fatal )?error: ld terminated with signal 9 .*|nvcc error\s*: '\S+' died due to signal 9\b.*"
    r"|(?:\S*: )?out of memory allocating \d+ bytes.*|virtual memory exhausted: Cannot allocate memory"
    r"|terminate called after throwing an instance of 'std::bad_alloc'|LLVM ERROR: out of memory"
    r"|FAILED: \[code=137\].*"
)
"""The last words of tools when memory runs out: whole lines, in which no source is named."""
_DIAGNOSTIC = re.compile(r".+(?::\d+|\(\d+\)): (?:fatal |catastrophic )?error:|collect2: error: ld returned")
_ERROR = re.compile(r".*: (?:fatal )?error:|CMake Error|nvcc fatal")
_LINKING = re.compile(r"FAILED: (?:\[code=\d+\] )?\S+\.(?:so|dylib)(?: |$)")
"""The words by which ninja names a library that could not be linked."""
_KILLED = (-9, 137)
_COUNTER = Path("/proc/vmstat")


def oom_kills() -> int:
    """Return how many processes Linux has killed for memory so far; 0 if it does not tell."""
    try:
        lines = _COUNTER.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def of_compile(variant: str, done: run.Completed, log: Path, *, kills: int) -> CompileError:
    """Return the error with the compiler's own first error on top; `kills` counts `oom_kills` during the build."""
    lines = done.output.splitlines()
    memory = starved(lines, killed=done.returncode in _KILLED or kills > 0)
    if memory is not None:
        return OutOfMemoryError(
            f"{variant}: memory ran out while compiling\n{memory}",
            help=f"give the build more memory, or fewer compilers at once with --jobs; the whole log: {log}",
        )
    start = next((i for i, line in enumerate(lines) if _ERROR.match(line)), max(0, len(lines) - 20))
    shown = "\n".join(lines[start : start + 20])
    error = CompileError(f"{variant}: the build failed\n{shown}", help=f"the whole log: {log}")
    error.linking = any(map(_LINKING.match, lines))
    return error


def starved(lines: Sequence[str], *, killed: bool) -> str | None:
    """Return the line that shows that memory ran out, or None.

    Only how a process ended counts: a compiler that reports an error in a source ended by itself, whatever its message.
    """
    if any(_DIAGNOSTIC.match(line) for line in lines):
        return None
    said = next((line for line in lines if _OUT_OF_MEMORY.fullmatch(line.strip())), None)
    return said or ("Linux killed a process because memory ran out" if killed else None)
