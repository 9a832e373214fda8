"""Record the inputs of each object, so that a later build can tell why it compiled the object again."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder import json_text, run
from builder.errors import ToolError
from builder.hashes import sha256
from builder.make.job import Job

_DEPENDENCIES = ": #deps "
"""The text that ninja writes after an object's name, before the list of its inputs."""
_LIMITS = run.Limits(seconds=60, memory=4 << 30, file=1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInputs:
    """The inputs of an object."""

    source: str
    """The path in the project."""
    command: str
    """sha256 of the compiler's command line."""
    compilers: str
    """sha256 of the identity of the compilers."""
    framework: str
    """The framework, if one of its headers was read; else empty."""
    system: str
    """sha256 of the paths, sizes and times of all other headers."""
    files: Mapping[str, str] = field(default_factory=dict)
    """sha256 of each file of the project that was read."""

    def changed_since(self, before: "ObjectInputs") -> tuple[str, ...]:
        """Return the differences from an earlier object: changed files by name, and other changes."""
        words = {
            "command": "the command of the compiler",
            "compilers": "the compilers",
            "framework": f"the framework: {before.framework} -> {self.framework}",
            "system": "headers of the system or of other packages",
        }
        names = sorted(self.files.keys() | before.files.keys())
        return (
            *(name for name in names if self.files.get(name) != before.files.get(name)),
            *(text for name, text in words.items() if getattr(self, name) != getattr(before, name)),
        )


def read(job: Job, *, scratch: Path, base: Path) -> dict[str, ObjectInputs]:
    """Return the inputs of each object, by ninja's path; empty if ninja does not tell.

    `base` is the scratch directory as the build saw it.
    """
    build = scratch / "build"
    try:
        commands = json.loads(_ask(job, build, "compdb"))
        lines = _ask(job, build, "deps").splitlines()
    except (ToolError, ValueError):
        return {}
    rules = {rule["output"]: rule for rule in commands}
    return {
        output: _inputs(job, base, rules[output], paths) for output, paths in dependencies(lines) if output in rules
    }


def _ask(job: Job, build: Path, what: str) -> str:
    done = run.run([job.frontend.parent / "ninja", "-C", build, "-t", what], limits=_LIMITS)
    # ninja first prints its working folder
    return done.output if what == "deps" else done.output[done.output.find("[\n") :]


def dependencies(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Parse the output of `ninja -t deps`: yield each object with its inputs."""
    output, paths = "", list[str]()
    for line in lines:
        if line.startswith(" "):
            paths.append(line.strip())
        elif _DEPENDENCIES in line:
            if output:
                yield output, paths
            output, paths = line.partition(_DEPENDENCIES)[0], []
    if output:
        yield output, paths


def _inputs(job: Job, base: Path, rule: Mapping[str, str], paths: Iterable[str]) -> ObjectInputs:
    """Return the inputs of the object of a rule, given the files that its compiler read."""
    source, environment = str(base / "src"), str(base / "env")
    own, others, framework = {}, [], ""
    for path in sorted({*paths, rule["file"]}):
        name = path.removeprefix(f"{source}/")
        if name in job.project.files:
            own[name] = sha256(job.project.files[name])
        elif path.startswith((f"{environment}/", f"{job.site_packages}/")):
            framework = f"{job.framework.version} {job.spec.pins[:12]}".strip()
        elif not path.startswith(str(base)):
            others.append(_seen(Path(path)))
    toolchain = {} if job.toolchain is None else dict(job.toolchain.identity)
    return ObjectInputs(
        source=rule["file"].removeprefix(f"{source}/"),
        command=sha256(rule["command"]),
        compilers=sha256(json_text.canonical(toolchain)),
        framework=framework,
        system=sha256("\n".join(others)),
        files=own,
    )


def _seen(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"
