"""The settings of ccache in a build: the source of its entries, and the inputs of objects that it does not see itself.

Its depend mode takes the list of headers from the compiler, so nothing is preprocessed; https://ccache.dev/manual.
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
"""The socket in the scratch directory at which entries are asked for; without an answer there, ccache compiles."""
_SETTINGS, _INPUTS = "ccache.conf", "ccache.inputs"
_LANGUAGES = ("C", "CXX", "CUDA", "HIP")
_NO_DECISION = ("--threads=*",)
"""Options that change no bit, and differ from machine to machine."""
_SLOPPINESS = "include_file_ctime"
"""A header's ctime changes with each environment that shares it by a hard link; its mtime still has to be older."""
_NEVER_COMPILED = tuple(NAMES["never-compiled"])
NO_HEADERS = frozenset((*(".c", ".cc", ".cpp", ".cu", ".cxx", ".hip", ".m", ".metal", ".mm"), *_NEVER_COMPILED))
"""Endings of files that an `#include` of another file does not find by accident."""
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:[<\"]([^/<>\"\n]+)|([A-Za-z_]))", re.MULTILINE)
_READS_FILES = re.compile(rb"\bincbin\b|#\s*embed\b")
_ASKS_FOR_FILES = re.compile(rb"\b__has_(?:include|include_next|embed)\b")


def variables(base: Path) -> dict[str, str]:
    """Return what the environment of a build has for ccache; `base` is the scratch directory as the build sees it."""
    return {"CCACHE_CONFIGPATH": str(base / _SETTINGS)}


def defines(program: Path) -> dict[str, str]:
    """Return the CMake variables that put ccache before each compiler."""
    return {f"CMAKE_{language}_COMPILER_LAUNCHER": str(program) for language in _LANGUAGES}


def write(job: Job, *, scratch: Path, base: Path, include: Iterable[Path]) -> None:
    """Write ccache's settings into the scratch directory; `include` are the folders of headers outside the project."""
    # The same text as ever, to which the objects of shared caches belong: no line break at its end.
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
    """Yield what an object depends on beside its command, its source and the headers that it includes."""
    files, sources, steps = job.project.files, job.spec.sources, job.kernel.config.generate
    # What a compiler may read: a comment of Python begins as a line of the preprocessor does.
    texts = [content for path, content in files.items() if not path.endswith(_NEVER_COMPILED)]
    if job.toolchain is not None:
        yield "compilers", dict(job.toolchain.identity)
    # A new file may be found by an `#include` that found another one before.
    yield "headers", sorted(path for path in files if Path(path).suffix not in NO_HEADERS)
    if sources:
        # Their folders have the same names for every commit, and a new one may have a header that hides another.
        trees = sorted(sources.items())
        yield "sources", {name: str(tree) if job.enclosed else tree.parent.name for name, tree in trees}
    # In Nix another environment is another build in any case, and a file is compiled without the content of the others.
    # What foreign and generated sources include is not known here.
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
    """Return the first parts of the paths that files include; None where one is spelled by a macro, and may be any."""
    found = [include for text in texts for include in _INCLUDE.findall(text)]
    return (
        None if any(macro for _, macro in found) else frozenset(first.decode("utf-8", "replace") for first, _ in found)
    )
