"""Leave out the cells of a kernel that are unchanged since a commit."""

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from builder import kernel as kernels
from builder.ci.plan import CiPlan, leave_out
from builder.config import Backend, Config
from builder.config.v5 import Matrix, MatrixBackend
from builder.errors import BuilderError
from builder.hashes import sha256
from builder.kernel import CONFIG, Kernel
from builder.kernel.git import Checkout, object_of
from builder.kernel.source_set import source_set
from builder.matrix import Cell, Row, select
from builder.wording import quoted


class RevisionError(BuilderError):
    """A revision that git cannot compare with HEAD."""


def changed_since(plan: CiPlan, revision: str, among: Iterable[Row]) -> CiPlan:
    """Return `plan` without the cells whose wheel is unchanged since the last common commit with `revision`.

    Raises:
        RevisionError: the commit is not in this clone, or has no common ancestor.
    """
    kernel = plan.kernel
    checkout = Checkout.around(kernel.root)
    if checkout is None:
        raise RevisionError("--changed-since needs a git repository around the kernel", help="leave the option out")
    base = _base(checkout, revision)
    if _has_all(kernel, checkout.regular_files(base)):
        unchanged = frozenset(plan.cells)
    else:
        with tempfile.TemporaryDirectory(prefix="builder-changes-") as folder:
            before = Path(folder) / "kernel"
            unchanged = _unchanged(plan, before, among) if checkout.write_tree(base, before) else frozenset()
    return leave_out(
        plan,
        rule="unchanged",
        remedy="without --changed-since, it is built",
        why=lambda cell: f"nothing of {cell.variant} changed since {base[:12]}" if cell in unchanged else None,
    )


def _has_all(kernel: Kernel, before: Mapping[str, str] | None) -> bool:
    """Whether the kernel's files are exactly those of a commit.

    Then nothing changed, and the commit need not be checked out.
    """
    try:
        used = source_set(kernel).paths
    except BuilderError:
        return False
    if not before or CONFIG not in before or not before.keys() >= set(used):
        return False
    try:
        return all(object_of((kernel.root / path).read_bytes(), like=known) == known for path, known in before.items())
    except OSError:
        return False  # a file was removed


def _unchanged(plan: CiPlan, before: Path, among: Iterable[Row]) -> frozenset[Cell]:
    """Return the cells that the kernel already had, for backends whose files and settings are the same."""
    try:
        old = kernels.load(before)
    except BuilderError:
        return frozenset()  # an invalid config gave no wheel
    cells = select(old.config, plan.scope.candidates(among), unbundled=plan.scope.unbundled)
    same = [backend for backend in {cell.backend for cell in cells} if _is_same(old, plan.kernel, backend)]
    return frozenset(cell for cell in cells if cell.backend in same)


def _is_same(old: Kernel, new: Kernel, backend: Backend) -> bool:
    if _settings(old.config, backend) != _settings(new.config, backend):
        return False
    try:
        before = _digests(old, backend)
    except BuilderError:
        return False  # for example, a submodule is not in its parent's history
    return before == _digests(new, backend)


def _settings(config: Config, backend: Backend) -> Config:
    """Return the part of a config that a wheel of `backend` depends on, without other backends and row selection."""
    torch = config.torch
    if torch is not None:
        torch = replace(torch, stable_abi=config.stable_abi(backend))
    own = config.matrix.backend.get(backend, MatrixBackend())
    matrix = Matrix(backend={backend: MatrixBackend(ptxas=own.ptxas)})
    return replace(
        config,
        general=replace(config.general, backends=(backend,)),
        torch=torch,
        kernel={name: part for name, part in config.kernel.items() if part.backend is backend},
        extension={name: config.extension[name] for name in config.extensions(backend)},
        matrix=matrix,
    )


def _digests(kernel: Kernel, backend: Backend) -> Mapping[str, str]:
    found = source_set(kernel, backend=backend)
    return {path: sha256(found.read(path)) for path in found.paths}


def _base(checkout: Checkout, revision: str) -> str:
    """Return the last common commit of HEAD and `revision`."""
    if revision == "" or revision.startswith("-") or not revision.isprintable():
        raise RevisionError(f"{quoted(revision)} is not a revision", help="name a branch, a tag or a commit")
    why, remedy = "", "name a branch, a tag or a commit; of a remote, as `origin/main`"
    if checkout.is_shallow:
        why = ": the clone is shallow"
        remedy = (
            "fetch the whole history: `git fetch --unshallow`; in a workflow, `fetch-depth: 0` for actions/checkout"
        )
    commit = checkout.commit(revision)
    if commit is None:
        raise RevisionError(f"no commit {quoted(revision)} in this repository{why}", help=remedy)
    base = checkout.merge_base(commit)
    if base is None:
        raise RevisionError(f"HEAD and {quoted(revision)} have no commit in common{why}", help=remedy)
    return base
