"""What changed in a kernel since a commit, cell by cell."""

import hashlib
import re
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from builder import kernel as kernels
from builder.config import Backend, Config
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.matrix import Cell, Row, select
from builder.plan import Plan, Scope, leave_out
from builder.run import Completed, run
from builder.sources import source_set
from builder.spelling import quoted, visible

_COMMIT = re.compile(r"[0-9a-f]{40,64}", re.ASCII)
_LONGEST = 300


class RevisionError(BuilderError):
    """A revision that git cannot compare with."""


def changed_since(plan: Plan, revision: str, among: Iterable[Row]) -> Plan:
    """Return `plan` without the cells whose wheel would be as it was where the current branch left `revision`.

    Raises:
        RevisionError: there is no such commit here, or none in common with it.
    """
    kernel = plan.kernel
    base = _base(kernel.root, revision)
    with tempfile.TemporaryDirectory(prefix="builder-changes-") as folder:
        before = _extract(kernel.root, base, Path(folder))
        unchanged = _Comparison.of(kernel, before, scope=plan.scope, among=tuple(among))
        return leave_out(
            plan,
            rule="unchanged",
            remedy="without --changed-since, it is built",
            why=lambda cell: f"nothing of {cell.variant} changed since {base[:12]}" if unchanged.has(cell) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """The cells that were there before, and the backends whose files and settings are the same."""

    cells: frozenset[Cell]
    same: frozenset[Backend]

    @classmethod
    def of(cls, kernel: Kernel, before: Path | None, *, scope: Scope, among: tuple[Row, ...]) -> "_Comparison":
        try:
            old = None if before is None else kernels.load(before)
        except BuilderError:
            old = None  # a config that was wrong then gave no wheel
        if old is None:
            return cls(cells=frozenset(), same=frozenset())
        cells = select(old.config, scope.candidates(among), unbundled=scope.unbundled)
        backends = {cell.backend for cell in cells}
        return cls(
            cells=frozenset(cells), same=frozenset(backend for backend in backends if _is_same(old, kernel, backend))
        )

    def has(self, cell: Cell) -> bool:
        return cell in self.cells and cell.backend in self.same


def _is_same(old: Kernel, new: Kernel, backend: Backend) -> bool:
    if _settings(old.config, backend) != _settings(new.config, backend):
        return False
    try:
        before = _digests(old, backend)
    except BuilderError:
        return False  # a submodule, for one, is not in the history of its parent
    return before == _digests(new, backend)


def _settings(config: Config, backend: Backend) -> Config:
    """Return what a wheel of `backend` depends on: nothing of other backends, and no row that `[matrix]` leaves out."""
    torch = config.torch
    if torch is not None:
        torch = replace(torch, stable_abi=config.stable_abi(backend))
    own = None if config.matrix is None else config.matrix.backend.get(backend)
    matrix = None
    if config.matrix is not None and own is not None and own.ptxas is not None:
        matrix = replace(config.matrix, systems=None, backend={backend: replace(own, systems=None, toolkits=None)})
    return replace(
        config,
        general=replace(config.general, backends=(backend,)),
        torch=torch,
        kernel={name: part for name, part in config.kernel.items() if part.backend is backend},
        matrix=matrix,
    )


def _digests(kernel: Kernel, backend: Backend) -> Mapping[str, str]:
    found = source_set(kernel, backend=backend)
    return {path: hashlib.sha256(found.read(path)).hexdigest() for path in found.paths}


def _base(root: Path, revision: str) -> str:
    """Return the commit at which the history of HEAD and of `revision` part."""
    if revision == "" or revision.startswith("-") or not revision.isprintable():
        raise RevisionError(f"{quoted(revision)} is not a revision", help="name a branch, a tag or a commit")
    inside = _git(root, "rev-parse", "--show-prefix")
    if inside.returncode != 0:
        raise RevisionError(f"--changed-since needs a git repository: {_said(inside)}", help="leave the option out")
    shallow = _git(root, "rev-parse", "--is-shallow-repository").output.strip() == "true"
    commit = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if (found := _hash(commit)) is None:
        raise RevisionError(
            f"no commit {quoted(revision)} in this repository{_shallow(shallow)}", help=_remedy(shallow)
        )
    base = _hash(_git(root, "merge-base", "HEAD", found))
    if base is None:
        raise RevisionError(
            f"HEAD and {quoted(revision)} have no commit in common{_shallow(shallow)}", help=_remedy(shallow)
        )
    return base


def _shallow(shallow: bool) -> str:  # noqa: FBT001  a word of the message
    return ": the clone is shallow" if shallow else ""


def _remedy(shallow: bool) -> str:  # noqa: FBT001  a word of the message
    if shallow:
        return "fetch the whole history: `git fetch --unshallow`; in a workflow, `fetch-depth: 0` for actions/checkout"
    return "name a branch, a tag or a commit; of a remote, as `origin/main`"


def _extract(root: Path, commit: str, folder: Path) -> Path | None:
    """Write the kernel's directory as it was; None if it was not there."""
    archive = folder / "kernel.tar"
    # From inside a directory git archives that directory alone.
    done = _git(root, "archive", "--format=tar", f"--output={archive}", commit)
    if done.returncode != 0:
        return None
    target = folder / "kernel"
    with tarfile.open(archive) as tar:
        for member in tar:
            _extract_member(tar, member, target)
    return target


def _extract_member(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Write one regular file; a link or a path that leaves the directory is left out, so that what needs it differs."""
    path = target / member.name
    if not member.isreg() or ".." in Path(member.name).parts or Path(member.name).is_absolute():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content = tar.extractfile(member)
    if content is not None:
        path.write_bytes(content.read())


def _git(root: Path, *arguments: str) -> Completed:
    return run(["git", "-C", root, *arguments])


def _hash(done: Completed) -> str | None:
    """Return the commit that git printed; git's warnings may stand before it."""
    last = (done.output.strip().splitlines() or [""])[-1]
    return last if done.returncode == 0 and _COMMIT.fullmatch(last) else None


def _said(done: Completed) -> str:
    first = (done.output.strip().splitlines() or ["git failed"])[0]
    return "".join(visible(character) for character in first[:_LONGEST])
