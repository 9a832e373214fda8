"""The tables `[sources.<name>]` and `[[generate]]`: code that a build fetches or generates."""

import graphlib
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from builder.config.values import InvalidValueError, ProjectPath, Text
from builder.wording import listed, quoted

PLACEHOLDERS = ("archs", "toolkit", "torch")
"""The names that an argument may contain in braces."""


class SourceName(Text):
    """The name of a `[sources.<name>]` table, as in `"<name>:include"`."""

    __slots__ = ()

    pattern = r"[a-z][a-z0-9_-]{1,62}"
    code = "B050"
    kind = "a name of a foreign source"
    rule = "use 2 to 63 lower-case letters, digits, '_' and '-', a letter first, as in 'cutlass'"


class SourceUrl(Text):
    """The URL of a foreign Git repository: https, http or ssh, without a password."""

    __slots__ = ()

    pattern = (
        r"(?:https?://|ssh://(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?)[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?"
        r"/[A-Za-z0-9._~/+@%=:-]+"
    )
    code = "B051"
    kind = "the URL of a repository"
    rule = "write https://HOST/PATH, or ssh://USER@HOST/PATH, without a password or a query"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the remedy for the path of a folder, which other machines do not have."""
        local = text.startswith(("file:", "/", "."))
        return "a folder of this machine can stand in for a URL in BUILDER_MIRRORS" if local else None


class ArchiveUrl(Text):
    """The URL of an archive: https or http; a `.tar.gz`, `.tgz`, `.tar.xz` or `.zip`."""

    __slots__ = ()

    pattern = r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?/[A-Za-z0-9._~/+@%=:-]*\.(?:tar\.gz|tgz|tar\.xz|zip)"
    code = "B051"
    kind = "the URL of an archive"
    rule = "write https://HOST/PATH of a '.tar.gz', '.tgz', '.tar.xz' or '.zip', without a password or a query"


class GitCommit(Text):
    """A whole commit of Git: 40 hexadecimal digits. A tag or a branch can be moved."""

    __slots__ = ()

    pattern = r"[0-9a-f]{40}"
    code = "B052"
    kind = "a whole commit"
    rule = "write its 40 hexadecimal digits in lower case, since a tag or a branch can be moved"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return how to find the commit."""
        lower = text.lower()
        return (
            f"write '{lower}'"
            if cls.matches(lower)
            else "'git ls-remote URL' lists tags and branches with their commits"
        )


class Sha256(Text):
    """A sha256: 64 hexadecimal digits."""

    __slots__ = ()

    pattern = r"[0-9a-f]{64}"
    code = "B052"
    kind = "a sha256"
    rule = "write its 64 hexadecimal digits in lower case"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return how to compute it."""
        lower = text.lower().removeprefix("sha256:").removeprefix("sha256-")
        return f"write '{lower}'" if cls.matches(lower) else "'sha256sum FILE' prints it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSource:
    """A source tree of another project, named by a hash; `src` and `include` refer to its files as `"<name>:path"`."""

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = ("git", "url")
    NEEDS: ClassVar[Mapping[str, str]] = {
        "git": "rev",
        "rev": "git",
        "submodules": "git",
        "url": "sha256",
        "sha256": "url",
    }

    git: SourceUrl | None = None
    """Git repository."""
    rev: GitCommit | None = None
    """Commit of that repository; it is a hash over all its files."""
    submodules: bool | tuple[ProjectPath, ...] = ()
    """Submodules to fetch as well, at the commits that the tree records: their paths, or `true` for all."""
    url: ArchiveUrl | None = None
    """Archive; if it has a single folder at its top, that folder is stripped."""
    sha256: Sha256 | None = None
    """sha256 of the archive."""
    license: str | None = None
    """License of this code, an SPDX expression such as `"BSD-3-Clause"`, for the bill of materials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPath:
    """A path in a foreign source."""

    source: str
    path: str


def foreign_path(entry: str, sources: Collection[str]) -> ForeignPath | None:
    """Parse an entry of `src` or `include` that is in a foreign source; None for a path of the project."""
    name, colon, path = entry.partition(":")
    return ForeignPath(source=name, path=path) if colon and name in sources else None


def require_path(entry: str, found: ForeignPath) -> None:
    """Refuse a path that does not name something inside a foreign tree.

    Raises:
        InvalidValueError: the path is absolute, leaves the tree, is empty or a glob.
    """
    try:
        ProjectPath(found.path)
    except InvalidValueError as error:
        message = f"{quoted(entry)} is not a path inside the foreign source '{found.source}'"
        raise InvalidValueError(
            message, code="B053", help=f"write it relative to the root of that tree; the root is '{found.source}:.'"
        ) from error
    if any(character in found.path for character in "*?["):
        message = f"{quoted(entry)} is a glob in a foreign source, whose files are not known before it is fetched"
        raise InvalidValueError(message, code="B053", help="list the files")


class StepArgument(Text):
    """An argument of a script; a build fills in `{archs}`, `{toolkit}` and `{torch}` when it is configured."""

    __slots__ = ()

    pattern = rf"(?:[^{{}}\u0000-\u001f\u007f]|\{{(?:{'|'.join(PLACEHOLDERS)})\}})+"
    code = "B059"
    kind = "an argument of a step"
    rule = f"braces are for {listed([f'{{{name}}}' for name in PLACEHOLDERS])}, and there are no control characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateStep:
    """A Python script of the kernel that writes sources.

    Only a build runs it: in the sandbox, without network, in a folder that has only its inputs.
    """

    script: ProjectPath
    """Python script, relative to the project root."""
    args: tuple[StepArgument, ...] = ()
    """Arguments of the script. `{archs}` becomes the compiled architectures, separated by commas, `{toolkit}` the
    version of the toolkit and `{torch}` that of PyTorch, each as MAJOR.MINOR; a missing value is empty."""
    inputs: tuple[ProjectPath, ...] = ()
    """Other files that the script reads, relative to the project root; an entry may be a glob, or an output of another
    step."""
    outputs: tuple[ProjectPath, ...]
    """Files that the script writes, relative to its working folder. `src` lists them, and `include` their folders, as
    if they were in the project."""


Steps = Sequence[GenerateStep]


def step_outputs(steps: Steps) -> Mapping[str, int]:
    """Return each output, with the index of the step that writes it."""
    return {posixpath.normpath(path): number for number, step in enumerate(steps) for path in step.outputs}


def is_output(entry: str, steps: Steps) -> bool:
    """Whether a step writes the file of an entry of a `src` or of a step's inputs."""
    return bool(steps) and posixpath.normpath(entry) in step_outputs(steps)


def writes_below(folder: str, steps: Steps) -> bool:
    """Whether a step writes a file into a folder of the project."""
    start = posixpath.normpath(folder)
    return any(start == "." or path.startswith(f"{start}/") for path in step_outputs(steps))


def check_steps(steps: Steps, *, src: Sequence[str], include: Sequence[str]) -> Iterator[InvalidValueError]:
    """Yield the problems of a kernel's steps, given the sources and folders of its tables."""
    inputs = [{posixpath.normpath(path) for path in step.inputs} for step in steps]
    used = {posixpath.normpath(path) for path in src}.union(*inputs)
    folders = tuple(posixpath.normpath(path) for path in include)
    writers: dict[str, int] = {}
    for number, step in enumerate(steps):
        if not step.outputs:
            yield _problem("a step without outputs", "list the files that the script writes", number, "outputs")
        if not step.script.endswith(".py") or is_output(step.script, steps):
            yield _problem(f"{quoted(step.script)} is no Python script of the kernel", None, number, "script")
        for index, entry in enumerate(step.outputs):
            path = posixpath.normpath(entry)
            if any(character in entry for character in "*?[") or path == "." or entry.endswith("/"):
                message = f"{quoted(entry)} is not the name of a file"
                yield _problem(message, "list each file that the script writes", number, "outputs", index)
            elif path in writers:
                remedy = f"take it out of step {writers[path] + 1} or of this one"
                yield _problem(f"{quoted(entry)} is an output of two steps", remedy, number, "outputs", index)
            writers.setdefault(path, number)
            if path not in used and not any(at == "." or path.startswith(f"{at}/") for at in folders):
                remedy = "list it in a 'src', or its folder in an 'include', or take it out"
                yield _problem(f"the output {quoted(entry)} is used by nothing", remedy, number, "outputs", index)
    yield from _contradictions(step_outputs(steps), inputs)


def _contradictions(known: Mapping[str, int], inputs: Sequence[Collection[str]]) -> Iterator[InvalidValueError]:
    """Refuse an output that is both a file and a folder, and steps that depend on each other in a circle."""
    for path, number in known.items():
        folder = next((other for other in known if path.startswith(f"{other}/")), None)
        if folder is not None:
            message = f"{quoted(path)} is below {quoted(folder)}, which is an output, too"
            yield _problem(message, "give one of them another name", number, "outputs")
    graph = {number: {known[path] for path in paths if path in known} for number, paths in enumerate(inputs)}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        cycle = [number + 1 for number in error.args[1]]
        words = " -> ".join(f"step {number}" for number in reversed(cycle))
        message = f"steps need each other's outputs: {words}"
        yield _problem(message, "take an output out of 'inputs'", min(cycle) - 1, "inputs")


def _problem(message: str, help_: str | None, number: int, *place: str | int) -> InvalidValueError:
    return InvalidValueError(message, code="B058", path=("generate", number, *place), help=help_)
