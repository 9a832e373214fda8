"""The tables `[[generate]]`: scripts of a kernel that write sources before the compile."""

import graphlib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from builder.config.values import InvalidValueError, ProjectPath, Text
from builder.wording import listed, quoted

PLACEHOLDERS = ("archs", "toolkit", "torch")
"""What an argument may name in braces."""


class StepArgument(Text):
    """An argument of a script; `{archs}`, `{toolkit}` and `{torch}` in it are filled in when a build is configured."""

    __slots__ = ()

    pattern = rf"(?:[^{{}}\u0000-\u001f\u007f]|\{{(?:{'|'.join(PLACEHOLDERS)})\}})+"
    code = "B059"
    kind = "an argument of a step"
    rule = f"braces are for {listed([f'{{{name}}}' for name in PLACEHOLDERS])}, and there are no control characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateStep:
    """A Python script of the kernel that writes sources.

    The build alone runs it, in the sandbox, without network, in a folder that has its inputs and nothing else.
    """

    script: ProjectPath
    """Python script, relative to the project root."""
    args: tuple[StepArgument, ...] = ()
    """Its arguments. `{archs}` becomes the architectures that are compiled, with commas between them, `{toolkit}` the
    version of the toolkit and `{torch}` that of PyTorch, each as MAJOR.MINOR; what a build does not have is empty."""
    inputs: tuple[ProjectPath, ...] = ()
    """Files that the script reads besides itself, relative to the project root; an entry may be a glob, or an output of
    another step."""
    outputs: tuple[ProjectPath, ...]
    """Files that it writes, relative to the folder that it is run in. A `src` lists them as if they were in the
    project, and a folder in `include` has the headers among them."""


Steps = Sequence[GenerateStep]


def outputs(steps: Steps) -> Mapping[str, int]:
    """Return each output, and the number of the step that writes it."""
    return {posixpath.normpath(path): number for number, step in enumerate(steps) for path in step.outputs}


def is_output(entry: str, steps: Steps) -> bool:
    """Whether an entry of a `src`, or of the inputs of a step, is what a step writes."""
    return bool(steps) and posixpath.normpath(entry) in outputs(steps)


def below(folder: str, steps: Steps) -> bool:
    """Whether a step writes a file into a folder of the project."""
    start = posixpath.normpath(folder)
    return any(start == "." or path.startswith(f"{start}/") for path in outputs(steps))


def check(steps: Steps, *, src: Sequence[str], include: Sequence[str]) -> Iterator[InvalidValueError]:
    """Yield what is wrong with the steps of a kernel whose tables have these sources and folders."""
    writers: dict[str, int] = {}
    for number, step in enumerate(steps):
        if not step.outputs:
            yield _problem(number, "outputs", None, "a step without outputs", "list the files that the script writes")
        if not step.script.endswith(".py") or is_output(step.script, steps):
            yield _problem(number, "script", None, f"{quoted(step.script)} is no Python script of the kernel", None)
        for index, entry in enumerate(step.outputs):
            path = posixpath.normpath(entry)
            if any(character in entry for character in "*?[") or path == "." or entry.endswith("/"):
                message = f"{quoted(entry)} is not the name of a file"
                yield _problem(number, "outputs", index, message, "list each file that the script writes")
            elif path in writers:
                message = f"{quoted(entry)} is an output of two steps"
                yield _problem(
                    number, "outputs", index, message, f"take it out of step {writers[path] + 1} or of this one"
                )
            writers.setdefault(path, number)
    yield from _clashes(steps)
    yield from _unused(steps, src, include)
    yield from _cycle(steps)


def _clashes(steps: Steps) -> Iterator[InvalidValueError]:
    """Refuse a file and a folder of one name, which no script can write both."""
    known = outputs(steps)
    for path, number in known.items():
        folder = next((other for other in known if path.startswith(f"{other}/")), None)
        if folder is not None:
            message = f"{quoted(path)} is below {quoted(folder)}, which is an output, too"
            yield _problem(number, "outputs", None, message, "give one of them another name")


def _unused(steps: Steps, src: Sequence[str], include: Sequence[str]) -> Iterator[InvalidValueError]:
    listed_ = {posixpath.normpath(entry) for entry in (*src, *(path for step in steps for path in step.inputs))}
    folders = tuple(posixpath.normpath(entry) for entry in include)
    for number, step in enumerate(steps):
        for index, entry in enumerate(step.outputs):
            path = posixpath.normpath(entry)
            if path not in listed_ and not any(at == "." or path.startswith(f"{at}/") for at in folders):
                message = f"the output {quoted(entry)} is used by nothing"
                remedy = "list it in a 'src', or its folder in an 'include', or take it out"
                yield _problem(number, "outputs", index, message, remedy)


def _cycle(steps: Steps) -> Iterator[InvalidValueError]:
    """Refuse steps that need each other's outputs."""
    known = outputs(steps)
    graph = {
        number: {known[path] for path in (posixpath.normpath(entry) for entry in step.inputs) if path in known}
        for number, step in enumerate(steps)
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        cycle = [number + 1 for number in error.args[1]]
        words = " -> ".join(f"step {number}" for number in reversed(cycle))
        message = f"steps need each other's outputs: {words}"
        yield _problem(min(cycle) - 1, "inputs", None, message, "take an output out of 'inputs'")


def _problem(number: int, key: str, index: int | None, message: str, help_: str | None) -> InvalidValueError:
    path = ("generate", number, key) if index is None else ("generate", number, key, index)
    return InvalidValueError(message, code="B058", path=path, help=help_)
