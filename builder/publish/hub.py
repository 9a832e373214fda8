"""Publish a hub layout: one commit to the branch `v<version>` of a kernel's repository."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.environment.kernel_source import first_line, load_library, refusals
from builder.errors import BuilderError, NothingToDoError, PublishError
from builder.hashes import base64_sha256, git_blob, sha256
from builder.metadata import METADATA_FILE, SIGNATURE_FILE, KernelMetadata, is_digested
from builder.publish import card
from builder.publish.bundle import is_variant, variants_in
from builder.publish.site import is_own
from builder.untrusted import UntrustedError

README = "README.md"
_REPO_TYPE = "kernel"
_ROOT = "build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A directory that `builder bundle` wrote, verified to be complete."""

    kernel: str
    version: int
    files: Mapping[str, Path]
    """The files for the repository, by their paths in it."""
    unsandboxed: tuple[str, ...] = ()
    """Variants that were built without a sandbox."""
    obstacles: Mapping[str, str | None] = field(default_factory=dict)
    """Why each variant must not be published; None if it may be."""

    @property
    def branch(self) -> str:
        """The branch where the client looks for this version."""
        return f"v{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubCommit:
    """The files that one commit adds and deletes."""

    add: Mapping[str, Path]
    delete: tuple[str, ...] = ()
    exists: bool = True
    """Whether the branch exists."""

    @property
    def empty(self) -> bool:
        """Whether the branch already has all files."""
        return not self.add and not self.delete


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """The options for sending a commit to a repository."""

    create_pr: bool = False
    """Open a pull request, which needs no right to write to the repository."""
    private: bool = False
    """Require a private repository, or make one."""

    def __post_init__(self) -> None:
        if self.create_pr and self.private:
            raise BuilderError(
                "--create-pr makes no repository, so --private says nothing",
                help="leave one of them out",
            )


def read(build: Path) -> Layout:
    """Read a hub layout.

    Raises:
        NothingToDoError: it has no variants.
        PublishError: a variant does not match its digest, or the variants belong to different kernels.
    """
    variants = variants_in(build) if build.is_dir() else ()
    if not variants:
        raise NothingToDoError(
            f"'{build}' has no variants", help="lay wheels out with `builder bundle WHEEL... --output build`"
        )
    tables = {variant: _metadata(build / variant) for variant in variants}
    problems = [problem for variant in variants for problem in _violations(build / variant, tables[variant])]
    kernels = {(str(table.name), table.version) for table in tables.values()}
    if len(kernels) > 1:
        found = ", ".join(sorted(f"{name} {version}" for name, version in kernels))
        problems.append(f"'{build}' has variants of different kernels: {found}")
    if (build / card.NAME).is_symlink():
        problems.append(f"'{build / card.NAME}' is a symbolic link")
    if problems:
        raise PublishError("; ".join(problems), help="lay the wheels out again with `builder bundle --force`")
    ((kernel, version),) = kernels
    if version is None:
        raise PublishError(f"the kernel in '{build}' has no version", help="set general.version and build again")
    unsandboxed = tuple(variant for variant in variants if tables[variant].unsandboxed)
    return Layout(
        kernel=kernel,
        version=version,
        files=dict(_files(build, tables)),
        unsandboxed=unsandboxed,
        obstacles={variant: table.not_for_release for variant, table in tables.items()},
    )


def _files(build: Path, tables: Mapping[str, KernelMetadata]) -> Iterator[tuple[str, Path]]:
    """Yield the files for the repository: those in the digests, metadata.json with its signature, and the card."""
    for variant, table in tables.items():
        signature = (SIGNATURE_FILE,) if is_own(build, f"{variant}/{SIGNATURE_FILE}") else ()
        for name in sorted((METADATA_FILE, *signature, *table.digests)):
            yield f"{_ROOT}/{variant}/{name}", build / variant / name
    if is_own(build, card.NAME):
        yield README, build / card.NAME


def _metadata(folder: Path) -> KernelMetadata:
    try:
        return KernelMetadata.read((folder / METADATA_FILE).read_bytes())
    except (OSError, UntrustedError) as error:
        raise PublishError(f"'{folder / METADATA_FILE}' cannot be read: {error}", help="lay it out again") from error


def _violations(folder: Path, table: KernelMetadata) -> Iterator[str]:
    expected = table.digests
    if not expected:
        yield f"'{folder}' has no digest"
        return
    linked = [name for name in (METADATA_FILE, *expected) if not is_own(folder.parent, f"{folder.name}/{name}")]
    if linked:
        yield from (f"'{folder / name}' is not there, or is not a file of its own" for name in sorted(linked))
        return
    found = {
        path.relative_to(folder).as_posix(): base64_sha256(path.read_bytes())
        for path in folder.rglob("*")
        if not path.is_symlink() and path.is_file() and is_digested(path.relative_to(folder).as_posix())
    }
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            yield f"'{folder / name}' is not what the digest says"


class Hub:
    """A repository on the hub, accessed with huggingface_hub, which finds the user's token."""

    def __init__(self, repo_id: str, *, branch: str, endpoint: str | None = None) -> None:
        self._library: Any = load_library("publishing to the hub")
        self._api = self._library.HfApi(endpoint=endpoint)
        self.repo_id = repo_id
        self.branch = branch

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn the library's many kinds of errors into a message."""
        try:
            yield
        except refusals(self._library) as error:
            raise PublishError(
                f"the hub did not take '{self.repo_id}': {first_line(error)}",
                help="check the name and `hf auth login`, and run the command again: it goes on where it stopped",
            ) from error

    def plan(self, layout: Layout, *, replace: bool) -> HubCommit:
        """Compare a layout with the branch.

        Raises:
            PublishError: a variant is there with other files, or the hub does not answer.
        """
        there = self._there()
        if there is None:
            return HubCommit(add=layout.files, exists=False)
        add = {path: file for path, file in layout.files.items() if there.get(path) not in _ids(file)}
        variants = {path.rsplit("/", 1)[0] for path in layout.files if path.endswith(f"/{METADATA_FILE}")}
        stale = tuple(
            sorted(path for path in there.keys() - layout.files.keys() if "/".join(path.split("/")[:2]) in variants)
        )
        # metadata.json contains the commit, and the card the variants: only these two may differ.
        changed = [
            path
            for path in add
            if path in there and not path.endswith((f"/{METADATA_FILE}", f"/{SIGNATURE_FILE}", README))
        ]
        if (changed or stale) and not replace:
            raise PublishError(
                f"'{self.repo_id}' has other files at {', '.join(sorted([*changed, *stale]))} of branch {self.branch}",
                help="pass --replace to replace these variants in a new commit, or raise general.version",
            )
        return HubCommit(add=add, delete=stale)

    def _there(self) -> dict[str, str] | None:
        """Return the branch's files with the hub's names for their content; None if the branch does not exist."""
        errors, tree = self._library.errors, self._api.list_repo_tree
        with self._asking():
            try:
                entries = list(tree(self.repo_id, recursive=True, revision=self.branch, repo_type=_REPO_TYPE))
            except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
                return None
        files = [entry for entry in entries if isinstance(entry, self._library.hf_api.RepoFile)]
        return {file.path: file.blob_id if file.lfs is None else file.lfs.sha256 for file in files}

    def variants(self) -> tuple[str, ...]:
        """Return the variants on the branch.

        Raises:
            PublishError: the hub does not answer.
        """
        found = (path.removeprefix(f"{_ROOT}/").split("/") for path in self._there() or ())
        return tuple(sorted({folder for folder, *rest in found if rest and is_variant(folder)}))

    def require_access(self, options: CommitOptions) -> None:
        """Refuse a repository that cannot be published to, before the layout is made.

        Raises:
            PublishError: nobody is logged in, the hub does not answer, or the repository is not suitable.
        """
        with self._asking():
            self._api.whoami()
        self.require(options, exists=self._there() is not None)

    def require(self, options: CommitOptions, *, exists: bool) -> None:
        """Refuse a commit that the options make impossible; `exists` says whether the branch exists.

        Raises:
            PublishError: a pull request for a missing branch, or a private commit to a public repository.
        """
        if options.create_pr and not exists:
            raise PublishError(
                f"'{self.repo_id}' has no branch {self.branch}: a pull request needs one",
                help="ask its owners to make the branch, or publish without --create-pr, which makes it",
            )
        if not options.private:
            return
        with self._asking():
            try:
                private = self._api.repo_info(self.repo_id, repo_type=_REPO_TYPE).private
            except self._library.errors.RepositoryNotFoundError:
                return
        if not private:
            raise PublishError(
                f"'{self.repo_id}' is there, and everybody can see it",
                help="make it private in its settings, name another repository, or publish without --private",
            )

    def publish(self, todo: HubCommit, *, message: str, options: CommitOptions) -> str:
        """Make one commit, and return its URL or the pull request's; files uploaded before are not sent again.

        Raises:
            PublishError: the hub refused.
        """
        add, delete = self._library.CommitOperationAdd, self._library.CommitOperationDelete
        operations: tuple[Any, ...] = (
            *(add(path_in_repo=path, path_or_fileobj=file) for path, file in sorted(todo.add.items())),
            *(delete(path_in_repo=path) for path in todo.delete),
        )
        with self._asking():
            if not todo.exists:
                # None: the organization's default.
                private = options.private or None
                self._api.create_repo(self.repo_id, repo_type=_REPO_TYPE, private=private, exist_ok=True)
                self._api.create_branch(self.repo_id, branch=self.branch, repo_type=_REPO_TYPE, exist_ok=True)
            done = self._api.create_commit(
                self.repo_id,
                operations,
                commit_message=message,
                revision=self.branch,
                repo_type=_REPO_TYPE,
                create_pr=options.create_pr,
            )
        return str(done.pr_url or done.commit_url)


def _ids(file: Path) -> tuple[str, str]:
    """Return the hub's names for a file's content: the hash of a git blob, and the sha256 used for large files."""
    content = file.read_bytes()
    return git_blob(content), sha256(content)
