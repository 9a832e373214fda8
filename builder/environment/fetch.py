"""Install pinned wheels into an environment: from find-links folders, or with uv from indexes."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from builder import toolchain
from builder.environment.indexes import Finders, uv_binary
from builder.errors import NotHereError, ToolError, WrongHashError
from builder.hashes import sha256_of
from builder.matrix.variant import built_systems, dotted
from builder.pins import PinnedWheel, PinSet
from builder.run import Completed, Limits, Processes, run

REMEDY = (
    "put these files into a folder and name it in PIP_FIND_LINKS, or name a mirror in PIP_INDEX_URL, "
    "or a proxy in HTTPS_PROXY"
)
LIMITS = Limits(seconds=2 * 3600, memory=4 << 30, file=16 << 30)
"""The limits of uv: 13 GB of wheels come within two hours at 2 MB/s, and no page of an index has gigabytes."""
_WRONG = re.compile(r"hash mismatch", re.IGNORECASE)
_ABSENT = re.compile(
    r"was not found in the (?:package registry|cache|provided package locations)|there (?:is|are) no versions? of"
    r"|has no wheels with a matching|network was disabled"
)
"""uv's message if every index answered and none has the file."""
_REFUSED = re.compile(r"^hint: An index.*(?:could not be queried|returned a 4\d\d).*", re.MULTILINE)
_UNREACHABLE = re.compile(r"dns error|tcp connect error|client error \(Connect\)")
_LONGEST = 20.0
"""Seconds that other threads wait for the first one to ask an index; an index that takes longer is sending data."""
_TURN = 0.1


def is_unreachable(said: str) -> bool:
    """Whether uv reports that it could not connect to any index."""
    return _UNREACHABLE.search(said) is not None


@dataclass(slots=True)
class _Reached:
    failure: Completed | None = None
    over: threading.Event = field(default_factory=threading.Event)

    def wait(self, *, give_up: Callable[[], bool]) -> None:
        late = time.monotonic() + _LONGEST
        while not (self.over.wait(_TURN) or give_up() or time.monotonic() > late):
            pass


@dataclass(frozen=True, slots=True)
class Reach:
    """The reachability of each index, shared by all cells of a run; several threads may ask."""

    _answers: dict[str | None, _Reached] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, index: str | None, run: Callable[[], Completed], *, give_up: Callable[[], bool]) -> Completed:
        """Run uv, unless another thread has found, or is finding, that the index is out of reach."""
        with self._lock:
            first = index not in self._answers
            answer = self._answers.setdefault(index, _Reached())
        if not first:
            answer.wait(give_up=give_up)
            return answer.failure or run()
        try:
            done = run()
            answer.failure = done if done.returncode != 0 and is_unreachable(done.output) else None
        finally:
            answer.over.set()
        return done


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """Installs pinned wheels into environments; installers that share a `reach` ask an unreachable index only once."""

    finders: Finders
    progress: Callable[[str], None] = lambda _: None
    processes: Processes = field(default_factory=Processes)
    """Ending these ends the installation."""
    reach: Reach = field(default_factory=Reach)
    bytecode: bool = False
    """Whether to compile bytecode at once, on all cores, and not in each process that imports a module."""

    def install(self, pinset: PinSet, *, into: Path, cache: Path | None) -> None:
        """Install exactly the wheels of `pinset` into the environment `into`.

        Raises:
            NotHereError: no index or folder has a wheel.
            WrongHashError: a wheel does not have the pinned hash.
            ToolError: something went wrong.
        """
        local = dict(_local(pinset, self.finders))
        indexes = {wheel.index for wheel in pinset.wheels if wheel.index is not None and wheel not in local}
        # First the index that may be out of reach, before fetching gigabytes that would be useless without its wheels.
        targets = sorted({_target(wheel, pinset) for wheel in pinset.wheels}, reverse=True)
        with TemporaryDirectory(prefix=".fetch-", dir=into) as scratch:
            for target, index in product(targets, (*sorted(indexes), None)):
                wheels = tuple(
                    wheel
                    for wheel in pinset.wheels
                    if (None if wheel in local else wheel.index) == index and _target(wheel, pinset) == target
                )
                if wheels:
                    self.progress(
                        f"installing {len(wheels)} pinned wheel{'' if len(wheels) == 1 else 's'}"
                        + ("" if index is None else f" from {index}")
                    )
                    _Installation(
                        by=self,
                        wheels=wheels,
                        index=index,
                        target=target,
                        whole=len(pinset.wheels),
                        local=local,
                        into=into,
                        scratch=Path(scratch),
                        cache=cache,
                    ).install()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Installation:
    """One call of uv: wheels of one index, for one system and Python."""

    by: Installer
    wheels: tuple[PinnedWheel, ...]
    index: str | None
    target: tuple[str, str]
    whole: int
    """The number of wheels in the environment."""
    local: Mapping[PinnedWheel, Path]
    """The wheels in find-links folders, with their paths."""
    into: Path
    scratch: Path
    cache: Path | None
    """None to use no cache."""

    def install(self) -> None:
        said = []
        for offline, index in self._attempts():
            run = partial(self._run, self.wheels, *(("--offline",) if offline else ()), index=index)
            done = run() if offline else self.by.reach.ask(index, run, give_up=lambda: self.by.processes.cancelled)
            if done.returncode == 0:
                return
            # A cache may hold another file of this name; any file served now must have the pinned hash.
            if _WRONG.search(done.output) and not offline:
                raise _wrong(done.output)
            said.append(done.output)
        raise self._failure(said)

    def _attempts(self) -> Iterator[tuple[bool, str | None]]:
        """Yield the attempts as (offline, index): without a network, then the user's indexes, then the publisher's."""
        here = all(wheel in self.local for wheel in self.wheels)
        if here or (self.cache is not None and self.cache.exists()):
            yield True, self.index
        if self.index is not None and self.by.finders.own_index:
            yield False, None  # a mirror may have files of an unreachable index
        if not here:
            yield False, self.index

    def _run(
        self, wheels: tuple[PinnedWheel, ...], *options: str, index: str | None, strategy: str | None = None
    ) -> Completed:
        if self.by.processes.cancelled:
            raise ToolError("stopped before the pinned wheels were installed")
        wanted = self.scratch / "wheels.txt"
        wanted.write_text("".join(map(self._requirement, wheels)), encoding="utf-8")
        env = {"UV_CACHE_DIR": str(self.cache), **self.by.finders.env}
        env |= {} if strategy is None else {"UV_INDEX_STRATEGY": strategy}
        system, python = self.target
        options += ("--no-cache",) if self.cache is None else ()
        options += ("--python-platform", built_systems()[system].uv) if system else ()
        options += ("--python-version", dotted(python)) if python else ()
        options += ("--compile-bytecode",) if self.by.bytecode else ()
        options += ("--no-index",) if env.get("UV_NO_INDEX") else ()  # uv ignores this variable
        if index is not None:
            env["UV_EXTRA_INDEX_URL"] = f"{env.get('UV_EXTRA_INDEX_URL', '')} {index}".strip()
        argv = (
            *(uv_binary(), "pip", "install", "--quiet", "--python", str(self.into / "bin" / "python")),
            *("--require-hashes", "--no-deps", "--no-build", *options, "--requirements", str(wanted)),
        )
        return run(argv, cwd=self.scratch, env=env, processes=self.by.processes, limits=LIMITS)

    def _requirement(self, wheel: PinnedWheel) -> str:
        path = self.local.get(wheel)
        place = f"=={wheel.version}" if path is None else f" @ {path.resolve().as_uri()}"
        return f"{wheel.name}{place} --hash=sha256:{wheel.sha256}\n"

    def _failure(self, said: Sequence[str]) -> ToolError:
        """Return the error of a failed installation: the wheels that no index has, or uv's own message."""
        last, before = said[-1], said[-2:-1]
        if _WRONG.search(last):
            return _wrong(last)
        absent = [wheel for wheel in self.wheels if not self._is_at_hand(wheel)]
        if not absent:
            return ToolError(f"uv could not install the pinned wheels{_quoted(last)}", help="see what uv said above")
        listed = "".join(f"\n  --> {wheel.file}" for wheel in absent)
        place = "" if self.index is None else f" from {self.index}"
        message = f"cannot get {len(absent)} of {self.whole} pinned wheels{place}{_quoted(last)}"
        # No index has the file: the user's mirror lacks it, even if the publisher's index is out of reach.
        mirrored = self.by.finders.own_index and before and is_unreachable(last)
        if _ABSENT.search(before[0] if mirrored else last) is None:
            remedy = f"{REMEDY}; where there is no network, set PIP_NO_INDEX=1: what is missing is then skipped"
            return ToolError(f"{message}{listed}", help=remedy if is_unreachable(last) else REMEDY)
        # uv treats an index that refuses to answer as an empty one
        done = self._run(self.wheels, "--dry-run", index=self.index, strategy="first-index")
        refused = None if done.returncode == 0 else _REFUSED.search(done.output)
        if refused is not None:
            text = f"{message}\n  uv: {refused[0]}{listed}"
            return ToolError(text, help="look at the index and at your credentials for it")
        return NotHereError(f"{message}{listed}", help=REMEDY)

    def _is_at_hand(self, wheel: PinnedWheel) -> bool:
        if wheel in self.local:
            return True
        return self._run((wheel,), "--offline", "--dry-run", index=wheel.index).returncode == 0


def _target(wheel: PinnedWheel, pinset: PinSet) -> tuple[str, str]:
    """Return the system and the Python of a wheel that does not fit the environment's own.

    A build only links to such a wheel, and runs nothing in it.
    """
    here = built_systems().get(toolchain.system())
    system = "" if here is None or here.runs(wheel.file) else pinset.system
    return system, "" if wheel.python in {None, pinset.python} else str(wheel.python)


def _local(pinset: PinSet, finders: Finders) -> Iterator[tuple[PinnedWheel, Path]]:
    """Yield the wheels in find-links folders, with their paths.

    Raises:
        ToolError: a file has a pinned name, but no folder has it with the pinned content.
    """
    wrong: list[str] = []
    for wheel in pinset.wheels:
        paths = [folder / wheel.file for folder in finders.folders if (folder / wheel.file).is_file()]
        digests = {path: _sha256(path) for path in paths}
        good = next((path for path, digest in digests.items() if digest == wheel.sha256), None)
        if good is not None:
            yield wheel, good
        else:
            wrong += [
                f"\n  --> {path.parent}: {wheel.file}\n      pinned sha256 {wheel.sha256}\n      found sha256  {digest}"
                for path, digest in digests.items()
            ]
    if wrong:
        count = "a wheel" if len(wrong) == 1 else f"{len(wrong)} wheels"
        raise WrongHashError(
            f"{count} in a find-links folder is not what was pinned{''.join(wrong)}",
            help="remove the file, or replace it by the published one; nothing was installed",
        )


def _sha256(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise ToolError(f"cannot read '{path}': {error.strerror}", help="make the file readable") from error


def _wrong(said: str) -> WrongHashError:
    return WrongHashError(
        f"an index serves a file that is not the pinned one{_quoted(said)}",
        help="ask who runs the index; a pin is changed only by `builder pins update`",
    )


def _quoted(said: str) -> str:
    return "".join(f"\n  uv: {line}" for line in said.strip().splitlines() if line.strip())
