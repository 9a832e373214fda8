"""Keep CMake's checks of the compilers for the next build, since the same compilers give the same answers.

CMake remembers a compiler in `CMakeFiles/<version>/CMake<LANG>Compiler.cmake` of the build folder, and the tools that
go with it in its cache. A new build folder with these files looks to CMake like one that was configured before.
"""

import contextlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from builder import json_text
from builder.hashes import sha256
from builder.make import sandbox_contents as contents
from builder.make.job import Job
from builder.make.record import identity, of_build_tools
from builder.run import Completed
from builder.toolchain.tool import REACHES_BUILD

_OF_MACHINE = re.compile(r"^set\(CMAKE_CUDA_ARCHITECTURES_NATIVE .*\n?", re.MULTILINE)
"""CMake's answer about this machine's GPU, which may differ on another machine with the same compilers."""
_FOUND = re.compile(
    r"(CMAKE_(?!MAKE_PROGRAM|CUDA_|HIP_)\w+:FILEPATH|CMAKE_(EXECUTABLE_FORMAT|HAVE_LIBC_PTHREAD):INTERNAL)=[^\n]*"
)
"""Lines of CMake's cache to keep: results of tests, and tools such as nm that CMake finds with the first compiler."""
_CONFIGURED = "CMAKE_PLATFORM_INFO_INITIALIZED:INTERNAL=1"
"""Without this line, CMake removes the files that it finds in the folder."""
_FILE = re.compile(r"CMake[A-Z]+Compiler\.cmake")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.-]*")
_REACHES_COMPILERS = (
    *("CC", "CXX", "CUDACXX", "CUDAHOSTCXX", "CUDAToolkit_ROOT", "CUDA_HOME", "LC_ALL", "PATH"),
    *REACHES_BUILD,
)
_OF_KERNELS = ("-DKERNEL_", "-DCMAKE_BUILD_TYPE=")
_LAUNCHER = re.compile(r"-DCMAKE_\w+_LAUNCHER=")


class NoteKeeper(Protocol):
    """Keeps notes, each a small table, and never returns a damaged one."""

    def note(self, name: str) -> Mapping[str, Any] | None:
        """Return a note."""

    def set_note(self, name: str, value: Mapping[str, Any]) -> None:
        """Keep a note, if possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerAnswers:
    """CMake's answers for the compilers of one build."""

    notes: NoteKeeper
    name: str
    """The name of the note with the answers; answers for other compilers replace it."""
    digest: str
    """A digest of everything that decides the answers."""
    build: Path
    """The build folder of CMake."""

    @classmethod
    def of(
        cls, job: Job, notes: NoteKeeper, *, build: Path, variables: Mapping[str, str], arguments: Sequence[str]
    ) -> "CompilerAnswers | None":
        """Return the answers for a build in a CMake folder; None if the build has unusual paths or rules.

        `variables` are the build's, and `arguments` CMake's.
        """
        tools = job.toolchain
        if tools is None or not job.canonical or job.options.without or job.options.variables:
            return None
        decides = {
            "builder": identity(),
            "cmake": job.spec.pins or of_build_tools(),
            "system": job.cell.system,
            "backend": str(job.cell.backend),
            "sandbox": job.sandboxed,
            "toolchain": dict(tools.identity),
            "paths": [str(tool.path) for tool in (tools.cc, tools.cxx, tools.cuda, tools.hip) if tool is not None],
            "variables": {name: variables[name] for name in _REACHES_COMPILERS if name in variables},
            "arguments": [each for each in arguments if not each.startswith(_OF_KERNELS) and not _LAUNCHER.match(each)],
            # Machines differ in the folders that exist.
            "folders": contents.answer(tools.cxx.path, "-E", "-v", "-x", "c++", "/dev/null"),
        }
        digest = sha256(json_text.canonical(decides))
        name = f"compilers-{job.cell.backend}-{job.spec.pins[:16] or 'here'}"
        return cls(notes=notes, name=name, digest=digest, build=build)

    def around(self, build: Callable[[], Completed]) -> Completed:
        """Run a build with the kept answers, and keep the answers that it finds itself.

        If CMake cannot configure with the kept answers, run the build again without them.
        """
        placed = self._place()
        done = build()
        if placed and done.returncode != 0 and not (self.build / "build.ninja").is_file():
            self._withdraw()
            placed, done = False, build()
        if done.returncode == 0 and not placed:
            self._keep()
        return done

    def _place(self) -> bool:
        """Write the kept answers into a build folder that CMake has not seen yet; return whether they are complete."""
        kept = self.notes.note(self.name)
        if kept is None or kept.get("of") != self.digest or not _are_answers(kept):
            return False
        if (self.build / "CMakeFiles").exists():  # a stopped build continues
            return False
        try:
            folder = self.build / "CMakeFiles" / kept["version"]
            folder.mkdir(parents=True)
            for name, text in kept["files"].items():
                (folder / name).write_text(text, encoding="utf-8")
            lines = "".join(f"{line}\n" for line in (_CONFIGURED, *kept["cache"]))
            (self.build / "CMakeCache.txt").write_text(lines, encoding="utf-8")
        except OSError:
            self._withdraw()
            return False
        return True

    def _withdraw(self) -> None:
        shutil.rmtree(self.build / "CMakeFiles", ignore_errors=True)
        (self.build / "CMakeCache.txt").unlink(missing_ok=True)

    def _keep(self) -> None:
        """Keep the answers that CMake has found, except unreadable ones."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            for folder in sorted((self.build / "CMakeFiles").iterdir()):
                found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("CMake*Compiler.cmake")}
                files = {name: _OF_MACHINE.sub("", text) for name, text in sorted(found.items())}
                if files:
                    cache = (self.build / "CMakeCache.txt").read_text(encoding="utf-8").splitlines()
                    kept = {"of": self.digest, "version": folder.name, "files": files}
                    kept["cache"] = [line for line in cache if _FOUND.fullmatch(line)]
                    self.notes.set_note(self.name, kept)


def _are_answers(kept: Mapping[str, Any]) -> bool:
    """Whether a note has answers in the form of this module, and not that of another version of `builder`."""
    version, files, cache = (kept.get(name) for name in ("version", "files", "cache"))
    return (
        isinstance(version, str)
        and _VERSION.fullmatch(version) is not None
        and isinstance(files, dict)
        and all(_FILE.fullmatch(name) and isinstance(text, str) for name, text in files.items())
        and isinstance(cache, list)
        and all(isinstance(line, str) and _FOUND.fullmatch(line) for line in cache)
    )
