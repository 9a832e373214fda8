"""Configure ccache for a build: its storage, and inputs of objects that ccache cannot see.

In its depend mode, ccache takes the list of headers from the compiler, so nothing is preprocessed;
https://ccache.dev/manual.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from builder import json_text
from builder.config.sources import step_outputs
from builder.hashes import sha256
from builder.kernel.tree import NAMES
from builder.make.job import Job

SOCKET = "ccache.sock"
"""The socket in the scratch directory that serves entries; if nobody answers there, ccache compiles."""
_SETTINGS, _INPUTS = "ccache.conf", "ccache.inputs"
_LANGUAGES = ("C", "CXX", "CUDA", "HIP")
_NO_DECISION = ("--threads=*",)
"""Options that change no bit of an object, and differ between machines."""
_SLOPPINESS = "include_file_ctime"
"""A header's ctime changes with each environment that hard-links it; its mtime must still be old enough."""
_NEVER_COMPILED = tuple(NAMES["never-compiled"])
NO_HEADERS = frozenset((*(".c", ".cc", ".cpp", ".cu", ".cxx", ".hip", ".m", ".metal", ".mm"), *_NEVER_COMPILED))
"""Suffixes of files that an `#include` cannot find by accident."""
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:[<\"]([^/<>\"\n]+)|([A-Za-z_]))", re.MULTILINE)
_READS_FILES = re.compile(rb"\bincbin\b|#\s*embed\b")
_ASKS_FOR_FILES = re.compile(rb"\b__has_(?:include|include_next|embed)\b")


def variables(base: Path) -> dict[str, str]:
    """Return ccache's variables for a build; `base` is the scratch directory as the build sees it."""
    return {"CCACHE_CONFIGPATH": str(base / _SETTINGS)}


def defines(program: Path) -> dict[str, str]:
    """Return the CMake variables that make ccache the launcher of each compiler."""
    return {f"CMAKE_{language}_COMPILER_LAUNCHER": str(program) for language in _LANGUAGES}


def write(job: Job, *, scratch: Path, base: Path, include: Iterable[Path]) -> None:
    """Write ccache's settings into the scratch directory; `include` lists the header folders outside the project."""
    # The text must stay the same, without a final line break: the objects in shared caches depend on it.
    inputs = json_text.document(dict(_inputs(job, include)), indent=1, ordered=True).rstrip()
    settings = {
        "cache_dir": str(base / "ccache"),
        "compiler_check": f"string:{sha256(inputs)}",
        "depend_mode": "true",
        "extra_files_to_hash": str(base / _INPUTS),
        "ignore_options": " ".join(_NO_DECISION),
        "remote_only": "true",
        "remote_storage": f"crsh:{base / SOCKET}",
        "sloppiness": _SLOPPINESS,
        "stats": "false",
        "temporary_dir": str(base / "tmp"),
    }
    (scratch / _INPUTS).write_text(inputs, encoding="utf-8")
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
    (scratch / _SETTINGS).write_text(lines, encoding="utf-8")


def _inputs(job: Job, include: Iterable[Path]) -> Iterator[tuple[str, object]]:
    """Yield the inputs of objects other than the command, the source and its included headers."""
    files, sources, steps = job.project.files, job.spec.sources, job.kernel.config.generate
    # Text that a compiler may read; a comment in Python looks like a preprocessor directive.
    texts = [content for path, content in files.items() if not path.endswith(_NEVER_COMPILED)]
    if job.toolchain is not None:
        yield "compilers", dict(job.toolchain.identity)
    # An `#include` may find a new file that hides the one it found before.
    yield "headers", sorted(path for path in files if Path(path).suffix not in NO_HEADERS)
    if sources:
        # The folders have the same names for every commit, and a new commit may have a header that hides another one.
        trees = sorted(sources.items())
        yield "sources", {name: str(tree) if job.enclosed else tree.parent.name for name, tree in trees}
    # In Nix, another environment always gives another derivation, and a file is compiled without the others' contents.
    # The includes of foreign and generated sources are unknown here.
    included = None if job.enclosed or sources or steps else _included(texts)
    if steps:
        yield "generated", sorted(step_outputs(steps))
    names = (sorted(path.name for path in folder.iterdir()) if folder.is_dir() else [] for folder in include)
    yield "folders", [[name for name in each if included is None or name in included] for each in names]
    if any(map(_READS_FILES.search, texts)):
        yield "project", job.project.digest
    if job.enclosed or any(map(_ASKS_FOR_FILES.search, texts)):
        yield "framework", [job.framework.version, job.spec.pins]


def _included(texts: Iterable[bytes]) -> frozenset[str] | None:
    """Return the first path parts of all included files; None if a macro spells one, which then may be any file."""
    found = [include for text in texts for include in _INCLUDE.findall(text)]
    return (
        None if any(macro for _, macro in found) else frozenset(first.decode("utf-8", "replace") for first, _ in found)
    )
