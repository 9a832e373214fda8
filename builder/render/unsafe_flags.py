"""Compiler flags that run or read what is not part of the kernel."""

import re
from collections.abc import Iterator, Mapping

from builder.config.text import KeyPath

_LOADS_CODE = "makes the compiler run code of its own choice"
_READS_FLAGS = "reads more flags from a file, which nobody checks"
_RUNS_COMMANDS = "makes nvcc's shell run a command"
_OTHER_TOOLS = "makes the compiler run other programs than its own"

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"@.*", _READS_FLAGS),
        (r"--?options-file.*|-optf.*|--config.*", _READS_FLAGS),
        (r"-f(?:pass-)?plugin.*|-load.*|-add-plugin|-plugin.*", _LOADS_CODE),
        (r"-specs.*|--specs.*", _LOADS_CODE),
        (r"-wrapper.*|--wrapper.*", _LOADS_CODE),
        (r"-fuse-ld=.*/.*|--ld-path.*|-fdirectives-only=.*", _OTHER_TOOLS),
        (r"-B.*|--prefix.*|--gcc-toolchain.*|--gcc-install-dir.*|-no-canonical-prefixes", _OTHER_TOOLS),
        (r"--?compiler-bindir.*|-ccbin.*|--?(?:cuda|hip|rocm)-path.*", _OTHER_TOOLS),
        (r"--?(?:dryrun|run|run-args|input-drive-prefix|dependency-drive-prefix|keep-dir|tool-dir).*", _OTHER_TOOLS),
        (r"--?(?:target-directory|nvvm|libdevice-directory).*|-ldir.*", _OTHER_TOOLS),
    )
)
_FOR_A_SHELL = re.compile(r".*(?:`|\$\()", re.DOTALL)
"""nvcc hands its flags to a shell, which other compilers do not."""
_FORWARDS = re.compile(
    r"(?:-Xcompiler|--compiler-options|-Xlinker|--linker-options|-Xclang|-Xptxas|-Wl|-Wa|-Wp|-Xarch_host)(?:[=,](.*))?"
)


def find(flags: Mapping[KeyPath, str]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the flags that must not come from an unreviewed config, each with the reason.

    What a flag hands on to another tool is judged as well.
    """
    for path, flag in flags.items():
        forwarded = _FORWARDS.fullmatch(flag)
        parts = [flag] if forwarded is None else re.split(r"[,\s]+", forwarded[1] or "")
        reason = next((reason for part in parts for rule, reason in _RULES if rule.fullmatch(part.strip("'\""))), None)
        if reason is None and {"cuda-flags", "file-flags"} & set(path) and _FOR_A_SHELL.match(flag):
            reason = _RUNS_COMMANDS
        if reason is not None:
            yield path, reason
