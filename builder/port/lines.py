"""The compile line of each source that an extension asks for, as torch's `BuildExtension` would make it."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from builder.port import flags
from builder.port.flags import Flags, Line
from builder.port.recording import Extension, Run
from builder.port.settings import facts

__all__ = ["CXX", "GPU", "Line", "language", "normal", "of_extension", "of_run"]

CXX, GPU = "cxx", "gpu"
_SUFFIXES = {".cu": GPU, ".hip": GPU, ".cpp": CXX, ".cc": CXX, ".cxx": CXX, ".c": CXX, ".c++": CXX, ".C": CXX}
_TOOLKITS = ("<cuda>", "<rocm>", "<torch>")


def language(source: str) -> str | None:
    """Return what compiles a source; None for what no compiler reads."""
    return _SUFFIXES.get(PurePosixPath(source).suffix)


def of_run(run: Run) -> Mapping[str, Mapping[str, Line]]:
    """Return the lines of each extension, by the extension's name and the source."""
    return {extension.name: of_extension(extension, hip=run.setting.hip is not None) for extension in run.extensions}


def of_extension(extension: Extension, *, hip: bool = False) -> Mapping[str, Line]:
    """Return the line of each source of an extension."""
    if extension.lines is not None:
        return extension.lines
    macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros]
    macros += [f"-U{name}" for name in extension.undef_macros]
    own = facts()["hip" if hip else "nvcc"]["flags"]
    words = {CXX: [*macros, *extension.cxx_flags], GPU: [*macros, *own, *extension.nvcc_flags]}
    read = {name: flags.read(each) for name, each in words.items()}
    found = {}
    for source in sorted({normal(path) for path in extension.sources}):
        kind = language(source)
        if kind is not None:
            found[source] = _line(kind, read[kind], extension.include_dirs)
    return found


def _line(kind: str, found: Flags, folders: tuple[str, ...]) -> Line:
    named = [flag[0].removeprefix("-I") for flag in found.rest if flag[0].startswith("-I")]
    include = dict.fromkeys(normal(folder) for folder in (*folders, *named) if not folder.startswith(_TOOLKITS))
    rest = tuple(flag for flag in found.rest if not flag[0].startswith("-I"))
    plain = Flags(
        macros=found.macros,
        undefined=found.undefined,
        capabilities=found.capabilities,
        unread=found.unread,
        standard=found.standard,
        rest=rest,
    )
    return Line(language=kind, flags=plain, include=tuple(include))


def normal(path: str) -> str:
    """Return a path without `.`, doubled slashes and `..` that lead nowhere else."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(parts) or "."
