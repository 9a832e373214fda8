"""Bring pinned wheels into an environment: from a find-links folder, or through uv from an index."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
"""uv's message if every place that it asked answered, and none has the file."""
_REFUSED = re.compile(r"^hint: An index.*(?:could not be queried|returned a 4\d\d).*", re.MULTILINE)


_UNREACHABLE = re.compile(r"dns error|tcp connect error|client error \(Connect\)")
_LONGEST = 20.0
"""Seconds that others wait for who asks first; an index that takes longer is one that sends something."""
_TURN = 0.1


def is_unreachable(said: str) -> bool:
    """Whether uv says that nothing could be asked: no address, no connection."""
    return _UNREACHABLE.search(said) is not None


@dataclass(slots=True)
class _Answer:
    failure: Completed | None = None
    over: threading.Event = field(default_factory=threading.Event)

    def wait(self, *, give_up: Callable[[], bool]) -> None:
        late = time.monotonic() + _LONGEST
        while not (self.over.wait(_TURN) or give_up() or time.monotonic() > late):
            pass


@dataclass(frozen=True, slots=True)
class Reach:
    """The answers of each index, for all cells of a run; several threads may ask."""

    _answers: dict[str | None, _Answer] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, index: str | None, run: Callable[[], Completed], *, give_up: Callable[[], bool]) -> Completed:
        """Run uv, unless somebody else has found, or finds just now, that the index is out of reach."""
        with self._lock:
            first = index not in self._answers
            answer = self._answers.setdefault(index, _Answer())
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
class _Installation:
    """One installation: its wheels and its place, and the runs of uv for it."""

    pinset: PinSet
    local: Mapping[PinnedWheel, Path]
    """The wheels that lie in find-links folders."""
    into: Path
    scratch: Path
    cache: Path | None
    """None for no cache at all."""
    finders: Finders
    processes: Processes
    reach: Reach
    bytecode: bool = False

    def run(
        self,
        wheels: tuple[PinnedWheel, ...],
        *options: str,
        index: str | None,
        variables: Mapping[str, str] | None = None,
    ) -> Completed:
        if self.processes.cancelled:
            raise ToolError("stopped before the pinned wheels were installed")
        wanted = self.scratch / "wheels.txt"
        lines = (f"{_requirement(wheel, self.local.get(wheel))}\n" for wheel in wheels)
        wanted.write_text("".join(lines), encoding="utf-8")
        env = {"UV_CACHE_DIR": str(self.cache), **self.finders.env, **(variables or {})}
        options += ("--no-cache",) if self.cache is None else ()
        system, python = _target(wheels[0], self.pinset)
        options += ("--python-platform", built_systems()[system].uv) if system else ()
        options += ("--python-version", dotted(python)) if python else ()
        options += ("--compile-bytecode",) if self.bytecode else ()
        options += ("--no-index",) if env.get("UV_NO_INDEX") else ()  # uv does not read that variable
        if index is not None:
            env["UV_EXTRA_INDEX_URL"] = f"{env.get('UV_EXTRA_INDEX_URL', '')} {index}".strip()
        argv = (
            *(uv_binary(), "pip", "install", "--quiet", "--python", str(self.into / "bin" / "python")),
            *("--require-hashes", "--no-deps", "--no-build", *options, "--requirements", str(wanted)),
        )
        return run(argv, cwd=self.scratch, env=env, processes=self.processes, limits=LIMITS)

    def attempts(
        self, wheels: tuple[PinnedWheel, ...], index: str | None
    ) -> Iterator[tuple[tuple[str, ...], str | None]]:
        """Yield options and index of each try: with what is here, with the user's own indexes, with all."""
        here = all(wheel in self.local for wheel in wheels)
        if here or (self.cache is not None and self.cache.exists()):
            yield ("--offline",), index
        if index is not None and self.finders.own_index:
            yield (), None  # a mirror may have what cannot be reached where it is published
        if not here:
            yield (), index

    def ask(self, wheels: tuple[PinnedWheel, ...], *options: str, index: str | None) -> Completed:
        """Install; an index that is known to be out of reach is not asked again."""
        if "--offline" in options:
            return self.run(wheels, *options, index=index)
        return self.reach.ask(
            index,
            lambda: self.run(wheels, *options, index=index),
            give_up=lambda: self.processes.cancelled,
        )

    def is_at_hand(self, wheel: PinnedWheel) -> bool:
        """Whether `wheel` is in a local folder."""
        return wheel in self.local or self.run((wheel,), "--offline", "--dry-run", index=wheel.index).returncode == 0

    def refusal(self, wheels: tuple[PinnedWheel, ...], index: str | None) -> str | None:
        """Return uv's message about an index that refuses to answer, which uv otherwise reports as having none."""
        first = {"UV_INDEX_STRATEGY": "first-index"}
        done = self.run(wheels, "--dry-run", index=index, variables=first)
        match = _REFUSED.search(done.output)
        return None if done.returncode == 0 or match is None else match[0]


def install(
    pinset: PinSet,
    *,
    into: Path,
    cache: Path | None,
    finders: Finders,
    progress: Callable[[str], None],
    processes: Processes | None = None,
    reach: Reach | None = None,
    bytecode: bool = False,
) -> None:
    """Install exactly the wheels of `pinset` into the environment `into`; ending its `processes` stops it.

    With `bytecode` what they have of Python is compiled at once, on all cores, and not by each process that imports it.
    Those who share a `reach` ask an index that cannot be reached only once.

    Raises:
        NotHereError: no place that was asked has a wheel.
        WrongHashError: a wheel is not the one that was pinned.
        ToolError: something went wrong.
    """
    local = dict(_local(pinset, finders))
    indexes = {wheel.index for wheel in pinset.wheels if wheel.index is not None and wheel not in local}
    with TemporaryDirectory(prefix=".fetch-", dir=into) as scratch:
        installation = _Installation(
            pinset=pinset,
            local=local,
            into=into,
            scratch=Path(scratch),
            cache=cache,
            finders=finders,
            processes=processes or Processes(),
            reach=reach or Reach(),
            bytecode=bytecode,
        )
        # What may be out of reach comes first, before gigabytes are fetched that are of no use without it.
        targets = sorted({_target(wheel, pinset) for wheel in pinset.wheels}, reverse=True)
        for target, index in product(targets, (*sorted(indexes), None)):
            wheels = tuple(
                wheel
                for wheel in pinset.wheels
                if (None if wheel in local else wheel.index) == index and _target(wheel, pinset) == target
            )
            if wheels:
                progress(f"installing {len(wheels)} pinned wheels" + ("" if index is None else f" from {index}"))
                _install(installation, wheels, index)


def _target(wheel: PinnedWheel, pinset: PinSet) -> tuple[str, str]:
    """Return the system and the Python that a wheel is for, where they are not those of the environment.

    A build links to such a wheel, and runs nothing of it.
    """
    here = built_systems().get(toolchain.system())
    system = "" if here is None or here.runs(wheel.file) else pinset.system
    return system, "" if wheel.python in {None, pinset.python} else str(wheel.python)


def _install(installation: _Installation, wheels: tuple[PinnedWheel, ...], index: str | None) -> None:
    said = []
    for options, where in installation.attempts(wheels, index):
        done = installation.ask(wheels, *options, index=where)
        if done.returncode == 0:
            return
        # A cache may hold a file of another set of pins; what anybody serves now must be the pinned one.
        if _WRONG.search(done.output) and "--offline" not in options:
            raise _wrong(done.output)
        said.append(done.output)
    raise _failure(installation, wheels, index, said)


def _requirement(wheel: PinnedWheel, path: Path | None) -> str:
    place = f"=={wheel.version}" if path is None else f" @ {path.resolve().as_uri()}"
    return f"{wheel.name}{place} --hash=sha256:{wheel.sha256}"


def _local(pinset: PinSet, finders: Finders) -> Iterator[tuple[PinnedWheel, Path]]:
    """Yield the wheels that lie in a find-links folder, each with its path.

    Raises:
        ToolError: a file has a pinned name and no folder has it with the pinned content.
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


def _failure(
    installation: _Installation, wheels: tuple[PinnedWheel, ...], index: str | None, said: Sequence[str]
) -> ToolError:
    """Return the error of a failed installation: the wheels that no index has, or else uv's own message."""
    last = said[-1]
    if _WRONG.search(last):
        return _wrong(last)
    absent = [wheel for wheel in wheels if not installation.is_at_hand(wheel)]
    if not absent:
        return ToolError(f"uv could not install the pinned wheels{_quoted(last)}", help="see what uv said above")
    listed = "".join(f"\n  --> {wheel.file}" for wheel in absent)
    place = "" if index is None else f" from {index}"
    message = f"cannot get {len(absent)} of {len(installation.pinset.wheels)} pinned wheels{place}{_quoted(last)}"
    if not _is_absence(said, mirrored=installation.finders.own_index):
        remedy = f"{REMEDY}; where there is no network, set PIP_NO_INDEX=1: what is missing is then skipped"
        return ToolError(f"{message}{listed}", help=remedy if is_unreachable(last) else REMEDY)
    refusal = installation.refusal(wheels, index)
    if refusal is not None:
        return ToolError(f"{message}\n  uv: {refusal}{listed}", help="look at the index and at your credentials for it")
    return NotHereError(f"{message}{listed}", help=REMEDY)


def _is_absence(said: Sequence[str], *, mirrored: bool) -> bool:
    """Whether no index has the file: the user's mirror lacks it, and the publisher's cannot be reached."""
    last, before = said[-1], said[-2:-1]
    if mirrored and before and is_unreachable(last):
        return _ABSENT.search(before[0]) is not None
    return _ABSENT.search(last) is not None


def _quoted(said: str) -> str:
    return "".join(f"\n  uv: {line}" for line in said.strip().splitlines() if line.strip())
